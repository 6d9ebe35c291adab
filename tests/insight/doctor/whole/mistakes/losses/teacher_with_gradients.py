# mistake: requires grad
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, s):
        return self.net(s).squeeze(-1)

critic = Critic()
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
gamma = 0.95
for update in range(8):
    states = torch.randn(48, 3)
    following = states + 0.1 * torch.randn(48, 3)
    rewards = states[:, 0]
    done = (torch.rand(48) < 0.1).float()
    values = critic(states)
    targets = rewards + gamma * (1 - done) * critic(following)
    targets = targets.detach()  #+
    loss = 0.5 * (values - targets).pow(2).mean()  # here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
