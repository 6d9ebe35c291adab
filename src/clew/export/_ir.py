"""An exported program as data: values, calls, and blocks of calls for branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from clew.export._errors import Place

__all__ = ["Block", "Node", "Program", "Value", "map_args", "values_in"]


class Value:
    """A tensor or a number that is known when the program runs.

    Attributes:
        id: its number.
        kind: "tensor", "int", "float" or "bool".
        dtype: of a tensor.
        sizes: of a tensor; None where it varies.
        source: of what the program does not compute: ("input", n), ("param", name),
            ("buffer", name) or ("constant", name); ("block",) of a loop's own.
        data: whether it depends on inputs or on parameters.
    """

    __slots__ = ("data", "dtype", "id", "kind", "name", "sizes", "source")

    def __init__(
        self,
        id: int,
        kind: str,
        dtype: Any = None,
        sizes: tuple[int | None, ...] = (),
        source: tuple[Any, ...] | None = None,
        data: bool = True,
    ) -> None:
        self.id, self.kind, self.dtype, self.sizes = id, kind, dtype, sizes
        self.source, self.data, self.name = source, data, ""

    def __repr__(self) -> str:
        return f"%{self.name or self.id}"

    @property
    def type(self) -> str:
        """``float32[8, ?]`` or ``int``."""
        if self.kind != "tensor":
            return self.kind
        sizes = ", ".join("?" if n is None else str(n) for n in self.sizes)
        return f"{self.dtype.name}[{sizes}]"


class Node:
    """One call: ``outputs = op(*args, **kwargs)``.

    Attributes:
        op: the operation's name.
        args: positional arguments; a Value stands for what it is when the program runs.
        kwargs: named arguments.
        outputs: what it gives; empty for writes and guards.
        blocks: of "if" the two branches, of "loop" the body.
        place: the line of the user's program.
        shares: outputs are views of the first argument's memory.
        no_grad: the call was made under no_grad.
        several: the call returns a tuple.
        decides: of a guard: what follows it was decided by the example, and may be another thing
            where the guard does not hold; else the model raises there.
    """

    __slots__ = (
        "args", "blocks", "decides", "kwargs", "no_grad", "op", "outputs", "place", "several",
        "shares",
    )  # fmt: skip

    def __init__(
        self,
        op: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        outputs: list[Value] | None = None,
        blocks: list[Block] | None = None,
        place: Place | None = None,
        shares: bool = False,
        no_grad: bool = False,
        several: bool = False,
    ) -> None:
        self.op, self.args, self.kwargs = op, args, kwargs or {}
        self.outputs, self.blocks = outputs or [], blocks or []
        self.place = place or Place()
        self.shares, self.no_grad, self.several = shares, no_grad, several
        self.decides = False


class Block:
    """Calls in order; ``params`` are values of its own, ``results`` what it ends with."""

    __slots__ = ("nodes", "params", "results")

    def __init__(self) -> None:
        self.params: list[Value] = []
        self.nodes: list[Node] = []
        self.results: list[Any] = []


class Program:
    """A block with its inputs, the tensors that it keeps, and how arguments and results nest.

    Attributes:
        inputs: one Value for each tensor or number among the arguments.
        kept: values that are parameters, buffers and constants.
        tensors: their tensors, by the name in ``source``.
        state: kind and name of all parameters and buffers, as the model has them, also of those
            that no call reads; tied ones under each of their names.
        transient: names of buffers that are not in a state_dict.
    """

    def __init__(self) -> None:
        self.body = Block()
        self.inputs: list[Value] = []
        self.input_names: list[str] = []
        self.kept: list[Value] = []
        self.tensors: dict[str, Any] = {}
        self.state: list[tuple[str, str]] = []
        self.transient: set[str] = set()
        self.in_tree: Any = None
        self.out_tree: Any = None
        self.ranges: dict[str, tuple[int, int | None]] = {}
        self.dims: list[dict[int, str]] = []
        self.training = False
        self.name = ""  # of the class that jit made it of
        self.numbers = False  # tensors without dims among the inputs are given as numbers

    def walk(self) -> Iterator[Node]:
        """All nodes, those of branches and loops behind the node that they belong to."""
        pending = [self.body]
        while pending:
            for node in pending.pop().nodes:
                yield node
                pending += node.blocks


def map_args(change: Callable[[Value], Any], tree: Any) -> Any:
    """A tree of arguments with every Value replaced."""
    if isinstance(tree, Value):
        return change(tree)
    if isinstance(tree, (tuple, list)):
        return type(tree)([map_args(change, t) for t in tree])
    if isinstance(tree, slice):
        return slice(*(map_args(change, t) for t in (tree.start, tree.stop, tree.step)))
    if isinstance(tree, dict):
        return {k: map_args(change, v) for k, v in tree.items()}
    return tree


def values_in(tree: Any) -> list[Value]:
    """The values in a tree of arguments."""
    found: list[Value] = []
    map_args(lambda v: found.append(v), tree)
    return found


def prune(program: Program) -> None:
    """Takes out calls that nothing needs, and asks for each size once."""
    _share_sizes(program.body, {}, {})
    _drop_carried(program)
    _prune(program.body, set())
    used = {v.id for node in program.walk() for v in values_in((node.args, node.kwargs))}
    for node in program.walk():
        for b in node.blocks:
            used |= {v.id for v in values_in(b.results)}
    used |= {v.id for v in values_in(program.body.results)}
    program.kept = [v for v in program.kept if v.id in used]
    names = {v.source[1] for v in program.kept if v.source}
    program.tensors = {k: t for k, t in program.tensors.items() if k in names}


def _share_sizes(block: Block, known: dict[tuple[int, Any], Value], same: dict[int, Value]) -> None:
    """A size that is known already is not asked for again."""
    known = dict(known)

    def swap(tree: Any) -> Any:
        return map_args(lambda v: same.get(v.id, v), tree)

    kept = []
    for node in block.nodes:
        node.args, node.kwargs = swap(tuple(node.args)), swap(node.kwargs)
        if node.op in ("size", "numel"):
            key = (node.args[0].id, *node.args[1:])
            if key in known:
                same[node.outputs[0].id] = known[key]
                continue
            known[key] = node.outputs[0]
        for inner in node.blocks:
            _share_sizes(inner, known, same)
        kept.append(node)
    block.nodes = kept
    block.results = swap(list(block.results))


def _drop_carried(program: Program) -> None:
    """Drops variables that a loop carries although nothing in it or after it reads them."""
    used = _uses(program)
    for node in program.walk():
        if node.op != "loop":
            continue
        body = node.blocks[0]
        count = len(body.params) - 1
        keep = [
            k for k in range(count)
            if node.outputs[k].id in used or body.params[k + 1].id in used
        ]  # fmt: skip
        if len(keep) == count:
            continue
        node.args = (*node.args[:2], tuple(node.args[2][k] for k in keep))
        node.outputs = [node.outputs[k] for k in keep] + node.outputs[count:]
        body.params = [body.params[0]] + [body.params[k + 1] for k in keep]
        body.results[1] = [body.results[1][k] for k in keep]


def _uses(program: Program) -> set[int]:
    """Numbers of the values that something reads. The end of a round counts for a variable that
    is read in the loop or behind it."""
    used = {v.id for v in values_in(program.body.results)}
    ends: list[tuple[int, int, Any]] = []
    for node in program.walk():
        used |= {v.id for v in values_in((node.args, node.kwargs))}
        for b in node.blocks:
            if node.op != "loop":
                used |= {v.id for v in values_in(b.results)}
                continue
            used |= {v.id for v in values_in([b.results[0], b.results[2]])}
            slots = zip(b.params[1:], node.outputs, b.results[1])
            ends += [(p.id, o.id, e) for p, o, e in slots]
    while True:
        left = [x for x in ends if x[0] not in used and x[1] not in used]
        if len(left) == len(ends):
            return used
        for p, o, e in ends:
            if p in used or o in used:
                used |= {v.id for v in values_in(e)}
        ends = left


def _prune(block: Block, needed: set[int]) -> set[int]:
    needed |= {v.id for v in values_in(block.results)}
    kept = []
    for node in reversed(block.nodes):
        effect = writes(node) or node.op == "guard" or node.op in _RANDOM or _effects(node)
        if not effect and not any(o.id in needed for o in node.outputs):
            continue
        kept.append(node)
        needed |= {v.id for v in values_in((node.args, node.kwargs))}
        for inner in node.blocks:
            needed |= _prune(inner, set())
    block.nodes = kept[::-1]
    return needed


_RANDOM = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal"),
    *("bernoulli", "multinomial", "poisson", "dropout", "nn.functional.dropout", "alpha_dropout"),
}


def _effects(node: Node) -> bool:
    return any(writes(n) or n.op == "guard" or _effects(n) for b in node.blocks for n in b.nodes)


def written(node: Node) -> list[Any]:
    """The arguments that a call changes."""
    if "::" in node.op:
        from clew.export._names import written_by

        return written_by(node.op, node.args, node.kwargs)
    return [node.args[0]] if writes(node) else []


def writes(node: Node) -> bool:
    """Whether a call changes an argument: the first one, where the operation is clew's own."""
    op = node.op
    if "::" in op:
        return bool(written(node))
    if op == "setitem" or node.kwargs.get("out") is not None:
        return True
    if op.endswith("batch_norm") and len(node.args) > 1 and node.args[1] is not None:
        training = node.args[5] if len(node.args) > 5 else node.kwargs.get("training", False)
        return bool(training)
    return op.endswith("_") and not op.endswith("__")
