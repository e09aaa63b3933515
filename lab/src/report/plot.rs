//! A chart of a sweep or a publication as data, read from the figure of a page.

use serde_json::Value;

use super::draw;

/// Pixels, without the names at the right and the labels below.
const SIZE: (u32, u32) = (840, 435);
/// Pixels for the title of the first axis and its labels, where these are numbers or short names.
pub(super) const BELOW: u32 = 45;
/// Pixels across that a turned label needs, and the most labels of an axis.
pub(super) const LABEL: u32 = 15;
pub(super) const LABELS: usize = 400;

/// A chart.
pub(super) struct Plot {
    pub(super) title: String,
    pub(super) x: String,
    pub(super) y: String,
    /// The names of the places 1, 2, … on the first axis; none where it has numbers.
    pub(super) labels: Vec<String>,
    /// The names of the places on the second axis, of a heat map.
    pub(super) rows: Vec<String>,
    /// Whether the second axis is logarithmic.
    pub(super) is_log: bool,
    pub(super) series: Vec<Series>,
    /// The unit of the cells of a heat map.
    pub(super) unit: String,
}

pub(super) struct Series {
    pub(super) name: String,
    pub(super) color: String,
    pub(super) kind: Kind,
    /// How its line is dashed, by plotly.js's name.
    pub(super) dash: String,
    /// The symbol of its points, by plotly.js's name, and its size in pixels.
    pub(super) symbol: (String, f64),
    /// On the first axis, on the second, and the third value: half of the interval, or the color of a cell. A place of a
    /// line without a value has NaN there: the line has a gap.
    pub(super) points: Vec<(f64, f64, Option<f64>)>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Line,
    Symbols,
    /// All values of a place.
    Distribution,
    /// The cells of a heat map.
    Cells,
}

/// Pages escape texts for HTML.
fn plain(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl Plot {
    pub(super) fn of(title: &str, figure: &Value) -> Plot {
        let axis = |name: &str| plain(&figure["layout"][name]["title"]["text"]);
        let traces = list(&figure["data"]);
        let mut plot = Plot {
            title: title.to_owned(),
            x: axis("xaxis"),
            y: axis("yaxis"),
            labels: Vec::new(),
            rows: Vec::new(),
            is_log: figure["layout"]["yaxis"]["type"] == "log",
            series: Vec::new(),
            unit: String::new(),
        };
        // Boxes name their places themselves, one each.
        let words = |trace: &Value| trace["type"] != "box" && list(&trace["x"]).iter().any(Value::is_string);
        if let Some(first) = traces.first().filter(|trace| words(trace)) {
            plot.labels = list(&first["x"]).iter().map(plain).collect();
        }
        for trace in traces {
            let series = match trace["type"].as_str() {
                Some("heatmap") => {
                    plot.rows = list(&trace["y"]).iter().map(plain).collect();
                    // The cells have their values written in them.
                    plot.unit = plain(&trace["colorbar"]["title"]["text"]);
                    plot.title.extend((!plot.unit.is_empty()).then(|| format!(", {}", plot.unit)));
                    cells(trace)
                }
                Some("box") => {
                    plot.labels.push(plain(&trace["name"]));
                    distribution(trace, plot.labels.len())
                }
                _ => scatter(trace, !plot.labels.is_empty()),
            };
            plot.series.push(series);
        }
        plot
    }

    /// The lowest and the highest of these values; NaN does not count.
    pub(super) fn range(&self, of: impl Fn(&(f64, f64, Option<f64>)) -> [f64; 2]) -> [f64; 2] {
        let ends = self.series.iter().flat_map(|series| &series.points).flat_map(of);
        ends.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], end| [low.min(end), high.max(end)])
    }

    /// Whether the names of the places are turned: side by side they would have no room.
    pub(super) fn has_turned_labels(&self) -> bool {
        let longest = self.longest_label();
        longest > 8 || longest * self.labels.len() as u32 > 80
    }

    /// The most letters of a label.
    fn longest_label(&self) -> u32 {
        self.labels.iter().map(|label| draw::clipped(label).chars().count() as u32).max().unwrap_or(0)
    }

    /// Pixels, without the names at the right.
    pub(super) fn size(&self) -> (u32, u32) {
        let labels = if self.has_turned_labels() { self.labels.len().min(LABELS) as u32 } else { 0 };
        (SIZE.0.max(130 + LABEL * labels), SIZE.1 + self.below())
    }

    /// Pixels below the first axis.
    pub(super) fn below(&self) -> u32 {
        BELOW + if self.has_turned_labels() { 6 * self.longest_label() } else { 0 }
    }

    /// The range of the first axis.
    pub(super) fn across(&self) -> std::ops::Range<f64> {
        if !self.labels.is_empty() {
            return 0.5..self.labels.len() as f64 + 0.5;
        }
        let [low, high] = self.range(|(x, ..)| [*x, *x]);
        // A single place stands in the middle.
        let room = if high > low { (high - low) * 0.05 } else { (low.abs() * 0.05).max(0.5) };
        if low > high { 0.0..1.0 } else { low - room..high + room }
    }

    /// The range of the second axis, zero included if it is linear.
    pub(super) fn up(&self) -> std::ops::Range<f64> {
        if !self.rows.is_empty() {
            return 0.5..self.rows.len() as f64 + 0.5;
        }
        let [low, high] = self.range(|(_, y, half)| [y - half.unwrap_or(0.0), y + half.unwrap_or(0.0)]);
        if low > high || low == 0.0 && high == 0.0 {
            return 0.0..1.0;
        }
        if self.is_log {
            return low / 1.5..high * 1.5;
        }
        low.min(0.0) * 1.05..(high.max(0.0) * 1.05).max(f64::MIN_POSITIVE)
    }

    /// The series that are named at the right: distributions and cells have their names on the axes.
    pub(super) fn named(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|series| matches!(series.kind, Kind::Line | Kind::Symbols))
    }
}

fn color(trace: &Value) -> String {
    let named = ["marker", "line"].into_iter().find_map(|part| trace[part]["color"].as_str());
    named.unwrap_or("#0072b2").to_owned()
}

fn scatter(trace: &Value, words: bool) -> Series {
    let halves = list(&trace["error_y"]["array"]);
    let lines = trace["mode"].as_str().is_some_and(|mode| mode.contains("lines"));
    let symbol = trace["marker"]["symbol"].as_str().unwrap_or("circle").to_owned();
    let symbol = (symbol, trace["marker"]["size"].as_f64().unwrap_or(6.0));
    let point = |(i, (x, y)): (usize, (&Value, &Value))| {
        let x = if words { (i + 1) as f64 } else { x.as_f64()? };
        let y = y.as_f64().or(lines.then_some(f64::NAN))?;
        Some((x, y, halves.get(i).and_then(Value::as_f64)))
    };
    let points = list(&trace["x"]).iter().zip(list(&trace["y"])).enumerate().filter_map(point).collect();
    let kind = if lines { Kind::Line } else { Kind::Symbols };
    let dash = trace["line"]["dash"].as_str().unwrap_or("solid").to_owned();
    Series { name: plain(&trace["name"]), color: color(trace), kind, dash, symbol, points }
}

fn distribution(trace: &Value, place: usize) -> Series {
    let values = list(&trace["y"][0]).iter().filter_map(Value::as_f64);
    let points = values.map(|value| (place as f64, value, None)).collect();
    let (name, color, dash) = (plain(&trace["name"]), color(trace), String::new());
    Series { name, color, kind: Kind::Distribution, dash, symbol: ("circle".to_owned(), 4.0), points }
}

fn cells(trace: &Value) -> Series {
    let mut points = Vec::new();
    for (row, values) in list(&trace["z"]).iter().enumerate() {
        for (column, value) in list(values).iter().enumerate() {
            points.push(((column + 1) as f64, (row + 1) as f64, value.as_f64()));
        }
    }
    let (name, dash) = ("mean".to_owned(), String::new());
    let symbol = ("none".to_owned(), 0.0);
    Series { name, color: color(trace), kind: Kind::Cells, dash, symbol, points }
}
