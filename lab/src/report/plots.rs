//! The charts of sweeps and publications as files. They are read from the figures that the pages hold, so that both
//! show the same points.

use std::fmt::Write as _;

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde_json::Value;

use super::draw::{self, Drawn, FAINT, FONT, INK, Plane, rgb, short};
use super::export::{FileNames, Format, PictureError, picture};
use super::pgf::{self, tex};
use crate::statistics::quantile;

/// Pixels, without the names at the right and the labels below.
const SIZE: (u32, u32) = (840, 435);
/// Pixels for the title of the first axis and its labels, where these are numbers or short names.
const BELOW: u32 = 45;
/// Pixels across that a turned label needs, and the most labels of an axis.
const LABEL: u32 = 15;
const LABELS: usize = 400;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A second axis, linear or logarithmic.
trait Axis: Ranged<ValueType = f64> + ValueFormatter<f64> {}

impl<Y: Ranged<ValueType = f64> + ValueFormatter<f64>> Axis for Y {}

/// A chart.
struct Plot {
    title: String,
    x: String,
    y: String,
    /// The names of the places 1, 2, … on the first axis; none where it has numbers.
    labels: Vec<String>,
    /// The names of the places on the second axis, of a heat map.
    rows: Vec<String>,
    /// Whether the second axis is logarithmic.
    is_log: bool,
    series: Vec<Series>,
}

struct Series {
    name: String,
    color: String,
    kind: Kind,
    /// How its line is dashed, by plotly.js's name.
    dash: String,
    /// On the first axis, on the second, and the third value: half of the interval, or the color of a cell.
    points: Vec<(f64, f64, Option<f64>)>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Line,
    Symbols,
    /// All values of a place.
    Distribution,
    /// The cells of a heat map.
    Cells,
}

/// The files of these figures, each with its title: names and contents. Each figure has `NAME.svg`, `.png`, `.pdf`,
/// `.csv` and `.tex`.
pub(super) fn figure_files(
    figures: &[(String, Value)],
    mut names: FileNames,
) -> Result<Vec<(String, Vec<u8>)>, PictureError> {
    let mut files = Vec::new();
    for (title, figure) in figures {
        let plot = Plot::of(title, figure);
        let name = names.of(title);
        let svg = svg(&plot)?;
        for (end, format) in [("svg", Format::Svg), ("png", Format::Png), ("pdf", Format::Pdf)] {
            files.push((format!("{name}.{end}"), picture(&svg, format)?));
        }
        files.push((format!("{name}.csv"), csv_of(&plot)?));
        files.push((format!("{name}.tex"), pgfplots(&plot, &name).into_bytes()));
    }
    Ok(files)
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
    fn of(title: &str, figure: &Value) -> Plot {
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
                    let unit = plain(&trace["colorbar"]["title"]["text"]);
                    plot.title.extend((!unit.is_empty()).then(|| format!(", {unit}")));
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

    fn range(&self, of: impl Fn(&(f64, f64, Option<f64>)) -> [f64; 2]) -> [f64; 2] {
        let ends = self.series.iter().flat_map(|series| &series.points).flat_map(of);
        ends.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], end| [low.min(end), high.max(end)])
    }

    /// Whether the names of the places are turned: side by side they would have no room.
    fn has_turned_labels(&self) -> bool {
        let longest = self.longest_label();
        longest > 8 || longest * self.labels.len() as u32 > 80
    }

    /// The most letters of a label.
    fn longest_label(&self) -> u32 {
        self.labels.iter().map(|label| draw::clipped(label).chars().count() as u32).max().unwrap_or(0)
    }

    /// Pixels, without the names at the right.
    fn size(&self) -> (u32, u32) {
        let labels = if self.has_turned_labels() { self.labels.len().min(LABELS) as u32 } else { 0 };
        (SIZE.0.max(130 + LABEL * labels), SIZE.1 + self.below())
    }

    /// Pixels below the first axis.
    fn below(&self) -> u32 {
        BELOW + if self.has_turned_labels() { 6 * self.longest_label() } else { 0 }
    }

    /// The range of the first axis.
    fn across(&self) -> std::ops::Range<f64> {
        if !self.labels.is_empty() {
            return 0.5..self.labels.len() as f64 + 0.5;
        }
        let [low, high] = self.range(|(x, ..)| [*x, *x]);
        // A single place stands in the middle.
        let room = if high > low { (high - low) * 0.05 } else { (low.abs() * 0.05).max(0.5) };
        if low > high { 0.0..1.0 } else { low - room..high + room }
    }

    /// The range of the second axis, zero included if it is linear.
    fn up(&self) -> std::ops::Range<f64> {
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
    fn named(&self) -> impl Iterator<Item = &Series> {
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
    let point = |(i, (x, y)): (usize, (&Value, &Value))| {
        let x = if words { (i + 1) as f64 } else { x.as_f64()? };
        Some((x, y.as_f64()?, halves.get(i).and_then(Value::as_f64)))
    };
    let points = list(&trace["x"]).iter().zip(list(&trace["y"])).enumerate().filter_map(point).collect();
    let kind = if lines { Kind::Line } else { Kind::Symbols };
    let dash = trace["line"]["dash"].as_str().unwrap_or("solid").to_owned();
    Series { name: plain(&trace["name"]), color: color(trace), kind, dash, points }
}

fn distribution(trace: &Value, place: usize) -> Series {
    let values = list(&trace["y"][0]).iter().filter_map(Value::as_f64);
    let points = values.map(|value| (place as f64, value, None)).collect();
    let (name, color, dash) = (plain(&trace["name"]), color(trace), String::new());
    Series { name, color, kind: Kind::Distribution, dash, points }
}

fn cells(trace: &Value) -> Series {
    let mut points = Vec::new();
    for (row, values) in list(&trace["z"]).iter().enumerate() {
        for (column, value) in list(values).iter().enumerate() {
            points.push(((column + 1) as f64, (row + 1) as f64, value.as_f64()));
        }
    }
    let (name, dash) = ("mean".to_owned(), String::new());
    Series { name, color: color(trace), kind: Kind::Cells, dash, points }
}

fn svg(plot: &Plot) -> Result<String, PictureError> {
    let mut svg = String::new();
    {
        let [right, height] = draw::legend_size(plot.named().map(|series| series.name.as_str()));
        let (width, below) = plot.size();
        let size = (width + right, below.max(height));
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&root, plot).map_err(PictureError::of)?;
    }
    Ok(svg)
}

fn draw(root: &Area<'_>, plot: &Plot) -> Drawn {
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(plot.size().0);
    let mut chart = ChartBuilder::on(&left);
    chart
        .margin(12)
        .caption(&plot.title, (FONT, 17).into_font().color(&INK))
        .x_label_area_size(plot.below())
        .y_label_area_size(if plot.rows.is_empty() { 90 } else { 130 });
    match plot.is_log {
        true => draw_plane(root, chart.build_cartesian_2d(plot.across(), plot.up().log_scale())?, plot)?,
        false => draw_plane(root, chart.build_cartesian_2d(plot.across(), plot.up())?, plot)?,
    }
    legend(&right, plot)?;
    root.present()?;
    Ok(())
}

/// Draws the axes and what is between them.
fn draw_plane<Y: Axis>(root: &Area<'_>, mut plane: Plane<'_, '_, Y>, plot: &Plot) -> Drawn {
    mesh(&mut plane, plot)?;
    let none = [f64::INFINITY, f64::NEG_INFINITY];
    let values = plot.range(|(.., value)| value.map_or(none, |value| [value; 2]));
    // Values of one place may be equal: each series has smaller symbols than the one before. Lines leave room for their
    // intervals.
    for (series, size) in plot.series.iter().zip([7, 5, 3].into_iter().chain(std::iter::repeat(2))) {
        let size = if series.kind == Kind::Line { 3 } else { size };
        draw_series(&mut plane, series, values, size)?;
    }
    if plot.has_turned_labels() {
        let turned = (FONT, 12).into_font().transform(FontTransform::Rotate90).color(&INK);
        let turned = turned.pos(Pos::new(HPos::Left, VPos::Center));
        let step = plot.labels.len().div_ceil(LABELS);
        for (place, label) in plot.labels.iter().enumerate().step_by(step) {
            let (x, y) = plane.backend_coord(&((place + 1) as f64, plot.up().start));
            root.draw(&Text::new(draw::clipped(label), (x, y + 8), turned.clone()))?;
        }
    }
    Ok(())
}

fn mesh<Y: Axis>(plane: &mut Plane<'_, '_, Y>, plot: &Plot) -> Drawn {
    let name = |names: &[String], value: f64| {
        let near = (value - value.round()).abs() < 0.01;
        let place = (value.round() as usize).checked_sub(1).filter(|_| near);
        place.and_then(|place| names.get(place)).cloned().unwrap_or_default()
    };
    let tick =
        |names: &[String], value: f64| if names.is_empty() { short(value) } else { name(names, value) };
    let (column, row) = (|value: &f64| tick(&plot.labels, *value), |value: &f64| tick(&plot.rows, *value));
    let count = |names: &[String], usual: usize| {
        if names.is_empty() { usual } else { 2 * names.len().min(LABELS) + 2 }
    };
    let nothing = |_: &f64| String::new();
    let mut mesh = plane.configure_mesh();
    mesh.light_line_style(TRANSPARENT).bold_line_style(FAINT.mix(0.25)).axis_style(FAINT);
    mesh.label_style((FONT, 13).into_font().color(&INK)).x_desc(&plot.x).y_desc(&plot.y);
    mesh.x_label_formatter(&column).y_label_formatter(&row);
    mesh.x_labels(count(&plot.labels, 8)).y_labels(count(&plot.rows, 6));
    if plot.has_turned_labels() {
        mesh.x_label_formatter(&nothing);
    }
    mesh.draw()?;
    Ok(())
}

/// Draws a series; the cells of a heat map are the darker, the nearer their value is to the higher of `values`.
fn draw_series<Y: Axis>(
    plane: &mut Plane<'_, '_, Y>,
    series: &Series,
    [low, high]: [f64; 2],
    size: i32,
) -> Drawn {
    let color = rgb(&series.color);
    match series.kind {
        Kind::Cells => {
            for (x, y, value) in &series.points {
                let share = value.map_or(0.0, |value| (value - low) / (high - low).max(f64::MIN_POSITIVE));
                let filled = color.mix(0.1 + 0.6 * share).filled();
                plane.draw_series([Rectangle::new([(x - 0.5, y - 0.5), (x + 0.5, y + 0.5)], filled)])?;
                let text = value.map(short).unwrap_or_default();
                let middle = Pos::new(HPos::Center, VPos::Center);
                let style = (FONT, 13).into_font().color(&INK).pos(middle);
                plane.draw_series([Text::new(text, (*x, *y), style)])?;
            }
        }
        Kind::Distribution => {
            let mut values: Vec<f64> = series.points.iter().map(|(_, y, _)| *y).collect();
            values.sort_by(f64::total_cmp);
            let x = series.points.first().map_or(0.0, |(x, ..)| *x);
            if let [Some(low), Some(middle), Some(high)] =
                [0.25, 0.5, 0.75].map(|share| quantile(&values, share))
            {
                let half = Rectangle::new([(x - 0.3, low), (x + 0.3, high)], color.mix(0.3).filled());
                plane.draw_series([half])?;
                let line = vec![(x - 0.3, middle), (x + 0.3, middle)];
                plane.draw_series([PathElement::new(line, color.stroke_width(2))])?;
            }
            let points = series.points.iter().map(|(x, y, _)| (*x, *y));
            plane.draw_series(points.map(|at| Circle::new(at, 2, color.filled())))?;
        }
        Kind::Line | Kind::Symbols => {
            let points = || series.points.iter().map(|(x, y, _)| (*x, *y));
            if series.kind == Kind::Line {
                draw::line(plane, points(), &series.dash, color)?;
            }
            plane.draw_series(points().map(|at| Circle::new(at, size, color.filled())))?;
            let bars = series.points.iter().filter_map(|(x, y, half)| Some((*x, *y, (*half)?)));
            for (x, y, half) in bars {
                let ends = [(x, y - half), (x, y + half)];
                plane.draw_series([PathElement::new(ends.to_vec(), color.stroke_width(2))])?;
                let cap = || PathElement::new(vec![(-5, 0), (5, 0)], color.stroke_width(2));
                plane.draw_series(ends.map(|end| EmptyElement::at(end) + cap()))?;
            }
        }
    }
    Ok(())
}

fn legend(area: &Area<'_>, plot: &Plot) -> Drawn {
    let all = plot.named().count();
    for (number, (y, series)) in (50..).step_by(20).zip(plot.named()).take(draw::NAMES + 1).enumerate() {
        draw::legend_name(area, &series.name, [number, all], y)?;
        if number == draw::NAMES {
            break;
        }
        let color = rgb(&series.color);
        if series.kind == Kind::Line {
            draw::dashes(area, &series.dash, y, color)?;
        }
        // A symbol would hide how the line is dashed.
        if series.kind == Kind::Symbols || series.dash == "solid" {
            area.draw(&Circle::new((10, y), 4, color.filled()))?;
        }
    }
    Ok(())
}

/// A row for each point: the number of its series from 1, the series, the place on the first axis and its name, the
/// value, and half of its 95 % interval; of a heat map the number of the row stands before the value.
fn csv_of(plot: &Plot) -> Result<Vec<u8>, PictureError> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let heading = match plot.rows.is_empty() {
        true => ["number", "series", "x", "label", "value", "ci95"],
        false => ["number", "series", "x", "label", "row", "value"],
    };
    table.write_record(heading).map_err(PictureError::of)?;
    for (i, series) in plot.series.iter().enumerate() {
        for (x, y, third) in &series.points {
            let label = (*x as usize).checked_sub(1).and_then(|place| plot.labels.get(place));
            let label = label.map_or(String::new(), |label| pgf::cell(label));
            let name = match series.kind {
                Kind::Cells => plot.rows.get(*y as usize - 1).map_or(String::new(), |row| pgf::cell(row)),
                _ => pgf::cell(&series.name),
            };
            let third = third.map_or("nan".to_owned(), |third| third.to_string());
            let row = [(i + 1).to_string(), name, x.to_string(), label, y.to_string(), third];
            table.write_record(row).map_err(PictureError::of)?;
        }
    }
    table.into_inner().map_err(PictureError::of)
}

/// A TeX document that draws the CSV beside it.
fn pgfplots(plot: &Plot, name: &str) -> String {
    let mut options = format!(
        "  title={{{}}}, xlabel={{{}}}, ylabel={{{}}}, legend pos=outer north east, legend cell align=left,\n",
        tex(&plot.title),
        tex(&plot.x),
        tex(&plot.y)
    );
    if plot.is_log {
        options += "  ymode=log,\n";
    }
    options += &pgf::ticks("x", &plot.labels);
    options += &pgf::ticks("y", &plot.rows);
    if !plot.labels.is_empty() {
        options += "  x tick label style={rotate=60, anchor=east},\n";
    }
    let drawn: String =
        plot.series.iter().enumerate().map(|(i, series)| pgf_series(plot, series, i + 1, name)).collect();
    pgf::document(plot.series.iter().map(|series| series.color.as_str()), &options, &drawn)
}

/// The commands that draw a series from the file `name`; nothing for a series without points.
fn pgf_series(plot: &Plot, series: &Series, number: usize, name: &str) -> String {
    let mut text = String::new();
    if series.points.is_empty() {
        return text;
    }
    let only = format!("restrict expr to domain={{\\thisrow{{number}}}}{{{number}:{number}}}");
    let bars = "mark=*, error bars/.cd, y dir=both, y explicit";
    let (style, columns) = match series.kind {
        Kind::Line => {
            let dash = pgf::dash(&series.dash);
            (format!("series{number}, {dash}, {only}, {bars}"), "x=x, y=value, y error=ci95")
        }
        Kind::Symbols => {
            (format!("series{number}, {only}, only marks, {bars}"), "x=x, y=value, y error=ci95")
        }
        Kind::Distribution => (format!("series{number}, {only}, only marks, mark=*"), "x=x, y=value"),
        Kind::Cells => {
            let columns = plot.labels.len();
            (format!("matrix plot*, point meta=explicit, mesh/cols={columns}"), "x=x, y=row, meta=value")
        }
    };
    let _ = writeln!(text, "\\addplot+[{style}]\n  table[col sep=comma, {columns}] {{{name}.csv}};");
    if matches!(series.kind, Kind::Line | Kind::Symbols) {
        let _ = writeln!(text, "\\addlegendentry{{{}}}", tex(&series.name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_logarithmic_axis_has_powers_of_ten() {
        let figure = json!({ "data": [{ "type": "scatter", "mode": "markers", "x": [1, 2], "y": [3.0, 3000.0] }],
            "layout": { "yaxis": { "type": "log" } } });
        let plot = Plot::of("wide", &figure);
        let svg = svg(&plot).unwrap();
        assert!(["10", "100", "1000"].iter().all(|tick| svg.contains(&format!("\n{tick}\n"))), "{svg}");
        assert!(pgfplots(&plot, "wide").contains("ymode=log,"));
    }

    #[test]
    fn points_of_a_curve_keep_their_intervals() {
        let figure = json!({
            "data": [{ "type": "scatter", "mode": "lines+markers", "name": "a &lt; b", "x": [0.1, 1.0], "y": [4.0, null],
                "error_y": { "array": [0.5, null] }, "line": { "color": "#0072b2" } }],
            "layout": { "xaxis": { "title": { "text": "loss, %" } } },
        });
        let files =
            figure_files(&[("goodput".to_owned(), figure)], FileNames::default()).expect("they are drawn");
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["goodput.svg", "goodput.png", "goodput.pdf", "goodput.csv", "goodput.tex"]);
        let text = |file: usize| String::from_utf8(files[file].1.clone()).expect("text");
        assert_eq!(text(3), "number,series,x,label,value,ci95\n1,a < b,0.1,,4,0.5\n");
        assert!(
            text(0).contains("loss, %") && text(4).contains("\\addlegendentry{a \\textless{} b}"),
            "{}",
            text(4)
        );
    }

    /// The last of many names has room in the picture, and no number or length of names makes it too large to be drawn.
    #[test]
    fn every_name_has_room() {
        let lines = |count: usize, name: &str| {
            let line = |n| json!({ "type": "scatter", "mode": "lines", "name": format!("{name}{n}"), "x": [1], "y": [n] });
            svg(&Plot::of("many", &json!({ "data": (0..count).map(line).collect::<Vec<_>>() })))
                .expect("it is drawn")
        };
        let size = |svg: &str, side: &str| -> f64 {
            let rest = svg.split(&format!("{side}=\"")).nth(1).expect("a size");
            rest[..rest.find('"').expect("it ends")].parse().expect("a number")
        };
        let places = |svg: &str| -> f64 {
            let ys =
                svg.split("<text ").skip(1).filter_map(|rest| rest.split(" y=\"").nth(1)?.split('"').next());
            ys.map(|y| y.parse().expect("a number")).fold(0.0, f64::max)
        };
        let some = lines(40, "flow.upload.sctp.retransmit = timeout-alternate, era = rfc9260, ");
        assert!(places(&some) < size(&some, "height") && some.contains("rfc9260, 39"));
        assert!(size(&some, "width") > 840.0 + 60.0 * 7.0);
        let many = lines(2_000, &"x".repeat(5_000));
        assert!(size(&many, "height") < 2_200.0 && size(&many, "width") < 2_000.0);
        assert!(many.contains("and 1900 more") && many.len() < 2_000_000);
    }

    /// Turned labels have room above the title of their axis, and beside each other.
    #[test]
    fn every_label_has_room() {
        let plot = |count: usize, length: usize| {
            let label = |n: usize| format!("{n}{}", "0".repeat(length - 1));
            let x: Vec<String> = (0..count).map(label).collect();
            let y = vec![1.0; count];
            Plot::of("many", &json!({ "data": [{ "type": "scatter", "mode": "markers", "x": x, "y": y }] }))
        };
        let [few, long, many] = [plot(10, 8), plot(10, 60), plot(200, 1)];
        assert_eq!((few.size(), few.has_turned_labels()), ((840, 480), false));
        assert!(long.below() == BELOW + 60 * 6 && long.size() == (840, 480 + 60 * 6));
        assert!(many.has_turned_labels() && many.size().0 >= 200 * LABEL);
        let most = svg(&plot(5_000, 5_000)).expect("it is drawn");
        assert!(most.matches("0…").count() <= LABELS && most.len() < 2_000_000, "{}", most.len());
    }

    #[test]
    fn a_single_place_stands_in_the_middle_and_nothing_has_an_axis() {
        let plot = |y: f64| {
            Plot::of("one", &json!({ "data": [{ "type": "scatter", "mode": "lines", "x": [20], "y": [y] }] }))
        };
        assert_eq!((plot(3.0).across(), plot(0.0).up()), (19.0..21.0, 0.0..1.0));
    }

    #[test]
    fn a_heat_map_has_a_row_for_each_cell() {
        let figure = json!({ "data": [{ "type": "heatmap", "x": ["p", "q"], "y": ["1 %"], "z": [[1.0, 2.0]],
                "colorbar": { "title": { "text": "bit/s" } } }] });
        let plot = Plot::of("heat", &figure);
        assert_eq!(plot.title, "heat, bit/s");
        let csv = String::from_utf8(csv_of(&plot).expect("a table")).expect("text");
        assert_eq!(csv, "number,series,x,label,row,value\n1,1 percent,1,p,1,1\n1,1 percent,2,q,1,2\n");
        assert!(svg(&plot).expect("it is drawn").contains("<rect"));
    }

    #[test]
    fn a_distribution_keeps_every_run() {
        let figure = json!({ "data": [{ "type": "box", "name": "A", "x": ["A"], "y": [[1.0, 3.0]] }, { "type": "box", "name": "B", "x": ["B"], "y": [[2.0]] }] });
        let plot = Plot::of("spread", &figure);
        assert_eq!(plot.labels, ["A", "B"]);
        let points: Vec<usize> = plot.series.iter().map(|series| series.points.len()).collect();
        assert_eq!((points, plot.across(), plot.up()), (vec![2, 1], 0.5..2.5, 0.0..3.0 * 1.05));
    }
}
