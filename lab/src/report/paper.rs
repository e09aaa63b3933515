//! Publications as one page: every table of a paper with the values of the paper, its reference simulator and
//! Anabranch together, its claims with their verdicts, its figures, and the command that repeats each.

use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

use super::chart::COLORS;
use super::export::PictureError;
use super::page::{data, shell};
use super::panels::PaperFigure;
use super::plotly::text;
use super::plots::figure_files;
use crate::claims::{Cell, Outcome, Paper};

/// A reproduced paper.
#[derive(Debug)]
pub struct Reproduced<'a> {
    /// The paper.
    pub paper: &'a Paper,
    /// The outcomes of its claims.
    pub outcomes: &'a [Outcome],
    /// Its figures.
    pub figures: Vec<PaperFigure>,
}

/// One self-contained HTML page about these papers.
pub fn papers_page(papers: &[Reproduced<'_>]) -> String {
    let mut figures = Vec::new();
    let sections: Vec<Markup> = papers.iter().map(|paper| section(paper, &mut figures)).collect();
    let title = match papers {
        [only] => only.paper.title.clone(),
        _ => "Publications reproduced".to_owned(),
    };
    let body = html! {
        @if papers.len() != 1 { h1 { (title) } }
        p.keys { "Click a point for the command that repeats its claim." }
        p id="point" aria-live="polite" {}
        @for section in &sections { (section) }
    };
    shell(&title, &body, &data(&json!(figures)), include_str!("figures.js")).into_string()
}

/// The charts of a paper's tables as files: names and contents. Each has `NAME.svg`, `.png`, `.pdf`, `.csv` and `.tex`.
pub fn paper_files(paper: &Paper, outcomes: &[Outcome]) -> Result<Vec<(String, Vec<u8>)>, PictureError> {
    let sources = outcomes.chunk_by(|one, next| one.source == next.source);
    let titled = |outcomes: &[Outcome]| {
        let chart = |(unit, figure)| (chart_title(&outcomes[0].source, unit), figure);
        charts(paper, outcomes).into_iter().map(chart).collect::<Vec<_>>()
    };
    figure_files(&sources.flat_map(titled).collect::<Vec<_>>())
}

fn section(reproduced: &Reproduced<'_>, figures: &mut Vec<Value>) -> Markup {
    let Reproduced { paper, outcomes, figures: drawn } = reproduced;
    let sources: Vec<&[Outcome]> = outcomes.chunk_by(|one, next| one.source == next.source).collect();
    let holding = outcomes.iter().filter(|outcome| outcome.holds).count();
    let surprises = outcomes.iter().filter(|outcome| !outcome.as_expected()).count();
    html! {
        h1 { (paper.title) }
        p { (paper.citation) }
        p { (outcomes.len()) " claims: " (holding) " hold, " (outcomes.len() - holding) " do not, "
            b { (surprises) " not as expected" } "." }
        p { "Repeat it: " code { "anabranch reproduce " (paper.name) } }
        @for PaperFigure { title, name, svg, .. } in drawn {
            h2 { (title) }
            // A library draws the tables and escapes every text.
            figure.scroll { (PreEscaped(svg)) }
            p { "Repeat it: " code { "anabranch reproduce " (paper.name) " --figure " (name) ".svg" } }
        }
        @for outcomes in sources {
            h2 { (outcomes[0].source) }
            @for (unit, figure) in charts(paper, outcomes) {
                div.chart id={ "chart-" (push(figures, figure)) } role="figure"
                    aria-label=(chart_title(&outcomes[0].source, unit)) {}
            }
            (table(paper, outcomes))
        }
    }
}

/// Adds a figure and returns its number.
fn push(figures: &mut Vec<Value>, figure: Value) -> usize {
    figures.push(figure);
    figures.len() - 1
}

/// Ratios have no unit.
fn chart_title(source: &str, unit: &str) -> String {
    if unit.is_empty() { source.to_owned() } else { format!("{source}, {unit}") }
}

/// The single values of a source: one chart for each unit that at least two of them have.
fn charts(paper: &Paper, outcomes: &[Outcome]) -> Vec<(&'static str, Value)> {
    let mut units: Vec<&'static str> = Vec::new();
    outcomes.iter().map(|outcome| outcome.unit.symbol()).for_each(|unit| {
        if !units.contains(&unit) {
            units.push(unit);
        }
    });
    let of = |unit: &str| -> Vec<&Outcome> {
        outcomes.iter().filter(|outcome| outcome.is_single() && outcome.unit.symbol() == unit).collect()
    };
    let charts = units.into_iter().map(|unit| (of(unit), unit)).filter(|(members, _)| members.len() > 1);
    charts.map(|(members, unit)| (unit, chart(paper, &members, unit))).collect()
}

/// The values of the paper, its references and Anabranch for each claim.
fn chart(paper: &Paper, outcomes: &[&Outcome], unit: &str) -> Value {
    let x: Vec<String> = outcomes.iter().map(|outcome| text(&outcome.id)).collect();
    let commands: Vec<String> = outcomes.iter().map(|outcome| command(paper, outcome)).collect();
    let mut traces = Vec::new();
    for (i, reference) in paper.references.iter().enumerate() {
        let said = |outcome: &&Outcome| published(outcome, &reference.name);
        let values: Vec<Option<f64>> = outcomes.iter().map(said).collect();
        if values.iter().any(Option::is_some) {
            traces.push(trace(&reference.title, i + 1, &x, &values, &commands));
        }
    }
    let own: Vec<Option<f64>> =
        outcomes.iter().map(|outcome| outcome.values.first().copied().flatten()).collect();
    let halves: Vec<Option<f64>> = outcomes.iter().map(|outcome| outcome.samples.first()?.ci95).collect();
    let mut anabranch = trace("Anabranch", 0, &x, &own, &commands);
    anabranch["error_y"] = json!({ "type": "data", "array": halves, "visible": true });
    traces.push(anabranch);
    let layout = json!({
        "xaxis": { "type": "category", "automargin": true }, "yaxis": { "rangemode": "tozero", "title": { "text": text(unit) } },
    });
    json!({ "data": traces, "layout": layout })
}

fn trace(name: &str, number: usize, x: &[String], y: &[Option<f64>], commands: &[String]) -> Value {
    let symbols = ["circle", "square-open", "diamond-open", "triangle-up-open"];
    json!({
        "type": "scatter", "mode": "markers", "name": text(name), "x": x, "y": y, "customdata": commands,
        "marker": {
            "color": COLORS[number % COLORS.len()], "symbol": symbols[number % symbols.len()],
            "size": if number == 0 { 6 } else { 12 },
        },
    })
}

/// The published value of a reference, if there is exactly one.
fn published(outcome: &Outcome, reference: &str) -> Option<f64> {
    let (_, said) = outcome.published.iter().find(|(known, _)| known.name == reference)?;
    said.values.first().and_then(Cell::number)
}

fn command(paper: &Paper, outcome: &Outcome) -> String {
    format!("anabranch reproduce {} --claim {}", paper.name, outcome.id)
}

fn table(paper: &Paper, outcomes: &[Outcome]) -> Markup {
    let list = |values: Vec<Option<f64>>| {
        let shown = values.iter().map(|value| value.map_or("–".to_owned(), shortened));
        shown.collect::<Vec<_>>().join(", ")
    };
    let said = |outcome: &Outcome, reference: &str| {
        let said = outcome.published.iter().find(|(known, _)| known.name == reference);
        said.map_or(String::new(), |(_, said)| list(said.values.iter().map(Cell::number).collect()))
    };
    html! {
        div.scroll { table {
            thead { tr {
                th scope="col" { "claim" }
                @for reference in &paper.references { th scope="col" { (reference.title) } }
                @for name in ["Anabranch", "unit", "verdict", "repeat it"] { th scope="col" { (name) } }
            } }
            tbody { @for outcome in outcomes { tr {
                th scope="row" { (outcome.id) }
                @for reference in &paper.references { td { (said(outcome, &reference.name)) } }
                td { (list(outcome.values.clone())) }
                td { (outcome.unit.symbol()) }
                td { (verdict(outcome)) }
                td { code { (command(paper, outcome)) } }
            } } }
        } }
        @for outcome in outcomes {
            @for why in outcome.note.iter().chain(&outcome.reason) { p { b { (outcome.id) } ": " (why) } }
        }
    }
}

/// A number with at most seven significant digits.
fn shortened(value: f64) -> String {
    format!("{value:.6e}").parse::<f64>().unwrap_or(value).to_string()
}

fn verdict(outcome: &Outcome) -> &'static str {
    match (outcome.holds, outcome.expected) {
        (true, true) => "holds",
        (false, false) => "does not hold, as expected",
        (false, true) => "does not hold",
        (true, false) => "holds, not expected",
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn numbers_have_seven_digits() {
        let written = [1_041_495.817_696_674_5, 243.677, 0.000_123_456_789, 0.0, -37.0].map(shortened);
        assert_eq!(written, ["1041496", "243.677", "0.0001234568", "0", "-37"]);
    }
}
