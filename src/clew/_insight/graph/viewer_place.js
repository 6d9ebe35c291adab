// Where the boxes of one content lie and how its edges run: place.py in the browser's language.
"use strict";

const clewPlace = (() => {
  const SPACE = 24, POINT_SPACE = 14, GAP = 26, MARGIN = 14, TRACK = 8, ROUNDS = 14;

  // Positions nearest to those wanted (least squares) that keep the gaps between neighbours.
  function separate(wanted, weights, gaps) {
    const offsets = [0];
    for (const gap of gaps) offsets.push(offsets[offsets.length - 1] + gap);
    const blocks = [];
    wanted.forEach((want, i) => {
      blocks.push([want - offsets[i], weights[i], 1]);
      while (blocks.length > 1 && blocks[blocks.length - 2][0] > blocks[blocks.length - 1][0]) {
        const [mean, heavy, size] = blocks.pop();
        const last = blocks[blocks.length - 1];
        last[0] = (last[0] * last[1] + mean * heavy) / (last[1] + heavy);
        last[1] += heavy;
        last[2] += size;
      }
    });
    const result = [];
    for (const [mean, , size] of blocks)
      for (let i = 0; i < size; i++) result.push(mean + offsets[result.length]);
    return result;
  }

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const sum = values => values.reduce((a, b) => a + b, 0);
  const mean = (values, otherwise) => (values.length ? sum(values) / values.length : otherwise);
  const number = value => String(Math.round(value * 10) / 10 || 0);
  const put = (map, key, make) => {
    if (!map.has(key)) map.set(key, make());
    return map.get(key);
  };

  // A path along horizontal and vertical lines with round corners.
  function rounded(points) {
    let d = `M${number(points[0][0])} ${number(points[0][1])}`;
    for (let i = 1; i + 1 < points.length; i++) {
      const [ax, ay] = points[i - 1], [bx, by] = points[i], [cx, cy] = points[i + 1];
      const r = Math.min(
        6, (Math.abs(bx - ax) + Math.abs(by - ay)) / 2, (Math.abs(cx - bx) + Math.abs(cy - by)) / 2);
      const px = bx - Math.sign(bx - ax) * r, py = by - Math.sign(by - ay) * r;
      const qx = bx + Math.sign(cx - bx) * r, qy = by + Math.sign(cy - by) * r;
      d += `L${number(px)} ${number(py)}Q${number(bx)} ${number(by)} ${number(qx)} ${number(qy)}`;
    }
    const last = points[points.length - 1];
    return d + `L${number(last[0])} ${number(last[1])}`;
  }

  class Placer {
    // content: {children, edges: [{a, b, count, back, via}], layers}; sizes: [{w, h, enter, leave}]
    constructor(content, sizes) {
      this.content = content;
      this.sizes = sizes;
      this.n = content.children.length;
      this.layers = content.layers;
      this.rank = new Map();
      this.layers.forEach((layer, r) => layer.forEach(item => this.rank.set(item, r)));
      this.x = new Map(); // of an item's centre
      this.up = new Map();
      this.down = new Map();
    }

    run() {
      this.link();
      this.across();
      this.straighten();
      let left = Infinity, right = -Infinity;
      for (const [item, x] of this.x) {
        left = Math.min(left, x - this.width(item) / 2);
        right = Math.max(right, x + this.width(item) / 2);
      }
      if (left > right) left = right = 0;
      const lanes = this.lanes((left + right) / 2);
      // Lines of loops run outside of everything, left or right.
      const room = [-1, 1].map(side => [...lanes.values()].filter(lane => lane[0] === side).length);
      const shift = -left + (room[0] ? POINT_SPACE + TRACK * (room[0] - 1) : 0);
      for (const [item, x] of this.x) this.x.set(item, x + shift);
      this.left = left + shift;
      this.right = right + shift;
      const w = this.right + (room[1] ? POINT_SPACE + TRACK * (room[1] - 1) : 0);
      this.attach(lanes);
      this.downPage();
      const lines = this.content.edges.map(edge => this.line(edge, lanes));
      const xy = this.sizes.map((size, c) =>
        [this.x.get(c) - size.w / 2, this.middle[this.rank.get(c)] - size.h / 2]);
      const leave = lines.filter(line => line.edge.b < 0).map(line => line.end[0]);
      return {w, h: this.h, xy, lines, leave: mean(leave, w / 2)};
    }

    // Sizes ------------------------------------------------------------------------------------

    width(item) { return item < this.n ? this.sizes[item].w : 0; }

    gap(a, b) {
      const space = a < this.n && b < this.n ? SPACE : POINT_SPACE;
      return (this.width(a) + this.width(b)) / 2 + space;
    }

    enter(item) { return item < this.n ? this.sizes[item].enter - this.sizes[item].w / 2 : 0; }
    leave(item) { return item < this.n ? this.sizes[item].leave - this.sizes[item].w / 2 : 0; }

    // Across -----------------------------------------------------------------------------------

    link() {
      const seen = new Set();
      for (const edge of this.content.edges) {
        if (edge.back) continue;
        const stops = [edge.a, ...edge.via, edge.b];
        for (let i = 0; i + 1 < stops.length; i++) {
          const a = stops[i], b = stops[i + 1], key = `${a},${b}`;
          if (a < 0 || b < 0 || seen.has(key)) continue;
          seen.add(key);
          const weight = [1, 0.3, 4][(a >= this.n) + (b >= this.n)];
          put(this.down, a, () => []).push([b, weight]);
          put(this.up, b, () => []).push([a, weight]);
        }
      }
    }

    // Draws every item to the mean of those it is linked with, layer by layer.
    across() {
      for (const layer of this.layers) {
        let at = 0;
        layer.forEach((item, i) => {
          at += i ? this.gap(layer[i - 1], item) : 0;
          this.x.set(item, at);
        });
        for (const item of layer) this.x.set(item, this.x.get(item) - at / 2);
      }
      for (let step = 0; step < ROUNDS; step++) {
        const last = step === ROUNDS - 1;
        for (const layer of this.layers) this.align(layer, true, last);
        for (const layer of [...this.layers].reverse()) this.align(layer, last, true);
      }
    }

    align(layer, above, below) {
      const wanted = [], weights = [];
      for (const item of layer) {
        let total = 0, weight = 0;
        for (const [other, heavy] of (above && this.up.get(item)) || []) {
          total += heavy * (this.x.get(other) + this.leave(other) - this.enter(item));
          weight += heavy;
        }
        for (const [other, heavy] of (below && this.down.get(item)) || []) {
          total += heavy * (this.x.get(other) + this.enter(other) - this.leave(item));
          weight += heavy;
        }
        wanted.push(weight ? total / weight : this.x.get(item));
        weights.push(weight || 0.1);
      }
      const gaps = layer.slice(1).map((item, i) => this.gap(layer[i], item));
      separate(wanted, weights, gaps).forEach((x, i) => this.x.set(layer[i], x));
    }

    // Points of one edge get one x where their neighbours leave room for it.
    straighten() {
      const chains = new Map();
      for (const edge of this.content.edges) {
        if (!edge.via.length) continue;
        const known = chains.get(edge.via[0]);
        if (!known || edge.via.length > known.via.length) chains.set(edge.via[0], edge);
      }
      for (const {a, via} of chains.values()) {
        let low = -1e18, high = 1e18;
        for (const item of via) {
          const layer = this.layers[this.rank.get(item)], i = layer.indexOf(item);
          if (i) low = Math.max(low, this.x.get(layer[i - 1]) + this.gap(layer[i - 1], item));
          if (i + 1 < layer.length)
            high = Math.min(high, this.x.get(layer[i + 1]) - this.gap(item, layer[i + 1]));
        }
        if (low > high) continue;
        const centre = sum(via.map(item => this.x.get(item))) / via.length;
        let wish = a < 0 ? centre : this.x.get(a) + this.leave(a);
        const half = a >= 0 ? this.width(a) / 2 - 10 : 0;
        // Straight down from its source if possible, else where it lay on the whole.
        wish = Math.abs(centre - wish) > half ? centre : clamp(wish, low, high);
        for (const item of via) this.x.set(item, clamp(wish, low, high));
      }
    }

    // Ends of edges ----------------------------------------------------------------------------

    // Where on its two boxes each edge ends: straight under its partner, else near to it.
    attach(lanes) {
      this.out = new Map();
      this.into = new Map();
      const outs = new Map(), ins = new Map();
      const far = this.right - this.left + 100;
      for (const edge of this.content.edges) {
        if (edge.back) {
          const x = this.x.get(edge.a) + far * lanes.get(edge.b)[0];
          put(outs, edge.a, () => new Map()).set(-2 - edge.b, x);
        } else if (edge.a >= 0) {
          const to = edge.via.length ? edge.via[0] : edge.b;
          const x = to < 0
            ? this.x.get(edge.a) + this.leave(edge.a) : this.x.get(to) + this.enter(to);
          put(outs, edge.a, () => new Map()).set(to, x);
        }
      }
      for (const [child, ends] of outs)
        this.spread(child, ends, this.leave(child), this.out, this.sizes[child].open);
      for (const edge of this.content.edges) {
        if (edge.b < 0) continue;
        const ends = put(ins, edge.b, () => new Map());
        if (edge.back) {
          ends.set(-2, this.x.get(edge.b) + far * lanes.get(edge.b)[0]);
          continue;
        }
        const source = edge.via.length ? edge.via[edge.via.length - 1] : edge.a;
        const known = this.out.get(`${source},${edge.b}`);
        ends.set(source, source < 0 ? this.x.get(edge.b) + this.enter(edge.b)
          : known !== undefined ? known : this.x.get(source));
      }
      for (const [child, ends] of ins) this.spread(child, ends, this.enter(child), this.into, false);
    }

    spread(child, ends, shift, found, narrow) {
      const w = this.sizes[child].w, x = this.x.get(child);
      const order = [...ends.keys()].sort((a, b) => ends.get(a) - ends.get(b) || a - b);
      const centre = x + shift, low = x - w / 2 + 10, high = x + w / 2 - 10;
      const step = Math.min(12, (high - low) / order.length);
      const first = ends.get(order[0]);
      let wanted;
      if (narrow) wanted = order.map(() => centre);
      else if (order.length === 1 && !(low <= first && first <= high)) wanted = [centre];
      else wanted = order.map(other => clamp(ends.get(other), low, high));
      const xs = separate(wanted, order.map(() => 1), order.slice(1).map(() => step));
      const over = Math.max(0, xs[xs.length - 1] - high) - Math.max(0, low - xs[0]);
      order.forEach((other, i) => found.set(`${child},${other}`, xs[i] - over));
    }

    // Loops ------------------------------------------------------------------------------------

    // The vertical line of each target of loops: its side and its place there.
    lanes(centre) {
      const reach = new Map();
      for (const edge of this.content.edges)
        if (edge.back) put(reach, edge.b, () => []).push(edge.a);
      const length = b => Math.max(...reach.get(b).map(a => this.rank.get(a))) - this.rank.get(b);
      const lanes = new Map(), used = {"-1": 0, "1": 0};
      for (const b of [...reach.keys()].sort((a, b) => length(a) - length(b) || a - b)) {
        const side = mean([b, ...reach.get(b)].map(e => this.x.get(e)), 0) < centre - 1 ? -1 : 1;
        lanes.set(b, [side, used[side]++]);
      }
      return lanes;
    }

    // Down -------------------------------------------------------------------------------------

    // Heights of layers and of the gaps between them, and the tracks of loops in the gaps.
    downPage() {
      const count = this.layers.length;
      const zeros = () => new Array(count + 1).fill(0);
      const under = zeros(), over = zeros(), steep = zeros();
      this.under = new Map(); // "gap,target" -> track below a layer
      this.over = new Map(); // target -> track above its layer
      let inward = false, outward = false;
      for (const edge of this.content.edges) {
        if (edge.back) {
          const gap = this.rank.get(edge.a) + 1;
          put(this.under, `${gap},${edge.b}`, () => under[gap]++);
          put(this.over, edge.b, () => over[this.rank.get(edge.b)]++);
          continue;
        }
        inward = inward || edge.a < 0;
        outward = outward || edge.b < 0;
        const stops = this.stops(edge);
        for (let i = 0; i + 1 < stops.length; i++) {
          const gap = stops[i][1] + 1;
          steep[gap] = Math.max(steep[gap], Math.abs(stops[i + 1][0] - stops[i][0]));
        }
      }
      this.top = [];
      this.middle = [];
      this.bottom = [];
      let y = 0;
      this.layers.forEach((layer, r) => {
        y += r || inward ? GAP + Math.min(44, steep[r] / 8) : MARGIN;
        y += TRACK * (under[r] + over[r]);
        const high = Math.max(0, ...layer.filter(i => i < this.n).map(i => this.sizes[i].h));
        this.top.push(y);
        this.middle.push(y + high / 2);
        y += high;
        this.bottom.push(y);
      });
      this.h = y + TRACK * under[count] + (outward ? 20 : MARGIN);
    }

    // x and layer of everything that a forward edge goes through, its ends included.
    stops(edge) {
      const first = edge.via.length ? edge.via[0] : edge.b;
      const last = edge.via.length ? edge.via[edge.via.length - 1] : edge.a;
      const stops = edge.via.map(point => [this.x.get(point), this.rank.get(point)]);
      let end = edge.b >= 0 ? [this.into.get(`${edge.b},${last}`), this.rank.get(edge.b)] : null;
      const start = edge.a >= 0
        ? [this.out.get(`${edge.a},${first}`), this.rank.get(edge.a)]
        : [stops.length ? stops[0][0] : end ? end[0] : 0, -1]; // from the bar above, straight down
      if (!end) end = [stops.length ? stops[stops.length - 1][0] : start[0], this.layers.length];
      return [start, ...stops, end];
    }

    line(edge, lanes) {
      if (edge.back) return this.loop(edge, lanes.get(edge.b));
      const stops = this.stops(edge);
      const [x0, r0] = stops[0], [x1, r1] = stops[stops.length - 1];
      const y0 = edge.a >= 0 ? this.middle[r0] + this.sizes[edge.a].h / 2 : 0;
      const y1 = edge.b >= 0 ? this.middle[r1] - this.sizes[edge.b].h / 2 : this.h;
      let d = `M${number(x0)} ${number(y0)}`;
      for (let i = 0; i + 1 < stops.length; i++) {
        const [xa, ra] = stops[i], [xb, rb] = stops[i + 1];
        const ya = ra >= 0 ? this.bottom[ra] : 0;
        const yb = rb < this.layers.length ? this.top[rb] : this.h;
        d += `L${number(xa)} ${number(ya)}`;
        if (Math.abs(xa - xb) > 0.5) {
          const ym = number((ya + yb) / 2);
          d += `C${number(xa)} ${ym} ${number(xb)} ${ym} ${number(xb)} ${number(yb)}`;
        }
      }
      d += `L${number(x1)} ${number(y1)}`;
      return {edge, d, start: [x0, y0], end: [x1, y1]};
    }

    loop(edge, [side, order]) {
      const {a, b} = edge, gap = this.rank.get(a) + 1;
      const x0 = this.out.get(`${a},${-2 - b}`), x1 = this.into.get(`${b},-2`);
      const y0 = this.middle[gap - 1] + this.sizes[a].h / 2;
      const y1 = this.middle[this.rank.get(b)] - this.sizes[b].h / 2;
      const far = POINT_SPACE + TRACK * order - 2;
      const x = side > 0 ? this.right + far : this.left - far;
      const ya = this.bottom[gap - 1] + 8 + TRACK * this.under.get(`${gap},${b}`);
      const yb = this.top[this.rank.get(b)] - 12 - TRACK * this.over.get(b);
      const d = rounded([[x0, y0], [x0, ya], [x, ya], [x, yb], [x1, yb], [x1, y1]]);
      return {edge, d, start: [x0, y0], end: [x1, y1]};
    }
  }

  return {place: (content, sizes) => new Placer(content, sizes).run(), separate};
})();
