# mistake: kept with their graphs
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
        self.history = {"loss": deque(maxlen=500)}

    def act(self, s):
        dist = torch.distributions.Categorical(logits=self.net(s))
        a = dist.sample()
        return a, dist.log_prob(a)

policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
for episode in range(14):
    s = torch.randn(20, 4)
    a, log_prob = policy.act(s)
    reward = torch.where(a == (s[:, 0] > 0).long(), 1.0, -1.0)
    returns = (reward - reward.mean()) / (reward.std() + 1e-6)
    loss = -(log_prob * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    policy.history["loss"].append(loss)  #- here
    policy.history["loss"].append(loss.item())  #+
