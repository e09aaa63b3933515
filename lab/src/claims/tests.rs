//! Marks and measures on a recording made by hand.

use std::time::Duration;

use anabranch_proto::policy::Why;
use anabranch_proto::{Time, Tsn};

use super::mark::{Event, Sent};
use super::record::{Entry, EventKind, Recording};
use super::*;
use anabranch_sim::trace::Names;

/// Drops of TSNs 1 to 3 at 1.0, 1.1 and 1.2 s and of 9 at 5 s; 1, 2, 2, 3 and 9 are sent again from 2 s on, and the
/// peer's window falls from 4000 by 1000 each second.
fn recording() -> Recording {
    let at = |seconds: f64, what| Entry { at: Time::ZERO + Duration::from_secs_f64(seconds), what };
    let drop = |tsn| EventKind::Dropped { link: 0, flow: 0, tsns: [Tsn(tsn)].into_iter().collect() };
    let again = |tsn, why| EventKind::Sent { flow: 0, path: 0, tsn: Tsn(tsn), why };
    let window = |bytes| EventKind::PeerWindow { flow: 0, bytes };
    Recording {
        names: Names {
            protocols: Vec::new(),
            flows: vec!["f".into()],
            links: vec![("l".into(), "a>b".into()), ("l".into(), "b>a".into())],
            ..Names::default()
        },
        paths: vec!["l".into()],
        entries: vec![
            at(0.5, window(4000)),
            at(1.0, drop(1)),
            at(1.1, drop(2)),
            at(1.2, drop(3)),
            at(1.5, window(3000)),
            at(2.0, again(1, Why::Missing)),
            at(2.1, again(2, Why::Missing)),
            at(2.2, again(2, Why::Timeout)),
            at(2.5, window(2000)),
            at(3.0, again(3, Why::Missing)),
            at(3.5, window(1000)),
            at(5.0, drop(9)),
            at(6.0, again(9, Why::Missing)),
            at(6.0, again(2, Why::Timeout)),
        ],
    }
}

fn mark(event: Event) -> Mark {
    Mark { name: String::new(), event, after: None, last: false, burst: None }
}

fn drops() -> Event {
    Event::Drop("l a>b".into())
}

fn sent(once: bool, dropped: Option<(String, [usize; 2])>) -> Event {
    Event::Sent(Sent { why: vec![Why::Missing, Why::Timeout], flow: None, path: None, once, dropped })
}

fn peer_window() -> Noted {
    Noted { quantity: Quantity::PeerWindow, flow: None, path: None }
}

/// The times of marks, in seconds.
fn times(marks: &[Mark]) -> Vec<Option<f64>> {
    let found = moments(marks, &recording());
    found.iter().map(|moment| moment.map(|moment| moment.at.as_nanos() as f64 / 1e9)).collect()
}

#[test]
fn a_burst_ends_at_the_first_longer_gap() {
    let last = Mark { last: true, ..mark(drops()) };
    let burst = Mark { burst: Some(Duration::from_secs(1)), ..last.clone() };
    let other = mark(Event::Drop("l b>a".into()));
    assert_eq!(times(&[mark(drops()), burst, last, other]), [Some(1.0), Some(1.2), Some(5.0), None]);
}

#[test]
fn the_last_of_the_dropped_is_the_last_first_time() {
    let first = mark(drops());
    let burst = Mark { burst: Some(Duration::from_secs(1)), last: true, ..first.clone() };
    let dropped = Some(("l".to_owned(), [0, 1]));
    let any = Mark { last: true, ..mark(sent(false, dropped.clone())) };
    let once = Mark { last: true, ..mark(sent(true, dropped)) };
    assert_eq!(times(&[first, burst, any, once])[2..], [Some(6.0), Some(3.0)]);
}

#[test]
fn after_is_after_and_without_it_never_comes() {
    let again = mark(sent(false, None));
    let next = Mark { after: Some(0), ..again.clone() };
    let never = mark(Event::Timeout { flow: None });
    let after_never = Mark { after: Some(2), ..again.clone() };
    assert_eq!(times(&[again, next, never, after_never]), [Some(2.0), Some(2.1), None, None]);
}

#[test]
fn entries_are_added_subtracted_and_divided() {
    let result = serde_json::json!({ "flows": [{ "name": "a", "goodput": 6.0 }, { "name": "b", "goodput": 4.0 },
                                               { "name": "c", "goodput": 0.0 }] });
    let goodputs =
        |flows: &[&str]| flows.iter().map(|flow| format!("flows.{flow}.goodput")).collect::<Vec<_>>();
    let of_all = |of: &[&str], minus: &[&str], per: &[&str]| {
        let of = MeasureSource::Result { of: goodputs(of), minus: goodputs(minus), per: goodputs(per) };
        Measure { name: String::new(), unit: Unit::Count, of }.value(&result, &recording(), &[])
    };
    let value = |per: &[&str]| of_all(&["a"], &[], per);
    assert_eq!(value(&[]), Ok(Some(6.0)));
    assert_eq!(value(&["b"]), Ok(Some(1.5)));
    assert_eq!(value(&["a", "b"]), Ok(Some(0.6)), "of several, the sum");
    assert_eq!(value(&["c"]), Ok(None), "nothing is divided by zero");
    assert_eq!(value(&["d"]), Err("d".to_owned()));
    assert_eq!(of_all(&["a", "c"], &["b"], &[]), Ok(Some(2.0)));
    assert_eq!(of_all(&["a", "b"], &["b", "c"], &["b"]), Ok(Some(1.5)));
    assert_eq!(of_all(&["a"], &["d"], &[]), Err("d".to_owned()));
}

#[test]
fn quantities_are_read_at_marks_and_between_them() {
    let below = |level| Event::Passes { quantity: peer_window(), level, above: false };
    let marks = [mark(drops()), mark(below(2500)), mark(below(500))];
    let (recording, found) = (recording(), moments(&marks, &recording()));
    let value = |of: MeasureSource| {
        let measure = Measure { name: String::new(), unit: Unit::Bytes, of };
        measure.value(&serde_json::Value::Null, &recording, &found).unwrap()
    };
    let lowest = |between| MeasureSource::Extreme { quantity: peer_window(), highest: false, between };
    assert_eq!(value(MeasureSource::At { quantity: peer_window(), mark: 0 }), Some(4000.0));
    assert_eq!(value(MeasureSource::At { quantity: peer_window(), mark: 1 }), Some(2000.0));
    assert_eq!(value(MeasureSource::At { quantity: peer_window(), mark: 2 }), None);
    assert_eq!(value(lowest([Some(0), Some(1)])), Some(2000.0));
    assert_eq!(value(lowest([None, None])), Some(1000.0));
    assert_eq!(value(lowest([None, Some(2)])), None);
    assert_eq!(value(MeasureSource::Count { event: drops(), between: [Some(0), Some(1)] }), Some(3.0));
    assert_eq!(value(MeasureSource::Time { mark: 1, since: Some(0) }), Some(1.5));
}

#[test]
fn arrivals_acknowledgements_and_growth_are_events() {
    let entry = |millis: u64, what| Entry { at: Time::ZERO + Duration::from_millis(millis), what };
    let window =
        |cwnd| EventKind::Window { flow: 0, path: 0, sizes: [cwnd, 0, 0], segments: Some(cwnd as f64 / 8.0) };
    let acked = |flow| EventKind::Acked { flow, cumulative: Tsn(1) };
    let mut recording = recording();
    recording.entries = vec![
        entry(1, window(20)),
        entry(2, EventKind::Arrived { link: 1, size: 0 }),
        entry(3, acked(1)),
        entry(4, acked(0)),
        entry(5, EventKind::Arrived { link: 0, size: 0 }),
        entry(6, window(10)),
        entry(7, window(10)),
        entry(8, window(13)),
        entry(9, window(14)),
    ];
    let cwnd = |quantity| Noted { quantity, flow: None, path: Some("l".into()) };
    let grows = mark(Event::Grows(cwnd(Quantity::Cwnd)));
    let marks = [
        mark(Event::Arrives("l a>b".into())),
        mark(Event::Acked { flow: None }),
        grows.clone(),
        Mark { after: Some(2), ..grows.clone() },
        Mark { after: Some(3), ..grows },
    ];
    let found = moments(&marks, &recording);
    let millis: Vec<_> = found.iter().map(|at| at.map(|at| at.at.as_nanos() / 1_000_000)).collect();
    assert_eq!(millis, [Some(5), Some(4), Some(8), Some(9), None]);
    let of = MeasureSource::At { quantity: cwnd(Quantity::CwndSegments), mark: 2 };
    let measure = Measure { name: String::new(), unit: Unit::Count, of };
    assert_eq!(measure.value(&serde_json::Value::Null, &recording, &found), Ok(Some(1.625)));
}

const SCENARIO: &str = "[[link]]\nname = 'l'\nbetween = ['a', 'b']\nrate = '1 Mbit/s'\n\
                        [[flow]]\nname = 'f'\nfrom = 'a'\nto = 'b'\nsend = '1 kB'\n";

const PAPER: &str = "title = 'A test'\ncitation = 'Nobody'\n[[variant]]\nname = 'today'\n\
    [[experiment]]\nname = 'one'\nscenario = 'one.toml'\nvary = ['seed=1,2']\n\
    [[mark]]\nname = 'loss'\nevent = { drop = 'l' }\n\
    [[measure]]\nname = 'seconds'\nresult = 'flows.f.completion'\n\
    [[measure]]\nname = 'lost'\ncount = { drop = 'l' }\n";

const CLAIMS: &str = "[[claim]]\nid = 'one'\nsource = 'Section 1'\nform = 'value'\nexperiment = 'one'\nmeasure = 'seconds'\n\
    at_least = 0\npaper = 1\nerrors = { paper = 0.1 }\n";

/// What is said of a publication in which the first `before` is replaced; `None`: it is accepted.
fn told(before: &str, after: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a directory");
    assert!(PAPER.contains(before) || CLAIMS.contains(before), "{before}");
    for (name, text) in [("one.toml", SCENARIO), ("paper.toml", PAPER), ("claims.toml", CLAIMS)] {
        std::fs::write(folder.path().join(name), text.replacen(before, after, 1)).expect("the file");
    }
    Paper::open(folder.path()).err().map(|error| error.to_string())
}

#[test]
fn keys_that_nothing_reads_are_refused() {
    let cases = [
        ("result = ", "from = 'loss'\nresult = ", "measure.seconds.from: this key has no effect here"),
        ("count = { ", "count = { above = '1 B', ", "measure.lost.count.above: this key has no effect here"),
        ("count = { ", "count = { flow = 'f', ", "it goes with `sent` or `timeout` or `acked` or `quantity`"),
        ("event = { ", "event = { path = 'l', ", "mark.loss.event.path: this key has no effect here"),
        ("event = { ", "event = { once = true, ", "mark.loss.event.once: this key has no effect here"),
        (
            "event = { drop = 'l' }",
            "event = { quantity = 'cwnd', path = 'l', below = '1 kB', above = '2 kB' }",
            "mark.loss.event.above: `below` is given already",
        ),
        ("['seed=1,2']", "['seed=1,2', 'link.l.delay,seed=3']", "`seed` is varied twice"),
        ("{ paper = 0.1 }", "{ ns2 = 0.1 }", "the claim has no `ns2` whose standard error this could be"),
        ("{ paper = 0.1 }", "{ papre = 0.1 }", "did you mean `paper`?"),
    ];
    assert_eq!(told("seconds", "seconds"), None);
    for (before, after, part) in cases {
        let told = told(before, after).unwrap_or_default();
        assert!(told.contains(part), "{after}: {told}");
    }
}
