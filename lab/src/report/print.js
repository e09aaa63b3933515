"use strict";
// Paper is narrower than most windows: without a width that fits, the names of lines would be cut off.
for (const [event, size] of [["beforeprint", { width: 1000 }], ["afterprint", { width: null, autosize: true }]]) {
  window.addEventListener(event, () => {
    document.querySelectorAll(".js-plotly-plot").forEach((chart) => Plotly.relayout(chart, size));
  });
}
