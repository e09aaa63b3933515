//! A chart as SVG, drawn by `plotters`.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::chart::{Chart, Series, Shape};
use super::export::{PictureError, intervals};

/// Pixels, without the names at the right.
const WIDTH: u32 = 870;
/// Room for the title and the axis of time.
const AROUND: u32 = 110;
pub(super) const FONT: &str = "sans-serif";
pub(super) const INK: RGBColor = RGBColor(40, 40, 40);
pub(super) const FAINT: RGBColor = RGBColor(150, 150, 150);

pub(super) type Plane<'a, 'b, Y = RangedCoordf64> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, Y>>;
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The chart over a run of `ended` seconds.
pub(super) fn svg(chart: &Chart, ended: f64) -> Result<String, PictureError> {
    let mut svg = String::new();
    {
        let [right, height] = legend_size(shown(chart).map(|series| series.name.as_str()));
        let size = (WIDTH + right, (chart.height + AROUND).max(height));
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&root, chart, ended).map_err(PictureError::of)?;
    }
    Ok(svg)
}

fn draw(root: &DrawingArea<SVGBackend<'_>, Shift>, chart: &Chart, ended: f64) -> Drawn {
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(WIDTH);
    let values = drawn(chart).flat_map(|series| &series.columns.y);
    let highest = values.copied().filter(|y| y.is_finite()).fold(0.0, f64::max);
    let lanes = chart.lanes.len() as f64;
    let highest = if highest > 0.0 { highest * 1.05 } else { 1.0 };
    let range = if lanes > 0.0 { 0.5..lanes + 0.5 } else { 0.0..highest };
    let mut plane = ChartBuilder::on(&left)
        .margin(12)
        .caption(&chart.title, (FONT, 17).into_font().color(&INK))
        .x_label_area_size(40)
        .y_label_area_size(90)
        .build_cartesian_2d(0.0..ended.max(1e-9), range)?;
    mesh(&mut plane, chart)?;
    for series in drawn(chart) {
        draw_series(&mut plane, series, ended)?;
    }
    legend(&right, chart)?;
    root.present()?;
    Ok(())
}

fn mesh(plane: &mut Plane<'_, '_>, chart: &Chart) -> Drawn {
    let lane = |value: &f64| {
        let near = (value - value.round()).abs() < 0.01;
        let place = (value.round() as usize).checked_sub(1);
        place.filter(|_| near).and_then(|lane| chart.lanes.get(lane)).cloned().unwrap_or_default()
    };
    let number = |value: &f64| short(*value);
    let named = !chart.lanes.is_empty();
    let label: &dyn Fn(&f64) -> String = if named { &lane } else { &number };
    let mut mesh = plane.configure_mesh();
    mesh.light_line_style(TRANSPARENT).bold_line_style(FAINT.mix(0.25)).axis_style(FAINT);
    mesh.label_style((FONT, 13).into_font().color(&INK)).x_desc("seconds").y_desc(chart.unit);
    mesh.x_labels(10).x_label_formatter(&number);
    mesh.y_labels(if named { 2 * chart.lanes.len() + 2 } else { 6 }).y_label_formatter(label);
    mesh.draw()?;
    Ok(())
}

fn draw_series(plane: &mut Plane<'_, '_>, series: &Series, ended: f64) -> Drawn {
    let color = rgb(series.color);
    match series.shape {
        Shape::Steps(dash) => line(plane, steps(series), dash, color)?,
        Shape::Symbols(symbol, size) => {
            let points = series.columns.points();
            let size = i32::try_from(size).unwrap_or(8) / 2 + 1;
            match symbol {
                "x" => drop(plane.draw_series(points.map(|at| Cross::new(at, size, color.stroke_width(2))))?),
                "circle" => drop(plane.draw_series(points.map(|at| Circle::new(at, size, color.filled())))?),
                _ => {
                    let drawn = |at| {
                        let [border, inside] = filled(series, symbol, size);
                        EmptyElement::at(at) + border + inside
                    };
                    plane.draw_series(points.map(drawn))?;
                }
            }
        }
        Shape::Bars(_) => {
            // The ends of rectangles are whole pixels: a bar shorter than one could have no width.
            let pixel = ended / f64::from(plane.plotting_area().dim_in_pixel().0.max(2) - 1);
            let bar = |[from, lane, to]: [f64; 3]| {
                let to = to.max(from + pixel);
                Rectangle::new([(from, lane - 0.3), (to, lane + 0.3)], color.filled())
            };
            plane.draw_series(intervals(series).map(bar))?;
        }
    }
    Ok(())
}

/// A symbol with corners around its middle, in the color of the series and, smaller, in the color within.
fn filled(series: &Series, symbol: &str, size: i32) -> [Polygon<(i32, i32)>; 2] {
    let inside = series.inside.unwrap_or(series.color);
    [(size + 2, series.color), (size, inside)]
        .map(|(size, color)| Polygon::new(corners(symbol, size), rgb(color).filled()))
}

/// The corners of a symbol so many pixels from its middle.
fn corners(symbol: &str, size: i32) -> Vec<(i32, i32)> {
    let (s, half) = (size, size / 2);
    match symbol {
        "diamond" => vec![(0, -s), (s, 0), (0, s), (-s, 0)],
        "triangle-down" => vec![(0, s), (s, -half), (-s, -half)],
        "triangle-up" => vec![(0, -s), (s, half), (-s, half)],
        "pentagon" => vec![(0, -s), (s, -half / 2), (half, s), (-half, s), (-s, -half / 2)],
        _ => vec![(-s, -s), (s, -s), (s, s), (-s, s)],
    }
}

/// The corners of a line whose values hold until the next.
fn steps(series: &Series) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for (x, y) in series.columns.points() {
        corners.extend(corners.last().map(|(_, before)| (x, *before)));
        corners.push((x, y));
    }
    corners
}

/// A line that is dashed as plotly.js calls it.
pub(super) fn line<Y: Ranged<ValueType = f64>>(
    plane: &mut Plane<'_, '_, Y>,
    points: impl IntoIterator<Item = (f64, f64)>,
    dash: &str,
    color: RGBColor,
) -> Drawn {
    let style = color.stroke_width(2);
    let (line, gap) = match dash {
        "dot" => (2, 4),
        "dash" => (7, 4),
        "dashdot" => (14, 4),
        _ => {
            plane.draw_series(LineSeries::new(points, style))?;
            return Ok(());
        }
    };
    let points: Vec<_> = points.into_iter().collect();
    plane.draw_series(DashedLineSeries::new(points, line, gap, style))?;
    Ok(())
}

/// A piece of such a line in a legend, with its middle at this height.
pub(super) fn dashes(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    dash: &str,
    y: i32,
    color: RGBColor,
) -> Drawn {
    let parts: &[(i32, i32)] = match dash {
        "dot" => &[(0, 3), (6, 9), (12, 15), (18, 21)],
        "dash" => &[(0, 8), (13, 21)],
        "dashdot" => &[(0, 14), (18, 21)],
        _ => &[(0, 21)],
    };
    for (from, to) in parts {
        area.draw(&PathElement::new(vec![(*from, y), (*to, y)], color.stroke_width(2)))?;
    }
    Ok(())
}

/// Names of a legend, at most, and characters of each name and label: pictures of any sweep have a size that can be
/// drawn.
pub(super) const NAMES: usize = 100;
const LETTERS: usize = 100;

/// The width of a legend with these names, a margin if there are none, and the height of a picture in which it has
/// room.
pub(super) fn legend_size<'n>(names: impl Iterator<Item = &'n str>) -> [u32; 2] {
    let lengths: Vec<usize> = names.take(NAMES + 1).map(|name| name.chars().count().min(LETTERS)).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0) as u32;
    let width = if lengths.is_empty() { 12 } else { (40 + 8 * longest).max(230) };
    [width, 70 + 20 * lengths.len() as u32]
}

/// The beginning of a name that is too long.
pub(super) fn clipped(name: &str) -> String {
    match name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Name number `number` of a legend of `all` at this height.
pub(super) fn legend_name(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    name: &str,
    [number, all]: [usize; 2],
    y: i32,
) -> Drawn {
    let text = if number == NAMES { format!("and {} more", all - number) } else { clipped(name) };
    area.draw(&Text::new(text, (28, y - 7), (FONT, 14).into_font().color(&INK)))?;
    Ok(())
}

/// The series that have something to show.
fn shown(chart: &Chart) -> impl Iterator<Item = &Series> {
    chart.series.iter().filter(|series| !series.columns.is_empty())
}

/// The series that have something to show and are not hidden.
fn drawn(chart: &Chart) -> impl Iterator<Item = &Series> {
    shown(chart).filter(|series| !series.hidden)
}

/// The names of the series at the right, each behind its color.
fn legend(area: &DrawingArea<SVGBackend<'_>, Shift>, chart: &Chart) -> Drawn {
    let all = shown(chart).count();
    for (number, (y, series)) in (50..).step_by(20).zip(shown(chart)).take(NAMES + 1).enumerate() {
        legend_name(area, &series.name, [number, all], y)?;
        if number == NAMES {
            break;
        }
        if series.hidden {
            continue;
        }
        let color = rgb(series.color);
        match series.shape {
            Shape::Steps(dash) => dashes(area, dash, y, color)?,
            Shape::Symbols("x", _) => area.draw(&Cross::new((10, y), 4, color.stroke_width(2)))?,
            Shape::Symbols("circle", _) => area.draw(&Circle::new((10, y), 4, color.filled()))?,
            Shape::Symbols(symbol, _) => {
                let [border, inside] = filled(series, symbol, 4);
                area.draw(&(EmptyElement::at((10, y)) + border + inside))?;
            }
            Shape::Bars(_) => area.draw(&Rectangle::new([(2, y - 5), (20, y + 5)], color.filled()))?,
        }
    }
    Ok(())
}

/// A number with at most four significant digits, as labels of axes have them; with an SI prefix if it is from 10,000 on
/// or below 0.001.
pub(super) fn short(value: f64) -> String {
    let digits = |value: f64| format!("{value:.3e}").parse::<f64>().unwrap_or(value);
    let value = digits(value);
    let size = value.abs();
    if value == 0.0 || (1e-3..1e4).contains(&size) {
        return value.to_string();
    }
    let prefixes = [
        (1e18, "E"),
        (1e15, "P"),
        (1e12, "T"),
        (1e9, "G"),
        (1e6, "M"),
        (1e3, "k"),
        (1e-3, "m"),
        (1e-6, "µ"),
        (1e-9, "n"),
        (1e-12, "p"),
        (1e-15, "f"),
    ];
    match prefixes.into_iter().find(|(unit, _)| size >= *unit).filter(|_| size < 1e21) {
        Some((unit, prefix)) => format!("{}{prefix}", digits(value / unit)),
        None => format!("{value:e}"),
    }
}

/// The color that `#rrggbb` names.
pub(super) fn rgb(text: &str) -> RGBColor {
    let part = |at: usize| text.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    RGBColor(part(1).unwrap_or(0), part(3).unwrap_or(0), part(5).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn long_numbers_have_a_prefix() {
        let shown =
            [0.0, 0.47, 9999.0, 10_000.0, -123_456.0, 1e10, 0.001, 2.5e-8, 1e-20, 1e30, f64::INFINITY]
                .map(short);
        assert_eq!(
            shown,
            ["0", "0.47", "9999", "10k", "-123.5k", "10G", "0.001", "25n", "1e-20", "1e30", "inf"]
        );
    }
}
