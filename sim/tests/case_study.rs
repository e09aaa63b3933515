//! The case study of "receive buffer blocking" (section 4), era `ns2`, against our runs of ns-2 2.35
//! (papers/receive-buffer-blocking/README.md says how they were made). Times count from A, the first drop.
//!
//! The handshake's packets have our sizes, not ns-2's: data starts at 5.825233 s instead of 5.825041 s.

use std::collections::BTreeSet;
use std::path::Path;

use anabranch_proto::policy::Why;
use anabranch_proto::{Policies, Time};
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::Document;
use anabranch_sim::trace::{Detail, Names, Observer, Record, Side};
use anabranch_sim::{RunOptions, run};

/// Bytes of a full DATA chunk.
const CHUNK: u64 = 1468;

#[derive(Default)]
struct Watch {
    names: Names,
    drops: Vec<(Time, u32)>,
    sent: Vec<(Time, u32, Why)>,
    windows: Vec<(Time, u64)>,
    peer_window: Vec<(Time, u64)>,
}

impl Observer for Watch {
    fn begin(&mut self, names: &Names) {
        self.names = names.clone();
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        match record {
            Record::Dropped { link, packet, .. } if self.names.links[*link].0 == "primary" => {
                self.drops.extend(packet.tsns().map(|tsn| (at, tsn.0)));
            }
            Record::Detail { side: Side::Client, detail, path, .. } => self.detail(at, *path, detail),
            _ => {}
        }
    }
}

impl Watch {
    fn detail(&mut self, at: Time, path: Option<&str>, detail: &Detail) {
        match detail {
            Detail::Sent { number, why, .. } => self.sent.push((at, *number as u32, *why)),
            Detail::PeerWindow { bytes } => self.peer_window.push((at, *bytes)),
            Detail::Window { cwnd, .. } if path == Some("primary-access") => self.windows.push((at, *cwnd)),
            _ => {}
        }
    }

    /// The drops before the first pause of a second.
    fn burst(&self) -> &[(Time, u32)] {
        let end = self.drops.windows(2).position(|d| d[1].0.since(d[0].0).as_secs() >= 1);
        &self.drops[..end.map_or(self.drops.len(), |i| i + 1)]
    }

    /// A, and seconds since.
    fn since_a(&self, at: Time) -> f64 {
        at.since(self.drops[0].0).as_secs_f64()
    }

    fn c(&self) -> Time {
        self.sent.iter().find(|s| s.2 == Why::Missing).expect("a fast retransmission").0
    }

    fn d(&self) -> Time {
        self.sent.iter().find(|s| s.0 >= self.c() && s.2 == Why::New).expect("new data after it").0
    }

    fn e(&self) -> Time {
        let mut left: BTreeSet<u32> = self.burst().iter().map(|d| d.1).collect();
        let again = self.sent.iter().filter(|s| s.2 != Why::New);
        again.filter(|s| left.remove(&s.1)).last().expect("all resent").0
    }

    fn f(&self) -> Option<(Time, u64)> {
        self.peer_window.iter().find(|w| w.0 >= self.c() && w.1 < CHUNK).copied()
    }
}

fn case_study(policy: &str) -> (RunResult, Watch) {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../papers/receive-buffer-blocking/case-study.toml");
    let text = std::fs::read_to_string(&file).expect("the case study");
    let mut document = Document::parse("case-study.toml", &text).expect("well-formed");
    document.set("--set", &format!("flow.transfer.sctp.retransmit={policy}")).expect("a key of it");
    let scenario = document.scenario("case-study", &Policies::default()).expect("a scenario");
    let mut watch = Watch::default();
    let options = RunOptions { observer: Some(&mut watch), ..RunOptions::default() };
    let result = run(&scenario, options).expect("it runs");
    (result, watch)
}

fn dropped(result: &RunResult, link: &str) -> u64 {
    result.links.iter().filter(|l| l.name == link).map(|l| l.dropped).sum()
}

#[track_caller]
fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} within {tolerance}");
}

#[test]
fn retransmissions_on_the_alternate() {
    let (result, watch) = case_study("alternate");
    assert_eq!(
        (watch.burst().len(), dropped(&result, "primary"), dropped(&result, "secondary")),
        (68, 72, 18)
    );
    let b = watch.burst().last().expect("the burst").0;
    near(watch.since_a(b), 0.160803, 1e-4);
    near(watch.since_a(watch.c()), 0.164370, 1e-4);
    near(watch.since_a(watch.d()), 0.243678, 1e-4);
    near(watch.since_a(watch.e()), 0.346366, 1e-4);
    let (f, window) = watch.f().expect("the peer's window closes");
    near(watch.since_a(f), 0.795171, 1e-3); // the paper's older version of the module: 0.828766
    assert_eq!(window, 292);
    near(result.flows[0].completion.expect("it completes"), 37.333602, 0.0002);
}

#[test]
fn retransmissions_on_the_same_path() {
    let (result, watch) = case_study("same");
    assert_eq!(
        (watch.burst().len(), dropped(&result, "primary"), dropped(&result, "secondary")),
        (68, 72, 0)
    );
    near(watch.since_a(watch.burst().last().expect("the burst").0), 0.160803, 1e-4);
    near(watch.since_a(watch.c()), 0.164370, 1e-4);
    near(watch.since_a(watch.d()), 0.284533, 1e-4);
    near(watch.since_a(watch.e()), 0.325379, 1e-4);
    assert_eq!(watch.f(), None, "the peer's window stays open");
    near(result.flows[0].completion.expect("it completes"), 18.533756, 0.005 * 18.533756);
}

#[test]
fn windows_before_new_data() {
    let (_, watch) = case_study("alternate");
    let low = watch.peer_window.iter().filter(|w| w.0 < watch.d()).map(|w| w.1).min();
    assert!(low.is_some_and(|low| (699_000..=702_000).contains(&low)), "{low:?}");
    let halved = watch.windows.iter().find(|w| w.0 >= watch.c() && w.1 < 295_044).expect("it is halved");
    assert_eq!(halved.1, 147_522);
}
