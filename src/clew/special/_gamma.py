"""The incomplete gamma functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import _C
from clew._base.out import check_castable
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.primitive import Context
from clew.special._elementwise import as_they_are, elementwise, evaluate, only_in

__all__ = ["gammainc", "gammaincc", "igamma", "igamma_", "igammac", "igammac_"]


def _density(c: Context, grad: Tensor, name: str) -> Tensor:
    """grad x^(a-1) exp(-x) / Gamma(a), the derivative in x of the lower one."""
    only_in(c, 1, f"{name}: input")
    a, x = c.inputs
    return grad * ((a - 1).xlogy(x) - x - a.lgamma()).exp()


def _lower_gradient(c: Context, grad: Tensor) -> tuple[None, Tensor]:
    return None, _density(c, grad, "igamma")


def _upper_gradient(c: Context, grad: Tensor) -> tuple[None, Tensor]:
    return None, -_density(c, grad, "igammac")


_igamma = elementwise(
    "Igamma", None, _lower_gradient, native=lambda a, x: (_C.ops._gammainc(a, x),)
)
_igammac = elementwise(
    "Igammac", None, _upper_gradient, native=lambda a, x: (_C.ops._gammaincc(a, x),)
)


def _short(core: Callable[[Tensor, Tensor], Tensor], a: Any, x: Any) -> Tensor | None:
    """What the core's operation makes of arguments that it takes as they are."""
    ready = as_they_are(a, x) if isinstance(a, Tensor) and isinstance(x, Tensor) else None
    return None if ready is None else core(*ready)


@asks_classes
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized lower incomplete gamma function:
    P(a, x) = 1 / Gamma(a) times the integral of t^(a-1) exp(-t) from 0 to x.

    It has a derivative in other, and none in input.

    Args:
        input: a, not negative.
        other: x, not negative.
        out: the tensor to write into.

    Returns:
        A tensor of the broadcast shape; nan where an argument is negative.

    Example:
        >>> clew.igamma(clew.tensor([1.0, 2.0]), clew.tensor([1.0, 1.0]))
        tensor([0.6321, 0.2642])
    """
    made = _short(_C.ops._gammainc, input, other) if out is None else None
    if made is not None:
        return made
    return evaluate("gammainc", _igamma, input, other, out=out, numbers=False, records=False)


@asks_classes
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized upper incomplete gamma function, 1 - igamma(input, other).

    It has a derivative in other, and none in input.

    Args:
        input: a, not negative.
        other: x, not negative.
        out: the tensor to write into.

    Returns:
        A tensor of the broadcast shape; nan where an argument is negative.

    Example:
        >>> clew.igammac(clew.tensor([1.0, 2.0]), clew.tensor([1.0, 1.0]))
        tensor([0.3679, 0.7358])
    """
    made = _short(_C.ops._gammaincc, input, other) if out is None else None
    if made is not None:
        return made
    return evaluate("gammaincc", _igammac, input, other, out=out, numbers=False, records=False)


gammainc = igamma
gammaincc = igammac


def igamma_(self: Tensor, other: Tensor) -> Tensor:
    """Replaces a tensor's elements by igamma of them and other; returns the tensor.

    Example:
        >>> clew.tensor([1.0, 2.0]).igamma_(clew.tensor([1.0, 1.0]))
        tensor([0.6321, 0.2642])
    """
    return _replaced("igamma_", self, igamma(self.clone(), other))


def igammac_(self: Tensor, other: Tensor) -> Tensor:
    """Replaces a tensor's elements by igammac of them and other; returns the tensor.

    Example:
        >>> clew.tensor([1.0, 2.0]).igammac_(clew.tensor([1.0, 1.0]))
        tensor([0.3679, 0.7358])
    """
    return _replaced("igammac_", self, igammac(self.clone(), other))


def _replaced(name: str, target: Tensor, result: Tensor) -> Tensor:
    """Writes a result, which was made of a copy since its backward needs the old values."""
    if result.shape != target.shape:
        raise RuntimeError(
            f"{name}: the output's shape {list(target.shape)} does not match the broadcast shape "
            f"{list(result.shape)}"
        )
    check_castable(name, result, target)
    return target.copy_(result)
