import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(4):
    x = torch.randn(32, 8)
    labels = (x[:, :5] > 0).float()
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
