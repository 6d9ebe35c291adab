"""Every distribution with parameters in batches, and SciPy's counterpart where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import clew
from clew import distributions as D


@dataclass
class Case:
    """A distribution, its array parameters, its other arguments, and SciPy's frozen counterpart."""

    kind: Any
    params: dict[str, Any]
    scipy: Callable[..., Any] | None = None
    other: dict[str, Any] | None = None

    def make(self, **options: Any) -> Any:
        tensors = {k: clew.tensor(v, dtype=clew.float64) for k, v in self.params.items()}
        return self.kind(**tensors, **(self.other or {}), **options)

    def frozen(self) -> Any:
        assert self.scipy is not None
        return self.scipy(**{k: np.asarray(v) for k, v in self.params.items()})

    def __str__(self) -> str:
        return f"{self.kind.__name__}-{'-'.join(self.params)}"


def expit(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(x)))


LOC = [[-1.5, 0.0, 2.0], [0.5, -0.25, 7.0]]
SCALE = [[0.3, 1.0, 2.5], [4.0, 0.75, 0.1]]
SHAPE = [[0.4, 1.0, 2.5], [7.0, 0.9, 30.0]]
UNIT = [[0.1, 0.5, 0.9], [0.25, 0.01, 0.75]]

# One variable, continuous.
CONTINUOUS = [
    Case(D.Beta, {"concentration1": SHAPE, "concentration0": [[0.3, 1.0, 2.5], [4.0, 0.75, 0.6]]},
         lambda concentration1, concentration0: stats.beta(concentration1, concentration0)),
    Case(D.Cauchy, {"loc": LOC, "scale": SCALE}, lambda loc, scale: stats.cauchy(loc, scale)),
    Case(D.Chi2, {"df": SHAPE}, lambda df: stats.chi2(df)),
    Case(D.Exponential, {"rate": SCALE}, lambda rate: stats.expon(scale=1 / rate)),
    Case(D.FisherSnedecor, {"df1": SHAPE, "df2": [[5.0, 6.5, 9.0], [4.5, 20.0, 50.0]]},
         lambda df1, df2: stats.f(df1, df2)),
    Case(D.Gamma, {"concentration": SHAPE, "rate": SCALE},
         lambda concentration, rate: stats.gamma(concentration, scale=1 / rate)),
    Case(D.GeneralizedPareto,
         {"loc": LOC, "scale": SCALE, "concentration": [[-0.5, 0.0, 0.2], [0.4, -1.5, 0.1]]},
         lambda loc, scale, concentration: stats.genpareto(concentration, loc, scale)),
    Case(D.Gumbel, {"loc": LOC, "scale": SCALE}, lambda loc, scale: stats.gumbel_r(loc, scale)),
    Case(D.HalfCauchy, {"scale": SCALE}, lambda scale: stats.halfcauchy(scale=scale)),
    Case(D.HalfNormal, {"scale": SCALE}, lambda scale: stats.halfnorm(scale=scale)),
    Case(D.InverseGamma, {"concentration": [[2.5, 3.0, 4.5], [7.0, 2.9, 30.0]], "rate": SCALE},
         lambda concentration, rate: stats.invgamma(concentration, scale=rate)),
    Case(D.Laplace, {"loc": LOC, "scale": SCALE}, lambda loc, scale: stats.laplace(loc, scale)),
    Case(D.LogNormal, {"loc": LOC, "scale": [[0.3, 1.0, 0.5], [0.2, 0.75, 0.1]]},
         lambda loc, scale: stats.lognorm(scale, scale=np.exp(loc))),
    Case(D.Normal, {"loc": LOC, "scale": SCALE}, lambda loc, scale: stats.norm(loc, scale)),
    Case(D.Pareto, {"scale": SCALE, "alpha": [[2.5, 3.0, 4.5], [7.0, 2.9, 30.0]]},
         lambda scale, alpha: stats.pareto(alpha, scale=scale)),
    Case(D.StudentT, {"df": [[2.5, 3.0, 9.0], [30.0, 4.0, 2.1]], "loc": LOC, "scale": SCALE},
         lambda df, loc, scale: stats.t(df, loc, scale)),
    Case(D.Uniform, {"low": LOC, "high": [[1.0, 0.5, 9.0], [0.6, 0.25, 7.5]]},
         lambda low, high: stats.uniform(low, high - low)),
    Case(D.VonMises, {"loc": [[-1.5, 0.0, 2.0], [0.5, -0.25, 3.0]], "concentration": SHAPE},
         lambda loc, concentration: stats.vonmises(concentration, loc)),
    Case(D.Weibull, {"scale": SCALE, "concentration": [[0.8, 1.0, 2.5], [7.0, 1.9, 3.0]]},
         lambda scale, concentration: stats.weibull_min(concentration, scale=scale)),
    Case(D.Kumaraswamy, {"concentration1": [[1.2, 2.0], [3.0, 0.5]],
                         "concentration0": [[2.0, 1.5], [5.0, 0.8]]}),
    Case(D.ContinuousBernoulli, {"probs": [[0.1, 0.5, 0.9], [0.25, 0.4995, 0.75]]}),
    Case(D.ContinuousBernoulli, {"logits": [-2.0, 0.001, 3.0]}),
    Case(D.RelaxedBernoulli, {"temperature": 0.7, "probs": UNIT}),
]  # fmt: skip

# One variable, integers.
DISCRETE = [
    Case(D.Bernoulli, {"probs": UNIT}, lambda probs: stats.bernoulli(probs)),
    Case(D.Bernoulli, {"logits": LOC}, lambda logits: stats.bernoulli(expit(logits))),
    Case(D.Binomial, {"probs": UNIT}, lambda probs: stats.binom(7, probs), {"total_count": 7}),
    Case(D.Binomial, {"total_count": [[3.0], [9.0]], "logits": LOC},
         lambda total_count, logits: stats.binom(total_count, expit(logits))),
    Case(D.Geometric, {"probs": UNIT}, lambda probs: stats.geom(probs, loc=-1)),
    Case(D.Geometric, {"logits": LOC}, lambda logits: stats.geom(expit(logits), loc=-1)),
    Case(D.NegativeBinomial, {"total_count": SHAPE, "probs": UNIT},
         lambda total_count, probs: stats.nbinom(total_count, 1 - probs)),
    Case(D.NegativeBinomial, {"total_count": SHAPE, "logits": LOC},
         lambda total_count, logits: stats.nbinom(total_count, expit(-np.asarray(logits)))),
    Case(D.Poisson, {"rate": [[0.1, 1.0, 2.5], [40.0, 0.75, 3.3]]},
         lambda rate: stats.poisson(rate)),
]  # fmt: skip

P4 = [[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]]
COVARIANCE = [[[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.8]],
              [[1.0, 0.0, 0.4], [0.0, 3.0, 0.2], [0.4, 0.2, 0.5]]]  # fmt: skip
L3 = [[0.5, -1.0, 2.0], [0.0, 0.25, -0.5]]

# Vectors and matrices, and categories.
OTHERS = [
    Case(D.Categorical, {"probs": P4}),
    Case(D.Categorical, {"logits": P4}),
    Case(D.Dirichlet, {"concentration": [[0.4, 1.0, 2.5], [7.0, 0.9, 30.0]]}),
    Case(D.LKJCholesky, {"concentration": [0.7, 2.0]}, None, {"dim": 3}),
    Case(D.LogisticNormal, {"loc": L3, "scale": [[0.5, 1.0, 0.2], [1.0, 2.0, 1.0]]}),
    Case(D.LowRankMultivariateNormal,
         {"loc": L3, "cov_factor": [[1.0, 0.5], [0.0, -1.0], [2.0, 0.1]],
          "cov_diag": [[0.5, 1.0, 0.2], [1.0, 2.0, 1.0]]}),
    Case(D.Multinomial, {"probs": P4}, None, {"total_count": 5}),
    Case(D.Multinomial, {"logits": P4}, None, {"total_count": 3}),
    Case(D.MultivariateNormal, {"loc": L3, "covariance_matrix": COVARIANCE}),
    Case(D.MultivariateNormal, {"loc": L3, "precision_matrix": COVARIANCE[0]}),
    Case(D.MultivariateNormal,
         {"loc": L3[0], "scale_tril": np.linalg.cholesky(np.array(COVARIANCE)).tolist()}),
    Case(D.OneHotCategorical, {"probs": P4}),
    Case(D.OneHotCategoricalStraightThrough, {"logits": P4}),
    Case(D.RelaxedOneHotCategorical, {"temperature": 0.7, "logits": P4}),
    Case(D.Wishart, {"df": [4.5, 7.5], "covariance_matrix": COVARIANCE}),
    Case(D.Wishart, {"df": 5.5, "scale_tril": np.linalg.cholesky(COVARIANCE[0]).tolist()}),
]  # fmt: skip

ALL = CONTINUOUS + DISCRETE + OTHERS


def near(got: Any, expected: Any, rtol: float = 1e-9, atol: float = 1e-9) -> None:
    expected = expected.detach() if isinstance(expected, clew.Tensor) else expected
    got = got.detach().numpy() if isinstance(got, clew.Tensor) else np.asarray(got)
    np.testing.assert_allclose(got, np.asarray(expected), rtol=rtol, atol=atol)
