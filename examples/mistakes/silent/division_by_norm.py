import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
net = nn.Linear(4, 8)
opt = torch.optim.SGD(net.parameters(), lr=0.001)
inputs = torch.cat([x, torch.zeros(2, 4)])
with torch.no_grad():
    net.bias.zero_()
for _step in range(4):
    opt.zero_grad()
    h = net(inputs)
    n = h.norm(dim=1, keepdim=True)
    (h / n).square().mean().backward()
    with torch.no_grad():
        net.bias.zero_()
