//! The HTML page around the charts.

use anabranch_sim::results::{FlowResult, RunResult};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use super::chart::Chart;
use super::charts::groups;
use super::plotly::figure;
use super::record::Recorder;
use crate::units::{rate, seconds};

/// The information about a run that stands on its page besides the results.
#[derive(Clone, Default, Debug)]
pub struct Described {
    /// The scenario's title.
    pub title: Option<String>,
    /// The scenario's description.
    pub description: Option<String>,
    /// The command that repeats the run.
    pub command: String,
}

/// More flows are shown in groups of so many: a browser needs minutes to draw the charts of a thousand.
const FLOWS: usize = 10;
const STYLE: &str = include_str!("page.css");
const PRINT: &str = include_str!("print.js");
const SCRIPT: &str = concat!("\"use strict\";\n", include_str!("levels.js"), include_str!("page.js"));

/// One self-contained HTML page with the charts, the results and the packets of a run.
pub fn page(
    described: &Described,
    result: &RunResult,
    recorder: &Recorder,
) -> Result<String, serde_json::Error> {
    let results = serde_json::to_value(result)?;
    let title = described.title.clone().unwrap_or_else(|| result.scenario.clone());
    let groups = groups(recorder, result, FLOWS);
    let is_empty = groups.iter().all(|(_, charts)| charts.is_empty());
    let body = html! {
        (heading(described, result, &title))
        (flows(result))
        @if is_empty { p { "No packet was sent, so there are no charts." } } @else { (drawn(&groups, result.ended)) }
        details {
            summary { "All results, as the option --json prints them" }
            pre { (serde_json::to_string_pretty(&results)?) }
        }
    };
    let first = groups.first().map_or(&[][..], |(_, charts)| charts);
    let figure = PreEscaped(figure(first, result.ended));
    Ok(shell(&title, &body, &figure, if is_empty { "" } else { SCRIPT }).into_string())
}

/// The places of the charts and of the packets, the choice between the groups of charts, and the data of all groups but
/// the first.
fn drawn(groups: &[(String, Vec<Chart>)], ended: f64) -> Markup {
    html! {
        @if groups.len() > 1 {
            p { label for="group" { "Charts of " } select id="group" {
                @for (number, (name, _)) in groups.iter().enumerate() { option value=(number) { (name) } }
            } }
        }
        p.keys { "Drag to zoom, or turn the wheel with Ctrl; double-click to see the whole run. With the charts focused: ← and → move, + and − zoom, 0 shows the whole run, Enter puts the cursor in the middle, n and p move it to the next and the previous packet." }
        div id="charts" tabindex="0" role="figure" aria-label="Charts of the run over time" {}
        section aria-live="polite" {
            h2 { "Packets at the cursor" }
            p id="moment" { "Click into a chart to list the chunks that were sent or dropped around that time, and what the flows waited for." }
            div.scroll { table id="packets" {} }
        }
        @for (number, (_, charts)) in groups.iter().enumerate().skip(1) {
            script type="application/json" id={ "figure-" (number) } { (PreEscaped(figure(charts, ended))) }
        }
    }
}

/// The page around a body: its data, the charting library, and the script that draws the data with the library.
pub(super) fn shell(title: &str, body: &Markup, figure: &PreEscaped<String>, script: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // The page loads nothing, and no script inside a name or a message can run.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; worker-src blob:";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    @if !script.is_empty() { noscript { p { b { "The charts need JavaScript. The tables do not." } } } }
                    (body)
                }
                script type="application/json" id="figure" { (figure) }
                (PreEscaped(library()))
                script { (PreEscaped(script)) }
                script { (PreEscaped(PRINT)) }
            }
        }
    }
}

fn heading(described: &Described, result: &RunResult, title: &str) -> Markup {
    html! {
        h1 { (with_code(title)) }
        @if let Some(description) = &described.description { p { (with_code(description)) } }
        p { "Scenario " b { (result.scenario) } ", era " b { (result.era) } ", seed " b { (result.seed) }
            @for (key, value) in &result.varied { ", " (key) " = " b { (value) } }
            ". The run lasted " (seconds(result.ended)) "." }
        p { "Repeat it: " code { (described.command) } }
    }
}

/// A text with what stands between two backticks as code. A backtick without a second one stays.
pub(super) fn with_code(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    let pairs = (parts.len() - 1) / 2;
    html! {
        @for (i, part) in parts.iter().enumerate() {
            @if i > 2 * pairs { "`" (part) } @else if i % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn flows(result: &RunResult) -> Markup {
    html! {
        div.scroll { table {
            thead { tr {
                @for name in ["flow", "time", "goodput", "packets", "timeouts", "waited for the peer's window", "waited for cwnd"] {
                    th scope="col" { (name) }
                }
            } }
            tbody { @for flow in &result.flows { (row(flow)) } }
        } }
    }
}

fn row(flow: &FlowResult) -> Markup {
    html! { tr {
        th scope="row" { (flow.name) }
        td { (completion(flow)) }
        td { (rate(flow.goodput)) }
        td { (flow.packets) }
        td { (flow.timeouts) }
        td { (waited(flow, flow.blocked.peer_window)) }
        td { (waited(flow, flow.blocked.cwnd)) }
    } }
}

/// How long something blocked a flow. Other transports than these do not count it.
fn waited(flow: &FlowResult, time: f64) -> String {
    if flow.protocol.counts_blocked() { seconds(time) } else { "-".to_owned() }
}

/// The time of a flow. One without an end misses nothing.
fn completion(flow: &FlowResult) -> String {
    match (flow.completion, flow.missing) {
        (Some(time), _) => seconds(time),
        (None, Some(_)) => "unfinished".to_owned(),
        (None, None) => "no end".to_owned(),
    }
}

/// JSON inside a script element.
pub(super) fn data(value: &Value) -> PreEscaped<String> {
    PreEscaped(escaped(value))
}

/// JSON whose `<` are escaped, because a name could otherwise end the script element.
pub(super) fn escaped(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// plotly.js alone. The crate appends MathJax, which no chart needs.
fn library() -> String {
    let all = plotly::Plot::offline_js_sources();
    let end = all.find("</script>").map_or(all.len(), |end| end + "</script>".len());
    all[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::with_code;

    #[test]
    fn what_stands_between_backticks_is_code_and_escaped() {
        let shown = |text: &str| with_code(text).into_string();
        assert_eq!(shown("`a<b>` and `c`"), "<code>a&lt;b&gt;</code> and <code>c</code>");
        assert_eq!(shown("one `two` three ` four"), "one <code>two</code> three ` four");
        assert_eq!(shown("<i>"), "&lt;i&gt;");
        assert_eq!(shown(""), "");
    }
}
