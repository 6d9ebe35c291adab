import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
for _step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
