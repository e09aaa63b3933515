//! Figures of groups of runs: their means with intervals, beside those of another experiment.

use anabranch_lab::claims::{Curve, CurveFigure, Outcome, Paper};
use anabranch_lab::report::{Panel, PanelSeries, PaperFigure};
use anabranch_lab::statistics::Summary;
use plotters::prelude::*;

use super::means::Means;
use super::plane::{Area, COLORS, Drawn, FAINT, FONT, INK, TITLE, chart, hex, legend, mesh};
use crate::output::{fail, refuse};

const SIZE: (u32, u32) = (860, 560);

/// The figure of runs that are made for it, or the exit status of what went wrong.
pub(super) fn run(paper: &Paper, means: Means<'_>, figure: &CurveFigure) -> Result<PaperFigure, u8> {
    let outcomes = means.outcomes(paper, |id| id == figure.claim)?;
    let drawn = outcomes.iter().find_map(|outcome| drawn(paper, figure, outcome));
    drawn.unwrap_or_else(|| {
        Err(refuse(format!("{}: no group of runs is large enough for a curve", figure.name)))
    })
}

/// The figure of the claim's outcome; `None` if it has no curve.
pub(super) fn drawn(
    paper: &Paper,
    figure: &CurveFigure,
    outcome: &Outcome,
) -> Option<Result<PaperFigure, u8>> {
    let curve = outcome.curve.as_ref().filter(|curve| !curve.groups.is_empty())?;
    let threshold = outcome.values.first().copied().flatten();
    let axes = Axes::of(paper, figure)?;
    let svg = draw(figure, curve, threshold, &axes);
    let svg = match svg {
        Ok(svg) => svg,
        Err(error) => return Some(Err(fail(format!("cannot draw: {error}")))),
    };
    let panels = vec![panel(figure, curve, threshold, &axes)];
    Some(Ok(PaperFigure { title: figure.title.clone(), name: figure.name.clone(), svg, panels }))
}

/// The groups' means with their intervals, and what they are compared with.
fn panel(figure: &CurveFigure, curve: &Curve, threshold: Option<f64>, axes: &Axes) -> Panel {
    let points: Vec<(f64, [f64; 3])> = points(curve, axes);
    let [last, most] = ends(&points);
    let with_half = |x: f64, [_, mean, high]: [f64; 3]| (x, mean, Some(high - mean));
    let groups = points.iter().map(|(x, y)| with_half(*x, *y)).collect();
    let band = interval(&curve.band).map_or(Vec::new(), |y| vec![with_half(0.0, y), with_half(last, y)]);
    let series = |name: &str, color: RGBColor, points| PanelSeries {
        name: name.to_owned(),
        color: hex(color),
        symbols: false,
        points,
    };
    Panel {
        title: figure.title.clone(),
        axes: [axes.x.clone(), axes.y.clone()],
        ranges: [(0.0, last), (0.0, most)],
        series: vec![series("compared with", COLORS[1], band), series("groups", COLORS[0], groups)],
        marks: threshold.map(|at| ("threshold".to_owned(), at * axes.scale)).into_iter().collect(),
    }
}

/// The places of the groups, and their means between the ends of their intervals.
fn points(curve: &Curve, axes: &Axes) -> Vec<(f64, [f64; 3])> {
    curve.groups.iter().filter_map(|(x, y)| Some((x * axes.scale, interval(y)?))).collect()
}

/// The ends of both axes.
fn ends(points: &[(f64, [f64; 3])]) -> [f64; 2] {
    let last = points.iter().map(|point| point.0).fold(0.0, f64::max) * 1.03;
    let most = points.iter().map(|point| point.1[2]).fold(0.0, f64::max) * 1.05;
    [last, most]
}

/// The labels of the axes, the unit of the first, and the factor of its values: shares become per cent.
struct Axes {
    x: String,
    y: String,
    unit: &'static str,
    scale: f64,
}

impl Axes {
    fn of(paper: &Paper, figure: &CurveFigure) -> Option<Axes> {
        let [by, compared] = figure.measures(paper)?;
        let label = |name: &str, unit: &str| {
            if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") }
        };
        let (unit, scale) = match by.unit.symbol() {
            "" => ("%", 100.0),
            symbol => (symbol, 1.0),
        };
        Some(Axes { x: label(&by.name, unit), y: label(&compared.name, compared.unit.symbol()), unit, scale })
    }

    /// What the legend says of a place on the first axis.
    fn threshold(&self, at: f64) -> String {
        format!("threshold: {at:.1} {}", self.unit)
    }
}

fn draw(
    figure: &CurveFigure,
    curve: &Curve,
    threshold: Option<f64>,
    axes: &Axes,
) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (title, below) = root.split_vertically(TITLE);
        title.draw(&Text::new(figure.title.clone(), (24, 16), (FONT, 20).into_font().color(&INK)))?;
        draw_curve(&below, curve, threshold, axes)?;
        root.present()?;
    }
    Ok(svg + "\n")
}

fn draw_curve(area: &Area<'_>, curve: &Curve, threshold: Option<f64>, axes: &Axes) -> Drawn {
    let points = points(curve, axes);
    let [last, most] = ends(&points);
    let mut chart = chart(area, "", [(0.0, last), (0.0, most)])?;
    mesh(&mut chart, &axes.x, &axes.y)?;
    if let Some([low, mean, high]) = interval(&curve.band) {
        let band = Rectangle::new([(0.0, low), (last, high)], COLORS[1].mix(0.2).filled());
        chart.draw_series([band])?;
        let line = PathElement::new(vec![(0.0, mean), (last, mean)], COLORS[1].stroke_width(2));
        let label = format!("compared with: {} runs, mean and 90 % interval", curve.band.n);
        let key = |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], COLORS[1].stroke_width(2));
        chart.draw_series([line])?.label(label).legend(key);
    }
    let bars = points.iter().map(|(x, [low, _, high])| {
        PathElement::new(vec![(*x, *low), (*x, *high)], COLORS[0].stroke_width(2))
    });
    let runs: usize = curve.groups.iter().map(|(_, group)| group.n).sum();
    let key = |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], COLORS[0].stroke_width(2));
    chart.draw_series(bars)?.label(format!("{runs} runs in groups, 90 % intervals")).legend(key);
    let means = points.iter().map(|(x, [_, mean, _])| (*x, *mean));
    chart.draw_series(LineSeries::new(means, COLORS[0].stroke_width(1)).point_size(3))?;
    if let Some(at) = threshold.map(|at| at * axes.scale) {
        let line = PathElement::new(vec![(at, 0.0), (at, most)], FAINT.stroke_width(1));
        let key = |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], FAINT.stroke_width(1));
        chart.draw_series([line])?.label(axes.threshold(at)).legend(key);
    }
    legend(&mut chart, SeriesLabelPosition::UpperLeft)
}

/// The mean between the ends of its 90 % interval; of one value, that value.
fn interval(sample: &Summary) -> Option<[f64; 3]> {
    let (mean, half) = (sample.mean?, sample.ci90.unwrap_or(0.0));
    Some([mean - half, mean, mean + half])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_has_its_unit() {
        let axes = |unit| Axes { x: String::new(), y: String::new(), unit, scale: 1.0 };
        assert_eq!(axes("%").threshold(3.04), "threshold: 3.0 %");
        assert_eq!(axes("s").threshold(1.0), "threshold: 1.0 s");
    }
}
