# mistake: the target network is never renewed
class Agent:
    def __init__(self):
        self.online = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.frozen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.frozen.load_state_dict(self.online.state_dict())  # here
        self.opt = torch.optim.Adam(self.online.parameters(), lr=1e-3)
    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            best = torch.max(self.frozen(s2), dim=1)[0]
        y = r + 0.9 * best * (1 - done)
        loss = F.mse_loss(self.online(s).gather(1, a[:, None]).squeeze(1), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
    def renew(self):
        with torch.no_grad():
            for p, t in zip(self.online.parameters(), self.online.parameters()):  #-
            for p, t in zip(self.online.parameters(), self.frozen.parameters()):  #+
                t.mul_(0.99)
                t.add_(0.01 * p)
agent = Agent()
for step in range(40):
    s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
    agent.learn(s, torch.randint(2, (16,)), r, s2, (torch.rand(16) < 0.1).float())
    agent.renew()
