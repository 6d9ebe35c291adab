"""botorch: a model fitted, and the next point by several acquisition functions."""

import warnings

import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    UpperConfidenceBound,
    qLogNoisyExpectedImprovement,
)
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood

warnings.simplefilter("ignore")
torch.manual_seed(0)
x = torch.rand(10, 2, dtype=torch.double) * 2
y = 1 - (x - 0.5).norm(dim=-1, keepdim=True)
y = y + 0.1 * torch.randn_like(y)
model = SingleTaskGP(x, y, input_transform=Normalize(d=2), outcome_transform=Standardize(m=1))
score = ExactMarginalLogLikelihood(model.likelihood, model)
fit_gpytorch_mll(score)
print("length", *model.covar_module.lengthscale.flatten().tolist())
print("mean", *model.posterior(x[:4]).mean.flatten().tolist())
bounds = torch.stack([torch.zeros(2), torch.ones(2)]).to(torch.double)
for kind, how in (
    (LogExpectedImprovement, {"best_f": y.max()}),
    (UpperConfidenceBound, {"beta": 0.1}),
):
    torch.manual_seed(1)
    found, value = optimize_acqf(
        kind(model, **how), bounds=bounds, q=1, num_restarts=4, raw_samples=16
    )
    print(kind.__name__, *found.flatten().tolist(), value.item())
torch.manual_seed(2)
noisy = qLogNoisyExpectedImprovement(model, x, SobolQMCNormalSampler(torch.Size([16]), seed=3))
found, value = optimize_acqf(noisy, bounds=bounds, q=2, num_restarts=2, raw_samples=8)
print("noisy", *found.sort(0).values.flatten().tolist(), value.item())
