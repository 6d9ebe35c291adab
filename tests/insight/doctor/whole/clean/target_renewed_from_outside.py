class Agent:
    def __init__(self):
        self.online = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.frozen = copy.deepcopy(self.online)
        self.opt = torch.optim.Adam(self.online.parameters(), lr=1e-3)
    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            y = r + 0.9 * self.frozen(s2).max(1).values * (1 - done)
        loss = F.mse_loss(self.online(s).gather(1, a[:, None]).squeeze(1), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
agent = Agent()
for step in range(40):
    s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
    agent.learn(s, torch.randint(2, (16,)), r, s2, (torch.rand(16) < 0.1).float())
    if step % 100 == 99:
        agent.frozen.load_state_dict(agent.online.state_dict())
