"""Transforms of each element by itself."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions._transform import Transform
from clew.distributions.utils import broadcast_all, lazy_property
from clew.nn.functional import softplus


class _Plain(Transform):
    """A transform without parameters: two of the same class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = None


class ExpTransform(_Plain):
    """y = exp(x).

    Args:
        cache_size: 0 or 1.

    Example:
        >>> clew.distributions.ExpTransform()(clew.tensor(0.0))
        tensor(1.)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, for positive x.

    Args:
        exponent: the power, not zero.
        cache_size: 0 or 1.

    Example:
        >>> clew.distributions.PowerTransform(clew.tensor(2.0))(clew.tensor(3.0))
        tensor(9.)
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def _recached(self, cache_size: int) -> Transform:
        return PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self) -> Tensor:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(
            self.exponent.eq(other.exponent).all().item()
        )

    __hash__ = None

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return clew.broadcast_shapes(shape, self.exponent.shape)

    def inverse_shape(self, shape: Any) -> Any:
        return clew.broadcast_shapes(shape, self.exponent.shape)


class SigmoidTransform(_Plain):
    """y = 1 / (1 + exp(-x)), kept inside (0, 1).

    Args:
        cache_size: 0 or 1.

    Example:
        >>> clew.distributions.SigmoidTransform()(clew.tensor(0.0))
        tensor(0.5000)
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        finfo = clew.finfo(x.dtype)
        return x.sigmoid().clamp(min=finfo.tiny, max=1 - finfo.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        finfo = clew.finfo(y.dtype)
        y = y.clamp(min=finfo.tiny, max=1 - finfo.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Plain):
    """y = log(1 + exp(x)).

    Args:
        cache_size: 0 or 1.

    Example:
        >>> clew.distributions.SoftplusTransform()(clew.tensor(0.0))
        tensor(0.6931)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(_Plain):
    """y = tanh(x), between -1 and 1.

    Args:
        cache_size: 0 or 1; 1 spares the inverse, which is inexact near ±1.

    Example:
        >>> clew.distributions.TanhTransform()(clew.tensor(0.0))
        tensor(0.)
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)²) without cancellation
        return 2 * (math.log(2) - x - softplus(-2 * x))


class AbsTransform(_Plain):
    """y = |x|; of the two inverses the one that is not negative is given.

    Args:
        cache_size: 0 or 1.

    Example:
        >>> clew.distributions.AbsTransform()(clew.tensor(-1.0))
        tensor(1.)
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x.

    Args:
        loc: the shift.
        scale: the factor, not zero.
        event_dim: how many dims an event has.
        cache_size: 0 or 1.

    Example:
        >>> clew.distributions.AffineTransform(1.0, 2.0)(clew.tensor(3.0))
        tensor(7.)
    """

    bijective = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        event_dim: int = 0,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:
        """The constraint that inputs satisfy."""
        if self._event_dim == 0:
            return constraints.real
        return constraints.independent(constraints.real, self._event_dim)

    @property
    def codomain(self) -> Any:
        """The constraint that outputs satisfy."""
        return self.domain

    def _recached(self, cache_size: int) -> Transform:
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(a is b or bool(clew.as_tensor(a == b).all().item()) for a, b in pairs)

    __hash__ = None

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            change = self.scale.abs().log()
        else:
            change = clew.full_like(x, math.log(abs(self.scale)), requires_grad=False)
        change = change.expand(clew.broadcast_shapes(x.shape, change.shape))
        return change.sum(tuple(range(-self._event_dim, 0))) if self._event_dim else change

    def forward_shape(self, shape: Any) -> Any:
        return clew.broadcast_shapes(
            shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ())
        )

    def inverse_shape(self, shape: Any) -> Any:
        return self.forward_shape(shape)


class CumulativeDistributionTransform(Transform):
    """y = cdf(x) of a distribution: its inverse turns uniform numbers into draws.

    Args:
        distribution: a continuous distribution of one variable with ``cdf`` and ``icdf``.
        cache_size: 0 or 1.

    Example:
        >>> d = clew.distributions
        >>> d.CumulativeDistributionTransform(d.Normal(0.0, 1.0))(clew.tensor(0.0))
        tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        """The constraint that inputs satisfy."""
        return self.distribution.support

    def _recached(self, cache_size: int) -> Transform:
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
