import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _step in range(8):
    states = torch.randn(48, 3)
    following = states + 0.1 * torch.randn(48, 3)
    done = (torch.rand(48) < 0.1).float()
    values = critic(states).squeeze(1)
    targets = states[:, 0] + 0.95 * (1 - done) * critic(following).squeeze(1)
    loss = (values - targets).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
