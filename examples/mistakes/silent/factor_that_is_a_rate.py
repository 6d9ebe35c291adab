import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
rate = 1e-3
net = nn.Linear(8, 3)
opt = torch.optim.Adam(net.parameters(), lr=rate)
schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: rate * min(1, (step + 1) / 3))
for _step in range(6):
    x = torch.randn(32, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    opt.step()
    schedule.step()
