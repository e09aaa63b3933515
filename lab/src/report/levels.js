// Levels of detail. A page holds all recorded points of its traces; drawn is what the screen can show of them. So a long
// run opens fast and zooms smoothly as SVG, without a GPU, and zooming in shows every point.
const levels = (function () {
  // Traces with fewer points in sight are drawn as they are.
  const FEW = 1000;
  // The pixels that share a group of points.
  const PIXELS = 2;

  // The numbers of a column of the figure.
  function numbers(column) {
    const letters = atob(column.bdata);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < bytes.length; i += 1) bytes[i] = letters.charCodeAt(i);
    return column.dtype === "f8" ? new Float64Array(bytes.buffer) : new Float32Array(bytes.buffer);
  }

  // The first place of `x`, which ascends, with a time not before `at`.
  function place(x, at) {
    let [low, high] = [0, x.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x[middle] < at) low = middle + 1; else high = middle;
    }
    return low;
  }

  // Of each group of points its first, lowest, highest and last, as peaks stay visible.
  function line({ x, y }, from, to, group) {
    const kept = [];
    for (let i = from; i < to;) {
      const [first, its] = [i, group(x[i])];
      let [low, high] = [i, i];
      for (; i < to && group(x[i]) === its; i += 1) {
        if (y[i] < y[low]) low = i;
        if (y[i] >= y[high]) high = i;
      }
      for (const point of [first, Math.min(low, high), Math.max(low, high), i - 1]) {
        if (kept.length === 0 || point > kept[kept.length - 1]) kept.push(point);
      }
    }
    return kept;
  }

  // Of symbols on the same pixels the first.
  function symbols({ x, y }, from, to, group, row) {
    const [kept, seen] = [[], new Set()];
    for (let i = from; i < to; i += 1) {
      const cell = group(x[i]) * 4096 + row(y[i]);
      if (!seen.has(cell)) { seen.add(cell); kept.push(i); }
    }
    return kept;
  }

  // Bars of a lane with less than a pixel between them become one, and none is shorter than a pixel: it would not be seen. Each is
  // begin, end and a gap.
  function bars({ x, y }, low, high, step) {
    const [across, up] = [[], []];
    for (let i = 0; i + 2 < x.length; i += 3) {
      if (x[i + 1] < low || x[i] > high) continue;
      const last = across.length - 2;
      const end = Math.max(x[i + 1], x[i] + step);
      if (last > 0 && up[last] === y[i] && x[i] >= across[last - 1] && x[i] - across[last] < step) {
        across[last] = across[last + 1] = end;
      } else {
        across.push(x[i], end, end);
        up.push(y[i], y[i], NaN);
      }
    }
    return { x: across, y: up };
  }

  // What is drawn of a trace between two times. `step`: seconds a group; `row`: the row of pixels of a value.
  function shown(trace, low, high, step, row) {
    const { x, y } = trace;
    if (trace.lanes) return bars(trace, low, high, step / PIXELS);
    // Lines come from the point before and lead to the point behind.
    const [from, to] = [Math.max(0, place(x, low) - 1), Math.min(x.length, place(x, high) + 1)];
    if (to - from <= FEW) return { x: x.subarray(from, to), y: y.subarray(from, to) };
    const group = (at) => Math.floor((at - low) / step);
    const kept = trace.symbols ? symbols(trace, from, to, group, row) : line(trace, from, to, group);
    return { x: kept.map((i) => x[i]), y: kept.map((i) => y[i]) };
  }

  // A trace with its numbers.
  function decoded(trace) {
    const [x, y] = [numbers(trace.x), numbers(trace.y)];
    return { x, y, axis: trace.yaxis, symbols: trace.mode === "markers", lanes: y.length > 2 && Number.isNaN(y[2]) };
  }

  // The range of the values on an axis, zero included.
  function values(traces, axis) {
    let [low, high] = [0, 0];
    for (const { y } of traces.filter((trace) => trace.axis === axis)) {
      for (const value of y) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    const room = (high - low) * 0.05 || 1;
    return [low < 0 ? low - room : 0, high + room];
  }

  return { PIXELS, decoded, shown, values };
})();
