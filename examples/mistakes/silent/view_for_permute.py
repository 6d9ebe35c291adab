import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
conv, head = nn.Conv1d(8, 16, 3), nn.Linear(16, 2)
lift = nn.Linear(3, 8)
opt = torch.optim.Adam([*lift.parameters(), *conv.parameters(), *head.parameters()], lr=1e-3)
for _step in range(4):
    x = torch.randn(16, 20, 3)  # sample, time, channel
    h = lift(x).view(16, 8, 20)
    opt.zero_grad()
    F.cross_entropy(head(conv(h).mean(2)), (x.mean((1, 2)) > 0).long()).backward()
    opt.step()
