//! The figure of a run: charts one below the other over one time axis, as the JSON that plotly.js takes.

use anabranch_proto::Blocked;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::record::{FlowRecord, PathRecord, Recorder};

/// One color a path: Okabe and Ito's palette, which color-blind readers can tell apart.
pub(super) const COLORS: [&str; 6] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];
const DROPPED: &str = "#d00000";
const NEUTRAL: &str = "#888888";
/// Up to so many points a trace is drawn as SVG, which every browser has; beyond, WebGL is faster.
const SVG: usize = 2000;
/// Height of a chart and of the gap above it, in pixels.
const CHART: u32 = 250;
const BAR: u32 = 90;
const GAP: u32 = 46;

/// The figure of everything that was recorded.
pub(super) fn figure(recorder: &Recorder, ended: f64) -> Value {
    let mut figure = Figure::default();
    for flow in &recorder.flows {
        figure.flow(flow, ended);
    }
    let used: Vec<_> = recorder.links.iter().filter(|link| !link.queue.is_empty()).collect();
    if !used.is_empty() {
        let row = figure.row("Queues", "packets", CHART);
        for (i, link) in used.into_iter().enumerate() {
            figure.line(row, &link.name, COLORS[i % COLORS.len()], "hv", columns(link.queue.iter()));
        }
    }
    figure.finish(ended)
}

/// Traces and rows so far.
#[derive(Default)]
struct Figure {
    traces: Vec<Value>,
    rows: Vec<Row>,
}

struct Row {
    title: String,
    unit: &'static str,
    height: u32,
}

impl Figure {
    fn row(&mut self, title: &str, unit: &'static str, height: u32) -> usize {
        self.rows.push(Row { title: title.to_owned(), unit, height });
        self.rows.len()
    }

    fn flow(&mut self, flow: &FlowRecord, ended: f64) {
        if flow.paths.is_empty() {
            return;
        }
        self.sequence(flow);
        self.windows(flow);
        self.per_path(flow, "rate sent", "bit/s", |path| vec![("sent", "solid", columns(path.rate.iter()))]);
        self.per_path(flow, "round-trip time and RTO", "s", |path| {
            vec![
                ("smoothed RTT", "solid", columns(path.srtt.iter())),
                ("RTO", "dot", columns(path.rto.iter())),
            ]
        });
        self.waiting(flow, ended);
    }

    /// The time-sequence diagram: chunks by the number of their TSN from the first.
    fn sequence(&mut self, flow: &FlowRecord) {
        let row = self.row(&format!("{}: chunks", flow.name), "chunk", 2 * CHART);
        for ((path, record), color) in flow.paths.iter().zip(COLORS.iter().cycle()) {
            for (reason, points) in &record.sent {
                let name = format!("{path}: {reason}");
                let symbol = match *reason {
                    "new" => "circle",
                    "fast retransmission" => "diamond",
                    "window probe" => "square",
                    _ => "triangle-up",
                };
                let size = if *reason == "new" { 3 } else { 8 };
                let mut trace = trace(row, &name, columns(points.iter()));
                trace["mode"] = json!("markers");
                trace["marker"] = json!({ "color": color, "size": size, "symbol": symbol });
                trace["meta"] = json!({ "kind": "sent", "flow": flow.name, "path": path, "why": reason });
                self.traces.push(trace);
            }
        }
        let mut dropped = trace(row, "dropped", columns(flow.dropped.iter()));
        dropped["mode"] = json!("markers");
        dropped["marker"] = json!({ "color": DROPPED, "size": 7, "symbol": "x" });
        dropped["meta"] = json!({ "kind": "dropped", "flow": flow.name });
        self.traces.push(dropped);
        self.line(row, "acknowledged", NEUTRAL, "hv", columns(flow.acked.iter()));
    }

    fn windows(&mut self, flow: &FlowRecord) {
        let row = self.row(&format!("{}: windows", flow.name), "bytes", CHART);
        for ((path, record), color) in flow.paths.iter().zip(COLORS.iter().cycle()) {
            for (name, dash, points) in [
                ("cwnd", "solid", &record.cwnd),
                ("ssthresh", "dot", &record.ssthresh),
                ("in flight", "dash", &record.flight),
            ] {
                self.dashed(row, &format!("{path}: {name}"), color, dash, columns(points.iter()));
            }
        }
        self.line(row, "peer's window", NEUTRAL, "hv", columns(flow.peer_window.iter()));
    }

    fn per_path(
        &mut self,
        flow: &FlowRecord,
        title: &str,
        unit: &'static str,
        lines: impl Fn(&PathRecord) -> Vec<(&'static str, &'static str, Columns)>,
    ) {
        let row = self.row(&format!("{}: {}", flow.name, title), unit, CHART);
        for ((path, record), color) in flow.paths.iter().zip(COLORS.iter().cycle()) {
            for (name, dash, columns) in lines(record) {
                self.dashed(row, &format!("{path}: {name}"), color, dash, columns);
            }
        }
    }

    /// A bar over time that shows for what data waited.
    fn waiting(&mut self, flow: &FlowRecord, ended: f64) {
        let causes = [
            ("peer's window", Blocked::PeerWindow, "#d55e00"),
            ("cwnd", Blocked::Window, "#0072b2"),
            ("its turn, or a path", Blocked::Turn, "#cc79a7"),
        ];
        let row = self.row(&format!("{}: data waited for", flow.name), "", BAR);
        let ends = flow.blocked.iter().skip(1).map(|(at, _)| *at).chain([(ended * 1e9) as u64]);
        let states: Vec<_> = flow.blocked.iter().zip(ends).collect();
        for (name, cause, color) in causes {
            let mut bar = Columns::default();
            for ((from, _), to) in states.iter().filter(|((_, by), _)| *by == Some(cause)) {
                for (at, value) in [(*from, 1.0), (*to, 1.0), (*to, f32::NAN)] {
                    bar.push(at, value);
                }
            }
            let mut trace = trace(row, name, bar);
            trace["mode"] = json!("lines");
            trace["line"] = json!({ "color": color, "width": 18 });
            trace["meta"] = json!({ "kind": "waiting", "flow": flow.name });
            self.traces.push(trace);
        }
    }

    fn line(&mut self, row: usize, name: &str, color: &str, shape: &str, columns: Columns) {
        let mut trace = trace(row, name, columns);
        trace["mode"] = json!("lines");
        trace["line"] = json!({ "color": color, "width": 1.5, "shape": shape });
        self.traces.push(trace);
    }

    fn dashed(&mut self, row: usize, name: &str, color: &str, dash: &str, columns: Columns) {
        if columns.is_empty() {
            return;
        }
        self.line(row, name, color, "hv", columns);
        if let Some(trace) = self.traces.last_mut() {
            trace["line"]["dash"] = json!(dash);
        }
    }

    /// Puts the rows below each other: every one has its own axis of values, and all share that of time.
    fn finish(self, ended: f64) -> Value {
        let height: u32 = self.rows.iter().map(|row| row.height + GAP).sum::<u32>() + 60;
        let mut layout = json!({
            "height": height,
            "hovermode": "x",
            "hoversubplots": "axis",
            "margin": { "l": 70, "r": 230, "t": 40, "b": 50 },
            "annotations": [],
        });
        let mut top = 1.0;
        for (i, row) in self.rows.iter().enumerate() {
            let share = |pixels: u32| f64::from(pixels) / f64::from(height);
            let upper = top - share(GAP);
            let lower = (upper - share(row.height)).max(0.0);
            top = lower;
            layout[axis("yaxis", i + 1)] = json!({
                "domain": [lower, upper],
                "title": { "text": row.unit },
                "rangemode": "tozero",
            });
            if row.unit.is_empty() {
                layout[axis("yaxis", i + 1)] = json!({
                    "domain": [lower, upper], "range": [0.5, 1.5], "visible": false, "fixedrange": true,
                });
            }
            layout[axis("legend", i + 1)] =
                json!({ "x": 1.01, "xanchor": "left", "y": upper, "yanchor": "top" });
            let text = json!({
                "text": text(&row.title), "x": 0, "y": upper, "xref": "paper", "yref": "paper",
                "xanchor": "left", "yanchor": "bottom", "showarrow": false, "font": { "size": 15 },
            });
            layout["annotations"].as_array_mut().expect("it is an array").push(text);
        }
        layout["xaxis"] = json!({
            "anchor": axis("y", self.rows.len().max(1)),
            "range": [0.0, ended],
            "title": { "text": "seconds from the beginning of the run" },
            "showspikes": true, "spikemode": "across", "spikethickness": 1, "spikedash": "dot",
        });
        json!({ "data": self.traces, "layout": layout })
    }
}

fn axis(name: &str, number: usize) -> String {
    if number == 1 { name.to_owned() } else { format!("{name}{number}") }
}

fn trace(row: usize, name: &str, columns: Columns) -> Value {
    json!({
        "type": if columns.x.len() > SVG { "scattergl" } else { "scatter" },
        "name": text(name),
        "legend": axis("legend", row),
        "xaxis": "x",
        "yaxis": axis("y", row),
        "x": column("f8", columns.x.iter().flat_map(|x| x.to_le_bytes()).collect()),
        "y": column("f4", columns.y.iter().flat_map(|y| y.to_le_bytes()).collect()),
    })
}

/// Times in seconds, and values.
#[derive(Default)]
struct Columns {
    x: Vec<f64>,
    y: Vec<f32>,
}

impl Columns {
    fn push(&mut self, at: u64, value: f32) {
        self.x.push(at as f64 / 1e9);
        self.y.push(value);
    }

    fn is_empty(&self) -> bool {
        self.x.is_empty()
    }
}

fn columns(points: impl Iterator<Item = (u64, f32)>) -> Columns {
    let mut columns = Columns::default();
    points.for_each(|(at, value)| columns.push(at, value));
    columns
}

/// A typed array as plotly.js reads it.
fn column(kind: &str, bytes: Vec<u8>) -> Value {
    json!({ "dtype": kind, "bdata": STANDARD.encode(bytes) })
}

/// plotly.js takes some tags in texts; a name has none.
pub(super) fn text(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
