"""The page: one file with the picture's data and a viewer, which needs nothing else."""

from __future__ import annotations

import html
import json
from collections import deque
from collections.abc import Sequence
from importlib import resources

from clew._insight.graph import palette
from clew._insight.graph.collapse import EACH_LIMIT, Child, Cluster, Picture
from clew._insight.graph.data import GraphLike
from clew._insight.graph.frames import bases
from clew._insight.graph.labels import details, text_of
from clew._insight.graph.layout import Content
from clew._insight.graph.svg import readable, style

# At most this many boxes are written into the page; clusters beyond it stay closed and say so.
MOST_BOXES = 20_000
# ... of which at most this many in clusters that show each node or module by itself.
MOST_SINGLE = 6_000
# How many boxes are open at first.
FIRST = 16


def to_html(graph: GraphLike, steps: Sequence[GraphLike] = ()) -> str:
    """The page; `Graph.to_html` describes it."""
    graphs = list(steps)
    if all(graph is not other for other in graphs):
        graphs.append(graph)
    at = next(i for i, other in enumerate(graphs) if other is graph)
    pictures, frames = bases(graphs)
    first = frames[at].base
    picture = pictures[first]
    found = [_data(each) for each in pictures]
    others = [None if i == first else each for i, each in enumerate(found)]
    measured = [frame.data() for frame in frames]
    whole = {**found[first], "bases": others, "at": at, "frames": measured}
    data = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    # What would end the script element, or be read as the beginning of a comment in it.
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    parts = {
        "title": html.escape(_title(picture)),
        "colours": _colours(),
        "css": _file("viewer.css"),
        "place": _file("viewer_place.js"),
        "panel": _file("viewer_panel.js"),
        "time": _file("viewer_time.js"),
        "js": _file("viewer.js"),
        "data": data,
    }
    page = _file("viewer.html")
    pieces = page.split("{{")
    return pieces[0] + "".join(
        parts[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:])
    )


def _file(name: str) -> str:
    return resources.files("clew._insight.graph").joinpath(name).read_text(encoding="utf-8")


def _title(picture: Picture) -> str:
    inner = [child.cluster for child in picture.top.merged.children]
    models = [cluster for cluster in inner if cluster is not None and cluster.type is not None]
    largest = max(models, key=lambda cluster: cluster.totals.nodes, default=None)
    return "Graph" if largest is None else f"Graph of {largest.type}"


def _colours() -> str:
    def variables(colours: dict[str, str]) -> str:
        return ";".join(f"--{name}:{value}" for name, value in colours.items())

    light = f"{variables(palette.LIGHT)};color-scheme:light"
    dark = f"{variables(palette.DARK)};color-scheme:dark"
    classes = style("", {name: f"var(--{name})" for name in palette.LIGHT})
    return (
        f":root{{{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f":root[data-theme=dark]{{{dark}}}\n{classes}"
    )


def _data(picture: Picture) -> dict:
    opened = readable(picture, FIRST)
    found = _Writer(picture).run()
    totals = picture.top.totals
    return {
        "title": _title(picture),
        "nodes": totals.nodes,
        "saved": totals.saved,
        "flops": totals.flops or 0,
        "steps": palette.STEPS,
        "top": picture.top.index,
        "open": sorted(opened & found.keys()),
        "clusters": found,
    }


class _Writer:
    """Writes the clusters' contents, outer ones first, while there is room in the page."""

    def __init__(self, picture: Picture) -> None:
        self.program = picture.program
        self.found: dict[int, dict] = {}
        self.waiting = deque([picture.top])
        self.boxes = self.single = 0

    def run(self) -> dict[int, dict]:
        singles: deque[Cluster] = deque()
        # First all folded clusters; then, from outside to inside, those that show each node.
        while self.waiting or singles:
            if self.waiting:
                cluster = self.waiting.popleft()
                if cluster.index not in self.found:
                    self._merged(cluster)
                    singles.append(cluster)
            else:
                self._each(singles.popleft())
        return self.found

    def _merged(self, cluster: Cluster) -> None:
        entry: dict = {"type": cluster.type, "copies": cluster.copies, "fold": cluster.fold}
        self.found[cluster.index] = entry
        if self.boxes > MOST_BOXES:
            entry["note"] = f"not in this page: it holds {MOST_BOXES:,} boxes already"
            return
        entry["merged"] = self._content(cluster.merged)
        if cluster.starts_each:
            entry["starts"] = "each"

    def _each(self, cluster: Cluster) -> None:
        entry, count = self.found[cluster.index], cluster.each_count
        if not count or "merged" not in entry:
            return
        what = "modules" if cluster.fold else "boxes"
        if count > EACH_LIMIT:
            entry["note"] = f"{count:,} {what}: more than {EACH_LIMIT} are not shown one by one"
        elif self.single + count > MOST_SINGLE:
            entry["note"] = f"the page holds {MOST_SINGLE:,} boxes one by one already"
        else:
            self.single += count
            assert cluster.each is not None
            entry["each"] = self._content(cluster.each)

    def _content(self, content: Content[Child]) -> dict:
        self.boxes += len(content.children)
        return {
            "children": [self._child(child) for child in content.children],
            "edges": [[e.a, e.b, e.count, int(e.back), e.via] for e in content.edges],
            "loops": [[child, count] for child, count in content.loops.items()],
            "layers": content.layers,
        }

    def _child(self, child: Child) -> dict:
        text = text_of(child, self.program.nodes)
        found = {
            "kind": child.kind,
            "title": text.title,
            "times": text.times,
            "lines": text.lines,
            "texts": {"saved": text.saved, "flops": text.flops},
            "values": {"saved": child.totals.saved, "flops": child.totals.flops or 0},
            "details": details(child, self.program),
        }
        if text.backward != text.title:
            found["backward"] = text.backward
        if text.kind:
            found["word"] = text.kind
        if child.cluster is not None:
            found["cluster"] = child.cluster.index
            self.waiting.append(child.cluster)
        return found
