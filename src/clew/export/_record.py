"""Recording: a mode that sees every operation, and what stands in for sizes meanwhile.

The program runs once on the example and, call by call beside it, on a second example of other
sizes and values. Python sees the first; a size or an element that may differ between runs is a
symbol (`_symbols`). So a constant that comes from a size cannot pass for one.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

import clew
from clew import _C, Tensor
from clew._base.function_modes import PartsMode
from clew.export import _symbols
from clew.export._arguments import (
    BY_INDEX,
    MAKERS,
    cast_to,
    copied,
    each_tensor,
    equal,
    first_of_each,
    lowered,
    raised,
    same_memory,
    whole_sizes,
)
from clew.export._errors import ExportError, Place, here
from clew.export._ir import Block, Node, Program, Value, values_in
from clew.export._lists import SPLITS, SymIter, has_maybe, joined, split_by
from clew.export._names import (
    added,
    canonical,
    function_of,
    inplace_at,
    written_by,
)
from clew.export._perhaps import implied, known
from clew.export._questions import SPECIAL
from clew.export._stand_ins import StandIns, _shape_of
from clew.export._symbols import SYMS, Poison, Sym, SymBool, SymFloat, SymInt, SymSize, size_of
from clew.export._varying import COUNTED, RESHAPING, flat, loose_sizes

__all__ = ["Recorder"]


# Questions whose answers do not depend on data; the answer is Python's.
_QUESTIONS = {
    *("dim", "ndimension", "is_floating_point", "is_complex", "is_signed", "element_size"),
    *("is_contiguous", "stride", "storage_offset", "is_inference", "is_conj", "get_device"),
    *("_is_contiguous", "_is_dense", "_is_view", "requires_grad_", "retain_grad", "is_same_size"),
    *("__hash__", "__repr__", "__format__", "__dir__", "register_hook", "is_neg", "is_pinned"),
    *("pin_memory", "_hooks_dict", "_post_accumulate_dict", "as_subclass", "data_ptr"),
    *("__setattr__", "__delattr__", "__deepcopy__", "dim_order", "is_shared", "_storage_key"),
}
_LEAVES_AS_NUMPY = {"numpy", "__array__", "_array_view", "__dlpack__", "storage", "untyped_storage"}
_KIND_SYMS = {"int": SymInt, "float": SymFloat, "bool": SymBool}


class Held:
    """A tensor that the recorder knows: its value, and what it is in every run."""

    __slots__ = ("loose", "runs", "value")

    def __init__(self, value: Value, runs: list[Tensor], loose: frozenset[Any]) -> None:
        self.value, self.runs, self.loose = value, runs, loose


class Recorder(StandIns, PartsMode):
    """Records what is called within it.

    Args:
        names: ("param" or "buffer", its name) of the tensors of the model, by id.
        runs: how many examples run side by side.
        keep_added: operations that a program adds are one call; else their parts are recorded.
    """

    def __init__(
        self, names: dict[int, tuple[str, str]], runs: int, keep_added: bool = True
    ) -> None:
        self.runs = runs
        self.keep_added = keep_added
        self.program = Program()
        self.blocks: list[Block] = [self.program.body]
        self.known: dict[int, Held] = {}
        self.concrete: dict[int, list[Any]] = {}  # a value's numbers or tensors, one a run
        self.active = [True] * runs
        self.inside = False
        self.journals: list[Any] = []  # open branches and loops, which note what is written
        self.tries: list[tuple[Any, Place]] = []  # what the open `try` blocks catch
        self.by_data: set[Any] = set()  # pairs of sizes that data decide
        self.control: Any = None
        self.refusal: ExportError | None = None  # raised where the model may have caught it
        self.present: list[set[int]] = [set()]  # conditions that are true where the recording is
        self.merged: dict[int, tuple[Tensor, Tensor]] = {}  # tensors that an `if` chose
        self._names = names
        self._count = 0
        self._patched: list[tuple[dict[str, Any], str, Any]] = []
        self._makers: dict[int, Node] = {}

    # ---- values ----

    def new_value(self, kind: str, concrete: list[Any], **about: Any) -> Value:
        """A value with a number of its own."""
        value = Value(self._count, kind, **about)
        self._count += 1
        self.concrete[value.id] = concrete
        return value

    def tensor_value(
        self,
        tensors: list[Tensor],
        source: tuple[Any, ...] | None = None,
        data: bool = True,
        loose: frozenset[Any] = frozenset(),
    ) -> Value:
        """A value for a tensor, which is known from now on by its first run's object."""
        shapes = [tuple(_shape_of(t)) for t in tensors]
        if any(len(s) != len(shapes[0]) or t.dtype != tensors[0].dtype
               for s, t in zip(shapes, tensors)):  # fmt: skip
            raise ExportError(
                f"export: the number of dims or the dtype depends on data at {here()}: "
                f"{[f'{t.dtype.name}{list(s)}' for s, t in zip(shapes, tensors)]}"
            )
        columns = list(zip(*shapes))
        sizes = tuple(c[0] if len(set(c)) == 1 and c not in loose else None for c in columns)
        value = self.new_value(
            "tensor", tensors, dtype=tensors[0].dtype, sizes=sizes, source=source, data=data
        )
        self.known[id(tensors[0])] = Held(value, tensors, loose)
        return value

    def held(self, tensor: Tensor) -> Held:
        """What is known of a tensor; one that was not seen before is kept with the program."""
        found = self.known.get(id(tensor))
        if found is not None:
            return found
        source: tuple[Any, ...] | None = self._names.get(id(tensor))
        kept = source is not None
        if source is None:
            source = ("constant", f"constant_{len(self.program.tensors)}")
        value = self.tensor_value([tensor] * self.runs, source, data=kept)
        value.name = source[1]
        self.program.kept.append(value)
        self.program.tensors[source[1]] = tensor
        return self.known[id(tensor)]

    def number(
        self, op: str, args: tuple[Any, ...], kind: type[Sym], vals: list[Any], place: Any = None
    ) -> Any:
        """Records a call that gives a number."""
        data = op == "item" or any(type(a) in SYMS and a.value.data for a in args)
        value = self.new_value(kind.kind, vals, data=data)
        self.emit(Node(op, self.stored(args), outputs=[value], place=place or here()))
        return kind(value, vals)

    def constant_sym(self, number: Any) -> Any:
        """A symbol for a plain number."""
        kind = _KIND_SYMS[type(number).__name__]
        value = self.new_value(kind.kind, [number] * self.runs)
        self.emit(Node("alias", (number,), outputs=[value], place=here()))
        return kind(value, [number] * self.runs)

    def stored(self, tree: Any) -> Any:
        """Arguments as a program keeps them."""
        kind = type(tree)
        if kind in SYMS:
            return tree.value
        if isinstance(tree, Tensor):
            return self.held(tree).value
        if kind is SymSize:
            return tuple(self.stored(t) for t in tree)
        if kind is tuple or kind is list:
            return kind(self.stored(t) for t in tree)
        if isinstance(tree, (tuple, list)):
            return tuple(self.stored(t) for t in tree)
        if kind is slice:
            return slice(*(self.stored(t) for t in (tree.start, tree.stop, tree.step)))
        if kind is dict:
            return {k: self.stored(v) for k, v in tree.items()}
        if issubclass(kind, Poison):
            tree._fail()
        if isinstance(tree, np.generic):
            return tree.item()
        if isinstance(tree, _C.Generator) if hasattr(_C, "Generator") else False:
            raise ExportError(f"export: a generator of random numbers cannot be kept, at {here()}")
        return tree

    def in_run(self, tree: Any, run: int) -> Any:
        """Arguments as one run has them."""
        kind = type(tree)
        if kind in SYMS:
            return tree.vals[run]
        if isinstance(tree, Tensor):
            return tree if run == 0 else self.held(tree).runs[run]
        if kind is SymSize:
            return tuple(self.in_run(t, run) for t in tree)
        if kind is tuple or kind is list:
            return kind(self.in_run(t, run) for t in tree)
        if isinstance(tree, (tuple, list)) and not isinstance(tree, _C.Size):
            return tuple(self.in_run(t, run) for t in tree)
        if kind is slice:
            return slice(*(self.in_run(t, run) for t in (tree.start, tree.stop, tree.step)))
        if kind is dict:
            return {k: self.in_run(v, run) for k, v in tree.items()}
        return tree

    def emit(self, node: Node) -> None:
        """Adds a call to the block that is being recorded."""
        self.blocks[-1].nodes.append(node)
        for o in node.outputs:
            self._makers[o.id] = node

    def made_by(self, value: Value) -> Node | None:
        """The call that gave a value; None where there is none, or where the value was written
        to since."""
        node = self._makers.get(value.id)
        if node is not None and value.kind == "tensor":
            return node if self.concrete[value.id][0]._version == 0 else None
        return node

    def guard(self, sym: Any, expected: Any, decides: bool = False) -> None:
        """The program is to check that a number has this value.

        Args:
            decides: the model goes another way where it has another; else it raises there.
        """
        if type(sym) is SymBool and type(expected) is bool:
            self.present[-1] |= implied(self, sym.value, expected)
        node = Node("guard", (self.stored(sym), expected), place=here())
        node.decides = decides
        self.emit(node)

    def may_fail(self, error: BaseException) -> None:
        """Data may raise this exception: no `try` of the model may catch it."""
        for kinds, place in reversed(self.tries):
            if isinstance(error, kinds):
                raise ExportError(
                    f"export: data decides whether {type(error).__name__} is raised at {here()}, "
                    f"and the `try` at {place} catches it\n"
                    f"  Exceptions are not kept: ask for the condition in an `if` instead."
                )

    @staticmethod
    def _may_succeed(error: BaseException, *given: Any) -> bool:
        """Whether a call that fails here may not fail for other sizes, or for other indices."""
        if isinstance(error, (TypeError, NotImplementedError)):
            return False
        places = isinstance(error, IndexError)
        return any(
            v.kind != "tensor"
            or None in v.sizes
            or (places and v.data and v.dtype in (clew.int64, clew.int32))
            for v in values_in(given)
        )

    # ---- calls ----

    def __torch_function__(self, func: Any, types_: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        special = SPECIAL.get(name)
        if special is not None and type(func).__name__ in ("method_descriptor",
                                                          "wrapper_descriptor"):  # fmt: skip
            return special(self, func, args, kwargs)
        found = canonical(func)
        if found is None:
            stand_in = self.stand_ins.get(id(func))
            if stand_in is not None:  # as a method, which no module's table has
                with self:
                    return stand_in(*args, **kwargs)
            if name in _LEAVES_AS_NUMPY and self._depends(args):
                raise ExportError(
                    f"export: values leave as NumPy ({name}) at {here()}; "
                    f"use clew's operations instead"
                )
            if name in _QUESTIONS or not isinstance(func, (types.FunctionType, types.MethodType)):
                return self.quietly(func, args, kwargs)
            with self:  # a function of others: these are recorded
                return func(*args, **kwargs)
        op, reverse = found
        if "::" in op:
            if self.keep_added:
                return self.record(op, func, args, kwargs)
            with self:
                return func._dispatch(args, kwargs)
        if op in ("stack", "cat", "concat") and args and hasattr(args[0], "joined"):
            with self:
                return args[0].joined(op, *args[1:], **kwargs)
        if op in ("stack", "cat", "concat") and args and has_maybe(args[0]):
            with self:
                return joined("stack" if op == "stack" else "cat", *args, **kwargs)
        if op in SPLITS and any(isinstance(a, SymIter) for a in (*args, *kwargs.values())):
            with self:
                return split_by(*args, **kwargs)
        if op in ("eq", "ne") and len(args) == 2 and args[1] is None:
            return func(*args)
        at = inplace_at(op)
        if at is not None:  # the form that writes has a name of its own
            if kwargs.pop("inplace", False) or (len(args) > at and args[at]):
                op = op.rstrip("_") + "_"
                func = function_of(op)
            args = args[:at]
        if reverse:
            args = args[::-1]
            called = function_of(op)
            assert called is not None
            return self.record(op, called, args, kwargs)
        return self.record(op, func, args, kwargs)

    def quietly(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Calls something that is not recorded."""
        before, self.inside = self.inside, True
        try:
            return func(*self.in_run(tuple(args), 0), **self.in_run(kwargs, 0))
        finally:
            self.inside = before

    def _depends(self, args: Any) -> bool:
        for a in args:
            if type(a) in SYMS:
                return True
            if isinstance(a, Tensor):
                known = self.known.get(id(a))
                if known.value.data if known is not None else id(a) in self._names:
                    return True
            elif isinstance(a, (tuple, list)) and self._depends(a):
                return True
        return False

    def record(self, op: str, func: Any, args: Any, kwargs: Any) -> Any:
        """Runs a call in every run and records it."""
        if any(issubclass(type(a), Poison) for a in (*args, *kwargs.values())):
            args, kwargs = known(tuple(args)), known(kwargs)
            self.stored((tuple(args), kwargs))
        if _C._autocasting() and not (op.endswith("_") or op in ("setitem", "Tensor.to", "to")):
            return self._in_autocast(op, func, tuple(args), kwargs)
        place = here()
        stored, named = self.stored(tuple(args)), self.stored(kwargs)
        writes = op == "setitem" or op.endswith("_") or kwargs.get("out") is not None
        if writes and self.journals:
            target = kwargs.get("out") if kwargs.get("out") is not None else args[0]
            for journal in self.journals:
                journal.before_write(self.held(target).runs)
        if "::" in op and self.journals:
            for t in flat(written_by(op, args, kwargs)):
                for journal in self.journals:
                    journal.before_write(self.held(t).runs)
        before, self.inside = self.inside, True
        results: list[Any] = []
        failed: list[int] = []
        try:
            for run in range(self.runs):
                try:
                    results.append(func(*self.in_run(tuple(args), run),
                                        **self.in_run(kwargs, run)))  # fmt: skip
                except Exception as e:
                    if not self.active[run]:
                        failed.append(run)
                        results.append(None)
                        continue
                    if run and self.active[0]:
                        raise ExportError(
                            f"export: {place} fails where sizes or values differ from the "
                            f"example's: {e}\n  A constant that was taken from a size or made in "
                            f"advance is the usual reason."
                        ) from e
                    if self.tries and self._may_succeed(e, stored, named):
                        self.may_fail(e)
                    raise
        finally:
            self.inside = before
        if failed:
            self._stand_in(op, func, args, kwargs, results, failed, place)
        sized = "::" in op and self._sized_by_data(op, args, kwargs, results[0])
        return self._outputs(op, args, kwargs, stored, named, results, place, sized)

    def _in_autocast(self, op: str, func: Any, args: Any, kwargs: Any) -> Any:
        """A call within autocast: what that casts is cast by calls of the program."""
        _, dtype, keeps_casts = _C._autocast_state()
        given = self.in_run(args, 0), self.in_run(kwargs, 0)
        before, self.inside = self.inside, True
        drawn = clew.get_rng_state()
        try:
            wanted = func(*given[0], **given[1])
            _C._set_autocast(False, dtype, keeps_casts)
            for cast in (None, lowered(dtype), raised):
                clew.set_rng_state(drawn)
                with suppress(Exception):
                    made = func(*cast_to(given[0], cast), **cast_to(given[1], cast))
                    if equal(made, wanted):
                        break
            else:
                raise ExportError(
                    f"export: what autocast makes of {op} at {here()} cannot be kept; leave the "
                    f"region, or convert the tensors with to()"
                )
            clew.set_rng_state(drawn)
            self.inside = before

            def recorded(t: Tensor) -> Tensor:
                now = cast(t.dtype) if cast is not None else t.dtype
                if now == t.dtype:
                    return t
                made: Tensor = self.record("Tensor.to", Tensor.to, (t, now), {})
                return made

            args, kwargs = each_tensor(args, recorded), each_tensor(kwargs, recorded)
            result = self.record(op, func, args, kwargs)
            return result
        finally:
            self.inside = before
            _C._set_autocast(True, dtype, keeps_casts)

    def _sized_by_data(self, op: str, args: Any, kwargs: Any, result: Any) -> bool:
        """Whether sizes of what an added operation gives may depend on values, for all we know."""
        from clew._ops.opcheck import fake_results
        from clew.utils._pytree import tree_leaves

        operation = added(op)
        if operation._fake is None:
            return True
        given = self.in_run(tuple(args), 0), self.in_run(kwargs, 0)
        with unseen(self):
            if operation._given_schema is not None:
                given = operation._given_schema.bind(*given)
            return fake_results(operation, *given, tree_leaves(result))[1] > 0

    def _stand_in(
        self, op: str, func: Any, args: Any, kwargs: Any, results: list[Any], failed: list[int],
        place: Place,
    ) -> None:  # fmt: skip
        """A run that is only there to see a branch which it does not take borrows a result."""
        good = [r for run, r in enumerate(results) if run not in failed]
        if not good and op in MAKERS:
            with suppress(Exception):  # of a size that is negative where the branch is not taken
                given = [self.in_run(x, 0) for x in (tuple(args), kwargs)]
                good = [func(*whole_sizes(given[0]), **whole_sizes(given[1]))]
        if not good and op in BY_INDEX:
            # An index that is out of range where the branch is not taken.
            with suppress(Exception):
                for run in failed:
                    given = [self.in_run(x, run) for x in (tuple(args), kwargs)]
                    results[run] = func(*first_of_each(op, given[0]), **given[1])
                return
        if not good:
            raise ExportError(
                f"export: {op} at {place} cannot be run on the example's values, which take the "
                f"other branch; give an example that takes this one"
            )
        for run in failed:
            results[run] = copied(good[0])

    def _outputs(
        self,
        op: str,
        args: Any,
        kwargs: Any,
        stored: Any,
        named: Any,
        results: list[Any],
        place: Place,
        sized: bool = False,
    ) -> Any:
        first = results[0]
        data = self._depends((*args, *named.values())) or bool(self.journals)
        no_grad = not (_C.is_grad_enabled() or (self.outside and self.outside[-1]))
        if first is None:
            self.emit(Node(op, stored, named, place=place, no_grad=no_grad))
            return None
        several = isinstance(first, (tuple, list))
        parts = [list(r) if several else [r] for r in results]
        if op == "unbind" and any(len(p) != len(parts[0]) for p in parts):
            dim = named.get("dim", args[1] if len(args) > 1 else 0)
            with self:
                return SymIter(self.shape(args[0])[dim], lambda i: args[0].select(dim, i))
        if any(len(p) != len(parts[0]) for p in parts) and op in ("split", "ops.split", "chunk"):
            found = self._split(op, args, kwargs)
            if found is not None:
                return found
        if any(len(p) != len(parts[0]) for p in parts):
            raise ExportError(
                f"export: {op} gives as many tensors as a size says ({[len(p) for p in parts]}), "
                f"at {place}; use a loop over range(x.shape[dim]) or a reshape instead"
            )
        if several and op in COUNTED:
            self._guard_count(op, args, kwargs, len(parts[0]))
        if not all(isinstance(t, Tensor) for t in parts[0]):
            if "::" in op:
                raise ExportError(f"export: {op} gives more than tensors, at {place}")
            return first
        with unseen(self):
            loose = loose_sizes(self, op, args, kwargs, parts, sized)
        outputs = []
        shares = False
        given = next((a for a in args if isinstance(a, Tensor)), None)
        if not several and id(parts[0][0]) in self.known and op in RESHAPING:
            if loose or any(type(a) in SYMS for a in flat([*args, kwargs])):
                # The same sizes here are other ones elsewhere.
                with unseen(self):
                    parts = [[t.view_as(t)] for (t,) in parts]
                first = parts[0][0]
        for column in zip(*parts):
            if id(column[0]) in self.known and not several:
                if op.endswith("_") or named.get("out") is not None:
                    break
                return column[0]  # the argument itself: nothing was done
            if given is not None and op not in ("Tensor.clone",):
                shares |= same_memory(column[0], given)
            outputs.append(self.tensor_value(list(column), data=data, loose=loose))
        node = Node(
            op, stored, named, outputs, place=place, shares=shares, no_grad=no_grad, several=several
        )
        self.emit(node)
        return first

    def _split(self, op: str, args: Any, kwargs: Any) -> SymIter | None:
        """As many parts as a size says, of which the last may be shorter."""
        x = args[0]
        given = {**dict(zip(COUNTED[op], args[1:])), **kwargs}
        dim = given.get("dim", 0)
        part: Any = given.get(
            "chunks", given.get("split_size", given.get("split_size_or_sections"))
        )
        if isinstance(part, (tuple, list)) or type(dim) is not int:
            return None
        with self:
            length = self.shape(x)[dim]
            if op == "chunk":
                part = _symbols.compute("max", max, ((length + (part - 1)) // part, 1))
            count = _symbols.compute("max", max, ((length + (part - 1)) // part, 1))

        def item(i: Any) -> Tensor:
            left = length - i * part
            size = _symbols.compute("min", min, (part, left))
            made: Tensor = x.narrow(dim, i * part, size)
            return made

        return SymIter(count, item)

    def _guard_count(self, op: str, args: Any, kwargs: Any, count: int) -> None:
        """The program checks that a size that varies gives as many parts."""
        x = args[0]
        given = {**dict(zip(COUNTED[op], args[1:])), **kwargs}
        dim = given.get("dim", 0)
        if not isinstance(x, Tensor) or type(dim) is not int:
            return
        known = self.held(x)
        if known.value.sizes[dim] is not None:
            return
        size = self.size(known, dim % len(known.value.sizes))
        decides = len(set(size.vals)) == 1 or tuple(size.vals) in self.by_data
        if op == "unbind":
            self.guard(size, count, decides)
            return
        part: Any = given.get(
            "chunks", given.get("split_size", given.get("split_size_or_sections"))
        )
        if isinstance(part, (tuple, list)):
            return
        if op == "chunk":
            part = _symbols.compute("max", max, ((size + (part - 1)) // part, 1))
        parts = (size + (part - 1)) // part
        if type(parts) in SYMS:
            self.guard(_symbols.compute("max", max, (parts, 1)), count, decides)

    @staticmethod
    def plain_shape(tensor: Tensor) -> tuple[int, ...]:
        """The sizes of a tensor of one run."""
        return tuple(_shape_of(tensor))

    # ---- sizes and elements ----

    def shape(self, tensor: Tensor) -> Any:
        """What ``tensor.shape`` is to the program."""
        sizes = _shape_of(tensor)
        known = self.known.get(id(tensor))
        if known is None:
            return sizes
        value = known.value
        if None not in value.sizes:
            return sizes
        found = [n if n is not None else self.size(known, d) for d, n in enumerate(value.sizes)]
        return size_of(found)

    def size(self, known: Held, dim: int) -> Any:
        """One size that varies."""
        vals = [int(_shape_of(t)[dim]) for t in known.runs]
        return self.number("size", (known.runs[0], dim), SymInt, vals)

    def item(self, tensor: Tensor, place: Place | None = None) -> Any:
        """An element as a number."""
        before, self.inside = self.inside, True
        try:
            known = self.known.get(id(tensor))
            if not self._depends((tensor,)):
                return _ITEM(tensor)
            known = self.held(tensor)
            vals = [_ITEM(t) for t in known.runs]
        finally:
            self.inside = before
        kind = type(vals[0]).__name__
        if kind not in _KIND_SYMS:
            raise ExportError(f"export: a {kind} becomes a Python number at {here()}")
        return self.number("item", (tensor,), _KIND_SYMS[kind], vals, place)

    def __enter__(self) -> Recorder:
        super().__enter__()
        return self


@contextmanager
def unseen(rec: Recorder) -> Iterator[None]:
    """Within it nothing is recorded, and sizes are those of the first run."""
    from clew._base.overriding import _state

    modes, _state.modes = _state.modes, []
    before, rec.inside = rec.inside, True
    try:
        yield
    finally:
        _state.modes, rec.inside = modes, before


_ITEM = vars(Tensor)["item"]
