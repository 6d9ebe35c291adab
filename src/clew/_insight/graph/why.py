"""How a leaf reaches the results of a graph, or why it does not."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from clew import _C
from clew._base import provenance as _provenance
from clew._insight.graph.listing import Nodes, line_text, module_text, table
from clew._insight.graph.tables import counted, shape_text
from clew._insight.graph.zeros import zero_report
from clew._tensor.html import as_printed

if TYPE_CHECKING:
    from clew import Tensor
    from clew._insight.graph.data import GraphNode
    from clew._insight.graph.graph import Graph

MANY_PATHS = 10**18
SHOWN_PATHS = 3
SHOWN_USES = 8
SHOWN_CUTS = 5
# How a path is cut where it is long: its first and last nodes are shown.
HEAD, TAIL = 8, 4


class Why:
    """The answer of `Graph.why`; printed, it is a few lines of text.

    Attributes:
        name: of the parameter, as far as it is known.
        reached: whether a gradient can flow from the results to it.
        kind: "reached", or of what did not: "frozen" (requires_grad is False), "cut" (used in a
            part that was cut off), "likely cut", "not called" (its module was not called),
            "not used".
        reason: one sentence, with the lines involved.
        paths: shortest ways to the result, each a list of nodes beginning at the parameter.
        path_count: how many ways there are, at most 10**18.
        uses: operations that take the parameter itself, in order of creation.
        cuts: where values of this graph were cut off, as text.
        place: of what did not, the line that is to blame as the core hands it out, or None.
    """

    def __init__(self, name: str, reached: bool, kind: str, reason: str) -> None:
        self.name = name
        self.reached = reached
        self.kind = kind
        self.reason = reason
        self.paths: list[Nodes] = []
        self.path_count = 0
        self.uses = Nodes()
        self.cuts: list[str] = []
        self.place: tuple[Any, ...] | None = None

    def __bool__(self) -> bool:
        return self.reached

    _repr_html_ = as_printed

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.reason}"]
        if self.reached:
            lines += self._reached_lines()
        elif others := [cut for cut in self.cuts if cut not in self.reason]:
            lines.append("where values of this graph were cut off, too:")
            lines += [f"  {cut}" for cut in others[:SHOWN_CUTS]]
            if len(others) > SHOWN_CUTS:
                lines.append(f"  ... {len(others) - SHOWN_CUTS} more places")
        return "\n".join(lines)

    __repr__ = __str__

    def _reached_lines(self) -> list[str]:
        lines = ["used by:"]
        uses = Counter((n.op, line_text(n), module_text(n)) for n in self.uses)
        for (op, at, module), count in uses.most_common(SHOWN_USES):
            where = f" ({module})" if module else ""
            lines.append(f"  {count} x {op}{where} {at}".rstrip())
        if len(uses) > SHOWN_USES:
            lines.append(f"  ... {len(uses) - SHOWN_USES} more places")
        # Paths of the same look (through the outputs of one split) are shown once.
        for rows, path in {_path_rows(path): path for path in self.paths}.items():
            lines.append(f"a shortest path, of {len(path) - 1} operations:")
            lines += ["  " + row for row in rows]
        return lines


def _path_rows(path: list[GraphNode]) -> tuple[str, ...]:
    """The table of a path, its middle left out when it is long."""
    if len(path) <= HEAD + TAIL + 1:
        return tuple(table(path).split("\n"))
    rows = table([*path[:HEAD], *path[-TAIL:]]).split("\n")
    rows.insert(HEAD + 1, f"... {len(path) - HEAD - TAIL} more")
    return tuple(rows)


def explain(graph: Graph, parameter: Tensor | str) -> Why:
    """The answer for a leaf, another tensor of the graph, or a name."""
    index, tensor, name = _resolve(graph, parameter)
    if index is None:
        assert tensor is not None
        return _not_reached(graph, tensor, name)
    node = graph.nodes[index]
    below = _below(graph, index)
    counts = _count_paths(graph, index, below)
    total = min(sum(counts.get(root, 0) for root in {r for r, _ in graph.roots}), MANY_PATHS)
    uses = Nodes(graph.nodes[i] for i in graph.consumers[index])
    many = f"more than {MANY_PATHS:,}" if total >= MANY_PATHS else f"{total:,}"
    result = "the result" if len(graph.roots) == 1 else "a result"
    reason = (
        f"reaches {result} on {many} path{'s' if total != 1 else ''}, "
        f"through {counted(len(uses), 'use')}"
    )
    if not uses:
        reason = "is itself a result"
    why = Why(name, True, "reached", reason + _gradient_note(graph, node.index, tensor, below))
    why.path_count = total
    why.uses = uses
    why.paths = _shortest(graph, index, below)
    return why


def _resolve(graph: Graph, parameter: Tensor | str) -> tuple[int | None, Tensor | None, str]:
    """The node's number if the graph has one, the tensor if it lives, and what to call it."""
    if isinstance(parameter, str):
        node = graph.parameters.get(parameter)
        ref = graph._names.tensors.get(parameter)
        tensor = ref() if ref is not None else None
        if node is not None:
            return node.index, tensor, parameter
        if tensor is None:
            raise KeyError(_unknown(graph, parameter))
        return None, tensor, parameter
    if not isinstance(parameter, _C.Tensor):
        raise TypeError(f"why: expected a Tensor or a name; got {type(parameter).__name__}")
    name = graph._names.name_of(parameter)
    if name is None:
        found = _provenance.parameter_name(parameter)
        name = found[0] if found else f"the tensor of shape {shape_text(parameter.shape)}"
    if parameter.grad_fn is not None:
        wanted = parameter.grad_fn._sequence_nr()
        at = next((n.index for n in graph.nodes if n.sequence == wanted and n.op != "leaf"), None)
    else:
        at = next((i for i, ref in graph._tensors.items() if ref() is parameter), None)
    return at, parameter, name


def _unknown(graph: Graph, name: str) -> str:
    import difflib  # only for a message

    known = list(graph._names.tensors)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; the nearest is {near[0]!r}" if near else ""
    return (
        f"why: no parameter is named {name!r} among the {len(known)} that are known{hint}; give "
        "the tensor itself, or make the graph with model= or params="
    )


# Paths ----------------------------------------------------------------------------------------


def _below(graph: Graph, index: int) -> list[int]:
    """The nodes that the leaf has a part in, itself first, in order of creation."""
    seen = bytearray(len(graph.nodes))
    seen[index] = 1
    pending = [index]
    found = []
    while pending:
        at = pending.pop()
        found.append(at)
        for user in graph.consumers[at]:
            if not seen[user]:
                seen[user] = 1
                pending.append(user)
    return sorted(found)


def _count_paths(graph: Graph, index: int, below: list[int]) -> dict[int, int]:
    """For every node below, on how many ways it is reached from the leaf."""
    counts = dict.fromkeys(below, 0)
    counts[index] = 1
    for at in below:
        ways = counts[at]
        for user in graph.consumers[at]:
            counts[user] = min(counts[user] + ways, MANY_PATHS)
    return counts


def _shortest(graph: Graph, index: int, below: list[int]) -> list[Nodes]:
    """A few of the shortest ways from the leaf to a root."""
    roots = {root for root, _ in graph.roots}
    far = dict.fromkeys(below, len(graph.nodes) + 1)
    for at in reversed(below):
        if at in roots:
            far[at] = 0
        for user in graph.consumers[at]:
            far[at] = min(far[at], far[user] + 1)
    # A way is its last node and the way to that; shared, since ways can be long.
    ways: list[Any] = [(index, None)]
    for left in range(far[index] - 1, -1, -1):
        longer: list[Any] = []
        for way in ways:
            for user in dict.fromkeys(graph.consumers[way[0]]):
                if far[user] == left and len(longer) < SHOWN_PATHS:
                    longer.append((user, way))
        ways = longer
    return [_unrolled(graph, way) for way in ways]


def _unrolled(graph: Graph, way: Any) -> Nodes:
    nodes = []
    while way is not None:
        nodes.append(graph.nodes[way[0]])
        way = way[1]
    return Nodes(reversed(nodes))


def _gradient_note(graph: Graph, index: int, tensor: Tensor | None, below: list[int]) -> str:
    """What .grad says about a leaf that is reached."""
    if tensor is None or graph.nodes[index].op != "leaf":
        return ""
    if tensor.grad is not None:
        if tensor.grad.count_nonzero().item() == 0:
            return "; its .grad is all zeros" + zero_report(graph, index, below)
        return ""
    others = [ref() for i, ref in graph._tensors.items() if i != index]
    filled = sum(t is not None and t.grad is not None for t in others)
    if not graph.has_run():
        if filled:
            return (
                f"; its .grad is None although {filled} of the other {len(others)} leaves have "
                "one: it was cleared, or backward was asked for the others only (inputs=)"
            )
        return (
            "; its .grad is None: either backward has not run through this graph yet, or it ran "
            "with retain_graph=True and .grad was cleared afterwards"
        )
    return (
        "; backward has run through this graph, but its .grad is None: it was cleared since "
        "(zero_grad() sets it to None), or the gradient was asked for by autograd.grad() or inputs="
    )


# A line that takes the positions of what it found, and not its values.
_POSITIONS = re.compile(r"\.indices\b|\bargsort\(|\b(topk|sort|kthvalue|max|min)\([^()]*\)\[1\]")

# What is not reached --------------------------------------------------------------------------

_HOW = {
    "no_grad": "inside no_grad()",
    "inference_mode": "in inference_mode()",
    "detach": "by detach()",
    "data": "by .data",
    "dtype": "by {op}, whose result has a dtype without gradients",
    "gradient": "as a gradient of a backward that was not recorded (create_graph=False)",
    "made": "made from plain numbers",
}


def place_text(place: tuple[Any, ...]) -> str:
    """``model.py:48 in forward: `...` (module fc1: Linear)``."""
    return _provenance.describe(place[0], place[1], place[2] or "", place[3] or "")


def cut_text(cut: tuple[Any, ...]) -> str:
    """How and where a value was cut off, and where that value came from."""
    kind, op, where, source = cut
    how = "by a cast to integers or booleans" if op == "_to_dtype" else _HOW[kind].format(op=op)
    what = f"{op}, " if op and kind != "dtype" else ""
    text = f"{what}{how} at {place_text(where)}"
    return f"{text}; the value was made at {place_text(source)}" if source else text


def _not_reached(graph: Graph, tensor: Tensor, name: str) -> Why:
    cuts = list(dict.fromkeys(cut for cut in graph._cuts if cut[0] != "made"))
    kind, reason, place = _reason(graph, tensor, name, cuts)
    why = Why(name, False, kind, f"does not reach the result: {reason}")
    why.place = place
    why.cuts = [cut_text(cut) for cut in cuts]
    return why


def _reason(
    graph: Graph, tensor: Tensor, name: str, cuts: list[tuple[Any, ...]]
) -> tuple[str, str, tuple[Any, ...] | None]:
    """Kind, sentence, and the line that is to blame."""
    if not tensor.requires_grad:
        return "frozen", "its requires_grad is False", None
    use = _C._unrecorded_use(tensor)
    recorded = _use_in_this_round(graph, tensor)
    owner = name.rpartition(".")[0] if name in graph._names.tensors else None
    if use is not None:
        if any(cut[:3] == use[:3] for cut in cuts):
            return "cut", f"it was used in a part that was cut off: {cut_text(use)}", use[2]
        if recorded is None and (any(cut[0] == use[0] for cut in cuts) or _is_in(use[2][2], owner)):
            return (
                "likely cut",
                "nothing that was recorded uses it; likely this use, which was not recorded, is "
                f"the reason: {cut_text(use)}",
                use[2],
            )
    read = None if recorded is not None else _read_as_number(graph, name, owner)
    if read is not None:
        how, _, where = read[:3]
        text = f"its value left the graph through {how} at {place_text(where)}"
        return "likely cut", f"nothing that was recorded uses it; likely {text}", where
    # What no operation took has no part in what was cut off.
    used = use is not None or recorded is not None
    guess = next((cut for cut in cuts if used and _touches(cut, owner)), None)
    if guess is not None:
        text = f"likely it belongs to a part that was cut off: {cut_text(guess)}"
        return "likely cut", text, guess[2]
    if recorded is not None:
        return _lost(graph, recorded, cuts)
    last = f"; its last use that was not recorded: {cut_text(use)}" if use is not None else ""
    if owner is None:
        return "not used", f"no operation of this graph uses it{last}", None
    if owner and not _was_called(graph, owner):
        text = f"its module {owner} was not called while this graph was recorded{last}"
        return "not called", text, None
    where = f"its module {owner}" if owner else "its module"
    return "not used", f"{where} was called, but no operation of this graph uses it{last}", None


def _span(graph: Graph) -> tuple[int, int]:
    """The numbers that nodes of this round have: after the backward before this graph's first
    operation, up to its result."""
    made = [n.sequence for n in graph.operations]
    if not made:
        return 0, 0
    before = [root for root in _C._backward_roots() if root < min(made)]
    return max(before, default=0) + 1, max(made)


def _use_in_this_round(graph: Graph, tensor: Tensor) -> tuple[Any, int] | None:
    """Place and number of a recorded use that led to no part of the graph."""
    use = _C._recorded_use(tensor)
    first, last = _span(graph)
    if use is None or use[0] is None or not first <= use[1] <= last:
        return None
    return use


def _read_as_number(graph: Graph, name: str, owner: str | None) -> tuple[Any, ...] | None:
    """Where a parameter itself became a number or an array, as far as the line there says so."""
    first, last = _span(graph)
    attribute = rf"\b{re.escape(name.rpartition('.')[2])}\b"
    for leaving in _C._leavings():
        how, _, where, source, number = leaving
        # Of what an operation made, the source is known.
        if where is None or source is not None or not first - 1 <= number <= last:
            continue
        method = re.escape(f"{how}".removesuffix("()"))
        said = rf"{attribute}(\.\w+\(\))*\.{method}\(\)|\b{method}\([^()]*{attribute}"
        in_owner = owner is None or where[2] is None or where[2] == owner
        if in_owner and re.search(said, place_text(where)):
            return leaving
    return None


def _was_called(graph: Graph, owner: str) -> bool:
    if any(_is_in(path, owner) for path in _called(graph)):
        return True
    mates = (ref() for name, ref in graph._names.tensors.items() if _is_in(name, owner))
    return any(t is not None and _use_in_this_round(graph, t) for t in mates)


def _lost(
    graph: Graph, use: tuple[Any, int], cuts: list[tuple[Any, ...]]
) -> tuple[str, str, tuple[Any, ...] | None]:
    """What is said of a use that was recorded, and whose value did not reach the result."""
    place, number = use
    used = f"it was used at {place_text(place)}, but what was made there did not reach the result"
    last = _span(graph)[1]
    leavings = [
        leaving
        for leaving in reversed(_C._leavings())
        if leaving[2] is not None and number <= leaving[4] <= last
    ]
    # What was made by the line or module of the use comes before what was made later.
    near = [
        leaving
        for leaving in leavings
        if leaving[3] is not None and (leaving[3][:2] == place[:2] or leaving[3][2] == place[2])
    ]
    # A comparison may come from a function that checks its arguments. Then the tensor that this
    # line made was cut off elsewhere.
    line = _line_of(place)
    made = [cut for cut in cuts if cut[3] is not None and _line_of(cut[3]) == line]
    for how, op, where, _, _ in near or leavings:
        if made and not how and all(cut[2][:2] != where[:2] for cut in cuts):
            text = f"{used}; likely it belongs to a part that was cut off: {cut_text(made[0])}"
            return "likely cut", text, made[0][2]
        what = how or f"{op}, whose result has a dtype without gradients,"
        text = f"{used}; likely its value left the graph through {what} at {place_text(where)}"
        return "likely cut", text, where
    if _POSITIONS.search(place_text(place)):
        text = f"{used}; likely only its positions were used: its indices have no gradient"
        return "likely cut", text, place
    return "not used", f"{used}: it was compared, overwritten or left unused", place


def _line_of(place: tuple[Any, ...]) -> tuple[str, int]:
    at = _provenance.Location(place[0], place[1])
    return at.file, at.line


def _called(graph: Graph) -> set[str | None]:
    return {path for scopes in graph._scopes for path, _ in scopes}


def _is_in(path: str | None, owner: str | None) -> bool:
    """Whether a module's path is the owner's or below it; of the outermost, only its own."""
    if path is None or owner is None:
        return False
    return path == owner or (owner != "" and path.startswith(owner + "."))


def _touches(cut: tuple[Any, ...], owner: str | None) -> bool:
    return any(place is not None and _is_in(place[2], owner) for place in cut[2:])
