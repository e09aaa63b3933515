"use strict";
(function () {
  const state = document.documentElement.dataset;
  window.addEventListener("error", (event) => { state.error = event.message; });
  const charts = document.getElementById("charts");
  const { data, layout } = JSON.parse(document.getElementById("figure").textContent);
  const whole = layout.xaxis.range.slice();

  // Colors follow the reader's choice of light or dark.
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function themed() {
    const [ink, line] = dark.matches ? ["#ececec", "#33383d"] : ["#1c1c1c", "#dddddd"];
    const colors = { "font.color": ink, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)" };
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis/.test(key))) {
      colors[axis + ".gridcolor"] = line;
      colors[axis + ".zerolinecolor"] = line;
    }
    return colors;
  }
  const options = {
    responsive: true, displaylogo: false,
    toImageButtonOptions: { format: "svg", filename: document.title.replace(/[^A-Za-z0-9_-]+/g, "-") },
  };
  if (window.matchMedia("(max-width: 700px)").matches) {
    layout.showlegend = false; // The name of a line stands beside the cursor.
    Object.assign(layout.margin, { l: 50, r: 10 });
  }
  Plotly.newPlot(charts, data, layout, options)
    .then(() => Plotly.relayout(charts, themed()))
    .then(() => { state.charts = String(charts.querySelectorAll(".ytitle, .gtitle, .annotation").length); state.traces = String(charts.data.length); });
  dark.addEventListener("change", () => Plotly.relayout(charts, themed()));

  // Times and values of a trace, from the typed arrays of the figure.
  function numbers(column) {
    const bytes = Uint8Array.from(atob(column.bdata), (letter) => letter.charCodeAt(0));
    return column.dtype === "f8" ? new Float64Array(bytes.buffer) : new Float32Array(bytes.buffer);
  }
  let packets = null;
  function allPackets() {
    if (packets === null) {
      packets = [];
      for (const trace of JSON.parse(document.getElementById("figure").textContent).data) {
        const meta = trace.meta || {};
        if (meta.kind !== "sent" && meta.kind !== "dropped") continue;
        const [x, y] = [numbers(trace.x), numbers(trace.y)];
        x.forEach((at, i) => packets.push([at, meta.flow, y[i], meta.path || "", meta.why || "dropped"]));
      }
      packets.sort((a, b) => a[0] - b[0]);
    }
    return packets;
  }
  // What each flow waited for at a moment, from the bars.
  function waits(at) {
    const said = [];
    for (const trace of JSON.parse(document.getElementById("figure").textContent).data) {
      const meta = trace.meta || {};
      if (meta.kind !== "waiting") continue;
      const x = numbers(trace.x);
      for (let i = 0; i + 1 < x.length; i += 3) {
        if (x[i] <= at && at < x[i + 1]) said.push(`${meta.flow} waits for ${unescaped(trace.name)}`);
      }
    }
    return said;
  }
  const unescaped = (text) => text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
  let cursor = null;
  // The first packet of the list that is not before a moment.
  const place = (at) => {
    const from = allPackets().findIndex((packet) => packet[0] >= at);
    return from < 0 ? allPackets().length : from;
  };
  // Puts the cursor at a moment: a line through all charts, what flows waited for, and the packets around.
  function list(at, chosen) {
    const all = allPackets();
    const here = chosen === undefined ? place(at) : chosen;
    cursor = { at, here };
    const first = Math.max(0, here - 15);
    const shown = all.slice(first, here + 15);
    document.getElementById("moment").textContent = [`Around ${at.toFixed(6)} s`, ...waits(at)].join("; ") + ":";
    const table = document.getElementById("packets");
    table.replaceChildren();
    const add = (cells, tag) => {
      const row = table.insertRow();
      for (const cell of cells) row.appendChild(Object.assign(document.createElement(tag), { textContent: cell }));
      return row;
    };
    add(["time", "flow", "chunk", "path", "what"], "th");
    shown.forEach(([time, flow, chunk, path, what], i) => {
      const row = add([time.toFixed(6) + " s", flow, chunk, path, what], "td");
      if (first + i === here) row.setAttribute("aria-current", "true");
    });
    state.packets = String(shown.length);
    state.cursor = String(at);
    const line = { type: "line", xref: "x", yref: "paper", x0: at, x1: at, y0: 0, y1: 1, line: { color: "#888888", width: 1 } };
    Plotly.relayout(charts, { shapes: [line] });
  }
  // Moves the cursor by so many packets, and the charts with it if it leaves them.
  function step(by) {
    const all = allPackets();
    if (all.length === 0) return;
    const [low, high] = charts.layout.xaxis.range.map(Number);
    const from = cursor === null ? place(low) - (by > 0 ? 1 : 0) : cursor.here;
    const here = Math.min(Math.max(from + by, 0), all.length - 1);
    const at = all[here][0];
    if (at < low || at > high) {
      const half = (high - low) / 2;
      Plotly.relayout(charts, { "xaxis.range": [at - half, at + half] });
    }
    list(at, here);
  }
  window.showMoment = (at) => list(at);
  charts.addEventListener("keydown", (event) => {
    const [low, high] = charts.layout.xaxis.range.map(Number);
    const [middle, half] = [(low + high) / 2, (high - low) / 2];
    const show = (range) => Plotly.relayout(charts, { "xaxis.range": range });
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => show([low - half / 2, high - half / 2]),
      ArrowRight: () => show([low + half / 2, high + half / 2]),
      "+": () => show([middle - half / 2, middle + half / 2]),
      "=": () => show([middle - half / 2, middle + half / 2]),
      "-": () => show([middle - half * 2, middle + half * 2]),
      0: () => show(whole.slice()),
      Enter: () => list(middle),
      n: () => step(1),
      p: () => step(-1),
    };
    if (event.key in actions) {
      event.preventDefault();
      actions[event.key]();
      state.range = charts.layout.xaxis.range.join(" ");
    }
  });
  charts.addEventListener("click", (event) => {
    const axis = charts._fullLayout && charts._fullLayout.xaxis;
    if (!axis) return;
    const at = axis.p2d(event.clientX - charts.getBoundingClientRect().left - axis._offset);
    if (Number.isFinite(at) && at >= axis.range[0] && at <= axis.range[1]) list(at);
  });
})();
