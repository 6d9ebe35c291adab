// The page's behaviour: draws what is open, and opens, searches, measures and moves.
"use strict";

const clewViewer = (() => {
  const data = JSON.parse(document.getElementById("clew-data").textContent);
  const clusters = data.clusters;
  const time = clewTime({data, clusters, changed});
  // As in labels.py and svg.py: every text is set in a monospaced font, so its width is known.
  const TITLE_WIDTH = 7.4, SUB_WIDTH = 6.1, TITLE_CHARS = 30, SUB_CHARS = 34;
  const BAR = 26, PAD = 14, LOOP = 18, CONTROL = 30;
  const FONT = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace";
  // "Open all" stops at this number of boxes, a search opens the way to this many hits.
  const MOST_OPEN = 400, MOST_HITS = 40;

  const SVG = "http://www.w3.org/2000/svg";
  const byId = id => document.getElementById(id);
  const canvas = byId("canvas"), scene = byId("scene");

  const state = {
    open: new Set(data.open), each: new Set(), backward: false, colour: "saved", size: "even",
    selected: null, hits: [], at: -1, unfolded: new Set(), x: 0, y: 0, scale: 1,
    lines: time.hasEdges ? "gradient" : "even", ways: [],
  };
  const startEach = () => {
    for (const [id, cluster] of Object.entries(clusters))
      if (cluster.starts === "each" && cluster.each) state.each.add(Number(id));
  };
  startEach();
  let root = null; // what is shown, as a tree
  let boxes = new Map(); // key -> shown box

  // What is shown ------------------------------------------------------------------------------

  const cut = (text, limit) => {
    const signs = [...text];
    if (signs.length <= limit) return text;
    const tail = (limit - 1) >> 1;
    return signs.slice(0, limit - 1 - tail).join("") + "…" + signs.slice(-tail).join("");
  };
  const titleOf = child =>
    cut((state.backward && child.backward) || child.title, TITLE_CHARS);
  const timesOf = child => (child.times > 1 ? `×${child.times}` : "");
  const lengthOf = text => [...text].length;
  const share = (child, what) => {
    if (what === "rms") {
      const size = child.cluster === undefined ? undefined : time.rms(child.cluster);
      return size > 0 && time.largest() > 0 ? size / time.largest() : 0;
    }
    const whole = what === "kind" || what === "even" ? 0 : data[what];
    return whole > 0 && child.values[what] > 0 ? child.values[what] / whole : 0;
  };
  const stepOf = child => {
    const part = share(child, state.colour);
    if (!part) return 0;
    return Math.min(data.steps - 1, Math.max(1, Math.round((data.steps - 1) * Math.sqrt(part))));
  };
  // What a box says of that which its colour shows.
  const valueOf = child => {
    if (state.colour !== "rms") return child.texts[state.colour] || "";
    const size = child.cluster === undefined ? undefined : time.rms(child.cluster);
    return size === undefined ? "" : `rms ${time.short(size)}`;
  };
  const linesOf = child => {
    const lines = child.lines.map(line => cut(line, SUB_CHARS));
    const value = valueOf(child);
    if (value && lines.length) lines[lines.length - 1] += ` · ${value}`;
    else if (value) lines.push(value);
    return lines;
  };
  const contentOf = id =>
    (state.each.has(id) && clusters[id].each) || clusters[id].merged;

  function closedSize(child) {
    const times = timesOf(child), lines = linesOf(child);
    let w = TITLE_WIDTH * (lengthOf(titleOf(child)) + (times ? 1 + times.length : 0));
    w = Math.max(w, ...lines.map(line => SUB_WIDTH * lengthOf(line))) + 22;
    const large = Math.sqrt(share(child, state.size));
    w += 90 * large;
    return {w, h: 27 + 13 * lines.length + 110 * large, enter: w / 2, leave: w / 2, open: false};
  }

  function show(child, id, key) {
    const content = contentOf(id);
    const kids = content.children.map((inner, i) => {
      const own = `${key}/${state.each.has(id) ? "e" : ""}${i}`;
      const isOpen = inner.cluster !== undefined && state.open.has(inner.cluster)
        && clusters[inner.cluster].merged;
      const kid = isOpen ? show(inner, inner.cluster, own)
        : {child: inner, key: own, size: closedSize(inner), content: null};
      // Members that stand one by one show themselves what flows from one to the next.
      kid.loops = (!(isOpen && state.each.has(inner.cluster)) && content.loops.get(i)) || 0;
      if (kid.loops) kid.size.w += LOOP;
      return kid;
    });
    const placed = clewPlace.place(content, kids.map(kid => kid.size));
    const shown = {child, id, key, content, placed, kids, loops: 0};
    if (!child) {
      shown.size = {w: placed.w, h: placed.h, enter: 0, leave: 0, open: true};
      return shown;
    }
    const value = valueOf(child);
    const signs = lengthOf(titleOf(child)) + timesOf(child).length;
    const bar = TITLE_WIDTH * signs + SUB_WIDTH * (value.length + lengthOf(child.word || "")) + 56
      + (clusters[id].each ? CONTROL : 0);
    const w = Math.max(placed.w + 2 * PAD, bar), side = (w - placed.w) / 2;
    shown.size = {
      w, h: BAR + placed.h, enter: side + placed.leave, leave: side + placed.leave, open: true,
    };
    return shown;
  }

  // Drawing ------------------------------------------------------------------------------------

  function make(tag, attributes, ...kids) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...kids);
    return element;
  }

  function text(x, y, words, look, anchor = "start") {
    const title = look === "title" || look === "times";
    const fill = {title: "tink", times: "ttimes", soft: "tsoft"}[look];
    const attributes = {
      x, y, class: fill, "font-size": title ? 12 : 10, "text-anchor": anchor,
    };
    if (title) attributes["font-weight"] = 600;
    return make("text", attributes, words);
  }

  function arrow(x, y, look, dx, dy) {
    // Its tip at (x, y), pointing in the direction (dx, dy).
    const bx = x - 6.5 * dx, by = y - 6.5 * dy;
    const points = `${bx - 3.3 * dy},${by - 3.3 * dx} ${bx + 3.3 * dy},${by + 3.3 * dx} ${x},${y}`;
    return make("polygon", {class: `${look}head`, points});
  }

  function drawContent(shown, x, y, depth, into) {
    const {placed, kids} = shown;
    const width = shown.size.w - (shown.loops ? LOOP : 0);
    const group = make("g", {transform: `translate(${x + (width - placed.w) / 2} ${y})`});
    into.append(group);
    const sizes = time.edgesOf(shown.id, state.each.has(shown.id) && clusters[shown.id].each) || [];
    const labels = [];
    for (const [i, line] of placed.lines.entries()) {
      const look = line.edge.back ? "loop" : "edge", size = sizes[i];
      const [ax, ay] = state.backward ? line.start : line.end;
      const ends = [line.edge.a, line.edge.b].map(i => (i < 0 ? shown.key : kids[i].key));
      const times = `${line.edge.count} ${line.edge.count === 1 ? "value" : "values"}`;
      const words = line.edge.back ? `${times} to a later time` : times;
      const measured = typeof size === "number" || typeof size === "string";
      const note = make("title", {}, measured ? `${words}, gradient ${time.short(size)}` : words);
      const edge = make("g", {
        "data-a": ends[0], "data-b": ends[1], "data-in": shown.key, "data-size": size ?? "",
      }, note, make("path", {class: look, d: line.d}), arrow(ax, ay, look, 0, state.backward ? -1 : 1));
      weigh(edge, size);
      group.append(edge);
      if (measured) labels.push(sizeLabel(line, size, ends, shown.key));
    }
    kids.filter(kid => kid.loops).forEach((kid, i) => { kid.loopSize = sizes[placed.lines.length + i]; });
    // From top to bottom, which is also the order in which the keyboard goes through them.
    for (const i of shown.content.layers.flat()) {
      if (i >= kids.length) continue;
      const kid = kids[i], [kx, ky] = placed.xy[i];
      boxes.set(kid.key, kid);
      kid.parent = shown;
      if (kid.loops) group.append(drawSelfLoop(kid, kx, ky));
      if (kid.content) drawOpen(kid, kx, ky, depth, group);
      else drawClosed(kid, kx, ky, group);
    }
    group.append(...labels);
  }

  // A line as thick as its gradient is large; dashed where it is zero, red where it is no number.
  function weigh(edge, size) {
    if (state.lines !== "gradient") return;
    const {width, name} = time.look(size), path = edge.querySelector("path");
    path.setAttribute("style", `stroke-width:${width.toFixed(2)}`);
    if (!name) return;
    path.classList.add(name);
    edge.querySelector("polygon").classList.add(`${name}head`);
  }

  // The size in figures, shown beside the lines of the selected box.
  function sizeLabel(line, size, [a, b], level) {
    const [x, y] = line.edge.b < 0 && !state.backward ? line.start : line.end;
    const label = text(x + 5, line.edge.b < 0 ? y + 12 : y - 8, time.short(size), "soft");
    label.setAttribute("class", "size");
    for (const [name, value] of [["a", a], ["b", b], ["in", level]])
      label.setAttribute(`data-${name}-of`, value);
    return label;
  }

  function drawSelfLoop(kid, x, y) {
    const right = x + kid.size.w - LOOP, far = right + LOOP - 4;
    const low = kid.content ? y + kid.size.h - 14 : y + kid.size.h * 0.72;
    const high = kid.content ? y + BAR / 2 : y + kid.size.h * 0.28;
    const d = `M${right} ${low}H${far - 5}Q${far} ${low} ${far} ${low - 5}V${high + 5}`
      + `Q${far} ${high} ${far - 5} ${high}H${right}`;
    const size = kid.loopSize, known = typeof size === "number" || typeof size === "string";
    const words = `${kid.loops} from one to the next`;
    const loop = make("g", {"data-a": kid.key, "data-b": kid.key, "data-in": kid.parent.key},
      make("title", {}, known ? `${words}, gradient ${time.short(size)}` : words),
      make("path", {class: "loop", d}),
      arrow(right, state.backward ? low : high, "loop", -1, 0));
    weigh(loop, size);
    return loop;
  }

  function boxGroup(kid, expanded) {
    const words = [titleOf(kid.child), timesOf(kid.child), ...linesOf(kid.child)];
    const attributes = {
      class: "box", tabindex: 0, role: "button", "data-key": kid.key,
      "aria-label": words.filter(Boolean).join(", "),
    };
    if (kid.child.cluster !== undefined) attributes["aria-expanded"] = expanded;
    return make("g", attributes, make("title", {}, words.filter(Boolean).join("\n")));
  }

  function drawOpen(kid, x, y, depth, into) {
    const {child} = kid;
    const w = kid.size.w - (kid.loops ? LOOP : 0), h = kid.size.h;
    const room = make("rect", {class: `room${depth % 2} frame`, x, y, width: w, height: h, rx: 7});
    const group = boxGroup(kid, true), heat = stepOf(child);
    const d = `M${x} ${y + BAR}v${7 - BAR}q0 -7 7 -7h${w - 14}q7 0 7 7v${BAR - 7}z`;
    group.append(make("path", {class: `outline frame ${heat ? `heat${heat}` : "bar"}`, d}));
    const title = titleOf(child), times = timesOf(child), middle = y + 17.5;
    let at = x + 10;
    group.append(text(at, middle, title, "title"));
    at += TITLE_WIDTH * lengthOf(title) + 8;
    if (times) {
      group.append(text(at, middle, times, "times"));
      at += TITLE_WIDTH * times.length + 8;
    }
    if (child.word) group.append(text(at, middle, child.word, "soft"));
    const control = clusters[kid.id].each ? CONTROL : 0;
    const value = valueOf(child);
    if (value) group.append(text(x + w - 10 - control, middle, value, "soft", "end"));
    into.append(room, group);
    if (control) into.append(drawControl(kid, x + w - CONTROL - 2, y + 4));
    drawContent(kid, x, y + BAR, depth + 1, into);
  }

  // The button in a title bar that shows a group's members one by one, or together again.
  function drawControl(kid, x, y) {
    const single = state.each.has(kid.id), label = single ? "Fold together" : "Show one by one";
    const control = make("g", {
      class: "control", tabindex: 0, role: "button", "data-unfold": kid.id, "data-of": kid.key,
      "aria-label": `${label}: ${titleOf(kid.child)}`,
    }, make("title", {}, label), make("rect", {x, y, width: 26, height: 18, rx: 4}));
    for (let i = 0; i < 3; i++) {
      const at = single ? {x: x + 9.5, y: y + 5 + 1.7 * i} : {x: x + 4.5 + 6.2 * i, y: y + 6};
      control.append(make("rect", {
        ...at, width: single ? 7 : 4.6, height: single ? 4 : 6, rx: 1, class: "frame",
        style: "fill:var(--bar);stroke:var(--soft)",
      }));
    }
    return control;
  }

  function drawClosed(kid, x, y, into) {
    const {child} = kid;
    const w = kid.size.w - (kid.loops ? LOOP : 0), h = kid.size.h;
    const group = boxGroup(kid, false);
    if (child.cluster !== undefined)
      for (const back of clusters[child.cluster].fold ? [6, 3] : [3])
        group.append(make("rect", {
          class: "bar frame", x: x + back, y: y + back, width: w, height: h, rx: 6,
        }));
    const round = child.kind === "leaf" || child.kind === "result";
    const look = round ? child.kind : `heat${stepOf(child)} frame`;
    const rx = round ? Math.min(h / 2, 22) : child.kind === "cluster" ? 6 : 4;
    group.append(make("rect", {class: `outline ${look}`, x, y, width: w, height: h, rx}));
    const lines = linesOf(child), title = titleOf(child), times = timesOf(child);
    const middle = x + w / 2, ty = y + (h - 13 * lines.length) / 2 + 4.5;
    if (times) {
      const width = TITLE_WIDTH * (lengthOf(title) + 1 + times.length);
      group.append(text(middle - width / 2, ty, title, "title"),
        text(middle + width / 2, ty, times, "times", "end"));
    } else group.append(text(middle, ty, title, "title", "middle"));
    lines.forEach((line, i) => group.append(text(middle, ty + 15 + 13 * i, line, "soft", "middle")));
    into.append(group);
  }

  function draw() {
    const focused = document.activeElement && document.activeElement.dataset;
    const key = focused && focused.key, unfold = focused && focused.unfold;
    boxes = new Map();
    root = show(null, data.top, "");
    const drawing = make("g", {"font-family": FONT});
    drawContent(root, 0, 0, 0, drawing);
    scene.replaceChildren(drawing);
    mark();
    const again = key ? find(key) : unfold ? scene.querySelector(`[data-unfold="${unfold}"]`) : null;
    if (again) again.focus({preventScroll: true});
    move();
  }

  const find = key => scene.querySelector(`[data-key="${CSS.escape(key)}"]`);

  // Selected box, hits of the search, and the edges at the selected box.
  function mark() {
    const hits = new Set(state.hits.map(hit => hit.key));
    const now = state.at >= 0 ? state.hits[state.at].key : null;
    for (const element of scene.querySelectorAll(".box")) {
      const {key} = element.dataset;
      element.classList.toggle("selected", key === state.selected);
      element.classList.toggle("hit", hits.has(key));
      element.classList.toggle("now", key === now);
    }
    near(state.selected);
  }

  function near(key) {
    for (const edge of scene.querySelectorAll("[data-a]")) {
      const on = key !== null && (edge.dataset.a === key || edge.dataset.b === key);
      edge.querySelector("path").classList.toggle("near", on);
      edge.querySelector("polygon").classList.toggle("nearhead", on);
    }
    for (const label of scene.querySelectorAll(".size"))
      label.classList.toggle("shown", state.lines === "gradient" && key !== null
        && (label.dataset.aOf === key || label.dataset.bOf === key));
  }

  // Along the edges ----------------------------------------------------------------------------

  // The boxes that values of a box go to, or come from. Down from an open box leads into it, and up
  // from a first box within leads back to its title bar.
  function follow(key, down) {
    const kid = boxes.get(key), edges = [...scene.querySelectorAll("[data-in]")];
    const beyond = (at, level) => [...new Set(edges
      .filter(e => e.dataset.in === level && e.dataset[down ? "a" : "b"] === at)
      .map(e => e.dataset[down ? "b" : "a"]).filter(end => end !== at))];
    if (down && kid.content) {
      const entered = beyond(key, key);
      if (entered.length) return entered;
      const first = kid.content.layers.flat().find(i => i < kid.kids.length);
      return first === undefined ? [] : [kid.kids[first].key];
    }
    for (let at = key, level = kid.parent.key; ; at = level, level = boxes.get(at).parent.key) {
      const inner = beyond(at, level).filter(end => end !== level);
      if (inner.length || level === "") return inner;
      if (!down) return [level];
    }
  }

  // Boxes of the same content, from left to right.
  function beside(key) {
    const kid = boxes.get(key), {content, kids, placed} = kid.parent;
    const layer = content.layers.find(layer => layer.some(i => kids[i] === kid)) || [];
    return layer.filter(i => i < kids.length).sort((a, b) => placed.xy[a][0] - placed.xy[b][0])
      .map(i => kids[i].key);
  }

  function walk(name) {
    const ordered = [...scene.querySelectorAll(".box")].map(e => e.dataset.key);
    if (state.selected === null || !boxes.has(state.selected)) {
      state.ways = [];
      return visit(ordered[0]);
    }
    if (name === "ArrowDown" || name === "ArrowUp") {
      const ways = follow(state.selected, name === "ArrowDown");
      if (!ways.length) return say(name === "ArrowDown" ? "Nothing uses it." : "It comes from nothing.");
      state.ways = ways;
      return visit(ways[0]);
    }
    const ways = state.ways.length > 1 && state.ways.includes(state.selected)
      ? state.ways : beside(state.selected);
    const by = name === "ArrowRight" ? 1 : -1;
    visit(ways[(ways.indexOf(state.selected) + by + ways.length) % ways.length]);
  }

  function visit(key) {
    say("");
    select(key);
    find(key).focus({preventScroll: true});
    const box = whereIs(key), room = 24;
    if (box.x < room || box.y < room || box.x + box.w > canvas.clientWidth - room
        || box.y + Math.min(box.h, 60) > canvas.clientHeight - room) centre(key);
  }

  // Moving -------------------------------------------------------------------------------------

  function move() {
    scene.setAttribute("transform", `translate(${state.x} ${state.y}) scale(${state.scale})`);
  }

  function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const scale = Math.min(4, Math.max(0.04, state.scale * factor));
    state.x = x - ((x - state.x) * scale) / state.scale;
    state.y = y - ((y - state.y) * scale) / state.scale;
    state.scale = scale;
    move();
  }

  function fit(smallest = 0.04) {
    const {w, h} = root.size, cw = canvas.clientWidth, ch = canvas.clientHeight;
    const scale = Math.min(1.25, (cw - 30) / w, (ch - 30) / h);
    state.scale = Math.max(smallest, scale);
    state.x = (cw - w * state.scale) / 2;
    state.y = Math.max(8, (ch - h * state.scale) / 2);
    move();
  }

  // Where a box lies on the canvas.
  function whereIs(key) {
    const element = key === null ? null : find(key);
    if (!element) return null;
    const box = element.querySelector(".outline").getBoundingClientRect();
    const frame = canvas.getBoundingClientRect();
    return {x: box.x - frame.x, y: box.y - frame.y, w: box.width, h: box.height};
  }

  // Draws again so that one box stays where it is.
  function redraw(key = null) {
    const before = whereIs(key);
    draw();
    const after = before && whereIs(key);
    if (after) {
      state.x += before.x + before.w / 2 - after.x - after.w / 2;
      state.y += before.y - after.y;
      move();
    }
  }

  function centre(key) {
    const box = whereIs(key);
    if (!box) return;
    if (state.scale < 0.5) zoom(0.9 / state.scale, box.x, box.y);
    const at = whereIs(key);
    state.x += canvas.clientWidth / 2 - at.x - at.w / 2;
    state.y += canvas.clientHeight / 2 - at.y - Math.min(at.h, 60) / 2;
    move();
  }

  // Opening ------------------------------------------------------------------------------------

  function say(words) { byId("status").textContent = words; }

  function toggle(key) {
    const {child} = boxes.get(key);
    if (child.cluster === undefined) return;
    const cluster = clusters[child.cluster];
    if (!cluster.merged) return say(`${child.title}: ${cluster.note}`);
    if (state.open.has(child.cluster)) state.open.delete(child.cluster);
    else {
      state.open.add(child.cluster);
      say(cluster.note ? `${child.title}: ${cluster.note}` : "");
    }
    redraw(key);
  }

  function unfold(id, key = null) {
    if (state.each.has(id)) state.each.delete(id);
    else if (clusters[id].each) state.each.add(id);
    else return say(clusters[id].note || "There is nothing to show one by one.");
    say("");
    redraw(key);
    if (key !== null) select(key);
    else fit(0.3);
    topButton();
  }

  function openAll() {
    let count = contentOf(data.top).children.length, left = 0, level = [data.top];
    while (level.length) {
      const inner = [];
      for (const id of level)
        for (const child of contentOf(id).children) {
          if (child.cluster === undefined || !clusters[child.cluster].merged) continue;
          const more = contentOf(child.cluster).children.length;
          if (count + more > MOST_OPEN) left++;
          else {
            count += more;
            state.open.add(child.cluster);
            inner.push(child.cluster);
          }
        }
      level = inner;
    }
    say(left ? `Opened ${count} boxes; ${left} modules stay closed.` : "");
    draw();
    fit(0.3);
  }

  function closeAll() {
    state.open = new Set([data.top]);
    say("");
    draw();
    fit(0.5);
  }

  function topButton() {
    const button = byId("unfold-top"), top = clusters[data.top];
    button.hidden = !top.each && !top.note;
    button.setAttribute("aria-pressed", state.each.has(data.top));
  }

  // Search -------------------------------------------------------------------------------------

  // Every box of the page with the clusters that must be open for it to be seen.
  function* everything() {
    const queue = [{id: data.top, key: "", route: []}], seen = new Set();
    while (queue.length) {
      const {id, key, route} = queue.shift();
      if (seen.has(id) || !clusters[id].merged) continue;
      seen.add(id);
      const single = state.each.has(id), content = contentOf(id);
      for (let i = 0; i < content.children.length; i++) {
        const child = content.children[i], own = `${key}/${single ? "e" : ""}${i}`;
        yield {child, key: own, route};
        if (child.cluster !== undefined)
          queue.push({id: child.cluster, key: own, route: [...route, child.cluster]});
      }
    }
  }

  // As `everything`, but with groups of equal modules one by one, and so other boxes that stand for
  // several where only some of them fit; with the clusters whose contents must be shown so.
  function* oneByOne(sought) {
    const queue = [{id: data.top, key: "", route: [], singles: []}], seen = new Set();
    while (queue.length) {
      const {id, key, route, singles} = queue.shift();
      if (seen.has(id) || !clusters[id].merged) continue;
      seen.add(id);
      const {fold, each, merged} = clusters[id];
      const single = each && (fold || state.each.has(id) || merged.children.some(
        child => child.cluster === undefined && fitness(child, sought).part));
      const own = single ? [...singles, id] : singles;
      for (const [i, child] of (single ? each : merged).children.entries()) {
        const inner = `${key}/${single ? "e" : ""}${i}`;
        yield {child, key: inner, route, singles: own};
        if (child.cluster !== undefined)
          queue.push({
            id: child.cluster, key: inner, route: [...route, child.cluster], singles: own,
          });
      }
    }
  }

  // How closely a box fits what is sought: by its name (0), by its place, by its line's text; -1
  // where it does not. `part`: it stands for several of which only some fit.
  function fitness({title, backward, word, times, details}, sought) {
    const fits = w => Boolean(w) && w.toLowerCase().includes(sought);
    const names = list => (list || []).map(([name]) => name);
    const place = details.file ? `${details.file}:${details.line}` : "";
    const kinds = [
      [[title, backward, details.op, ...names(details.names)], names(details.labels)],
      [[word, details.type, place], names(details.modules)],
      [[details.source, details.function], []],
    ];
    const kind = kinds.findIndex(([common, own]) => common.some(fits) || own.some(fits));
    if (kind < 0) return {kind, part: false};
    const [common, own] = kinds[kind];
    return {kind, part: times > 1 && !common.some(fits) && !own.every(fits)};
  }

  // The hits by name and place; those by the text of a line count where nothing else fits, since all
  // operations of the line have it.
  function hitsOf(candidates, sought) {
    const found = [[], [], []];
    for (const hit of candidates) {
      const {kind, part} = fitness(hit.child, sought);
      if (kind >= 0) found[kind].push({...hit, part});
    }
    return found[0].length + found[1].length ? [...found[0], ...found[1]] : found[2];
  }

  function search(words) {
    const sought = words.trim().toLowerCase();
    for (const id of state.unfolded) state.each.delete(id);
    state.unfolded.clear();
    state.hits = [];
    state.at = -1;
    let all = sought ? hitsOf(everything(), sought) : [];
    if (sought && (!all.length || all.some(hit => hit.part))) {
      const single = hitsOf(oneByOne(sought), sought).filter(hit => !hit.part);
      if (single.length) all = single;
    }
    state.hits = all.slice(0, MOST_HITS);
    for (const hit of state.hits) {
      for (const id of hit.route) state.open.add(id);
      for (const id of hit.singles || [])
        if (!state.each.has(id)) {
          state.each.add(id);
          state.unfolded.add(id);
        }
    }
    state.total = all.length;
    topButton();
    draw();
    if (state.hits.length) step(1);
    else {
      byId("hits").textContent = sought ? "nothing found" : "";
      mark();
    }
  }

  function step(by) {
    if (!state.hits.length) return;
    state.at = (state.at + by + state.hits.length) % state.hits.length;
    const more = state.total > state.hits.length ? ` (of ${state.total})` : "";
    byId("hits").textContent = `${state.at + 1} of ${state.hits.length}${more}`;
    select(state.hits[state.at].key);
    centre(state.hits[state.at].key);
  }

  // Opens the way to a box and goes there.
  function reach(hit) {
    for (const id of hit.route) state.open.add(id);
    draw();
    select(hit.key);
    centre(hit.key);
  }

  function select(key) {
    state.selected = key;
    mark();
    panel.show();
  }

  const panel = clewPanel({
    data, clusters, state, time, boxes: () => boxes, everything, timesOf, toggle, unfold, select,
    reach, titleOf, edges: () => [...scene.querySelectorAll("[data-in]")],
  });

  // Another step is shown; `rebuilt`: with another graph.
  function changed(rebuilt) {
    if (rebuilt) {
      state.open = new Set(data.open);
      state.each.clear();
      state.hits = [];
      state.at = -1;
      state.selected = null;
      startEach();
      totals();
      topButton();
    }
    redraw(state.selected);
    panel.show();
  }

  // Events -------------------------------------------------------------------------------------

  function setDirection(backward) {
    state.backward = backward;
    byId("forward").setAttribute("aria-pressed", !backward);
    byId("backward").setAttribute("aria-pressed", backward);
    redraw(state.selected);
    panel.show();
  }

  function legend() {
    const parts = [];
    if (state.colour !== "kind") {
      parts.push({
        saved: "share of bytes kept: 0", flops: "share of FLOPs: 0", rms: "rms of activations: 0",
      }[state.colour]);
      const bar = panel.element("span", {});
      for (let i = 0; i < data.steps; i++)
        bar.append(panel.element("i", {style: `background:var(--heat${i})`}));
      parts.push(bar, state.colour === "rms" ? time.short(time.largest()) : "all");
    }
    if (state.lines === "gradient") {
      const [low, high] = time.span();
      parts.push(parts.length ? " · " : "", `lines: gradient ${time.short(low)} thin, `
        + `${time.short(high)} thick, zero dashed`);
    }
    byId("legend").replaceChildren(...parts);
  }

  const pointers = new Map();
  let dragged = false, over = null;

  function pressed(event) {
    if (event.button) return;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    dragged = false;
  }

  function dragging(event) {
    const from = pointers.get(event.pointerId);
    if (!from) {
      const box = event.target.closest && event.target.closest(".box");
      const key = box ? box.dataset.key : state.selected;
      if (key !== over) near(over = key);
      return;
    }
    const [x, y] = [event.clientX, event.clientY];
    if (!dragged && Math.hypot(x - from[0], y - from[1]) < 4) return;
    if (!dragged) canvas.setPointerCapture(event.pointerId);
    dragged = true;
    canvas.classList.add("dragging");
    if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      const frame = canvas.getBoundingClientRect();
      const before = Math.hypot(from[0] - other[0], from[1] - other[1]);
      const after = Math.hypot(x - other[0], y - other[1]);
      if (before > 0)
        zoom(after / before, (x + other[0]) / 2 - frame.x, (y + other[1]) / 2 - frame.y);
    } else {
      state.x += x - from[0];
      state.y += y - from[1];
      move();
    }
    pointers.set(event.pointerId, [x, y]);
  }

  function released(event) {
    pointers.delete(event.pointerId);
    if (!pointers.size) canvas.classList.remove("dragging");
  }

  function activate(element) {
    if (element.dataset.unfold !== undefined)
      return unfold(Number(element.dataset.unfold), element.dataset.of);
    toggle(element.dataset.key);
    select(element.dataset.key);
  }

  canvas.addEventListener("pointerdown", pressed);
  canvas.addEventListener("pointermove", dragging);
  canvas.addEventListener("pointerup", released);
  canvas.addEventListener("pointercancel", released);
  canvas.addEventListener("click", event => {
    if (dragged) return;
    const element = event.target.closest(".control, .box");
    if (element) activate(element);
    else select(null);
  });
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const frame = canvas.getBoundingClientRect();
    const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    const by = Math.max(-240, Math.min(240, event.deltaY * lines));
    zoom(Math.exp(-by * 0.0022), event.clientX - frame.x, event.clientY - frame.y);
  }, {passive: false});
  canvas.addEventListener("focusin", event => {
    // A box that the keyboard comes to is brought into sight.
    if (!event.target.matches(".box:focus-visible")) return;
    const box = whereIs(event.target.dataset.key);
    if (box.x < 0 || box.y < 0 || box.x + box.w > canvas.clientWidth || box.y + 20 > canvas.clientHeight)
      centre(event.target.dataset.key);
  });
  document.addEventListener("keydown", event => {
    // Where a bracket needs AltGr, that counts as Control and Alt together.
    const chord = (event.ctrlKey || event.altKey) && !event.getModifierState("AltGraph");
    if (event.target.matches("input, select") || chord || event.metaKey) return;
    const moves = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]};
    const element = event.target.closest && event.target.closest(".box, .control");
    const onPage = event.target === document.body || canvas.contains(event.target);
    if (event.key === "Enter" && !element && onPage && state.selected !== null)
      toggle(state.selected);
    else if ((event.key === "Enter" || event.key === " ") && element) activate(element);
    else if (moves[event.key] && onPage && !event.shiftKey) walk(event.key);
    else if (event.key === "[" || event.key === "]") time.go(time.at() + (event.key === "]" ? 1 : -1));
    else if (moves[event.key]) {
      state.x += moves[event.key][0];
      state.y += moves[event.key][1];
      move();
    } else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") fit();
    else if (event.key === "Escape") select(null);
    else if (event.key === "/") byId("search").focus();
    else return;
    event.preventDefault();
  });
  byId("forward").addEventListener("click", () => setDirection(false));
  byId("backward").addEventListener("click", () => setDirection(true));
  byId("colour").addEventListener("change", event => {
    state.colour = event.target.value;
    legend();
    redraw(state.selected);
  });
  byId("size").addEventListener("change", event => {
    state.size = event.target.value;
    redraw(state.selected);
  });
  byId("lines").addEventListener("change", event => {
    state.lines = event.target.value;
    legend();
    redraw(state.selected);
  });
  byId("open-all").addEventListener("click", openAll);
  byId("close-all").addEventListener("click", closeAll);
  byId("unfold-top").addEventListener("click", () => unfold(data.top));
  byId("zoom-in").addEventListener("click", () => zoom(1.25));
  byId("zoom-out").addEventListener("click", () => zoom(0.8));
  byId("fit").addEventListener("click", () => fit());
  byId("search").addEventListener("input", event => search(event.target.value));
  byId("search").addEventListener("keydown", event => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") {
      event.target.blur();
      canvas.focus();
      event.stopPropagation();
    }
  });
  byId("theme").addEventListener("click", event => {
    const names = ["system", "light", "dark"], root = document.documentElement;
    const next = names[(names.indexOf(root.dataset.theme || "system") + 1) % 3];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    event.target.textContent = `Theme: ${next}`;
  });

  function totals() {
    const flops = data.flops ? ` · ${panel.amount(data.flops, "FLOP")}` : "";
    byId("totals").textContent =
      `${data.nodes.toLocaleString("en")} nodes · ${panel.amount(data.saved, "B")} kept for backward${flops}`;
  }

  byId("lines-label").hidden = !time.hasEdges;
  if (time.hasModules)
    byId("colour").append(panel.element("option", {value: "rms"}, "activations"));
  totals();
  legend();
  topButton();
  panel.show();
  draw();
  fit(0.75);

  // For tests: what is shown, where it lies on the screen, and what the layout makes of sizes.
  return {
    state, data, place: clewPlace.place, search, reach, time,
    boxes: () => [...boxes.values()].map(kid => ({
      key: kid.key, title: titleOf(kid.child), times: kid.child.times, kind: kid.child.kind,
      open: Boolean(kid.content), ...whereIs(kid.key),
    })),
  };
})();
