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
  function list(at) {
    const all = allPackets();
    let from = all.findIndex((packet) => packet[0] >= at);
    if (from < 0) from = all.length;
    const shown = all.slice(Math.max(0, from - 15), from + 15);
    document.getElementById("moment").textContent = `Around ${at.toFixed(6)} s:`;
    const table = document.getElementById("packets");
    table.replaceChildren();
    const add = (cells, tag) => {
      const row = table.insertRow();
      for (const cell of cells) row.appendChild(Object.assign(document.createElement(tag), { textContent: cell }));
    };
    add(["time", "flow", "chunk", "path", "what"], "th");
    for (const [time, flow, chunk, path, what] of shown) add([time.toFixed(6) + " s", flow, chunk, path, what], "td");
    state.packets = String(shown.length);
  }
  charts.addEventListener("keydown", (event) => {
    const [low, high] = charts.layout.xaxis.range.map(Number);
    const [middle, half] = [(low + high) / 2, (high - low) / 2];
    const show = (range) => Plotly.relayout(charts, { "xaxis.range": range });
    const actions = {
      ArrowLeft: () => show([low - half / 2, high - half / 2]),
      ArrowRight: () => show([low + half / 2, high + half / 2]),
      "+": () => show([middle - half / 2, middle + half / 2]),
      "=": () => show([middle - half / 2, middle + half / 2]),
      "-": () => show([middle - half * 2, middle + half * 2]),
      0: () => show(whole.slice()),
      Enter: () => list(middle),
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
