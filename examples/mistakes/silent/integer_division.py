import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
labels = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _step in range(6):
    opt.zero_grad()
    z = net(x)
    F.cross_entropy(z, labels).backward()
    opt.step()
    accuracy = (z.argmax(1) == labels).sum() // len(labels)
