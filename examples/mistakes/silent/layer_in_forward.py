import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 8, 5)

    def forward(self, x):
        h = self.conv(x).relu().flatten(1)
        return nn.Linear(h.shape[1], 3)(h)


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(6):
    x = torch.randn(32, 2, 20)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, 0, :3].argmax(1)).backward()
    opt.step()
