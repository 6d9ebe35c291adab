import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Linear(6, 4)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(6):
    x = torch.randn(32, 6)
    out = net(x)
    opt.zero_grad()
    F.mse_loss(out[:, 0], x[:, 0]).backward(retain_graph=True)
    opt.zero_grad()
    F.cross_entropy(out[:, 1:], x[:, 1:4].argmax(1)).backward()
    opt.step()
