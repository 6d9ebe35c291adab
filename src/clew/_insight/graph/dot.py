"""The graph in Graphviz' language and as JSON."""

from __future__ import annotations

import json
import re

from clew._insight.graph import palette
from clew._insight.graph.collapse import Child, Cluster, Picture
from clew._insight.graph.data import GraphLike, GraphNode, Location
from clew._insight.graph.labels import box_lines, shape_name, short_file, text_of, times_text
from clew._insight.graph.svg import content_of, readable

# Modules are opened in the collapsed text while about this many boxes are shown.
OPEN = 400


def to_dot(graph: GraphLike, collapsed: bool = True) -> str:
    """The graph as text for Graphviz; `Graph.to_dot` describes it."""
    lines = ["digraph {", "  compound=true; rankdir=TB;"]
    lines.append('  node [shape=box, style="rounded,filled", fillcolor=white, fontsize=10];')
    lines.append("  graph [fontsize=11, style=rounded];")
    if collapsed:
        picture = Picture(graph)
        _Collapsed(picture, lines).write(picture.top, "", readable(picture, OPEN), "  ")
    else:
        _write_nodes(graph, lines)
    return "\n".join([*lines, "}", ""])


class _Collapsed:
    def __init__(self, picture: Picture, lines: list[str]) -> None:
        self.picture = picture
        self.lines = lines

    def write(self, cluster: Cluster, name: str, opened: set[int], pad: str) -> None:
        """Writes the children of a cluster and the edges between them."""
        content = content_of(cluster)
        enter: list[str] = []
        leave: list[str] = []
        for number, child in enumerate(content.children):
            own = f"{name}n{number}"
            if child.cluster is not None and child.cluster.index in opened:
                text = text_of(child, self.picture.program.nodes)
                words = " ".join(filter(None, (text.title, times_text(text), text.kind)))
                self.lines += [
                    f'{pad}subgraph "cluster_{own}" {{',
                    f"{pad}  label={_quote(words)};",
                ]
                # Edges from and to the outside go through these points.
                for port in ("in", "out"):
                    self.lines.append(f'{pad}  "{own}{port}" [shape=point, width=0.05, label=""];')
                self.write(child.cluster, own, opened, pad + "  ")
                self.lines.append(f"{pad}}}")
                enter.append(f"{own}in")
                leave.append(f"{own}out")
            else:
                self.lines.append(f"{pad}{_quote(own)} [{self._look(child)}];")
                enter.append(own)
                leave.append(own)
        enter.append(f"{name}out")  # what flows to the outside: b is -1
        leave.append(f"{name}in")
        for edge in content.edges:
            look = " [style=dashed, constraint=false]" if edge.back else ""
            self.lines.append(f"{pad}{_quote(leave[edge.a])} -> {_quote(enter[edge.b])}{look};")
        for child_number in content.loops:
            ends = f"{_quote(leave[child_number])} -> {_quote(enter[child_number])}"
            self.lines.append(f"{pad}{ends} [style=dashed, constraint=false];")

    def _look(self, child: Child) -> str:
        text = text_of(child, self.picture.program.nodes)
        title = f"{text.title} {times_text(text)}".strip()
        label = _quote("\n".join([title, *box_lines(text, "saved")]))
        if child.kind in ("leaf", "result"):
            return f'label={label}, shape=ellipse, fillcolor="{palette.LIGHT[child.kind]}"'
        step = palette.step_of(child.totals.saved, self.picture.top.totals.saved)
        more = ", peripheries=2" if child.cluster is not None else ""
        return f'label={label}, fillcolor="{palette.LIGHT[f"heat{step}"]}"{more}'


def _write_nodes(graph: GraphLike, lines: list[str]) -> None:
    tree: dict = {}
    for node in graph.nodes:
        at = tree
        if node.module is not None:
            at = at.setdefault(node.module_type if not node.module else "", {})
            for part in node.module.split(".") if node.module else ():
                at = at.setdefault(part, {})
        at.setdefault(None, []).append(node)
    _write_tree(tree, "", "  ", lines)
    for node in graph.nodes:
        for edge in node.inputs:
            if edge is not None:
                lines.append(f"  {edge[0]} -> {node.index};")
    for number, (index, _) in enumerate(graph.roots):
        lines.append(f'  "result{number}" [label="result", shape=ellipse];')
        lines.append(f'  {index} -> "result{number}";')


def _write_tree(tree: dict, name: str, pad: str, lines: list[str]) -> None:
    for node in tree.get(None, ()):
        words = [node.label or node.op]
        words += [shape_name(shape) for shape, _ in node.outputs]
        if node.location is not None:
            words.append(short_file(node.location))
        shape = ", shape=ellipse" if node.op == "leaf" else ""
        label, tip = _quote("\n".join(words)), _quote(node.name)
        lines.append(f"{pad}{node.index} [label={label}, tooltip={tip}{shape}];")
    for part, inner in tree.items():
        if part is not None:
            own = f"{name}/{part}"
            lines += [f"{pad}subgraph {_quote('cluster_' + own)} {{"]
            lines.append(f"{pad}  label={_quote(part or 'model')};")
            _write_tree(inner, own, pad + "  ", lines)
            lines.append(f"{pad}}}")


def _quote(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    text = re.sub(r"[\x00-\x1f]", "\ufffd", text)
    return f'"{text}"'


def to_json(graph: GraphLike) -> str:
    """The graph as JSON text; `Graph.to_json` describes it."""
    whole = {
        "format": "clew.graph",
        "version": 1,
        "roots": [list(root) for root in graph.roots],
        "nodes": [_node_json(node) for node in graph.nodes],
    }
    return json.dumps(whole, ensure_ascii=False)


def _node_json(node: GraphNode) -> dict:
    return {
        "index": node.index,
        "name": node.name,
        "op": node.op,
        "sequence": node.sequence,
        "inputs": [None if edge is None else list(edge) for edge in node.inputs],
        "outputs": [{"shape": list(shape), "dtype": dtype} for shape, dtype in node.outputs],
        "saved": [
            {
                "role": saved.role,
                "shape": list(saved.shape),
                "dtype": saved.dtype,
                "nbytes": saved.nbytes,
                "storage": saved.storage,
            }
            for saved in node.saved
        ],
        "location": None if node.location is None else _location_json(node.location),
        "module": node.module,
        "module_type": node.module_type,
        "label": node.label,
        "flops": node.flops,
    }


def _location_json(location: Location) -> dict:
    return {
        "file": location.file,
        "line": location.line,
        "column": location.column,
        "function": location.function,
        "source": location.source,
    }
