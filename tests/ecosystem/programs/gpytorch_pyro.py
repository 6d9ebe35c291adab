"""An exact Gaussian process, and stochastic variational inference."""

import gpytorch
import pyro
import torch
from pyro import distributions as dist

torch.manual_seed(0)
x = torch.linspace(0, 1, 20)
y = torch.sin(x * 6)


class Process(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
process = Process(x, y, likelihood).train()
optimizer = torch.optim.Adam(process.parameters(), lr=0.1)
score = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = -score(process(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("process", *losses)

pyro.set_rng_seed(0)


def model(data):
    mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
    with pyro.plate("all", len(data)):
        pyro.sample("seen", dist.Normal(mean, 1.0), obs=data)


def guide(data):
    scale = pyro.param("b", torch.tensor(1.0), constraint=dist.constraints.positive)
    pyro.sample("mean", dist.Normal(pyro.param("a", torch.tensor(0.0)), scale))


svi = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), pyro.infer.Trace_ELBO())
print("svi", *(svi.step(torch.ones(5)) for _ in range(4)))
