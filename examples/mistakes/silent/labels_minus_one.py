import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
y = (x[:, :1] > 0).float()
y = 2 * y - 1
for _step in range(6):
    opt.zero_grad()
    loss = F.binary_cross_entropy_with_logits(net(x), y)
    loss.backward()
    opt.step()
