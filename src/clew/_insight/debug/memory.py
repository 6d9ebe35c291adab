"""Who holds the memory of tensors: parameters, gradients, optimizers, graphs, variables."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
from collections import deque
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import clew
from clew import _C, Tensor
from clew._insight.debug.holders import held_by
from clew._insight.graph.tables import amount, fit
from clew._tensor.html import as_printed
from clew._tensor.structured import Structured

__all__ = ["Holding", "MemoryTable", "memory", "memory_of"]

_DEPTH = 4  # of containers in containers
_MOST = 10_000  # items of one container that are looked at
_NAMED = 4  # rows of what no variable leads to whose holders are looked for
_KINDS = ("parameters", "gradients", "optimizer", "buffers", "saved", "variables", "unknown")


@dataclass(frozen=True)
class Holding:
    """Bytes that one owner holds.

    Attributes:
        kind: "parameters", "gradients", "optimizer", "buffers", "saved" (for backward),
            "variables" of the program, or "unknown".
        name: the parameter's name, the variable's, or the operation that saved the bytes.
        place: the line that made them, with the module whose call it was, where it is known.
        bytes: how many; each block of memory counts once, for the first kind of this list.
        tensors: in how many blocks.
    """

    kind: str
    name: str
    place: str
    bytes: int
    tensors: int


class MemoryTable(tuple[Holding, ...]):
    """What `clew.debug.memory()` found, the largest first; prints as a table."""

    @property
    def bytes(self) -> int:
        """All together."""
        return sum(h.bytes for h in self)

    def by_kind(self) -> dict[str, int]:
        """Bytes of each kind that there is."""
        sums = dict.fromkeys(_KINDS, 0)
        for h in self:
            sums[h.kind] += h.bytes
        return {kind: n for kind, n in sums.items() if n}

    _repr_html_ = as_printed

    def __str__(self) -> str:
        lines = [f"{amount(self.bytes, 'B')} in tensors"]
        lines += [f"  {amount(n, 'B'):>9}  {kind}" for kind, n in self.by_kind().items()]
        lines.append("")
        for h in self[:20]:
            line = f"  {amount(h.bytes, 'B'):>9}  {h.kind:<10} {fit(h.name, 28)} {h.place}"
            lines.append(line.rstrip())
        if len(self) > 20:
            rest = sum(h.bytes for h in self[20:])
            lines.append(f"  {amount(rest, 'B'):>9}  in {len(self) - 20} more rows")
        return "\n".join(lines)


def _has_bytes(tensor: Tensor) -> bool:
    """Whether it holds memory; not one that waits to be computed, which looking would compute."""
    # The parts of sparse and ragged tensors are tensors of their own.
    return not (
        isinstance(tensor, Structured) or tensor.device.type == "meta" or _C._is_pending(tensor)
    )


def _place_of(location: Any) -> str:
    return "" if location is None else str(location)


class Count:
    """Adds up blocks by owner; the first owner of a block has it.

    Args:
        earlier: of owners of one kind the one that had the block there has it, too: the order in
            which they are met is no growth.
    """

    def __init__(self, earlier: Count | None = None) -> None:
        self.seen: dict[int, tuple[str, str, str]] = {}
        self.rows: dict[tuple[str, str, str], list[int]] = {}
        self._earlier = {} if earlier is None else earlier.seen

    def add(self, tensor: Tensor, kind: str, name: str, place: str = "") -> None:
        if _has_bytes(tensor):
            nbytes = tensor._storage_bytes().numel()  # untyped_storage() would run what waits
            self.add_block(tensor._storage_key(), nbytes, kind, name, place)

    def add_block(self, key: int, nbytes: int, kind: str, name: str, place: str = "") -> None:
        if not nbytes:
            return
        owner, now = self.seen.get(key), (kind, name, place)
        if owner is not None:
            if owner[0] != kind or owner == now or self._earlier.get(key) != now:
                return
            self._book(owner, -nbytes, -1)
        self.seen[key] = now
        self._book(now, nbytes, 1)

    def _book(self, owner: tuple[str, str, str], nbytes: int, blocks: int) -> None:
        row = self.rows.setdefault(owner, [0, 0])
        row[0] += nbytes
        row[1] += blocks

    def table(self) -> MemoryTable:
        found = [Holding(*key, *row) for key, row in self.rows.items() if row[1]]
        return MemoryTable(sorted(found, key=lambda h: -h.bytes))


def _optimizers() -> list[Any]:
    from clew.optim import Optimizer

    return [o for o in gc.get_objects() if isinstance(o, Optimizer)]


def _tensors_in(value: Any, name: str, depth: int = _DEPTH) -> Iterator[tuple[str, Tensor]]:
    """Tensors in a variable, each with the name under which it is found."""
    if isinstance(value, Tensor):
        yield name, value
    elif depth and isinstance(value, dict):
        word = f"{name}[...]" if len(value) > 3 and _are_numbered(value) else None
        for key, part in list(value.items())[:_MOST]:
            yield from _tensors_in(part, word or f"{name}[{_key(key)}]", depth - 1)
    elif depth and isinstance(value, (list, tuple, set, frozenset, deque)):
        word = f"{name}[...]" if len(value) > 3 else None
        for i, part in enumerate(list(value)[:_MOST]):
            yield from _tensors_in(part, word or f"{name}[{i}]", depth - 1)


def _key(key: Any) -> str:
    """A key as text; of others than plain values the class: a tensor's text takes memory."""
    plain = isinstance(key, (str, bytes, int, float, complex, type(None)))
    return repr(key) if plain else f"<{type(key).__name__}>"


def _are_numbered(value: dict[Any, Any]) -> bool:
    """Whether the keys are no names."""
    return not any(isinstance(key, str) for key in value)


def _locals(frame: FrameType) -> dict[str, Any]:
    """A frame's variables, which the frame does not go on holding because they were looked at.

    Before Python 3.13 a function's frame keeps the dict that `f_locals` gives, and with it every
    value that was in it, until the function returns.
    """
    kept = frame.f_locals
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return kept
    found = dict(kept)
    alone = sys.getrefcount(kept) <= 3  # the frame's, ours, and the call's: nobody's locals()
    if sys.version_info < (3, 13) and alone and sys.gettrace() is None:
        kept.clear()
    return found


def variables_of(frame: FrameType | None) -> Iterator[tuple[str, Tensor]]:
    """The program's variables from the innermost frame out, this library's left out."""
    library = clew.__file__.rsplit("__init__", 1)[0]
    spaces: list[dict[str, Any]] = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(library):
            for space in (_locals(frame), frame.f_globals):
                if not any(space is known for known in spaces):
                    spaces.append(space)
        frame = frame.f_back
    from clew import nn

    for space in spaces:
        for name, value in list(space.items()):
            if name.startswith("__"):
                continue
            yield from _tensors_in(value, name)
            fields = getattr(value, "__dict__", None)
            if (
                isinstance(fields, dict)
                and not isinstance(value, (type, nn.Module))
                and not callable(value)
            ):
                for field, part in list(fields.items()):
                    yield from _tensors_in(part, f"{name}.{field}", _DEPTH - 1)


def _of_other_threads() -> Iterator[tuple[str, Tensor]]:
    """The variables of functions that other threads run."""
    own = threading.get_ident()
    for thread, frame in sys._current_frames().items():
        if thread != own:
            yield from variables_of(frame)


def _count_kept(count: Count, alive: list[Tensor]) -> None:
    """What stays from step to step: parameters, gradients, the state of optimizers, buffers."""
    models = _C._called_roots()
    optimizers = _optimizers()
    for model in models:
        for name, p in model.named_parameters():
            count.add(p, "parameters", name)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for p in group["params"]:
                count.add(p, "parameters", "of an optimizer")
    for t in alive:
        if isinstance(t, clew.nn.Parameter):
            count.add(t, "parameters", "(no model that was called)")
    names = {id(p): n for model in models for n, p in model.named_parameters()}
    for t in alive:
        if t.is_leaf and t.requires_grad and t.grad is not None:
            count.add(t.grad, "gradients", names.get(id(t), "of a leaf"))
    for optimizer in optimizers:
        for state in list(optimizer.state.values()):
            for name, value in state.items() if isinstance(state, dict) else ():
                if isinstance(value, Tensor):
                    count.add(value, "optimizer", f"{type(optimizer).__name__}: {name}")
    for model in models:
        for name, buffer in model.named_buffers():
            count.add(buffer, "buffers", name)


def count_of(frame: FrameType | None, earlier: Count | None = None) -> Count:
    count = Count(earlier)
    alive: list[Tensor] = _C._live_tensors()
    _count_kept(count, alive)
    roots = tuple(t for t in alive if t.grad_fn is not None)
    for key, nbytes, node, place in _C._saved_blocks(roots):
        count.add_block(
            key, nbytes, "saved", node.removesuffix("0").removesuffix("Backward"), place
        )
    for name, t in (*variables_of(frame), *_of_other_threads()):
        if _has_bytes(t):
            count.add(t, "variables", name, _made_at(t))
    for t in alive:
        count.add(t, "unknown", _shape_of(t), _made_at(t))
    return count


class _Kept(Count):
    """Blocks by address, each with the kind of its first owner and its bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: dict[int, tuple[str, int]] = {}

    def add(self, tensor: Tensor, kind: str, name: str, place: str = "") -> None:
        if _has_bytes(tensor):
            whole = tensor._storage_bytes()
            if whole.numel():
                address = whole._address()  # data_ptr() would mark it for good
                self.blocks.setdefault(address, (kind, whole.numel()))


def kept_blocks() -> dict[int, tuple[str, int]]:
    """Where what stays from step to step lies: address to kind and bytes."""
    count = _Kept()
    _count_kept(count, _C._live_tensors())
    return count.blocks


def _shape_of(t: Tensor) -> str:
    return f"{t.dtype.name}{list(t.shape)}"


def with_holders(holdings: Iterable[Holding], before: Container[Any]) -> list[Holding]:
    """The same, with a name for who holds what no variable leads to; of blocks that were not there
    before, and of the first few rows."""
    found = list(holdings)
    unknown = [i for i, holding in enumerate(found) if holding.kind == "unknown"]
    alive: list[Tensor] = _C._live_tensors() if unknown else []
    for i in unknown[:_NAMED]:
        holding = found[i]
        for t in alive:
            mine = (_shape_of(t), _made_at(t)) == (holding.name, holding.place)
            if mine and t._storage_key() not in before:
                holder = held_by(t, [alive])
                found[i] = replace(holding, name=f"{holding.name}, held {holder}")
                break
    return found


def _made_at(t: Tensor) -> str:
    return _place_of(t.grad_fn.location) if t.grad_fn is not None else ""


def memory() -> MemoryTable:
    """A table of who holds the memory of tensors now, by kind of owner, line and module.

    Parameters and buffers are those of models that were called; gradients and the state of
    optimizers are named after them. What graphs saved for backward is told by the line and module
    of the operation; the program's variables by their names. A block of memory that has several
    owners counts for the first of these.

    Returns: the holdings, the largest first.

    >>> model = nn.Linear(100, 100)
    >>> loss = model(clew.ones(50, 100)).relu().sum()
    >>> table = clew.debug.memory()
    >>> max(h.bytes for h in table if h.kind == "parameters") >= 40_000
    True
    >>> next(h.name for h in table if h.kind == "saved" and h.bytes == 20_000)
    'Relu'
    """
    return MemoryTable(with_holders(count_of(sys._getframe(1)).table(), set()))


def memory_of(frame: FrameType | None) -> MemoryTable:
    """What `memory()` tells, with the variables of a frame and of those that called it."""
    return count_of(frame).table()


def refusal_text() -> str:
    """What would do, and the largest holdings, for the message of a call that a budget refused."""
    from clew._program.enough import advice

    return advice(_optimizers(), _C._live_tensors()) + holders_text()


def holders_text() -> str:
    """The largest holdings, for the message of an allocation that failed."""
    table = count_of(sys._getframe(0)).table()[:5]
    rows = [f"\n    {amount(h.bytes, 'B')}  {h.kind}: {h.name}  {h.place}".rstrip() for h in table]
    return "\n  what holds memory now (clew.debug.memory() tells more):" + "".join(rows)
