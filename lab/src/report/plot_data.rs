//! The points of a chart as CSV, and a PGFPlots document that draws it.

use std::fmt::Write as _;

use super::export::PictureError;
use super::pgf::{self, tex};
use super::plot::{Kind, Plot, Series};

/// A row for each point: the number of its series from 1, the series, the place on the first axis and its name, the
/// value, and half of its 95 % interval, `nan` where there is none; of a heat map the number of the row stands before the value.
pub(super) fn csv_of(plot: &Plot) -> Result<Vec<u8>, PictureError> {
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
            let number = |number: f64| if number.is_nan() { "nan".to_owned() } else { number.to_string() };
            let third = number(third.unwrap_or(f64::NAN));
            let row = [(i + 1).to_string(), name, x.to_string(), label, number(*y), third];
            table.write_record(row).map_err(PictureError::of)?;
        }
    }
    table.into_inner().map_err(PictureError::of)
}

/// A TeX document that draws the CSV beside it.
pub(super) fn pgfplots(plot: &Plot, name: &str) -> String {
    let mut options = format!(
        "  title={{{}}}, xlabel={{{}}}, ylabel={{{}}}, legend pos=outer north east, legend cell align=left,\n",
        tex(&plot.title),
        tex(&plot.x),
        tex(&plot.y)
    );
    if plot.is_log {
        options += "  ymode=log,\n";
    }
    let (across, up) = (plot.across(), plot.up());
    let _ = writeln!(
        options,
        "  xmin={}, xmax={}, ymin={}, ymax={},",
        across.start, across.end, up.start, up.end
    );
    if !plot.rows.is_empty() {
        let _ = writeln!(
            options,
            "  colormap/viridis, colorbar, colorbar style={{title={{{}}}}},",
            tex(&plot.unit)
        );
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
    let (symbol, size) = &series.symbol;
    let mark = pgf::mark(symbol, *size, &format!("fill=series{number}, solid"));
    let bars = format!("{mark}, error bars/.cd, y dir=both, y explicit");
    let (style, columns) = match series.kind {
        Kind::Line => {
            let dash = pgf::dash(&series.dash);
            (format!("series{number}, {dash}, {only}, {bars}"), "x=x, y=value, y error=ci95")
        }
        Kind::Symbols => {
            (format!("series{number}, {only}, only marks, {bars}"), "x=x, y=value, y error=ci95")
        }
        Kind::Distribution => (format!("series{number}, {only}, only marks, {mark}"), "x=x, y=value"),
        Kind::Cells => {
            let columns = plot.labels.len();
            // The numbers stand on white, which every color lets through.
            let numbers = "nodes near coords, every node near coord/.append style={anchor=center, inner sep=1pt, fill=white, fill opacity=0.6, text opacity=1}";
            let style = format!("matrix plot*, point meta=explicit, mesh/cols={columns}, {numbers}");
            (style, "x=x, y=row, meta=value")
        }
    };
    let _ = writeln!(text, "\\addplot[{style}]\n  table[col sep=comma, {columns}] {{{name}.csv}};");
    if matches!(series.kind, Kind::Line | Kind::Symbols) {
        let _ = writeln!(text, "\\addlegendentry{{{}}}", tex(&series.name));
    }
    text
}
