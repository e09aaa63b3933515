//! The report of `anabranch perf`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_net::Traffic;
use anabranch_net::service::{Delays, Direction, Quantiles, Stage};
use serde_json::{Map, Value, json};

use super::live::mbit;
use super::paths;
use super::perf::{Arguments, Stream};
use crate::output::{print, print_json};

/// A measurement that has ended.
pub(super) struct Run<'a> {
    pub(super) streams: &'a [Arc<Stream>],
    pub(super) intervals: Vec<Value>,
    pub(super) changes: Vec<Value>,
    /// Why it did not run to its end.
    pub(super) problem: Option<String>,
    /// The traffic of the first association, or of the attempt to set it up.
    pub(super) traffic: Traffic,
}

/// One direction, as far as it was measured.
struct Part {
    bytes: u64,
    seconds: f64,
    /// `None` if the measurement was cut off.
    whole: Option<Direction>,
}

/// Prints the report and returns the exit status.
pub(super) fn report(arguments: &Arguments, run: &Run) -> u8 {
    let each: Vec<[Option<Part>; 2]> = run.streams.iter().map(|stream| parts(stream)).collect();
    let total = [0, 1].map(|way| sum(each.iter().filter_map(|parts| parts[way].as_ref())));
    match arguments.client.json {
        true => print_json(&as_json(arguments, run, &each, &total)),
        false => print(&as_text(run, &each, &total)),
    }
}

/// The two directions of one association.
fn parts(stream: &Stream) -> [Option<Part>; 2] {
    let so_far = [stream.association.statistics().acknowledged, stream.tally.received()];
    let mut stages = stream.tally.stages().into_iter().zip(so_far).map(|(stage, bytes)| match stage {
        Stage::NotBegun => None,
        Stage::Running(begun) => Some(Part { bytes, seconds: begun.elapsed().as_secs_f64(), whole: None }),
        Stage::Done(direction) => {
            Some(Part { bytes: direction.bytes, seconds: direction.seconds, whole: Some(direction) })
        }
    });
    std::array::from_fn(|_| stages.next().flatten())
}

/// The sum of several associations: all bytes, and the longest time.
fn sum<'a>(parts: impl Iterator<Item = &'a Part>) -> Option<Part> {
    let mut parts: Vec<&Part> = parts.collect();
    let first = parts.pop()?;
    let mut total = Part { bytes: first.bytes, seconds: first.seconds, whole: first.whole.clone() };
    for part in parts {
        total.bytes += part.bytes;
        total.seconds = total.seconds.max(part.seconds);
        total.whole = match (total.whole, &part.whole) {
            (Some(all), Some(one)) => Some(together(all, one)),
            _ => None,
        };
    }
    if let Some(whole) = &mut total.whole {
        (whole.bytes, whole.seconds) = (total.bytes, total.seconds);
    }
    Some(total)
}

/// CPU seconds belong to the whole processes. Quantiles of several associations cannot be added.
fn together(mut all: Direction, one: &Direction) -> Direction {
    for (pair, bytes) in &one.by_path {
        // The listener says how many.
        let sum = all.by_path.entry(*pair).or_default();
        *sum = sum.saturating_add(*bytes);
    }
    let cpu = [all.cpu[0].max(one.cpu[0]), all.cpu[1].max(one.cpu[1])];
    Direction { cpu, delays: None, ..all }
}

/// The directions in JSON and in text.
const WAYS: [&str; 2] = ["there", "back"];
pub(super) const ARROWS: [&str; 2] = ["client→server", "server→client"];

fn as_json(arguments: &Arguments, run: &Run, each: &[[Option<Part>; 2]], total: &[Option<Part>; 2]) -> Value {
    let mut result = Map::new();
    let paths = run.streams.first().map(|first| first.association.paths()).unwrap_or_default();
    for (way, part) in WAYS.into_iter().zip(total) {
        result.insert(way.to_owned(), part.as_ref().map_or(Value::Null, direction));
        result.insert(format!("{way}_by_path"), part.as_ref().map_or(Value::Null, by_path));
    }
    let ways = |parts: &[Option<Part>; 2]| {
        let ways = WAYS.into_iter().zip(parts);
        ways.map(|(way, part)| (way.to_owned(), part.as_ref().map_or(Value::Null, direction)))
            .collect::<Map<_, _>>()
    };
    let rest = json!({
        "associations": each.iter().map(ways).collect::<Vec<_>>(),
        "complete": run.problem.is_none(),
        "problem": run.problem,
        "events": run.changes,
        "intervals": run.intervals,
        "message_size": arguments.message_size,
        "offered_rate": arguments.rate,
        "parallel": arguments.parallel,
        "streams": arguments.streams,
        "paths": paths::json(&paths),
        "traffic": paths::traffic(&run.traffic),
    });
    if let Value::Object(rest) = rest {
        result.extend(rest);
    }
    result.into()
}

fn direction(part: &Part) -> Value {
    let mut result = json!({
        "bytes": part.bytes,
        "seconds": part.seconds,
        "rate": rate(part) * 1e6,
        "complete": part.whole.is_some(),
    });
    if let Some(whole) = &part.whole {
        result["cpu"] = json!({ "here": whole.cpu[0], "there": whole.cpu[1] });
        result["cpu_a_gigabyte"] = whole.cpu_a_gigabyte().into();
        result["delays"] = whole.delays.as_ref().map_or(Value::Null, delays);
    }
    result
}

fn delays(delays: &Delays) -> Value {
    let quantiles = |q: &Quantiles| json!({ "min": q.min, "mean": q.mean, "p50": q.p50, "p95": q.p95, "p99": q.p99, "max": q.max });
    json!({
        "messages": delays.messages,
        "delay": quantiles(&delays.delay),
        "jitter": quantiles(&delays.jitter),
        "smoothed_jitter": delays.smoothed_jitter,
        "clock_uncertainty": delays.uncertainty,
    })
}

/// Bytes that each path carried, in chunks.
fn by_path(part: &Part) -> Value {
    let shares = part.whole.iter().flat_map(|whole| &whole.by_path);
    shares.map(|(pair, bytes)| (pair_name(pair), Value::from(*bytes))).collect::<Map<_, _>>().into()
}

fn as_text(run: &Run, each: &[[Option<Part>; 2]], total: &[Option<Part>; 2]) -> String {
    let mut lines = Vec::new();
    for (number, parts) in each.iter().enumerate().filter(|_| each.len() > 1) {
        let ways = ARROWS.into_iter().zip(parts).filter_map(|(way, part)| Some((way, part.as_ref()?)));
        for (way, part) in ways {
            lines.push(format!("{:<3} {way} {:>10.2} Mbit/s  {:>14} B", number + 1, rate(part), part.bytes));
            lines.extend(part.whole.iter().filter_map(|whole| whole.delays.as_ref()).map(delay_lines));
        }
    }
    for (way, part) in ARROWS.into_iter().zip(total) {
        lines.extend(part.as_ref().map(|part| whole(way, part)));
    }
    let first = &run.streams[0];
    lines.push(format!("{:.1} packets per send call (GSO)", run.traffic.segments_a_send()));
    lines.push(paths::table(&first.association.paths()));
    lines.join("\n")
}

/// One direction as lines of text.
fn whole(way: &str, part: &Part) -> String {
    let line = format!("{way} {:>10.2} Mbit/s  {:>14} B", rate(part), part.bytes);
    let Some(direction) = &part.whole else {
        return format!("{line}  in {:.2} s, cut off", part.seconds);
    };
    let mut lines = vec![format!("{line}  {:>6.2} CPU s/GB", direction.cpu_a_gigabyte())];
    lines.extend(direction.delays.as_ref().map(delay_lines));
    let by_path: &BTreeMap<(IpAddr, IpAddr), u64> = &direction.by_path;
    lines.extend(by_path.iter().map(|(pair, bytes)| {
        let rate = *bytes as f64 * 8e-6 / part.seconds.max(f64::MIN_POSITIVE);
        format!("              {rate:>10.2} Mbit/s  by {} (with chunk headers)", pair_name(pair))
    }));
    lines.join("\n")
}

fn delay_lines(delays: &Delays) -> String {
    let line = |what: &str, q: &Quantiles| {
        let [mean, p50, p95, p99, max] = [q.mean, q.p50, q.p95, q.p99, q.max].map(|seconds| seconds * 1e3);
        format!("       {what:<7}mean {mean:.3}  p50 {p50:.3}  p95 {p95:.3}  p99 {p99:.3}  max {max:.3} ms")
    };
    let uncertain = format!(", all ± {:.3}", delays.uncertainty * 1e3);
    format!("{}{uncertain}\n{}", line("delay", &delays.delay), line("jitter", &delays.jitter))
}

fn rate(part: &Part) -> f64 {
    mbit(part.bytes, std::time::Duration::from_secs_f64(part.seconds))
}

/// A path as its two addresses, the sender's first.
fn pair_name((from, to): &(IpAddr, IpAddr)) -> String {
    format!("{from} → {to}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hostile listener can say any number of bytes.
    #[test]
    fn what_a_path_carried_is_added_without_overflow() {
        let pair = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let one = Direction { by_path: [(pair, u64::MAX)].into(), ..Direction::default() };
        assert_eq!(together(one.clone(), &one).by_path[&pair], u64::MAX);
    }
}
