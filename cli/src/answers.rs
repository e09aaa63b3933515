//! Tables below the results: how flows reacted when a link went down, and how long messages took. A table is printed
//! only if it has rows.

use anabranch_sim::results::{FlowResult, RunResult};
use comfy_table::{CellAlignment, Table};

use crate::table::{self, Column, Columns};

/// The tables for these results, each below an empty line. `varied` are the keys of `--vary`, in their order.
pub(crate) fn tables(results: &[RunResult], varied: &[String]) -> String {
    let columns = Columns::of(results, varied);
    let tables = [
        made(results, &columns, &OUTAGES, outages),
        made(results, &columns, &LATENCIES, |flow| latency(flow).into_iter().collect()),
    ];
    tables.into_iter().flatten().map(|table| format!("\n\n{table}")).collect()
}

pub(crate) const OUTAGES: [Column; 7] = [
    ("link", "The link that went down."),
    ("down", "When it went down, from the beginning of the run."),
    ("noticed\nafter", "How long it took until the sender regarded its paths over the link as failed."),
    (
        "new data\nelsewhere after",
        "How long it took until the sender sent new data on a route without the link.",
    ),
    (
        "delivered\nagain after",
        "How long it took until the receiving application read something sent on a route that worked.",
    ),
    ("up", "When the link worked again, from the beginning of the run."),
    ("new data\nback after", "How long after the link was up again the sender first sent new data over it."),
];

pub(crate) const LATENCIES: [Column; 7] = [
    ("messages", "Messages that the receiving application read."),
    ("mean\nlatency", "The mean time from the moment at which a message could be sent until it was read."),
    ("50 %\nwithin", "Half of the messages took no longer."),
    ("95 %\nwithin", "95 % of the messages took no longer."),
    ("99 %\nwithin", "99 % of the messages took no longer."),
    ("longest", "The longest latency."),
    ("missing", "User data that was not read at the end of the run."),
];

/// A table of the rows of all flows; `None` if there are no rows.
fn made(
    results: &[RunResult],
    columns: &Columns<'_>,
    measures: &[Column],
    rows: impl Fn(&FlowResult) -> Vec<Vec<String>>,
) -> Option<String> {
    let mut table = Table::new();
    table::style(&mut table);
    let leading = columns.leading_header();
    table.set_header(leading.iter().map(String::as_str).chain(measures.iter().map(|(heading, _)| *heading)));
    for result in results {
        for flow in &result.flows {
            for row in rows(flow) {
                table.add_row(columns.leading(result, flow).into_iter().chain(row));
            }
        }
    }
    for column in table.column_iter_mut().skip(leading.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    (!table.is_empty()).then(|| table::text(table))
}

fn outages(flow: &FlowResult) -> Vec<Vec<String>> {
    let known = |seconds: Option<f64>| seconds.map_or_else(|| "never".to_owned(), table::seconds);
    let row = |outage: &anabranch_sim::results::OutageResult| {
        let times = [outage.detected, outage.new_data, outage.delivered, outage.up];
        // A link that stays down has no time of return.
        let back = outage.up.map_or_else(|| "-".to_owned(), |_| known(outage.returned));
        let first = [outage.name.clone(), table::seconds(outage.down)];
        first.into_iter().chain(times.map(known)).chain([back]).collect()
    };
    flow.outages.iter().map(row).collect()
}

fn latency(flow: &FlowResult) -> Option<Vec<String>> {
    let latency = flow.latency.as_ref()?;
    let times = [latency.mean, latency.p50, latency.p95, latency.p99, latency.max].map(table::seconds);
    let missing = flow.missing.map_or_else(|| "-".to_owned(), table::bytes);
    Some([latency.messages.to_string()].into_iter().chain(times).chain([missing]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_sim::results::{Latency, OutageResult};
    use std::collections::BTreeMap;

    fn result(flow: FlowResult) -> RunResult {
        RunResult {
            scenario: "test".to_owned(),
            seed: 1,
            era: "rfc9260".to_owned(),
            varied: BTreeMap::new(),
            ended: 20.0,
            flows: vec![flow],
            links: Vec::new(),
            traffic: Vec::new(),
            stations: Vec::new(),
            fairness: None,
            increase: None,
            measured: None,
        }
    }

    #[test]
    fn what_was_not_asked_is_not_said() {
        assert_eq!(tables(&[result(FlowResult::default())], &[]), "");
    }

    #[test]
    fn an_outage_has_its_times() {
        let outage = OutageResult {
            name: "first".to_owned(),
            down: 10.0,
            detected: Some(1.25),
            new_data: Some(0.75),
            ..OutageResult::default()
        };
        let text = tables(&[result(FlowResult { outages: vec![outage], ..FlowResult::default() })], &[]);
        for part in ["first", "10.000 s", "1.250 s", "0.750 s", "never"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn latencies_and_what_is_missing() {
        let latency = Latency { messages: 7, mean: 0.5, p50: 0.4, p95: 0.9, p99: 1.0, max: 1.1 };
        let flow = FlowResult { latency: Some(latency), missing: Some(1500), ..FlowResult::default() };
        let text = tables(&[result(flow)], &[]);
        for part in ["0.500 s", "0.900 s", "1.100 s", "1500 B"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
