"""Padding modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import functional as F
from .module import Module
from .utils import check_dims, ntuple

# By kind: the mode of pad(), what is added, and how much at most on one side.
_KINDS = {
    "Constant": ("constant", "with a constant", ""),
    "Reflection": (
        "reflect",
        "with the mirrored input: x[-i] is x[i]",
        "less than the dim's size; ",
    ),
    "Replication": ("replicate", "with the edge's value: x[-i] is x[0]", ""),
    "Zero": ("constant", "with zeros", ""),
    "Circular": ("circular", "with the other end: x[-i] is x[L - i]", "at most the dim's size; "),
}
_SIZES = {1: "L", 2: "H, W", 3: "D, H, W"}
_DIMS = {1: "dim", 2: "2 dims", 3: "3 dims"}
_SIDES = {
    1: "left, right",
    2: "left, right, top, bottom",
    3: "left, right, top, bottom, front, back",
}
_OUT = {
    1: "L_out = L + left + right",
    2: "H_out = H + top + bottom, W_out = W + left + right",
    3: "D_out = D + front + back; H_out and W_out likewise",
}
# What becomes of [1, 2, 3] with two more on each side, and of [[1, 2], [3, 4]] with one on the left
# and one above.
_EXAMPLES = {
    "Constant": (
        "[9.0, 9.0, 1.0, 2.0, 3.0, 9.0, 9.0]",
        "[[9.0, 9.0, 9.0], [9.0, 1.0, 2.0], [9.0, 3.0, 4.0]]",
    ),
    "Reflection": (
        "[3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]",
        "[[4.0, 3.0, 4.0], [2.0, 1.0, 2.0], [4.0, 3.0, 4.0]]",
    ),
    "Replication": (
        "[1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0]",
        "[[1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [3.0, 3.0, 4.0]]",
    ),
    "Zero": (
        "[0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0]",
        "[[0.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0.0, 3.0, 4.0]]",
    ),
    "Circular": (
        "[2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0]",
        "[[4.0, 3.0, 4.0], [2.0, 1.0, 2.0], [4.0, 3.0, 4.0]]",
    ),
}


class _PadNd(Module):
    """What all padding modules share."""

    _nd = 0
    _mode = ""
    padding: tuple[int, ...]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = ntuple(2 * self._nd, padding)

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]
    value: float

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_PadNd):
    __constants__ = ["padding"]


class _ReplicationPadNd(_PadNd):
    __constants__ = ["padding"]


class _CircularPadNd(_PadNd):
    __constants__ = ["padding"]

    def forward(self, input: Any) -> Any:
        check_dims(self, input, self._nd + 1, self._nd + 2)
        return F.pad(input, self.padding, self._mode)


_BASES: dict[str, type[_PadNd]] = {
    "Constant": _ConstantPadNd,
    "Reflection": _ReflectionPadNd,
    "Replication": _ReplicationPadNd,
    "Zero": _ZeroPadNd,
    "Circular": _CircularPadNd,
}


def _doc(kind: str, n: int) -> str:
    """The docstring of a class."""
    _, how, most = _KINDS[kind]
    name, sizes = f"{kind}Pad{n}d", _SIZES[n]
    row, image = _EXAMPLES[kind]
    value = "\n        value: the constant." if kind == "Constant" else ""
    also = ", 9.0" if kind == "Constant" else ""
    out = ", ".join(f"{size}_out" for size in sizes.split(", "))
    if _KINDS[kind][0] == "constant":
        taken, given = f"(..., {sizes})", f"(..., {out})"
    else:
        taken, given = f"(N, C, {sizes}) or (C, {sizes})", f"(N, C, {out}) or (C, {out})"
    example = {
        1: f">>> clew.nn.{name}(2{also})(clew.tensor([[1., 2., 3.]])).tolist()\n        [{row}]",
        2: f">>> pad = clew.nn.{name}((1, 0, 1, 0){also})\n"
        f"        >>> pad(clew.tensor([[[1., 2.], [3., 4.]]])).tolist()\n        [{image}]",
        3: f">>> clew.nn.{name}(1{also})(clew.ones(2, 3, 4, 5, 6)).shape\n"
        "        clew.Size([2, 3, 6, 7, 8])",
    }[n]
    return f"""Pads the last {_DIMS[n]} {how}.

    Args:
        padding: one number for all sides, or ({_SIDES[n]});
            {most}a negative one takes elements away.{value}

    Shapes:
        input: {taken}.
        returns: {given},
            {_OUT[n]}.

    Example:
        {example}
    """


def _make(kind: str, n: int) -> type[_PadNd]:
    name = f"{kind}Pad{n}d"
    space = {
        "_nd": n,
        "_mode": _KINDS[kind][0],
        "__doc__": _doc(kind, n),
        "__module__": __name__,
        "__qualname__": name,
    }
    bases: tuple[type[_PadNd], ...] = (_BASES[kind],)
    if kind == "Zero":  # is a ConstantPad, which is made before
        bases += (globals()[f"ConstantPad{n}d"],)
    return type(name, bases, space)


if TYPE_CHECKING:  # checkers do not see what the loop makes

    class ConstantPad1d(_ConstantPadNd):
        pass

    class ConstantPad2d(_ConstantPadNd):
        pass

    class ConstantPad3d(_ConstantPadNd):
        pass

    class ReflectionPad1d(_ReflectionPadNd):
        pass

    class ReflectionPad2d(_ReflectionPadNd):
        pass

    class ReflectionPad3d(_ReflectionPadNd):
        pass

    class ReplicationPad1d(_ReplicationPadNd):
        pass

    class ReplicationPad2d(_ReplicationPadNd):
        pass

    class ReplicationPad3d(_ReplicationPadNd):
        pass

    class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
        pass

    class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
        pass

    class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
        pass

    class CircularPad1d(_CircularPadNd):
        pass

    class CircularPad2d(_CircularPadNd):
        pass

    class CircularPad3d(_CircularPadNd):
        pass

else:
    for _kind in _KINDS:
        for _n in _SIZES:
            globals()[f"{_kind}Pad{_n}d"] = _make(_kind, _n)

__all__ = [f"{kind}Pad{n}d" for kind in _KINDS for n in (1, 2, 3)]
