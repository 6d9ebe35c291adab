// What was measured: gradients' sizes on edges, activations of modules, and the steps they are of.
"use strict";

// viewer: {data, clusters, changed(rebuilt)}
const clewTime = viewer => {
  const {data, clusters} = viewer;
  const parts = ["title", "nodes", "saved", "flops", "top", "open"];
  const byId = id => document.getElementById(id);
  let at = data.at, base = data.frames[at].base;

  const frame = () => data.frames[at];
  const edgesOf = (id, single) => {
    const of = (frame().edges || {})[id];
    return of ? of[single ? "each" : "merged"] : undefined;
  };
  const hasEdges = data.frames.some(one => one.edges);
  const hasModules = data.frames.some(one => one.modules);

  // The span of all sizes of all steps: widths mean the same in each of them.
  let low = Infinity, high = 0;
  for (const one of data.frames)
    for (const contents of Object.values(one.edges || {}))
      for (const list of Object.values(contents))
        for (const size of list)
          if (typeof size === "number" && size > 0) {
            low = Math.min(low, size);
            high = Math.max(high, size);
          }
  low = Math.max(low, high * 1e-8);

  // A line's look for the size of a gradient: undefined where none was measured.
  function look(size) {
    if (size === null || size === undefined) return {width: 1.3, name: ""};
    if (typeof size !== "number") return {width: 4, name: "bad"};
    if (size === 0) return {width: 1, name: "zero"};
    const part = high > low ? Math.log(Math.max(size, low) / low) / Math.log(high / low) : 0.5;
    return {width: 1 + 3.5 * part, name: ""};
  }

  const short = value =>
    typeof value !== "number" ? String(value)
      : value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5)
        ? value.toExponential(1).replace("e+", "e") : String(Number(value.toPrecision(3)));

  const modulesOf = id => (frame().modules || {})[id] || [];
  // The typical size of what a cluster's modules give; NaN where some is no number.
  function rms(id) {
    const rows = modulesOf(id).filter(row => typeof row[2] === "number");
    if (!rows.length) return undefined;
    if (modulesOf(id).some(row => row[7])) return NaN;
    return Math.sqrt(rows.reduce((sum, row) => sum + row[2] ** 2 + row[3] ** 2, 0) / rows.length);
  }
  let largest = 0;
  for (const one of data.frames)
    for (const rows of Object.values(one.modules || {}))
      for (const row of rows)
        if (typeof row[2] === "number") largest = Math.max(largest, Math.hypot(row[2], row[3]));

  function prepare(found) {
    for (const cluster of Object.values(found))
      for (const content of [cluster.merged, cluster.each]) {
        if (!content || content.loops instanceof Map) continue;
        content.edges = content.edges.map(([a, b, count, back, via]) => ({a, b, count, back, via}));
        content.loops = new Map(content.loops);
      }
  }

  function go(to) {
    at = Math.max(0, Math.min(data.frames.length - 1, to));
    const rebuilt = frame().base !== base;
    if (rebuilt) {
      base = frame().base;
      const other = data.bases[base];
      prepare(other.clusters);
      for (const id of Object.keys(clusters)) delete clusters[id];
      Object.assign(clusters, other.clusters);
      for (const name of parts) data[name] = other[name];
    }
    label();
    viewer.changed(rebuilt);
  }

  function label() {
    const slider = byId("step");
    slider.value = at;
    slider.setAttribute("aria-valuetext", frame().title);
    byId("step-name").textContent = frame().title || `${at + 1} of ${data.frames.length}`;
  }

  prepare(clusters);
  data.bases[base] = {clusters: {...clusters}};
  for (const name of parts) data.bases[base][name] = data[name];
  byId("time").hidden = data.frames.length < 2;
  byId("step").max = data.frames.length - 1;
  label();
  byId("step").addEventListener("input", event => go(Number(event.target.value)));
  byId("step-back").addEventListener("click", () => go(at - 1));
  byId("step-on").addEventListener("click", () => go(at + 1));

  return {
    edgesOf, modulesOf, rms, look, short, go, hasEdges, hasModules,
    at: () => at, title: () => frame().title, largest: () => largest, span: () => [low, high],
  };
};
