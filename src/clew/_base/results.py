"""How results of several tensors are shown to programs of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from clew._base import dtypes as _dtypes

__all__ = ["shown_as"]

_Kind = TypeVar("_Kind", bound=type)


def shown_as(name: str) -> Callable[[_Kind], _Kind]:
    """A decorator for the class of a function's results: under `clew run` they are shown as
    PyTorch shows them, a line for each.

    Args:
        name: of the function, as PyTorch's class of its results is called.
    """

    def decorate(kind: _Kind) -> _Kind:
        own: Callable[[Any], str] = kind.__repr__  # type: ignore[assignment]

        def show(self: Any) -> str:
            if _dtypes.home == "clew":
                return own(self)
            # Both functions that find eigenvalues have results of one class.
            complex_ = name == "linalg_eigh" and self[0].is_complex()
            fields = ",\n".join(f"{f}={value!r}" for f, value in zip(self._fields, self))
            known = "linalg_eig" if complex_ else name
            return f"{_dtypes.home}.return_types.{known}(\n{fields})"

        kind.__repr__ = show  # type: ignore[assignment]
        return kind

    return decorate
