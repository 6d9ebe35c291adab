import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Linear(4, 1)
average = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _step in range(4):
    x = torch.randn(32, 4)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1]).backward()
    opt.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), net.parameters()):
            slow = 0.99 * slow + 0.01 * fast
