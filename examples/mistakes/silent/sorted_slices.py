import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
labels = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
order = labels.argsort()
for i in range(0, 64, 8):
    opt.zero_grad()
    loss = F.cross_entropy(net(x[order[i : i + 8]]), labels[order[i : i + 8]])
    loss.backward()
    opt.step()
