"""Module.summary(): one run of a model as a table of its layers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import clew
from clew import _C
from clew._insight.graph.graph import OUTSIDE, Graph, graph
from clew._insight.graph.tables import (
    WIDTH,
    Row,
    amount,
    counted,
    fit,
    fold,
    indented,
    label,
    shape_text,
)
from clew._tensor.html import as_printed
from clew.utils._pytree import tree_leaves, tree_map

if TYPE_CHECKING:
    from clew.nn import Module


@dataclass
class Layer(Row):
    """A module's row: besides a graph's numbers, its outputs and parameters.

    `name` is the module's path, of the model itself its class; `calls` counts its calls.
    """

    shapes: tuple[tuple[int, ...], ...] = ()
    calls: int = 0
    # Sizes by identity, so that a parameter that several layers share is counted once.
    members: dict[int, int] = field(default_factory=dict, repr=False)

    @property
    def parameters(self) -> int:
        """Numbers in the parameters of the module and of those in it."""
        return sum(self.members.values())

    def look(self) -> tuple[Any, ...]:
        return (self.kind, self.shapes, self.calls, self.parameters)

    def add(self, other: Row) -> None:
        Row.add(self, other)
        if isinstance(other, Layer):
            self.members = {**self.members, **other.members}


class ModelSummary:
    """What `Module.summary` returns; printed, it is a table of at most 100 columns.

    Attributes:
        layers: one row for each module, outermost first; those never called have 0 calls.
        parameters: numbers in all parameters, shared ones counted once.
        trainable: those that require grad.
        flops: of one forward pass, as far as formulas are known.
        activation_bytes: what is kept for backward beside the parameters.
        graph: the recorded graph; None where nothing was recorded.
    """

    def __init__(
        self, model: Module, top: Layer, recorded: Graph | None, counted: Graph | None
    ) -> None:
        self.top = top
        self.layers = list(_walk(top))
        self.graph = recorded
        everything = list(model.parameters())
        self.parameters = sum(p.numel() for p in everything)
        self.trainable = sum(p.numel() for p in everything if p.requires_grad)
        self.parameter_bytes = sum(p.numel() * p.element_size() for p in everything)
        self.buffer_bytes = sum(b.numel() * b.element_size() for b in model.buffers())
        self.flops = counted.flops if counted is not None else 0
        self.unknown = sum(n.flops is None for n in counted) if counted is not None else 0
        self.activation_bytes = recorded.activation_bytes if recorded is not None else 0
        self.depth: int | None = None
        self.fold = True

    def __getitem__(self, path: str) -> Layer:
        """The row of a module, by its path; "" is the model."""
        if path == "":
            return self.top
        for layer in self.layers[1:]:
            if layer.name == path:
                return layer
        raise KeyError(f"summary: there is no module {path!r} in {self.top.kind}")

    def text(self, depth: int | None = None, fold: bool = True) -> str:
        """The table as text.

        Args:
            depth: levels below the model that are shown; None shows all.
            fold: whether consecutive numbered modules of equal structure share a row.

        Returns: text of at most 100 columns.
        """
        rows = list(_shown(self.top, depth, fold))
        widths = [
            min(most, max(len(head), *(len(text) for text in column)))
            for head, most, column in (
                ("layer", 32, ["  " * level + label(row) for row, level in rows]),
                ("class", 18, [row.kind for row, _ in rows]),
                ("parameters", 20, [f"{row.parameters:,}" for row, _ in rows]),
            )
        ]
        wide, kinds, numbers = widths
        rest = WIDTH - sum(widths) - 23
        lines = [
            f"{fit('layer', wide)} {fit('class', kinds)} {fit('output', rest)} "
            f"{'parameters':>{numbers}} {'FLOPs':>9} {'kept':>9}"
        ]
        lines.append("-" * WIDTH)
        for row, level in rows:
            lines.append(
                f"{indented(row, level, wide)} {fit(row.kind, kinds)} {fit(_outputs(row), rest)} "
                f"{row.parameters:>{numbers},} {_flops_text(row):>9} {amount(row.held, 'B'):>9}"
            )
        lines.append("-" * WIDTH)
        lines += self._totals()
        return "\n".join(line.rstrip() for line in lines)

    def _totals(self) -> list[str]:
        frozen = self.parameters - self.trainable
        lost = [row.name for row in self.layers if row.calls and row.members and not row.count]
        if len(lost) > 4:
            lost[3:] = [f"{len(lost) - 3} more layers"]
        more = (
            f", without {counted(self.unknown, 'operation')} of unknown cost"
            if self.unknown
            else ""
        )
        return [
            f"parameters: {self.parameters:,} ({amount(self.parameter_bytes, 'B')}), "
            f"trainable {self.trainable:,}, frozen {frozen:,}; buffers "
            f"{amount(self.buffer_bytes, 'B')}",
            f"FLOPs of one forward pass: {amount(self.flops)}{more if self.unknown else ''}",
            f"kept for backward: {amount(self.activation_bytes, 'B')}",
            *([f"not recorded (inside no_grad()?): {', '.join(lost)}"] if lost else []),
        ]

    _repr_html_ = as_printed

    def __repr__(self) -> str:
        return self.text(self.depth, self.fold)


def summarize(
    model: Module, inputs: tuple[Any, ...], kwargs: dict[str, Any], depth: int | None, fold: bool
) -> ModelSummary:
    """Runs the model and puts the table together; see `Module.summary`."""
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 0):
        raise ValueError(f"summary: depth must be None or a number, 0 or more; got {depth!r}")
    calls: list[_Call] = []
    with _restored(model), _watched(model, calls):
        recorded = _run(model, inputs, kwargs)
    counted = recorded
    if recorded is None or not all(p.requires_grad for p in model.parameters()):
        # What wants no gradient is not recorded: once more with everything wanting one.
        with _restored(model), _all_recorded(model):
            counted = _run(model, *_recorded_inputs(inputs, kwargs))
    top = _rows(model, calls)
    _put_costs(top, recorded, counted)
    summary = ModelSummary(model, top, recorded, counted)
    summary.depth, summary.fold = depth, fold
    return summary


# Running --------------------------------------------------------------------------------------


@dataclass
class _Call:
    path: str
    module: Module
    shapes: tuple[tuple[int, ...], ...] = ()


def _run(model: Module, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph | None:
    with clew.inference_mode(False), clew.enable_grad():
        out = model(*inputs, **kwargs)
        tensors = [t for t in tree_leaves(out) if isinstance(t, clew.Tensor)]
        if not any(t.requires_grad for t in tensors):
            return None
        return graph(tensors, model=model)


@contextmanager
def _restored(model: Module) -> Iterator[None]:
    """Random numbers and buffers are afterwards what they were; places are recorded meanwhile."""
    was_on = _C._enable_provenance(True)
    random = clew.get_rng_state()
    tables = [(m, dict(m._buffers)) for m in model.modules()]
    copies = {
        id(b): (b, b._version, b.detach().clone())
        for _, table in tables
        for b in table.values()
        if b is not None
    }
    try:
        yield
    finally:
        _C._enable_provenance(was_on)
        clew.set_rng_state(random)
        for module, table in tables:
            module._buffers.clear()
            module._buffers.update(table)
        with clew.no_grad():
            for buffer, version, copy in copies.values():
                if buffer._version != version:
                    buffer.data.copy_(copy)


@contextmanager
def _watched(model: Module, calls: list[_Call]) -> Iterator[None]:
    """Notes every module's call, in the order in which they begin."""
    open_calls: list[_Call] = []

    def begin(module: Module, args: Any) -> None:
        open_calls.append(_Call(_here(), module))
        calls.append(open_calls[-1])

    def end(module: Module, args: Any, output: Any) -> None:
        leaves = tree_leaves(output)
        call = open_calls.pop()
        call.shapes = tuple(tuple(t.shape) for t in leaves if isinstance(t, clew.Tensor))

    handles = []
    for module in model.modules():
        handles.append(module.register_forward_pre_hook(begin, prepend=True))
        handles.append(module.register_forward_hook(end))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _here() -> str:
    place = _C._here()
    return place[2] if place is not None and place[2] is not None else ""


@contextmanager
def _all_recorded(model: Module) -> Iterator[None]:
    frozen = [p for p in model.parameters() if not p.requires_grad and p.is_floating_point()]
    for parameter in frozen:
        parameter.requires_grad_(True)
    try:
        yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(False)


def _recorded_inputs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inputs, copied by a recorded operation, so that the model may also write into them."""

    def recorded(value: Any) -> Any:
        if not isinstance(value, clew.Tensor) or not value.is_floating_point():
            return value
        return value.detach().requires_grad_().clone()

    with clew.inference_mode(False), clew.enable_grad():
        return tree_map(recorded, inputs), tree_map(recorded, kwargs)


# Rows -----------------------------------------------------------------------------------------


def _rows(model: Module, calls: list[_Call]) -> Layer:
    """The tree of layers: as they were called, then those that were not."""
    top = Layer(type(model).__name__, type(model).__name__)
    known: dict[str, Layer] = {"": top}
    paths = dict(model.named_modules())
    seen = set()

    def layer(path: str) -> Layer:
        if path not in known:
            known[path] = Layer(path)
            layer(path.rpartition(".")[0]).children.append(known[path])
            module = paths.get(path)
            known[path].kind = type(module).__name__ if module is not None else ""
            if module is not None:
                _own(known[path], module)
        return known[path]

    _own(top, model)
    for call in calls:
        row = layer(call.path)
        seen.add(id(call.module))
        row.calls += 1
        if row.calls == 1:
            row.shapes, row.kind = call.shapes, type(call.module).__name__
            _own(row, call.module)
    for path, module in paths.items():
        if id(module) not in seen:
            layer(path)
    return top


def _own(row: Layer, module: Module) -> None:
    row.members.update({id(p): p.numel() for p in module.parameters()})


def _put_costs(top: Layer, recorded: Graph | None, counted: Graph | None) -> None:
    for source, is_cost in ((recorded, False), (counted, True)):
        if source is None:
            continue
        table = source.by_module()
        rows = {row.name: row for row in table if row.name != OUTSIDE}
        for layer in _walk(top):
            found = rows.get(layer.name)
            if found is None:
                continue
            if is_cost:
                layer.count, layer.flops, layer.unknown = found.count, found.flops, found.unknown
            else:
                layer.held, layer.outputs = found.held, found.outputs


def _walk(row: Layer) -> Iterator[Layer]:
    yield row
    for child in row.children:
        yield from _walk(child)  # type: ignore[arg-type]


def _shown(top: Layer, depth: int | None, folded: bool) -> Iterator[tuple[Layer, int]]:
    def below(rows: list[Any], level: int) -> Iterator[tuple[Layer, int]]:
        if depth is not None and level > depth:
            return
        for row in rows:
            yield row, level
            yield from below(row.children, level + 1)

    yield top, 0
    yield from below(fold(top.children) if folded else top.children, 1)


def _outputs(row: Layer) -> str:
    if row.calls == 0:
        return "" if row.children else "(not called)"
    text = ", ".join(map(shape_text, row.shapes))
    return f"{text} x{row.calls}" if row.calls > 1 else text


def _flops_text(row: Layer) -> str:
    if row.count == 0:
        return "-" if row.calls else ""
    if row.unknown == row.count:
        return "?"
    return amount(row.flops) + ("+" if row.unknown else "")
