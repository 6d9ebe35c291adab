import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
layers = [part for _ in range(10) for part in (nn.Linear(8, 8), nn.Sigmoid())]
net = nn.Sequential(nn.Linear(4, 8), *layers, nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
