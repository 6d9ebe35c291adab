"""The multivariate normal distribution with a covariance of low rank plus a diagonal."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.multivariate_normal import mahalanobis
from clew.distributions.utils import lazy_property

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution with Σ = W Wᵀ + D, for a thin W and a diagonal D.

    Determinant and inverse need only the small matrix I + Wᵀ D⁻¹ W (Woodbury's identity).

    p(x) = exp(-(x - loc)ᵀ Σ⁻¹ (x - loc) / 2) / √det(2π Σ).

    With loc and cov_diag (*B, n) and cov_factor (*B, n, rank), batch_shape is B and event_shape is
    (n,).

    Source: Kotz, Balakrishnan and Johnson, Continuous Multivariate Distributions 1 (2000), chapter
    45.

    Args:
        loc: the mean, of n elements.
        cov_factor: W, n x rank.
        cov_diag: the diagonal of D, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> normal = clew.distributions.LowRankMultivariateNormal(
        ...     clew.zeros(2), clew.tensor([[1.0], [0.0]]), clew.ones(2)
        ... )
        >>> normal.covariance_matrix
        tensor([[2., 0.],
                [0., 1.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.ndim < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dims"
            )
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event[0]} x m; got "
                f"{tuple(cov_factor.shape)}"
            )
        if cov_diag.shape[-1:] != event:
            raise ValueError(
                f"cov_diag must be a batch of vectors with shape ({event[0]},); got "
                f"{tuple(cov_diag.shape)}"
            )
        try:
            batch = clew.broadcast_shapes(
                loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {tuple(loc.shape)}, cov_factor "
                f"{tuple(cov_factor.shape)}, cov_diag {tuple(cov_diag.shape)}"
            ) from error
        self.loc = loc.expand(batch + event)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch + event)
        super().__init__(batch, event, validate_args=validate_args)
        # Not expanded: less to compute.
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        weighted = (cov_factor / cov_diag.unsqueeze(-1)).mT
        small = weighted @ cov_factor
        unit = clew.eye(small.shape[-1], dtype=small.dtype, device=small.device)
        self._weighted = weighted  # Wᵀ D⁻¹
        self._capacitance_tril = clew.linalg.cholesky(small + unit)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(LowRankMultivariateNormal, batch_shape, _instance)
        for name in (
            "_unbroadcasted_cov_factor",
            "_unbroadcasted_cov_diag",
            "_weighted",
            "_capacitance_tril",
        ):
            setattr(new, name, getattr(self, name))
        return new

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    def _whole(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        n = self._event_shape[0]
        unit = clew.eye(n, dtype=scaled.dtype, device=scaled.device)
        return self._whole(root * clew.linalg.cholesky(scaled @ scaled.mT + unit))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """W Wᵀ + D."""
        return self._whole(
            self._unbroadcasted_cov_factor @ self._unbroadcasted_cov_factor.mT
            + self._unbroadcasted_cov_diag.diag_embed()
        )

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        solved = clew.linalg.solve_triangular(self._capacitance_tril, self._weighted, upper=False)
        return self._whole(
            self._unbroadcasted_cov_diag.reciprocal().diag_embed() - solved.mT @ solved
        )

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        options: Any = {"dtype": self.loc.dtype, "device": self.loc.device}
        common = clew.randn(shape[:-1] + self.cov_factor.shape[-1:], **options)
        single = clew.randn(shape, **options)
        along = (self._unbroadcasted_cov_factor @ common.unsqueeze(-1)).squeeze(-1)
        return self.loc + along + self._unbroadcasted_cov_diag.sqrt() * single

    def _distance(self, x: Tensor) -> Tensor:
        """xᵀ Σ⁻¹ x."""
        along = (self._weighted @ x.unsqueeze(-1)).squeeze(-1)
        whole = (x.square() / self._unbroadcasted_cov_diag).sum(-1)
        return whole - mahalanobis(self._capacitance_tril, along)

    def _trace_of_solved(self, matrix: Tensor) -> Tensor:
        """tr(Σ⁻¹ A Aᵀ)."""
        along = clew.linalg.solve_triangular(
            self._capacitance_tril, self._weighted @ matrix, upper=False
        )
        whole = (matrix.square() / self._unbroadcasted_cov_diag.unsqueeze(-1)).sum((-2, -1))
        return whole - along.square().sum((-2, -1))

    def _log_det(self) -> Tensor:
        half = self._capacitance_tril.diagonal(0, -2, -1).log().sum(-1)
        return 2 * half + self._unbroadcasted_cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + self._distance(value - self.loc))

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_det())).expand(self._batch_shape)
