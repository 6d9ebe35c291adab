import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).tanh()
        return self.out(x)


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for _step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
