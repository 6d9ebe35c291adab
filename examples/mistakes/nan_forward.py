"""A NaN is born in the forward pass.

The logarithm of a negative number. Nothing is raised, the loss is NaN; `detect_anomaly` looks for
the operation.
"""

import torch
from torch import nn


class Entropy(nn.Module):
    def forward(self, p):
        return -(p * p.log()).sum(1)


net = nn.Sequential(nn.Linear(4, 4, bias=False), Entropy())
with torch.no_grad():
    net[0].weight.fill_(-0.5)

with torch.autograd.detect_anomaly():
    loss = net(torch.ones(3, 4)).mean()
    loss.backward()
