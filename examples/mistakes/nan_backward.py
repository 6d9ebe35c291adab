"""A NaN is born in the backward pass.

`where` picks the good branch going forward, but backward multiplies the gradient of `sqrt` at 0,
which is infinite, by 0. Make the argument safe first: `x.clamp(min=1e-12).sqrt()`.
"""

import torch

x = torch.tensor([4.0, 0.0], requires_grad=True)

with torch.autograd.detect_anomaly():
    root = torch.where(x > 0, x.sqrt(), torch.zeros(()))
    root.sum().backward()
