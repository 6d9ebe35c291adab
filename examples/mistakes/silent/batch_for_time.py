import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 16)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])


net = Model()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(4):
    x = torch.randn(16, 20, 3)  # sample, time, channel
    opt.zero_grad()
    F.cross_entropy(net(x), (x.mean((1, 2)) > 0).long()).backward()
    opt.step()
