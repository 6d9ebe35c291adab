"""A layer is defined and never used.

Backward leaves its `.grad` at None and the optimizer skips it, without a word. Asking for the
gradients finds it.
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        h = self.first(x).relu()
        h = self.first(h).relu()
        return self.head(h)


net = Net()
loss = net(torch.ones(3, 4)).mean()
torch.autograd.grad(loss, list(net.parameters()))
