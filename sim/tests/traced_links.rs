//! A link by trace delivers exactly the bytes of its opportunities while a queue stands.

use anabranch_proto::{Policies, Time};
use anabranch_sim::scenario::Document;
use anabranch_sim::trace::{Names, Observer, Record};
use anabranch_sim::{RunOptions, run};

/// Opportunities in milliseconds; the last is the period.
const TIMES: [u64; 9] = [1, 1, 2, 9, 9, 9, 30, 31, 40];
const DELAY: u64 = 7;

/// The times and sizes of packets that arrive.
#[derive(Default)]
struct Arrivals(Vec<(Time, u64)>);

impl Observer for Arrivals {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, at: Time, record: &Record<'_>) {
        if let Record::Delivered { packet, .. } = record {
            self.0.push((at, u64::from(packet.size)));
        }
    }
}

#[test]
fn bytes_delivered_by_any_time_are_those_of_the_opportunities() {
    let text = format!(
        "stop = '2 s'\n[[link]]\nname = 'l'\nbetween = ['s', 'r']\nrate = {{ opportunities = {TIMES:?} }}\ndelay = '{DELAY} ms'\n\
         queue = '100 packets'\n[[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nprotocol = 'udp'\nrate = '20 Mbit/s'\nmessage_size = '1472 B'\n"
    );
    let policies = Policies::default();
    let scenario = Document::parse("t", &text).and_then(|d| d.scenario("t", &policies)).expect("a scenario");
    let mut arrivals = Arrivals::default();
    let observer: Option<&mut dyn Observer> = Some(&mut arrivals);
    run(&scenario, RunOptions { observer, ..RunOptions::default() }).expect("it runs");
    let period = TIMES[TIMES.len() - 1];
    // The first packet comes at time zero, and after it 20 Mbit/s are more than the trace carries.
    for millis in 0..1900 {
        let whole = millis / period * TIMES.len() as u64;
        let opportunities = whole + TIMES.iter().filter(|time| **time <= millis % period).count() as u64;
        let until = Time::from_nanos((millis + DELAY) * 1_000_000);
        let delivered: u64 = arrivals.0.iter().filter(|(at, _)| *at <= until).map(|(_, size)| size).sum();
        assert_eq!(delivered, 1500 * opportunities, "after {millis} ms");
    }
}

#[test]
fn a_change_of_what_the_trace_says_is_refused() {
    let change = |sample: &str, key: &str| {
        let text = format!(
            "stop = '2 s'\n[[link]]\nname = 'l'\nbetween = ['s', 'r']\n\
             rate = {{ samples = [['0 s', '1 Mbit/s', {sample}], ['9 s', '1 Mbit/s', {sample}]] }}\n\
             [[change]]\nat = '1 s'\nlink = 'l'\n{key}\n\
             [[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nsend = '1 kB'\n"
        );
        let document = Document::parse("t", &text).expect("a document");
        let scenario = document.scenario("t", &Policies::default()).expect("a scenario");
        let error = run(&scenario, RunOptions::default()).err()?;
        Some(document.blame(&scenario, &error).expect("the scenario is wrong").to_string())
    };
    for (key, column) in [("delay = '5 ms'", "'5 ms', 'link'"), ("loss = '5 %'", "'link', '5 %'")] {
        let error = change(column, key).expect("the trace says it");
        let name = &key[..5].trim();
        assert!(error.starts_with(&format!("t:9: change.1.{name}: the trace of this link has")), "{error}");
        assert_eq!(change("'link', 'link'", key), None);
    }
}

/// A recorded outage, in whatever unit.
#[test]
fn a_sample_may_have_a_rate_of_zero() {
    let with = |zero: &str| {
        let text = format!(
            "[[link]]\nname = 'l'\nbetween = ['s', 'r']\n\
             rate = {{ samples = [['0 s', '1 Mbit/s', '5 ms', 'link'], ['1 s', '{zero}', '5 ms', 'link'], \
             ['2 s', '1 Mbit/s', '5 ms', 'link']] }}\n\
             [[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nsend = '1 MB'\n"
        );
        let document = Document::parse("t", &text).expect("a document");
        let scenario = document.scenario("t", &Policies::default()).unwrap_or_else(|error| panic!("{error}"));
        run(&scenario, RunOptions::default()).expect("it runs").flows[0].completion
    };
    assert_eq!(with("0 Mbit/s"), with("0 bit/s"));
}
