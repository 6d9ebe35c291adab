# mistake: given its own state
class Agent:
    def __init__(self):
        self.q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.target = self.q  #-
        self.target = copy.deepcopy(self.q)  #+
        self.opt = torch.optim.Adam(self.q.parameters(), 1e-3)
    def learn(self, s, a, r, s2):
        with torch.no_grad():
            y = r + 0.9 * self.target(s2).max(1)[0]
        loss = (self.q(s).gather(1, a[:, None])[:, 0] - y).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
    def sync(self):
        self.target.load_state_dict(self.q.state_dict())  # here
agent = Agent()
for i in range(9):
    s, a = torch.randn(16, 4), torch.randint(0, 2, (16,))
    agent.learn(s, a, torch.randn(16), torch.randn(16, 4))
    if i % 3 == 2:
        agent.sync()
