import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(4, 16, num_layers=2, batch_first=True), nn.Linear(16, 2)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.out(h[0])


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(4):
    x = torch.randn(16, 9, 4)
    opt.zero_grad()
    F.cross_entropy(net(x), (x.mean((1, 2)) > 0).long()).backward()
    opt.step()
