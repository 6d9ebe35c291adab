import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def noisy(x):
    y = x + 0.2 * torch.randn_like(x)
    y.clamp(0, 1)
    return y


net = nn.Linear(8, 8)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(4):
    x = torch.rand(32, 8)
    opt.zero_grad()
    F.mse_loss(net(noisy(x)), x).backward()
    opt.step()
