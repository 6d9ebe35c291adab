"""torchdiffeq and torchsde: the spiral fitted, the adjoint method, events, a neural SDE."""

import torch
import torchsde
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

torch.manual_seed(0)
start = torch.tensor([[2.0, 0.0]])
times = torch.linspace(0.0, 5.0, 40)
true = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
with torch.no_grad():
    path = odeint(lambda t, y: y**3 @ true, start, times, method="dopri5")
print("path", *path[-1].flatten().tolist(), path.mean().item())


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 2))

    def forward(self, t, y):
        return self.net(y**3)


for name, solve in (("direct", odeint), ("adjoint", odeint_adjoint)):
    torch.manual_seed(1)
    field = Field()
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (solve(field, start, times[:8]) - path[:8]).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(name, *losses)
for method in ("euler", "midpoint", "rk4", "bosh3", "adaptive_heun", "implicit_adams", "dopri8"):
    print(method, *odeint(lambda t, y: -y, torch.ones(2), times[:5], method=method)[-1].tolist())
begin = torch.tensor([10.0, 0.0])
fall = lambda t, y: torch.stack([y[1], torch.tensor(-9.8)])
at, _ = odeint_event(fall, begin, torch.tensor(0.0), event_fn=lambda t, y: y[0])
print("event", at.item())


class Noise(nn.Module):
    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self):
        super().__init__()
        self.mu = nn.Linear(3, 3)
        self.sigma = nn.Linear(3, 3)

    def f(self, t, y):
        return self.mu(y)

    def g(self, t, y):
        return self.sigma(y).sigmoid()


torch.manual_seed(2)
noise = Noise()
brown = torchsde.BrownianInterval(
    0.0, 1.0, size=(4, 3), entropy=5, levy_area_approximation="space-time"
)
for name, solve in (("sde", torchsde.sdeint), ("sde_adjoint", torchsde.sdeint_adjoint)):
    noise.zero_grad()
    where = solve(noise, torch.full((4, 3), 0.1), torch.linspace(0, 1, 5), bm=brown, dt=0.1)
    where.pow(2).mean().backward()
    print(name, where[-1].sum().item(), noise.mu.weight.grad.abs().sum().item())
