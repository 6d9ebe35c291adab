"""Layers of fairscale that are computed again, flat parameters; what torchinfo says of a model."""

import fairscale
import torch
import torchinfo
from fairscale.nn import FlattenParamsWrapper, checkpoint_wrapper
from torch import nn

torch.manual_seed(0)
x = torch.randn(6, 4, requires_grad=True)
layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))
checkpoint_wrapper(layers)(x).sum().backward()
print("again", *x.grad.flatten().tolist())
try:
    torch.autograd.grad(checkpoint_wrapper(layers)(x).sum(), x)
except RuntimeError:
    print("refused", 1)
flat = FlattenParamsWrapper(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)))
flat(x).sum().backward()
print("flat", *flat.flat_param.grad.tolist(), len(fairscale.__version__.split(".")))
found = torchinfo.summary(layers, (6, 4), verbose=0)
sizes = (found.total_params, found.total_mult_adds, found.total_output_bytes)
print("sizes", *sizes, int(found.total_input >= 96))  # with the size of a Python object
