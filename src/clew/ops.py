"""Operations under the names that PyTorch's compiled graphs use: ``clew.ops.aten.relu``.

Each name gives the function of that name at the top level (or a native one); its overloads,
``.default``, ``.Tensor`` and the like, call the same function, which looks at its arguments itself.

>>> clew.ops.aten.relu.default(clew.tensor([-1.0, 2.0]))
tensor([0., 2.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import _C
from clew._C import Tensor
from clew._ops.copies import sliced

__all__ = ["aten", "load_library"]


def _to_copy(self: Tensor, **kwargs: Any) -> Tensor:
    return self.to(
        **{k: v for k, v in kwargs.items() if v is not None and k != "layout"}, copy=True
    )


class _Schema:
    """What is known of an overload's signature: its name, and whether it writes in place."""

    def __init__(self, name: str, overload: str) -> None:
        self.name = f"aten::{name}"
        self.overload_name = "" if overload == "default" else overload
        self.is_mutable = (name.endswith("_") and not name.endswith("__")) or overload == "out"

    def __repr__(self) -> str:
        return f"{self.name}.{self.overload_name}".rstrip(".")


class _Overload:
    """One form of an operation, as modes and classes with `__torch_dispatch__` get it."""

    namespace = "aten"

    def __init__(self, packet: _Operation, overload: str) -> None:
        self._overloadpacket = self.overloadpacket = packet
        self._overloadname = overload
        self.__name__ = f"{packet._name}.{overload}"
        self._schema = _Schema(packet._name, overload)
        self.tags: tuple[Any, ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._overloadpacket(*args, _asked=self, **kwargs)

    @property
    def is_view(self) -> bool:
        """Whether the result shares the memory of the argument."""
        return _C._operation_kinds.get(self._overloadpacket._name) == "view"

    def name(self) -> str:
        """The name with its namespace, and the overload's where it is not the default."""
        return repr(self._schema)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return (
            f"<OpOverload(op='aten.{self._overloadpacket._name}', overload='{self._overloadname}')>"
        )

    def __reduce__(self) -> Any:
        return _overload_of, (self._overloadpacket._name, self._overloadname)

    def __deepcopy__(self, memo: Any) -> _Overload:
        return self


class _Operation:
    """A function; its attributes are its overloads, which all call it."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name = self.__name__ = name
        self._qualified_op_name = f"aten::{name}"
        self._function = function

    def __call__(self, *args: Any, _asked: _Overload | None = None, **kwargs: Any) -> Any:
        import sys

        dispatch = sys.modules.get("clew._torch.utils._python_dispatch")
        if dispatch is not None:  # else there are no modes and no such classes
            answer = dispatch.ask(_asked or self.default, args, kwargs)
            if answer is not NotImplemented:
                return answer
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> _Overload:
        if overload.startswith("_") or overload == "overloadpacket":
            raise AttributeError(overload)
        made = self.__dict__[overload] = _Overload(self, overload)
        return made

    def overloads(self) -> list[str]:
        """The overloads that were asked for so far, and the default."""
        found = [n for n, v in vars(self).items() if isinstance(v, _Overload)]
        return ["default", *(n for n in found if n != "default")]

    def __str__(self) -> str:
        return f"aten.{self._name}"

    def __repr__(self) -> str:
        return f"<clew.ops.aten.{self._name}>"

    def __reduce__(self) -> Any:
        return getattr, (aten, self._name)

    def __deepcopy__(self, memo: Any) -> _Operation:
        return self


def _overload_of(name: str, overload: str, function: Any = None) -> _Overload:
    """An overload by name; a name that is new to `aten` calls `function` or the op so named."""
    packet = getattr(aten, name, None)
    if packet is None:
        packet = _Operation(name, function or _C.functions.get(name) or getattr(_C.ops, name))
        setattr(aten, name, packet)
    found: _Overload = getattr(packet, overload)
    return found


_INNER: dict[str, Callable[..., Any]] = {
    "slice": sliced,
    "_to_copy": _to_copy,
    "alias": lambda self: self.view(self.shape),
    "index": lambda self, indices: self[tuple(slice(None) if i is None else i for i in indices)],
    "_convolution": lambda *args, **kwargs: _C.functions["convolution"](*args[:9], **kwargs),
    "_pin_memory": lambda self, device=None: self,
}
# Where a public function of the same name takes other arguments.
_OWN_MEANING = frozenset(
    "binary_cross_entropy_with_logits clone constant_pad_nd native_batch_norm embedding".split()
)
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
        found = _INNER.get(name)
        if found is None and name in _OWN_MEANING:
            from clew._torch._aten import FUNCTIONS

            found = FUNCTIONS[name]
        if found is None:
            found = _C.functions.get(name)
        if found is None:
            found = getattr(clew, name, None) or getattr(Tensor, name, None)
        if found is None:
            from clew._torch._aten import FUNCTIONS

            found = FUNCTIONS.get(name)
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
        from clew._registered import _registry

        found = _registry.get(f"{self._name}::{name}")
        if found is None and name == "cuda_version":  # what a library was compiled for: nothing
            return lambda: None
        if found is None:
            raise AttributeError(f"'{self._name}::{name}': there is no such operation")
        return found

    def __dir__(self) -> list[str]:
        from clew._registered import _registry

        start = f"{self._name}::"
        return sorted(n[len(start) :] for n in _registry if n.startswith(start))


def load_library(path: Any) -> None:
    """Loads operations from a compiled library, which are PyTorch's: raises, unless clew has them.

    Args:
        path: of the library.

    Raises:
        OSError: for other libraries than torchvision's and torchaudio's.

    Example:
        >>> clew.ops.load_library("mine.so")
        Traceback (most recent call last):
        OSError: ops.load_library: mine.so is compiled for PyTorch; clew does not load it
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
    if name == "profiler":
        from clew._torch import profiler_ops

        profiler_ops.register()
    space = globals()[name] = _Added(name)
    return space


aten = _Namespace()
prims = _Namespace()
loaded_libraries: set[str] = set()
