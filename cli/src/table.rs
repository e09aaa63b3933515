//! Results as a table for people: one row per flow and run.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use anabranch_lab::units::{rate, rate_beside, seconds};
use anabranch_sim::results::{FlowResult, LinkResult, RunResult};
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table, TableComponent, Width, presets,
};
use console::measure_text_width;
use serde_json::Value;

use crate::screen;

/// The table of `results`. `varied` are the keys of `--vary`, in their order; they are the first columns.
pub(crate) fn table(results: &[RunResult], varied: &[String]) -> String {
    let columns = Columns::of(results, varied);
    let mut table = Table::new();
    style(&mut table);
    let header = columns.header();
    let first_number = header.iter().position(|name| name == "time").unwrap_or(0);
    table.set_header(header);
    for result in results {
        for (i, flow) in result.flows.iter().enumerate() {
            let mut row = columns.leading(result, flow);
            row.extend(measures(flow));
            // Links are shared by all flows, so drops are shown once per run.
            row.push(if i == 0 { drops(result) } else { String::new() });
            table.add_row(row);
        }
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        let numbers = first_number..first_number + NUMBERS;
        if numbers.contains(&i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text(table)
}

/// The style of tables: no wider than the terminal; long cells are wrapped.
pub(crate) fn style(table: &mut Table) {
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    fit(table);
    for line in [TableComponent::HorizontalLines, TableComponent::MiddleIntersections] {
        table.remove_style(line);
    }
}

/// Limits the table to the width of the terminal.
pub(crate) fn fit(table: &mut Table) {
    if let Some(width) = screen::width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
}

/// The table as text. No word is broken: where the terminal has no room for a column of each cell's longest word, every
/// row is a list of its cells, each behind its heading.
pub(crate) fn text(mut table: Table) -> String {
    let headings = contents(&table).next().unwrap_or_default();
    for hyphen in ["", "-\n"] {
        table.set_header(headings.iter().map(|heading| heading.replace(HYPHEN, hyphen)));
        let Some(width) = screen::width() else { return table.trim_fmt() };
        let least = least_widths(&table);
        if least.iter().map(|words| words + PADDING).sum::<usize>() <= usize::from(width) {
            for (column, words) in table.column_iter_mut().zip(least) {
                // No column is wider than all together, so the number has room.
                let bound = Width::Fixed((words + PADDING) as u16);
                column.set_constraint(ColumnConstraint::LowerBoundary(bound));
            }
            return table.trim_fmt();
        }
    }
    table.set_header(headings.iter().map(|heading| heading.replace(HYPHEN, "")));
    listed(&table)
}

/// Where a heading may be divided: a soft hyphen.
const HYPHEN: char = '\u{ad}';

/// Of a column, on both sides together.
const PADDING: usize = 2;

/// The headings, and the cells of each row.
fn contents(table: &Table) -> impl Iterator<Item = Vec<String>> {
    let rows = table.header().into_iter().chain(table.row_iter());
    rows.map(|row| row.cell_iter().map(|cell| cell.content()).collect())
}

/// The length of the longest word in each column.
fn least_widths(table: &Table) -> Vec<usize> {
    let mut least: Vec<usize> = Vec::new();
    for row in contents(table) {
        least.resize(least.len().max(row.len()), 0);
        for (least, cell) in least.iter_mut().zip(row) {
            *least = cell.split_whitespace().map(measure_text_width).fold(*least, usize::max);
        }
    }
    least
}

/// A line for each cell that is not empty, and an empty line between the rows.
fn listed(table: &Table) -> String {
    let mut rows = contents(table);
    let headings: Vec<String> =
        rows.next().unwrap_or_default().iter().map(|text| text.replace('\n', " ")).collect();
    let wide = headings.iter().map(|heading| measure_text_width(heading)).max().unwrap_or(0);
    let line = |(heading, cell): (&String, String)| {
        let cell = cell.replace('\n', &format!("\n{:wide$}  ", ""));
        format!("{heading:wide$}  {cell}\n")
    };
    let row = |row: Vec<String>| {
        headings.iter().zip(row).filter(|(_, cell)| !cell.is_empty()).map(line).collect::<String>()
    };
    rows.map(row).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// The leading cells of every row: the keys in which the rows differ.
pub(crate) struct Columns<'a> {
    varied: &'a [String],
    seed: bool,
    flow: bool,
    outcome: bool,
}

/// The columns of [`measures`] that hold numbers; they stand first.
const NUMBERS: usize = 5;
/// A column: its heading and its meaning.
pub(crate) type Column = (&'static str, &'static str);

pub(crate) const MEASURES: [Column; 8] = [
    (
        "time",
        "From the start of the flow until the receiving application has read the last byte. `unfinished`: the run ended \
         earlier, and this amount was not read. `no end`: the flow has no amount.",
    ),
    (
        "goodput",
        "User data that the receiving application read per second: until completion, or until the end of the run.",
    ),
    (
        "packets",
        "Packets that the sender sent, retransmissions included (TCP: without SYNs and bare acknowledgements).",
    ),
    (
        "blocked by\npeer's window",
        "How long user data waited because the window of the receiver was full; `-`: of SCTP and Multipath TCP only.",
    ),
    (
        "blocked by\ncwnd",
        "How long user data waited because every usable path had sent a whole congestion window; `-` as before.",
    ),
    (
        "fast\nretrans\u{ad}missions",
        "Chunks (TCP: segments) sent again after missing reports, by the path that carried them.",
    ),
    (
        "retrans\u{ad}missions\nafter timeout",
        "Chunks (TCP: segments) sent again after a timeout, by the path that carried them.",
    ),
    (
        "drops",
        "Packets dropped, by link; by direction where packets of both were dropped. What radios dropped of flows, by \
         channel. It is the sum over all flows, in the row of the first.",
    ),
];

impl<'a> Columns<'a> {
    pub(crate) fn of(results: &[RunResult], varied: &'a [String]) -> Self {
        let seeds: BTreeSet<_> = results.iter().map(|result| result.seed).collect();
        let flows: BTreeSet<_> =
            results.iter().flat_map(|result| &result.flows).map(|flow| &flow.name).collect();
        let outcome = results.iter().flat_map(|result| &result.flows).any(|flow| flow.outcome == "lost");
        Columns { varied, seed: seeds.len() > 1, flow: flows.len() > 1, outcome }
    }

    /// These columns for rows that summarise all seeds.
    pub(crate) fn without_seeds(self) -> Self {
        Columns { seed: false, outcome: false, ..self }
    }

    pub(crate) fn header(&self) -> Vec<String> {
        let mut header = self.leading_header();
        header.extend(MEASURES.map(|(heading, _)| heading.to_owned()));
        header
    }

    /// The headings of [`Columns::leading`].
    pub(crate) fn leading_header(&self) -> Vec<String> {
        // The last part of a key is enough, unless another key ends with the same part.
        let last = |key: &String| key.rsplit('.').next().unwrap_or(key).to_owned();
        let lasts: Vec<_> = self.varied.iter().map(last).collect();
        let unique = lasts.iter().collect::<BTreeSet<_>>().len() == lasts.len();
        let mut header = if unique { lasts } else { self.varied.to_vec() };
        let optional = [(self.seed, "seed"), (self.flow, "flow"), (self.outcome, "outcome")];
        header.extend(optional.iter().filter(|(shown, _)| *shown).map(|(_, name)| (*name).to_owned()));
        header
    }

    pub(crate) fn leading(&self, result: &RunResult, flow: &FlowResult) -> Vec<String> {
        let mut row: Vec<_> = self.varied.iter().map(|key| plain(result.varied.get(key))).collect();
        row.extend(self.seed.then(|| result.seed.to_string()));
        row.extend(self.flow.then(|| flow.name.clone()));
        row.extend(self.outcome.then(|| flow.outcome.to_owned()));
        row
    }
}

fn measures(flow: &FlowResult) -> Vec<String> {
    vec![
        flow.completion.map_or_else(|| unfinished(flow), seconds),
        rate(flow.goodput),
        flow.packets.to_string(),
        blocked(flow, flow.blocked.peer_window),
        blocked(flow, flow.blocked.cwnd),
        by_name(&flow.retransmissions.fast),
        by_name(&flow.retransmissions.timeout),
    ]
}

/// How long something blocked a flow. Other transports than these do not count it.
fn blocked(flow: &FlowResult, time: f64) -> String {
    if flow.protocol.counts_blocked() { seconds(time) } else { "-".to_owned() }
}

/// The missing part of a flow that is not complete. A flow without an end misses nothing.
fn unfinished(flow: &FlowResult) -> String {
    flow.missing
        .map_or_else(|| "no end".to_owned(), |missing| format!("unfinished:\n{} missing", bytes(missing)))
}

/// Bytes in the unit that leaves one to three digits before the point.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        b if b >= 1e9 => format!("{:.3} GB", b / 1e9),
        b if b >= 1e6 => format!("{:.3} MB", b / 1e6),
        b if b >= 1e4 => format!("{:.3} kB", b / 1e3),
        _ => format!("{bytes} B"),
    }
}

/// A JSON value in the spelling of `--set`.
fn plain(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn by_name(counts: &BTreeMap<String, u64>) -> String {
    let shown: Vec<_> =
        counts.iter().filter(|(_, n)| **n > 0).map(|(name, n)| format!("{name} {n}")).collect();
    if shown.is_empty() { "0".to_owned() } else { shown.join(", ") }
}

/// Drops by link; by direction if packets of both directions were dropped. Those of radios by channel.
fn drops(result: &RunResult) -> String {
    let dropping: Vec<_> = result.links.iter().filter(|link| link.dropped > 0).collect();
    let both_ways = |name: &str| dropping.iter().filter(|link| link.name == name).count() > 1;
    let label = |link: &LinkResult| match both_ways(&link.name) {
        true => format!("{} {}", link.name, link.direction),
        false => link.name.clone(),
    };
    let on_links = dropping.iter().map(|link| (label(link), link.dropped));
    by_name(&on_links.chain(dropped_by_radios(result)).collect())
}

/// Packets of flows that radios dropped, by channel. The entries of links have none of them.
pub(crate) fn dropped_by_radios(result: &RunResult) -> BTreeMap<String, u64> {
    let is_link = |name: &str| result.links.iter().any(|link| link.name == name);
    let mut dropped = BTreeMap::new();
    for part in result.flows.iter().flat_map(|flow| &flow.links).filter(|part| !is_link(&part.name)) {
        *dropped.entry(part.name.clone()).or_default() += part.dropped;
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_sim::Protocol;
    use anabranch_sim::results::{FlowLink, Retransmissions};

    fn link(name: &str, direction: &str, dropped: u64) -> LinkResult {
        let (name, direction) = (name.to_owned(), direction.to_owned());
        LinkResult { name, direction, packets: 9, bytes: 9, dropped, queue_max: 1, ..LinkResult::default() }
    }

    fn result(seed: u64, policy: &str) -> RunResult {
        let flow = FlowResult {
            name: "download".to_owned(),
            completion: Some(18.5344),
            delivered: 20_000_000,
            goodput: 8_632_000.0,
            packets: 13_900,
            retransmissions: Retransmissions {
                fast: BTreeMap::from([("wifi".to_owned(), 68), ("gprs".to_owned(), 0)]),
                timeout: BTreeMap::new(),
            },
            outcome: "closed",
            ..FlowResult::default()
        };
        RunResult {
            scenario: "test".to_owned(),
            seed,
            era: "ns2".to_owned(),
            varied: BTreeMap::from([("flow.download.sctp.retransmit".to_owned(), policy.into())]),
            ended: 20.0,
            flows: vec![flow],
            links: vec![link("wifi", "s>r", 72), link("wifi", "r>s", 0)],
            traffic: Vec::new(),
            stations: Vec::new(),
            fairness: Some(1.0),
            increase: None,
            measured: None,
        }
    }

    #[test]
    fn rows_begin_with_what_they_differ_in() {
        let key = ["flow.download.sctp.retransmit".to_owned()];
        let text = table(&[result(1, "same"), result(2, "alternate")], &key);
        for part in ["retransmit", "seed", "alternate", "18.534 s", "8.632 Mbit/s", "wifi 68", "wifi 72"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("download") && !text.contains("gprs"));
        assert!(!table(&[result(1, "same")], &[]).contains("seed"));
    }

    #[test]
    fn what_a_transport_does_not_count_is_a_dash() {
        let of = |protocol| measures(&FlowResult { protocol, ..result(1, "same").flows.remove(0) });
        assert_eq!(of(Protocol::Tcp)[3..5], ["-", "-"]);
        assert_eq!(of(Protocol::Sctp)[3..5], [seconds(0.0), seconds(0.0)]);
    }

    /// The table rows of these columns for the documentation; a heading takes one line there.
    fn markdown(columns: &[Column]) -> String {
        let row = |(heading, doc): &Column| {
            format!("| {} | {doc} |\n", heading.replace('\n', " ").replace(HYPHEN, ""))
        };
        let rows: String = columns.iter().map(row).collect();
        format!("\n| column | meaning |\n|---|---|\n{rows}\n")
    }

    /// `docs/results.md` lists the columns of the tables; `ANABRANCH_BLESS=1` writes the list anew.
    #[test]
    fn the_page_of_results_has_every_column() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/results.md");
        let page = std::fs::read_to_string(path).expect("docs/results.md can be read");
        let tables: [(&str, &[Column]); 4] = [
            ("run", &MEASURES),
            ("seeds", &crate::summary::MEASURES),
            ("outages", &crate::answers::OUTAGES),
            ("latency", &crate::answers::LATENCIES),
        ];
        let mut fresh = page.clone();
        for (name, columns) in tables {
            let mark = format!("<!-- columns: {name} -->\n");
            let (before, rest) = fresh.split_once(&mark).expect("the page has the mark");
            let (_, after) = rest.split_once("<!-- end -->").expect("the part ends");
            fresh = format!("{before}{mark}{}<!-- end -->{after}", markdown(columns));
        }
        if std::env::var_os("ANABRANCH_BLESS").is_some() {
            std::fs::write(path, fresh).expect("docs/results.md can be written");
            return;
        }
        assert!(page == fresh, "docs/results.md has other columns: ANABRANCH_BLESS=1 writes them anew");
    }

    /// Words are whole at every width: in a table, or in a list where that has no room.
    #[test]
    fn no_word_is_broken() {
        let made = || {
            let mut table = Table::new();
            style(&mut table);
            table.set_header(["policy", "fast\nretransmissions", "drops"]);
            table.add_row(["timeout-alternate", "wifi 68,\ngprs 2", ""]);
            table
        };
        assert_eq!(least_widths(&made()), [17, 15, 5]);
        let mut long = made();
        long.add_row(["x".repeat(70_000)]);
        assert_eq!(least_widths(&long), [70_000, 15, 5]);
        let text = listed(&made());
        let wanted = "policy                timeout-alternate\nfast retransmissions  wifi 68,\n                      gprs 2";
        assert_eq!(text, wanted);
    }

    #[test]
    fn drops_name_the_direction_only_where_both_drop() {
        let of = |links| drops(&RunResult { links, ..result(1, "same") });
        assert_eq!(
            of(vec![link("l", "a>b", 1), link("l", "b>a", 2), link("m", "a>b", 3)]),
            "l a>b 1, l b>a 2, m 3"
        );
        assert_eq!(of(Vec::new()), "0");
    }

    /// Only the parts of the flows have what radios dropped; what links dropped counts once.
    #[test]
    fn drops_of_radios_count_by_channel() {
        let part = |name: &str, direction: &str, dropped| {
            let (name, direction) = (name.to_owned(), direction.to_owned());
            FlowLink { name, direction, packets: 9, dropped }
        };
        let mut result = RunResult { links: vec![link("wifi", "s>r", 4)], ..result(1, "same") };
        result.flows[0].links = vec![part("wifi", "s>r", 4), part("air", "a>b", 5), part("air", "b>a", 1)];
        assert_eq!(drops(&result), "air 6, wifi 4");
    }
}
