(function () {
  const state = document.documentElement.dataset;
  window.addEventListener("error", (event) => { state.error = event.message; });
  const charts = document.getElementById("charts");
  // Of many flows the page shows one group at a time: the number behind # says which.
  const choice = document.getElementById("group");
  const group = Number(location.hash.slice(1)) || 0;
  const chosen = document.getElementById(`figure-${group}`) || document.getElementById("figure");
  const { data, layout } = JSON.parse(chosen.textContent);
  if (choice) {
    choice.value = chosen.id === "figure" ? "0" : String(group);
    choice.addEventListener("change", () => {
      location.hash = choice.value;
      location.reload();
    });
  }
  const whole = layout.xaxis.range.slice();
  const traces = data.map(levels.decoded);
  // The traces that these visibilities do not hide.
  const seen = (drawn) => traces.filter((_, i) => [undefined, true].includes(drawn[i].visible));
  const unescaped = (text) => text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

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
    responsive: true, displaylogo: false, scrollZoom: true,
    toImageButtonOptions: { format: "svg", filename: document.title.replace(/[^A-Za-z0-9_-]+/g, "-") },
  };
  if (window.matchMedia("(max-width: 700px)").matches) {
    layout.showlegend = false;
    Object.assign(layout.margin, { l: 50, r: 10 });
    charts.after(names());
  }
  // A title that is too long for its chart loses the end of the flow's name, and keeps what the chart shows.
  const letters = Math.max(20, Math.floor((charts.clientWidth - layout.margin.l - layout.margin.r) / 8));
  for (const title of layout.annotations) {
    const text = unescaped(title.text);
    const end = text.slice(text.lastIndexOf(": "));
    if (text.length <= letters || end === text) continue;
    const cut = `${text.slice(0, Math.max(letters - end.length - 1, 1))}…${end}`;
    title.text = cut.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }
  // The names of the lines, chart by chart, where there is no room beside the charts.
  function names() {
    const made = (tag, properties) => Object.assign(document.createElement(tag), properties);
    const list = made("dl", { id: "names" });
    layout.annotations.forEach(({ text }, i) => {
      const shown = data.filter((trace) => trace.yaxis === (i === 0 ? "y" : `y${i + 1}`));
      list.append(made("dt", { textContent: unescaped(text) }), made("dd", {}));
      for (const trace of shown) list.lastChild.append(sign(trace), `${unescaped(trace.name)} `);
    });
    return list;
  }
  // A line or a symbol as the charts have it.
  function sign({ line, marker }) {
    const drawn = Object.assign(document.createElement("span"), { className: marker ? "symbol" : "line", ariaHidden: "true" });
    if (marker) {
      const symbols = { diamond: "◆", "triangle-up": "▲", "triangle-down": "▼", pentagon: "⬟", square: "■", x: "✖" };
      drawn.textContent = symbols[marker.symbol] || "●";
      drawn.style.color = marker.color;
      if (marker.line) drawn.style.webkitTextStroke = `1px ${marker.line.color}`;
    } else {
      const dashed = { dot: "dotted", dash: "dashed" }[line.dash] || "solid";
      drawn.style.borderTop = `${Math.min(line.width * 2, 10)}px ${dashed} ${line.color}`;
    }
    return drawn;
  }
  // The values keep their range while the time is zoomed.
  const scaled = {};
  for (const axis of Object.keys(layout).filter((key) => key.startsWith("yaxis") && !layout[key].range)) {
    layout[axis].range = scaled[axis] = levels.values(seen(data), axis.replace("axis", ""));
  }
  // The ranges of the values of the traces that are not hidden, where the reader has not chosen another range.
  function rescaled() {
    const shown = seen(charts.data);
    const ranges = {};
    for (const axis of Object.keys(scaled)) {
      const values = levels.values(shown, axis.replace("axis", ""));
      const now = charts.layout[axis].range.map(Number);
      const chosen = now.some((end, i) => end !== scaled[axis][i]);
      const hidden = !shown.some((trace) => trace.axis === axis.replace("axis", ""));
      if (chosen || hidden || values.every((end, i) => end === now[i])) continue;
      ranges[axis + ".range"] = scaled[axis] = values;
    }
    return ranges;
  }
  for (const [key, value] of Object.entries(themed())) {
    const names = key.split(".");
    const last = names.pop();
    names.reduce((part, name) => (part[name] = part[name] || {}), layout)[last] = value;
  }
  // What is drawn of each trace in this range of times, and in half of it on both sides.
  function inSight([low, high]) {
    const around = (high - low) / 2;
    const { l, r } = layout.margin;
    const step = (high - low) / Math.max(charts.clientWidth - l - r, 100) * levels.PIXELS;
    return traces.map((trace) => {
      const axis = trace.axis.replace("y", "yaxis");
      const [bottom, top] = ((charts.layout || layout)[axis].range || [0, 1]).map(Number);
      const row = (value) => Math.floor((value - bottom) / (top - bottom) * 300);
      return levels.shown(trace, low - around, high + around, step, row);
    });
  }
  inSight(whole).forEach((shown, i) => Object.assign(data[i], shown));
  Plotly.newPlot(charts, data, layout, options).then(() => {
    state.charts = String(charts.querySelectorAll(".ytitle, .gtitle, .annotation").length);
    state.traces = String(charts.data.length);
    charts.on("plotly_relayout", (changed) => {
      if (!Object.keys(changed).some((key) => /^[xy]axis\d*\.(auto)?range/.test(key))) return;
      draw(changed["xaxis.autorange"] ? whole.slice() : charts.layout.xaxis.range.map(Number));
    });
    // A click on the name of a trace hides it or shows it.
    charts.on("plotly_restyle", ([changed]) => {
      if ("visible" in changed) Plotly.relayout(charts, rescaled());
    });
  });
  // Draws this range of times.
  function draw(range) {
    const shown = inSight(range);
    const points = { x: shown.map((trace) => trace.x), y: shown.map((trace) => trace.y) };
    return Plotly.update(charts, points, { "xaxis.range": range });
  }
  // The wheel moves the page. With Ctrl, or two fingers, it zooms.
  charts.addEventListener("wheel", (event) => { if (!event.ctrlKey) event.stopPropagation(); }, { capture: true });
  dark.addEventListener("change", () => Plotly.relayout(charts, themed()));

  let packets = null;
  function allPackets() {
    if (packets === null) {
      packets = [];
      for (const [i, trace] of data.entries()) {
        const meta = trace.meta || {};
        if (meta.kind !== "sent" && meta.kind !== "dropped") continue;
        const { x, y } = traces[i];
        x.forEach((at, i) => packets.push([at, meta.flow, y[i], meta.path || "", meta.why || "dropped"]));
      }
      packets.sort((a, b) => a[0] - b[0]);
    }
    return packets;
  }
  // What each flow waited for at a moment, from the bars.
  function waits(at) {
    const said = [];
    for (const [number, trace] of data.entries()) {
      const meta = trace.meta || {};
      if (meta.kind !== "waiting") continue;
      const { x } = traces[number];
      for (let i = 0; i + 1 < x.length; i += 3) {
        if (x[i] <= at && at < x[i + 1]) said.push(`${meta.flow} waits for ${unescaped(trace.name)}`);
      }
    }
    return said;
  }
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
    add(["time", "flow", "number", "path", "what"], "th");
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
      draw([at - half, at + half]);
    }
    list(at, here);
  }
  window.showMoment = (at) => list(at);
  charts.addEventListener("keydown", (event) => {
    const [low, high] = charts.layout.xaxis.range.map(Number);
    const [middle, half] = [(low + high) / 2, (high - low) / 2];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => draw([low - half / 2, high - half / 2]),
      ArrowRight: () => draw([low + half / 2, high + half / 2]),
      "+": () => draw([middle - half / 2, middle + half / 2]),
      "=": () => draw([middle - half / 2, middle + half / 2]),
      "-": () => draw([middle - half * 2, middle + half * 2]),
      0: () => draw(whole.slice()),
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
