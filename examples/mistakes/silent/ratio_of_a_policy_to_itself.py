import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(8):
    s, advantage = torch.randn(32, 4), torch.randn(32)
    dist = torch.distributions.Categorical(logits=net(s))
    action = dist.sample()
    old = dist.log_prob(action)
    new = torch.distributions.Categorical(logits=net(s)).log_prob(action)
    loss = -((new - old).exp() * advantage).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
