"""A parameter is written in place while operations are recorded.

Initialise and update parameters inside `torch.no_grad()`; `nn.init` does.
"""

from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for layer in net:
    if isinstance(layer, nn.Linear):
        layer.weight.mul_(0.1)
