import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
y = (x[:, :1] > 0).float()
criterion = nn.BCEWithLogitsLoss()
for _step in range(6):
    p = net(x).sigmoid()
    opt.zero_grad()
    loss = criterion(p, y)
    loss.backward()
    opt.step()
