"""Constraints: which values a parameter or a sample may take, as testable objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import clew
from clew import Tensor
from clew.distributions.utils import all_true

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region of values; ``check`` tells which events lie in it.

    Attributes:
        is_discrete: whether the region is a set of separate points.
        event_dim: how many of the last dims make one event.

    Example:
        >>> clew.distributions.constraints.positive.check(clew.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """For each event, whether it satisfies the constraint.

        Args:
            value: a tensor, whose last ``event_dim`` dims are an event.

        Returns:
            A tensor of bools, without those dims.
        """
        raise NotImplementedError(f"{type(self).__name__}.check is not written")

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


class _Dependent(Constraint):
    """A constraint that depends on other variables, so cannot be checked by itself.

    Args:
        is_discrete: whether the region is a set of separate points, if that is known.
        event_dim: how many of the last dims make one event, if that is known.

    Example:
        >>> clew.distributions.constraints.dependent(event_dim=1).event_dim
        1
    """

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> bool:
        if self._is_discrete is NotImplemented:
            raise NotImplementedError("is_discrete is not known before the instance exists")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        if self._event_dim is NotImplemented:
            raise NotImplementedError("event_dim is not known before the instance exists")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        """The same with is_discrete or event_dim stated."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other variables and cannot be checked.

    Args:
        constraint: any constraint.

    Returns:
        True or False.

    Example:
        >>> clew.distributions.constraints.is_dependent(clew.distributions.constraints.real)
        False
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that gives an instance's constraint; on the class it is a dependent constraint.

    Args:
        fn: the function of the instance that gives its constraint.
        is_discrete: as in dependent.
        event_dim: as in dependent.

    Example:
        >>> c = clew.distributions.constraints
        >>> class Below:
        ...     limit = 2.0
        ...     @c.dependent_property(is_discrete=False, event_dim=0)
        ...     def support(self):
        ...         return c.less_than(self.limit)
        >>> Below().support, c.is_dependent(Below.support)
        (LessThan(upper_bound=2.0), True)
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        """Decorates the function that computes the constraint."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """Counts further dims on the right as part of the event: all of them must satisfy it.

    Args:
        base_constraint: the constraint of the smaller events.
        reinterpreted_batch_ndims: how many further dims belong to the event.

    Example:
        >>> c = clew.distributions.constraints
        >>> c.independent(c.positive, 1).check(clew.tensor([[1.0, 2.0], [1.0, -2.0]]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        if not isinstance(base_constraint, Constraint) or reinterpreted_batch_ndims < 0:
            raise ValueError(
                "independent: needs a Constraint and a count of dims that is not negative; got "
                f"{base_constraint!r} and {reinterpreted_batch_ndims}"
            )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        fine = self.base_constraint.check(value)
        if fine.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        kept = fine.shape[: fine.ndim - self.reinterpreted_batch_ndims]
        return fine.reshape(tuple(kept) + (-1,)).all(-1) if fine.numel() else fine.new_ones(kept)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What a mixture's values must satisfy: each component's own constraint.

    Args:
        base_constraint: the components' constraint.

    Example:
        >>> c = clew.distributions.constraints
        >>> bool(c.MixtureSameFamilyConstraint(c.real).check(clew.ones(3)).all())
        True
    """

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise ValueError(
                f"MixtureSameFamilyConstraint: needs a Constraint; got {base_constraint!r}"
            )
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        # The components lie along a new dim just before the event.
        inner = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if inner.ndim < value.ndim + 1 - self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return inner.all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """Shared text of the constraints with bounds."""

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__.removeprefix('_')}({bounds})"


class _IntegerInterval(_Bounded):
    """Whole numbers from lower_bound to upper_bound, both included.

    Args:
        lower_bound: the least value, a number or a tensor.
        upper_bound: the greatest value, a number or a tensor.

    Example:
        >>> c = clew.distributions.constraints
        >>> c.integer_interval(0, 2).check(clew.tensor([2.0, 0.5, 3.0]))
        tensor([ True, False, False])
    """

    is_discrete = True

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Bounded):
    """Whole numbers from lower_bound on.

    Args:
        lower_bound: the least value, a number or a tensor.

    Example:
        >>> clew.distributions.constraints.positive_integer.check(clew.tensor([0, 1, 2]))
        tensor([False,  True,  True])
    """

    is_discrete = True

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # everything but NaN


class _GreaterThan(_Bounded):
    """Numbers above lower_bound.

    Args:
        lower_bound: the bound, a number or a tensor.

    Example:
        >>> clew.distributions.constraints.greater_than(1.0).check(clew.tensor([1.0, 2.0]))
        tensor([False,  True])
    """

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Bounded):
    """Numbers that are lower_bound or above it.

    Args:
        lower_bound: the bound, a number or a tensor.

    Example:
        >>> clew.distributions.constraints.greater_than_eq(1.0).check(clew.tensor([1.0, 0.0]))
        tensor([ True, False])
    """

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Bounded):
    """Numbers below upper_bound.

    Args:
        upper_bound: the bound, a number or a tensor.

    Example:
        >>> clew.distributions.constraints.less_than(1.0).check(clew.tensor([1.0, 0.0]))
        tensor([False,  True])
    """

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Bounded):
    """Numbers from lower_bound to upper_bound, both included.

    Args:
        lower_bound: the least value, a number or a tensor.
        upper_bound: the greatest value, a number or a tensor.

    Example:
        >>> clew.distributions.constraints.interval(0.0, 1.0).check(clew.tensor([1.0, 1.5]))
        tensor([ True, False])
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    """Numbers from lower_bound, which is included, to upper_bound, which is not.

    Args:
        lower_bound: the least value, a number or a tensor.
        upper_bound: what all values are below, a number or a tensor.

    Example:
        >>> c = clew.distributions.constraints
        >>> c.half_open_interval(0.0, 1.0).check(clew.tensor([0.0, 1.0]))
        tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of counts that are not negative and sum to upper_bound at most.

    Args:
        upper_bound: the greatest sum, a number or a tensor.

    Example:
        >>> clew.distributions.constraints.multinomial(3).check(clew.tensor([[1, 2], [2, 2]]))
        tensor([ True, False])
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


def _all_of_matrix(fine: Tensor) -> Tensor:
    return fine.all(-1).all(-1)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _all_of_matrix(value.tril() == value)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Tensor) -> Tensor:
        # Rounding of a row's norm grows with its length.
        tolerance = clew.finfo(value.dtype).eps * value.shape[-1] * 10
        norms = value.detach().square().sum(-1).sqrt()
        return super().check(value) & ((norms - 1).abs() < tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return clew.full(
            value.shape[:-2],
            value.shape[-2] == value.shape[-1],
            dtype=clew.bool,
            device=value.device,
        )


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return square
        return _all_of_matrix(clew.isclose(value, value.mT, atol=1e-6))


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not all_true(symmetric):
            return symmetric
        roots = clew.linalg.eigvalsh(value)
        # A zero comes out as far below as rounding takes it.
        rounding = roots.abs().sum(-1, keepdim=True) * clew.finfo(roots.dtype).eps
        return (roots >= -value.shape[-1] * rounding).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not all_true(symmetric):
            return symmetric
        return clew.linalg.cholesky_ex(value).info == 0


def _check_sequence(cseq: Sequence[Constraint], name: str) -> list[Constraint]:
    found = list(cseq)
    if not all(isinstance(c, Constraint) for c in found):
        raise ValueError(f"{name}: needs a sequence of Constraints; got {cseq!r}")
    return found


class _Cat(Constraint):
    """Constraints of consecutive pieces along one dim.

    Args:
        cseq: the constraints.
        dim: the dim that is cut.
        lengths: how long each piece is; 1 each if not given.

    Example:
        >>> c = clew.distributions.constraints
        >>> c.cat([c.positive, c.real], lengths=[1, 2]).check(clew.tensor([-1.0, -1.0, 0.0]))
        tensor([False,  True,  True])
    """

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        self.cseq = _check_sequence(cseq, "cat")
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ValueError(
                f"cat: needs as many lengths as constraints; got {len(self.lengths)} and "
                f"{len(self.cseq)}"
            )
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        _check_dim("cat", self.dim, value)
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return clew.cat(checks, self.dim)


class _Stack(Constraint):
    """Constraints of the slices along one dim.

    Args:
        cseq: the constraints, one for each slice.
        dim: the dim whose slices they check.

    Example:
        >>> c = clew.distributions.constraints
        >>> c.stack([c.positive, c.real]).check(clew.tensor([-1.0, -1.0]))
        tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq = _check_sequence(cseq, "stack")
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        dim = max(c.event_dim for c in self.cseq)
        # The stacked dim belongs to the event where it lies among the slices' event dims.
        return dim + 1 if -1 - dim <= self.dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        _check_dim("stack", self.dim, value)
        if value.shape[self.dim] != len(self.cseq):
            raise ValueError(
                f"stack: needs {len(self.cseq)} slices along dim {self.dim}; got shape "
                f"{tuple(value.shape)}"
            )
        checks = [c.check(value.select(self.dim, i)) for i, c in enumerate(self.cseq)]
        return clew.stack(checks, self.dim)


def _check_dim(name: str, dim: int, value: Tensor) -> None:
    if not -value.ndim <= dim < value.ndim:
        raise ValueError(f"{name}: dim {dim} is not one of a value of shape {tuple(value.shape)}")


dependent: _Dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean: Constraint = _Boolean()
one_hot: Constraint = _OneHot()
nonnegative_integer: Constraint = _IntegerGreaterThan(0)
positive_integer: Constraint = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real: Constraint = _Real()
real_vector: Constraint = independent(real, 1)
positive: Constraint = _GreaterThan(0.0)
nonnegative: Constraint = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval: Constraint = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex: Constraint = _Simplex()
lower_triangular: Constraint = _LowerTriangular()
lower_cholesky: Constraint = _LowerCholesky()
corr_cholesky: Constraint = _CorrCholesky()
square: Constraint = _Square()
symmetric: Constraint = _Symmetric()
positive_semidefinite: Constraint = _PositiveSemidefinite()
positive_definite: Constraint = _PositiveDefinite()
cat = _Cat
stack = _Stack
