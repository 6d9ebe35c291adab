"""Records a model as a program, which is proved before it is handed out."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew._scripted import leaves_of
from clew._tensor.structured import Structured
from clew.export import _tree
from clew.export._changing import refuse_changing
from clew.export._control import Control
from clew.export._errors import ExportError, is_library, raised_at
from clew.export._generators import deciding
from clew.export._inline import inlined, program_of
from clew.export._ir import Program, prune
from clew.export._listing import name_values
from clew.export._module import parameters_of, rest_name, run_names
from clew.export._perhaps import Perhaps, known
from clew.export._program import ExportedProgram
from clew.export._prove import SEED, difference_of, is_leaf, prove
from clew.export._record import Recorder
from clew.export._shapes import Sizes, examples, read_shapes
from clew.export._stand_ins import _shape_of
from clew.export._state import State, quiet_state
from clew.export._symbols import SYMS
from clew.nn import Module

__all__ = ["export", "record"]

_MOST_PARTS = 64  # sets of equal sizes that are tried as one size


class FunctionModule(Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        return self._function(*args, **kwargs)


def export(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Records a model as a program that runs without its source.

    `if`, `while` and `for` of the model's own functions that data or a varying size decides stay
    what they are. What cannot be kept raises, with the line. The program is run on the example
    and on others of other sizes and values and compared with the model before it is returned.

    Args:
        mod: a Module.
        args: a tuple of its arguments: tensors, numbers, and tuples, lists and dicts of them.
            Numbers, strings and None become part of the program.
        kwargs: named arguments.
        dynamic_shapes: which sizes may vary: a dict by argument, or a tuple, of dicts by dim (or
            tuples for all dims) of `Dim`, `Dim.AUTO` or None. Without it all sizes are fixed.
        strict: both ways are one here.
        preserve_module_call_signature: must be empty.
        prefer_deferred_runtime_asserts_over_guards: conditions are always checked when the program
            runs.

    Returns:
        the program: ``program.module()`` runs it.

    Raises:
        ExportError: something in the model cannot be kept; the line and a way round it are named.

    >>> model = clew.nn.Linear(3, 2)
    >>> batch = clew.export.Dim("batch")
    >>> program = clew.export.export(model, (clew.ones(4, 3),), dynamic_shapes=({0: batch},))
    >>> program.module()(clew.ones(9, 3)).shape
    clew.Size([9, 2])
    """
    if not isinstance(mod, Module):
        raise ValueError(f"export: expected a Module as the first argument; got {type(mod)}")
    if preserve_module_call_signature:
        raise ExportError("export: preserve_module_call_signature is not supported")
    if not isinstance(args, tuple):
        raise ValueError(f"export: args must be a tuple; got {type(args).__name__}")
    return record(mod, args, kwargs or {}, dynamic_shapes)


def record(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any = None,
    keep_added: bool = True,
) -> ExportedProgram:
    """Exports a Module or a function.

    Args:
        model: what is called.
        args: its arguments.
        kwargs: its named arguments.
        dynamic_shapes: as for export().
        keep_added: operations that a program adds are one call; else their parts are recorded.
    """
    module = model if isinstance(model, Module) else FunctionModule(model)
    called = model.forward if isinstance(model, Module) else model
    names = run_names(called)
    leaves: list[Any] = []
    spec = [
        "tuple",
        [
            _tree.flatten(tuple(args), leaves, "an argument", _tree.is_tensor),
            _tree.flatten(dict(kwargs), leaves, "an argument", _tree.is_tensor),
        ],
    ]
    for leaf in leaves:
        if isinstance(leaf, Structured):
            raise ExportError(
                f"export: arguments must be dense tensors; got one of {leaf.layout}; export a "
                "model of dense tensors"
            )
    names += [f"arg{i}" for i in range(len(names), len(args))]
    marks = read_shapes(dynamic_shapes, args, kwargs, names, rest_name(called))
    with quiet_state(module) as state:
        runner = _Runner(module, spec, state, keep_added)
        first = [x.detach().clone() for x in leaves]
        second, sizes = runner.second(first, marks)
        program, second = _record_varying(runner, first, second, sizes)
        program.in_tree, program.dims = spec, sizes.labels()
        program.ranges = {n: sizes.bounds[n] for n in sizes.now}
        program.training = bool(module.training)
        program.input_names = names
        for v, name in zip(program.inputs, _leaf_names(spec, names)):
            v.name = name
        prune(program)
        _keep_state(program, module)
        name_values(program)
        made = ExportedProgram(program, (tuple(args), dict(kwargs)))
        made._examples = list(prove(runner, program, first, second, sizes))
        again = _record_listing(runner, first, second)
        prune(again)
        refuse_changing(program, again)
    return made


def _keep_state(program: Program, module: Module) -> None:
    """All parameters and buffers of the model belong to the program: what it does not read is in
    its state_dict all the same."""
    for path, part in module.named_modules(remove_duplicate=False):
        for kind, table in (("param", part._parameters), ("buffer", part._buffers)):
            for last, t in table.items():
                name = f"{path}.{last}" if path else last
                if t is None or (name not in program.tensors and t.layout is not clew.strided):
                    continue
                program.tensors.setdefault(name, t)
                program.state.append((kind, name))
                if last in part._non_persistent_buffers_set:
                    program.transient.add(name)


def _leaf_names(spec: Any, names: list[str]) -> list[str]:
    found: list[str] = []

    def visit(s: Any, name: str) -> None:
        if s[0] == "leaf":
            found.append(name)
        elif s[0] == "dict":
            for k, part in zip(s[1], s[2]):
                visit(part, f"{name}_{k}" if name else str(k))
        elif s[0] != "constant":
            parts = s[3] if s[0] == "named" else s[1]
            for i, part in enumerate(parts):
                visit(part, f"{name}_{i}")

    for part, name in zip(spec[1][0][1], names):
        visit(part, name)
    visit(spec[1][1], "")
    return found


def _keep_buffers(runner: _Runner, rec: Recorder, result: Any) -> Any:
    """Where forward() assigned another tensor of the same size to a buffer, copies its values into
    the buffer. Parts of the result that lie in the buffer's memory are cloned before; returns the
    result."""
    replaced = []
    for name, old, now in runner.state.replaced():
        if isinstance(now, Tensor) and now is not old:
            a, b = rec.held(old), rec.held(now)
            shapes = {tuple(_shape_of(t)) for t in (*a.runs, *b.runs)}
            if len(shapes) == 1 and now.dtype == old.dtype and not b.loose:
                replaced.append((old, now.clone()))
                runner.copied.add(name)
    if not replaced:
        return result
    memory = {old._storage_key() for old, _ in replaced}

    def kept(x: Any) -> Any:
        if isinstance(x, Tensor):
            return x.clone() if x._storage_key() in memory else x
        if isinstance(x, dict):
            return {k: kept(v) for k, v in x.items()}
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*map(kept, x))
        return type(x)(map(kept, x)) if type(x) in (tuple, list) else x

    result = kept(result)
    with clew.no_grad():
        for old, now in replaced:
            old.copy_(now)
    return result


class _Runner:
    """Runs the model as it is, on copies."""

    copied: set[str]  # attributes that the program keeps though they are assigned

    def __init__(self, module: Module, spec: Any, state: State, keep_added: bool) -> None:
        self.module, self.spec, self.state = module, spec, state
        self.restore = state.restore
        self.keep_added = keep_added
        self.results: dict[int, Any] = {}
        self._asked: dict[Any, list[Tensor] | None] = {}  # for sizes that vary alone

    def __call__(self, tensors: list[Tensor]) -> Any:
        self.restore()
        try:
            return self._run(tensors)
        finally:
            self.restore()

    def _run(self, tensors: list[Tensor]) -> Any:
        clew.manual_seed(SEED)
        args, kwargs = _tree.build(self.spec, iter([t.detach().clone() for t in tensors]))
        with clew.no_grad():
            return self.module(*args, **kwargs)

    def carries(self, first: list[Tensor], second: list[Tensor]) -> list[str]:
        """Attributes by which one run of the model changes the next; buffers that are written in
        place are no such."""
        self.restore()
        try:
            self._run(first)
            self.state.restore_buffers()
            changed = [n for n in self.state.changed() if n not in self.copied]
            if not changed:
                return []
            try:
                again = self._run(second)
            except Exception:
                return changed
        finally:
            self.restore()
        alone: list[Any] = []
        after: list[Any] = []
        if id(second) not in self.results:
            self.results[id(second)] = self(second)
        _tree.flatten(self.results[id(second)], alone, "the result", is_leaf)
        _tree.flatten(again, after, "the result", is_leaf)
        same = len(alone) == len(after) and not any(map(difference_of, alone, after))
        return [] if same else changed

    def second(
        self, first: list[Tensor], marks: list[dict[int, Any]]
    ) -> tuple[list[Tensor], Sizes]:
        """An example of other sizes and values that the model accepts, and what varies in it;
        sizes of Dim.AUTO that the model does not let vary are fixed."""
        rng = np.random.default_rng(SEED)
        self.results[id(first)] = self(first)
        sizes = Sizes(first, marks)
        found = self._accepted(first, sizes, rng)
        if found is None and sizes.hints:
            alone = self._alone(first, sizes, rng)
            sizes = Sizes(first, marks, self._tied(first, marks, sizes, alone, rng))
            sizes.without(sizes.hints - self._alone(first, sizes, rng, broadcast=False))
            found = self._accepted(first, sizes, rng)
            if found is None:
                kept: set[str] = {n for n in sizes.now if n not in sizes.hints}
                # A size of 1 may vary only because that is broadcast: it comes last.
                for n in sorted(sizes.hints & set(sizes.now), key=lambda n: (sizes.now[n] == 1, n)):
                    if self._accepted(first, sizes, rng, kept | {n}, broadcast=False) is not None:
                        kept.add(n)
                sizes.without(sizes.hints - kept)
                found = self._accepted(first, sizes, rng)
        if found is None and sizes.now:
            raise ExportError(
                f"export: the model fails for every other size of {sorted(sizes.now)} that was "
                f"tried: {self._why}\n  Take the dim out of dynamic_shapes, or give its Dim the "
                f"min and max between which it may lie."
            )
        return (found if found is not None else [t.clone() for t in first]), sizes

    def _alone(
        self, first: list[Tensor], sizes: Sizes, rng: Any, among: set[str] | None = None,
        broadcast: bool = True,
    ) -> set[str]:  # fmt: skip
        """Sizes of Dim.AUTO that may vary while all others stay."""
        names = sorted(sizes.hints if among is None else among)
        return {n for n in names if self._accepted(first, sizes, rng, {n}, broadcast) is not None}

    def _tied(
        self, first: list[Tensor], marks: Any, sizes: Sizes, alone: set[str], rng: Any
    ) -> dict[tuple[int, int], int]:
        """Places of Dim.AUTO whose sizes vary together, and not apart: the batch of two tensors,
        and not the height and the width of a square image."""
        tied: dict[tuple[int, int], int] = {}

        def tie(names: set[str]) -> bool:
            """Whether these sizes may vary together. If so, makes them one size."""
            places = sizes.places(names)
            if len(places) < 2:
                return False
            one = Sizes(first, marks, dict.fromkeys(places, 0))
            (name,) = {one.of[i][d][0] for i, d in places}
            if self._accepted(first, one, rng, {name}, broadcast=size == 1) is None:
                return False
            tied.update(dict.fromkeys(places, len(tied)))
            return True

        for size in sorted({sizes.now[n] for n in sizes.hints}):
            group = {n for n in sizes.hints if sizes.now[n] == size}
            # Alone, a size may vary to 1 or from 1 only because that is broadcast.
            apart = self._accepted(first, sizes, rng, group, broadcast=size == 1)
            if group <= alone and apart is not None:
                continue
            # Dims of one number belong together more often than others of the same size.
            for d in range(max(t.dim() for t in first)):
                same = {n for n in group if sizes.places({n})[0][1] == d}
                apart = self._accepted(first, sizes, rng, same, broadcast=size == 1)
                if apart is None and tie(same):
                    group -= same
            if size != 1:
                group -= self._alone(first, sizes, rng, group, broadcast=False)
            if tie(group):
                continue
            parts = [set(p) for k in range(len(group) - 1, 1, -1) for p in combinations(group, k)]
            for part in sorted(parts, key=lambda p: (-len(p), sorted(p)))[:_MOST_PARTS]:
                if part <= group and tie(part):
                    group -= part
        return tied

    def again(self, first: list[Tensor], sizes: Sizes) -> list[Tensor]:
        """Another such example, for fewer sizes."""
        found = self._accepted(first, sizes, np.random.default_rng(SEED))
        return found if found is not None else [t.clone() for t in first]

    def _accepted(
        self, first: list[Tensor], sizes: Sizes, rng: Any, only: set[str] | None = None,
        broadcast: bool = True,
    ) -> list[Tensor] | None:  # fmt: skip
        """An example of other sizes that the model accepts.

        Args:
            only: the sizes that are others; None are all.
            broadcast: a size may become 1, which may be accepted for that reason alone.
        """
        groups = [frozenset(sizes.places({n})) for n in (only or ())]
        key = (frozenset(groups), broadcast) if only is not None else None
        if key not in self._asked or key is None:
            self._asked[key] = self._first_accepted(first, sizes, rng, only, broadcast)
        return self._asked[key]

    def _first_accepted(
        self, first: list[Tensor], sizes: Sizes, rng: Any, only: set[str] | None, broadcast: bool
    ) -> list[Tensor] | None:
        for tried in examples(first, sizes, rng, only=only):
            if sizes.now and (only is None or only) and all(
                a.shape == b.shape for a, b in zip(tried, first)
            ):  # fmt: skip
                continue
            if not broadcast and any(
                1 in tried[i].shape[d : d + 1] for i, d in sizes.places(only or set())
            ):
                continue
            try:
                self.results[id(tried)] = self(tried)
                return tried
            except Exception as e:
                self._why = f"{type(e).__name__}: {e}"
        return None


def _record_varying(
    runner: _Runner, first: list[Tensor], second: list[Tensor], sizes: Sizes
) -> tuple[Program, list[Tensor]]:
    """Records; sizes of Dim.AUTO that the program cannot be written for are fixed."""
    hints = sorted(sizes.hints & set(sizes.now))

    def tried(fixed: set[str]) -> tuple[Program, list[Tensor], Sizes] | None:
        """The program for fewer sizes that vary; None where it cannot be written."""
        less = copy.copy(sizes)
        less.without(fixed)
        other = runner.again(first, less)
        try:
            return _record_listing(runner, first, other), other, less
        except ExportError:
            return None

    try:
        return _record_listing(runner, first, second), second
    except ExportError:
        if not hints:
            raise
    # As many as can be: halves of them are added to those that vary.
    fixed = set(hints)
    best = tried(fixed)
    open_ = [hints]
    while open_:
        group = open_.pop()
        found = tried(fixed - set(group)) if best is not None else None
        if found is not None:
            best, fixed = found, fixed - set(group)
        elif len(group) > 1:
            half = len(group) // 2
            open_ += [group[half:], group[:half]]
    sizes.without(fixed)
    if best is not None:
        return best[0], best[1]
    second = runner.again(first, sizes)
    return _record_listing(runner, first, second), second


def _record_listing(runner: _Runner, first: list[Tensor], second: list[Tensor]) -> Program:
    """Records; generators in which data decide return lists then."""
    listed: frozenset[Any] = frozenset()
    before: ExportError | None = None
    while True:
        try:
            return _record_once(runner, first, second, listed)
        except Exception as e:
            code = deciding(e) if isinstance(e, ExportError) else None
            if code is None or code in listed:
                # What reads the generator may need one: then the first error says more.
                if before is not None and not isinstance(e, ExportError):
                    raise before from e
                if isinstance(e, (ExportError, MemoryError)):
                    raise
                raise _met_stand_in(e) from e
            before = before or e  # type: ignore[assignment]
            listed |= {code}


def _record_once(
    runner: _Runner, first: list[Tensor], second: list[Tensor], listed: frozenset[Any]
) -> Program:
    module, spec, restore = runner.module, runner.spec, runner.restore
    names = {id(t): (kind, name) for kind, name, t in parameters_of(module)}
    runner.copied = set()
    rec = Recorder(names, 2, runner.keep_added)
    control = Control(rec, listed)
    inputs = []
    for k, (a, b) in enumerate(zip(first, second)):
        pair = [a.detach().clone(), b.detach().clone()]
        rec.program.inputs.append(rec.tensor_value(pair, ("input", k)))
        inputs.append(pair[0])
    args, kwargs = _tree.build(spec, iter(inputs))
    clew.manual_seed(SEED)
    restore()
    leaves: list[Any] = []
    with _rewritten_modules(module, control), clew.enable_grad():
        rec.start()
        try:
            with rec:
                result = module(*args, **kwargs)
                result = known(_keep_buffers(runner, rec, result))
                for x in leaves_of(result):
                    if type(x) is Perhaps:
                        x._fail()
        except RecursionError:
            raise ExportError(
                "export: data decides how deep a recursion goes; write it as a loop over an array "
                "of nodes"
            ) from None
        finally:
            rec.stop()
            control.restore_globals()
        if rec.refusal is not None:
            raise rec.refusal
        rec.program.out_tree = _tree.flatten(
            result, leaves, "the result", lambda x: type(x) in SYMS or isinstance(x, Tensor)
        )
        rec.program.body.results = [rec.stored(x) for x in leaves]
    restore()
    return rec.program


def _met_stand_in(error: Exception) -> ExportError:
    """What a model raises only while it is recorded."""
    said = str(error).partition("\n")[0]
    return ExportError(
        f"export: the model runs, and cannot be recorded: {type(error).__name__}: {said}, at "
        f"{raised_at(error)}\n  A number or a size of data is given there to code that takes "
        f"nothing but Python's own, or a branch that no example takes fails: write it with "
        f"operations of the tensors."
    )


@contextmanager
def _rewritten_modules(module: Module, control: Control) -> Iterator[None]:
    """The forward methods of the user's own classes, rewritten meanwhile."""
    replaced: list[tuple[Any, str, Any]] = []
    added: list[Any] = []
    hooks: list[tuple[Any, Any, Any]] = []
    seen: set[type] = set()
    try:
        for m in module.modules():
            own = vars(m).get("forward")
            program = program_of(m)
            if program is not None:
                if own is not None:
                    replaced.append((m, "forward", own))
                else:
                    added.append(m)
                m.forward = lambda *a, _p=program, **k: inlined(control, _p, a, k)
                continue
            if own is not None:
                replaced.append((m, "forward", own))
                m.forward = lambda *a, _f=own, **k: control.call(_f, *a, **k)
            for cls in type(m).__mro__:
                if cls in seen or cls is Module:
                    continue
                seen.add(cls)
                forward = vars(cls).get("forward")
                code = getattr(forward, "__code__", None)
                if code is None or is_library(code.co_filename):
                    continue
                assert forward is not None
                made = control.converted(forward)
                if made is not forward:
                    replaced.append((cls, "forward", forward))
                    cls.forward = made  # type: ignore[attr-defined]
            for table in ("_forward_pre_hooks", "_forward_hooks"):
                for key, hook in list((vars(m).get(table) or {}).items()):
                    if isinstance(hook, types.FunctionType):
                        hooks.append((vars(m)[table], key, hook))
                        vars(m)[table][key] = control.converted(hook)
            if isinstance(m, FunctionModule):
                function = m._function
                replaced.append((m, "_function", function))
                m._function = lambda *a, _f=function, **k: control.call(_f, *a, **k)
        yield
    finally:
        for found, key, hook in hooks:
            found[key] = hook
        for owner, name, value in reversed(replaced):
            setattr(owner, name, value)
        for m in added:
            del m.forward
