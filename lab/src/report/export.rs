//! Charts as files: SVG, PNG and PDF, the points as CSV, and a PGFPlots document that draws the CSV.
//!
//! `plotters` draws SVG, `resvg` PNG and `svg2pdf` PDF, without a browser. The texts of PNG and PDF use a font that
//! is part of the program (Ubuntu Light), so that they look the same on every machine.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anabranch_sim::results::RunResult;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

use super::chart::{Chart, Columns, Series, Shape};
use super::charts::charts;
use super::draw;
use super::pgf::{self, tex};
use super::points::Points;
use super::record::Recorder;

/// The largest number of points of a series in a picture and in its data.
const POINTS: usize = 4000;
/// Pixels of a PNG per unit of the SVG.
const SCALE: f32 = 2.0;

/// A format of pictures.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Format {
    /// Scalable Vector Graphics.
    Svg,
    /// Portable Network Graphics, with two pixels for each unit of the SVG.
    Png,
    /// Portable Document Format.
    Pdf,
}

impl Format {
    /// The format for the extension of a file name; `None` for other extensions.
    pub fn of(file: &Path) -> Option<Format> {
        match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "svg" => Some(Format::Svg),
            "png" => Some(Format::Png),
            "pdf" => Some(Format::Pdf),
            _ => None,
        }
    }
}

/// Why a picture could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw: {0}")]
pub struct PictureError(pub(super) String);

impl PictureError {
    pub(super) fn of(error: impl std::fmt::Display) -> PictureError {
        PictureError(error.to_string())
    }
}

/// Converts a picture from SVG to another format.
pub fn picture(svg: &str, format: Format) -> Result<Vec<u8>, PictureError> {
    if format == Format::Svg {
        return Ok(svg.as_bytes().to_vec());
    }
    let tree = usvg::Tree::from_str(svg, &options()).map_err(PictureError::of)?;
    if format == Format::Pdf {
        let options = svg2pdf::ConversionOptions::default();
        return svg2pdf::to_pdf(&tree, options, svg2pdf::PageOptions::default()).map_err(PictureError::of);
    }
    let [width, height] =
        [tree.size().width(), tree.size().height()].map(|side| (side * SCALE).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| PictureError::of("the picture is empty"))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(PictureError::of)
}

/// Uses the program's own font for everything.
fn options() -> usvg::Options<'static> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    let family = fonts.faces().next().and_then(|face| Some(face.families.first()?.0.clone()));
    if let Some(family) = family {
        fonts.set_sans_serif_family(&family);
        fonts.set_monospace_family(family);
    }
    usvg::Options {
        font_family: "sans-serif".to_owned(),
        fontdb: Arc::new(fonts),
        ..usvg::Options::default()
    }
}

/// The charts of a run as files: names and contents. Each chart has `NAME.svg`, `.png`, `.pdf`, `.csv` and `.tex`.
pub fn chart_files(result: &RunResult, recorder: &Recorder) -> Result<Vec<(String, Vec<u8>)>, PictureError> {
    let (mut files, mut names) = (Vec::new(), FileNames::default());
    for chart in charts(recorder, result) {
        let chart = reduced(chart);
        let name = names.of(&chart.title);
        let svg = draw::svg(&chart, result.ended)?;
        for (end, format) in [("svg", Format::Svg), ("png", Format::Png), ("pdf", Format::Pdf)] {
            files.push((format!("{name}.{end}"), picture(&svg, format)?));
        }
        files.push((format!("{name}.csv"), csv_of(&chart)?));
        files.push((format!("{name}.tex"), pgfplots(&chart, &name, result.ended).into_bytes()));
    }
    Ok(files)
}

/// The chart with at most `POINTS` points per series; peaks stay.
fn reduced(mut chart: Chart) -> Chart {
    for series in chart.series.iter_mut().filter(|series| !matches!(series.shape, Shape::Bars(_))) {
        let mut points = Points::new(POINTS);
        series.columns.points().for_each(|(at, value)| points.push((at * 1e9) as u64, value));
        series.columns = Columns::of(points.iter());
    }
    chart
}

/// The names of the files of a directory. No two charts have the same.
#[derive(Default)]
pub(super) struct FileNames(BTreeSet<String>);

impl FileNames {
    /// Beside files with these names.
    pub(super) fn beside<'n>(others: impl Iterator<Item = &'n str>) -> FileNames {
        FileNames(others.map(str::to_lowercase).collect())
    }

    /// A title as a file name of letters, digits and hyphens, with a number if another chart has that name.
    pub(super) fn of(&mut self, title: &str) -> String {
        let plain = title.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let parts: Vec<_> = plain.split('-').filter(|part| !part.is_empty()).collect();
        let plain = if parts.is_empty() { "chart".to_owned() } else { parts.join("-") };
        let mut name = plain.clone();
        for number in 2.. {
            if self.0.insert(name.clone()) {
                break;
            }
            name = format!("{plain}-{number}");
        }
        name
    }
}

/// One row per point: the number of its series from 1, the name of the series, seconds, and the value; for a bar its
/// lane and its end.
fn csv_of(chart: &Chart) -> Result<Vec<u8>, PictureError> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let lanes = !chart.lanes.is_empty();
    let value = if chart.unit.is_empty() { "value" } else { chart.unit };
    let heading = if lanes {
        ["number", "series", "from", "lane", "to"]
    } else {
        ["number", "series", "time", "value", "unit"]
    };
    table.write_record(heading).map_err(PictureError::of)?;
    for (i, series) in chart.series.iter().enumerate() {
        let number = (i + 1).to_string();
        let name = pgf::cell(&series.name);
        let rows: Vec<[String; 3]> = match lanes {
            true => {
                intervals(series).map(|[from, lane, to]| [from, lane, to].map(|x| x.to_string())).collect()
            }
            false => {
                let row = |(at, y): (f64, f64)| [at.to_string(), y.to_string(), value.to_owned()];
                series.columns.points().map(row).collect()
            }
        };
        for row in rows {
            let start = [number.as_str(), name.as_str()];
            let all = start.into_iter().chain(row.iter().map(String::as_str));
            table.write_record(all).map_err(PictureError::of)?;
        }
    }
    table.into_inner().map_err(PictureError::of)
}

/// The intervals of a series of bars: begin, lane, end.
pub(super) fn intervals(series: &Series) -> impl Iterator<Item = [f64; 3]> + '_ {
    let Columns { x, y } = &series.columns;
    x.chunks_exact(3).zip(y.chunks_exact(3)).map(|(x, y)| [x[0], y[0], x[1]])
}

/// A TeX document that draws the CSV beside it.
fn pgfplots(chart: &Chart, name: &str, ended: f64) -> String {
    let mut options = format!(
        "  title={{{}}}, xlabel={{seconds}}, ylabel={{{}}},\n  \
         xmin=0, xmax={ended}, legend pos=outer north east, legend cell align=left,\n",
        tex(&chart.title),
        chart.unit
    );
    match chart.lanes.len() {
        0 => options += "  ymin=0,\n",
        lanes => {
            let _ = writeln!(options, "  ymin=0.5, ymax={lanes}.5,");
        }
    }
    options += &pgf::ticks("y", &chart.lanes);
    let mut drawn = String::new();
    for (i, series) in chart.series.iter().enumerate().filter(|(_, series)| !series.columns.is_empty()) {
        let number = i + 1;
        let (style, columns) = pgf_style(series);
        let _ = match series.hidden {
            true => writeln!(drawn, "\\addlegendimage{{empty legend}}"),
            false => writeln!(
                drawn,
                "\\addplot[series{number}, {style}, restrict expr to domain={{\\thisrow{{number}}}}{{{number}:{number}}}]\n  \
                 table[col sep=comma, {columns}] {{{name}.csv}};"
            ),
        };
        let _ = writeln!(drawn, "\\addlegendentry{{{}}}", tex(&series.name));
    }
    pgf::document(chart.series.iter().map(|series| series.color), &options, &drawn)
}

/// The PGFPlots options of a series, and the columns that it uses.
fn pgf_style(series: &Series) -> (String, &'static str) {
    match series.shape {
        Shape::Steps(dash) => (format!("const plot, no marks, {}", pgf::dash(dash)), "x=time, y=value"),
        Shape::Symbols(symbol, size) => {
            let mut options: Vec<String> =
                series.inside.iter().map(|color| format!("fill={}", pgf::color(color))).collect();
            options.extend((symbol == "triangle-down").then(|| "rotate=180".to_owned()));
            let mark = pgf::mark(symbol, f64::from(size), &options.join(", "));
            (format!("only marks, {mark}"), "x=time, y=value")
        }
        Shape::Bars(width) => {
            let length = "quiver={u=\\thisrow{to}-\\thisrow{from}, v=0}";
            (format!("no marks, line width={}pt, {length}", f64::from(width) / 4.0), "x=from, y=lane")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(shape: Shape, lanes: Vec<String>) -> Chart {
        let mut columns = Columns::default();
        columns.interval(1_000_000_000, 2_000_000_000, 1.0);
        let series = Series {
            name: "a_b, c".to_owned(),
            color: "#0072b2",
            inside: None,
            shape,
            columns,
            hidden: false,
            meta: None,
        };
        Chart { title: "Fl#w: x".to_owned(), unit: "bytes", height: 250, lanes, series: vec![series] }
    }

    #[test]
    fn every_format_begins_as_it_must() {
        let svg = draw::svg(&chart(Shape::Steps("dash"), Vec::new()), 3.0).expect("it is drawn");
        assert!(svg.starts_with("<svg"));
        assert!(picture(&svg, Format::Png).expect("it is drawn").starts_with(b"\x89PNG"));
        assert!(picture(&svg, Format::Pdf).expect("it is drawn").starts_with(b"%PDF"));
        assert_eq!(Format::of(Path::new("a/b.PNG")), Some(Format::Png));
        assert_eq!(Format::of(Path::new("svg")), None);
    }

    #[test]
    fn the_font_of_the_program_sets_the_texts() {
        let with = |text: &str| {
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"90\" height=\"20\"><text x=\"2\" y=\"15\" \
                 font-family=\"sans-serif\">{text}</text></svg>"
            );
            picture(&svg, Format::Png).expect("it is drawn")
        };
        assert_ne!(with("chunk"), with(""));
    }

    #[test]
    fn bars_become_intervals() {
        let chart = chart(Shape::Bars(14), vec!["s".to_owned()]);
        let csv = String::from_utf8(csv_of(&chart).expect("a table")).expect("text");
        assert_eq!(csv, "number,series,from,lane,to\n1,a_b  c,1,1,2\n");
        let text = pgfplots(&chart, "fl-w-x", 3.0);
        assert!(text.contains("title={Fl\\#w: x}") && text.contains("\\addlegendentry{a\\_b, c}"), "{text}");
        assert!(text.contains("{fl-w-x.csv}") && text.contains("yticklabels={{s}}"), "{text}");
    }

    /// Labels have no digits of the error of a sum, and whole numbers no decimals.
    #[test]
    fn labels_of_axes_are_short() {
        let mut chart = chart(Shape::Steps("solid"), Vec::new());
        chart.series[0].columns = Columns::of([(0, 0.0), (50_000_000_000, 0.47)].into_iter());
        let svg = draw::svg(&chart, 60.0).expect("it is drawn");
        let texts: Vec<&str> = svg.lines().map(str::trim).collect();
        assert!(["0.3", "10", "60"].iter().all(|label| texts.contains(label)), "{svg}");
    }

    #[test]
    fn charts_of_like_titles_have_files_of_their_own() {
        let mut names = FileNames::beside(["Figure-1"].into_iter());
        assert_eq!(names.of("Figure 1"), "figure-1-2");
        let titles = ["Fl#w: x", "fl w: X", "fl-w-x-2", "ü", "ö"].map(|title| names.of(title));
        assert_eq!(titles, ["fl-w-x", "fl-w-x-2", "fl-w-x-2-2", "chart", "chart-2"]);
    }
}
