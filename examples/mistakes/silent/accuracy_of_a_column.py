import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _step in range(4):
    x = torch.randn(32, 4)
    y = (x[:, 0] > 0).float()
    out = net(x)
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(out.squeeze(1), y).backward()
    opt.step()
    correct = ((out > 0).float() == y).sum().item()
