//! The data of the figures that a publication describes, as files: CSV, and a PGFPlots document that draws it.

use std::fmt::Write as _;

use super::export::PictureError;
use super::pgf::{self, tex};

/// A figure of a publication.
#[derive(Clone, Debug)]
pub struct PaperFigure {
    /// Its title.
    pub title: String,
    /// Its name: the beginning of its files' names.
    pub name: String,
    /// The picture.
    pub svg: String,
    /// What the picture shows, from top to bottom.
    pub panels: Vec<Panel>,
}

/// One chart of a figure.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// The labels of its axes.
    pub axes: [String; 2],
    /// The ends of its axes.
    pub ranges: [(f64, f64); 2],
    /// Its lines and symbols.
    pub series: Vec<PanelSeries>,
    /// Places on the first axis that have a name.
    pub marks: Vec<(String, f64)>,
}

/// A line or symbols of a panel.
#[derive(Clone, Debug)]
pub struct PanelSeries {
    /// Its name.
    pub name: String,
    /// As `#rrggbb`.
    pub color: String,
    /// Whether its points are symbols that no line joins.
    pub symbols: bool,
    /// Place on the first axis, value, and half of its interval, if it has one.
    pub points: Vec<(f64, f64, Option<f64>)>,
}

impl PaperFigure {
    /// The figure's data as `NAME.csv` and as `NAME.tex`, which draws it: names and contents.
    pub fn data(&self) -> Result<[(String, Vec<u8>); 2], PictureError> {
        let files = [("csv", self.csv()?), ("tex", self.pgfplots().into_bytes())];
        Ok(files.map(|(end, contents)| (format!("{}.{end}", self.name), contents)))
    }

    /// The series with their panels, numbered from 1 through all panels.
    fn series(&self) -> impl Iterator<Item = (usize, &Panel, &PanelSeries)> {
        let all = self.panels.iter().flat_map(|panel| panel.series.iter().map(move |series| (panel, series)));
        all.zip(1..).map(|((panel, series), number)| (number, panel, series))
    }

    /// A row for each point: the number and the name of its series, its panel, its place, its value, and half of its
    /// interval.
    pub fn csv(&self) -> Result<Vec<u8>, PictureError> {
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record(["number", "series", "panel", "x", "value", "half"]).map_err(PictureError::of)?;
        for (number, panel, series) in self.series() {
            let [name, panel] = [&series.name, &panel.title].map(|text| pgf::cell(text));
            for (x, value, half) in &series.points {
                let half = half.map_or("nan".to_owned(), |half| half.to_string());
                let row = [&number.to_string(), &name, &panel, &x.to_string(), &value.to_string(), &half];
                table.write_record(row).map_err(PictureError::of)?;
            }
        }
        table.into_inner().map_err(PictureError::of)
    }

    /// A TeX document that draws the CSV of the figure's name beside it.
    pub fn pgfplots(&self) -> String {
        let mut numbered = self.series();
        let axes: Vec<(String, String)> = self
            .panels
            .iter()
            .map(|panel| {
                let its = numbered.by_ref().take(panel.series.len());
                let drawn = its.map(|(number, _, series)| pgf_series(&self.name, number, series)).collect();
                (panel.options(), drawn)
            })
            .collect();
        let above = self.panels.iter().map(|panel| panel.shown().2).fold(0.0, f64::max);
        pgf::stacked(self.series().map(|(.., series)| series.color.as_str()), &axes, above)
    }
}

impl Panel {
    /// The marks within its range: their places, their names, and the centimetres that the names need above the axis,
    /// where they stand on end.
    fn shown(&self) -> (Vec<String>, Vec<String>, f64) {
        let (low, high) = self.ranges[0];
        let shown: Vec<_> = self.marks.iter().filter(|(_, at)| (low..=high).contains(at)).collect();
        let names = names(&shown, (high - low) / 60.0);
        let longest = names.iter().map(|name| name.chars().count()).max();
        let places = shown.iter().map(|(_, at)| at.to_string()).collect();
        (places, names, longest.map_or(0.0, |letters| 0.15 * (letters + 2) as f64))
    }

    /// The options of its axis.
    fn options(&self) -> String {
        let [x, y] = self.ranges;
        let mut options = format!(
            "  title={{{}}}, xlabel={{{}}}, ylabel={{{}}},\n  xmin={}, xmax={}, ymin={}, ymax={},\n",
            tex(&self.title),
            tex(&self.axes[0]),
            tex(&self.axes[1]),
            x.0,
            x.1,
            y.0,
            y.1
        );
        let (places, names, above) = self.shown();
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| format!("{{{}}}", tex(name))).collect();
            let _ = writeln!(
                options,
                "  title style={{yshift={above:.2}cm}}, extra x ticks={{{}}}, extra x tick labels={{{}}},\n  \
                 extra x tick style={{grid=major, tick label style={{rotate=90, anchor=west}}, ticklabel pos=top}},",
                places.join(","),
                names.join(",")
            );
        }
        options
    }
}

/// The names at these marks. The first of marks that are nearer to it than `near` has the names of all of them: side by
/// side they would have no room.
fn names(marks: &[&(String, f64)], near: f64) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut first = 0;
    for (i, (name, at)) in marks.iter().enumerate() {
        if i > 0 && (at - marks[first].1).abs() < near {
            let before = &mut names[first];
            *before = format!("{before}, {name}");
            names.push(String::new());
        } else {
            first = i;
            names.push(name.clone());
        }
    }
    names
}

/// The commands that draw a series from the file `name`; nothing for a series without points.
fn pgf_series(name: &str, number: usize, series: &PanelSeries) -> String {
    if series.points.is_empty() {
        return String::new();
    }
    let marks = if series.symbols { "only marks, mark size=1pt" } else { "no marks" };
    let bars = match series.points.iter().any(|(.., half)| half.is_some()) {
        true => ", error bars/.cd, y dir=both, y explicit",
        false => "",
    };
    let error = if bars.is_empty() { "" } else { ", y error=half" };
    format!(
        "\\addplot[series{number}, restrict expr to domain={{\\thisrow{{number}}}}{{{number}:{number}}}, {marks}{bars}]\n  \
         table[col sep=comma, x=x, y=value{error}] {{{name}.csv}};\n\\addlegendentry{{{}}}\n",
        tex(&series.name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_a_row_and_every_series_a_line() {
        let series = |name: &str, points: Vec<(f64, f64, Option<f64>)>| PanelSeries {
            name: name.to_owned(),
            color: "#0072b2".to_owned(),
            symbols: false,
            points,
        };
        let panel = |title: &str, series| Panel {
            title: title.to_owned(),
            axes: ["seconds".to_owned(), "chunk, 50 %".to_owned()],
            ranges: [(0.0, 2.0), (0.0, 10.0)],
            series,
            marks: [("B", 1.0), ("C", 1.01), ("D", 1.5), ("E", 3.0)]
                .map(|(name, at)| (name.to_owned(), at))
                .to_vec(),
        };
        let panels = vec![
            panel("whole", vec![series("a, b", vec![(0.5, 4.0, None)])]),
            panel("part", vec![series("c", vec![(1.0, 2.0, Some(0.25))]), series("none", Vec::new())]),
        ];
        let figure =
            PaperFigure { title: "T".to_owned(), name: "fig".to_owned(), svg: String::new(), panels };
        let [(csv, rows), (tex, text)] = figure.data().expect("files");
        assert_eq!((csv.as_str(), tex.as_str()), ("fig.csv", "fig.tex"));
        let rows = String::from_utf8(rows).expect("text");
        assert_eq!(rows, "number,series,panel,x,value,half\n1,a  b,whole,0.5,4,nan\n2,c,part,1,2,0.25\n");
        let text = String::from_utf8(text).expect("text");
        assert_eq!(text.matches("\\nextgroupplot[").count(), 2);
        assert!(text.contains("{1:1}") && text.contains("{2:2}") && !text.contains("{3:3}"), "{text}");
        assert!(
            text.contains("extra x ticks={1,1.01,1.5}, extra x tick labels={{B, C},{},{D}}")
                && text.contains("50 \\%"),
            "{text}"
        );
    }
}
