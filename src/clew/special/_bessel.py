"""Bessel functions and Airy's function. Each kernel takes any order, so that the derivatives, sums
over the neighbouring orders, are exact everywhere and of every order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import _C
from clew._C import Tensor
from clew._ops.primitive import Context, scipy
from clew.special._elementwise import elementwise, unary

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
]


def _of_order(name: str) -> Any:
    """A kernel: SciPy's function of any order. (The core has orders 0 and 1.)"""

    def kernel(x: np.ndarray, order: int) -> Any:
        return getattr(scipy("special", "a Bessel function"), name)(order, x)

    return kernel


def _core(*functions: Any) -> Any:
    """The native form: the core's functions of the first orders."""

    def native(x: Tensor, order: int) -> tuple[Tensor] | None:
        return (functions[order](x),) if order < len(functions) else None

    return native


def _j_gradient(c: Context, grad: Tensor) -> Tensor:
    return grad * _cylinder(_j, c)


def _y_gradient(c: Context, grad: Tensor) -> Tensor:
    return grad * _cylinder(_y, c)


def _cylinder(f: Any, c: Context) -> Tensor:
    """f_n' = (f_{n-1} - f_{n+1}) / 2, where f_{-1} = -f_1."""
    x, n = c.inputs[0], c.attrs["order"]
    return -f(x, order=1) if n == 0 else (f(x, order=n - 1) - f(x, order=n + 1)) / 2


def _k_gradient(c: Context, grad: Tensor) -> Tensor:
    """K_n' = -(K_{n-1} + K_{n+1}) / 2, where K_{-1} = K_1."""
    x, n = c.inputs[0], c.attrs["order"]
    return grad * -(_k(x, order=abs(n - 1)) + _k(x, order=n + 1)) / 2


def _ke_gradient(c: Context, grad: Tensor) -> Tensor:
    """(exp(x) K_n)' = exp(x) (K_n + K_n')."""
    x, n = c.inputs[0], c.attrs["order"]
    beside = (_ke(x, order=abs(n - 1)) + _ke(x, order=n + 1)) / 2
    return grad * (_ke(x, order=n) - beside)


def _spherical_kernel(x: np.ndarray, order: int) -> Any:
    return scipy("special", "special.spherical_bessel_j0").spherical_jn(order, x)


def _spherical_gradient(c: Context, grad: Tensor) -> Tensor:
    """(2n + 1) j_n' = n j_{n-1} - (n + 1) j_{n+1}"""
    x, n = c.inputs[0], c.attrs["order"]
    slope = -(n + 1) * _spherical(x, order=n + 1)
    if n:
        slope = slope + n * _spherical(x, order=n - 1)
    return grad * slope / (2 * n + 1)


def _airy_native(x: Tensor, derivative: int) -> tuple[Tensor]:
    return ((_C.ops._airy_ai_slope if derivative else _C.ops._airy_ai)(x),)


def _airy_gradient(c: Context, grad: Tensor) -> Tensor:
    """Ai'' = x Ai"""
    x = c.inputs[0]
    return grad * (x * _airy(x, derivative=0) if c.attrs["derivative"] else _airy(x, derivative=1))


_j = elementwise(
    "BesselJ",
    _of_order("jv"),
    _j_gradient,
    _core(_C.ops._bessel_j0, _C.ops._bessel_j1),
)
_y = elementwise(
    "BesselY",
    _of_order("yn"),
    _y_gradient,
    _core(_C.ops._bessel_y0, _C.ops._bessel_y1),
)
_k = elementwise(
    "ModifiedBesselK",
    _of_order("kn"),
    _k_gradient,
    _core(_C.ops._bessel_k0, _C.ops._bessel_k1),
)
_ke = elementwise(
    "ScaledModifiedBesselK",
    _of_order("kve"),
    _ke_gradient,
    _core(_C.ops._bessel_k0e, _C.ops._bessel_k1e),
)
_spherical = elementwise(
    "SphericalBesselJ",
    _spherical_kernel,
    _spherical_gradient,
    _core(_C.ops._spherical_bessel_j0),
)
_airy = elementwise("AiryAi", None, _airy_gradient, _airy_native)

_ARGUMENTS = """

    Args:
        {argument}: real numbers.
        out: the tensor to write into.

    Returns:
        A tensor of the argument's shape.

    Example:
        """


def _public(
    name: str, doc: str, example: str, function: Any, core: Any = None, **attrs: Any
) -> Any:
    argument = "input" if name.startswith(("bessel", "modified")) else "x"
    doc += _ARGUMENTS.format(argument=argument) + example
    return unary(__name__, name, doc, function, argument, core, **attrs)


airy_ai = _public(
    "airy_ai",
    "Airy's function Ai, the solution of y'' = x y that vanishes at infinity.",
    """>>> clew.special.airy_ai(clew.tensor([0.0, 1.0]))
        tensor([0.3550, 0.1353])
    """,
    _airy,
    _C.ops._airy_ai,
    derivative=0,
)
bessel_j0 = _public(
    "bessel_j0",
    "The Bessel function of the first kind of order 0.",
    """>>> clew.special.bessel_j0(clew.tensor([0.0, 1.0]))
        tensor([1.0000, 0.7652])
    """,
    _j,
    _C.ops._bessel_j0,
    order=0,
)
bessel_j1 = _public(
    "bessel_j1",
    "The Bessel function of the first kind of order 1.",
    """>>> clew.special.bessel_j1(clew.tensor([0.0, 1.0]))
        tensor([0.0000, 0.4401])
    """,
    _j,
    _C.ops._bessel_j1,
    order=1,
)
bessel_y0 = _public(
    "bessel_y0",
    "The Bessel function of the second kind of order 0; -inf at 0, nan below.",
    """>>> clew.special.bessel_y0(clew.tensor([1.0, 2.0]))
        tensor([0.0883, 0.5104])
    """,
    _y,
    _C.ops._bessel_y0,
    order=0,
)
bessel_y1 = _public(
    "bessel_y1",
    "The Bessel function of the second kind of order 1; -inf at 0, nan below.",
    """>>> clew.special.bessel_y1(clew.tensor([1.0, 2.0]))
        tensor([-0.7812, -0.1070])
    """,
    _y,
    _C.ops._bessel_y1,
    order=1,
)
modified_bessel_i0 = _public(
    "modified_bessel_i0",
    "The modified Bessel function of the first kind of order 0; i0 by another name.",
    """>>> clew.special.modified_bessel_i0(clew.tensor([0.0, 1.0]))
        tensor([1.0000, 1.2661])
    """,
    _C.functions["special.i0"],
    core=_C.functions["special.i0"],
)
modified_bessel_i1 = _public(
    "modified_bessel_i1",
    "The modified Bessel function of the first kind of order 1; i1 by another name.",
    """>>> clew.special.modified_bessel_i1(clew.tensor([0.0, 1.0]))
        tensor([0.0000, 0.5652])
    """,
    _C.functions["special.i1"],
    core=_C.functions["special.i1"],
)
modified_bessel_k0 = _public(
    "modified_bessel_k0",
    "The modified Bessel function of the second kind of order 0; inf at 0, nan below.",
    """>>> clew.special.modified_bessel_k0(clew.tensor([1.0, 2.0]))
        tensor([0.4210, 0.1139])
    """,
    _k,
    _C.ops._bessel_k0,
    order=0,
)
modified_bessel_k1 = _public(
    "modified_bessel_k1",
    "The modified Bessel function of the second kind of order 1; inf at 0, nan below.",
    """>>> clew.special.modified_bessel_k1(clew.tensor([1.0, 2.0]))
        tensor([0.6019, 0.1399])
    """,
    _k,
    _C.ops._bessel_k1,
    order=1,
)
scaled_modified_bessel_k0 = _public(
    "scaled_modified_bessel_k0",
    "exp(x) times the modified Bessel function of the second kind of order 0.",
    """>>> clew.special.scaled_modified_bessel_k0(clew.tensor([1.0, 2.0]))
        tensor([1.1445, 0.8416])
    """,
    _ke,
    _C.ops._bessel_k0e,
    order=0,
)
scaled_modified_bessel_k1 = _public(
    "scaled_modified_bessel_k1",
    "exp(x) times the modified Bessel function of the second kind of order 1.",
    """>>> clew.special.scaled_modified_bessel_k1(clew.tensor([1.0, 2.0]))
        tensor([1.6362, 1.0335])
    """,
    _ke,
    _C.ops._bessel_k1e,
    order=1,
)
spherical_bessel_j0 = _public(
    "spherical_bessel_j0",
    "The spherical Bessel function of the first kind of order 0: sin(x) / x.",
    """>>> clew.special.spherical_bessel_j0(clew.tensor([0.0, 1.0]))
        tensor([1.0000, 0.8415])
    """,
    _spherical,
    _C.ops._spherical_bessel_j0,
    order=0,
)
