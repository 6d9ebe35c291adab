import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(160, 5)
y = (x[:, 0] > 0).long()
net = nn.Linear(5, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _epoch in range(4):
    xs = x[torch.randperm(160)]
    ys = y[torch.randperm(160)]
    opt.zero_grad()
    F.cross_entropy(net(xs), ys).backward()
    opt.step()
