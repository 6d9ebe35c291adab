import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
images = torch.randn(8, 1, 4, 4)
for i in range(8):
    opt.zero_grad()
    out = net(images[i : i + 1])
    out.square().mean().backward()
    opt.step()
