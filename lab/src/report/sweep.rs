//! A sweep as one page: curves with intervals, heat maps, distributions and paired differences, and the command that
//! repeats each run.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::chart::COLORS;
use super::export::PictureError;
use super::page::{data, shell};
use super::plotly::text;
use super::plots::figure_files;
use crate::sweep::{CellSummary, Executed, Sweep, summaries, written};

const SCRIPT: &str = include_str!("figures.js");
/// The largest number of runs that a distribution shows for each cell.
const SHOWN: usize = 1000;

/// One self-contained HTML page about a complete sweep; `command` repeats it.
pub fn sweep_page(sweep: &Sweep, executed: &Executed, command: &str) -> String {
    let cells = summaries(sweep, executed);
    let figures = figures(sweep, executed, &cells);
    let title = format!("Sweep of {}", without_detours(sweep.scenario_file()));
    let body = html! {
        h1 { (title) }
        p { (sweep.cells()) " cells, " (executed.done) " runs. Intervals are 95 % intervals of the mean, by Student's t." }
        p { "Repeat it: " code { (command) } }
        p.keys { "Click a point for the command that repeats its run; the table below has one for each cell." }
        p id="point" aria-live="polite" {}
        @for (i, (name, _)) in figures.iter().enumerate() {
            h2 { (name) }
            div.chart id={ "chart-" (i) } role="figure" aria-label=(name) {}
        }
        (table(sweep, executed, &cells))
    };
    let figures: Vec<&Value> = figures.iter().map(|(_, figure)| figure).collect();
    shell(&title, &body, &data(&json!(figures)), SCRIPT).into_string()
}

/// The path of a file without the folders that a `..` leaves again.
fn without_detours(file: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for step in file.split('/') {
        match (step, steps.last()) {
            ("..", Some(last)) if !["", ".", ".."].contains(last) => drop(steps.pop()),
            _ => steps.push(step),
        }
    }
    steps.join("/")
}

/// The charts of the page as files: names and contents. Each has `NAME.svg`, `.png`, `.pdf`, `.csv` and `.tex`.
pub fn sweep_files(sweep: &Sweep, executed: &Executed) -> Result<Vec<(String, Vec<u8>)>, PictureError> {
    figure_files(&figures(sweep, executed, &summaries(sweep, executed)))
}

/// The figures with their titles.
fn figures(sweep: &Sweep, executed: &Executed, cells: &[CellSummary]) -> Vec<(String, Value)> {
    let mut figures = Vec::new();
    for (measure, measured) in sweep.measures.iter().enumerate() {
        let name = &measured.name;
        if sweep.vary.is_empty() {
            figures.push((format!("{name}: distribution"), boxes(sweep, executed, measure)));
            continue;
        }
        figures.push((name.clone(), curves(sweep, cells, measure, |cell| Some(&cell.measures))));
        if let [_, _] = &sweep.vary[..] {
            figures.push((format!("{name}: heat map of the means"), heat(sweep, cells, measure)));
        }
        figures.push((format!("{name}: distribution"), boxes(sweep, executed, measure)));
        if cells.iter().any(|cell| cell.differences.is_some()) {
            let difference = curves(sweep, cells, measure, |cell| cell.differences.as_ref());
            figures.push((format!("{name}: paired differences, seed by seed"), difference));
        }
    }
    figures
}

/// The mean over the first axis: one line for each combination of the others, with 95 % intervals.
fn curves<'a>(
    sweep: &Sweep,
    cells: &'a [CellSummary],
    measure: usize,
    of: impl Fn(&'a CellSummary) -> Option<&'a crate::sweep::Measures>,
) -> Value {
    let first = sweep.vary[0].values.len();
    let step = cells.len() / first;
    let (x, title) = positions(&sweep.vary[0].key, &sweep.vary[0].values);
    let mut traces = Vec::new();
    for line in 0..step {
        let members: Vec<usize> = (0..first).map(|value| value * step + line).collect();
        let summary = |cell: &usize| of(&cells[*cell]).map(|measures| &measures.0[measure].1);
        if !members.iter().any(|cell| summary(cell).is_some()) {
            continue;
        }
        let means: Vec<_> = members.iter().map(|cell| summary(cell).and_then(|s| s.mean)).collect();
        let halves: Vec<_> = members.iter().map(|cell| summary(cell).and_then(|s| s.ci95)).collect();
        let color = COLORS[line % COLORS.len()];
        traces.push(json!({
            "type": "scatter", "mode": "lines+markers", "name": text(&others(sweep, line)), "x": x, "y": means,
            "error_y": { "type": "data", "array": halves, "visible": true, "color": color },
            "line": { "color": color }, "customdata": commands(sweep, &members),
        }));
    }
    json!({ "data": traces, "layout": { "xaxis": { "title": { "text": text(&title) } }, "yaxis": { "rangemode": "tozero" } } })
}

/// The means over two axes.
fn heat(sweep: &Sweep, cells: &[CellSummary], measure: usize) -> Value {
    let [first, second] = [0, 1].map(|axis| &sweep.vary[axis]);
    let words = |values: &[Value]| values.iter().map(|value| text(&written(value))).collect::<Vec<_>>();
    let width = second.values.len();
    let rows = 0..first.values.len();
    let row = |row: usize| row * width..(row + 1) * width;
    let mean = |cell: usize| cells[cell].measures.0[measure].1.mean;
    let z: Vec<Vec<_>> = rows.clone().map(|at| row(at).map(mean).collect()).collect();
    let custom: Vec<Vec<String>> = rows.map(|at| commands(sweep, &row(at).collect::<Vec<_>>())).collect();
    json!({
        "data": [{
            "type": "heatmap", "x": words(&second.values), "y": words(&first.values), "z": z, "colorscale": "Viridis",
            "customdata": custom,
        }],
        "layout": {
            "xaxis": { "type": "category", "title": { "text": text(&second.key) } },
            "yaxis": { "type": "category", "title": { "text": text(&first.key) } },
        },
    })
}

/// The runs of each cell; each point is a run.
fn boxes(sweep: &Sweep, executed: &Executed, measure: usize) -> Value {
    let cell = |cell: usize| {
        let runs = executed.values(cell, measure);
        let shown: Vec<_> = runs.iter().take(SHOWN).collect();
        let y: Vec<_> = shown.iter().map(|(_, value)| value).collect();
        let commands: Vec<_> = shown.iter().map(|(n, _)| sweep.command(cell, sweep.seed(*n))).collect();
        json!({
            "type": "box", "name": text(&label(sweep, cell)), "y": y, "boxpoints": "all", "jitter": 0.5, "pointpos": 0,
            "marker": { "size": 4, "color": COLORS[cell % COLORS.len()] }, "customdata": commands, "showlegend": false,
        })
    };
    json!({ "data": (0..sweep.cells()).map(cell).collect::<Vec<_>>(), "layout": { "xaxis": { "type": "category" } } })
}

/// The positions of an axis's values: numbers if all are numbers of one unit, otherwise words; and the title of the
/// axis.
fn positions(key: &str, values: &[Value]) -> (Vec<Value>, String) {
    let split = |value: &Value| -> Option<(f64, String)> {
        let written = written(value);
        let end =
            written.find(|c: char| !(c.is_ascii_digit() || "+-.e".contains(c))).unwrap_or(written.len());
        Some((written[..end].parse().ok()?, written[end..].trim().to_owned()))
    };
    let numbers: Option<Vec<_>> = values.iter().map(split).collect();
    match numbers {
        Some(numbers) if numbers.iter().all(|(_, unit)| *unit == numbers[0].1) => {
            let unit = &numbers[0].1;
            let title = if unit.is_empty() { key.to_owned() } else { format!("{key}, {unit}") };
            (numbers.iter().map(|(number, _)| json!(number)).collect(), title)
        }
        _ => (values.iter().map(|value| json!(text(&written(value)))).collect(), key.to_owned()),
    }
}

/// The axes on which cells differ, and the values of this cell there.
fn differing(sweep: &Sweep, cell: usize) -> impl Iterator<Item = (usize, String)> {
    let values = sweep.vary.iter().zip(sweep.varied(cell)).enumerate();
    values.filter(|(_, (axis, _))| axis.values.len() > 1).map(|(n, (_, value))| (n, written(value)))
}

/// The values of a cell, for the axis of a chart.
fn label(sweep: &Sweep, cell: usize) -> String {
    differing(sweep, cell).map(|(_, value)| value).collect::<Vec<_>>().join(", ")
}

/// The values of a cell on all axes but the first: "era = rfc4960, …".
fn others(sweep: &Sweep, cell: usize) -> String {
    let behind = differing(sweep, cell).filter(|(n, _)| *n > 0);
    let named: Vec<_> = behind.map(|(n, value)| format!("{} = {value}", sweep.vary[n].key)).collect();
    if named.is_empty() { "mean".to_owned() } else { named.join(", ") }
}

/// The command of the first run of each cell.
fn commands(sweep: &Sweep, cells: &[usize]) -> Vec<String> {
    cells.iter().map(|cell| sweep.command(*cell, sweep.seed(0))).collect()
}

fn table(sweep: &Sweep, executed: &Executed, cells: &[CellSummary]) -> Markup {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.6}"));
    html! {
        h2 { "All cells" }
        div.scroll { table {
            thead { tr {
                @for axis in &sweep.vary { th scope="col" { (axis.key) } }
                th scope="col" { "seeds" }
                @for measure in &sweep.measures { th scope="col" { (measure.name) } th scope="col" { "± 95 %" } }
                th scope="col" { "first run" }
            } }
            tbody { @for (i, cell) in cells.iter().enumerate() { tr {
                @for value in sweep.varied(i) { td { (written(value)) } }
                td { (executed.values(i, 0).len()) }
                @for (_, summary) in &cell.measures.0 { td { (number(summary.mean)) } td { (number(summary.ci95)) } }
                td { code { (sweep.command(i, sweep.seed(0))) } }
            } } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_unit_are_numbers() {
        let (x, title) = positions("link.wifi.loss", &[json!("0.1 %"), json!("1 %")]);
        assert_eq!((x, title.as_str()), (vec![json!(0.1), json!(1.0)], "link.wifi.loss, %"));
        let (x, _) = positions("era", &[json!("rfc4960"), json!("rfc9260")]);
        assert_eq!(x, [json!("rfc4960"), json!("rfc9260")]);
        let (x, _) = positions("rate", &[json!("1 Mbit/s"), json!("500 kbit/s")]);
        assert!(x[0].is_string());
    }
}
