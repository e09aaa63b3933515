//! A sweep as one page: curves with intervals, heat maps, distributions and paired differences, and the command that
//! repeats each run.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::chart::COLORS;
use super::export::{FileNames, PictureError};
use super::page::{data, shell};
use super::plotly::text;
use super::plots::figure_files;
use crate::statistics::{Summary, quantile, rounded, shortened};
use crate::sweep::{CellSummary, Executed, Measured, Sweep, summaries, written};
use crate::units::counted;

const SCRIPT: &str = include_str!("figures.js");
/// The dashes of lines, by plotly.js's names.
pub(super) const DASHES: [&str; 4] = ["solid", "dash", "dot", "dashdot"];
/// The largest number of runs that a distribution shows for each cell.
const SHOWN: usize = 1000;

/// One self-contained HTML page about a complete sweep; `command` repeats it.
pub fn sweep_page(sweep: &Sweep, executed: &Executed, command: &str) -> String {
    let cells = summaries(sweep, executed);
    let figures = figures(sweep, executed, &cells);
    let title = format!("Sweep of {}", without_detours(sweep.scenario_file()));
    let body = html! {
        h1 { (title) }
        p { (counted(sweep.cells() as u64, "cell")) ", " (counted(executed.done, "run")) ". Intervals are 95 % intervals of the mean, by Student's t." }
        @for line in cautions(sweep, executed) { p { b { (line) } } }
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

/// What a reader must know of the runs before the charts: not all of them may be shown or may have values.
fn cautions(sweep: &Sweep, executed: &Executed) -> Vec<String> {
    let mut lines = Vec::new();
    if executed.failed() > 0 {
        lines.push(format!("{} runs failed and have no values; failed.json has them.", executed.failed()));
    }
    for (number, measured) in sweep.measures.iter().enumerate() {
        let without = |cell: usize| executed.counted(cell) - executed.values(cell, number).len();
        let without: usize = (0..sweep.cells()).map(without).sum();
        if without > 0 {
            let name = &measured.name;
            lines.push(format!(
                "{without} runs have no {name}. They do not count in its means and intervals."
            ));
        }
    }
    if (0..sweep.cells()).any(|cell| executed.counted(cell) > SHOWN) {
        lines.push(format!("Charts of distributions show the first {SHOWN} runs of each cell."));
    }
    lines
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
    figure_files(&figures(sweep, executed, &summaries(sweep, executed)), FileNames::default())
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
            let mut difference = curves(sweep, cells, measure, |cell| cell.differences.as_ref());
            difference["layout"]["yaxis"]["title"]["text"] = text(&difference_heading(sweep, measure)).into();
            // Which value is compared is said nowhere else.
            difference["layout"]["showlegend"] = true.into();
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
    let (x, axis) = positions(&sweep.vary[0].key, &sweep.vary[0].values);
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
        // Lines of one color differ in their dashes.
        let dash = DASHES[line / COLORS.len() % DASHES.len()];
        traces.push(json!({
            "type": "scatter", "mode": "lines+markers", "name": text(&others(sweep, line)), "x": x, "y": means,
            "error_y": { "type": "data", "array": halves, "visible": true, "color": color },
            "line": { "color": color, "dash": dash }, "customdata": commands(sweep, &members),
        }));
    }
    json!({ "data": traces, "layout": { "xaxis": axis, "yaxis": values_axis(sweep, measure) } })
}

/// What a difference is: the measure minus that of the cell with the first value of the compared key. The axis has no
/// room for a whole key, which stands below the chart or in its legend.
fn difference_heading(sweep: &Sweep, measure: usize) -> String {
    let Measured { name, .. } = &sweep.measures[measure];
    let first = sweep.compared().map_or(String::new(), |axis| {
        let value = axis.values.first().map(written).unwrap_or_default();
        format!(" minus that with {} = {value}", last_part(&axis.key))
    });
    let unit = sweep.measures[measure].unit();
    if unit.is_empty() { format!("{name}{first}") } else { format!("{name}{first}, {unit}") }
}

/// The last part of a key.
fn last_part(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// The axis of the values of a measure.
fn values_axis(sweep: &Sweep, measure: usize) -> Value {
    json!({ "rangemode": "tozero", "title": { "text": text(&sweep.measures[measure].heading()) } })
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
            "customdata": custom, "colorbar": { "title": { "text": text(sweep.measures[measure].unit()) }, "exponentformat": "SI" },
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
        let mut sorted: Vec<f64> = shown.iter().map(|(_, value)| *value).collect();
        sorted.sort_by(f64::total_cmp);
        // plotly.js interpolates quartiles otherwise. Given ones are lists: one value for each box of a trace, at the
        // places in `x`.
        let [q1, median, q3] = [0.25, 0.5, 0.75].map(|share| quantile(&sorted, share).map(|value| [value]));
        let name = text(&label(sweep, cell));
        json!({
            "type": "box", "name": name, "x": [name], "y": [y], "q1": q1, "median": median, "q3": q3,
            "boxpoints": "all", "jitter": 0.5, "pointpos": 0,
            "marker": { "size": 4, "color": COLORS[cell % COLORS.len()] }, "customdata": [commands], "showlegend": false,
        })
    };
    let data: Vec<Value> = (0..sweep.cells()).map(cell).collect();
    let keys = sweep.vary.iter().filter(|axis| axis.values.len() > 1).map(|axis| last_part(&axis.key));
    let keys = text(&keys.collect::<Vec<_>>().join(", "));
    json!({
        "data": data,
        "layout": {
            "xaxis": { "type": "category", "title": { "text": keys } },
            "yaxis": values_axis(sweep, measure),
        },
    })
}

/// The positions of an axis's values, and the axis: numbers if all are numbers of one unit, otherwise words. Of words
/// that look like numbers or dates plotly.js would make such an axis, on which the others have no place.
fn positions(key: &str, values: &[Value]) -> (Vec<Value>, Value) {
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
            let axis = json!({ "title": { "text": text(&title) } });
            (numbers.iter().map(|(number, _)| json!(number)).collect(), axis)
        }
        _ => {
            let axis = json!({ "type": "category", "title": { "text": text(key) } });
            (values.iter().map(|value| json!(text(&written(value)))).collect(), axis)
        }
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
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), shortened);
    let interval = |summary: &Summary| match (summary.mean, summary.ci95) {
        (Some(mean), Some(half)) => rounded(mean, half),
        (mean, half) => [mean, half].map(number),
    };
    // Runs without a value do not count in a mean.
    let counted = |summary: &Summary, all: usize| match summary.n == all {
        true => String::new(),
        false => format!(" ({} of {all} runs)", summary.n),
    };
    html! {
        h2 { "All cells" }
        div.scroll { table {
            thead { tr {
                @for axis in &sweep.vary { th scope="col" { (axis.key) } }
                th scope="col" { "runs" }
                @for measure in &sweep.measures { th scope="col" { (measure.heading()) } th scope="col" { "± 95 %" } }
                th scope="col" { "first run" }
            } }
            tbody { @for (i, cell) in cells.iter().enumerate() { tr {
                @for value in sweep.varied(i) { td { (written(value)) } }
                td { (executed.counted(i)) }
                @for (_, summary) in &cell.measures.0 {
                    @let [mean, half] = interval(summary);
                    td { (mean) (counted(summary, executed.counted(i))) } td { (half) }
                }
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
        let (x, axis) = positions("link.wifi.loss", &[json!("0.1 %"), json!("1 %")]);
        assert_eq!((x, &axis["title"]["text"]), (vec![json!(0.1), json!(1.0)], &json!("link.wifi.loss, %")));
        assert_eq!(axis["type"], Value::Null);
        let (x, _) = positions("rate", &[json!("1 Mbit/s"), json!("500 kbit/s")]);
        assert!(x[0].is_string());
    }

    #[test]
    fn the_axis_of_differences_has_the_last_part_of_a_key() {
        assert_eq!(["era", "flow.upload.sctp.new"].map(last_part), ["era", "new"]);
    }

    #[test]
    fn values_that_are_not_all_numbers_are_words() {
        let (x, axis) = positions("max_burst", &[json!(4), json!(8), json!("off")]);
        assert_eq!((x, &axis["type"]), (vec![json!("4"), json!("8"), json!("off")], &json!("category")));
    }
}
