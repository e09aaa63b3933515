//! Records rates by interval and changes of paths during a transfer.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use anabranch_net::{Association, Event, PathId, PathReport, PathState};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use super::live::mbit;
use super::paths::{name, state};
use super::perf_report::ARROWS;

/// The interval for looking at paths without an event: the association has no event for a local interface that goes
/// down.
const GLANCE: Duration = Duration::from_millis(50);

/// The changes of an association's paths.
pub(super) struct Changes {
    begun: Instant,
    /// For each path: its name, and its last recorded state.
    known: BTreeMap<PathId, (String, &'static str)>,
    /// As JSON: time in seconds since `begun`, path, state, cause.
    pub(super) list: Vec<Value>,
}

impl Changes {
    pub(super) fn new(begun: Instant) -> Changes {
        Changes { begun, known: BTreeMap::new(), list: Vec::new() }
    }

    /// Records until it is cancelled.
    pub(super) async fn watch(&mut self, association: &Association) -> Infallible {
        let mut events = association.events();
        loop {
            self.look(&association.paths());
            match timeout(GLANCE, events.recv()).await {
                // The state may have changed again since the event.
                Ok(Ok(Event::Path(path, now))) => self.happened(&association.paths(), path, now),
                Ok(Err(RecvError::Closed)) => std::future::pending().await,
                _ => {}
            }
        }
    }

    fn happened(&mut self, paths: &[PathReport], path: PathId, now: PathState) {
        if let Some(report) = paths.iter().find(|report| report.id == path) {
            self.tell(&PathReport { state: now, ..report.clone() });
        }
    }

    fn look(&mut self, paths: &[PathReport]) {
        paths.iter().for_each(|path| self.tell(path));
    }

    fn tell(&mut self, path: &PathReport) {
        let now = state(path);
        let before = self.known.insert(path.id, (name(path), now)).map(|(_, before)| before);
        if before != Some(now) {
            let time = self.begun.elapsed().as_secs_f64();
            let cause = cause(path, before);
            self.list.push(json!({ "time": time, "path": name(path), "state": now, "cause": cause }));
        }
    }
}

/// Why a path changed to its state from the state before.
fn cause(path: &PathReport, before: Option<&str>) -> String {
    match (path.state, before) {
        _ if !path.up => "the own address or its interface is down".to_owned(),
        (_, Some("down here")) => "the own address is up again".to_owned(),
        (PathState::PotentiallyFailed | PathState::Inactive, _) => errors(path.errors),
        (PathState::Active, Some("unconfirmed")) => "the peer has answered here".to_owned(),
        (PathState::Active, Some(_)) => "the peer answers again".to_owned(),
        (PathState::Active, None) => "the association was set up here".to_owned(),
        (PathState::Unconfirmed, _) => "the peer has named this address".to_owned(),
        (PathState::Removed, _) => "the address was removed".to_owned(),
    }
}

/// The errors for which a path has failed. An answer may have cleared them by the time at which the event is read.
fn errors(counted: u32) -> String {
    match counted {
        0 => "errors in a row, which an answer has cleared since".to_owned(),
        1 => "1 error".to_owned(),
        more => format!("{more} errors in a row"),
    }
}

/// The bytes carried in each interval.
pub(super) struct Intervals {
    pub(super) every: Duration,
    begun: Instant,
    from: Duration,
    before: [u64; 2],
    by_path: BTreeMap<String, u64>,
    /// As JSON: seconds since `begun`, bytes and bit/s.
    pub(super) list: Vec<Value>,
}

/// The rates of one direction as a trace for scenarios: CSV with seconds and bit/s. `back`: the other end sent. The
/// direction sent for `seconds` from `begun` on: before, the ends only compared their clocks, and afterwards the other
/// direction may send.
pub(super) fn trace(intervals: &[Value], back: bool, begun: f64, seconds: f64) -> String {
    let mut text = "time,rate\n".to_owned();
    let time = |interval: &Value, key: &str| interval[key].as_f64().unwrap_or_default();
    let is_own = |interval: &&Value| time(interval, "to") > begun && time(interval, "from") < begun + seconds;
    let own: Vec<_> = intervals.iter().filter(is_own).collect();
    for interval in &own {
        let rate = interval[if back { "back" } else { "there" }]["rate"].as_f64().unwrap_or_default();
        text += &format!("{:.9},{:.0}\n", (time(interval, "from") - begun).max(0.0), rate);
    }
    // The last row only ends the trace.
    let end = own.last().map_or(0.0, |interval| time(interval, "to") - begun);
    text + &format!("{end:.9},0\n")
}

/// Bytes carried since the beginning.
pub(super) struct Carried {
    /// Acknowledged by the other end.
    pub(super) there: u64,
    /// Received from the other end; `None` where nothing comes back.
    pub(super) back: Option<u64>,
    pub(super) paths: Vec<PathReport>,
}

impl Intervals {
    pub(super) fn new(every: Duration, begun: Instant) -> Intervals {
        let (from, before, by_path) = (Duration::ZERO, [0; 2], BTreeMap::new());
        Intervals { every, begun, from, before, by_path, list: Vec::new() }
    }

    /// Closes intervals until it is cancelled. Each interval is passed to `told` as a line.
    pub(super) async fn watch(&mut self, carried: impl Fn() -> Carried, told: impl Fn(&str)) -> Infallible {
        loop {
            tokio::time::sleep_until((self.begun + self.from + self.every).into()).await;
            told(&self.close(&carried()));
        }
    }

    /// Whether the current interval is so short that its rate would say nothing.
    pub(super) fn is_tiny(&self) -> bool {
        self.begun.elapsed().saturating_sub(self.from) * 20 < self.every
    }

    /// Ends an interval now and returns its line.
    pub(super) fn close(&mut self, carried: &Carried) -> String {
        let to = self.begun.elapsed();
        let time = to.saturating_sub(self.from);
        let direction = |bytes: u64| json!({ "bytes": bytes, "rate": mbit(bytes, time) * 1e6 });
        let there = carried.there.saturating_sub(self.before[0]);
        let back = carried.back.map(|back| back.saturating_sub(self.before[1]));
        let mut by_path = Map::new();
        for path in &carried.paths {
            let before = self.by_path.insert(name(path), path.delivered).unwrap_or_default();
            by_path.insert(name(path), path.delivered.saturating_sub(before).into());
        }
        self.list.push(json!({
            "from": self.from.as_secs_f64(),
            "to": to.as_secs_f64(),
            "there": direction(there),
            "back": back.map(direction),
            "there_by_path": by_path,
        }));
        let span = format!("{:7.2} - {:7.2} s", self.from.as_secs_f64(), to.as_secs_f64());
        let back =
            back.map(|back| format!("  {} {:10.2} Mbit/s", ARROWS[1], mbit(back, time))).unwrap_or_default();
        (self.from, self.before) = (to, [carried.there, carried.back.unwrap_or_default()]);
        format!("{span}  {} {:10.2} Mbit/s{back}", ARROWS[0], mbit(there, time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_net::{Address, Device};
    use anabranch_sim::scenario::Trace;

    /// A path that has failed, with so many errors by now.
    fn failed(errors: u32) -> PathReport {
        let address = Address { ip: "192.0.2.1".parse().expect("an address"), udp: 9899 };
        PathReport {
            id: PathId(0),
            local: address,
            remote: address,
            state: PathState::PotentiallyFailed,
            up: true,
            primary: true,
            device: Device::Any,
            window: 0,
            flight: 0,
            srtt: None,
            rto: Duration::from_secs(1),
            errors,
            delivered: 0,
            lost: 0,
            pmdcs: 1452,
        }
    }

    #[test]
    fn a_path_does_not_fail_for_no_error() {
        let causes = [0, 1, 2].map(|errors| cause(&failed(errors), Some("active")));
        assert_eq!(
            causes,
            ["errors in a row, which an answer has cleared since", "1 error", "2 errors in a row"]
        );
    }

    #[test]
    fn a_trace_has_the_rates_of_its_direction_and_can_be_read() {
        let interval = |from: f64, there: f64, back: f64| json!({ "from": from, "to": from + 0.1, "there": { "rate": there }, "back": { "rate": back } });
        let intervals = [interval(0.0, 8e6, 1e6), interval(0.1, 4e6, 3e6), interval(0.2, 0.0, 9e6)];
        let there = trace(&intervals, false, 0.0, 0.2);
        assert_eq!(there, "time,rate\n0.000000000,8000000\n0.100000000,4000000\n0.200000000,0\n");
        assert_eq!(Trace::parse(&there).expect("a trace").mean_rate(), 6_000_000);
        let back = trace(&intervals, true, 0.0, 1.0);
        assert!(back.contains("0.200000000,9000000\n0.300000000,0\n"), "{back}");
        // The clocks were compared for 0.15 s.
        let later = trace(&intervals, true, 0.15, 1.0);
        assert_eq!(later, "time,rate\n0.000000000,3000000\n0.050000000,9000000\n0.150000000,0\n");
    }
}
