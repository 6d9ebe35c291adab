import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 24), nn.Linear(24, 24), nn.Linear(24, 1)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _step in range(8):
    x = torch.randn(64, 6)
    loss = F.mse_loss(net(x), x[:, :1] + 0.5 * x[:, 1:2])
    opt.zero_grad()
    loss.backward()
    opt.step()
