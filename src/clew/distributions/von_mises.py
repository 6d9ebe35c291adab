"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew import Tensor
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.utils import all_true, broadcast_all

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles around a direction: p(x) = exp(κ cos(x - loc)) / (2π I₀(κ)).

    x is in [-π, π).

    batch_shape is the shape to which loc and concentration broadcast; event_shape is ().

    Source: Mardia and Jupp, Directional Statistics (2000), section 3.5.4; draws after Best and
    Fisher, Efficient simulation of the von Mises distribution (1979).

    Args:
        loc: the mean direction, in radians.
        concentration: κ, positive.
        validate_args: whether parameters and values are checked.

    Example:
        >>> clew.distributions.VonMises(clew.tensor(1.0), clew.tensor(2.0)).mean
        tensor(1.)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(
        self,
        loc: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(VonMises, batch_shape, _instance)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        # i0e takes the factor exp(κ) out of I₀.
        log_bessel = clew.special.i0e(k).log() + k
        return k * (value - self.loc).cos() - math.log(2 * math.pi) - log_bessel

    @property
    def mean(self) -> Tensor:
        """The mean direction."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I₁(κ) / I₀(κ)."""
        return 1 - clew.special.i1e(self.concentration) / clew.special.i0e(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws angles in [-π, π) by rejection from a wrapped Cauchy distribution."""
        shape = self._extended_shape(sample_shape)
        with clew.no_grad():
            k = self.concentration.to(clew.float64)
            tau = 1 + (1 + 4 * k.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = clew.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))
            k, r = k.expand(shape), r.expand(shape)
            angle = clew.zeros(shape, dtype=clew.float64, device=k.device)
            done = clew.zeros(shape, dtype=clew.bool, device=k.device)
            while not all_true(done):
                u1, u2, u3 = clew.rand((3,) + shape, dtype=clew.float64, device=k.device).unbind()
                z = (math.pi * u1).cos()
                f = ((1 + r * z) / (r + z)).clamp(min=-1, max=1)
                c = k * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                proposed = (u3 - 0.5).sign() * f.acos()
                # Of several that are accepted the last one counts, as in PyTorch.
                angle = clew.where(accept, proposed, angle)
                done = done | accept
            angle = (angle + math.pi + self.loc) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)
