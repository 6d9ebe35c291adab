"""Variables that a loop carries: what they are made of, how a round takes and gives them."""

from __future__ import annotations

import dataclasses
from typing import Any

import clew
from clew import Tensor
from clew.export._errors import here
from clew.export._ir import Value
from clew.export._journal import KindChanges, _is_number, _kind, shown
from clew.export._lists import ScanList
from clew.export._perhaps import Perhaps
from clew.export._record import Held, Recorder, unseen
from clew.export._stand_ins import _shape_of
from clew.export._symbols import SYMS, Poison

_SYMS = {"int": SYMS[0], "float": SYMS[1], "bool": SYMS[2]}


def made_like(x: Any, parts: list[Any]) -> Any:
    """A list or a tuple of the same kind."""
    return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)


def is_record(x: Any) -> bool:
    """Whether something is an object of a dataclass."""
    return dataclasses.is_dataclass(x) and not isinstance(x, type)


def fields_of(x: Any) -> dict[str, Any]:
    """What a dataclass is made of."""
    return {f.name: getattr(x, f.name) for f in dataclasses.fields(x) if f.init}


def structured(x: Any) -> bool:
    """Whether something is a value that is kept, or holds some."""
    return kept(x) or isinstance(x, (tuple, list, dict, Poison)) or is_record(x)


def kept(x: Any) -> bool:
    """Whether something is a tensor or a number."""
    return isinstance(x, Tensor) or _is_number(x)


def placeholder(rec: Recorder, like: Any) -> Any:
    """Something of the same kind that stands for no value."""
    if isinstance(like, ScanList):
        return Poison(
            f"export: a list that grew in a loop, and was made in another one, is read after that, "
            f"at {here()}; carry what is needed in a tensor"
        )
    if isinstance(like, Tensor):
        fixed = [n or 0 for n in rec.held(like).value.sizes]
        return rec.record("placeholder", clew.zeros, (fixed,), {"dtype": like.dtype})
    if _is_number(like):
        kind = like.kind if type(like) in SYMS else type(like).__name__
        return {"int": 0, "float": 0.0, "bool": False}[kind]
    if isinstance(like, (tuple, list)):
        return made_like(like, [placeholder(rec, x) for x in like])
    if is_record(like):
        return dataclasses.replace(
            like, **{f: placeholder(rec, v) for f, v in fields_of(like).items()}
        )
    if isinstance(like, dict):
        return {k: placeholder(rec, v) for k, v in like.items()}
    if type(like) is Perhaps:
        return Perhaps(placeholder(rec, like.value), False, like.name, like.place)
    return like


class Carried:
    """The part of a loop that records its variables."""

    rec: Recorder
    place: Any
    inits: list[Any]  # what the parameters are before the first round
    params: list[Value]

    def _param(self, x: Any, key: Any, loose: dict[Any, Any]) -> Any:
        """A variable inside the loop."""
        rec = self.rec
        if isinstance(x, Tensor):
            held = rec.held(x)
            with unseen(rec):
                runs = [t.detach() for t in held.runs]
                columns = list(zip(*(tuple(_shape_of(t)) for t in runs)))
                marks = set(held.loose) | {columns[d] for d in loose.get(key, ())}
                value = rec.tensor_value(
                    runs, source=("block",), loose=frozenset(c for c in marks if len(set(c)) == 1)
                )
                if loose.get(key):
                    value.sizes = tuple(
                        None if d in loose[key] else n for d, n in enumerate(value.sizes)
                    )
            self.inits.append(held.value)
            self.params.append(value)
            return runs[0]
        if _is_number(x):
            vals = list(x.vals) if type(x) in SYMS else [x] * rec.runs
            kind = x.kind if type(x) in SYMS else type(x).__name__
            value = rec.new_value(kind, vals, source=("block",))
            self.inits.append(x.value if type(x) in SYMS else x)
            self.params.append(value)
            return _SYMS[kind](value, vals)
        if isinstance(x, (tuple, list)) and not isinstance(x, ScanList):
            return made_like(x, [self._param(p, (key, k), loose) for k, p in enumerate(x)])
        if is_record(x):
            fields = fields_of(x)
            parts = {f: self._param(v, (key, k), loose) for k, (f, v) in enumerate(fields.items())}
            return dataclasses.replace(x, **parts)
        if isinstance(x, dict):
            return {k: self._param(v, (key, k), loose) for k, v in x.items()}
        if type(x) is Perhaps:
            value = self._param(x.value, (key, 0), loose)
            return Perhaps(value, self._param(x.present, (key, 1), loose), x.name, x.place)
        return x

    def _end(self, start: Any, end: Any, name: str, ends: list[Any]) -> None:
        """What a variable is at the end of a round, which must be of the same kind."""
        rec = self.rec
        if isinstance(start, Tensor) and isinstance(end, Tensor):
            if start.dtype != end.dtype or start.dim() != end.dim():
                raise KindChanges(
                    f"export: {shown(name)} is {start.dtype.name} of {start.dim()} dims before a "
                    f"round of the loop at {self.place} and {end.dtype.name} of {end.dim()} dims "
                    f"after it; give it the same dtype and number of dims before the loop"
                )
            ends.append(rec.held(end).value)
            return
        if _is_number(start) and _is_number(end):
            kind = start.kind if type(start) in SYMS else type(start).__name__
            other = end.kind if type(end) in SYMS else type(end).__name__
            if kind != other and (kind, other) != ("float", "int"):
                raise KindChanges(
                    f"export: {shown(name)} is of type {kind} before a round of the loop at "
                    f"{self.place} and {other} after it; give it that type before the loop"
                )
            if kind != other:
                end = end.same(float) if type(end) in SYMS else float(end)
            ends.append(rec.stored(end))
            return
        scans = isinstance(start, ScanList) or isinstance(end, ScanList)
        if isinstance(start, (tuple, list)) and isinstance(end, (tuple, list)) and not scans:
            if len(start) == len(end):
                for a, b in zip(start, end):
                    self._end(a, b, name, ends)
                return
        elif isinstance(start, dict) and isinstance(end, dict) and start.keys() == end.keys():
            for k in start:
                self._end(start[k], end[k], name, ends)
            return
        elif type(start) is Perhaps and (type(end) is Perhaps or end is None or kept(end)):
            there = end.present if type(end) is Perhaps else end is not None
            value = end.value if type(end) is Perhaps else start.value if end is None else end
            self._end(start.value, value, name, ends)
            self._end(start.present, there, name, ends)
            return
        elif Perhaps in (type(start), type(end)):
            pass
        elif is_record(start) and type(start) is type(end):
            for a, b in zip(fields_of(start).values(), fields_of(end).values()):
                self._end(a, b, name, ends)
            return
        elif start is end or type(end) is Poison or type(start) is Poison:
            return
        elif not isinstance(end, (Tensor, tuple, list, dict)) and not _is_number(end):
            return
        raise KindChanges(
            f"export: {shown(name)} is {_kind(start)} before a round of the loop at {self.place} "
            f"and {_kind(end)} after it. A loop whose length varies keeps variables of one kind, "
            f"and lists that grow by append()."
        )

    def _tensor(self, o: Value) -> Tensor:
        rec = self.rec
        with unseen(rec):
            runs = [t.detach() for t in rec.concrete[o.id]]
            rec.concrete[o.id] = runs
            columns = list(zip(*(tuple(_shape_of(t)) for t in runs)))
            loose = {c for c, n in zip(columns, o.sizes) if n is None and len(set(c)) == 1}
            rec.known[id(runs[0])] = Held(o, runs, frozenset(loose))
        result: Tensor = runs[0]
        return result

    def _result(self, start: Any, outputs: Any) -> Any:
        if isinstance(start, Tensor):
            return self._tensor(next(outputs))
        if _is_number(start):
            o = next(outputs)
            kind = {"int": int, "float": float, "bool": bool}[o.kind]
            vals = [kind(v) for v in self.rec.concrete[o.id]]
            return _SYMS[o.kind](o, vals)
        if isinstance(start, (tuple, list)) and not isinstance(start, ScanList):
            return made_like(start, [self._result(s, outputs) for s in start])
        if is_record(start):
            made = {f: self._result(v, outputs) for f, v in fields_of(start).items()}
            return dataclasses.replace(start, **made)
        if isinstance(start, dict):
            return {k: self._result(v, outputs) for k, v in start.items()}
        if type(start) is Perhaps:
            value = self._result(start.value, outputs)
            return Perhaps(value, self._result(start.present, outputs), start.name, start.place)
        return start
