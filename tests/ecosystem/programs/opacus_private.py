"""opacus: training with differential privacy, its accountant and its per-sample gradients."""

import warnings

import torch
from opacus import GradSampleModule, PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)
)
x, y = torch.randn(32, 1, 8, 8), torch.randint(0, 2, (32,))
sampled = GradSampleModule(nn.Sequential(*[type(m)(*a) for m, a in ((nn.Linear(1, 1), (3, 2)),)]))
sampled(torch.randn(4, 3)).sum().backward()
print("per_sample", *sampled._module[0].weight.grad_sample.shape)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(x, y), batch_size=8),
    noise_multiplier=1.1,
    max_grad_norm=1.0,
)
losses = []
for rows, targets in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(rows), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", *losses)
print("epsilon", engine.get_epsilon(1e-5))
