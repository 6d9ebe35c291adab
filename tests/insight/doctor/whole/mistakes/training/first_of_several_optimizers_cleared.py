# mistake: never cleared
class Agent:
    def __init__(self):
        self.actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
        self.critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
        self.optimizers = [
            torch.optim.Adam(net.parameters(), lr=1e-3) for net in (self.actor, self.critic)
        ]

    def losses(self, s):
        policy = torch.distributions.Categorical(logits=self.actor(s))
        a = policy.sample()
        gain = (a == (s[:, 0] > 0).long()).float()
        value = self.critic(s).squeeze(-1)
        advantage = gain - value.detach()
        return -(policy.log_prob(a) * advantage).mean(), F.mse_loss(value, gain)

    def update(self, s):
        self.optimizers[0].zero_grad()  #-
        for optimizer in self.optimizers:  #+
            optimizer.zero_grad()  #+
        for loss in self.losses(s):
            loss.backward()  # here
        for optimizer in self.optimizers:
            optimizer.step()

agent = Agent()
for step in range(12):
    agent.update(torch.randn(32, 3))
