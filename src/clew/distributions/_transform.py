"""The base of all transforms, and those made of other transforms by composing or reshaping."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import clew
from clew import Size, Tensor
from clew.distributions import constraints
from clew.distributions.utils import lazy_property, sum_rightmost


class Transform:
    """A differentiable, often invertible function with a known volume change.

    Subclasses write ``_call``, and if they can ``_inverse`` and ``log_abs_det_jacobian``.

    Args:
        cache_size: 1 keeps the latest pair of input and output, so that the inverse of an output
            costs nothing and is exact; 0 keeps none.

    Attributes:
        domain: which inputs are valid.
        codomain: which outputs come out.
        bijective: whether each output has one input.
        sign: 1 or -1 of a monotone function of one variable.

    Example:
        >>> t = clew.distributions.ExpTransform()
        >>> t.inv(t(clew.tensor(0.5)))
        tensor(0.5000)
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1; got {cache_size!r}")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()  # a class may be a transform and a module

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None, "_cached_x_y": (None, None)}

    @property
    def event_dim(self) -> int:
        """How many dims an event has, where inputs and outputs agree about it."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse: ``t.inv(t(x))`` is x, and ``t.inv.inv`` is t."""
        inv = self._inv() if self._inv is not None else None
        if inv is None:
            inv = _InverseTransform(self)
            self._inv = weakref.ref(inv)
        return inv

    @property
    def sign(self) -> Any:
        """1 where the function rises, -1 where it falls; for functions of one variable."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with another cache size.

        Args:
            cache_size: 1 to keep the last input and output, 0 to keep none.
        """
        if self._cache_size == cache_size:
            return self
        return self._recached(cache_size)

    def _recached(self, cache_size: int) -> Transform:
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self.__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Any) -> Any:
        """The output of ``x``."""
        if self._cache_size == 0:
            return self._call(x)
        old_x, old_y = self._cached_x_y
        if x is old_x:
            return old_y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        old_x, old_y = self._cached_x_y
        if y is old_y:
            return old_x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._call is not written")

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log |det dy/dx| of each event.

        Args:
            x: the input.
            y: its output.

        Returns:
            A tensor of the input's shape without the dims of an event.
        """
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the output of an input of shape ``shape``.

        Args:
            shape: the input's.
        """
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the input of an output of shape ``shape``.

        Args:
            shape: the output's.
        """
        return shape

    def __repr__(self) -> str:
        return type(self).__name__ + "()"


class _InverseTransform(Transform):
    """A transform run backwards; the caches are the original's."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform  # the original lives as long as its inverse

    @property
    def domain(self) -> Any:
        """The constraint that inputs satisfy."""
        return self._inv.codomain

    @property
    def codomain(self) -> Any:
        """The constraint that outputs satisfy."""
        return self._inv.domain

    @property
    def bijective(self) -> Any:
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached_x_y": (None, None)}

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and bool(self._inv == other._inv)

    __hash__ = None

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


def _widen(constraint: Any, event_dim: int) -> Any:
    """The constraint with at least ``event_dim`` dims an event."""
    missing = event_dim - constraint.event_dim
    return constraints.independent(constraint, missing) if missing > 0 else constraint


class ComposeTransform(Transform):
    """Transforms run one after the other, the first in the list first.

    Args:
        parts: the transforms.
        cache_size: 1 gives every part a cache.

    Example:
        >>> d = clew.distributions
        >>> d.ComposeTransform([d.AffineTransform(0.0, 2.0), d.ExpTransform()])(clew.tensor(0.0))
        tensor(1.)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.parts = [p.with_cache(cache_size) for p in parts] if cache_size else list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None

    @property
    def domain(self) -> Any:
        """The constraint that inputs satisfy."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return _widen(self.parts[0].domain, event_dim)

    @property
    def codomain(self) -> Any:
        """The constraint that outputs satisfy."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return _widen(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self) -> bool:
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self) -> Any:
        return math.prod((p.sign for p in self.parts), start=1)

    @property
    def inv(self) -> Transform:
        inv = self._inv() if self._inv is not None else None
        if inv is None:
            inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv = weakref.ref(inv)
            inv._inv = weakref.ref(self)
        return inv

    def _recached(self, cache_size: int) -> Transform:
        return ComposeTransform([p.with_cache(cache_size) for p in self.parts], cache_size)

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return clew.zeros_like(x)
        steps = [x]
        for part in self.parts[:-1]:
            steps.append(part(steps[-1]))
        steps.append(y)
        event_dim, total = self.domain.event_dim, None
        for part, before, after in zip(self.parts, steps[:-1], steps[1:]):
            change = part.log_abs_det_jacobian(before, after)
            change = sum_rightmost(change, event_dim - part.domain.event_dim)
            total = change if total is None else total + change
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inside = ",\n    ".join(repr(p) for p in self.parts)
        return f"{type(self).__name__}(\n    {inside}\n)"


class IndependentTransform(Transform):
    """Counts further dims on the right as part of the event: their volume changes are summed.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: how many further dims belong to the event.
        cache_size: 0 or 1.

    Example:
        >>> d = clew.distributions
        >>> t = d.IndependentTransform(d.ExpTransform(), 1)
        >>> t.log_abs_det_jacobian(clew.ones(3), clew.ones(3).exp())
        tensor(3.)
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _recached(self, cache_size: int) -> Transform:
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @property
    def domain(self) -> Any:
        """The constraint that inputs satisfy."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        """The constraint that outputs satisfy."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        self._check(x, self.domain)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check(y, self.codomain)
        return self.base_transform.inv(y)

    def _check(self, x: Tensor, region: Any) -> None:
        if x.ndim < region.event_dim:
            raise ValueError(
                f"IndependentTransform: needs {region.event_dim} dims or more; got shape "
                f"{tuple(x.shape)}"
            )

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        change = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(change, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Gives the right-most dims another shape.

    Args:
        in_shape: the event's shape before.
        out_shape: the event's shape after, with as many elements.
        cache_size: 0 or 1.

    Example:
        >>> clew.distributions.transforms.ReshapeTransform((4,), (2, 2))(clew.zeros(3, 4)).shape
        clew.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"in_shape, out_shape have different numbers of elements; got "
                f"{tuple(self.in_shape)} and {tuple(self.out_shape)}"
            )
        super().__init__(cache_size=cache_size)

    @property
    def domain(self) -> Any:
        """The constraint that inputs satisfy."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        """The constraint that outputs satisfy."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _recached(self, cache_size: int) -> Transform:
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.ndim - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.ndim - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return self._swap(Size(shape), self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._swap(Size(shape), self.out_shape, self.in_shape)

    @staticmethod
    def _swap(shape: Size, old: Size, new: Size) -> Size:
        cut = len(shape) - len(old)
        if cut < 0 or shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {tuple(shape)} to end in {tuple(old)}")
        return Size(shape[:cut] + new)
