"""What comes out of a transform of a random variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import clew
from clew import Size, Tensor
from clew.distributions import constraints
from clew.distributions.distribution import Distribution
from clew.distributions.independent import Independent
from clew.distributions.transforms import ComposeTransform, Transform
from clew.distributions.utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of y = f(x) for x drawn from a base distribution.

    log p(y) = log p(x) - log |det dy/dx|, with x = f⁻¹(y).

    A draw has the shape of f of a draw of the base. As many of its last dims are the event_shape as
    the base's event or a transform covers, such as 1 of `StickBreakingTransform`; the others are
    the batch_shape.

    Args:
        base_distribution: where x comes from.
        transforms: f, or a list of transforms of which the first runs first.
        validate_args: whether parameters and values are checked.

    Example:
        >>> d = clew.distributions
        >>> log_normal = d.TransformedDistribution(d.Normal(0.0, 1.0), [d.ExpTransform()])
        >>> log_normal.log_prob(clew.tensor(1.0))
        tensor(-0.9189)
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        found = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(found, (list, tuple)) or not all(isinstance(t, Transform) for t in found):
            raise ValueError(
                f"transforms must be a Transform or list, but was {transforms!r}; each element "
                "must be a Transform"
            )
        self.transforms = list(found)
        whole = ComposeTransform(self.transforms)
        domain_dim = whole.domain.event_dim
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(shape) < domain_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {domain_dim}, but got "
                f"{tuple(shape)}."
            )
        forward_shape = Size(whole.forward_shape(shape))
        # Parameters of the transforms may broadcast the base.
        wanted = Size(whole.inverse_shape(forward_shape))
        if shape != wanted:
            cut = len(wanted) - len(base_distribution.event_shape)
            base_distribution = base_distribution.expand(wanted[:cut])
        missing = domain_dim - len(base_distribution.event_shape)
        if missing > 0:
            base_distribution = Independent(base_distribution, missing)
        self.base_dist = base_distribution
        event_dim = whole.codomain.event_dim + max(
            len(base_distribution.event_shape) - domain_dim, 0
        )
        cut = len(forward_shape) - event_dim
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = Size(batch_shape)
        whole = ComposeTransform(self.transforms)
        shape = Size(whole.inverse_shape(batch_shape + self.event_shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self.event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with clew.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event_dim, total, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(
                transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim
            )
            y = x
        base = self.base_dist
        return total + sum_rightmost(base.log_prob(y), event_dim - len(base.event_shape))

    def _mirror(self, value: Tensor) -> Tensor:
        """Turns probabilities around where the transforms fall."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._mirror(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._mirror(value)))
