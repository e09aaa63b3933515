"use strict";
(function () {
  const state = document.documentElement.dataset;
  window.addEventListener("error", (event) => { state.error = event.message; });
  const figures = JSON.parse(document.getElementById("figure").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const themed = () => ({
    "font.color": dark.matches ? "#ececec" : "#1c1c1c", paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    "xaxis.gridcolor": dark.matches ? "#33383d" : "#dddddd", "yaxis.gridcolor": dark.matches ? "#33383d" : "#dddddd",
  });
  const narrow = window.matchMedia("(max-width: 700px)").matches;
  const title = document.title.replace(/[^A-Za-z0-9_-]+/g, "-");
  const drawn = figures.map(({ data, layout }, i) => {
    const place = document.getElementById(`chart-${i}`);
    // The buttons stand above the chart.
    Object.assign(layout, { height: 440, margin: { l: 80, r: 20, t: 40, b: 70 }, hovermode: "closest" });
    // Long names below the axis get the room that they need, and its title stands below them.
    for (const axis of [layout.xaxis, layout.yaxis]) Object.assign(axis, { automargin: true, exponentformat: "SI" });
    for (const axis of [layout.xaxis, layout.yaxis]) axis.title.standoff = 10;
    // Long names stand on end: what they take is added to the height.
    const words = new Set(data.flatMap(({ x }) => x.filter((place) => typeof place === "string")));
    const longest = Math.max(0, ...[...words].map((word) => word.length));
    if (longest * words.size * 8 > place.clientWidth - 100) layout.height += Math.min(6 * longest, 600);
    if (narrow) {
      // Names of lines have no room at the right. They stand below the axis, one a row if they are long.
      const named = data.filter((trace) => trace.name && trace.showlegend !== false);
      layout.legend = { orientation: "h", x: 0, yref: "container", y: 0, yanchor: "bottom" };
      layout.height += 20 * named.length;
      Object.assign(layout.margin, { l: 60, r: 10 });
    }
    const options = {
      responsive: true, displaylogo: false, toImageButtonOptions: { format: "svg", filename: `${title}-${i + 1}` },
    };
    return Plotly.newPlot(place, data, layout, options).then(() => {
      place.on("plotly_click", (event) => {
        const command = event.points[0].customdata;
        if (!command) return;
        const shown = Object.assign(document.createElement("code"), { textContent: command });
        document.getElementById("point").replaceChildren("Repeat this run: ", shown);
        state.command = command;
      });
      return Plotly.relayout(place, themed());
    });
  });
  Promise.all(drawn).then(() => {
    state.charts = String(document.querySelectorAll(".main-svg").length > 0 ? drawn.length : 0);
    state.traces = String(figures.reduce((sum, figure) => sum + figure.data.length, 0));
  });
  dark.addEventListener("change", () => figures.forEach((_, i) => Plotly.relayout(`chart-${i}`, themed())));
})();
