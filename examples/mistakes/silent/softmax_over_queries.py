import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
qkv, head = nn.Linear(8, 24), nn.Linear(8, 2)
opt = torch.optim.Adam([*qkv.parameters(), *head.parameters()], lr=1e-3)
for _step in range(4):
    x = torch.randn(16, 6, 8)
    q, k, v = qkv(x).chunk(3, dim=-1)
    weights = (q @ k.transpose(1, 2) / 8**0.5).softmax(dim=1)
    opt.zero_grad()
    F.cross_entropy(head((weights @ v).mean(1)), (x.mean((1, 2)) > 0).long()).backward()
    opt.step()
