"""Records a loop that stays a loop: its body once, on the values of the first round."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import clew
from clew import Tensor
from clew.export._carried import Carried, fields_of, is_record, made_like, placeholder, structured
from clew.export._code import UnequalRows, interpret_loop
from clew.export._errors import ExportError, here
from clew.export._ir import Block, Node, Value, values_in, written
from clew.export._journal import UNBOUND, Journal, _kind, _same, shown
from clew.export._lists import Appender, Maybe, ScanList, last_of
from clew.export._ragged import RaggedList, common, pushed, rank, refuse_late_writes, sizes_of
from clew.export._record import unseen
from clew.export._stand_ins import _shape_of
from clew.export._symbols import SYMS, Poison, SymInt

if TYPE_CHECKING:
    from clew.export._control import Control


@dataclasses.dataclass
class _Lists:
    """Of the lists that grow in a round, by the variable's number, what the round takes.

    Attributes:
        flats: of tensors of different sizes, all elements and all shapes.
        appenders: what the round appends to.
        lasts: the last elements.
        counts: the lengths, where the round asks for them.
    """

    flats: dict[int, list[Any]]
    appenders: dict[int, Appender]
    lasts: dict[int, Any]
    counts: dict[int, Any]


class Staged(Carried):
    """One loop.

    Args:
        control: the recording.
        trip: how often it runs at most; None without a bound.
        cond: whether it runs at all; None where only the bound counts.
        body: takes the round and the variables, gives the variables.
        test: takes the variables and says whether it goes on; None without ``cond``.
        vals: the variables.
        names: what they are called.
        grows: names of lists to which the body appends.
    """

    def __init__(
        self, control: Control, trip: Any, cond: Any, body: Any, test: Any,
        vals: tuple[Any, ...], names: tuple[str, ...], grows: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.control, self.rec = control, control.rec
        self.trip, self.cond, self.body, self.test = trip, cond, body, test
        self.vals, self.names, self.grows = list(vals), names, grows
        self.place = here()
        self.level = 0
        self.odd: set[int] = set()  # variables that are other objects after a round
        self.changed: list[Any] = []  # lists and dicts of before the loop that a round changes
        self.added: dict[int, Any] = {}  # an element by which a list grows
        self.ragged: dict[int, Any] = {}  # lists of tensors of different sizes, before the loop
        self.counted: set[int] = set()  # lists whose length is asked in a round
        self.outer: dict[int, Appender] = {}  # lists of a loop around this one

    def run(self) -> tuple[Any, ...]:
        """Records the loop; returns the variables after it."""
        self.outer = outer = {
            i: v
            for i, v in enumerate(self.vals)
            if type(v) is Appender and self.names[i] in self.grows
        }
        for i in outer:  # a list of a loop around this one: this one has a list of its own
            self.vals[i] = []
        got = list(self._run())
        for i, appender in outer.items():
            if isinstance(got[i], ScanList):
                appender.extend(got[i])
            got[i] = appender
        return tuple(got)

    def _run(self) -> tuple[Any, ...]:
        carried, grown, loose = self._trial()
        for _ in range(len(grown)):
            try:
                return self._record(carried, grown, loose)
            except _OfDifferentSizes as e:
                self.ragged |= {i: self._flat(i) for i in e.lists}
        return self._record(carried, grown, loose)

    def _flat(self, i: int) -> RaggedList:
        """What a list of tensors of different sizes holds before the loop."""
        x = self.added[i]
        if isinstance(x, RaggedList):
            return RaggedList.of(self.vals[i], x.flat.dtype, rank(x.shapes))
        if isinstance(x, ScanList):
            return RaggedList.of(self.vals[i], x.joined_rows.dtype, x.joined_rows.dim() - 1)
        value = x.value if type(x) is Maybe else x
        if not isinstance(value, Tensor):
            value = clew.full((), value)
        return RaggedList.of(self.vals[i], value.dtype, value.dim())

    # ---- which variables change ----

    def _round(self, vals: list[Any], index: Any) -> list[Any]:
        rec = self.rec
        self.level = len(rec.blocks)
        got = self.body(index, vals)
        if self.test is not None:
            self.test(list(got))
        return list(got)

    def _trial(self) -> tuple[set[int], set[int], dict[int, Any]]:
        """Runs rounds that are thrown away: which variables are assigned, which lists grow, and
        which sizes change from round to round."""
        rec = self.rec
        carried: set[int] = set()
        grown: set[int] = set()
        loose: dict[int, Any] = {}
        vals = list(self.vals)
        for i, v in enumerate(vals):
            if (type(v) is list or isinstance(v, ScanList)) and self.names[i] in self.grows:
                if isinstance(v, ScanList):
                    v.may_change(loop=True)
                grown.add(i)
        for active in (self._entering(), [False] * rec.runs):
            journal = Journal()
            with self._inside(Block(), journal, active):
                given = list(vals)
                for i in grown:
                    given[i] = Appender(self.vals[i], self, i)
                    given[i].count = rec.constant_sym(0)
                for i in carried | {k for k, v in enumerate(vals) if type(v) in (int, float, bool)}:
                    if type(given[i]) in (int, float, bool):
                        given[i] = rec.constant_sym(given[i])
                index = rec.constant_sym(0)
                start = [_copied(x) for x in given]
                got = self._round(given, index)
                for i, (a, b) in enumerate(zip(given, got)):
                    if i in grown:
                        if not a.added:
                            grown = grown - {i}
                        else:
                            self.added[i] = a.added[0]
                            first = last_of(self.vals[i])
                            if first is not None and isinstance(a.last, Tensor):
                                self._changing(first, a.last, ("last", i), loose)
                        continue
                    if a is not b and not (a is UNBOUND and b is UNBOUND):
                        carried.add(i)
                        self._changing(start[i], b, i, loose)
                vals = [v if i in grown else g for i, (v, g) in enumerate(zip(vals, got))]
            for x, _ in journal.lists.values():
                self.changed.append(x)
        return carried, grown, loose

    @contextlib.contextmanager
    def _inside(self, block: Block, journal: Journal, active: list[bool]) -> Iterator[None]:
        """Records a round into a block; what it changed is as before afterwards."""
        rec = self.rec
        before = list(rec.active)
        rec.blocks.append(block)
        rec.journals.append(journal)
        rec.active = active
        try:
            yield
        finally:
            rec.blocks.pop()
            rec.journals.pop()
            rec.active = before
            journal.swap(lambda run: False)

    def _entering(self) -> list[bool]:
        """Which of the active runs enter the loop."""
        return [a and self.entered(r) for r, a in enumerate(self.rec.active)]

    def entered(self, run: int) -> bool:
        """Whether a run enters the loop."""
        if self.cond is not None and not bool(self.cond.vals[run]):
            return False
        if self.trip is None:
            return True
        return bool((self.trip.vals[run] if type(self.trip) in SYMS else self.trip) > 0)

    def _changing(self, a: Any, b: Any, key: Any, loose: dict[Any, Any]) -> None:
        """Notes dims of a variable that a round changes."""
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dim() == b.dim():
            rec = self.rec
            before = zip(*(tuple(_shape_of(t)) for t in rec.held(a).runs))
            after = zip(*(tuple(_shape_of(t)) for t in rec.held(b).runs))
            dims = {d for d, (x, y) in enumerate(zip(before, after)) if x != y}
            loose.setdefault(key, set()).update(dims)
        elif isinstance(a, ScanList) or isinstance(b, ScanList):
            if not isinstance(key, tuple):  # a list that an inner loop has filled
                self.odd.add(key)
        elif isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
            for k, (x, y) in enumerate(zip(a, b)):
                self._changing(x, y, (key, k), loose)
        elif is_record(a) and type(a) is type(b):
            for k, (x, y) in enumerate(zip(fields_of(a).values(), fields_of(b).values())):
                self._changing(x, y, (key, k), loose)
        elif a is not b and not structured(a) and not structured(b) and a is not UNBOUND:
            if not isinstance(key, tuple) and not _same(a, b):
                self.odd.add(key)

    # ---- the loop itself ----

    def _record(self, carried: set[int], grown: set[int], loose: dict[Any, Any]) -> tuple[Any, ...]:
        rec = self.rec
        block, journal = Block(), Journal()
        given = list(self.vals)
        self.inits: list[Any] = []
        self.params: list[Value] = []
        order = sorted(carried)
        trials = self._shapes_of_unbound(order, given, grown)
        counter = rec.new_value("int", [0] * rec.runs, source=("block",))
        with self._inside(block, journal, self._entering()):
            unread = self._variables(order, given, trials, loose)
            for x in self.changed:  # under other names they would keep what they held before
                journal.before_change(x)
                journal.spoil(x, self.place)
            starts = {i: _copied(given[i]) for i in order}  # the body may change lists
            lists = self._lists(grown, given, loose)
            self.level = len(rec.blocks)
            got = list(self.body(SymInt(counter, [0] * rec.runs), given))
            ends: list[Any] = []
            for i in order:
                self._end(starts[i], got[i], self.names[i], ends)
            self._end_lists(lists, ends)
            for k in unread:  # what stands for no value may be of other sizes
                p, e = self.params[k], ends[k]
                if isinstance(e, Value) and p.kind == "tensor":
                    p.sizes = tuple(a if a == b else None for a, b in zip(p.sizes, e.sizes))
            goes_on = None
            if self.test is not None:
                c = self.test(list(got))
                goes_on = rec.stored(c) if type(c) in SYMS else bool(c)
            scans: list[Value] = []
            parts = {
                i: self._parts(a.added, i, scans)
                for i, a in lists.appenders.items()
                if i not in self.ragged
            }
            varying = {
                i
                for i in parts
                if any(None in (sizes_of(x) or ()) for x in lists.appenders[i].added)
            }
        for outer in rec.journals:
            for key, kept in journal.before.items():
                outer.before.setdefault(key, kept)
        block.params = [counter, *self.params]
        block.results = [goes_on, ends, scans]
        if self.ragged:
            self._refuse_late_writes(block, lists)
        cond = None if self.cond is None else rec.stored(self.cond)
        trip = None if self.trip is None else rec.stored(self.trip)
        node = Node("loop", (trip, cond, tuple(self.inits)), place=self.place, blocks=[block])
        skipped = len(lists.lasts) + len(lists.counts)
        after = self._after(node, order, starts, parts, scans, varying, skipped)
        for i in grown:
            if isinstance(self.vals[i], ScanList):
                self.vals[i].spoil(self.place)
            else:
                journal.before_change(self.vals[i])
        journal.leave(rec.journals, self.place)
        return after

    def _variables(
        self, order: list[int], given: list[Any], trials: dict[int, Any], loose: dict[Any, Any]
    ) -> list[int]:
        """Puts what a round takes into `given`; returns the parameters that stand for no value."""
        unread: list[int] = []
        for i in order:
            start = trials[i] if given[i] is UNBOUND else given[i]
            if i in self.odd:
                start = Poison(
                    f"export: {shown(self.names[i])} is another {type(start).__name__} in each "
                    f"round of the loop at {self.place}; tensors and numbers are kept"
                )
            first = len(self.params)
            given[i] = self._param(start, i, loose)
            if i in trials:
                unread += range(first, len(self.params))
        return unread

    def _lists(self, grown: set[int], given: list[Any], loose: dict[Any, Any]) -> _Lists:
        """What a round takes of the lists that grow; puts what they append to into `given`."""
        flats = {
            i: [self._param(t, ("flat", i), {("flat", i): {0}}) for t in (x.flat, x.shapes)]
            for i, x in self.ragged.items()
        }
        appenders = {}
        for i in sorted(grown):
            appenders[i] = given[i] = Appender(self.vals[i], self, i)
        lasts = {}
        for i, appender in appenders.items():
            start = last_of(self.vals[i])
            if start is not None:
                lasts[i] = appender.last = self._param(start, ("last", i), loose)
        counts = {}
        for i in sorted(self.counted & appenders.keys()):
            counts[i] = appenders[i].count = self._param(0, ("count", i), loose)
        return _Lists(flats, appenders, lasts, counts)

    def _end_lists(self, lists: _Lists, ends: list[Any]) -> None:
        """What these lists are at the end of a round."""
        appenders = lists.appenders
        for i, (flat, shapes) in lists.flats.items():
            more = flat, shapes
            for x in appenders[i].added:
                more = pushed(*more, x)
            sizes = [sizes_of(x) for x in appenders[i].added]
            self.ragged[i].fixed = common([self.ragged[i].fixed, *sizes])
            self._end((flat, shapes), more, self.names[i], ends)
        for i, start in lists.lasts.items():
            last = appenders[i].last
            same = isinstance(last, Tensor) and last.dim() == start.dim()
            if not same or last.dtype != start.dtype:  # then it was not read either
                last = start
            self._end(start, last, self.names[i], ends)
        for i, start in lists.counts.items():
            self._end(start, appenders[i].count, self.names[i], ends)

    def _refuse_late_writes(self, block: Block, lists: _Lists) -> None:
        """Raises where a round writes to what a list of tensors of different sizes has copied."""
        rec = self.rec
        last = [rec.held(x).value for i, x in lists.lasts.items() if i in self.ragged]
        grown_by = [x for i in self.ragged for x in lists.appenders[i].added]
        values = [x.value if type(x) is Maybe else x for x in grown_by]
        added = [rec.held(x).value for x in values if isinstance(x, Tensor)]
        refuse_late_writes(block, last, added, self.place)

    def _parts(self, added: list[Any], i: int, scans: list[Value]) -> list[bool]:
        """What a list grows by in a round; of each element, whether data decide that it does."""
        rec, name = self.rec, self.names[i]
        for x in added:
            if isinstance(x, ScanList) or (type(x) is Maybe and x.replaces is not False):
                raise _OfDifferentSizes({i})
            value = x.value if type(x) is Maybe else x
            if type(value) in SYMS or type(value) in (int, float, bool):
                value = clew.full((), value)
            if not isinstance(value, Tensor):
                raise ExportError(
                    f"export: {shown(name)} grows by {_kind(value)} in each round of the loop at "
                    f"{self.place}; tensors and numbers are kept"
                )
            scans.append(rec.held(value).value)
            if type(x) is Maybe:
                if None in (sizes_of(value) or ()):  # what stands for it has none of its sizes
                    raise _OfDifferentSizes({i})
                scans.append(rec.held(clew.full((), x.keep)).value)
        return [type(x) is Maybe for x in added]

    def _shapes_of_unbound(self, order: list[int], given: list[Any], grown: Any) -> dict[int, Any]:
        """What variables are after a round that have no value before the loop."""
        rec = self.rec
        missing = [i for i in order if given[i] is UNBOUND]
        if not missing:
            return {}
        with self._inside(Block(), Journal(), [False] * rec.runs):
            trial = list(given)
            for i in grown:
                trial[i] = Appender(self.vals[i], self, i)
                trial[i].count = rec.constant_sym(0)
            self.level = len(rec.blocks)
            got = list(self.body(rec.constant_sym(0), trial))
        found = {}
        for i in missing:
            found[i] = placeholder(rec, got[i])
        return found

    def _after(
        self, node: Node, order: list[int], starts: dict[int, Any], parts: dict[int, list[bool]],
        scans: Any, varying: set[int], unread: int,
    ) -> tuple[Any, ...]:  # fmt: skip
        rec = self.rec
        body = node.blocks[0]
        for p, e in zip(body.params[1:], body.results[1]):
            out = rec.new_value(p.kind, [None] * rec.runs, dtype=p.dtype)
            if p.kind == "tensor":
                sizes = e.sizes if isinstance(e, Value) else ()
                out.sizes = tuple(a if a == b else None for a, b in zip(p.sizes, sizes))
            node.outputs.append(out)
        for s in scans:
            out = rec.new_value("tensor", [None] * rec.runs, dtype=s.dtype)
            out.sizes = (None, *s.sizes)
            node.outputs.append(out)
        with unseen(rec):
            for run in range(rec.runs):
                env = _Env(rec, run)
                for journal in rec.journals:
                    self._note_writes(journal, body)
                try:
                    interpret_loop(node, env, None if rec.active[run] else 1)
                except ExportError:
                    raise
                except UnequalRows as e:
                    if varying and not _writes_outside(body):
                        raise _OfDifferentSizes(varying) from e
                    raise ExportError(
                        f"export: the loop at {self.place} cannot be kept: {e}\n"
                        f"  It appends tensors of different sizes, and writes to tensors from "
                        f"outside of it: append to the list in a loop of its own."
                    ) from e
                except Exception as e:
                    raise ExportError(
                        f"export: the loop at {self.place} cannot be kept: {e}"
                    ) from e
                for o in node.outputs:
                    rec.concrete[o.id][run] = env[o.id]
        rec.emit(node)
        outputs = iter(node.outputs)
        vals = list(self.vals)
        for i in order:
            vals[i] = self._result(starts[i], outputs)
        for i in self.ragged:
            flat, shapes = self._tensor(next(outputs)), self._tensor(next(outputs))
            vals[i] = RaggedList(flat, shapes, True, self.ragged[i].fixed)
        for _ in range(unread):
            next(outputs)
        for i, filtered in parts.items():
            rows, masks = [], []
            for data_decide in filtered:
                rows.append(self._tensor(next(outputs)))
                masks.append(self._tensor(next(outputs)) if data_decide else None)
            first = self.vals[i]
            if isinstance(first, ScanList):
                vals[i] = first + self._grown([], rows, masks)
            else:
                vals[i] = self._grown(list(first), rows, masks)
        return tuple(vals)

    def _grown(self, before: list[Any], rows: list[Tensor], masks: list[Any]) -> ScanList:
        """A list with what the rounds have added."""
        whole = rows[0]
        if len(rows) > 1:
            try:
                whole = clew.stack(rows, 1).flatten(0, 1)
            except RuntimeError as e:
                raise ExportError(
                    f"export: a list grows by tensors of different sizes in a round of the loop at "
                    f"{self.place}: {e}"
                ) from e
        decided = any(m is not None for m in masks)
        if decided:
            one = next(m for m in masks if m is not None)
            masks = [clew.ones_like(one) if m is None else m for m in masks]
            whole = whole[masks[0] if len(rows) == 1 else clew.stack(masks, 1).flatten(0, 1)]
        return ScanList(before, whole, self.rec.shape(whole)[0], decided)

    def _note_writes(self, journal: Journal, body: Block) -> None:
        for n in body.nodes:
            for v in values_in(written(n)):
                runs = self.rec.concrete.get(v.id)
                if runs and all(isinstance(t, Tensor) for t in runs):
                    journal.before_write(runs)


class _OfDifferentSizes(Exception):
    """Lists, by the numbers of their variables, grow by tensors of different sizes."""

    def __init__(self, lists: set[int]) -> None:
        super().__init__()
        self.lists = lists


def _writes_outside(body: Block) -> bool:
    """Whether a round writes to tensors from outside of it: it cannot be tried twice."""
    made: set[int] = set()
    targets: set[int] = set()

    def visit(block: Block) -> None:
        for n in block.nodes:
            made.update(o.id for o in n.outputs)
            targets.update(v.id for v in values_in(written(n)))
            for inner in n.blocks:
                visit(inner)

    visit(body)
    return not targets <= made


def _copied(x: Any) -> Any:
    """Lists and dicts anew, with the same tensors and numbers."""
    if isinstance(x, (tuple, list)) and not isinstance(x, ScanList):
        return made_like(x, [_copied(p) for p in x])
    return {k: _copied(v) for k, v in x.items()} if isinstance(x, dict) else x


class _Env(dict):
    """The values of one run, of which those outside of the loop are the recorder's."""

    def __init__(self, rec: Any, run: int) -> None:
        self._rec, self._run = rec, run

    def __missing__(self, key: int) -> Any:
        return self._rec.concrete[key][self._run]
