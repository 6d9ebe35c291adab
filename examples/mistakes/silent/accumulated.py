import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _step in range(4):
    opt.zero_grad()
    for i in range(4):
        loss = F.mse_loss(net(x[i * 16 : i * 16 + 16]), target[i * 16 : i * 16 + 16])
        loss.backward()
    opt.step()
