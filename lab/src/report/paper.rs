//! Publications as one page: every table of a paper with the values of the paper, its reference simulator and
//! Anabranch together, its claims with their verdicts, its figures, and the command that repeats each.

use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

use super::chart::COLORS;
use super::export::{FileNames, PictureError};
use super::page::{data, shell, with_code};
use super::panels::PaperFigure;
use super::plotly::text;
use super::plots::figure_files;
use super::sweep::DASHES;
use crate::claims::{Cell, Outcome, Paper};
use crate::command::quoted;
use crate::statistics::shortened;

/// Values that differ by more than this factor are shown on a logarithmic axis.
const WIDE: f64 = 50.0;

/// A reproduced paper.
#[derive(Debug)]
pub struct Reproduced<'a> {
    /// The paper.
    pub paper: &'a Paper,
    /// The outcomes of its claims.
    pub outcomes: &'a [Outcome],
    /// Its figures.
    pub figures: Vec<PaperFigure>,
    /// The number of seeds of every experiment, if it is not the experiment's own.
    pub seeds: Option<u64>,
    /// The variant whose claims alone were judged.
    pub variant: Option<&'a str>,
    /// The number of rows for each claim about all rows of a table together, if it is not the claim's own.
    pub rows: Option<u32>,
    /// The claims that were asked for; none: all.
    pub claims: &'a [String],
}

impl Reproduced<'_> {
    /// The command that makes the same of these claims (none: of all), and `more` behind it.
    fn command(&self, claims: &[String], more: &str) -> String {
        let claims = claims.iter().map(|claim| format!(" --claim {}", quoted(claim)));
        let options = [
            self.variant.map(|variant| format!(" --variant {}", quoted(variant))),
            self.seeds.map(|seeds| format!(" --seeds {seeds}")),
            self.rows.map(|rows| format!(" --rows {rows}")),
        ];
        let options: String = claims.chain(options.into_iter().flatten()).collect();
        format!("anabranch reproduce {}{options}{more}", quoted(&self.paper.name))
    }

    /// The command that repeats a claim.
    fn of_claim(&self, outcome: &Outcome) -> String {
        self.command(std::slice::from_ref(&outcome.id), "")
    }
}

/// One self-contained HTML page about these papers. `home`: the page of a site to which it links.
pub fn papers_page(papers: &[Reproduced<'_>], home: Option<&str>) -> String {
    let mut figures = Vec::new();
    let sections: Vec<Markup> = papers.iter().map(|paper| section(paper, &mut figures)).collect();
    let title = match papers {
        [only] => only.paper.title.clone(),
        _ => "Publications reproduced".to_owned(),
    };
    let body = html! {
        @if let Some(home) = home { nav { a href=(home) { "← The publication and all guides" } } }
        @if papers.len() != 1 { h1 { (title) } }
        p.keys { "Click a point for the command that repeats its claim." }
        p id="point" aria-live="polite" {}
        @for section in &sections { (section) }
    };
    shell(&title, &body, &data(&json!(figures)), include_str!("figures.js")).into_string()
}

/// The charts of a paper's tables as files: names and contents. Each has `NAME.svg`, `.png`, `.pdf`, `.csv` and `.tex`.
/// They stand beside the figures that the paper describes itself.
pub fn paper_files(reproduced: &Reproduced<'_>) -> Result<Vec<(String, Vec<u8>)>, PictureError> {
    let sources = reproduced.outcomes.chunk_by(|one, next| one.source == next.source);
    let charts: Vec<_> = sources.flat_map(|outcomes| charts(reproduced, outcomes)).collect();
    figure_files(&charts, FileNames::beside(reproduced.figures.iter().map(|figure| figure.name.as_str())))
}

fn section(reproduced: &Reproduced<'_>, figures: &mut Vec<Value>) -> Markup {
    let Reproduced { paper, outcomes, figures: drawn, seeds, variant, rows, claims } = reproduced;
    let sources: Vec<&[Outcome]> = outcomes.chunk_by(|one, next| one.source == next.source).collect();
    let holding = outcomes.iter().filter(|outcome| outcome.holds).count();
    let surprises = outcomes.iter().filter(|outcome| !outcome.as_expected()).count();
    html! {
        h1 { (with_code(&paper.title)) }
        p { (with_code(&paper.citation)) }
        p { (outcomes.len()) " claims: " (holding) " hold, " (outcomes.len() - holding) " do not, "
            b { (surprises) " not as expected" } "." }
        p { "Repeat it: " code { (reproduced.command(claims, "")) } }
        @if let Some(seeds) = seeds {
            p { b { "A draft" } " with " code { "--seeds " (seeds) } " for every experiment instead of its own number." }
        }
        @if let Some(variant) = variant {
            p { "Only the claims of the variant " b { (variant) } " were judged; values under other variants are left out." }
        }
        @if let Some(rows) = rows {
            p { "Each claim about all rows of a table together had " (rows) " of them, if there are so many, instead of its own number." }
        }
        @for PaperFigure { title, name, svg, .. } in drawn {
            h2 { (with_code(title)) }
            // A library draws the tables and escapes every text.
            figure.scroll { (PreEscaped(svg)) }
            p { "Repeat it: " code { (figure_command(reproduced, name)) } }
        }
        @for outcomes in sources {
            h2 { (with_code(&outcomes[0].source)) }
            @for (title, figure) in charts(reproduced, outcomes) {
                div.chart id={ "chart-" (push(figures, figure)) } role="figure" aria-label=(title) {}
            }
            (table(reproduced, outcomes))
        }
    }
}

/// The command that draws a figure; a variant and the rows of claims do not matter to it.
fn figure_command(reproduced: &Reproduced<'_>, name: &str) -> String {
    let all = Reproduced { figures: Vec::new(), variant: None, rows: None, ..*reproduced };
    all.command(&[], &format!(" --figure {}", quoted(&format!("{name}.svg"))))
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

/// The charts of a source with their titles: of its single values one for each unit that at least two of them have, and
/// of its orders one for those that compare the same items.
fn charts(reproduced: &Reproduced<'_>, outcomes: &[Outcome]) -> Vec<(String, Value)> {
    let source = &outcomes[0].source;
    let single = groups(outcomes, |outcome| outcome.is_single().then_some(outcome.unit.symbol()));
    let single = single.into_iter().filter(|(_, members)| members.len() > 1);
    let single = single.map(|(unit, members)| (chart_title(source, unit), chart(reproduced, &members)));
    let orders = groups(outcomes, |outcome| (outcome.form == "order").then_some(&outcome.of));
    let orders = orders
        .into_iter()
        .map(|(_, members)| (format!("{source}: {}", common(&members)), orders_chart(reproduced, &members)));
    single.chain(orders).collect()
}

/// The outcomes with the same key, in order of the first of each; those without a key are left out.
fn groups<'o, K: PartialEq>(
    outcomes: &'o [Outcome],
    key: impl Fn(&'o Outcome) -> Option<K>,
) -> Vec<(K, Vec<&'o Outcome>)> {
    let mut groups: Vec<(K, Vec<&Outcome>)> = Vec::new();
    for outcome in outcomes {
        let Some(key) = key(outcome) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(outcome),
            None => groups.push((key, vec![outcome])),
        }
    }
    groups
}

/// What the names of these claims have in common: whole parts between slashes.
fn common(outcomes: &[&Outcome]) -> String {
    let parts = |outcome: &Outcome| outcome.id.split('/').map(str::to_owned).collect::<Vec<_>>();
    let mut shared = parts(outcomes[0]);
    for outcome in outcomes {
        let same = shared.iter().zip(parts(outcome)).take_while(|(a, b)| **a == *b).count();
        shared.truncate(same);
    }
    shared.join("/")
}

/// The values of each order as a line, with those of its references: each order has a color and a dash,
/// each reference a symbol.
fn orders_chart(reproduced: &Reproduced<'_>, outcomes: &[&Outcome]) -> Value {
    let references = &reproduced.paper.references;
    let x: Vec<String> = outcomes[0].of.iter().map(|item| text(item)).collect();
    let mut traces = Vec::new();
    for (number, outcome) in outcomes.iter().enumerate() {
        let commands = vec![reproduced.of_claim(outcome); x.len()];
        let halves: Vec<Option<f64>> = outcome.samples.iter().map(|sample| sample.ci95).collect();
        let mut own = trace(&outcome.id, (number, 0), &x, &outcome.values, &commands);
        own["mode"] = json!("lines+markers");
        // Lines of one color differ in their dashes.
        own["line"] = json!({ "dash": DASHES[number / COLORS.len() % DASHES.len()] });
        own["error_y"] = json!({ "type": "data", "array": halves, "visible": true });
        traces.push(own);
        for (reference, said) in outcome.published.iter().filter(|(_, said)| !said.values.is_empty()) {
            let values: Vec<Option<f64>> = said.values.iter().map(Cell::number).collect();
            let name = format!("{}, {}", outcome.id, reference.title);
            let whose = references.iter().position(|known| known.name == reference.name).map_or(0, |i| i + 1);
            traces.push(trace(&name, (number, whose), &x, &values, &commands));
        }
    }
    figure(outcomes, outcomes[0].over.as_deref().unwrap_or("compared"), &traces)
}

/// The chart of these traces: the values of these claims over items of this kind.
fn figure(outcomes: &[&Outcome], items: &str, traces: &[Value]) -> Value {
    let values = Outcome::axis(outcomes.iter().copied(), outcomes[0].unit.symbol());
    let title = json!({ "text": text(&values) });
    let axis = match is_wide(traces) {
        true => json!({ "type": "log", "dtick": 1, "title": title }),
        false => json!({ "rangemode": "tozero", "title": title }),
    };
    json!({ "data": traces, "layout": {
        "xaxis": { "type": "category", "title": { "text": text(items) } },
        "yaxis": axis,
    } })
}

/// Whether the largest value is so many times the smallest that a linear axis would show the small ones as one. Values
/// and intervals that reach zero have no logarithm.
fn is_wide(traces: &[Value]) -> bool {
    let numbers = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let ends = traces.iter().flat_map(|trace| {
        let halves = numbers(&trace["error_y"]["array"]);
        let half = move |i: usize| halves.get(i).and_then(Value::as_f64).unwrap_or(0.0);
        let values = numbers(&trace["y"]).into_iter().enumerate();
        values.filter_map(move |(i, value)| Some((value.as_f64()? - half(i), value.as_f64()?)))
    });
    let (lowest, highest) =
        ends.fold((f64::INFINITY, 0.0_f64), |(low, high), (end, value)| (low.min(end), high.max(value)));
    lowest > 0.0 && lowest * WIDE < highest
}

/// The values of the paper, its references and Anabranch for each claim.
fn chart(reproduced: &Reproduced<'_>, outcomes: &[&Outcome]) -> Value {
    let x: Vec<String> = outcomes.iter().map(|outcome| text(&outcome.id)).collect();
    let commands: Vec<String> = outcomes.iter().map(|outcome| reproduced.of_claim(outcome)).collect();
    let mut traces = Vec::new();
    for (i, reference) in reproduced.paper.references.iter().enumerate() {
        let said = |outcome: &&Outcome| published(outcome, &reference.name);
        let values: Vec<Option<f64>> = outcomes.iter().map(said).collect();
        if values.iter().any(Option::is_some) {
            traces.push(trace(&reference.title, (i + 1, i + 1), &x, &values, &commands));
        }
    }
    let own: Vec<Option<f64>> =
        outcomes.iter().map(|outcome| outcome.values.first().copied().flatten()).collect();
    let halves: Vec<Option<f64>> = outcomes.iter().map(|outcome| outcome.samples.first()?.ci95).collect();
    let mut anabranch = trace("Anabranch", (0, 0), &x, &own, &commands);
    anabranch["error_y"] = json!({ "type": "data", "array": halves, "visible": true });
    traces.push(anabranch);
    figure(outcomes, "claim", &traces)
}

/// Points in a color, with the symbol of Anabranch (0) or of a reference.
fn trace(
    name: &str,
    (color, symbol): (usize, usize),
    x: &[String],
    y: &[Option<f64>],
    commands: &[String],
) -> Value {
    let symbols = ["circle", "square-open", "diamond-open", "triangle-up-open"];
    json!({
        "type": "scatter", "mode": "markers", "name": text(name), "x": x, "y": y, "customdata": commands,
        "marker": {
            "color": COLORS[color % COLORS.len()], "symbol": symbols[symbol % symbols.len()],
            "size": if symbol == 0 { 6 } else { 12 },
        },
    })
}

/// The published value of a reference, if there is exactly one.
fn published(outcome: &Outcome, reference: &str) -> Option<f64> {
    let (_, said) = outcome.published.iter().find(|(known, _)| known.name == reference)?;
    said.values.first().and_then(Cell::number)
}

fn table(reproduced: &Reproduced<'_>, outcomes: &[Outcome]) -> Markup {
    let references = &reproduced.paper.references;
    let list = |outcome: &Outcome, values: Vec<Option<f64>>| {
        if outcome.form == "sequence" && !values.is_empty() {
            return outcome.in_order(&values);
        }
        let shown = values.iter().map(|value| value.map_or("–".to_owned(), shortened));
        shown.collect::<Vec<_>>().join(", ")
    };
    let said = |outcome: &Outcome, reference: &str| {
        let said = outcome.published.iter().find(|(known, _)| known.name == reference);
        said.map_or(String::new(), |(_, said)| list(outcome, said.values.iter().map(Cell::number).collect()))
    };
    html! {
        div.scroll { table {
            thead { tr {
                th scope="col" { "claim" }
                @for reference in references { th scope="col" { (reference.title) } }
                @for name in ["Anabranch", "unit", "verdict", "repeat it"] { th scope="col" { (name) } }
            } }
            tbody { @for outcome in outcomes { tr {
                th scope="row" { (outcome.id) }
                @for reference in references { td { (said(outcome, &reference.name)) } }
                td { (list(outcome, outcome.values.clone())) }
                td { @if outcome.form != "sequence" { (outcome.unit.symbol()) } }
                td { (verdict(outcome)) }
                td { code { (reproduced.of_claim(outcome)) } }
            } } }
        } }
        @for outcome in outcomes {
            @for why in outcome.note.iter().chain(&outcome.reason) { p { b { (outcome.id) } ": " (with_code(why)) } }
        }
    }
}

fn verdict(outcome: &Outcome) -> &'static str {
    match (outcome.holds, outcome.expected) {
        (false, false) if !outcome.is_known() => "has no value",
        (true, true) => "holds",
        (false, false) => "does not hold, as expected",
        (false, true) => "does not hold",
        (true, false) => "holds, not expected",
    }
}

#[cfg(test)]
mod tests {
    use super::{is_wide, papers_page};
    use serde_json::json;

    #[test]
    fn an_axis_is_logarithmic_if_its_values_are_far_apart_and_all_have_a_logarithm() {
        let wide = |y: serde_json::Value, halves: serde_json::Value| {
            is_wide(&[json!({ "y": [null, 60.0] }), json!({ "y": y, "error_y": { "array": halves } })])
        };
        assert!(wide(json!([1.0, 2.0]), json!([null, null])));
        assert!(!wide(json!([2.0, 3.0]), json!([null, null])));
        assert!(wide(json!([2.0]), json!([1.0])));
        assert!(!wide(json!([1.0]), json!([1.5])));
        assert!(!wide(json!([0.0]), json!([null])));
        assert!(!is_wide(&[]));
    }

    #[test]
    fn a_page_links_to_its_site_if_it_has_one() {
        let page = papers_page(&[], Some("index.html"));
        assert!(
            page.contains("<nav><a href=\"index.html\">← The publication and all guides</a></nav>"),
            "{page}"
        );
        assert!(!papers_page(&[], None).contains("all guides"));
    }
}
