import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
net = nn.Linear(4, 8)
opt = torch.optim.SGD(net.parameters(), lr=0.001)
for _step in range(4):
    opt.zero_grad()
    h = net(x).relu()
    h.sqrt().mean().backward()
    opt.step()
