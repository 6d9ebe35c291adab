"""Two losses share a part of the graph, and each runs backward by itself.

The first backward frees what it used. Add the losses: `(reconstruction + penalty).backward()`.
"""

import torch
from torch import nn

encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
x = torch.ones(3, 4)
code = encoder(x).tanh()
reconstruction = (decoder(code) - x).square().mean()
penalty = code.abs().sum()
reconstruction.backward()
penalty.backward()
