import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0)
net = nn.Conv2d(1, 1, 3, padding=1)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(6):
    images, noise = torch.rand(16, 1, 16, 16), torch.randn(16, 1, 16, 16)
    a = kept[torch.randint(0, 100, (16,))]
    noisy = a.sqrt() * images + (1 - a).sqrt() * noise
    opt.zero_grad()
    F.mse_loss(net(noisy), noise).backward()
    opt.step()
