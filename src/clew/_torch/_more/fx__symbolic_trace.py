"""What libraries that write `Tracer.trace` themselves, as PyTorch Geometric does, build it from."""

from __future__ import annotations

import builtins
import functools as functools
from collections.abc import Callable
from types import FunctionType as FunctionType
from typing import Any

import clew
from clew._torch._C import ScriptObject as ScriptObject
from clew.fx._symbolic_trace import _python_functions, _recording, _wrapped
from clew.fx.proxy import Proxy as Proxy

_orig_module_call: Callable[..., Any] = clew.nn.Module.__call__
_orig_module_getattr: Callable[..., Any] = clew.nn.Module.__getattr__
_create_wrapped_func = _recording


def compatibility(is_backward_compatible: bool) -> Callable[[Any], Any]:
    """A decorator that returns the function itself: it says how stable PyTorch's names are."""
    return lambda fn: fn


class _Patcher:
    """While it is entered, functions and methods are others."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._seen: set[int] = set()

    def patch(
        self,
        frame_dict: dict[str, Any],
        name: str,
        new_fn: Callable[..., Any],
        deduplicate: bool = True,
    ) -> None:
        """Replaces a name among globals.

        Args:
            frame_dict: the globals.
            name: the name.
            new_fn: what it is meanwhile.
            deduplicate: leaves what was replaced already.
        """
        if deduplicate and getattr(frame_dict.get(name), "_fx_patched", False):
            return
        new_fn._fx_patched = True  # type: ignore[attr-defined]
        if name in frame_dict:
            self._undo.append(functools.partial(frame_dict.__setitem__, name, frame_dict[name]))
        else:
            self._undo.append(functools.partial(frame_dict.pop, name))
        frame_dict[name] = new_fn

    def patch_method(
        self, cls: type, name: str, new_fn: Callable[..., Any], deduplicate: bool = True
    ) -> None:
        """Replaces a method of a class; arguments as for `patch`."""
        if deduplicate and getattr(getattr(cls, name), "_fx_patched", False):
            return
        new_fn._fx_patched = True  # type: ignore[attr-defined]
        if name in vars(cls):
            self._undo.append(functools.partial(setattr, cls, name, vars(cls)[name]))
        else:
            self._undo.append(functools.partial(delattr, cls, name))
        setattr(cls, name, new_fn)

    def visit_once(self, thing: Any) -> bool:
        """Whether something is seen for the first time."""
        if id(thing) in self._seen:
            return False
        self._seen.add(id(thing))
        return True

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, *exc: object) -> None:
        while self._undo:
            self._undo.pop()()


def _patch_all(patcher: _Patcher, space: dict[str, Any], ids: Any) -> None:
    known = _python_functions()
    for name, value in list(space.items()):
        if name.startswith("_") or not callable(value):
            continue
        if isinstance(value, FunctionType) and value in known:
            patcher.patch(space, name, known[value])
        elif id(value) in ids:
            patcher.patch(space, name, _recording(value))


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Lets clew's functions that are written in Python, and those that `wrap` named, record."""
    for home in (clew, clew.nn.functional, clew.linalg, clew.fft, clew.special):
        if patcher.visit_once(vars(home)):
            _patch_all(patcher, vars(home), ())
    for (_, name), space in list(_wrapped.items()):
        value = space.get(name, getattr(builtins, name, None))
        if value is not None:
            patcher.patch(space, name, _recording(value))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: Any) -> None:
    """Lets functions among a program's globals record.

    Args:
        patcher: takes them back at its end.
        frame_dict: the globals.
        function_ids: the ids of further functions that do.
    """
    ours = str(frame_dict.get("__name__", "")).startswith("clew.")
    if patcher.visit_once(frame_dict) and not ours:
        _patch_all(patcher, frame_dict, function_ids)
