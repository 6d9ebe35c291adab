"""What variables are before and after a branch or a loop, and what is written within."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor
from clew.export._errors import ExportError, Place
from clew.export._lists import Maybe
from clew.export._record import unseen
from clew.export._symbols import SYMS, Poison, Sym, recorder


class _Unbound:
    """A variable that has no value yet."""

    def __repr__(self) -> str:
        return "<unbound>"

    def _fail(self, *args: Any) -> Any:
        raise UnboundLocalError("a variable is used before it has a value")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python itself asks for
            raise AttributeError(name)
        return self._fail()

    __call__ = __iter__ = __len__ = __getitem__ = __bool__ = _fail


UNBOUND = _Unbound()
_NUMBERS = (bool, int, float)


class Journal:
    """What a branch writes to, so that it can be taken back."""

    def __init__(self, growth: dict[int, tuple[Any, list[Maybe]]] | None = None) -> None:
        self.before: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        self.lists: dict[int, tuple[Any, Any]] = {}  # lists and dicts, and what they held
        self.fresh: dict[int, Any] = {}  # lists and dicts made within, which may change within
        self.growth = growth  # of a branch: lists, and what append() has added
        self.states: dict[int, Any] = {}  # of such lists of loops: what they were before

    def grow(self, target: Any, x: Any) -> None:
        """Notes that a list grows by an element in this branch."""
        assert self.growth is not None
        added = x if type(x) is Maybe else Maybe(x, True)
        if type(target) is not list and id(target) not in self.states:
            self.states[id(target)] = target.state()
        self.growth.setdefault(id(target), (target, []))[1].append(added)

    def grown(self) -> list[tuple[Any, list[Maybe]]]:
        """Lists, and what was added to each."""
        return list((self.growth or {}).values())

    def added(self, key: int) -> list[Maybe]:
        """What was added to a list."""
        return (self.growth or {}).get(key, (None, []))[1]

    def before_change(self, x: Any) -> None:
        """Notes what a list or dict holds."""
        self.lists.setdefault(id(x), (x, x.copy()))

    def before_write(self, runs: list[Tensor]) -> None:
        for run, t in enumerate(runs):
            root = t if t._base is None else t._base
            key = (run, id(root))
            if key not in self.before:
                with clew.no_grad():
                    self.before[key] = (root, root.detach().clone())

    def swap(self, keep: Callable[[int], bool]) -> dict[tuple[int, int], tuple[Tensor, Tensor]]:
        """Takes writes of the runs back that are not kept; returns what they had written."""
        after = {}
        for x, old in self.lists.values():
            _refill(x, old)
        with unseen(recorder()), clew.no_grad():
            for (run, key), (root, old) in self.before.items():
                if not keep(run):
                    after[run, key] = (root, root.detach().clone())
                    root.detach().copy_(old)
        return after

    def leave(self, outer: list[Journal], place: Place) -> None:
        """The branch or loop is recorded. Variables have lists of their own from now on; whoever
        else holds one of the old lists must not read what it held before."""
        for x, old in self.lists.values():
            for journal in outer:
                journal.lists.setdefault(id(x), (x, old))
            self.spoil(x, place)

    @staticmethod
    def spoil(x: Any, place: Place) -> None:
        """Reading the list or dict raises from now on."""
        why = Poison(
            f"export: a {type(x).__name__} that changes inside an `if` or a loop that data "
            f"decides, at {place}, is read through another name; use the variable that is "
            f"assigned to"
        )
        _refill(x, dict.fromkeys(x, why) if isinstance(x, dict) else [why] * max(len(x), 1))


def _refill(x: Any, content: Any) -> None:
    x.clear()
    x.update(content) if isinstance(x, dict) else x.extend(content)


class KindChanges(ExportError):
    """A variable of a loop is of another kind after a round."""


def _is_number(x: Any) -> bool:
    return type(x) in SYMS or type(x) in _NUMBERS


def shown(name: str) -> str:
    """A variable as messages call it."""
    if name.startswith("_clew_value"):
        return "what a `return` in a loop gives"
    return repr(name)


def _kind(x: Any) -> str:
    if x is UNBOUND:
        return "not set"
    if isinstance(x, Sym):
        return f"a number ({x.kind})"
    if isinstance(x, str):
        return f"the string {x!r}"
    if issubclass(type(x), Poison):
        return "of no one kind"
    if isinstance(x, dict):
        return f"a dict of the keys {list(x)}"
    if isinstance(x, (tuple, list)):
        return f"a {type(x).__name__} of {len(x)}"
    if isinstance(x, clew.dtype):
        return f"the dtype {x.name}"
    if callable(x) and not isinstance(x, Tensor):
        return f"the function {getattr(x, '__name__', x)}"
    return "None" if x is None else f"a {type(x).__name__}"


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:
        return False
