import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-6)
inputs = torch.randint(0, 256, (64, 4)).float()
for _step in range(4):
    opt.zero_grad()
    p = net(inputs)
    F.mse_loss(p, target).backward()
    opt.step()
