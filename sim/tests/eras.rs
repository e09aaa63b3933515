//! What every era must come to on a network without losses, computed by hand.

mod scenarios;

use std::time::Duration;

use anabranch_proto::{Config, Rules};
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::{Queue, Scenario, Traffic};
use anabranch_sim::{RunOptions, run};

/// One link of 10 Mbit/s and 20 ms whose queue holds every window of the flow, and `bytes` in the given era.
fn one_path(era: &str, bytes: u64) -> Scenario {
    let mut scenario = scenarios::one_path();
    scenario.era = era.to_owned();
    scenario.links[0].queue = [Queue::Packets(10_000); 2];
    scenarios::sctp(&mut scenario.flows[0]).config = Config::era(era).expect("an era");
    scenario.flows[0].traffic = Traffic::Bulk(Some(bytes));
    scenario
}

fn result(scenario: &Scenario) -> RunResult {
    run(scenario, RunOptions::default()).expect("it runs")
}

fn seconds(scenario: &Scenario) -> f64 {
    result(scenario).flows[0].completion.expect("it completes")
}

/// A packet of 1,500 bytes carries 1,452 bytes of user data: 20 bytes are IP's, 12 the common header's, 16 the
/// chunk's. So 10 MB take 10^7 * 8 / (10^7 * 1452 / 1500) = 8.2645 s once slow start is over.
#[test]
fn goodput_is_rate_times_1452_of_1500() {
    for (era, _) in Rules::ERAS {
        let later = seconds(&one_path(era, 20_000_000)) - seconds(&one_path(era, 10_000_000));
        let goodput = 10e6 * 8.0 / later;
        let expected = 10e6 * 1452.0 / 1500.0;
        assert!((goodput / expected - 1.0).abs() < 0.005, "{era}: {goodput} bit/s");
    }
}

fn slow_reader(bytes: u64, message_size: Option<u32>) -> RunResult {
    let mut scenario = one_path("rfc9260", bytes);
    scenario.flows[0].read_rate = Some(1_000_000);
    scenario.flows[0].message_size = message_size;
    scenarios::sctp(&mut scenario.flows[0]).config.receive_buffer = 1_000_000;
    result(&scenario)
}

/// A reader of 1 Mbit/s behind a link of 10 waits for the first packet only, so 8 MB take 64 s. It frees the
/// buffer packet by packet, each announced with the SACK of the next: the window is small but never shut.
#[test]
fn a_slow_reader_sets_the_pace() {
    let flow = &slow_reader(8_000_000, None).flows[0];
    let seconds = flow.completion.expect("it completes");
    assert!((seconds / 64.0 - 1.0).abs() < 0.01, "{seconds} s");
    assert!(flow.blocked.peer_window > 50.0, "{:?}", flow.blocked);
    assert_eq!((flow.probes, flow.timeouts, flow.outcome), (0, 0, "closed"));
}

/// Messages of 400,000 bytes are read one every 3.2 s. A buffer of 1 MB holds two; in between the window is
/// shut for longer than the RTO of 1 s, so it is probed: a probe is no timeout and costs no time.
#[test]
fn a_shut_window_is_probed() {
    let flow = &slow_reader(8_000_000, Some(400_000)).flows[0];
    let seconds = flow.completion.expect("it completes");
    let first = 400_000.0 * 8.0 / (10e6 * 1452.0 / 1500.0);
    assert!((seconds - first - 19.0 * 3.2).abs() < 0.01 * 64.0, "{seconds} s");
    assert!((10..60).contains(&flow.probes), "{} probes", flow.probes);
    assert_eq!((flow.timeouts, flow.fast_recoveries, flow.outcome), (0, 0, "closed"));
}

/// Half an RTT after the last byte has left, it is read: the time of a transfer of one packet is two round trips
/// (INIT, COOKIE ECHO) and the way there, to the nanosecond.
#[test]
fn one_packet_takes_two_round_trips_and_a_half() {
    let scenario = one_path("rfc9260", 100);
    let bits = |bytes: u64| Duration::from_nanos(bytes * 8 * 100); // at 10 Mbit/s a bit takes 100 ns
    // INIT 12 + 20; INIT ACK with its cookie; COOKIE ECHO; COOKIE ACK 12 + 4; DATA 12 + 16 + 100; IP 20 each.
    let cookie: u64 = 8 + 8 + 20 + 4 + 8 + 7 + 2 + 1 + 7 + 32;
    let cookie_param = 4 + cookie;
    let init_ack = 20 + 12 + 20 + cookie_param;
    let cookie_echo = 20 + 12 + (4 + cookie).next_multiple_of(4);
    let sizes = [20 + 12 + 20, (init_ack).next_multiple_of(4), cookie_echo, 20 + 12 + 4, 20 + 12 + 16 + 100];
    let expected: Duration = sizes.iter().map(|&size| Duration::from_millis(20) + bits(size)).sum();
    assert_eq!(seconds(&scenario), expected.as_secs_f64());
}

/// What the reader of documents refuses with its line, a scenario built in Rust is refused too.
#[test]
fn an_era_that_does_not_exist_and_an_endless_header_are_refused() {
    let wrong = |change: fn(&mut Scenario)| {
        let mut scenario = one_path("ns2", 1000);
        change(&mut scenario);
        run(&scenario, RunOptions::default()).expect_err("it is refused").to_string()
    };
    let era = wrong(|scenario| scenario.era = "nope".to_owned());
    assert_eq!(era, "scenario: era: is none of the eras that `Rules::ERAS` lists");
    let long = wrong(|scenario| scenario.ip_header = u32::MAX);
    assert_eq!(long, "scenario: ip_header: must not exceed 255 bytes");
    let long = wrong(|scenario| scenario.flows[0].ip_header = Some(u32::MAX));
    assert!(long.ends_with("ip_header: must not exceed 255 bytes"), "{long}");
}
