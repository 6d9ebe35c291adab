"""The memory timeline as a picture: SVG, and a page that shows the numbers under the mouse."""

from __future__ import annotations

import json
import math
from html import escape

from clew.autograd._profiler_table import shorten
from clew.autograd._profiler_text import format_memory, format_time
from clew.profiler._attribution import Peak
from clew.profiler._series import BEFORE, OTHERS, Series

__all__ = ["page", "svg"]

WIDTH, HEIGHT = 1120, 460
LEFT, RIGHT, TOP, BOTTOM = 84, 20, 40, 44
ROW = 20  # of the legend
# Told apart by those who do not see all colours, too.
COLOURS = (
    "#3b6fb6", "#e08a1e", "#3a9a6b", "#c4526b", "#7d62b3", "#8c7a3d", "#3fa7b5", "#d071b5",
    "#6b8f2a", "#a3563a",
)  # fmt: skip
COLOUR_OF = {BEFORE: "#c9ccd1", OTHERS: "#8b9099"}


def _colours(groups: list[str]) -> list[str]:
    found, number = [], 0
    for group in groups:
        if group in COLOUR_OF:
            found.append(COLOUR_OF[group])
        else:
            found.append(COLOURS[number % len(COLOURS)])
            number += 1
    return found


def _ticks(largest: float, base: float) -> list[float]:
    """A few round numbers from 0 to `largest`."""
    if largest <= 0:
        return [0.0]
    raw = largest / 7
    power = base ** math.floor(math.log(raw, base)) if raw >= 1 else 1.0
    steps = (1, 2, 5, 10) if base == 10 else [2**i for i in range(11)]
    step = next((power * s for s in steps if power * s >= raw), power * base)
    return [i * step for i in range(int(largest / step) + 1)]


class _Frame:
    """Where times and bytes lie in the picture."""

    def __init__(self, series: Series) -> None:
        self.first = series.times_us[0]
        self.span = max(series.times_us[-1] - self.first, 1e-3)
        self.most = max(series.total(series.peak_index), 1) * 1.05

    def x(self, time_us: float) -> float:
        return LEFT + (time_us - self.first) / self.span * (WIDTH - LEFT - RIGHT)

    def y(self, nbytes: float) -> float:
        return HEIGHT - BOTTOM - nbytes / self.most * (HEIGHT - TOP - BOTTOM)


def _areas(series: Series, frame: _Frame) -> list[str]:
    """One closed outline a group, each on top of those before it; memory changes in steps."""
    below = [0] * len(series.times_us)
    found = []
    xs = [frame.x(t) for t in series.times_us] + [frame.x(frame.first + frame.span)]
    for g, colour in enumerate(_colours(series.groups)):
        above = [low + row[g] for low, row in zip(below, series.bytes)]
        outline = [
            f"{xs[i + side]:.1f},{frame.y(above[i]):.1f}"
            for i in range(len(above))
            for side in (0, 1)
        ]
        outline += [
            f"{xs[i + side]:.1f},{frame.y(below[i]):.1f}"
            for i in reversed(range(len(below)))
            for side in (1, 0)
        ]
        title = f"<title>{escape(series.groups[g])}</title>"
        found.append(f'<polygon fill="{colour}" points="{" ".join(outline)}">{title}</polygon>')
        below = above
    return found


def svg(series: Series, peak: Peak) -> str:
    """The picture alone."""
    frame = _Frame(series)
    rows = math.ceil(len(series.groups) / 2)
    height = HEIGHT + 10 + rows * ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for value in _ticks(frame.most, 2):
        y = frame.y(value)
        parts.append(
            f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e4e6ea"/>'
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555">'
            f"{format_memory(value)}</text>"
        )
    parts += _areas(series, frame)
    for value in _ticks(frame.span, 10):
        x = frame.x(frame.first + value)
        parts.append(
            f'<path d="M{x:.1f} {HEIGHT - BOTTOM}v5" stroke="#555"/>'
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 19}" text-anchor="middle" fill="#555">'
            f"{format_time(value)}</text>"
        )
    parts.append(
        f'<path d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}" stroke="#555"/>'
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle" '
        'fill="#555">time since the profile began</text>'
    )
    x = frame.x(series.times_us[series.peak_index])
    y = frame.y(series.total(series.peak_index))
    anchor = "end" if x > WIDTH / 2 else "start"
    parts.append(
        f'<path d="M{x:.1f} {y:.1f}V{HEIGHT - BOTTOM}" stroke="#222" stroke-dasharray="3 3"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="#222"/>'
        f'<text x="{x:.1f}" y="{y - 9:.1f}" text-anchor="{anchor}" font-weight="600" fill="#222">'
        f"{escape(_headline(peak))}</text>"
    )
    for i, (group, colour) in enumerate(zip(series.groups, _colours(series.groups))):
        left = LEFT + (i % 2) * (WIDTH - LEFT - RIGHT) / 2
        top = HEIGHT + 10 + i // 2 * ROW
        parts.append(
            f'<rect x="{left}" y="{top - 10}" width="12" height="12" fill="{colour}"/>'
            f'<text x="{left + 18}" y="{top}" fill="#222">{escape(shorten(group, 70, True))}: '
            f"{format_memory(series.bytes[series.peak_index][i])} at the peak</text>"
        )
    parts.append("</svg>")
    return "\n".join(parts)


def _headline(peak: Peak) -> str:
    text = f"peak {format_memory(peak.bytes)}"
    if peak.rows:
        text += f", {peak.rows[0].share:.0%} {shorten(peak.rows[0].label, 60)}"
    return text


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Memory timeline</title>
<style>
body { font: 14px/1.45 system-ui, sans-serif; margin: 24px; color: #222; background: #fff; }
h1 { font-size: 18px; margin: 0 0 12px; }
#picture { position: relative; width: @WIDTH@px; }
#line { position: absolute; width: 1px; background: #222; pointer-events: none; display: none; }
#tip { position: absolute; pointer-events: none; display: none; background: #fff;
  border: 1px solid #999; border-radius: 4px; padding: 6px 10px; font-size: 12px;
  box-shadow: 0 2px 8px rgba(0, 0, 0, .18); white-space: nowrap; z-index: 1; }
#tip i { display: inline-block; width: 9px; height: 9px; margin-right: 6px; }
table { border-collapse: collapse; margin-top: 20px; font-size: 13px; }
th, td { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid #e4e6ea; }
td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
code { font-size: 12px; }
</style></head><body>
<h1>@TITLE@</h1>
<p id="parts">@PARTS@</p>
<div id="picture">@SVG@<div id="line"></div><div id="tip"></div></div>
<table><tr><th>Share</th><th>Bytes</th><th>Blocks</th><th>Phase</th><th>Module and line</th>
<th>Source</th></tr>
@ROWS@</table>
<script>
const data = @DATA@;
const box = document.getElementById("picture"), line = document.getElementById("line");
const tip = document.getElementById("tip");
function size(n) {
  for (const [unit, one] of [["GB", 2 ** 30], ["MB", 2 ** 20], ["KB", 2 ** 10]])
    if (Math.abs(n) >= one) return (n / one).toFixed(2) + " " + unit;
  return n + " B";
}
function time(us) {
  return us >= 1e6 ? (us / 1e6).toFixed(3) + " s" : us >= 1e3 ? (us / 1e3).toFixed(3) + " ms"
    : us.toFixed(3) + " us";
}
function show(event) {
  const x = event.clientX - box.getBoundingClientRect().left;
  if (x < data.left || x > data.right) return hide();
  const at = data.first + (x - data.left) / (data.right - data.left) * data.span;
  let low = 0, high = data.times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (data.times[middle] <= at) low = middle; else high = middle - 1;
  }
  const row = data.bytes[low];
  tip.textContent = "";
  const add = (text, colour) => {
    const item = document.createElement("div");
    if (colour) {
      const mark = document.createElement("i");
      mark.style.background = colour;
      item.append(mark);
    }
    item.append(text);
    tip.append(item);
  };
  add(time(at) + ": " + size(row.reduce((a, b) => a + b, 0)) + " alive");
  row.map((n, i) => [n, i]).filter(p => p[0] > 0).sort((a, b) => b[0] - a[0])
    .forEach(([n, i]) => add(size(n) + "  " + data.groups[i], data.colours[i]));
  line.style.cssText = `display: block; left: ${x}px; top: ${data.top}px; height: ${data.height}px`;
  tip.style.display = "block";
  tip.style.left = (x > data.right / 2 ? x - tip.offsetWidth - 12 : x + 12) + "px";
  tip.style.top = data.top + 10 + "px";
}
function hide() { line.style.display = tip.style.display = "none"; }
box.addEventListener("mousemove", show);
box.addEventListener("mouseleave", hide);
</script></body></html>
"""


def _parts(series: Series) -> str:
    """What the bytes at the peak are for, the largest part first."""
    at = series.bytes[series.peak_index]
    total = sum(at)
    parts = sorted(zip(at, series.groups), reverse=True)
    return ", ".join(
        f"{name} {n / total:.0%} ({format_memory(n)})" for n, name in parts if total and n > 0
    )


def page(series: Series, peak: Peak) -> str:
    """The picture in a page that needs nothing else."""
    frame = _Frame(series)
    rows = []
    for row in peak.rows[:40]:
        at = row.location
        where = row.label if at is None else f"{row.where}, {at.short}"
        rows.append(
            f'<tr><td class="n">{row.share:.1%}</td><td class="n">{format_memory(row.nbytes)}</td>'
            f'<td class="n">{row.blocks or ""}</td><td>{row.phase}</td><td>{escape(where)}</td>'
            f"<td><code>{escape('' if at is None else at.source)}</code></td></tr>"
        )
    data = {
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "height": HEIGHT - TOP - BOTTOM,
        "first": frame.first,
        "span": frame.span,
        "groups": series.groups,
        "colours": _colours(series.groups),
        "times": [round(t, 3) for t in series.times_us],
        "bytes": series.bytes,
    }
    # A "</" inside would end the script.
    text = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    return (
        _PAGE.replace("@WIDTH@", str(WIDTH))
        .replace("@TITLE@", escape(str(peak).splitlines()[0]))
        .replace("@PARTS@", escape(_parts(series)))
        .replace("@SVG@", svg(series, peak))
        .replace("@ROWS@", "\n".join(rows))
        .replace("@DATA@", text)
    )
