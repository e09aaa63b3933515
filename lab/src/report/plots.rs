//! The charts of sweeps and publications as files. They are read from the figures that the pages hold, so that both
//! show the same points.

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde_json::Value;

use super::draw::{self, Drawn, FAINT, FONT, INK, Plane, rgb, short};
use super::export::{FileNames, Format, PictureError, picture};
use super::plot::{Kind, LABELS, Plot, Series};
use super::plot_data::{csv_of, pgfplots};
use crate::statistics::quantile;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A second axis, linear or logarithmic.
trait Axis: Ranged<ValueType = f64> + ValueFormatter<f64> {}

impl<Y: Ranged<ValueType = f64> + ValueFormatter<f64>> Axis for Y {}

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
    let values = plot.range(|(.., value)| [value.unwrap_or(f64::NAN); 2]);
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
    if !plot.rows.is_empty() {
        // Lines would strike through the numbers of the cells.
        mesh.disable_mesh();
    }
    mesh.draw()?;
    Ok(())
}

/// Draws a series; the cells of a heat map are the darker, the nearer their value is to the higher of `values`. A cell
/// without a value stays white.
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
                let Some(value) = value else { continue };
                let share = (value - low) / (high - low).max(f64::MIN_POSITIVE);
                let filled = color.mix(0.1 + 0.6 * share).filled();
                plane.draw_series([Rectangle::new([(x - 0.5, y - 0.5), (x + 0.5, y + 0.5)], filled)])?;
                let middle = Pos::new(HPos::Center, VPos::Center);
                let style = (FONT, 13).into_font().color(&INK).pos(middle);
                plane.draw_series([Text::new(short(*value), (*x, *y), style)])?;
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
            let parts = || series.points.split(|(_, y, _)| y.is_nan());
            if series.kind == Kind::Line {
                for part in parts() {
                    draw::line(plane, part.iter().map(|(x, y, _)| (*x, *y)), &series.dash, color)?;
                }
            }
            let points = || parts().flatten();
            plane.draw_series(points().map(|(x, y, _)| Circle::new((*x, *y), size, color.filled())))?;
            let bars = points().filter_map(|(x, y, half)| Some((*x, *y, (*half)?)));
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

#[cfg(test)]
mod tests {
    use super::super::plot::{BELOW, LABEL};
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
        assert_eq!(text(3), "number,series,x,label,value,ci95\n1,a < b,0.1,,4,0.5\n1,a < b,1,,nan,nan\n");
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

    /// A cell without a value is not drawn, and the others keep their colors.
    #[test]
    fn a_heat_map_shows_which_cell_has_no_mean() {
        let figure = json!({ "data": [{ "type": "heatmap", "x": ["p", "q"], "y": ["a", "b"],
            "z": [[1.0, 2.0], [3.0, null]] }] });
        let svg = svg(&Plot::of("heat", &figure)).expect("it is drawn");
        let cells: Vec<&str> =
            svg.lines().filter(|line| line.contains("<rect") && line.contains("#0072B2")).collect();
        assert!(!svg.contains("NaN") && cells.len() == 3, "{cells:?}");
        assert!(
            ["0.1", "0.4", "0.7"].iter().all(|opacity| svg.contains(&format!("opacity=\"{opacity}\""))),
            "{cells:?}"
        );
    }

    /// TeX has the marks, the colors and the ranges of the page: the last reference hides no other.
    #[test]
    fn a_document_of_tex_looks_like_the_page() {
        let trace = |symbol: &str, size: u32| {
            json!({ "type": "scatter", "mode": "markers", "x": ["a", "b"], "y": [5.0, 6.0],
            "marker": { "symbol": symbol, "size": size } })
        };
        let text = pgfplots(
            &Plot::of("two", &json!({ "data": [trace("square-open", 12), trace("circle", 6)] })),
            "two",
        );
        assert!(text.contains("mark=square, mark size=3pt, mark options={fill=series1, solid}"), "{text}");
        assert!(text.contains("mark=*, mark size=1.5pt, mark options={fill=series2, solid}"), "{text}");
        assert!(
            text.contains("xmin=0.5, xmax=2.5, ymin=0, ymax=6.3") && !text.contains("addplot+"),
            "{text}"
        );
        let heat = json!({ "data": [{ "type": "heatmap", "x": ["p"], "y": ["a"], "z": [[1.0]], "colorbar": { "title": { "text": "%" } } }] });
        let text = pgfplots(&Plot::of("heat", &heat), "heat");
        assert!(
            text.contains("colorbar style={title={\\%}}") && text.contains("nodes near coords"),
            "{text}"
        );
        assert!(text.contains("colormap/viridis") && !text.contains("mark="), "{text}");
    }

    /// A line does not join the values on both sides of a missing one, in the picture and in TeX.
    #[test]
    fn a_missing_mean_is_a_gap_of_its_curve() {
        let figure = json!({ "data": [{ "type": "scatter", "mode": "lines+markers", "x": [1, 2, 3, 4, 5],
            "y": [1.0, 2.0, null, 2.0, 1.0], "line": { "color": "#e69f00" } }] });
        let plot = Plot::of("gap", &figure);
        let svg = svg(&plot).expect("it is drawn");
        let lines = svg.lines().filter(|line| line.contains("<polyline") && line.contains("#E69F00"));
        // Two parts, and a piece in the legend.
        assert_eq!((lines.count(), svg.contains("NaN")), (3, false));
        assert!(pgfplots(&plot, "gap").contains("unbounded coords=jump"));
        assert!(
            String::from_utf8(csv_of(&plot).expect("a table")).expect("text").contains("1,,3,,nan,nan\n")
        );
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
