"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Size, Tensor
from clew.distributions import constraints
from clew.distributions.chi2 import Chi2
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.multivariate_normal import factor_of, inverse_of, one_matrix
from clew.distributions.utils import lazy_property

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """The distribution of Σᵢ xᵢ xᵢᵀ for ``df`` normal vectors with mean 0 and covariance V.

    p(X) ∝ det(X) ** ((df - n - 1) / 2) exp(-tr(V⁻¹ X) / 2), for positive definite X (n, n).

    With df B and a matrix (*B, n, n), batch_shape is B and event_shape is (n, n).

    Source: Wishart, The generalised product moment distribution in samples from a normal
    multivariate population (1928).

    Args:
        df: the degrees of freedom, more than the dimension minus 1; may be fractional.
        covariance_matrix: V, positive definite.
        precision_matrix: V⁻¹, positive definite.
        scale_tril: the lower triangular L of V = L Lᵀ.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.Wishart(3.0, clew.eye(2)).mean
        tensor([[3., 0.],
                [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = one_matrix(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        df = clew.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = clew.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch)
        setattr(self, name, matrix.expand(batch + (-1, -1)))
        n = matrix.shape[-1]
        if (self.df <= n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)
        self._chi2 = self._make_chi2()

    def _make_chi2(self) -> Chi2:
        steps = clew.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        return Chi2(self.df.unsqueeze(-1) - steps, validate_args=False)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        new = self._expanded(Wishart, batch_shape, new)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        new._chi2 = new._make_chi2()
        return new

    def _whole(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular L of V = L Lᵀ."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """V."""
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """V⁻¹."""
        return self._whole(inverse_of(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.df.reshape(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """There is none, NaN, for df ≤ dimension + 1."""
        factor = self.df - self._event_shape[-1] - 1
        factor = clew.where(factor > 0, factor, math.nan)
        return factor.reshape(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(0, -2, -1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.reshape(self._batch_shape + (1, 1)) * (v.square() + outer)

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Draws by Bartlett's decomposition (L A)(L A)ᵀ.

        A has roots of chi-squared numbers on its diagonal and normal numbers below. The result is
        positive definite up to rounding, so ``max_try_correction`` must be None or 0.
        """
        if max_try_correction:
            raise NotImplementedError("Wishart.rsample: singular draws are not drawn again")
        shape = Size(sample_shape) + self._batch_shape + self._event_shape
        noise = clew.randn(shape, dtype=self.df.dtype, device=self.df.device).tril(-1)
        chi = self._chi2.rsample(sample_shape).clamp(min=clew.finfo(self.df.dtype).tiny).sqrt()
        root = self._unbroadcasted_scale_tril @ (noise + chi.diag_embed())
        return root @ root.mT

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, half = self._event_shape[-1], self.df / 2
        log_det = 2 * clew.linalg.cholesky(value).diagonal(0, -2, -1).log().sum(-1)
        trace = (inverse_of(self._unbroadcasted_scale_tril) * value).sum((-2, -1))
        normalizer = half * (n * math.log(2) + 2 * self._half_log_det()) + half.mvlgamma(n)
        return (half - (n + 1) / 2) * log_det - 0.5 * trace - normalizer

    def entropy(self) -> Tensor:
        n, half = self._event_shape[-1], self.df / 2
        log_v = n * math.log(2) + 2 * self._half_log_det()
        steps = clew.arange(n, dtype=half.dtype, device=half.device) / 2
        mean_log_det = (half.unsqueeze(-1) - steps).digamma().sum(-1) + log_v
        normalizer = half * log_v + half.mvlgamma(n)
        return normalizer - (half - (n + 1) / 2) * mean_log_det + half * n

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        log_det = 2 * clew.linalg.cholesky(-2 * x).diagonal(0, -2, -1).log().sum(-1)
        return half * (n * math.log(2) - log_det) + half.mvlgamma(n)
