//! What must change nothing, over a table of scenarios: neither the results nor any record of the run.

mod scenarios;

use std::collections::BTreeMap;
use std::fmt::Write;

use anabranch_proto::{Duration, Time};
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::{Scenario, Start};
use anabranch_sim::trace::{Detail, Names, Observer, QueueChange, QueueRecord, Record, Side, Wants};
use anabranch_sim::{RunOptions, run};

/// All records of a run, but for the contents of packets: cookies and heartbeats carry times.
#[derive(Default)]
struct Log {
    shift: Duration,
    last: Duration,
    lines: String,
}

impl Observer for Log {
    fn begin(&mut self, names: &Names) {
        writeln!(self.lines, "{names:?}").unwrap();
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        let at = at.since(Time::ZERO) - self.shift;
        assert!(at >= std::mem::replace(&mut self.last, at), "records come in order of time");
        let tsns = |packet: anabranch_sim::trace::PacketView<'_>| packet.tsns().collect::<Vec<_>>();
        match record {
            Record::Sent { flow, side, path, reason, packet } => {
                writeln!(
                    self.lines,
                    "{at:?} {flow} {side:?} {path:?} {reason:?} {} {:?}",
                    packet.size,
                    tsns(*packet)
                )
            }
            Record::Queued { link, flow, packet, queue } => {
                writeln!(self.lines, "{at:?} {link} {flow} {} {queue:?}", packet.size)
            }
            Record::Started { link, flow, number, packet } => {
                writeln!(
                    self.lines,
                    "{at:?} {link} {flow} {number} started {} {:?}",
                    packet.hops, packet.origin
                )
            }
            Record::Dropped { link, flow, number, cause, packet } => {
                writeln!(self.lines, "{at:?} {link} {flow} {number} {cause:?} {}", packet.size)
            }
            Record::Delivered { link, flow, packet } => {
                writeln!(self.lines, "{at:?} {link} {flow} delivered {:?}", tsns(*packet))
            }
            Record::Air { channel, frame, packet } => {
                let size = packet.map(|(flow, packet)| (flow, packet.size, packet.hops));
                writeln!(self.lines, "{at:?} {channel} {frame:?} {size:?}")
            }
            Record::Detail { flow, side, path, detail: Detail::Timer { expires } } => {
                let expires = expires.map(|time| time.since(Time::ZERO) - self.shift);
                writeln!(self.lines, "{at:?} {flow} {side:?} {path:?} T3-rtx {expires:?}")
            }
            note => writeln!(self.lines, "{at:?} {note:?}"),
        }
        .unwrap();
    }
}

/// The results and the records, with times counted from `shift`.
fn observed(scenario: &Scenario, shift: Duration, extra_polls: bool) -> (RunResult, String) {
    let mut log = Log { shift, ..Log::default() };
    let options = RunOptions { observer: Some(&mut log), extra_polls, ..RunOptions::default() };
    let result = run(scenario, options).unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
    (result, log.lines)
}

fn unshifted(scenario: &Scenario) -> (RunResult, String) {
    observed(scenario, Duration::ZERO, false)
}

fn assert_same(name: &str, a: (RunResult, String), b: (RunResult, String)) {
    assert_eq!(a.0, b.0, "{name}");
    if let Some((a, b)) = a.1.lines().zip(b.1.lines()).find(|(a, b)| a != b) {
        panic!("{name}:\n{a}\n{b}");
    }
    assert_eq!(a.1.len(), b.1.len(), "{name}");
}

#[test]
fn twice_the_same() {
    for scenario in scenarios::all() {
        assert_same(&scenario.name, unshifted(&scenario), unshifted(&scenario));
    }
}

#[test]
fn whoever_observes_changes_nothing() {
    for scenario in scenarios::all() {
        let unobserved = run(&scenario, RunOptions::default()).unwrap();
        assert_eq!(unobserved, unshifted(&scenario).0, "{}", scenario.name);
    }
}

/// The records of each source by themselves: a kind of detail at one end of a flow, a link's queue, its drops.
#[derive(Default)]
struct Apart {
    order: bool,
    sources: BTreeMap<String, String>,
    /// Whether records came together.
    together: bool,
}

impl Apart {
    fn of(scenario: &Scenario, order: bool) -> Self {
        let mut apart = Apart { order, ..Apart::default() };
        run(scenario, RunOptions { observer: Some(&mut apart), ..RunOptions::default() }).unwrap();
        apart
    }

    fn add(&mut self, source: String, line: &str) {
        let lines = self.sources.entry(source).or_default();
        lines.push_str(line);
        lines.push('\n');
    }
}

impl Observer for Apart {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, at: Time, record: &Record<'_>) {
        match record {
            // Only an observer of everything in order is told of timers.
            Record::Detail { detail: Detail::Timer { .. }, .. } => {}
            Record::Detail { flow, side, path, detail } => {
                let detail = format!("{detail:?}");
                let kind = detail.split([' ', '(']).next().unwrap_or_default();
                self.add(format!("{flow} {side:?} {kind}"), &format!("{at:?} {path:?} {detail}"));
            }
            Record::Queued { link, queue, .. } | Record::Departed { link, queue } => {
                self.add(format!("queue {link}"), &format!("{at:?} {queue:?}"));
            }
            Record::Dropped { link, flow, number, cause, packet } => {
                let line = format!("{at:?} {flow} {number} {cause:?} {}", packet.size);
                self.add(format!("drops {link}"), &line);
            }
            Record::Read { flow, bytes } => self.add(format!("reads {flow}"), &format!("{at:?} {bytes}")),
            _ => {}
        }
    }

    fn queue(&mut self, record: &QueueRecord<'_>) {
        self.together |= !matches!(record, QueueRecord::Ended { .. });
        record.each(|QueueChange { at, link, queue }| {
            self.add(format!("queue {link}"), &format!("{at:?} {queue:?}"));
        });
    }

    fn wants(&self) -> Wants {
        Wants { receivers: true, reads: true, order: self.order, ..Wants::UNORDERED }
    }
}

#[test]
fn an_observer_without_order_gets_the_same_of_each_source() {
    let mut together = 0;
    for scenario in scenarios::all() {
        let (ordered, apart) = (Apart::of(&scenario, true), Apart::of(&scenario, false));
        assert!(!ordered.together, "{}", scenario.name);
        together += u32::from(apart.together);
        assert!(ordered.sources.keys().eq(apart.sources.keys()), "{}", scenario.name);
        for ((source, lines), others) in ordered.sources.iter().zip(apart.sources.values()) {
            let part = lines.lines().zip(others.lines()).find(|(a, b)| a != b);
            assert_eq!(part, None, "{}: {source}", scenario.name);
            assert_eq!(lines.len(), others.len(), "{}: {source}", scenario.name);
        }
    }
    assert!(together > 10, "{together} scenarios");
}

/// Only details in order: nothing of links is shown, and packets run ahead.
#[derive(Default)]
struct Details(String);

impl Observer for Details {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, at: Time, record: &Record<'_>) {
        if let Record::Detail { flow, side: Side::Client, path, detail } = record {
            writeln!(self.0, "{at:?} {flow} {path:?} {detail:?}").unwrap();
        }
    }

    fn wants(&self) -> Wants {
        Wants { queues: false, ..Wants::LITTLE }
    }
}

/// The same, of a run whose observer is shown everything.
#[derive(Default)]
struct All(Details);

impl Observer for All {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, at: Time, record: &Record<'_>) {
        self.0.record(at, record);
    }
}

#[test]
fn an_observer_of_details_alone_gets_the_same_details() {
    for scenario in scenarios::all() {
        let (mut details, mut all) = (Details::default(), All::default());
        run(&scenario, RunOptions { observer: Some(&mut details), ..RunOptions::default() }).unwrap();
        run(&scenario, RunOptions { observer: Some(&mut all), ..RunOptions::default() }).unwrap();
        let part = details.0.lines().zip(all.0.0.lines()).find(|(a, b)| a != b);
        assert_eq!(part, None, "{}", scenario.name);
        assert_eq!(details.0.len(), all.0.0.len(), "{}", scenario.name);
    }
}

#[test]
fn the_order_of_the_document_decides_nothing() {
    for scenario in scenarios::all() {
        let mut turned = scenario.clone();
        turned.links.reverse();
        turned.flows.reverse();
        turned.traffic.reverse();
        turned.changes.reverse();
        turned.channels.reverse();
        turned.stations.reverse();
        turned.routes.reverse();
        for link in &mut turned.links {
            link.between.reverse();
            link.rate.reverse();
            link.traced.reverse();
            link.delay.reverse();
            link.queue.reverse();
            link.loss.reverse();
        }
        for change in &mut turned.changes {
            change.rate.iter_mut().for_each(|rate| rate.reverse());
            change.delay.iter_mut().for_each(|delay| delay.reverse());
            change.loss.iter_mut().for_each(|loss| loss.reverse());
        }
        assert_same(&scenario.name, unshifted(&scenario), unshifted(&turned));
    }
}

#[test]
fn the_start_decides_nothing() {
    // A multiple of the lengths of recorded links, which begin with the run.
    let shift = Duration::from_secs(1_000_020);
    for scenario in scenarios::all() {
        let mut later = scenario.clone();
        later.flows.iter_mut().for_each(|flow| flow.start += shift);
        later.changes.iter_mut().for_each(|change| change.at += shift);
        later.traffic.iter_mut().for_each(|traffic| match &mut traffic.start {
            Start::At(start) => *start += shift,
            Start::Uniform(range) => range.iter_mut().for_each(|end| *end += shift),
        });
        later.stop = later.stop.map(|stop| stop + shift);
        later.measure = later.measure.map(|measure| measure.map(|time| time + shift));
        let (mut plain, mut late) = (unshifted(&scenario), observed(&later, shift, false));
        assert!((late.0.ended - plain.0.ended - shift.as_secs_f64()).abs() < 1e-8, "{}", scenario.name);
        late.0.ended = plain.0.ended;
        let outages = |result: &mut RunResult| -> Vec<[Option<f64>; 2]> {
            let outages = result.flows.iter_mut().flat_map(|flow| &mut flow.outages);
            outages.map(|outage| [Some(std::mem::take(&mut outage.down)), outage.up.take()]).collect()
        };
        for (late, plain) in outages(&mut late.0).iter().flatten().zip(outages(&mut plain.0).iter().flatten())
        {
            let between = late.zip(*plain).map(|(late, plain)| late - plain - shift.as_secs_f64());
            assert!(between.is_none_or(|off| off.abs() < 1e-8) && late.is_some() == plain.is_some());
        }
        if let (Some(late), Some(plain)) = (&mut late.0.measured, &plain.0.measured) {
            late.between = plain.between;
        }
        assert_same(&scenario.name, plain, late);
    }
}

#[test]
fn extra_polls_change_nothing() {
    for scenario in scenarios::all() {
        assert_same(&scenario.name, unshifted(&scenario), observed(&scenario, Duration::ZERO, true));
    }
}

#[test]
fn the_codec_changes_nothing() {
    for scenario in scenarios::all() {
        let wired = Scenario { wire: true, ..scenario.clone() };
        assert_same(&scenario.name, unshifted(&scenario), unshifted(&wired));
    }
}

#[test]
fn the_wrap_of_numbers_changes_nothing() {
    for scenario in scenarios::all() {
        let mut wrapping = scenario.clone();
        for flow in &mut wrapping.flows {
            let Some(sctp) = flow.sctp_mut() else { continue };
            sctp.config.first_tsn = Some(u32::MAX - 100);
            sctp.config.first_ssn = u16::MAX - 5;
        }
        assert_eq!(unshifted(&scenario).0, unshifted(&wrapping).0, "{}", scenario.name);
    }
}
