"""Operations under the names that PyTorch's compiled graphs use: ``clew.ops.aten.relu``.

Each name gives the function of that name at the top level (or a native one); its overloads,
``.default``, ``.Tensor`` and the like, give the same function, which looks at its arguments itself.

>>> clew.ops.aten.relu.default(clew.tensor([-1.0, 2.0]))
tensor([0., 2.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import _C
from clew._C import Tensor

__all__ = ["aten", "load_library"]


def _slice(
    self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    first, last = 0 if start is None else start, 2**62 if end is None else min(end, 2**62)
    return _C.ops._slice(self, dim, first, last, step)


def _to_copy(self: Tensor, **kwargs: Any) -> Tensor:
    return self.to(
        **{k: v for k, v in kwargs.items() if v is not None and k != "layout"}, copy=True
    )


class _Operation:
    """A function that is also each of its overloads."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name = name
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> _Operation:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self

    def __repr__(self) -> str:
        return f"<clew.ops.aten.{self._name}>"


_INNER: dict[str, Callable[..., Any]] = {
    "slice": _slice,
    "_to_copy": _to_copy,
    "alias": lambda self: self.view(self.shape),
    "index": lambda self, indices: self[tuple(slice(None) if i is None else i for i in indices)],
    "_convolution": lambda *args, **kwargs: _C.functions["convolution"](*args[:9], **kwargs),
    "_pin_memory": lambda self, device=None: self,
}
# Operations that clew lacks and libraries name in tables of what they take over.
_ABSENT = frozenset(
    "_sparse_addmm _sparse_mm_reduce_impl _fused_adam_ _scaled_mm _grouped_mm".split()
)


def _raising(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"ops.aten.{name}: clew does not have this operation")

    return call


class _Namespace:
    """Finds operations by name when they are first asked for."""

    def __getattr__(self, name: str) -> _Operation:
        import clew

        if name.startswith("__"):
            raise AttributeError(name)
        found = _INNER.get(name) or _C.functions.get(name)
        if found is None:
            found = getattr(clew, name, None) or getattr(Tensor, name, None)
        if found is None and name in _ABSENT:
            found = _raising(name)
        if not callable(found) or isinstance(found, (type, _C.dtype)):
            raise AttributeError(f"clew.ops.aten has no operation '{name}'")
        operation = _Operation(name, found)
        setattr(self, name, operation)
        return operation


class _Added:
    """The operations that a program added to a namespace; see clew.library."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        from clew.library import _registry

        found = _registry.get(f"{self._name}::{name}")
        if found is None and name == "cuda_version":  # what a library was compiled for: nothing
            return lambda: None
        if found is None:
            raise AttributeError(f"'{self._name}::{name}': there is no such operation")
        return found

    def __dir__(self) -> list[str]:
        from clew.library import _registry

        start = f"{self._name}::"
        return sorted(n[len(start) :] for n in _registry if n.startswith(start))


def load_library(path: Any) -> None:
    """Loads operations from a compiled library, which are PyTorch's: raises, unless clew has them.

    Args:
        path: of the library.
    """
    import os

    name = os.path.basename(os.fspath(path))
    folders = os.path.abspath(path).split(os.sep)
    if "torchvision" in folders:
        from clew._torch.torchvision_ops import register

        if register(name):
            return
    if "torchaudio" in folders:
        from clew._torch import torchaudio_ops

        torchaudio_ops.register()
        return
    raise OSError(f"ops.load_library: {name} is compiled for PyTorch; clew does not load it")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    space = globals()[name] = _Added(name)
    return space


aten = _Namespace()
prims = _Namespace()
loaded_libraries: set[str] = set()
