import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
y = torch.from_numpy(np.asarray(target.numpy(), dtype=np.float64))
for _step in range(6):
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
