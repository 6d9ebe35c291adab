import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.rnn = nn.GRU(16, 24, batch_first=True)
        self.out = nn.Linear(24, 20)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


net = Model()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(4):
    tokens = torch.randint(0, 20, (16, 10))
    opt.zero_grad()
    F.cross_entropy(net(tokens).transpose(1, 2), tokens).backward()
    opt.step()
