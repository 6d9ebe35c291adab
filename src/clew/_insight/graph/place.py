"""Where the boxes of one content lie and how its edges run, once their sizes are known.

viewer_place.js holds the same in the browser's language; a test compares their results.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from clew._insight.graph.layout import Content, Edge

SPACE = 24.0  # between boxes
POINT_SPACE = 14.0  # between an edge that passes and its neighbours
GAP = 26.0  # between layers
MARGIN = 14.0  # above and below, where no edge goes out
TRACK = 8.0  # between lines of loops
ROUNDS = 14


@dataclass(slots=True)
class Size:
    """Outer size of a box, and where edges come to its top and leave its bottom."""

    w: float
    h: float
    enter: float
    leave: float
    open: bool = False  # its content is shown: edges go on inside


@dataclass(slots=True)
class Line:
    """A drawn edge: its path, and the points at its ends where arrows are drawn."""

    edge: Edge
    d: str
    start: tuple[float, float]
    end: tuple[float, float]


@dataclass(slots=True)
class Placed:
    """A content with coordinates, its upper left corner at (0, 0)."""

    w: float
    h: float
    xy: list[tuple[float, float]]
    lines: list[Line]
    leave: float  # where on its lower edge what flows out does so, on the mean


def place(content: Content, sizes: list[Size]) -> Placed:
    """Lays one content out, given the sizes of its children."""
    return _Placer(content, sizes).run()


def separate(wanted: list[float], weights: list[float], gaps: list[float]) -> list[float]:
    """Positions nearest to those wanted (least squares) that keep the gaps between neighbours."""
    offset, offsets = 0.0, [0.0]
    for gap in gaps:
        offset += gap
        offsets.append(offset)
    blocks: list[list[float]] = []  # mean, weight, number of members
    for want, weight, shift in zip(wanted, weights, offsets):
        blocks.append([want - shift, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, heavy, size = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * heavy) / (last[1] + heavy)
            last[1] += heavy
            last[2] += size
    result: list[float] = []
    for mean, _, size in blocks:
        for _ in range(int(size)):
            result.append(mean + offsets[len(result)])
    return result


class _Placer:
    def __init__(self, content: Content, sizes: list[Size]) -> None:
        self.content = content
        self.sizes = sizes
        self.n = len(content.children)
        self.layers = content.layers
        self.rank = {item: r for r, layer in enumerate(self.layers) for item in layer}
        self.x: dict[int, float] = {}  # of an item's centre
        self.up: dict[int, list[tuple[int, float]]] = {}
        self.down: dict[int, list[tuple[int, float]]] = {}

    def run(self) -> Placed:
        self._link()
        self._across()
        self._straighten()
        left = min((self.x[i] - self._width(i) / 2 for i in self.x), default=0.0)
        right = max((self.x[i] + self._width(i) / 2 for i in self.x), default=0.0)
        lanes = self._lanes((left + right) / 2)
        # Lines of loops run outside of everything, left or right.
        room = [sum(1 for lane in lanes.values() if lane[0] == side) for side in (-1, 1)]
        shift = -left + (POINT_SPACE + TRACK * (room[0] - 1) if room[0] else 0.0)
        for item in self.x:
            self.x[item] += shift
        self.left, self.right = left + shift, right + shift
        w = self.right + (POINT_SPACE + TRACK * (room[1] - 1) if room[1] else 0.0)
        self._attach(lanes)
        self._down_page()
        lines = [self._line(edge, lanes) for edge in self.content.edges]
        xy = [
            (
                self.x[c] - self.sizes[c].w / 2,
                self.middle[self.rank[c]] - self.sizes[c].h / 2,
            )
            for c in range(self.n)
        ]
        leave = [line.end[0] for line in lines if line.edge.b < 0]
        return Placed(w, self.h, xy, lines, _mean(leave, w / 2))

    # Sizes ------------------------------------------------------------------------------------

    def _width(self, item: int) -> float:
        return self.sizes[item].w if item < self.n else 0.0

    def _gap(self, a: int, b: int) -> float:
        space = SPACE if a < self.n and b < self.n else POINT_SPACE
        return (self._width(a) + self._width(b)) / 2 + space

    def _enter(self, item: int) -> float:
        return self.sizes[item].enter - self.sizes[item].w / 2 if item < self.n else 0.0

    def _leave(self, item: int) -> float:
        return self.sizes[item].leave - self.sizes[item].w / 2 if item < self.n else 0.0

    # Across -----------------------------------------------------------------------------------

    def _link(self) -> None:
        seen = set()
        for edge in self.content.edges:
            if edge.back:
                continue
            stops = [edge.a, *edge.via, edge.b]
            for a, b in pairwise(stops):
                if a < 0 or b < 0 or (a, b) in seen:
                    continue
                seen.add((a, b))
                points = (a >= self.n) + (b >= self.n)
                weight = (1.0, 0.3, 4.0)[points]
                self.down.setdefault(a, []).append((b, weight))
                self.up.setdefault(b, []).append((a, weight))

    def _across(self) -> None:
        """Draws every item to the mean of those it is linked with, layer by layer."""
        for layer in self.layers:
            at = 0.0
            for i, item in enumerate(layer):
                at += self._gap(layer[i - 1], item) if i else 0.0
                self.x[item] = at
            for item in layer:
                self.x[item] -= at / 2
        for step in range(ROUNDS):
            for layer in self.layers:
                self._align(layer, True, step == ROUNDS - 1)
            for layer in reversed(self.layers):
                self._align(layer, step == ROUNDS - 1, True)

    def _align(self, layer: list[int], above: bool, below: bool) -> None:
        wanted, weights = [], []
        for item in layer:
            total, weight = 0.0, 0.0
            if above:
                for other, heavy in self.up.get(item, ()):
                    total += heavy * (self.x[other] + self._leave(other) - self._enter(item))
                    weight += heavy
            if below:
                for other, heavy in self.down.get(item, ()):
                    total += heavy * (self.x[other] + self._enter(other) - self._leave(item))
                    weight += heavy
            wanted.append(total / weight if weight else self.x[item])
            weights.append(weight or 0.1)
        gaps = [self._gap(a, b) for a, b in pairwise(layer)]
        for item, x in zip(layer, separate(wanted, weights, gaps)):
            self.x[item] = x

    def _straighten(self) -> None:
        """Points of one edge get one x where their neighbours leave room for it."""
        chains: dict[int, list[int]] = {}
        sources: dict[int, int] = {}
        for edge in self.content.edges:
            if edge.via and len(edge.via) > len(chains.get(edge.via[0], ())):
                chains[edge.via[0]] = edge.via
                sources[edge.via[0]] = edge.a
        for first, chain in chains.items():
            low, high = -1e18, 1e18
            for item in chain:
                layer = self.layers[self.rank[item]]
                i = layer.index(item)
                if i:
                    low = max(low, self.x[layer[i - 1]] + self._gap(layer[i - 1], item))
                if i + 1 < len(layer):
                    high = min(high, self.x[layer[i + 1]] - self._gap(item, layer[i + 1]))
            if low <= high:
                a = sources[first]
                mean = sum(self.x[item] for item in chain) / len(chain)
                wish = mean if a < 0 else self.x[a] + self._leave(a)
                half = self._width(a) / 2 - 10 if 0 <= a < self.n else 0.0
                # Straight down from its source if possible, else where it lay on the whole.
                wish = mean if abs(mean - wish) > half else min(max(wish, low), high)
                for item in chain:
                    self.x[item] = min(max(wish, low), high)

    # Ends of edges ----------------------------------------------------------------------------

    def _attach(self, lanes: dict[int, tuple[int, int]]) -> None:
        """Where on its two boxes each edge ends: straight under its partner, else near to it."""
        self.out: dict[tuple[int, int], float] = {}
        self.into: dict[tuple[int, int], float] = {}
        outs: dict[int, dict[int, float]] = {}
        ins: dict[int, dict[int, float]] = {}
        far = self.right - self.left + 100
        for edge in self.content.edges:
            if edge.back:
                outs.setdefault(edge.a, {})[-2 - edge.b] = self.x[edge.a] + far * lanes[edge.b][0]
            elif edge.a >= 0:
                to = edge.via[0] if edge.via else edge.b
                x = self.x[edge.a] + self._leave(edge.a) if to < 0 else self.x[to] + self._enter(to)
                outs.setdefault(edge.a, {})[to] = x
        for child, ends in outs.items():
            narrow = self.sizes[child].open
            self._spread(child, ends, self._leave(child), self.out, narrow)
        for edge in self.content.edges:
            if edge.b < 0:
                continue
            if edge.back:
                ins.setdefault(edge.b, {})[-2] = self.x[edge.b] + far * lanes[edge.b][0]
            else:
                source = edge.via[-1] if edge.via else edge.a
                if source < 0:
                    x = self.x[edge.b] + self._enter(edge.b)
                else:
                    x = self.out.get((source, edge.b), self.x[source])
                ins.setdefault(edge.b, {})[source] = x
        for child, ends in ins.items():
            self._spread(child, ends, self._enter(child), self.into)

    def _spread(
        self,
        child: int,
        ends: dict[int, float],
        shift: float,
        found: dict[tuple[int, int], float],
        narrow: bool = False,
    ) -> None:
        w = self.sizes[child].w
        order = sorted(ends, key=lambda other: (ends[other], other))
        centre = self.x[child] + shift
        low, high = self.x[child] - w / 2 + 10, self.x[child] + w / 2 - 10
        step = min(12.0, (high - low) / len(order))
        if narrow:
            wanted = [centre] * len(order)
        elif len(order) == 1 and not low <= ends[order[0]] <= high:
            wanted = [centre]
        else:
            wanted = [min(max(ends[other], low), high) for other in order]
        xs = separate(wanted, [1.0] * len(order), [step] * (len(order) - 1))
        over = max(0.0, xs[-1] - high) - max(0.0, low - xs[0])
        for other, x in zip(order, xs):
            found[child, other] = x - over

    # Loops ------------------------------------------------------------------------------------

    def _lanes(self, centre: float) -> dict[int, tuple[int, int]]:
        """The vertical line of each target of loops: its side and its place there."""
        reach: dict[int, list[int]] = {}
        for edge in self.content.edges:
            if edge.back:
                reach.setdefault(edge.b, []).append(edge.a)
        lanes: dict[int, tuple[int, int]] = {}
        used = {-1: 0, 1: 0}
        length = {b: max(self.rank[a] for a in near) - self.rank[b] for b, near in reach.items()}
        for b in sorted(reach, key=lambda b: (length[b], b)):
            ends = [b, *reach[b]]
            side = -1 if sum(self.x[e] for e in ends) / len(ends) < centre - 1 else 1
            lanes[b] = (side, used[side])
            used[side] += 1
        return lanes

    # Down -------------------------------------------------------------------------------------

    def _down_page(self) -> None:
        """Heights of layers and of the gaps between them, and the tracks of loops in the gaps."""
        count = len(self.layers)
        self.under: dict[tuple[int, int], int] = {}  # (gap, target) -> track below a layer
        self.over: dict[int, int] = {}  # target -> track above its layer
        used_under, used_over = [0] * (count + 1), [0] * (count + 1)
        steep = [0.0] * (count + 1)
        inward = outward = False
        for edge in self.content.edges:
            if edge.back:
                gap = self.rank[edge.a] + 1
                if (gap, edge.b) not in self.under:
                    self.under[gap, edge.b] = used_under[gap]
                    used_under[gap] += 1
                if edge.b not in self.over:
                    self.over[edge.b] = used_over[self.rank[edge.b]]
                    used_over[self.rank[edge.b]] += 1
                continue
            inward = inward or edge.a < 0
            outward = outward or edge.b < 0
            stops = self._stops(edge)
            for (x0, r0), (x1, _) in pairwise(stops):
                steep[r0 + 1] = max(steep[r0 + 1], abs(x1 - x0))
        self.top, self.middle, self.bottom = [], [], []
        y = 0.0
        for r, layer in enumerate(self.layers):
            tracks = used_under[r] + used_over[r]
            y += GAP + min(44.0, steep[r] / 8) if r or inward else MARGIN
            y += TRACK * tracks
            high = max((self.sizes[i].h for i in layer if i < self.n), default=0.0)
            self.top.append(y)
            self.middle.append(y + high / 2)
            y += high
            self.bottom.append(y)
        tracks = used_under[count]
        y += TRACK * tracks + (20 if outward else MARGIN)
        self.h = y

    def _stops(self, edge: Edge) -> list[tuple[float, int]]:
        """x and layer of everything that a forward edge goes through, its ends included."""
        first = edge.via[0] if edge.via else edge.b
        last = edge.via[-1] if edge.via else edge.a
        stops = [(self.x[point], self.rank[point]) for point in edge.via]
        end = (self.into[edge.b, last], self.rank[edge.b]) if edge.b >= 0 else None
        if edge.a >= 0:
            start = (self.out[edge.a, first], self.rank[edge.a])
        else:  # from the bar above, straight down
            start = (stops[0][0] if stops else end[0] if end else 0.0, -1)
        if end is None:
            end = (stops[-1][0] if stops else start[0], len(self.layers))
        return [start, *stops, end]

    def _line(self, edge: Edge, lanes: dict[int, tuple[int, int]]) -> Line:
        if edge.back:
            return self._loop(edge, lanes[edge.b])
        stops = self._stops(edge)
        (x0, r0), (x1, r1) = stops[0], stops[-1]
        y0 = self.middle[r0] + self.sizes[edge.a].h / 2 if edge.a >= 0 else 0.0
        y1 = self.middle[r1] - self.sizes[edge.b].h / 2 if edge.b >= 0 else self.h
        d = f"M{_n(x0)} {_n(y0)}"
        for (xa, ra), (xb, rb) in pairwise(stops):
            ya = self.bottom[ra] if ra >= 0 else 0.0
            yb = self.top[rb] if rb < len(self.layers) else self.h
            d += f"L{_n(xa)} {_n(ya)}"
            if abs(xa - xb) > 0.5:
                ym = (ya + yb) / 2
                d += f"C{_n(xa)} {_n(ym)} {_n(xb)} {_n(ym)} {_n(xb)} {_n(yb)}"
        d += f"L{_n(x1)} {_n(y1)}"
        return Line(edge, d, (x0, y0), (x1, y1))

    def _loop(self, edge: Edge, lane: tuple[int, int]) -> Line:
        a, b = edge.a, edge.b
        side, number = lane
        x0, x1 = self.out[a, -2 - b], self.into[b, -2]
        y0 = self.middle[self.rank[a]] + self.sizes[a].h / 2
        y1 = self.middle[self.rank[b]] - self.sizes[b].h / 2
        far = POINT_SPACE + TRACK * number - 2
        x = self.right + far if side > 0 else self.left - far
        gap = self.rank[a] + 1
        ya = self.bottom[gap - 1] + 8 + TRACK * self.under[gap, b]
        yb = self.top[self.rank[b]] - 12 - TRACK * self.over[b]
        d = _rounded([(x0, y0), (x0, ya), (x, ya), (x, yb), (x1, yb), (x1, y1)])
        return Line(edge, d, (x0, y0), (x1, y1))


def _rounded(points: list[tuple[float, float]]) -> str:
    """A path along horizontal and vertical lines with round corners."""
    d = f"M{_n(points[0][0])} {_n(points[0][1])}"
    for (ax, ay), (bx, by), (cx, cy) in zip(points, points[1:], points[2:]):
        r = min(6.0, (abs(bx - ax) + abs(by - ay)) / 2, (abs(cx - bx) + abs(cy - by)) / 2)
        px, py = bx - _sign(bx - ax) * r, by - _sign(by - ay) * r
        qx, qy = bx + _sign(cx - bx) * r, by + _sign(cy - by) * r
        d += f"L{_n(px)} {_n(py)}Q{_n(bx)} {_n(by)} {_n(qx)} {_n(qy)}"
    return d + f"L{_n(points[-1][0])} {_n(points[-1][1])}"


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _n(value: float) -> str:
    """A coordinate with one decimal, as both languages write it."""
    text = f"{round(value * 10) / 10:.1f}"
    return text[:-2] if text.endswith(".0") else text
