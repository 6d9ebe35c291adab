import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
body = nn.Linear(4, 8)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x).relu())


net = Net()
opt = torch.optim.SGD(net.head.parameters(), lr=0.02)
for _step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
