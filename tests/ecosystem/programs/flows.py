"""Normalizing flows of zuko, nflows and normflows: training by likelihood, sampling."""

import torch
import zuko
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
from nflows.transforms.base import CompositeTransform
from nflows.transforms.permutations import ReversePermutation

torch.manual_seed(0)
data = torch.randn(32, 3) * torch.tensor([1.0, 0.5, 2.0]) + 1
for kind in (zuko.flows.NSF, zuko.flows.MAF, zuko.flows.NICE):
    torch.manual_seed(1)
    flow = kind(3, 2, transforms=2, hidden_features=(16, 16))
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
    context = torch.randn(32, 2)
    losses = []
    for _ in range(3):
        loss = -flow(context).log_prob(data).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(kind.__name__, *losses)
    print(f"{kind.__name__}_drawn", *flow(context[0]).sample((4,)).mean(0).tolist())
torch.manual_seed(2)
layers = []
for _ in range(2):
    layers.append(ReversePermutation(features=3))
    layers.append(MaskedAffineAutoregressiveTransform(features=3, hidden_features=8))
flow = Flow(CompositeTransform(layers), StandardNormal([3]))
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
losses = []
for _ in range(3):
    loss = -flow.log_prob(inputs=data).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("nflows", *losses, *flow.sample(5).mean(0).tolist())
