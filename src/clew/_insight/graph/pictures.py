"""Pictures of a graph and the files they are saved in."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from clew._base.whole_files import replacing
from clew._insight.graph.data import GraphLike
from clew._insight.graph.dot import to_dot, to_json
from clew._insight.graph.html import to_html
from clew._insight.graph.svg import to_svg

__all__ = ["repr_html", "save", "to_dot", "to_html", "to_json", "to_svg"]

_WRITERS: dict[str, Callable[[GraphLike], str]] = {
    ".svg": to_svg,
    ".html": to_html,
    ".dot": to_dot,
    ".json": to_json,
}
# A notebook shows the picture among text: fewer boxes than a file of its own.
NOTEBOOK = 30


def save(graph: GraphLike, path: str | os.PathLike[str], steps: Sequence[GraphLike] = ()) -> None:
    """Writes the graph into a file; `Graph.save` describes it."""
    name = os.fspath(path)
    ending = os.path.splitext(name)[1].lower()
    writer = _WRITERS.get(ending)
    if writer is None:
        endings = ", ".join(repr(known) for known in _WRITERS)
        raise ValueError(f"Graph.save: the file's name must end in one of {endings}, got {name!r}")
    if steps and ending != ".html":
        raise ValueError(f"Graph.save: steps are shown by a page alone, '.html'; got {name!r}")
    text = to_html(graph, steps) if steps else writer(graph)
    with replacing(name, "w", encoding="utf-8") as file:
        file.write(text)


def repr_html(graph: GraphLike) -> str:
    """What a notebook shows: a small picture, scrolled where it is larger than the page."""
    return f'<div style="max-height:700px;overflow:auto">{to_svg(graph, limit=NOTEBOOK)}</div>'
