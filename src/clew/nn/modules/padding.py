"""Padding modules."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .module import Module
from .utils import ntuple

_KINDS = {
    "Constant": ("constant", "with a constant"),
    "Reflection": ("reflect", "with the mirrored input"),
    "Replication": ("replicate", "with the edge's value"),
    "Zero": ("constant", "with zeros"),
    "Circular": ("circular", "with the other end"),
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


class _CircularPadNd(_PadNd):
    def forward(self, input: Any) -> Any:
        if input.dim() not in (self._nd + 1, self._nd + 2):
            raise ValueError(
                f"expected {self._nd + 1}D or {self._nd + 2}D input (got {input.dim()}D input)"
            )
        return F.pad(input, self.padding, self._mode)


_BASES: dict[str, type[_PadNd]] = {
    "Constant": _ConstantPadNd,
    "Zero": _ZeroPadNd,
    "Circular": _CircularPadNd,
}


def _make(kind: str, n: int) -> Any:
    mode, how = _KINDS[kind]
    name = f"{kind}Pad{n}d"
    value = "\n        value: the constant." if kind == "Constant" else ""
    doc = (
        f"Pads the last {n} dims {how}.\n\n    Args:\n"
        f"        padding: one number, or {2 * n} numbers: left, right of the last dim "
        f"first.{value}\n"
    )
    space = {"_nd": n, "_mode": mode, "__doc__": doc, "__module__": __name__, "__qualname__": name}
    return type(name, (_BASES.get(kind, _PadNd),), space)


ConstantPad1d: Any = _make("Constant", 1)
ConstantPad2d: Any = _make("Constant", 2)
ConstantPad3d: Any = _make("Constant", 3)
ReflectionPad1d: Any = _make("Reflection", 1)
ReflectionPad2d: Any = _make("Reflection", 2)
ReflectionPad3d: Any = _make("Reflection", 3)
ReplicationPad1d: Any = _make("Replication", 1)
ReplicationPad2d: Any = _make("Replication", 2)
ReplicationPad3d: Any = _make("Replication", 3)
ZeroPad1d: Any = _make("Zero", 1)
ZeroPad2d: Any = _make("Zero", 2)
ZeroPad3d: Any = _make("Zero", 3)
CircularPad1d: Any = _make("Circular", 1)
CircularPad2d: Any = _make("Circular", 2)
CircularPad3d: Any = _make("Circular", 3)

__all__ = [f"{kind}Pad{n}d" for kind in _KINDS for n in (1, 2, 3)]
