import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
x = torch.randn(64, 4)
labels = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = TensorDataset(x, labels)
train = DataLoader(Subset(data, range(48)), batch_size=8, shuffle=True)
test = DataLoader(Subset(data, range(32, 64)), batch_size=8)
for inputs, y in train:
    opt.zero_grad()
    F.cross_entropy(net(inputs), y).backward()
    opt.step()
with torch.no_grad():
    for inputs, _ in test:
        net(inputs)
