//! The charts of a run, from what was recorded of it.

use anabranch_sim::results::RunResult;
use serde_json::json;

use super::chart::{COLORS, Chart, Columns, Series, Shape};
use super::record::{ChannelRecord, FlowRecord, LinkRecord, PathRecord, Recorder, WaitCause};

const DROPPED: &str = "#d00000";
const NEUTRAL: &str = "#888888";
/// Why a chunk is sent, other than for the first time: a symbol, and a color that no path has. The first two are the
/// rest of the palette.
const REASONS: [(&str, &str, &str); 5] = [
    ("fast retransmission", "diamond", "#f0e442"),
    ("retransmission after timeout", "triangle-up", "#000000"),
    ("reinjection", "triangle-down", "#ffffff"),
    ("tail loss probe", "pentagon", "#888888"),
    ("window probe", "square", "#9b4dca"),
];
/// Height of a chart in pixels, of a bar, and of a lane of frames.
const CHART: u32 = 250;
const BAR: u32 = 90;
const LANE: u32 = 36;

/// The charts of everything that was recorded of the run with this result.
pub(super) fn charts(recorder: &Recorder, result: &RunResult) -> Vec<Chart> {
    groups(recorder, result, usize::MAX).into_iter().flat_map(|(_, charts)| charts).collect()
}

/// All charts that show something, in groups with names: those of at most so many flows each, and those of links and
/// channels. If there are no more flows, all are in one group.
pub(super) fn groups(recorder: &Recorder, result: &RunResult, flows: usize) -> Vec<(String, Vec<Chart>)> {
    let used: Vec<&FlowRecord> = recorder.flows.iter().filter(|flow| !flow.paths.is_empty()).collect();
    let group = |flows: &[&FlowRecord]| {
        let names = [flows.first(), flows.last()].map(|flow| flow.map_or("", |flow| flow.name.as_str()));
        let charts = flows.iter().flat_map(|flow| of_flow(flow, result)).collect();
        (format!("{} to {}", names[0], names[1]), charts)
    };
    let mut groups: Vec<(String, Vec<Chart>)> = used.chunks(flows).map(group).collect();
    let channels = recorder.channels.iter().filter(|channel| !channel.is_empty()).map(frames);
    let network: Vec<Chart> = queues(recorder).into_iter().chain(channels).collect();
    match &mut groups[..] {
        [(_, charts)] => charts.extend(network),
        _ => groups.push(("queues and channels".to_owned(), network)),
    }
    for (_, charts) in &mut groups {
        charts.retain(|chart| chart.series.iter().any(|series| !series.columns.is_empty()));
    }
    groups.retain(|(_, charts)| !charts.is_empty());
    let charts = groups.iter_mut().flat_map(|(_, charts)| charts);
    charts.flat_map(|chart| &mut chart.series).for_each(|series| hold(series, result.ended));
    groups
}

/// The last value of a line holds until the end of the run: a line with one point would not be seen.
fn hold(series: &mut Series, ended: f64) {
    let Columns { x, y } = &mut series.columns;
    let last = x.last().copied().zip(y.last().copied());
    let last = last.filter(|(at, _)| matches!(series.shape, Shape::Steps(_)) && *at < ended);
    if let Some((_, value)) = last {
        x.push(ended);
        y.push(value);
    }
}

fn of_flow(flow: &FlowRecord, result: &RunResult) -> [Chart; 5] {
    let ended = result.ended;
    let counts_bytes =
        result.flows.iter().any(|known| known.name == flow.name && known.protocol.counts_bytes());
    [
        sequence(flow, counts_bytes),
        windows(flow),
        per_path(flow, "rate sent", "bit/s", |path| {
            let rates = path.rate.until((ended * 1e9) as u64);
            vec![("sent", Shape::Steps("solid"), Columns::of(rates.into_iter()))]
        }),
        round_trips(flow),
        waiting(flow, ended),
    ]
}

fn chart(title: String, unit: &'static str, height: u32) -> Chart {
    Chart { title, unit, height, lanes: Vec::new(), series: Vec::new() }
}

/// The time-sequence diagram: chunks by the number of their TSN from the first, segments by that of their first byte.
fn sequence(flow: &FlowRecord, counts_bytes: bool) -> Chart {
    let (what, unit) = if counts_bytes { ("segments", "byte") } else { ("chunks", "chunk") };
    let mut chart = chart(format!("{}: {what}", flow.name), unit, 2 * CHART);
    for ((path, record), color) in flow.paths.iter().zip(COLORS.iter().cycle()) {
        for (reason, points) in record.sent() {
            let again = REASONS.iter().find(|(name, ..)| *name == reason);
            let (shape, inside) = match again {
                Some((_, symbol, inside)) => (Shape::Symbols(symbol, 9), Some(*inside)),
                None => (Shape::Symbols("circle", 3), None),
            };
            let meta = json!({ "kind": "sent", "flow": flow.name, "path": path, "why": reason });
            chart.series.push(Series {
                name: format!("{path}: {reason}"),
                color,
                inside,
                shape,
                columns: Columns::of(points.iter()),
                hidden: false,
                meta: Some(meta),
            });
        }
    }
    chart.series.push(Series {
        name: "dropped".to_owned(),
        color: DROPPED,
        inside: None,
        shape: Shape::Symbols("x", 7),
        columns: Columns::of(flow.dropped.iter()),
        hidden: false,
        meta: Some(json!({ "kind": "dropped", "flow": flow.name })),
    });
    for association in &flow.associations {
        let acked = Columns::of(association.acked.iter());
        chart.series.push(steps(association.named("acknowledged"), NEUTRAL, "solid", acked));
    }
    chart
}

/// The RTOs are hidden where all are always far above the round trips: an RTO is at least one second by default, and
/// beside it the others would lie on the axis.
fn round_trips(flow: &FlowRecord) -> Chart {
    let extents =
        |of: fn(&PathRecord) -> Columns| flow.paths.iter().filter_map(move |(_, path)| of(path).extent());
    let measured =
        extents(|path| Columns::of(path.rtt.iter())).map(|[_, highest]| highest).fold(0.0, f64::max);
    let far =
        extents(|path| Columns::of(path.held(&path.rto))).all(|[lowest, _]| is_far_above(lowest, measured));
    let rto = if far { "RTO (far above)" } else { "RTO" };
    let mut chart = per_path(flow, "round-trip time and RTO", "s", |path| {
        vec![
            ("RTT, measured", Shape::Symbols("circle", 3), Columns::of(path.rtt.iter())),
            ("smoothed RTT", Shape::Steps("solid"), Columns::of(path.held(&path.srtt))),
            (rto, Shape::Steps("dot"), Columns::of(path.held(&path.rto))),
        ]
    });
    chart.series.iter_mut().for_each(|series| series.hidden = far && series.name.ends_with(rto));
    chart
}

/// Whether a line with this lowest value would press lines that reach up to `others` to the axis.
fn is_far_above(lowest: f64, others: f64) -> bool {
    others > 0.0 && lowest > 2.0 * others
}

/// The peer's window is hidden where it is always far above what is in flight: beside it, the other lines would lie on
/// the axis.
fn windows(flow: &FlowRecord) -> Chart {
    let mut used = 0.0_f64;
    let mut chart = chart(format!("{}: windows", flow.name), "bytes", CHART);
    for ((path, record), color) in flow.paths.iter().zip(COLORS.iter().cycle()) {
        for (number, (name, dash)) in
            [("cwnd", "solid"), ("ssthresh", "dot"), ("in flight", "dash")].into_iter().enumerate()
        {
            let columns = Columns::of(record.windows.line(number));
            if let Some([_, highest]) = columns.extent().filter(|_| name != "ssthresh") {
                used = used.max(highest);
            }
            chart.series.push(steps(format!("{path}: {name}"), color, dash, columns));
        }
    }
    for association in &flow.associations {
        let peer = Columns::of(association.peer_window.line(0));
        let hidden = peer.extent().is_some_and(|[lowest, _]| is_far_above(lowest, used));
        let name = association.named(if hidden { "peer's window (far above)" } else { "peer's window" });
        chart.series.push(Series { hidden, ..steps(name, NEUTRAL, "solid", peer) });
    }
    chart
}

fn per_path(
    flow: &FlowRecord,
    title: &str,
    unit: &'static str,
    series: impl Fn(&PathRecord) -> Vec<(&'static str, Shape, Columns)>,
) -> Chart {
    let mut chart = chart(format!("{}: {}", flow.name, title), unit, CHART);
    for ((path, record), color) in flow.paths.iter().zip(COLORS.iter().cycle()) {
        for (name, shape, columns) in series(record).into_iter().filter(|(.., columns)| !columns.is_empty()) {
            let name = format!("{path}: {name}");
            chart.series.push(Series {
                name,
                color,
                inside: None,
                shape,
                columns,
                hidden: false,
                meta: None,
            });
        }
    }
    chart
}

/// A bar over time that shows for what data waited.
fn waiting(flow: &FlowRecord, ended: f64) -> Chart {
    let mut chart = chart(format!("{}: data waited for", flow.name), "", BAR);
    chart.lanes.push(String::new());
    let states = states(flow, (ended * 1e9) as u64);
    for (cause, name, color) in WaitCause::SHOWN {
        let mut columns = Columns::default();
        for (_, from, to) in states.iter().filter(|(by, ..)| *by == cause) {
            columns.interval(*from, *to, 1.0);
        }
        let meta = Some(json!({ "kind": "waiting", "flow": flow.name }));
        chart.series.push(Series {
            name: name.to_owned(),
            color,
            inside: None,
            shape: Shape::Bars(18),
            columns,
            hidden: false,
            meta,
        });
    }
    chart
}

/// For what data waited, from when to when. Before the first data was sent, it waited for its turn because of the
/// handshake.
fn states(flow: &FlowRecord, ended: u64) -> Vec<(WaitCause, u64, u64)> {
    let began = flow.began().unwrap_or(ended);
    let ends = flow.waits.iter().skip(1).map(|(at, _)| *at).chain([ended]);
    let mut states = Vec::new();
    for ((from, by), to) in flow.waits.iter().zip(ends) {
        let handshake = if *by == WaitCause::Turn { began.min(to).max(*from) } else { *from };
        states.push((WaitCause::Handshake, *from, handshake));
        states.push((*by, handshake, to));
    }
    states.retain(|(_, from, to)| from < to);
    states
}

/// The queues of the links, each in the color of the path that has its name. Of the two directions of a link the one
/// with the shorter queue is dotted.
fn queues(recorder: &Recorder) -> Option<Chart> {
    let mut chart = chart("Queues".to_owned(), "packets", CHART);
    let paths = recorder.flows.iter().flat_map(|flow| flow.paths.iter().map(|(path, _)| path));
    let mut names: Vec<&String> = Vec::new();
    for name in paths.chain(recorder.links.iter().map(|link| &link.link)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for directions in recorder.links.chunk_by(|one, next| one.link == next.link) {
        let most = directions.iter().map(LinkRecord::used).max();
        let first = directions.iter().position(|link| Some(link.used()) == most);
        let color = names.iter().position(|name| **name == directions[0].link).unwrap_or(0);
        for (number, link) in directions.iter().enumerate().filter(|(_, link)| !link.queue.is_empty()) {
            let lengths = link.queue.iter().map(|(at, packets)| (at, f64::from(packets)));
            let name = format!("{} {}", link.link, link.direction);
            let dash = if first == Some(number) { "solid" } else { "dot" };
            chart.series.push(steps(name, COLORS[color % COLORS.len()], dash, Columns::of(lengths)));
        }
    }
    (!chart.series.is_empty()).then_some(chart)
}

/// The frames of a channel of IEEE 802.11: a lane for each station, from the first bit of a frame to its last.
fn frames(channel: &ChannelRecord) -> Chart {
    let height = BAR + LANE * channel.stations.len() as u32;
    let mut chart = chart(format!("Channel {}: frames on the air", channel.name), "", height);
    chart.lanes = channel.stations.clone();
    let mut kinds: Vec<&'static str> = channel.frames.keys().map(|(kind, _)| *kind).collect();
    kinds.dedup();
    for (kind, color) in kinds.into_iter().zip(COLORS) {
        let mut columns = Columns::default();
        for ((_, station), airtimes) in channel.frames.iter().filter(|((of, _), _)| *of == kind) {
            for (at, airtime) in airtimes.iter() {
                columns.interval(at, at + airtime, *station as f64 + 1.0);
            }
        }
        let meta = Some(json!({ "kind": "frames", "channel": channel.name }));
        chart.series.push(Series {
            name: kind.to_owned(),
            color,
            inside: None,
            shape: Shape::Bars(14),
            columns,
            hidden: false,
            meta,
        });
    }
    chart
}

fn steps(name: String, color: &'static str, dash: &'static str, columns: Columns) -> Series {
    Series { name, color, inside: None, shape: Shape::Steps(dash), columns, hidden: false, meta: None }
}
