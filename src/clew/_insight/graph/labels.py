"""What the boxes of a picture say, and how large that makes them."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

from clew._insight.graph.collapse import Child, Cluster
from clew._insight.graph.data import GraphNode, Location
from clew._insight.graph.scopes import Program
from clew._insight.graph.tables import amount, counted, fit, shape_text

# Every text is set in a monospaced font, so that its width is known without one.
TITLE_WIDTH = 7.4
SUB_WIDTH = 6.1
TITLE_CHARS = 30
SUB_CHARS = 34
# Lists in a box's details are cut after this many lines; they say what is missing.
DETAILS = 12


@dataclass(slots=True)
class Text:
    """The lines of one box."""

    title: str
    backward: str  # the title in the backward picture
    times: int  # how many it stands for
    lines: list[str]  # below the title
    saved: str  # what stands in the last line's end, by what is coloured
    flops: str
    kind: str = ""  # a module's class, where the title does not say it


def shape_name(shape: tuple[int, ...]) -> str:
    return shape_text(shape) if shape else "scalar"


def cut(text: str, limit: int) -> str:
    """The text with its middle left out where it is too long."""
    return fit(text, limit).rstrip()


def short_file(location: Location) -> str:
    return f"{os.path.basename(location.file)}:{location.line}"


def long_file(location: Location) -> str:
    """The file as seen from the current directory, or as it is where it lies elsewhere."""
    file = location.file
    inside = os.path.join(os.getcwd(), "")
    return file[len(inside) :] if file.startswith(inside) else file


def _most(counter: Counter[str]) -> str:
    """The most common of some texts, and a sign if there are others."""
    if not counter:
        return ""
    best = min(counter, key=lambda text: (-counter[text], text))
    return best if len(counter) == 1 else f"{best} …"


def text_of(child: Child, nodes: list[GraphNode]) -> Text:
    """What a closed box says."""
    totals = child.totals
    saved = amount(totals.saved, "B") if totals.saved else ""
    flops = amount(totals.flops, "FLOP") if totals.flops else ""
    if child.cluster is not None:
        kind, title = child.cluster.type or "", child.label
        if title[:1].isdigit() and kind:
            title, kind = f"{title} {kind}", ""
        kind = "" if kind == title else kind
        size = counted(totals.nodes, "node")
        if totals.parameters:
            size = f"{amount(totals.parameters)} params"
        lines = [kind, size] if kind else [size]
        return Text(title, title, child.cluster.copies, lines, saved, flops, kind)
    members = [nodes[index] for index in child.nodes]
    shapes = Counter(shape_name(shape) for node in members for shape, _ in node.outputs[:1])
    lines = [_most(shapes)] if shapes else []
    if child.kind == "result":
        return Text("result", "gradient of result", len(members), lines, "", "")
    first = members[0]
    if child.kind == "leaf":
        title = leaf_title(members)
        return Text(title, title, len(members), lines, saved, flops)
    if first.location is not None:
        lines.append(short_file(first.location))
    names = _most(Counter(node.name for node in members))
    return Text(first.op, names, len(members), lines, saved, flops)


def leaf_title(members: list[GraphNode]) -> str:
    labels = [node.label for node in members]
    if labels[0] is None:
        return "leaf"
    tails = {label.rpartition(".")[2] for label in labels if label is not None}
    if len(tails) == 1 and not labels[0].rpartition(".")[2].isdigit():
        return labels[0].rpartition(".")[2]
    stem = labels[0].rpartition(".")[0].rpartition(".")[2]
    return f"{stem}.*" if len(tails) > 1 else ".".join(labels[0].split(".")[-2:])


def title_text(text: Text, backward: bool) -> str:
    return cut(text.backward if backward else text.title, TITLE_CHARS)


def times_text(text: Text) -> str:
    return f"×{text.times}" if text.times > 1 else ""


def box_lines(text: Text, colour: str) -> list[str]:
    """The small lines of a box; the last one ends in what its colour shows."""
    lines = [cut(line, SUB_CHARS) for line in text.lines]
    value = {"saved": text.saved, "flops": text.flops}.get(colour, "")
    if value:
        lines = [*lines[:-1], f"{lines[-1]} · {value}"] if lines else [value]
    return lines


# Details -------------------------------------------------------------------------------------


def details(child: Child, program: Program) -> dict:
    """Everything that the side panel of the page says about one box."""
    nodes = program.nodes
    found: dict = {"saved": child.totals.saved, "nodes": child.totals.nodes}
    if child.totals.flops is not None:
        found["flops"] = child.totals.flops
    if child.totals.parameters:
        found["parameters"] = child.totals.parameters
    if child.cluster is not None:
        found |= _cluster_details(child.cluster)
        return found
    members = [nodes[index] for index in child.nodes]
    first = members[0]
    found["op"] = first.op
    found["names"] = _counted(Counter(node.name for node in members))
    found["sequence"] = [first.sequence, members[-1].sequence]
    outputs = Counter(
        f"{shape_name(shape)} {dtype}" for node in members for shape, dtype in node.outputs
    )
    found["outputs"] = _counted(outputs)
    kept: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for node in members:
        for saved in node.saved:
            what = f": {shape_name(saved.shape)} {saved.dtype}" if saved.dtype else ""
            own = saved.storage in program.own
            line = f"{saved.role}{what}{', a leaf itself' if own else ''}"
            kept[line] += 1
            size[line] += 0 if own else saved.nbytes
    lines = sorted(kept, key=lambda line: -size[line])
    found["kept"] = [[line, kept[line], size[line]] for line in lines[:DETAILS]]
    if len(lines) > DETAILS:
        rest = lines[DETAILS:]
        total = sum(size[line] for line in rest)
        found["kept"].append(["and others", sum(kept[line] for line in rest), total])
    at = first.location
    if at is not None:
        found["file"] = long_file(at)
        found["line"] = at.line
        if at.column is not None:
            found["column"] = at.column
        found["function"] = at.function
        found["source"] = at.source
    labels = Counter(node.label for node in members if node.label is not None)
    if labels:
        found["labels"] = _counted(labels)
    modules = Counter(
        node.module or "(the outermost)" for node in members if node.module is not None
    )
    if modules:
        found["modules"] = _counted(modules)
    if first.module_type:
        found["type"] = first.module_type
    return found


def _cluster_details(cluster: Cluster) -> dict:
    found: dict = {"copies": cluster.copies}
    if cluster.type:
        found["type"] = cluster.type
    paths = Counter(scope.path for scope in cluster.instances if scope.path)
    if paths:
        found["modules"] = _counted(paths, ordered=True)
    return found


def _counted(counter: Counter, ordered: bool = False) -> list:
    """Texts with how often each occurs, the most frequent first, cut to a readable number."""
    items = list(counter.items()) if ordered else counter.most_common()
    found: list = [[text, count] for text, count in items[:DETAILS]]
    if len(items) > DETAILS:
        rest = items[DETAILS:]
        found.append([f"… {len(rest)} others", sum(count for _, count in rest)])
    return found
