import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.linspace(-2, 2, 60).unsqueeze(1)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=5)


def closure():
    loss = F.mse_loss(net(x), torch.sin(2 * x))
    loss.backward()
    return loss


for _step in range(6):
    opt.step(closure)
