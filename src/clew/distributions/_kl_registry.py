"""Where the formulas of divergences are kept, and how one is found."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from clew import Tensor
from clew._base.provenance import user_level
from clew.distributions.distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

Rule = TypeVar("Rule", bound=Callable[..., Tensor])

_KL_REGISTRY: dict[tuple[type, type], Callable[..., Tensor]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable[..., Tensor] | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """Decorates the function of (p, q) that computes KL(p ‖ q) for two families.

    Of several that fit a pair of distributions, the one of the nearest base classes is taken.

    Args:
        type_p: a Distribution class.
        type_q: a Distribution class.

    Returns:
        a decorator, which gives the function back.

    Example:
        >>> class Mine(clew.distributions.Normal): ...
        >>> @clew.distributions.register_kl(Mine, Mine)
        ... def kl_mine(p, q):
        ...     return clew.tensor(7.0)
        >>> clew.distributions.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0))
        tensor(7.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a class but got {kind!r}")

    def decorate(rule: Rule) -> Rule:
        _KL_REGISTRY[type_p, type_q] = rule
        _KL_MEMOIZE.clear()
        return rule

    return decorate


def _dispatch(type_p: type, type_q: type) -> Callable[..., Tensor] | None:
    fitting = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not fitting:
        return None
    far_p, far_q = type_p.__mro__.index, type_q.__mro__.index
    left = min(fitting, key=lambda pair: (far_p(pair[0]), far_q(pair[1])))
    right = min(fitting, key=lambda pair: (far_q(pair[1]), far_p(pair[0])))
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        a, b = (" and ".join(kind.__name__ for kind in pair) for pair in (left, right))
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}): rules for {a} and "
            f"for {b} fit; register_kl the pair itself. The first is taken.",
            RuntimeWarning,
            stacklevel=user_level(),
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p ‖ q) = E_p[log p(x) - log q(x)], by a closed formula.

    Args:
        p: a distribution.
        q: another; not every pair of families has a formula.

    Returns:
        The divergences, of the batch shape of both.

    Example:
        >>> d = clew.distributions
        >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0))
        tensor(0.5000)
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch(*pair)
    rule = _KL_MEMOIZE[pair]
    if rule is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return rule(p, q)


# Where they are to be found.
register_kl.__module__ = kl_divergence.__module__ = "clew.distributions.kl"
