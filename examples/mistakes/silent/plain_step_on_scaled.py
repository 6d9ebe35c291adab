import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for _step in range(6):
    x = torch.randn(32, 6)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    scaler.scale(loss).backward()
    opt.step()
