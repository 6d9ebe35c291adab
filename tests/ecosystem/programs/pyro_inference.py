"""pyro: SVI of a regression with an automatic guide, NUTS, predictions, enumeration."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal
from pyro.nn import PyroModule, PyroSample

pyro.set_rng_seed(0)
x = torch.linspace(0, 1, 20)[:, None]
y = 3 * x[:, 0] - 1 + 0.1 * torch.randn(20)


class Regression(PyroModule):
    def __init__(self):
        super().__init__()
        self.linear = PyroModule[torch.nn.Linear](1, 1)
        self.linear.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 1]).to_event(2))
        self.linear.bias = PyroSample(dist.Normal(0.0, 10.0).expand([1]).to_event(1))

    def forward(self, x, y=None):
        sigma = pyro.sample("sigma", dist.Uniform(0.0, 10.0))
        mean = self.linear(x).squeeze(-1)
        with pyro.plate("data", x.shape[0]):
            pyro.sample("obs", dist.Normal(mean, sigma), obs=y)
        return mean


for kind in (AutoDiagonalNormal, AutoMultivariateNormal):
    pyro.clear_param_store()
    pyro.set_rng_seed(1)
    model = Regression()
    guide = kind(model)
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.03}), loss=Trace_ELBO())
    print(kind.__name__, *(svi.step(x, y) for _ in range(5)))
    guesses = Predictive(model, guide=guide, num_samples=4, return_sites=("obs", "_RETURN"))
    print(f"{kind.__name__}_seen", *guesses(x)["_RETURN"].mean(-1).tolist())


def coin(data):
    bias = pyro.sample("bias", dist.Beta(2.0, 2.0))
    with pyro.plate("flips", len(data)):
        pyro.sample("flip", dist.Bernoulli(bias), obs=data)


pyro.set_rng_seed(2)
mcmc = MCMC(NUTS(coin), num_samples=20, warmup_steps=20, disable_progbar=True)
mcmc.run(torch.tensor([1.0, 1.0, 0.0, 1.0]))
print("nuts", *mcmc.get_samples()["bias"].tolist())
data = torch.tensor([0.0, 1.0, 10.0, 11.0, 12.0])


@config_enumerate
def mixture(data):
    weights = pyro.sample("weights", dist.Dirichlet(0.5 * torch.ones(2)))
    with pyro.plate("components", 2):
        places = pyro.sample("places", dist.Normal(0.0, 10.0))
    with pyro.plate("data", len(data)):
        which = pyro.sample("which", dist.Categorical(weights))
        pyro.sample("seen", dist.Normal(places[which], 1.0), obs=data)


pyro.clear_param_store()
pyro.set_rng_seed(3)
guide = pyro.infer.autoguide.AutoDelta(pyro.poutine.block(mixture, expose=["weights", "places"]))
svi = SVI(mixture, guide, pyro.optim.Adam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1))
print("mixture", *(svi.step(data) for _ in range(4)))
