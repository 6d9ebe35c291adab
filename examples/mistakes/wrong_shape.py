"""A layer gets another width than it was made for.

Three pixels' channels were flattened, the layer expects one's: `nn.Linear(3 * 8, 16)`.
"""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.pixels = nn.Conv1d(1, 8, kernel_size=2)
        self.mix = nn.Linear(8, 16)

    def forward(self, x):
        h = self.pixels(x).relu().flatten(1)
        return self.mix(h)


net = nn.Sequential(Encoder(), nn.Linear(16, 2))
net(torch.ones(5, 1, 4))
