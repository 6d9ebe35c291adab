import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
labels = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _epoch in range(2):
    net.train()
    for _step in range(6):
        opt.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        opt.step()
    with torch.no_grad():
        accuracy = (net(x).argmax(1) == labels).float().mean()
