//! The advice about a pair of paths as one page: the map of both rates with the boundary at which the answer changes,
//! and the times by receive buffer.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::chart::COLORS;
use super::page::{data, shell, with_code};
use super::plotly::text;
use super::sweep::DASHES;
use crate::advice::{Edge, Map, PairTask, PolicyAnswer, TOLERANCE, explain_policy, shown};

const SCRIPT: &str = include_str!("figures.js");

/// One self-contained HTML page; `command` repeats the comparison.
pub fn policy_page(task: &PairTask, answer: &PolicyAnswer, command: &str) -> String {
    let title = format!("Advice: {} beside {}", task.paths[0].name, task.paths[1].name);
    let mut figures: Vec<(String, Value)> = Vec::new();
    if let (Some(map), Some(advice)) = (&answer.map, &answer.advice) {
        let name = format!("Time by {}, divided by the time of the fastest other policy", advice.policy);
        figures.push((name, boundary(task, map)));
    }
    figures.push(("Time by receive buffer".to_owned(), curves(task, answer)));
    let body = html! {
        h1 { (title) }
        p { "Repeat it: " code { (command) } }
        @for line in explain_policy(task, answer).lines() { p { (with_code(line)) } }
        @for (i, (name, _)) in figures.iter().enumerate() {
            h2 { (name) }
            @if name.starts_with("Time by receive") { p.keys { "Means of the seeds, with 95 % intervals of the mean." } }
            @else { p.keys { "Below 1 (blue) the advised policy is faster, above 1 (red) another one; grey is equally fast. The colours end at 0.5 and 1.5: beyond these they stay the same. A place without a colour was not compared before the time was over, or the advised policy did not complete every transfer there. The line is the boundary: beyond it another policy is faster by more than 2 %. The circle is the described pair." } }
            div.chart id={ "chart-" (i) } role="figure" aria-label=(name) {}
        }
        (edges(&answer.edges))
    };
    let figures: Vec<&Value> = figures.iter().map(|(_, figure)| figure).collect();
    shell(&title, &body, &data(&json!(figures)), SCRIPT).into_string()
}

/// The map: colours for the ratio, a line where it passes the tolerance, and the described pair.
fn boundary(task: &PairTask, map: &Map) -> Value {
    let line = 1.0 + TOLERANCE;
    let [first, second] = [0, 1].map(|path| &task.paths[path]);
    json!({
        "data": [
            {
                "type": "heatmap", "x": map.second, "y": map.first, "z": map.ratio, "text": map.fastest,
                "zmin": 0.5, "zmid": 1.0, "zmax": 1.5, "colorscale": "RdBu", "reversescale": false,
                "hovertemplate": "%{x} bit/s beside %{y} bit/s: %{z:.3f}, the fastest is %{text}<extra></extra>",
            },
            {
                "type": "contour", "x": map.second, "y": map.first, "z": map.ratio, "showscale": false, "hoverinfo": "skip",
                "contours": { "start": line, "end": line, "size": 1.0, "coloring": "none" },
                "line": { "color": "#000000", "width": 3 }, "name": "the answer changes",
            },
            {
                "type": "scatter", "mode": "markers", "x": [second.rate], "y": [first.rate], "name": "the described pair",
                "marker": { "size": 14, "symbol": "circle-open", "color": "#000000", "line": { "width": 3 } },
            },
        ],
        "layout": {
            "xaxis": { "type": "log", "dtick": "D2", "title": { "text": text(&format!("rate of {}, bit/s", second.name)) } },
            "yaxis": { "type": "log", "dtick": "D2", "title": { "text": text(&format!("rate of {}, bit/s", first.name)) } },
            "showlegend": false,
        },
    })
}

/// One line a policy.
fn curves(task: &PairTask, answer: &PolicyAnswer) -> Value {
    let x: Vec<u64> = answer.buffers.iter().map(|row| row.receive_buffer).collect();
    let line = |(i, policy): (usize, &String)| {
        let of = |row: &crate::advice::BufferRow| row.policies[i].completion;
        let half = |row: &crate::advice::BufferRow| row.policies[i].ci95;
        let color = COLORS[i % COLORS.len()];
        json!({
            "type": "scatter", "mode": "lines+markers", "name": text(policy), "x": x,
            "y": answer.buffers.iter().map(of).collect::<Vec<_>>(),
            "error_y": { "type": "data", "array": answer.buffers.iter().map(half).collect::<Vec<_>>(), "visible": true, "color": color },
            // Policies that are equally fast have one line: each dash shows what lies below.
            "line": { "color": color, "dash": DASHES[i % DASHES.len()] },
        })
    };
    let lines: Vec<Value> = task.transfer.policies.iter().enumerate().map(line).collect();
    let buffers: Vec<String> = x.iter().map(|buffer| shown(*buffer as f64, "B")).collect();
    json!({
        "data": lines,
        "layout": {
            "xaxis": { "type": "log", "tickvals": x, "ticktext": buffers, "title": { "text": "receive buffer" } },
            "yaxis": { "rangemode": "tozero", "title": { "text": "time, s" } },
        },
    })
}

fn edges(edges: &[Edge]) -> Markup {
    let side = |edge: &Edge, found: &Option<(f64, String)>, end: f64, way: &str| match found {
        Some((at, policy)) => format!("{} ({policy})", shown(*at, edge.quantity.unit)),
        None => format!("no change {way} to {}", shown(end, edge.quantity.unit)),
    };
    html! {
        h2 { "Where the answer changes if one quantity changes alone" }
        div.scroll { table {
            thead { tr { @for name in ["quantity", "now", "going down", "going up"] { th scope="col" { (name) } } } }
            tbody { @for edge in edges { tr {
                th scope="row" { (with_code(&edge.name())) }
                td { (shown(edge.now, edge.quantity.unit)) }
                td { (side(edge, &edge.below, edge.between[0], "down")) }
                td { (side(edge, &edge.above, edge.between[1], "up")) }
            } } }
        } }
    }
}
