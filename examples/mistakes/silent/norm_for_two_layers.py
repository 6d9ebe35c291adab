import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3)
        self.bn = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        x = F.relu(self.bn(self.conv1(x)))
        x = F.relu(self.bn(self.conv2(x)))
        return self.fc(x.mean((2, 3)))


net = Model()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(4):
    x = torch.randn(16, 1, 8, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), (x.mean((1, 2, 3)) > 0).long()).backward()
    opt.step()
