import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(160, 6)
y = (x[:, 0] > 0).long()
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
batches = zip(x.split(16), y.split(16))
for _epoch in range(5):
    for inputs, labels in batches:
        opt.zero_grad()
        F.cross_entropy(net(inputs), labels).backward()
        opt.step()
