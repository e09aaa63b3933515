//! Managed queues and losses of a flow's data, as a scenario has them; RED beside ns-2's.

mod support;

use std::process::Command;

use anabranch_proto::{Duration, Policies, Time};
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::{Document, ScenarioError};
use anabranch_sim::trace::{DropCause, Names, Observer, QueueRecord, Record, Wants};
use anabranch_sim::{RunOptions, run};
use support::has_ns2;

fn read(text: &str, edits: &[String]) -> Result<anabranch_sim::scenario::Scenario, ScenarioError> {
    let mut document = Document::parse("test.toml", text)?;
    edits.iter().try_for_each(|edit| document.set("--set", edit))?;
    let scenario = document.scenario("test", &Policies::default())?;
    match anabranch_sim::check(&scenario, &Policies::default()) {
        Ok(()) => Ok(scenario),
        Err(error) => Err(document.blame(&scenario, &error).expect("the scenario is to blame")),
    }
}

fn result(text: &str, edits: &[String], observer: Option<&mut dyn Observer>) -> RunResult {
    let scenario = read(text, edits).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, RunOptions { observer, ..RunOptions::default() }).expect("it runs")
}

/// A source of constant rate, packets of 500 B, into 1 Mbit/s.
const CONSTANT: &str = "\
stop = '20 s'
[[link]]
name = 'l'
between = ['s', 'r']
rate = '1 Mbit/s'
delay = '10 ms'
queue = { red = { limit = '51 packets', min = '5 packets', max = '15 packets' } }
[[flow]]
name = 'f'
protocol = 'udp'
from = 's'
to = 'r'
rate = '944 kbit/s'
message_size = '472 B'
";

/// The same in ns-2: packets dropped in 20 s. Its queue does not count the packet that is being sent.
const NS2: &str = "\
set ns [new Simulator]
Queue/RED set thresh_ 5
Queue/RED set maxthresh_ 15
Queue/RED set q_weight_ 0.002
Queue/RED set linterm_ 10
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
global defaultRNG
$defaultRNG seed [lindex $argv 1]
set a [$ns node]; set b [$ns node]
$ns simplex-link $a $b 1Mb 10ms RED
$ns simplex-link $b $a 1Mb 10ms DropTail
$ns queue-limit $a $b 50
set monitor [$ns monitor-queue $a $b \"\"]
set udp [new Agent/UDP]; $ns attach-agent $a $udp
set null [new Agent/Null]; $ns attach-agent $b $null
$ns connect $udp $null
set cbr [new Application/Traffic/CBR]
$cbr set packetSize_ 500; $cbr set rate_ [lindex $argv 0]; $cbr set random_ 0
$cbr attach-agent $udp
$ns at 0.0 \"$cbr start\"
$ns at 20.0 \"puts \\[$monitor set pdrops_\\]; exit 0\"
$ns run
";

/// Mean, and the square of its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
    (mean, squares / (n - 1.0) / n)
}

#[test]
fn red_drops_as_many_as_ns2s() {
    if !has_ns2("red_drops_as_many_as_ns2s") {
        return;
    }
    let script = std::env::temp_dir().join(format!("anabranch-red-{}.tcl", std::process::id()));
    std::fs::write(&script, NS2).expect("the script is written");
    const SEEDS: u64 = 30;
    for percent in [102, 110, 150, 250] {
        // 472 of 500 bytes are user data.
        let (rate, user) = (percent * 10_000, percent * 9_440);
        let theirs: Vec<f64> = (1..=SEEDS)
            .map(|seed| {
                let output =
                    Command::new("ns").arg(&script).arg(rate.to_string()).arg(seed.to_string()).output();
                let output = output.expect("ns runs");
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                text.trim()
                    .parse()
                    .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
            })
            .collect();
        let ours: Vec<f64> = (1..=SEEDS)
            .map(|seed| {
                let edits = [format!("flow.f.rate={user} bit/s"), format!("seed={seed}")];
                result(CONSTANT, &edits, None).links[1].drops.queue as f64
            })
            .collect();
        let ((here, our_error), (there, their_error)) = (mean(&ours), mean(&theirs));
        // What arrives and what waits at the very end may differ by some packets, also where nothing is random.
        let tolerance = 4.2 * (our_error + their_error).sqrt() + 3.0;
        assert!((here - there).abs() < tolerance, "{percent} %: {here} here, {there} in ns-2, {tolerance}");
        println!("{percent} %: {here:.1} here, {there:.1} in ns-2, within {tolerance:.1}");
    }
    let _ = std::fs::remove_file(&script);
}

/// Keeps the times and the causes of drops by queues.
#[derive(Default)]
struct Drops(Vec<(u64, DropCause)>);

impl Observer for Drops {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, at: Time, record: &Record<'_>) {
        if let Record::Dropped { cause: cause @ (DropCause::Queue | DropCause::Early), .. } = record {
            self.0.push((at.as_nanos(), *cause));
        }
    }
}

#[test]
fn codel_keeps_the_delay_of_a_responsive_flow_low() {
    let text = CONSTANT.replace("rate = '944 kbit/s'\nmessage_size = '472 B'\n", "send = '2 MB'\n");
    let text = text.replace("protocol = 'udp'\n", "").replace("stop = '20 s'\n", "");
    let with = |queue: &str| {
        let mut drops = Drops::default();
        let result = result(&text, &[format!("link.l.queue={queue}")], Some(&mut drops));
        assert!(drops.0.is_sorted_by_key(|(at, _)| *at), "drops are told in the order of time");
        assert_eq!(drops.0.len() as u64, result.links.iter().map(|link| link.drops.queue).sum::<u64>());
        assert_eq!(result, self::result(&text, &[format!("link.l.queue={queue}")], None), "{queue}");
        let flow = &result.flows[0];
        let srtt = serde_json::to_value(flow).expect("JSON")["paths"][0]["srtt"].as_f64().expect("a time");
        (srtt, flow.completion.expect("it ends"), drops.0.len())
    };
    let (full, fifo, _) = with("200 packets");
    let (short, codel, drops) = with("{ codel = { limit = '200 packets' } }");
    assert!(short < full / 2.0 && drops > 0, "{short} s is not far below {full} s");
    assert!(codel < fifo * 1.1, "{codel} s is not about {fifo} s");
}

/// A drop says if the queue was full or its management decided.
#[test]
fn early_drops_are_not_those_of_a_full_queue() {
    let text = CONSTANT.replace("rate = '944 kbit/s'", "rate = '2 Mbit/s'");
    let causes = |queue: &str| {
        let mut drops = Drops::default();
        let result = result(&text, &[format!("link.l.queue={queue}")], Some(&mut drops));
        let of = |cause| drops.0.iter().filter(|(_, by)| *by == cause).count();
        let [full, early] = [DropCause::Queue, DropCause::Early].map(of);
        assert_eq!((full + early) as u64, result.links[1].drops.queue);
        [full > 0, early > 0]
    };
    assert_eq!(causes("'40 packets'"), [true, false]);
    assert_eq!(
        causes("{ red = { limit = '400 packets', min = '5 packets', max = '15 packets' } }"),
        [false, true]
    );
    assert_eq!(
        causes("{ red = { limit = '40 packets', min = '5 packets', max = '15 packets' } }"),
        [true, true]
    );
    assert_eq!(causes("{ codel = { limit = '4000 packets' } }"), [false, true]);
    assert_eq!(causes("{ codel = { limit = '40 packets' } }"), [true, true]);
}

#[test]
fn a_managed_queue_can_be_changed_and_cut_on_the_way() {
    let text = CONSTANT.replace("rate = '944 kbit/s'", "rate = '2 Mbit/s'");
    let changes = "\
[[change]]
at = '5 s'
link = 'l'
queue = '10 packets'
[[change]]
at = '8 s'
link = 'l'
up = false
[[change]]
at = '9 s'
link = 'l'
up = true
[[change]]
at = '10 s'
link = 'l'
rate = '100 kbit/s'
";
    for queue in [
        "{ codel = { limit = '40 packets' } }",
        "{ red = { limit = '40 packets', min = '5 packets', max = '15 packets' } }",
    ] {
        let result = result(&format!("{text}{changes}"), &[format!("link.l.queue={queue}")], None);
        let there = &result.links[1];
        assert!(there.drops.queue > 0 && there.drops.down > 0, "{queue}: {there:?}");
        let carried = there.packets - there.dropped;
        // What is not dropped arrives, or is on the link at the end: at most the ten packets of its queue and those on
        // their way.
        let arrived = there.bytes / 500;
        assert!(
            carried >= arrived && carried - arrived <= 12,
            "{queue}: {carried} carried, {arrived} arrived"
        );
    }
}

/// Keeps the length of the queue of the forward direction.
#[derive(Default)]
struct Lengths {
    order: bool,
    seen: Vec<(Time, u32)>,
}

impl Observer for Lengths {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, at: Time, record: &Record<'_>) {
        if let Record::Queued { link: 1, queue, .. } | Record::Departed { link: 1, queue } = record {
            self.seen.push((at, queue.packets));
        }
    }

    fn queue(&mut self, record: &QueueRecord<'_>) {
        record
            .each(|change| self.seen.extend((change.link == 1).then_some((change.at, change.queue.packets))));
    }

    fn wants(&self) -> Wants {
        Wants { order: self.order, ..Wants::UNORDERED }
    }
}

/// Until the outage packets wait; from its beginning on none does.
#[test]
fn the_queue_of_a_link_that_is_down_is_empty() {
    let text = CONSTANT.replace("rate = '944 kbit/s'", "rate = '2 Mbit/s'");
    for (queue, order) in
        [("40 packets", false), ("40 packets", true), ("{ codel = { limit = '40 packets' } }", true)]
    {
        let mut lengths = Lengths { order, ..Lengths::default() };
        let edits = [format!("link.l.queue={queue}"), "link.l.down=[['5001 ms', '6001 ms']]".to_owned()];
        result(&text, &edits, Some(&mut lengths));
        let [begin, end] = [5001, 6001].map(|at| Time::ZERO + Duration::from_millis(at));
        let place = lengths.seen.partition_point(|(at, _)| *at < begin);
        let [(_, before), (at, during), (next, _)] = lengths.seen[place - 1..place + 2] else {
            panic!("{place}")
        };
        assert!(before > 10 && (at, during) == (begin, 0) && next >= end, "{before} {during}");
    }
}

/// A change to the delay that a link has, while nothing is on it, changes nothing: RED still knows since when the link
/// is idle.
#[test]
fn a_change_that_changes_nothing_leaves_the_average_of_red() {
    let text = CONSTANT.replace("rate = '944 kbit/s'", "rate = '1500 kbit/s'\non = '2 s'\noff = '500 ms'");
    let change = "[[change]]\nat = '2900 ms'\nlink = 'l'\ndelay = '10 ms'\n";
    let [without, with] = [text.clone(), format!("{text}{change}")].map(|text| result(&text, &[], None));
    assert!(without.links[1].drops.queue > 0);
    assert_eq!(without.links, with.links);
}

/// Flows over a link with this queue and then over another.
const TWO_LINKS: &str = "\
stop = '5 s'
measure = ['2 s', '4 s']
[[link]]
name = 'slow'
between = ['s', 'm']
rate = '1 Mbit/s'
delay = '20 ms'
queue = { codel = { limit = '100 packets', interval = '10 s' } }
[[link]]
name = 'next'
between = ['m', 'r']
rate = '10 Mbit/s'
delay = '1 ms'
[[flow]]
name = 'f'
from = 's'
to = 'r'
[[flow]]
name = 'g'
from = 's'
to = 'r'
start = '1 s'
";

#[test]
fn the_packets_of_all_flows_on_a_link_are_the_packets_of_the_link() {
    for queue in [
        "100 packets",
        "{ codel = { limit = '100 packets', interval = '10 s' } }",
        "{ red = { limit = '40 packets', min = '5 packets', max = '15 packets' } }",
    ] {
        let result = result(TWO_LINKS, &[format!("link.slow.queue={queue}")], None);
        for (number, link) in result.links.iter().enumerate() {
            let whole: u64 = result.flows.iter().map(|flow| flow.links[number].packets).sum();
            assert_eq!(whole, link.packets, "{queue}: {} {}", link.name, link.direction);
            let measured = result.flows.iter().filter_map(|flow| flow.measured.as_ref());
            let measured: u64 = measured.map(|flow| flow.links[number].packets).sum();
            assert_eq!(Some(measured), link.measured.as_ref().map(|link| link.packets), "{queue}");
        }
    }
}

const DATA: &str = "\
seed = 1
[[link]]
name = 'l'
between = ['s', 'r']
rate = '1 Mbit/s'
delay = '20 ms'
[[link]]
name = 'm'
between = ['s', 'x']
rate = '1 Mbit/s'
[[flow]]
name = 'f'
from = 's'
to = 'r'
send = '100 kB'
[[flow]]
name = 'g'
from = 's'
to = 'r'
send = '100 kB'
";

/// Which packets of the flow `f`, of those with user data, are lost.
#[derive(Default)]
struct Lost {
    seen: u64,
    lost: Vec<u64>,
}

impl Observer for Lost {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, _: anabranch_proto::Time, record: &Record<'_>) {
        let (flow, packet, lost) = match record {
            Record::Queued { link: 1, flow, packet, .. } => (*flow, packet, false),
            Record::Dropped { link: 1, flow, packet, cause: DropCause::Loss, .. } => (*flow, packet, true),
            _ => return,
        };
        if flow == 0 && packet.tsns().next().is_some() {
            self.seen += 1;
            if lost {
                self.lost.push(self.seen);
            }
        }
    }
}

#[test]
fn packets_of_a_flow_with_user_data_are_lost_by_their_number() {
    let mut seen = Lost::default();
    let edits = ["link.l.loss={ flow = 'f', data = [1, 8, 9, 30] }".to_owned()];
    let result = result(DATA, &edits, Some(&mut seen));
    assert_eq!(seen.lost, [1, 8, 9, 30]);
    assert_eq!(result.links.iter().map(|link| link.drops.loss).sum::<u64>(), 4);
    assert_eq!(result.flows[1].retransmissions.fast.values().sum::<u64>(), 0, "the other flow loses nothing");
}

#[test]
fn a_loss_names_a_flow_that_passes() {
    let wrong = |edit: &str| {
        let error = read(DATA, &[edit.to_owned()]).expect_err("it is refused");
        (error.key().to_owned(), format!("{} {:?}", error.message(), error.likely_fix()))
    };
    let (key, text) = wrong("link.l.loss={ flow = 'h', data = [1] }");
    assert_eq!(key, "link.l.loss.flow");
    assert!(text.contains("there is no flow `h`"), "{text}");
    let (key, text) = wrong("link.m.loss={ flow = 'f', data = [1] }");
    assert_eq!(key, "link.m.loss");
    assert!(text.contains("sends no data over this link"), "{text}");
}
