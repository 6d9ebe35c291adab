# mistake: grows from step to step
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, s):
        return torch.distributions.Categorical(logits=self.actor(s))

policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
baseline = torch.zeros(())
for episode in range(10):
    states = torch.randn(20, 4)
    distribution = policy(states)
    actions = distribution.sample()
    rewards = (states[:, 0] > 0).float() * actions.float()
    surprise = -distribution.log_prob(actions).mean()
    baseline = 0.95 * baseline + 0.05 * (rewards.mean() + 0.01 * surprise)  #- here
    baseline = 0.95 * baseline + 0.05 * (rewards.mean() + 0.01 * surprise).detach()  #+
    advantage = (rewards - baseline).detach()
    loss = -(distribution.log_prob(actions) * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
