"""A variational autoencoder, checkpointed layers, hooks, a custom Function and an early stop."""

import copy

import torch
from torch import nn
from torch.autograd import Function
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint


class Clip(Function):
    """The identity, with a gradient of limited size."""

    @staticmethod
    def forward(ctx, x, limit):
        ctx.limit = limit
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.clamp(-ctx.limit, ctx.limit), None


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 4))
        self.decoder = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 8))

    def forward(self, x):
        mean, spread = checkpoint(self.encoder, x, use_reentrant=False).chunk(2, dim=-1)
        std = nn.functional.softplus(spread) + 1e-3
        z = Clip.apply(mean + std * torch.randn_like(std), 1.0)
        return self.decoder(z), 0.5 * (mean**2 + std**2 - 1 - 2 * torch.log(std)).sum(dim=1)


torch.manual_seed(0)
angle = torch.rand(512, 1) * 6.28
data = torch.cat([torch.sin(angle * k / 2 + k) for k in range(1, 9)], dim=1)
model = Autoencoder()
average = AveragedModel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = ReduceLROnPlateau(optimizer, factor=0.5, patience=20)
norms = []
model.decoder[0].register_full_backward_hook(lambda m, gi, go: norms.append(go[0].norm().item()))
best, kept = float("inf"), None
for epoch in range(200):
    output, divergence = model(data)
    distance = (output - data).square().sum(dim=1).mean()
    loss = distance + 0.01 * divergence.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step(loss.item())
    average.update_parameters(model)
    if loss.item() < best:
        best, kept = loss.item(), copy.deepcopy(model.state_dict())
model.load_state_dict(kept)
print(f"loss {best:.3f}, last gradient norm {norms[-1]:.4f}, lr {scheduler.get_last_lr()[0]:g}")
assert best < 1.5 and len(norms) == 200
