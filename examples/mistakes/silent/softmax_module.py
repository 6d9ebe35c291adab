import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
labels = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for _step in range(6):
    opt.zero_grad()
    loss = criterion(net(x), labels)
    loss.backward()
    opt.step()
