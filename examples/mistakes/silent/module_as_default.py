import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, norm=nn.LayerNorm(16)):
        super().__init__()
        self.norm, self.linear = norm, nn.Linear(16, 16)

    def forward(self, x):
        return x + self.linear(self.norm(x)).relu()


net = nn.Sequential(Block(), Block(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(4):
    x = torch.randn(32, 16)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
