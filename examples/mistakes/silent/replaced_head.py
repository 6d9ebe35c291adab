import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.02)
net[2] = nn.Linear(8, 1)
for _step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
