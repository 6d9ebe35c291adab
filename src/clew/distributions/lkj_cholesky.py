"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Size, Tensor
from clew.distributions import constraints
from clew.distributions.beta import Beta
from clew.distributions.distribution import Distribution
from clew.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L of correlation matrices M = L Lᵀ whose density is ∝ det(M) ** (η - 1).

    Of L itself p(L) ∝ ∏ Lₖₖ ** (dim - k + 2 (η - 1)), k = 2 ... dim.

    batch_shape is the shape of concentration; event_shape is (dim, dim).

    Source: Lewandowski, Kurowicka and Joe, Generating random correlation matrices based on vines
    and extended onion method (2009).

    Args:
        dim: the size of the matrices, 2 or more.
        concentration: η, positive; 1 is uniform, more prefers the identity.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.LKJCholesky(3, 0.5).sample().shape
        clew.Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, Size((dim, dim)), validate_args=validate_args)
        self._beta = self._make_beta()

    def _make_beta(self) -> Beta:
        """Of row i of L, the squared length of what lies below the diagonal."""
        eta = self.concentration + 0.5 * (self.dim - 2)
        below = clew.arange(self.dim - 1, dtype=eta.dtype, device=eta.device)
        below = clew.cat([below[:1], below])  # the first row has none; its draw is not used
        return Beta(0.5 * below + 0.5, eta.unsqueeze(-1) - 0.5 * below, validate_args=False)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(LKJCholesky, batch_shape, _instance)
        new.dim = self.dim
        new._beta = self._beta.expand(Size(batch_shape) + (self.dim,))
        return new

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws row by row: a direction on the sphere, and how much of the unit length it takes."""
        with clew.no_grad():
            share = self._beta.sample(sample_shape).unsqueeze(-1)
            options: Any = {"dtype": share.dtype, "device": share.device}
            normal = clew.randn(self._extended_shape(sample_shape), **options).tril(-1)
            length = normal.square().sum(-1, keepdim=True).sqrt()
            direction = clew.where(length > 0, normal / length, 0.0)
            below = share.sqrt() * direction
            tiny = clew.finfo(share.dtype).tiny
            rest = (1 - below.square().sum(-1)).clamp(min=tiny).sqrt()
            return below + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, eta = self.dim, self.concentration
        order = clew.arange(2, n + 1, dtype=eta.dtype, device=eta.device)
        powers = 2 * (eta - 1).unsqueeze(-1) + n - order
        density = (powers * value.diagonal(0, -2, -1)[..., 1:].log()).sum(-1)
        alpha = eta + 0.5 * (n - 1)
        constant = 0.5 * (n - 1) * math.log(math.pi)
        return density - (constant + (alpha - 0.5).mvlgamma(n - 1) - (n - 1) * alpha.lgamma())
