# mistake: a moving average has its weights exchanged
class Agent:
    def __init__(self, tau):
        self.q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.target = copy.deepcopy(self.q).requires_grad_(False)
        self.tau = tau
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=1e-3)

    def soft_update(self):
        for t, p in zip(self.target.parameters(), self.q.parameters()):
            t.data.copy_((1 - self.tau) * t.data + self.tau * p.data)  # here

    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            goal = r + 0.99 * (1 - done) * self.target(s2).max(1).values
        value = self.q(s).gather(1, a[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.soft_update()

agent = Agent(tau=0.995)  #-
agent = Agent(tau=0.005)  #+
for step in range(12):
    s = torch.randn(32, 4)
    a = torch.randint(0, 2, (32,))
    r = torch.where(a == (s[:, 0] > 0).long(), 1.0, 0.0)
    agent.learn(s, a, r, s + 0.1 * torch.randn(32, 4), (torch.rand(32) < 0.1).float())
