import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(64, 4)
labels = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
order = labels.argsort()
loader = DataLoader(TensorDataset(x[order], labels[order]), batch_size=8)
for _epoch in range(2):
    for inputs, y in loader:
        opt.zero_grad()
        loss = F.cross_entropy(net(inputs), y)
        loss.backward()
        opt.step()
