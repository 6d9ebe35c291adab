"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.utils import lazy_property

__all__ = ["MultivariateNormal"]


def mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """xᵀ (L Lᵀ)⁻¹ x for the lower triangular factor L; both may have batch dims."""
    extra = max(0, x.ndim - 1 - (factor.ndim - 2))
    lead = x.shape[:extra]
    # Dims that the factors lack become columns of one right-hand side each.
    columns = x.reshape((-1,) + x.shape[extra:]).movedim(0, -1) if extra else x.unsqueeze(-1)
    squares = clew.linalg.solve_triangular(factor, columns, upper=False).square().sum(-2)
    return squares.movedim(-1, 0).reshape(lead + squares.shape[:-1]) if extra else squares[..., 0]


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of a precision matrix's inverse, without computing that inverse.

    With J the reversal of rows, J P J = U Uᵀ gives P = (J U J)(J U J)ᵀ with an upper triangular
    J U J, whose inverse transpose is the factor.
    """
    upper = clew.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1))
    n = precision.shape[-1]
    unit = clew.eye(n, dtype=precision.dtype, device=precision.device)
    return clew.linalg.solve_triangular(upper.mT, unit, upper=False)


class MultivariateNormal(Distribution):
    """The multivariate normal distribution, stated by one of three matrices.

    p(x) = exp(-(x - loc)ᵀ Σ⁻¹ (x - loc) / 2) / √det(2π Σ).

    With loc (*B, n) and a matrix (*B, n, n), batch_shape is B and event_shape is (n,).

    Source: Kotz, Balakrishnan and Johnson, Continuous Multivariate Distributions 1 (2000), chapter
    45.

    Args:
        loc: the mean; its last dim is the event.
        covariance_matrix: Σ, positive definite.
        precision_matrix: Σ⁻¹, positive definite.
        scale_tril: the lower triangular L of Σ = L Lᵀ; the cheapest of the three.
        validate_args: whether parameters and values are checked.

    Example:
        >>> normal = clew.distributions.MultivariateNormal(clew.zeros(2), clew.eye(2))
        >>> normal.log_prob(clew.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _unbroadcasted_scale_tril: Tensor

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = one_matrix(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        batch = clew.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(batch + (-1,))
        setattr(self, name, matrix.expand(batch + (-1, -1)))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(MultivariateNormal, batch_shape, _instance)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    def _whole(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular L of Σ = L Lᵀ."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """Σ."""
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Σ⁻¹."""
        return self._whole(inverse_of(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return (
            self._unbroadcasted_scale_tril.square()
            .sum(-1)
            .expand(self._batch_shape + self._event_shape)
        )

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = clew.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (constant + self._half_log_det()).expand(self._batch_shape)


def one_matrix(**given: Tensor | None) -> tuple[str, Tensor]:
    """The name and value of the one matrix that was given."""
    found = [(name, matrix) for name, matrix in given.items() if matrix is not None]
    if len(found) != 1:
        raise ValueError(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    name, matrix = found[0]
    if matrix.ndim < 2:
        raise ValueError(
            f"{name} must be at least two-dimensional, with optional leading batch dimensions; got "
            f"shape {tuple(matrix.shape)}"
        )
    return name, matrix


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of the covariance that a matrix states."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return clew.linalg.cholesky(matrix)
    return precision_to_scale_tril(matrix)


def inverse_of(factor: Tensor) -> Tensor:
    """(L Lᵀ)⁻¹."""
    unit = clew.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    solved = clew.linalg.solve_triangular(factor, unit, upper=False)
    return solved.mT @ solved


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The lower triangle L with L Lᵀ = P⁻¹, by the inner name that PyTorch's libraries import."""
    # P turned round both ways has a Cholesky factor whose turned transpose is the inverse of L.
    turned = clew.linalg.cholesky(P.flip(-2, -1))
    upper = turned.flip(-2, -1).transpose(-2, -1)
    one = clew.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return clew.linalg.solve_triangular(upper, one, upper=False)


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Products of matrices and vectors, both of which may have batch dims."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)
