"""One value of what a variable is after either branch."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew.export._errors import ExportError, Place
from clew.export._ir import Node, Value
from clew.export._journal import UNBOUND, _is_number, _kind, _same, shown
from clew.export._lists import ScanList
from clew.export._perhaps import Perhaps
from clew.export._record import Recorder, unseen
from clew.export._stand_ins import _shape_of
from clew.export._symbols import SYMS, Poison, SymBool, SymFloat, SymInt

__all__ = ["ELEMENT", "KINDS", "Merger"]

ELEMENT = "the element that a list grows by"

KINDS = {"int": SymInt, "float": SymFloat, "bool": SymBool}


class Merger:
    """Makes one value of what a variable is after either branch."""

    def __init__(self, rec: Recorder, node: Node, takes: list[bool], place: Place) -> None:
        self.rec, self.node, self.takes, self.place = rec, node, takes, place
        self._present: dict[Any, Any] = {}

    def merge(self, a: Any, b: Any, name: str) -> Any:
        """The variable's value after the `if`."""
        if a is b:
            return a
        a, b = (x.item() if isinstance(x, np.generic) else x for x in (a, b))
        if (name.startswith("_clew_value") or name == ELEMENT) and (a is UNBOUND or b is UNBOUND):
            # A value to return, where nothing is returned: anything of its kind will do.
            from clew.export._carried import placeholder

            block = self.node.blocks[0 if a is UNBOUND else 1]
            self.rec.blocks.append(block)
            try:
                stand_in = placeholder(self.rec, b if a is UNBOUND else a)
            finally:
                self.rec.blocks.pop()
            a, b = (stand_in, b) if a is UNBOUND else (a, stand_in)
        ta, tb = isinstance(a, Tensor), isinstance(b, Tensor)
        if ta and tb:
            return self._tensors(a, b, name)
        na, nb = _is_number(a), _is_number(b)
        if na and nb:
            if type(a) not in SYMS and type(b) not in SYMS and type(a) is type(b) and a == b:
                return a
            return self._numbers(a, b, name)
        if (ta and nb) or (na and tb):
            like = a if ta else b
            block = self.node.blocks[1 if ta else 0]
            self.rec.blocks.append(block)
            try:
                number = b if ta else a
                made = clew.full((), number, dtype=like.dtype).expand(like.shape)
            finally:
                self.rec.blocks.pop()
            return self._tensors(a if ta else made, made if ta else b, name)
        if any(isinstance(x, ScanList) for x in (a, b)) and isinstance(a, list):
            if isinstance(b, list):
                return self._lists(a, b, name)
        for kind in (tuple, list):
            if isinstance(a, kind) and isinstance(b, kind) and len(a) == len(b):
                parts = [self.merge(x, y, name) for x, y in zip(a, b)]
                if type(a) is type(b) and hasattr(a, "_fields"):
                    return type(a)(*parts)
                return parts if kind is list else tuple(parts)
        if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
            return {k: self.merge(a[k], b[k], name) for k in a}
        if dataclasses.is_dataclass(a) and type(a) is type(b) and not isinstance(a, type):
            fields = [f.name for f in dataclasses.fields(a) if f.init]
            merged = {f: self.merge(getattr(a, f), getattr(b, f), name) for f in fields}
            return dataclasses.replace(a, **merged)
        if {type(None), Perhaps} & {type(a), type(b)} and name != ELEMENT:
            found = self._perhaps(a, b, name)
            if found is not None:
                return found
        if not _is_number(a) and not ta and type(a) is type(b) and _same(a, b):
            return a
        if name == "the function's result" or name.startswith("the result"):
            raise ExportError(
                f"export: {name} is {_kind(a)} in one branch and {_kind(b)} in the other, of the "
                f"`if` at {self.place}; give both the same structure, of tensors and numbers"
            )
        return Poison(
            f"export: {shown(name)} is {_kind(a)} after one branch and {_kind(b)} after the other, "
            f"of the `if` at {self.place}; give it a value of one kind before the `if`"
        )

    def _perhaps(self, a: Any, b: Any, name: str) -> Any:
        """A variable that may be None; None where it is neither that nor a tensor or a number."""
        values: list[Any] = []
        present: list[Any] = []
        for x in (a, b):
            inner = x.value if type(x) is Perhaps else UNBOUND if x is None else x
            if inner is not UNBOUND and not isinstance(inner, Tensor) and not _is_number(inner):
                return None
            values.append(inner)
            present.append(x.present if type(x) is Perhaps else x is not None)
        takes = self.takes
        if (
            UNBOUND in values
        ):  # nobody reads it where it is None: the example's sizes are the others
            self.takes = [values[1] is UNBOUND] * len(takes)
        value = self.merge(values[0], values[1], ELEMENT)
        self.takes = takes
        if isinstance(value, Poison):
            return value
        key = tuple(p.value.id if type(p) in SYMS else p for p in present)
        if key not in self._present:  # variables that are None together
            self._present[key] = self._numbers(present[0], present[1], name)
        return Perhaps(value, self._present[key], name, self.place)

    def _lists(self, a: list[Any], b: list[Any], name: str) -> Any:
        """A list that a loop of a branch has filled."""
        from clew.export._carried import placeholder
        from clew.export._ragged import RaggedList, common

        ragged = next((x for x in (a, b) if isinstance(x, RaggedList)), None)
        if ragged is not None:
            parts = []
            dims = int(self.rec.plain_shape(ragged.shapes)[1])
            for k, x in enumerate((a, b)):
                self.rec.blocks.append(self.node.blocks[k])
                try:
                    x = RaggedList.of(x, ragged.flat.dtype, dims)
                finally:
                    self.rec.blocks.pop()
                parts.append(x)
            flat, shapes = (
                self._tensors(getattr(parts[0], n), getattr(parts[1], n), name)
                for n in ("flat", "shapes")
            )
            return RaggedList(flat, shapes, True, common(x.fixed for x in parts))
        rows: list[Any] = [None, None]
        full = 0 if isinstance(a, ScanList) else 1
        for k in (full, 1 - full):
            x = (a, b)[k]
            self.rec.blocks.append(self.node.blocks[k])
            try:
                if not isinstance(x, ScanList):
                    x = ScanList(x, placeholder(self.rec, rows[full]), 0)
                rows[k] = x.all_rows()
            finally:
                self.rec.blocks.pop()
        made = self._tensors(rows[0], rows[1], name)
        if isinstance(made, Poison):
            return made
        return ScanList([], made, None, True)

    def _tensors(self, a: Tensor, b: Tensor, name: str) -> Any:
        rec = self.rec
        ha, hb = rec.held(a), rec.held(b)
        if a.dtype != b.dtype or a.dim() != b.dim():
            return Poison(
                f"export: {shown(name)} is {a.dtype.name} of {a.dim()} dims after one branch and "
                f"{b.dtype.name} of {b.dim()} dims after the other, of the `if` at {self.place}; "
                f"give both the same dtype and number of dims"
            )
        runs = []
        with unseen(rec):
            for run, taken in enumerate(self.takes):
                source = ha.runs[run] if taken else hb.runs[run]
                runs.append(source.detach() if source.requires_grad else source.view_as(source))
            columns = [tuple(_shape_of(h.runs[r]) for r in range(rec.runs)) for h in (ha, hb)]
            loose = set(ha.loose | hb.loose)
            for ca, cb in zip(zip(*columns[0]), zip(*columns[1])):
                if ca != cb:
                    loose |= {ca, cb, tuple(
                        x if t else y for x, y, t in zip(ca, cb, self.takes))}  # fmt: skip
            value = rec.tensor_value(runs, loose=frozenset(c for c in loose if len(set(c)) == 1))
        self._output(value, ha.value, hb.value)
        rec.merged[id(runs[0])] = (a, b)
        return runs[0]

    def _numbers(self, a: Any, b: Any, name: str) -> Any:
        rec = self.rec
        kinds = [x.kind if type(x) in SYMS else type(x).__name__ for x in (a, b)]
        kind = kinds[0] if kinds[0] == kinds[1] else _wider(*kinds)
        vals = []
        cast = {"int": int, "float": float, "bool": bool}[kind]
        for run, taken in enumerate(self.takes):
            source = a if taken else b
            vals.append(cast(source.vals[run] if type(source) in SYMS else source))
        value = rec.new_value(kind, vals)
        sides = [rec.stored(x) if type(x) in SYMS else cast(x) for x in (a, b)]
        for k, side in enumerate(sides):
            if isinstance(side, Value) and side.kind != kind:
                made = rec.new_value(kind, [cast(v) for v in rec.concrete[side.id]])
                self.node.blocks[k].nodes.append(
                    Node(f"py.{kind}", (side,), outputs=[made], place=self.place)
                )
                sides[k] = made
        self._output(value, *sides)
        return KINDS[kind](value, vals)

    def _output(self, value: Value, a: Any, b: Any) -> None:
        self.node.outputs.append(value)
        self.node.blocks[0].results.append(a)
        self.node.blocks[1].results.append(b)


def _wider(a: str, b: str) -> str:
    return "float" if "float" in (a, b) else "int"
