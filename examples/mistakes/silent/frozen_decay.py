import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=0.1)
for step in range(8):
    opt.zero_grad(set_to_none=False)
    F.mse_loss(net(x), target).backward()
    opt.step()
    if step == 2:
        for p in net[0].parameters():
            p.requires_grad_(False)
