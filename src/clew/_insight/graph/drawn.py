"""The part of a Graph that writes it: pictures, files, other libraries' graphs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from clew._insight.graph.data import GraphNode


class Drawn:
    """Methods of `Graph`; the modules behind them are loaded when something is drawn."""

    nodes: list[GraphNode]
    roots: list[tuple[int, int]]

    def save(self, path: str | os.PathLike[str], *, steps: Sequence[Any] = ()) -> None:
        """Writes the graph into a file: a picture, a page to explore it, or its data.

        Args:
            path: ends in ".svg", ".html", ".dot" or ".json".
            steps: graphs for a page with a slider; see `to_html`.

        Raises:
            ValueError: the name ends in anything else, or `steps` are given for another file than
                a page.

        >>> x = clew.ones(2, requires_grad=True)
        >>> clew.graph((x * x).sum()).save("square.svg")
        """
        from clew._insight.graph.pictures import save

        save(self, path, steps)

    def to_svg(
        self,
        *,
        direction: Literal["forward", "backward"] = "forward",
        color: Literal["saved", "flops", "kind"] = "saved",
        limit: int = 60,
    ) -> str:
        """A picture with one box for each line of the program; equal modules share a box.

        Args:
            direction: "forward" names operations and follows data; "backward" names backward nodes
                and follows gradients.
            color: what the boxes' colour shows: "saved" bytes, "flops", or only their "kind".
            limit: modules are opened while about this number of boxes is shown.

        Returns: SVG text that needs no font, script or file beside it.

        Raises:
            ValueError: `direction` or `color` is none of these words.

        >>> x = clew.ones(2, requires_grad=True)
        >>> clew.graph((x * x).sum()).to_svg()[:4]
        '<svg'
        """
        from clew._insight.graph.pictures import to_svg

        return to_svg(self, direction=direction, color=color, limit=limit)

    def to_html(self, *, steps: Sequence[Any] = ()) -> str:
        """The page that `save` writes: modules open and close, boxes are searched and measured.

        Args:
            steps: graphs of several steps, in order, that a slider goes through;
                `clew.debug.record(graphs=...)` keeps them. The page begins with this graph, which
                is added as the last one if it is not among them.

        Returns: the text of one HTML file that needs no network.

        >>> x = clew.ones(2, requires_grad=True)
        >>> clew.graph((x * x).sum()).to_html()[:15]
        '<!DOCTYPE html>'
        """
        from clew._insight.graph.pictures import to_html

        return to_html(self, steps)

    def to_dot(self, collapsed: bool = True) -> str:
        """The graph as text for Graphviz.

        Args:
            collapsed: write one box for each line and one cluster for equal modules, instead of
                every node.

        Returns: a directed graph in the DOT language.

        >>> x = clew.ones(2, requires_grad=True)
        >>> print(clew.graph(x.exp()).to_dot()[:9])
        digraph {
        """
        from clew._insight.graph.pictures import to_dot

        return to_dot(self, collapsed)

    def to_json(self) -> str:
        """The graph as JSON text, every node with all that is known of it.

        Returns: the text of an object with "format" ("clew.graph"), "version" (1), "roots" (pairs
        of a node's index and the number of its output) and "nodes" in order of creation. Each has

        - "index", "name" ("MulBackward0"), "op" ("mul"; "leaf" for a tensor that collects its
          gradient), "sequence";
        - "inputs": for each input of the operation a pair of the index of the node that made it and
          the number of that node's output, or null where no gradient flows;
        - "outputs": "shape" and "dtype" of each;
        - "saved": what is kept for backward: "role", "shape", "dtype", "nbytes" and "storage"
          (equal numbers are one memory);
        - "location": "file", "line", "column", "function" and "source", or null;
        - "module" (its path, "" for the outermost, null outside of any), "module_type", "label" (a
          parameter's name), "flops".

        >>> import json
        >>> x = clew.ones(2, requires_grad=True)
        >>> [node["op"] for node in json.loads(clew.graph(x * x).to_json())["nodes"]]
        ['leaf', 'mul']
        """
        from clew._insight.graph.pictures import to_json

        return to_json(self)

    def to_networkx(self) -> Any:
        """The graph for networkx: edges go from the operation that made a value to its user.

        Returns: a `networkx.MultiDiGraph`. Nodes are numbered as here and carry "op", "name",
        "shape", "dtype", "module", "line", "label", "flops" and "saved" (bytes); edges carry
        "output" and "input", the numbers of the value among the results and the arguments.

        Raises:
            ModuleNotFoundError: networkx is not installed.
        """
        from clew._insight.graph.exchange import to_networkx

        return to_networkx(self)

    def _repr_html_(self) -> str:
        from clew._insight.graph.pictures import repr_html

        return repr_html(self)
