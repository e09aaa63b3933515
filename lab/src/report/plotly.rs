//! Charts stacked over one time axis, as JSON for plotly.js.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::chart::{Chart, Columns, Series, Shape};
use super::page::escaped;

/// Height of the gap above a chart, in pixels.
const GAP: u32 = 46;

/// The figure with these charts, for a run of so many seconds, as JSON for a script element. Columns are nearly all of
/// it, so they are written straight into the text.
pub(super) fn figure(charts: &[Chart], ended: f64) -> String {
    let numbered = charts.iter().enumerate().map(|(i, chart)| (i + 1, chart));
    let drawn = numbered.flat_map(|(row, chart)| {
        chart.series.iter().filter(|series| !series.columns.is_empty()).map(move |series| (row, series))
    });
    let mut text = String::from("{\"data\":[");
    for (i, (row, series)) in drawn.enumerate() {
        if i > 0 {
            text.push(',');
        }
        write_trace(&mut text, row, series);
    }
    text.push_str("],\"layout\":");
    text.push_str(&escaped(&layout(charts, ended)));
    text.push('}');
    text
}

/// Every chart has its own value axis; all share the time axis.
fn layout(charts: &[Chart], ended: f64) -> Value {
    let height: u32 = charts.iter().map(|chart| chart.height + GAP).sum::<u32>() + 60;
    let share = |pixels: u32| f64::from(pixels) / f64::from(height);
    let mut layout = json!({
        "height": height,
        "hovermode": "x",
        // Also of a single line.
        "showlegend": true,
        "hoversubplots": "axis",
        "margin": { "l": 90, "r": 230, "t": 40, "b": 50 },
    });
    let mut annotations = Vec::new();
    let mut top = 1.0;
    for (i, chart) in charts.iter().enumerate() {
        let upper = top - share(GAP);
        let lower = (upper - share(chart.height)).max(0.0);
        top = lower;
        layout[axis("yaxis", i + 1)] = values(chart, [lower, upper]);
        layout[axis("legend", i + 1)] = json!({ "x": 1.01, "xanchor": "left", "y": upper, "yanchor": "top" });
        annotations.push(json!({
            "text": text(&chart.title), "x": 0, "y": upper, "xref": "paper", "yref": "paper",
            "xanchor": "left", "yanchor": "bottom", "showarrow": false, "font": { "size": 15 },
        }));
    }
    layout["annotations"] = Value::Array(annotations);
    layout["xaxis"] = json!({
        "anchor": axis("y", charts.len().max(1)),
        "range": [0.0, ended],
        "exponentformat": "SI",
        "title": { "text": "seconds from the beginning of the run" },
        "showspikes": true, "spikemode": "across", "spikethickness": 1, "spikedash": "dot",
    });
    layout
}

/// The axis of values of a chart, or of its lanes.
fn values(chart: &Chart, domain: [f64; 2]) -> Value {
    let lanes = chart.lanes.len();
    if lanes == 0 {
        return json!({
            "domain": domain, "title": { "text": chart.unit }, "rangemode": "tozero", "exponentformat": "SI",
        });
    }
    let names: Vec<String> = chart.lanes.iter().map(|name| text(name)).collect();
    json!({
        "domain": domain, "range": [0.5, lanes as f64 + 0.5], "fixedrange": true, "visible": lanes > 1,
        "tickvals": (1..=lanes).collect::<Vec<_>>(), "ticktext": names,
    })
}

fn axis(name: &str, number: usize) -> String {
    if number == 1 { name.to_owned() } else { format!("{name}{number}") }
}

/// Writes the trace of a series, its columns first.
fn write_trace(text: &mut String, row: usize, series: &Series) {
    let Columns { x, y } = &series.columns;
    text.push_str("{\"x\":");
    write_column(text, "f8", &bytes_of(x, |x| x.to_le_bytes()));
    text.push_str(",\"y\":");
    write_values(text, y);
    text.push(',');
    text.push_str(&escaped(&trace(row, series))[1..]);
}

/// A trace without its columns.
fn trace(row: usize, series: &Series) -> Value {
    let Series { name, color, inside, shape, hidden, meta, .. } = series;
    let mut trace = json!({
        "type": "scatter",
        "name": text(name),
        "legend": axis("legend", row),
        "xaxis": "x",
        "yaxis": axis("y", row),
        "mode": "lines",
    });
    match shape {
        Shape::Steps(dash) => {
            trace["line"] = json!({ "color": color, "width": 1.5, "shape": "hv", "dash": dash });
        }
        Shape::Bars(width) => trace["line"] = json!({ "color": color, "width": width }),
        Shape::Symbols(symbol, size) => {
            trace["mode"] = json!("markers");
            trace["marker"] = json!({ "color": inside.unwrap_or(color), "size": size, "symbol": symbol });
            if inside.is_some() {
                trace["marker"]["line"] = json!({ "color": color, "width": 1.5 });
            }
        }
    }
    if *hidden {
        trace["visible"] = json!("legendonly");
    }
    if let Some(meta) = meta {
        trace["meta"] = meta.clone();
    }
    trace
}

/// Writes the values as floats, which have seven digits, unless a whole number has more.
fn write_values(text: &mut String, y: &[f64]) {
    if y.iter().all(|y| y.fract() != 0.0 || f64::from(*y as f32) == *y) {
        write_column(text, "f4", &bytes_of(y, |y| (y as f32).to_le_bytes()));
    } else {
        write_column(text, "f8", &bytes_of(y, |y| y.to_le_bytes()));
    }
}

fn bytes_of<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    let mut all = vec![0; values.len() * N];
    all.chunks_exact_mut(N).zip(values).for_each(|(place, value)| place.copy_from_slice(&bytes(*value)));
    all
}

/// Writes a typed array in plotly.js's encoding.
fn write_column(text: &mut String, kind: &str, bytes: &[u8]) {
    text.push_str("{\"dtype\":\"");
    text.push_str(kind);
    text.push_str("\",\"bdata\":\"");
    STANDARD.encode_string(bytes, text);
    text.push_str("\"}");
}

/// plotly.js interprets some tags in texts. Names contain no tags.
pub(super) fn text(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::write_values;

    /// A chunk with a number above 2^24, and a peer's window above 16 MiB, is not the one beside it.
    #[test]
    fn whole_numbers_stay_exact() {
        let written = |y: &[f64]| {
            let mut text = String::new();
            write_values(&mut text, y);
            text
        };
        assert!(written(&[0.1, 16_777_216.0, f64::NAN]).contains("f4"));
        assert!(written(&[0.1, 16_777_217.0, f64::NAN]).contains("f8"));
    }
}
