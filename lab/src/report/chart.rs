//! Charts as data: what a page draws with plotly.js, and what files hold as pictures.

use serde_json::Value;

/// One color a path: Okabe and Ito's palette, which color-blind readers can tell apart.
pub(super) const COLORS: [&str; 6] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];

/// A chart over the time of a run.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    /// Of the values; none where there are lanes.
    pub(super) unit: &'static str,
    /// Pixels.
    pub(super) height: u32,
    /// Names of the lanes of a chart whose series are [`Shape::Bars`], numbered from 1.
    pub(super) lanes: Vec<String>,
    pub(super) series: Vec<Series>,
}

/// One series of a chart.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    /// As `#rrggbb`.
    pub(super) color: &'static str,
    /// The color within symbols whose border has `color`; none: the same.
    pub(super) inside: Option<&'static str>,
    pub(super) shape: Shape,
    pub(super) columns: Columns,
    /// Not drawn at first: a page draws it when its name is clicked, a picture has its name only.
    pub(super) hidden: bool,
    /// What the page's script must know of it.
    pub(super) meta: Option<Value>,
}

/// How a series is drawn.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// A value holds until the next: `solid`, `dash` or `dot`.
    Steps(&'static str),
    /// A symbol a point: its name and its size in pixels.
    Symbols(&'static str, u32),
    /// Intervals of time in a lane, so many pixels thick: three points each, the third not a number.
    Bars(u32),
}

/// Times in seconds, and values.
#[derive(Clone, Default, Debug)]
pub(super) struct Columns {
    pub(super) x: Vec<f64>,
    pub(super) y: Vec<f64>,
}

impl Columns {
    /// Of points in nanoseconds.
    pub(super) fn of(points: impl Iterator<Item = (u64, f64)>) -> Columns {
        let mut columns = Columns::default();
        points.for_each(|(at, value)| columns.push(at, value));
        columns
    }

    pub(super) fn push(&mut self, at: u64, value: f64) {
        self.x.push(at as f64 / 1e9);
        self.y.push(value);
    }

    /// Adds an interval in a lane.
    pub(super) fn interval(&mut self, from: u64, to: u64, lane: f64) {
        for (at, value) in [(from, lane), (to, lane), (to, f64::NAN)] {
            self.push(at, value);
        }
    }

    /// The lowest and the highest value; none without values.
    pub(super) fn extent(&self) -> Option<[f64; 2]> {
        self.y.iter().fold(None, |extent, y| match extent {
            Some([lowest, highest]) => Some([y.min(lowest), y.max(highest)]),
            None => Some([*y, *y]),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.x.is_empty()
    }

    /// The points in order.
    pub(super) fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.x.iter().copied().zip(self.y.iter().copied())
    }
}
