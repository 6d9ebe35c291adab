// The side panel: what is known of the selected box, or of the whole graph.
"use strict";

// viewer: {data, clusters, state, time, boxes, edges, everything, timesOf, titleOf, toggle, ...}
const clewPanel = viewer => {
  const {data, clusters, state, time, everything, timesOf, toggle, unfold, select, reach} = viewer;
  const panel = document.getElementById("panel");

  function html(tag, attributes, ...kids) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...kids.filter(kid => kid !== null && kid !== undefined));
    return element;
  }

  function amount(value, unit) {
    if (value < 1000) return `${value} ${unit}`;
    let at = -1;
    do { value /= 1000; at++; } while (value >= 999.5 && at < 5);
    return `${Number(value.toPrecision(3))} ${"kMGTPE"[at]}${unit}`;
  }

  function facts(pairs) {
    const list = html("dl", {});
    for (const [name, value] of pairs)
      if (value !== undefined && value !== null && value !== "")
        list.append(html("dt", {}, name), html("dd", {}, String(value)));
    return list;
  }

  function table(heading, rows) {
    if (!rows || !rows.length) return [];
    const lines = rows.map(row => html("tr", {}, ...row.map(cell =>
      html("td", {}, typeof cell === "object" ? cell : String(cell)))));
    return [html("h3", {}, heading), html("table", {}, html("tbody", {}, ...lines))];
  }

  const counted = (list, one = false) =>
    (list || []).map(([name, count]) => (one || count > 1 ? [name, `×${count}`] : [name, ""]));

  function button(words, action, look = "") {
    const element = html("button", {class: look}, words);
    element.addEventListener("click", action);
    return element;
  }

  function showPanel() {
    const kid = state.selected === null ? null : viewer.boxes().get(state.selected);
    panel.replaceChildren(...(kid ? boxPanel(kid) : mainPanel()));
    panel.scrollTop = 0;
  }

  function boxPanel(kid) {
    const {child} = kid, d = child.details;
    const name = (state.backward && child.backward) || child.title;
    const parts = [html("h2", {}, name, child.times > 1 ? ` ×${child.times}` : "")];
    if (child.cluster !== undefined) {
      const cluster = clusters[child.cluster], actions = html("div", {class: "actions"});
      if (cluster.merged)
        actions.append(button(state.open.has(child.cluster) ? "Close" : "Open", () => {
          toggle(kid.key);
          select(kid.key);
        }));
      if (cluster.each)
        actions.append(button(state.each.has(child.cluster) ? "Fold together" : "Show one by one",
          () => {
            state.open.add(child.cluster);
            unfold(child.cluster, kid.key);
          }));
      parts.push(actions);
      if (cluster.note) parts.push(html("p", {}, cluster.note));
      if (d.copies > 1 && !(state.open.has(child.cluster) && state.each.has(child.cluster)))
        parts.push(html("p", {}, `Drawn once for ${d.copies} of equal structure; numbers are sums.`));
    }
    const share = data.saved && d.saved ? ` (${((100 * d.saved) / data.saved).toFixed(1)}%)` : "";
    parts.push(facts([
      ["operation", d.op === "leaf" ? "" : d.op],
      ["nodes", child.kind === "result" ? "" : d.nodes.toLocaleString("en")],
      ["kept for backward", d.saved ? amount(d.saved, "B") + share : ""],
      ["FLOPs", d.flops ? amount(d.flops, "FLOP") : ""],
      ["elements", d.parameters ? d.parameters.toLocaleString("en") : ""],
      ["class of module", d.type],
      ["sequence", d.sequence && d.nodes > 1 ? `${d.sequence[0]} … ${d.sequence[1]}`
        : d.sequence && d.sequence[0]],
    ]));
    const step = time.title() ? ` at ${time.title().split(",")[0]}` : "";
    if (child.cluster !== undefined) parts.push(...activations(child.cluster, step));
    parts.push(...table(`Gradients${step}`, gradients(kid)));
    if (d.file) {
      const at = d.column === undefined ? "" : `, column ${d.column + 1}`;
      parts.push(html("h3", {}, "Source"), html("div", {}, `${d.file}:${d.line}${at}`));
      if (d.source) parts.push(html("pre", {}, d.source.trim()));
      if (d.function) parts.push(html("div", {}, `in ${d.function}`));
    }
    parts.push(...table("Output", counted(d.outputs)));
    parts.push(...table("Kept for backward",
      (d.kept || []).map(([line, count, size]) => [line + (count > 1 ? ` ×${count}` : ""), amount(size, "B")])));
    if (d.kept && d.kept.reduce((total, [, , size]) => total + size, 0) > d.saved)
      parts.push(html("p", {}, "Some share their memory, which counts once in the sum."));
    parts.push(...table("Backward node", counted(d.names)));
    parts.push(...table("Parameter", counted(d.labels)));
    parts.push(...table("Module", counted(d.modules)));
    return parts;
  }

  // What the modules of a cluster gave, in the step that is shown.
  function activations(id, step) {
    const rows = time.modulesOf(id), {short} = time;
    if (!rows.length) return [];
    const parts = [html("h3", {}, `Activations${step}`)];
    for (const [path, calls, mean, std, low, high, zeros, bad] of rows.slice(0, 12))
      parts.push(facts([
        ["module", rows.length > 1 ? path : ""], ["calls", calls > 1 ? calls : ""],
        ["mean ± deviation", `${short(mean)} ± ${short(std)}`],
        ["from … to", `${short(low)} … ${short(high)}`],
        ["zeros", `${(100 * zeros).toFixed(zeros > 0 && zeros < 0.01 ? 2 : 0)}%`],
        ["NaN or infinite", bad || ""],
      ]));
    return parts;
  }

  // The sizes on a box' edges, each with the box at the other end.
  function gradients(kid) {
    const rows = [];
    for (const edge of viewer.edges()) {
      const {a, b, size} = edge.dataset;
      if (!size || edge.dataset.in !== kid.parent.key || (a !== kid.key && b !== kid.key)) continue;
      const other = a === kid.key ? b : a, found = viewer.boxes().get(other);
      const outside = other === kid.parent.key || !found;
      const name = outside ? "outside" : viewer.titleOf(found.child);
      const words = a === kid.key ? `from ${name}` : `to ${name}`;
      const number = Number(size);
      rows.push([
        outside ? words : button(words, () => select(other), "link"),
        Number.isNaN(number) ? size : time.short(number),
      ]);
    }
    return rows;
  }

  function mainPanel() {
    const flat = [...everything()].filter(hit => hit.child.kind === "op");
    const parts = [html("h2", {}, data.title), facts([
      ["nodes", data.nodes.toLocaleString("en")],
      ["kept for backward", amount(data.saved, "B")],
      ["FLOPs", data.flops ? amount(data.flops, "FLOP") : ""],
    ])];
    for (const [what, heading, unit] of [["saved", "Keeps most", "B"], ["flops", "Computes most", "FLOP"]]) {
      const rows = new Map(); // by what a row says: equal ones are one, with their number
      for (const hit of flat.filter(hit => hit.child.values[what] > 0)) {
        const d = hit.child.details, place = d.file ? ` ${d.file.split(/[\\/]/).pop()}:${d.line}` : "";
        const words = `${hit.child.title}${place}`, row = rows.get(words);
        if (!row) rows.set(words, {hit, times: hit.child.times, value: hit.child.values[what]});
        else {
          row.times += hit.child.times;
          row.value += hit.child.values[what];
          if (hit.child.values[what] > row.hit.child.values[what]) row.hit = hit;
        }
      }
      const most = [...rows].sort(([, a], [, b]) => b.value - a.value).slice(0, 6);
      parts.push(...table(heading, most.map(([words, {hit, times, value}]) => [
        button(times > 1 ? `${words} ×${times}` : words, () => reach(hit), "link"),
        amount(value, unit),
      ])));
    }
    const keys = html("p", {});
    keys.append("Click a module to open or close it. Drag to move, wheel to zoom. ",
      html("kbd", {}, "/"), " search, ", html("kbd", {}, "+"), " ", html("kbd", {}, "−"), " zoom, ",
      html("kbd", {}, "0"), " fit; ", html("kbd", {}, "↑"), " ", html("kbd", {}, "↓"),
      " along the edges, ", html("kbd", {}, "←"), " ", html("kbd", {}, "→"),
      " to what lies beside, with ", html("kbd", {}, "Shift"), " move the picture; ",
      html("kbd", {}, "Enter"), " opens and closes, ", html("kbd", {}, "["), " ",
      html("kbd", {}, "]"), " step before and after, ", html("kbd", {}, "Esc"), " let go.");
    parts.push(html("h3", {}, "How to use"), keys);
    return parts;
  }

  return {show: showPanel, amount, element: html};
};
