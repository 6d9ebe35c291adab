"""A value leaves as a Python number and comes back as a tensor.

`item()` is for logging. Sum the tensors, and call `item()` on what is printed.
"""

import torch
from torch import nn

net = nn.Linear(4, 1)
total = 0.0
for x in torch.ones(3, 4):
    total += net(x).square().mean().item()
loss = torch.tensor(total / 3)
loss.backward()
