"""From constraints to transforms whose outputs satisfy them: ``biject_to`` and ``transform_to``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Maps constraints to transforms from unconstrained numbers.

    Calling it with a constraint gives a Transform whose domain is real and whose codomain is the
    constraint; ``register`` teaches it further constraints. ``biject_to`` gives bijective
    transforms alone, ``transform_to`` also others, as softmax onto the simplex.

    Example:
        >>> d = clew.distributions
        >>> d.transform_to(d.constraints.positive)(clew.tensor(0.0))
        tensor(1.)
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], transforms.Transform]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Registers the function that makes the transform of a constraint (or of its class).

        Args:
            constraint: a Constraint, or a subclass of it.
            factory: takes a constraint and returns a transform; without it this is a decorator.

        Returns:
            The factory.

        Raises:
            TypeError: if ``constraint`` is something else.
        """
        if factory is None:
            return lambda made: self.register(constraint, made)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(
                f"Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint!r}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> transforms.Transform:
        """The transform onto ``constraint``."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints; register() teaches how"
            )
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Any], Any]:
    """Registers one factory with both registries for several constraints."""

    def decorate(factory: Any) -> Any:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return decorate


@_both(constraints.real)
def _real(constraint: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.positive, constraints.nonnegative)
def _above(constraint: Any) -> Any:
    exp = transforms.ExpTransform()
    if isinstance(constraint.lower_bound, (int, float)) and constraint.lower_bound == 0:
        return exp
    return transforms.ComposeTransform([exp, transforms.AffineTransform(constraint.lower_bound, 1)])


@_both(constraints.less_than)
def _below(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


@_both(constraints.corr_cholesky)
def _corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.simplex)
def _simplex_bijection(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _simplex(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _lower_cholesky(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


def _register_compound(registry: ConstraintRegistry) -> None:
    """Constraints made of others: their parts are looked up in the same registry."""

    @registry.register(constraints.independent)
    def _independent(constraint: Any) -> Any:
        base, dims = registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims
        return transforms.IndependentTransform(base, dims)

    @registry.register(constraints.cat)
    def _cat(constraint: Any) -> Any:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def _stack(constraint: Any) -> Any:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_register_compound(biject_to)
_register_compound(transform_to)
