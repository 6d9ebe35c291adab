import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
labels = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _step in range(5):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
hits = 0
for i in range(4):
    hits += (net(x[i * 16 : i * 16 + 16]).argmax(1) == labels[i * 16 : i * 16 + 16]).sum()
