import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))


def update(x, y):
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


for _step in range(8):
    x = torch.randn(16, 6)
    update(x, (x[:, 0] > 0).long())
