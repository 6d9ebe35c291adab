import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(200, 5) * torch.tensor([2.5, 0.5, 0.5, 0.5, 0.5])
target = x @ torch.tensor([[3.0], [1.0], [-2.0], [0.5], [1.5]])
net = nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.15)
for _step in range(12):
    opt.zero_grad()
    loss = F.mse_loss(net(x), target)
    loss.backward()
    opt.step()
