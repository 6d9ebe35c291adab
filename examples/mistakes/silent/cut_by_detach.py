import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
for _step in range(6):
    opt.zero_grad()
    h = body(x).relu()
    h = h.detach()
    F.mse_loss(head(h), target).backward()
    opt.step()
