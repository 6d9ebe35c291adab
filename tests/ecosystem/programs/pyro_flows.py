"""pyro's transforms that are modules: autoregressive ones, splines, and a guide made of them."""

import pyro
import pyro.distributions as dist
import pyro.distributions.transforms as T
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoIAFNormal

pyro.set_rng_seed(0)
x = torch.randn(20)
y = 2 * x + 0.5 + 0.1 * torch.randn(20)


def model(x, y):
    a = pyro.sample("a", dist.Normal(0.0, 5.0))
    b = pyro.sample("b", dist.Normal(0.0, 5.0))
    with pyro.plate("data", len(x)):
        pyro.sample("obs", dist.Normal(a * x + b, 1.0), obs=y)


pyro.set_rng_seed(1)
svi = SVI(model, AutoIAFNormal(model), pyro.optim.Adam({"lr": 0.02}), Trace_ELBO())
losses = [svi.step(x, y) for _ in range(8)]
print("guide", losses[0], losses[-1])

pyro.set_rng_seed(2)
base = dist.Normal(torch.zeros(2), 1.0).to_event(1)
for name, transform in (
    ("autoregressive", T.affine_autoregressive(2, [8])),
    ("spline", T.spline(2, count_bins=4)),
    ("planar", T.planar(2)),
):
    flow = dist.TransformedDistribution(base, [transform])
    drawn = flow.rsample((5,))
    drawn.pow(2).sum().backward()
    grad = sum(p.grad.abs().sum().item() for p in transform.parameters())
    print(name, drawn.sum().item(), grad)
