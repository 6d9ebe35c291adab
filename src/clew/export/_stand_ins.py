"""What stands in meanwhile: shapes, functions that make tensors, and others."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import clew
from clew import _C, Tensor
from clew._base import autocast
from clew.export import _symbols
from clew.export._errors import ExportError, here, library_asks
from clew.export._lists import ScanList, SymIter
from clew.export._names import (
    CREATION,
    WHOLE,
    function_of,
)
from clew.export._symbols import SYMS
from clew.export._varying import flat

__all__ = ["StandIns"]

_SHAPE = vars(Tensor)["shape"]
_shape_of: Callable[[Tensor], Any] = _SHAPE.__get__
# Where the library asks for whole numbers of its own.
_ASKS_INT = ("clew.nn", "clew.distributions", "clew._ops.functions")


class _Applying:
    """The no_grad() that the forward() of a Function runs in.

    A program has no such function, but its calls: they have their gradients where the function
    had one.
    """

    def __init__(self, own: StandIns) -> None:
        self.outside, self.off = own.outside, clew.no_grad()

    def __enter__(self) -> None:
        self.outside.append(_C.is_grad_enabled() or bool(self.outside and self.outside[-1]))
        self.off.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.off.__exit__(*error)
        self.outside.pop()


class StandIns:
    """The part of a recorder that puts them in place."""

    inside: bool
    record: Any
    shape: Any
    _patched: list[tuple[dict[str, Any], str, Any]]
    stand_ins: dict[int, Any]  # by the id of the function, which a model may hold in an attribute
    outside: list[bool]  # of each Function whose forward() runs: whether its call has a gradient

    def start(self) -> None:
        """Puts the stand-ins of sizes and of functions that make tensors in place."""
        _symbols._recorder.append(self)
        self.outside = []
        own = self

        def shape(tensor: Tensor) -> Any:
            if own.inside:
                return _shape_of(tensor)
            return own.shape(tensor)

        data = vars(Tensor)["data"]

        def plain_data(tensor: Tensor) -> Any:
            return data.__get__(tensor) if own.inside else tensor.detach()

        kind: Any = Tensor
        kind.shape = property(shape)
        kind.data = property(plain_data, lambda t, v: data.__set__(t, v))
        self._data = data
        stand_ins = {id(getattr(clew, n)): (n, getattr(clew, n)) for n in CREATION}
        for n in WHOLE:
            stand_ins[id(function_of(n))] = (n, function_of(n))
        replaced = {k: self._creation(n, f) for k, (n, f) in stand_ins.items()}
        replaced |= {id(f): self._of_data(n, f) for n, f in _made_of_data()}
        replaced |= {id(f): self._refused(f) for f in _of_gradients()}
        self.stand_ins = dict(replaced)
        replaced[id(autocast.lower)] = self._casting(autocast.lower, clew.float32)
        replaced[id(autocast.float32)] = self._casting(autocast.float32, None)
        replaced[id(_C.Size)] = _symbols.size_of
        replaced[id(clew.broadcast_shapes)] = _broadcast_shapes
        for name, module in list(sys.modules.items()):
            if name.startswith(("clew.export", "numpy", "scipy")) or not hasattr(
                module, "__dict__"
            ):
                continue
            table = vars(module)
            for key, value in list(table.items()):
                other = replaced.get(id(value))
                if other is not None and callable(value):
                    if value is _C.Size and not name.startswith(_ASKS_INT):
                        continue
                    self._patched.append((table, key, value))
                    table[key] = other
            if name.startswith(_ASKS_INT) and "int" not in table:
                self._patched.append((table, "int", None))
                table["int"] = _Whole
            if name == "clew.autograd.function":
                self._patched.append((table, "no_grad", table["no_grad"]))
                table["no_grad"] = functools.partial(_Applying, self)
            if name == "clew._ops.statistics":  # cov()
                self._patched.append((table, "float", None))
                table["float"] = _Real
            if name == "clew._ops.functions":  # equal(), allclose()
                self._patched.append((table, "bool", None))
                table["bool"] = _Truth

    def stop(self) -> None:
        """Takes the stand-ins away."""
        for table, key, value in self._patched:
            if value is None:
                del table[key]
            else:
                table[key] = value
        self._patched.clear()
        kind: Any = Tensor
        kind.shape, kind.data = _SHAPE, self._data
        # What was first asked for meanwhile has taken stand-ins over.
        for module in list(sys.modules.values()):
            _put_back(module)
        _put_back(Tensor)
        _symbols._recorder.remove(self)

    def _creation(self, name: str, function: Any) -> Any:
        own = self

        def make(*args: Any, **kwargs: Any) -> Any:
            if own.inside or own not in _modes():
                return function(*args, **kwargs)
            with _popped(own):
                return own.record(name, function, args, kwargs)

        make.__name__ = make.__qualname__ = name.rpartition(".")[2]
        make._clew_own = function  # type: ignore[attr-defined]
        return make

    def _refused(self, function: Any) -> Any:
        own = self

        def refuse(*args: Any, **kwargs: Any) -> Any:
            if own.inside or own not in _modes() or library_asks():
                return function(*args, **kwargs)
            raise ExportError(
                f"export: {function.__name__}() within a model cannot be kept, at {here()}; write "
                f"what it computes with operations of the tensors"
            )

        refuse.__name__ = refuse.__qualname__ = function.__name__
        refuse._clew_own = function  # type: ignore[attr-defined]
        return refuse

    def _casting(self, function: Any, only: Any) -> Any:
        """What functions of the library cast by within autocast, recorded."""
        own = self

        def cast(*tensors: Any) -> Any:
            if own.inside or own not in _modes():
                return function(*tensors)
            dtype = clew.float32 if only is None else _C._autocast_state()[1]
            kinds = (clew.float16, clew.bfloat16) if only is None else (only,)
            return tuple(
                t.to(dtype) if isinstance(t, Tensor) and t.dtype in kinds else t for t in tensors
            )

        cast._clew_own = function  # type: ignore[attr-defined]
        return cast

    def _of_data(self, name: str, function: Any) -> Any:
        """tensor([...]) of numbers that vary is a stack of them."""
        own = self

        def make(data: Any = None, *args: Any, **kwargs: Any) -> Any:
            if isinstance(data, ScanList) and not own.inside:
                dtype = kwargs.get("dtype") or (args[0] if args else None)
                # Of no numbers, too, it is a tensor, but of the dtype that is given.
                empty = dtype is not None and data.of_numbers()
                rows = (data.all_rows() if empty else data.joined("stack")).detach()
                return rows if dtype is None else rows.to(dtype)
            if isinstance(data, SymIter) and not own.inside:
                return own._elements(data, kwargs.get("dtype") or (args[0] if args else None))
            if own.inside or own not in _modes() or not any(
                type(a) in SYMS or isinstance(a, Tensor) for a in flat((data,))
            ):  # fmt: skip
                return function(data, *args, **kwargs)
            return own._gather(data, kwargs.get("dtype") or (args[0] if args else None))

        make.__name__ = make.__qualname__ = name
        make._clew_own = function  # type: ignore[attr-defined]
        return make

    @staticmethod
    def _elements(data: SymIter, dtype: Any) -> Tensor:
        """tensor() of the list that tolist() has made."""
        if data.whole is None:
            raise ExportError(f"export: a tensor is made of as many numbers as a size, at {here()}")
        kind = data.whole.dtype
        if dtype is None and kind.is_floating_point:
            dtype = clew.get_default_dtype()
        elif dtype is None and kind != clew.bool:
            dtype = clew.int64
        made: Tensor = data.whole.detach().clone().to(dtype or kind)
        return made

    def _gather(self, data: Any, dtype: Any) -> Any:
        if isinstance(data, (tuple, list)):
            return clew.stack([self._gather(d, dtype) for d in data])
        if isinstance(data, Tensor):
            return data if dtype is None else data.to(dtype)
        if dtype is None:
            kinds = {bool: clew.bool, int: clew.int64, float: clew.get_default_dtype()}
            dtype = next((k for t, k in kinds.items() if isinstance(data, t)), None)
        return clew.full((), data, dtype=dtype)


def _broadcast_shapes(*shapes: Any) -> Any:
    if any(type(n) in SYMS for n in flat(shapes)):
        return _symbols.broadcast_size(*shapes)
    return _BROADCAST(*shapes)


_BROADCAST = clew.broadcast_shapes


class _NumberKind(type):
    own: type

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.own)

    def __call__(cls, x: Any = 0, *base: Any) -> Any:
        rec = _symbols.recorder()
        if isinstance(x, Tensor) and not rec.inside and rec._depends((x,)):
            x = rec.item(x)
        if type(x) in SYMS:
            return x if x.kind == cls.own.__name__ else x.same(cls.own)
        return cls.own(x, *base)


class _Whole(metaclass=_NumberKind):
    """int, as functions of the library call it: a number that varies stays one."""

    own = int


class _Truth(metaclass=_NumberKind):
    """bool, likewise."""

    own = bool


class _Real(metaclass=_NumberKind):
    """float, likewise."""

    own = float


@contextmanager
def _popped(rec: Any) -> Iterator[None]:
    """As while a mode answers a call."""
    from clew._base.overriding import _state

    modes = _state.modes
    _state.modes = [m for m in modes if m is not rec]
    try:
        yield
    finally:
        _state.modes = modes


def _made_of_data() -> list[tuple[str, Any]]:
    return [("tensor", clew.tensor), ("as_tensor", clew.as_tensor)]


def _of_gradients() -> list[Any]:
    """Functions that call the model's functions in ways that no program has."""
    found = [clew.autograd.grad, clew.autograd.backward]
    names = ("vmap", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian")
    table = vars(sys.modules.get("clew.func", clew))
    return found + [table[n] for n in names if isinstance(table.get(n), types.FunctionType)]


def _modes() -> list[Any]:
    from clew._base.overriding import _state

    return _state.modes


def _stands_in(value: Any) -> bool:
    """Whether it is what a recorder put in a function's place."""
    return type(value) is types.FunctionType and hasattr(value, "_clew_own")


def _put_back(owner: Any) -> None:
    for key, value in list(getattr(owner, "__dict__", {}).items()):
        if _stands_in(value):
            setattr(owner, key, value._clew_own)
