"""The still picture: one SVG, opened as far as it stays readable."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from clew._insight.graph import palette
from clew._insight.graph.collapse import Child, Cluster, Picture
from clew._insight.graph.data import GraphLike
from clew._insight.graph.labels import (
    SUB_WIDTH,
    TITLE_WIDTH,
    Text,
    box_lines,
    cut,
    text_of,
    times_text,
    title_text,
)
from clew._insight.graph.layout import Content
from clew._insight.graph.place import Placed, Size, place
from clew._insight.graph.tables import amount

# Clusters are opened, outer ones first, while no more boxes than this are shown.
READABLE = 60
BAR = 26.0
PAD = 14.0
LOOP = 18.0
FONT = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"
Direction = Literal["forward", "backward"]
Colour = Literal["saved", "flops", "kind"]

_numbers = itertools.count()


@dataclass(slots=True)
class Shown:
    """A box with its size, and with what is in it if it is open."""

    child: Child | None  # none for the whole picture
    text: Text | None
    size: Size
    looped: bool = False
    content: Content[Child] | None = None
    placed: Placed | None = None
    kids: list[Shown] = field(default_factory=list)


def content_of(cluster: Cluster) -> Content[Child]:
    """What of a cluster is shown at first."""
    if cluster.starts_each and cluster.each is not None:
        return cluster.each
    return cluster.merged


def readable(picture: Picture, limit: int = READABLE) -> set[int]:
    """The clusters to open so that about `limit` boxes are shown, level by level."""
    opened = {picture.top.index}
    level = [picture.top]
    shown = len(content_of(picture.top).children)
    while level:
        below = [c.cluster for outer in level for c in content_of(outer).children]
        clusters = sorted((c for c in below if c is not None), key=lambda c: -c.totals.nodes)
        level = []
        for cluster in clusters:
            children = content_of(cluster).children
            inner = [child for child in children if child.kind != "leaf"]
            tells = len(inner) > 1 or any(child.cluster is not None for child in inner)
            if tells and len(children) <= limit // 2 and shown + len(children) - 1 <= limit:
                shown += len(children) - 1
                opened.add(cluster.index)
                level.append(cluster)
    return opened


def to_svg(
    graph: GraphLike,
    *,
    direction: Direction = "forward",
    color: Colour = "saved",
    limit: int = READABLE,
) -> str:
    """The still picture; `Graph.to_svg` describes it."""
    if direction not in ("forward", "backward"):
        raise ValueError(f"to_svg: direction is 'forward' or 'backward', not {direction!r}")
    if color not in ("saved", "flops", "kind"):
        raise ValueError(f"to_svg: color is 'saved', 'flops' or 'kind', not {color!r}")
    picture = Picture(graph)
    return _Drawing(picture, direction == "backward", color).run(readable(picture, limit))


class _Drawing:
    def __init__(self, picture: Picture, backward: bool, colour: str) -> None:
        self.picture = picture
        self.backward = backward
        self.colour = colour
        totals = picture.top.totals
        self.whole = {"saved": totals.saved, "flops": totals.flops or 0}.get(colour, 0)
        self.name = f"clew-graph-{next(_numbers)}"
        self.parts: list[str] = []

    def run(self, opened: set[int]) -> str:
        shown = self._open(None, self.picture.top, opened)
        w, h = shown.size.w, shown.size.h
        loops = any(kid.looped for kid in _all(shown)) or any(
            line.edge.back for kid in _all(shown) if kid.placed for line in kid.placed.lines
        )
        caption = self._caption(loops)
        width = max(w, 7 * max(len(line) for line in caption) * 0.87 + 2 * PAD, 260.0)
        height = h + 14 + 15 * len(caption) + (24 if self.whole else 0)
        self._content(shown, (width - w) / 2, 0.0, 0)
        y = h + 14
        for line in caption:
            self._text(PAD, y, line, "sub soft")
            y += 15
        if self.whole:
            self._scale(PAD, y - 4)
        body = "".join(self.parts)
        label = _escape(f"graph of {self.picture.top.totals.nodes} nodes, {self._words()}")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{self.name}" role="img" '
            f'aria-label="{label}" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}">'
            f"<style>{self._style()}</style>"
            f'<rect class="page" width="100%" height="100%"/>{body}</svg>\n'
        )

    # Sizes ------------------------------------------------------------------------------------

    def _open(self, child: Child | None, cluster: Cluster, opened: set[int]) -> Shown:
        content = content_of(cluster)
        kids = []
        for number, inner in enumerate(content.children):
            if inner.cluster is not None and inner.cluster.index in opened:
                kid = self._open(inner, inner.cluster, opened)
            else:
                text = text_of(inner, self.picture.program.nodes)
                kid = Shown(inner, text, closed_size(text, self.backward, self.colour))
            if number in content.loops:
                kid.looped = True
                kid.size.w += LOOP
            kids.append(kid)
        placed = place(content, [kid.size for kid in kids])
        if child is None:
            size = Size(placed.w + 2 * PAD, placed.h, 0, 0)
            return Shown(None, None, size, False, content, placed, kids)
        text = text_of(child, self.picture.program.nodes)
        width = max(placed.w + 2 * PAD, bar_width(text, self.colour))
        side = (width - placed.w) / 2
        # Edges may enter a title bar at any x. They enter at the x at which edges leave below, so
        # that a chain of clusters is a straight line.
        size = Size(width, BAR + placed.h, side + placed.leave, side + placed.leave, True)
        return Shown(child, text, size, False, content, placed, kids)

    # Drawing ----------------------------------------------------------------------------------

    def _content(self, shown: Shown, x: float, y: float, depth: int) -> None:
        placed, content = shown.placed, shown.content
        assert placed is not None and content is not None
        width = shown.size.w - (LOOP if shown.looped else 0)
        self.parts.append(f'<g transform="translate({x + (width - placed.w) / 2:.1f} {y:.1f})">')
        for line in placed.lines:
            kind = "loop" if line.edge.back else "edge"
            self.parts.append(f'<path class="{kind}" d="{line.d}"/>')
            self._arrow(line.start if self.backward else line.end, kind, not self.backward)
        for number, (kid, (kx, ky)) in enumerate(zip(shown.kids, placed.xy)):
            if kid.looped:
                self._self_loop(kid, kx, ky, content.loops[number])
            if kid.content is not None:
                self._opened(kid, kx, ky, depth)
            else:
                self._closed(kid, kx, ky)
        self.parts.append("</g>")

    def _arrow(self, at: tuple[float, float], kind: str, down: bool) -> None:
        x, y = at
        back = -6.5 if down else 6.5
        points = f"{x - 3.3:.1f},{y + back:.1f} {x + 3.3:.1f},{y + back:.1f} {x:.1f},{y:.1f}"
        self.parts.append(f'<polygon class="{kind}head" points="{points}"/>')

    def _self_loop(self, kid: Shown, x: float, y: float, count: int) -> None:
        right = x + kid.size.w - LOOP
        if kid.content is not None:
            low, high = y + kid.size.h - 14, y + BAR / 2
        else:
            low, high = y + kid.size.h * 0.72, y + kid.size.h * 0.28
        far = right + LOOP - 4
        d = (
            f"M{right:.1f} {low:.1f}H{far - 5:.1f}Q{far:.1f} {low:.1f} {far:.1f} {low - 5:.1f}"
            f"V{high + 5:.1f}Q{far:.1f} {high:.1f} {far - 5:.1f} {high:.1f}H{right:.1f}"
        )
        tip = low if self.backward else high
        head = f"{right + 6.5:.1f},{tip - 3.3:.1f} {right + 6.5:.1f},{tip + 3.3:.1f} "
        self.parts.append(
            f'<g><title>{count} from one to the next</title><path class="loop" d="{d}"/>'
            f'<polygon class="loophead" points="{head}{right:.1f},{tip:.1f}"/></g>'
        )

    def _opened(self, kid: Shown, x: float, y: float, depth: int) -> None:
        child, text = kid.child, kid.text
        assert child is not None and child.cluster is not None and text is not None
        w, h = kid.size.w - (LOOP if kid.looped else 0), kid.size.h
        heat = self._heat(child)
        tip = _escape(self._tip(child, text))
        self.parts.append(
            f"<g><title>{tip}</title>"
            f'<rect class="room{depth % 2} frame" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" '
            f'height="{h:.1f}" rx="7"/>'
            f'<path class="{heat if heat != "heat0" else "bar"} frame" d="M{x:.1f} {y + BAR:.1f}'
            f"v{7 - BAR:.1f}q0 -7 7 -7h{w - 14:.1f}q7 0 7 7v{BAR - 7:.1f}z"
            f'"/>'
        )
        title = title_text(text, self.backward)
        self._text(x + 10, y + 17.5, title, "title")
        at = x + 10 + TITLE_WIDTH * len(title) + 8
        if text.times > 1:
            self._text(at, y + 17.5, times_text(text), "title times")
            at += TITLE_WIDTH * len(times_text(text)) + 8
        if text.kind:
            self._text(at, y + 17.5, text.kind, "sub soft")
        value = {"saved": text.saved, "flops": text.flops}.get(self.colour, "")
        if value:
            self._text(x + w - 10, y + 17.5, value, "sub soft end")
        self.parts.append("</g>")
        self._content(kid, x, y + BAR, depth + 1)

    def _closed(self, kid: Shown, x: float, y: float) -> None:
        child, text = kid.child, kid.text
        assert child is not None and text is not None
        w, h = kid.size.w - (LOOP if kid.looped else 0), kid.size.h
        tip = _escape(self._tip(child, text))
        self.parts.append(f"<g><title>{tip}</title>")
        box = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
        if child.cluster is not None:
            for back in (6, 3) if child.cluster.fold else (3,):
                self.parts.append(
                    f'<rect class="bar frame" x="{x + back:.1f}" y="{y + back:.1f}" '
                    f'width="{w:.1f}" height="{h:.1f}" rx="6"/>'
                )
        radius = {"leaf": h / 2, "result": h / 2, "cluster": 6.0}.get(child.kind, 4.0)
        look = child.kind if child.kind in ("leaf", "result") else f"{self._heat(child)} frame"
        self.parts.append(f'<rect class="{look}" {box} rx="{radius:.1f}"/>')
        lines = box_lines(text, self.colour)
        title, times = title_text(text, self.backward), times_text(text)
        middle = x + w / 2
        ty = y + (h - 13 * len(lines)) / 2 + 4.5
        if times:
            width = TITLE_WIDTH * (len(title) + 1 + len(times))
            self._text(middle - width / 2, ty, title, "title")
            self._text(middle + width / 2, ty, times, "title times end")
        else:
            self._text(middle, ty, title, "title middle")
        for number, line in enumerate(lines):
            self._text(middle, ty + 15 + 13 * number, line, "sub soft middle")
        self.parts.append("</g>")

    def _text(self, x: float, y: float, text: str, look: str) -> None:
        anchor = "middle" if "middle" in look else "end" if "end" in look else "start"
        size = 12 if look.startswith("title") else 10
        bold = ' font-weight="600"' if look.startswith("title") else ""
        fill = "soft" if "soft" in look else "times" if "times" in look else "ink"
        self.parts.append(
            f'<text class="t{fill}" x="{x:.1f}" y="{y:.1f}" font-size="{size}"{bold} '
            f'text-anchor="{anchor}">{_escape(text)}</text>'
        )

    def _heat(self, child: Child) -> str:
        value = {"saved": child.totals.saved, "flops": child.totals.flops or 0}
        return f"heat{palette.step_of(value.get(self.colour, 0), self.whole)}"

    def _tip(self, child: Child, text: Text) -> str:
        lines = [f"{text.backward if self.backward else text.title} {times_text(text)}".strip()]
        lines += text.lines
        if child.cluster is None and child.nodes:
            at = self.picture.program.nodes[child.nodes[0]].location
            if at is not None and at.source:
                lines.append(at.source.strip())
        if child.totals.saved:
            lines.append(f"keeps {text.saved} for backward")
        if text.flops:
            lines.append(text.flops)
        return "\n".join(lines)

    # Around -----------------------------------------------------------------------------------

    def _words(self) -> str:
        return "gradients" if self.backward else "data from parameters to the result"

    def _caption(self, loops: bool) -> list[str]:
        totals = self.picture.top.totals
        facts = [
            f"{totals.nodes:,} nodes",
            f"{amount(totals.saved, 'B')} kept for backward",
        ]
        if totals.flops:
            facts.append(amount(totals.flops, "FLOP"))
        lines = [" · ".join(facts)]
        if loops:
            lines.append("×n: made n times by one place; dashed: to the next time")
        return lines

    def _scale(self, x: float, y: float) -> None:
        what = "bytes kept" if self.colour == "saved" else "FLOPs"
        self._text(x, y + 9, f"share of {what}", "sub soft")
        x += SUB_WIDTH * (10 + len(what))
        for step in range(palette.STEPS):
            self.parts.append(
                f'<rect class="heat{step} frame" x="{x + 16 * step:.1f}" y="{y:.1f}" '
                f'width="16" height="11"/>'
            )
        self._text(x + 16 * palette.STEPS + 6, y + 9, "all", "sub soft")

    def _style(self) -> str:
        return style(f".{self.name} ", palette.LIGHT) + (
            "@media (prefers-color-scheme:dark){" + style(f".{self.name} ", palette.DARK) + "}"
        )


def _all(shown: Shown) -> Iterator[Shown]:
    yield shown
    for kid in shown.kids:
        yield from _all(kid)


def style(prefix: str, colours: dict[str, str]) -> str:
    """Rules for the picture's classes, each after `prefix`."""
    rules = {
        "page": f"fill:{colours['page']}",
        "edge": f"fill:none;stroke:{colours['line']};stroke-width:1.3",
        "edgehead": f"fill:{colours['line']}",
        "loop": f"fill:none;stroke:{colours['loop']};stroke-width:1.3;stroke-dasharray:4 3",
        "loophead": f"fill:{colours['loop']}",
        "frame": f"stroke:{colours['rule']};stroke-width:1",
        "leaf": f"fill:{colours['leaf']};stroke:{colours['leafrule']}",
        "result": f"fill:{colours['result']};stroke:{colours['resultrule']}",
        "bar": f"fill:{colours['bar']}",
        "room0": f"fill:{colours['room0']}",
        "room1": f"fill:{colours['room1']}",
        "tink": f"fill:{colours['ink']}",
        "tsoft": f"fill:{colours['soft']}",
        "ttimes": f"fill:{colours['times']}",
    }
    for step in range(palette.STEPS):
        rules[f"heat{step}"] = f"fill:{colours[f'heat{step}']}"
    return "".join(f"{prefix}.{name}{{{rule}}}" for name, rule in rules.items())


def closed_size(text: Text, backward: bool, colour: str) -> Size:
    """The size of a closed box."""
    times = times_text(text)
    title = title_text(text, backward)
    lines = box_lines(text, colour)
    w = TITLE_WIDTH * (len(title) + (1 + len(times) if times else 0))
    w = max([w, *(SUB_WIDTH * len(line) for line in lines)]) + 22
    h = 27.0 + 13 * len(lines)
    return Size(w, h, w / 2, w / 2)


def bar_width(text: Text, colour: str) -> float:
    """The width that the title bar of an open cluster needs."""
    value = {"saved": text.saved, "flops": text.flops}.get(colour, "")
    small = len(value) + len(text.kind)
    return TITLE_WIDTH * (len(cut(text.title, 30)) + len(times_text(text))) + SUB_WIDTH * small + 56


def _escape(text: str) -> str:
    text = re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
    return html.escape(text)
