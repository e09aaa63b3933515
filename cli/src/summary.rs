//! Results of several seeds as a table: one row per flow and cell of the grid.

use std::collections::BTreeSet;

use anabranch_lab::statistics::Summary;
use anabranch_sim::results::{FlowResult, RunResult};
use comfy_table::{CellAlignment, Table};

use crate::table::{self, Column, Columns};

/// The table of `results` over their seeds: for each number the mean, half of its 95 % interval, and below them the
/// standard deviation. `varied` are the keys of `--vary`, in their order.
pub(crate) fn table(results: &[RunResult], varied: &[String]) -> String {
    let columns = Columns::of(results, varied).without_seeds();
    let mut table = Table::new();
    table::style(&mut table);
    let mut header = columns.header();
    let first = header.len() - table::MEASURES.len();
    header.truncate(first);
    header.push("seeds".to_owned());
    header.extend(MEASURES.map(|(heading, _)| heading.to_owned()));
    table.set_header(header);
    for (leading, runs) in groups(results, &columns) {
        let mut row = leading;
        row.push(runs.len().to_string());
        row.extend(cells(&runs));
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(first) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table::text(table)
}

pub(crate) const MEASURES: [Column; 6] = [
    ("time", "As above; of the runs that finished. `unfinished`: how many did not."),
    ("goodput", "As above."),
    ("packets", "As above."),
    ("retransmissions", "Chunks (TCP: segments) sent again, for any reason and on any path."),
    ("timeouts", "Expirations of the retransmission timer at the sender."),
    ("drops", "Packets dropped on all links and by radios, of all flows."),
];

/// Whether all seeds gave the same results everywhere, so that nothing in the scenario is random.
pub(crate) fn seeds_differ_in_nothing(results: &[RunResult]) -> bool {
    let seeds: BTreeSet<_> = results.iter().map(|result| result.seed).collect();
    let like = |a: &RunResult, b: &RunResult| {
        let same = RunResult { seed: a.seed, ..b.clone() };
        a.varied != b.varied || *a == same
    };
    seeds.len() > 1 && results.windows(2).all(|pair| like(&pair[0], &pair[1]))
}

/// A run and one of its flows.
type FlowOfRun<'r> = (&'r RunResult, &'r FlowResult);

/// The flows that differ only in their seed, with the leading cells of their row, in the order of the results.
fn groups<'r>(results: &'r [RunResult], columns: &Columns<'_>) -> Vec<(Vec<String>, Vec<FlowOfRun<'r>>)> {
    let mut groups: Vec<(Vec<String>, Vec<FlowOfRun<'r>>)> = Vec::new();
    for result in results {
        for flow in &result.flows {
            let of = |(run, other): &FlowOfRun<'_>| run.varied == result.varied && other.name == flow.name;
            match groups.iter_mut().find(|(_, runs)| of(&runs[0])) {
                Some((_, runs)) => runs.push((result, flow)),
                None => groups.push((columns.leading(result, flow), vec![(result, flow)])),
            }
        }
    }
    groups
}

fn cells(runs: &[FlowOfRun<'_>]) -> Vec<String> {
    let summary =
        |value: &dyn Fn(&FlowOfRun<'_>) -> f64| Summary::of(&runs.iter().map(value).collect::<Vec<_>>());
    let times: Vec<f64> = runs.iter().filter_map(|(_, flow)| flow.completion).collect();
    let unfinished = runs.iter().filter(|(_, flow)| flow.missing.is_some()).count();
    let time = match (times.len(), unfinished) {
        (0, 0) => "no end".to_owned(),
        (_, 0) => cell(&Summary::of(&times), |time, _| table::seconds(time)),
        _ => {
            format!("{}\n{unfinished} unfinished", cell(&Summary::of(&times), |time, _| table::seconds(time)))
        }
    };
    let again = |flow: &FlowResult| {
        let all = flow.retransmissions.fast.values().chain(flow.retransmissions.timeout.values());
        all.sum::<u64>() as f64
    };
    let dropped = |run: &RunResult| {
        let on_links = run.links.iter().map(|link| link.dropped);
        on_links.chain(table::dropped_by_radios(run).into_values()).sum::<u64>() as f64
    };
    vec![
        time,
        cell(&summary(&|(_, flow)| flow.goodput), table::rate_beside),
        cell(&summary(&|(_, flow)| flow.packets as f64), count),
        cell(&summary(&|(_, flow)| again(flow)), count),
        cell(&summary(&|(_, flow)| flow.timeouts as f64), count),
        cell(&summary(&|(run, _)| dropped(run)), count),
    ]
}

/// "18.534 s ± 0.012 s", and below it "sd 0.030 s". `show` writes a value with the unit of the mean, which it gets too.
fn cell(summary: &Summary, show: fn(f64, f64) -> String) -> String {
    match (summary.mean, summary.ci95, summary.sd) {
        (Some(mean), Some(width), Some(sd)) => {
            format!("{} ± {}\nsd {}", show(mean, mean), show(width, mean), show(sd, mean))
        }
        (Some(mean), ..) => show(mean, mean),
        _ => "-".to_owned(),
    }
}

fn count(count: f64, _: f64) -> String {
    if count.fract() == 0.0 { count.to_string() } else { format!("{count:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_sim::results::{FlowLink, LinkResult};
    use std::collections::BTreeMap;

    fn run(seed: u64, completion: Option<f64>) -> RunResult {
        let missing = completion.is_none().then_some(1);
        let flow =
            FlowResult { name: "f".to_owned(), completion, missing, goodput: 1e6, ..FlowResult::default() };
        RunResult {
            scenario: "test".to_owned(),
            seed,
            era: "rfc9260".to_owned(),
            varied: BTreeMap::new(),
            ended: 1.0,
            flows: vec![flow],
            links: Vec::new(),
            stations: Vec::new(),
            traffic: Vec::new(),
            fairness: None,
            increase: None,
            measured: None,
        }
    }

    #[test]
    fn seeds_become_one_row() {
        let text = table(&[run(1, Some(1.0)), run(2, Some(3.0)), run(3, None)], &[]);
        for part in ["seeds", "2.000 s ± 12.706 s", "sd 1.414 s", "1 unfinished", "1.000 Mbit/s"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert_eq!(text.matches("Mbit/s ±").count(), 1);
    }

    #[test]
    fn the_interval_of_a_rate_has_the_unit_of_its_mean() {
        let goodput = Summary::of(&[2.2e6, 2.5e6, 2.3e6]);
        assert_eq!(cell(&goodput, table::rate_beside), "2.333 Mbit/s ± 0.379 Mbit/s\nsd 0.153 Mbit/s");
    }

    #[test]
    fn drops_of_links_and_radios_are_added() {
        let mut run = run(1, Some(1.0));
        run.links = vec![LinkResult { name: "wifi".to_owned(), dropped: 4, ..LinkResult::default() }];
        let part = FlowLink { name: "air".to_owned(), dropped: 6, ..FlowLink::default() };
        run.flows[0].links = vec![part];
        assert_eq!(cells(&[(&run, &run.flows[0])]).last().map(String::as_str), Some("10"));
    }

    #[test]
    fn a_flow_without_an_end_is_not_unfinished() {
        let endless = [1, 2].map(|seed| {
            let mut run = run(seed, None);
            run.flows[0].missing = None;
            run
        });
        let text = table(&endless, &[]);
        assert!(text.contains("no end") && !text.contains("unfinished"), "{text}");
    }

    #[test]
    fn equal_seeds_are_noticed() {
        assert!(seeds_differ_in_nothing(&[run(1, Some(1.0)), run(2, Some(1.0))]));
        assert!(!seeds_differ_in_nothing(&[run(1, Some(1.0)), run(2, Some(1.1))]));
        assert!(!seeds_differ_in_nothing(&[run(1, Some(1.0))]));
    }
}
