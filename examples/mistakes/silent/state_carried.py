import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
cell, head = nn.RNNCell(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.0)
h = torch.zeros(64, 8)
for _step in range(8):
    opt.zero_grad()
    h = cell(x, h)
    loss = F.mse_loss(head(h), target)
    loss.backward(retain_graph=True)
