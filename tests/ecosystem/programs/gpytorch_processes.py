"""gpytorch: prediction of an exact process, a variational one, and linear_operator's solves."""

import gpytorch
import linear_operator
import torch
from linear_operator.operators import DenseLinearOperator, DiagLinearOperator

torch.manual_seed(0)
x = torch.linspace(0, 1, 30)
y = torch.sin(x * 6) + 0.1 * torch.randn(30)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Exact(x, y, likelihood)
model.train()
likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
score = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
losses = []
for _ in range(10):
    optimizer.zero_grad()
    loss = -score(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("exact", *losses)
model.eval()
likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    seen = likelihood(model(torch.linspace(0, 1, 5)))
    lower, upper = seen.confidence_region()
print("mean", *seen.mean.tolist())
print("region", *lower.tolist(), *upper.tolist())
print("sample", *model(x[:3]).sample(torch.Size([2])).flatten().shape)


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        spread = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, spread))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


variational = Variational(torch.linspace(0, 1, 6)).train()
likelihood = gpytorch.likelihoods.BernoulliLikelihood()
score = gpytorch.mlls.VariationalELBO(likelihood, variational, 30)
optimizer = torch.optim.Adam(variational.parameters(), lr=0.1)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = -score(variational(x), (y > 0).float())
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("variational", *losses)
a = torch.randn(6, 6, dtype=torch.float64)
operator = DenseLinearOperator(a @ a.mT) + DiagLinearOperator(torch.ones(6, dtype=torch.float64))
right = torch.randn(6, dtype=torch.float64)
print("solve", *operator.solve(right).tolist())
print(
    "quadratic",
    *(v.item() for v in linear_operator.inv_quad_logdet(operator, right[:, None], True)),
)
