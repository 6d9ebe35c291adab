"""What a module is before it runs, so that it is the same afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import clew
from clew import Tensor
from clew.nn import Module

__all__ = ["State", "quiet_state"]


@contextmanager
def quiet_state(module: Module) -> Iterator[State]:
    """Buffers, random numbers and modes are afterwards what they were."""
    state = State(module)
    random = clew.get_rng_state()
    try:
        yield state
    finally:
        state.restore()
        clew.set_rng_state(random)


class State:
    """What a module has before it runs: buffers, attributes, and what the attributes hold."""

    def __init__(self, module: Module) -> None:
        found = {id(b): b for b in (*module.buffers(), *_attributes(module))}
        self._buffers = [(b, b.detach().clone()) for b in found.values()]
        self._graded = {id(b): b.requires_grad for b, _ in self._buffers}
        every = list(module.modules())
        if "_stands_for" in vars(module):
            every += module._stands_for.modules()
        self._tables = [(m, dict(vars(m))) for m in every]
        self._held = [
            (x, x.copy())
            for _, table in self._tables
            for name, x in table.items()
            if type(x) in (dict, list, set) and (name == "_buffers" or name not in _OF_MODULES)
        ]

    def replaced(self) -> Iterator[tuple[str, Tensor, Any]]:
        """Buffers for which others were assigned: attribute, the buffer, and what it is now."""
        held = {id(x): content for x, content in self._held}
        for m, table in self._tables:
            before = held[id(table["_buffers"])]
            for name, now in m._buffers.items():
                old = before.get(name)
                if isinstance(old, Tensor) and now is not old:
                    yield f"{type(m).__name__}.{name}", old, now

    def restore(self) -> None:
        """All of it is as it was."""
        self.restore_buffers()
        for m, table in self._tables:
            now = vars(m)
            for k in [k for k in now if k not in table]:
                del now[k]
            now.update(table)
        for x, content in self._held:
            if x != content if type(x) is not dict else not _same_items(x, content):
                x.clear()
                x.extend(content) if isinstance(x, list) else x.update(content)

    def restore_buffers(self) -> None:
        """The tensors that were buffers have their values."""
        with clew.no_grad():
            for b, was in self._buffers:
                if b.requires_grad and not self._graded[id(b)]:
                    b.detach_()  # what was written into it has a history
                if b.shape == was.shape:
                    b.copy_(was)

    def changed(self) -> list[str]:
        """Attributes that are other objects than before, or hold others."""
        held = {id(x): content for x, content in self._held}
        found = []
        for m, table in self._tables:
            for name, x in vars(m).items():
                old = table.get(name)
                if name == "_buffers":
                    names = [k for k in x if x[k] is not held[id(x)].get(k)]
                elif x is old:
                    kept = held.get(id(x))
                    names = [] if kept is None or _same_items(x, kept) else [name]
                else:
                    names = [name]
                found += [f"{type(m).__name__}.{n}" for n in names]
        return found


def _attributes(module: Module) -> Iterator[Tensor]:
    """Tensors that are attributes, or stand in a list or a dict that is one."""
    for m in module.modules():
        for name, x in vars(m).items():
            parts: Any = x.values() if type(x) is dict else x if type(x) is list else (x,)
            if name not in _OF_MODULES:
                yield from (t for t in parts if isinstance(t, Tensor))


_OF_MODULES = frozenset(vars(Module()))


def _same_items(a: Any, b: Any) -> bool:
    if len(a) != len(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(a[k] is b[k] for k in a)
    return a == b if isinstance(a, set) else all(x is y for x, y in zip(a, b))
