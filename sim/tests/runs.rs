//! Runs as a user sees them: results, series, refusals, interruption.

mod scenarios;

use std::ops::ControlFlow;
use std::path::Path;

use anabranch_proto::{Duration, Policies, PolicySpec, Reliability};
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::{Document, Loss, Queue, Ranges, Reception, Scenario, Station, Traffic};
use anabranch_sim::{CsvSeries, Item, RunError, RunOptions, check, run};

fn result(scenario: &Scenario) -> RunResult {
    run(scenario, RunOptions::default()).unwrap()
}

#[test]
fn a_transfer_completes() {
    let run = result(&scenarios::one_path());
    let flow = &run.flows[0];
    assert_eq!((flow.delivered, flow.outcome), (2_000_000, "closed"));
    assert_eq!(flow.packets, run.links[1].packets, "one hop");
    assert!(run.ended > 0.1 + flow.completion.unwrap());
    assert_eq!(flow.goodput, 16e6 / flow.completion.unwrap());
}

/// Twenty flows through a queue that marks: CWR goes with data, or once for each reduction, not once for each ECNE.
/// Beside the packets with data, which 2 MB in messages of 1,452 bytes need, come less than one in ten.
#[test]
fn marks_cost_few_packets() {
    let mut text = std::fs::read_to_string("../scenarios/ecn.toml").expect("a scenario");
    text = text[..text.find("[[flow]]").expect("a flow")].replace("2 Mbit/s", "20 Mbit/s");
    for flow in 0..20 {
        let send = "send = \"2 MB\"\nmessage_size = \"1452 B\"\n[flow.sctp]\necn = true\n";
        text += &format!("[[flow]]\nname = \"f{flow}\"\nfrom = \"home\"\nto = \"server\"\n{send}");
    }
    let document = Document::parse("ecn", &text).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let scenario =
        document.scenario("ecn", &Policies::default()).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let run = result(&scenario);
    let forward = run.links.iter().find(|link| link.direction == "home>server").expect("the link");
    let chunks: u64 = run.flows.iter().flat_map(|flow| &flow.paths).map(|path| path.chunks).sum();
    assert!(forward.packets * 10 < chunks * 11, "{} packets for {chunks} chunks", forward.packets);
}

/// Two flows that never meet, each of which gives up because nothing comes back. When one of them began, the other was
/// under way.
const APART: &str = "\
stop = '10000 s'
[[link]]
name = 'a'
between = ['n0', 'n1']
rate = '10 Mbit/s'
loss = ['0 %', '100 %']
[[link]]
name = 'b'
between = ['m0', 'm1']
rate = '10 Mbit/s'
loss = ['0 %', '100 %']
[[flow]]
name = 'f'
from = 'n0'
to = 'n1'
start = '0.9 s'
[[flow]]
name = 'g'
from = 'm0'
to = 'm1'
";

#[test]
fn a_run_ends_with_the_latest_event_of_all_components() {
    let ended = |text: &str, extra_polls| {
        let document = Document::parse("apart", text).unwrap_or_else(|e| panic!("{}", e.render(false)));
        let scenario = document.scenario("apart", &Policies::default());
        let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
        run(&scenario, RunOptions { extra_polls, ..RunOptions::default() }).unwrap().ended
    };
    let other_order = APART.replace("'a'", "'c'");
    let ends = [ended(APART, false), ended(&other_order, false), ended(APART, true)];
    assert!(ends[2] > 100.0 && ends == [ends[2]; 3], "{ends:?}");
}

/// A heartbeat takes 1.3 s there and back, and counts as lost after 1 s. When its answer comes, the next one may be
/// overdue already.
#[test]
fn late_answers_to_heartbeats() {
    let text = "stop = \"300 s\"\n[[link]]\nname = \"l\"\nbetween = [\"s\", \"r\"]\nrate = \"1 Mbit/s\"\ndelay = \"650 ms\"\n\
        [[flow]]\nname = \"f\"\nfrom = \"s\"\nto = \"r\"\nrate = \"8 bit/s\"\nmessage_size = \"100 B\"\n\
        [flow.sctp]\nrto_min = \"1 s\"\nrto_max = \"1 s\"\nrto_initial = \"1 s\"\nheartbeat_interval = \"10 ms\"\n";
    let document = Document::parse("late", text).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let scenario =
        document.scenario("late", &Policies::default()).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let run = result(&scenario);
    let heartbeats = run.flows[0].paths[0].heartbeats.as_ref().expect("counts of SCTP");
    assert!(heartbeats.sent > 150 && heartbeats.answered + 2 > heartbeats.sent, "{heartbeats:?}");
}

#[test]
fn a_path_is_named_by_its_first_link_and_the_primary_chosen_by_name() {
    let mut scenario = scenarios::paper("rfc9260");
    scenarios::sctp(&mut scenario.flows[0]).primary = Some("2-in".to_owned());
    scenario.flows[0].traffic = Traffic::Bulk(Some(50_000));
    let flow = &result(&scenario).flows[0];
    let names: Vec<_> = flow.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["2-in", "1-in"]);
    let again = flow.retransmissions.timeout["1-in"];
    assert_eq!(flow.paths[1].chunks, again, "the alternate carries nothing new");
}

#[test]
fn listed_packets_are_lost_and_sent_again() {
    let mut scenario = scenarios::one_path();
    scenario.links[0].queue = [Queue::Packets(1000); 2];
    scenario.links[0].loss[0] = Loss::Listed(vec![100, 300]);
    let run = result(&scenario);
    assert_eq!((run.links[1].drops.loss, run.links[1].dropped), (2, 2));
    assert_eq!(run.flows[0].retransmissions.fast["l"], 2);
}

#[test]
fn a_dead_link_loses_the_association() {
    let mut scenario = scenarios::one_path();
    scenario.links[0].up = false;
    let run = result(&scenario);
    assert_eq!((run.flows[0].outcome, run.flows[0].completion), ("lost", None));
    assert!(run.links[1].drops.down > 0);
}

#[test]
fn a_run_without_end_stops() {
    let mut scenario = scenarios::one_path();
    scenario.flows[0].traffic = Traffic::Bulk(None);
    let refused = run(&scenario, RunOptions::default()).unwrap_err();
    assert_eq!(refused.place(), Some((Item::Flow("f".to_owned()), "send")));
    scenario.stop = Some(Duration::from_secs(3));
    let run = result(&scenario);
    assert_eq!((run.ended, run.flows[0].outcome), (3.0, "open"));
}

#[test]
fn progress_is_asked_and_can_end_it() {
    let mut scenario = scenarios::one_path();
    scenario.flows[0].traffic = Traffic::Bulk(Some(100_000_000));
    let mut asked = 0;
    let mut progress = |so_far: anabranch_sim::Progress| {
        asked += 1;
        assert_eq!((so_far.expected, so_far.events), (Some(100_000_000), 65_536));
        assert!(so_far.delivered > 10_000_000);
        ControlFlow::Break(())
    };
    let interrupted = run(&scenario, RunOptions { progress: Some(&mut progress), ..RunOptions::default() });
    assert!(matches!(interrupted, Err(RunError::Interrupted { .. })));
    assert_eq!(asked, 1);
}

#[test]
fn what_cannot_be_run_is_refused_with_its_place() {
    let wrong = |spoil: fn(&mut Scenario)| {
        let mut scenario = scenarios::two_links();
        spoil(&mut scenario);
        let (item, key) = check(&scenario, &Default::default()).unwrap_err().place().unwrap();
        (item.to_string(), key)
    };
    let flow = |key| ("flow `f`".to_owned(), key);
    let link = |key| ("link `wifi`".to_owned(), key);
    assert_eq!(wrong(|s| s.flows[0].from = "x".into()), flow("from"));
    assert_eq!(wrong(|s| s.flows[0].to = "s".into()), flow("to"));
    assert_eq!(wrong(|s| scenarios::sctp(&mut s.flows[0]).primary = Some("lte".into())), flow("primary"));
    assert_eq!(
        wrong(|s| scenarios::sctp(&mut s.flows[0]).config.fast = PolicySpec::named("best")),
        flow("fast")
    );
    assert_eq!(wrong(|s| scenarios::sctp(&mut s.flows[0]).config.sack_every = 0), flow("sack_every"));
    assert_eq!(
        wrong(|s| scenarios::sctp(&mut s.flows[0]).reliability = Reliability::Lifetime(0)),
        flow("reliability")
    );
    assert_eq!(wrong(|s| s.flows[0].traffic = Traffic::Bulk(Some(0))), flow("send"));
    assert_eq!(wrong(|s| s.flows.push(s.flows[0].clone())), flow("name"));
    assert_eq!(wrong(|s| s.links.push(s.links[0].clone())), link("name"));
    assert_eq!(wrong(|s| s.links[0].rate[1] = 0), link("rate"));
    assert_eq!(wrong(|s| s.links[0].queue[0] = Queue::Packets(0)), link("queue"));
    assert_eq!(wrong(|s| s.links[0].loss[0] = Loss::Random(1.5)), link("loss"));
    assert_eq!(wrong(|s| s.links[0].loss[0] = Loss::Random(f64::NAN)), link("loss"));
    assert_eq!(wrong(|s| s.links[0].between[1] = "s".into()), link("between"));
    let mut outage = scenarios::all().into_iter().find(|scenario| scenario.name == "outage").unwrap();
    outage.changes[1].link = "lte".to_owned();
    let refused = check(&outage, &Default::default()).unwrap_err();
    assert_eq!(refused.place(), Some((Item::Change(1), "link")));
}

/// Three nodes in a row, and the route along them.
fn chain() -> Scenario {
    let text = "[[channel]]\nname = 'air'\n[[chain]]\nname = 'a'\nhops = 2\nspacing = '300 m'\nchannels = ['air']\n\
                [[route]]\nchannel = 'air'\nthrough = ['a0', 'a1', 'a2']\n\
                [[flow]]\nname = 'f'\nfrom = 'a0'\nto = 'a2'\nsend = '1 kB'\n";
    Document::parse("chain", text).unwrap().scenario("chain", &Policies::default()).unwrap()
}

#[test]
fn radios_that_cannot_be_run_are_refused_with_their_place() {
    let wrong = |spoil: fn(&mut Scenario)| {
        let mut scenario = chain();
        spoil(&mut scenario);
        check(&scenario, &Default::default()).unwrap_err().place().unwrap()
    };
    let channel = |key| (Item::Channel("air".to_owned()), key);
    let node = |key| (Item::Node("a1".to_owned()), key);
    let ranges = |decode| Reception::Range(Ranges { decode, ..Ranges::default() });
    assert_eq!(wrong(|s| s.channels.push(s.channels[0].clone())), channel("name"));
    assert_eq!(wrong(|s| s.channels[0].dcf.rate = 0), channel("dcf.rate"));
    assert_eq!(wrong(|s| s.channels[0].dcf.control_rate = 7), channel("dcf.control_rate"));
    assert_eq!(wrong(|s| s.channels[0].dcf.control_rate = 11_000_000), channel("dcf.control_rate"));
    assert_eq!(wrong(|s| s.channels[0].dcf.short_retry = 0), channel("dcf.short_retry"));
    assert_eq!(wrong(|s| s.channels[0].dcf.cw_max = 1), channel("dcf.cw_min"));
    for decode in [0.0, f64::NAN, 600.0] {
        let mut scenario = chain();
        scenario.channels[0].reception = ranges(decode);
        let refused = check(&scenario, &Default::default()).unwrap_err();
        assert_eq!(refused.place(), Some(channel("reception")), "{decode}");
    }
    assert_eq!(wrong(|s| s.stations[1].place[0] = f64::NAN), node("at"));
    assert_eq!(wrong(|s| s.stations[1].place[0] = 1e9), node("at"));
    assert_eq!(wrong(|s| s.stations[1].place = s.stations[0].place), channel("name"));
    assert_eq!(wrong(|s| s.stations[1].channels.push("air".into())), node("channels"));
    assert_eq!(wrong(|s| s.stations[1].channels = Vec::new()), node("channels"));
    assert_eq!(wrong(|s| s.stations.push(s.stations[1].clone())), node("name"));
    assert_eq!(wrong(|s| s.routes[0].channel = "other".into()).1, "name");
}

/// A scenario that is built in Rust may be too large as well; it is refused before the memory is taken.
#[test]
fn radios_in_a_crowd_are_refused() {
    let mut scenario = chain();
    let station = scenario.stations[0].clone();
    let crowd = (0..4000).map(|n| Station {
        node: format!("c{n}"),
        place: [f64::from(n % 64), f64::from(1 + n / 64)],
        ..station.clone()
    });
    scenario.stations.extend(crowd);
    let refused = check(&scenario, &Default::default()).unwrap_err();
    assert_eq!(refused.place(), Some((Item::Channel("air".to_owned()), "name")));
}

#[test]
fn a_series_of_throughput_has_two_rows_for_a_long_silence() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("silence");
    let _ = std::fs::remove_dir_all(&directory);
    let mut scenario = scenarios::one_path();
    scenario.flows[0].start = Duration::from_secs(100_000);
    let mut series = CsvSeries::new(&directory).unwrap();
    run(&scenario, RunOptions { observer: Some(&mut series), ..RunOptions::default() }).unwrap();
    series.finish().unwrap();
    let text = std::fs::read_to_string(directory.join("f.throughput.csv")).unwrap();
    let rows: Vec<_> = text.lines().collect();
    assert_eq!(rows[..3], ["time,throughput", "0.200000000,0", "100000.100000000,0"]);
    assert!(rows[3].starts_with("100000.2") && rows.len() < 30, "{rows:?}");
}

#[test]
fn series_are_written() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("series");
    let _ = std::fs::remove_dir_all(&directory);
    let mut scenario = scenarios::two_links();
    scenario.flows[0].name = "a/b".to_owned();
    let mut series = CsvSeries::new(&directory).unwrap();
    let result = run(&scenario, RunOptions { observer: Some(&mut series), ..RunOptions::default() }).unwrap();
    series.finish().unwrap();
    let rows = |name: &str| {
        let text = std::fs::read_to_string(directory.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let chunks: u64 = result.flows[0].paths.iter().map(|path| path.chunks).sum();
    let sent = rows("a_b.sent.csv");
    assert_eq!(sent[0], "time,path,tsn,size,why");
    assert_eq!(sent.len() as u64 - 1, chunks);
    let missing =
        sent.iter().filter(|row| row.contains(",gprs,") && row.ends_with(",missing")).count() as u64;
    assert_eq!(missing, result.flows[0].retransmissions.fast["gprs"]);
    let drops = rows("wifi.s-r.drops.csv");
    assert_eq!(drops.len() as u64 - 1, result.links[3].dropped);
    let queue = rows("wifi.s-r.queue.csv");
    assert_eq!(queue[0], "time,packets,bytes");
    let most = queue[1..].iter().map(|row| row.split(',').nth(1).unwrap().parse::<u64>().unwrap()).max();
    assert_eq!(most, Some(result.links[3].queue_max));
    assert!(queue[1..].is_sorted_by_key(|row| row.split(',').next().unwrap().parse::<f64>().unwrap()));
    assert_eq!(queue.last().unwrap().split_once(',').unwrap().1, "0,0");
    for name in ["windows", "rto", "peer_window", "acked", "blocked", "marked"] {
        assert!(rows(&format!("a_b.{name}.csv")).len() > 1, "{name}");
    }
}

/// The seconds that paths block sum to those that new data waited for a buffer at either end.
#[test]
fn what_blocks_is_charged_to_a_path() {
    for sctp in ["receive_buffer = '32 KiB'", "send_buffer = '32 KiB'"] {
        let text = format!(
            "seed = 3\nstop = '20 s'\n\
             [[link]]\nname = 'a'\nbetween = ['s', 'r']\nrate = '10 Mbit/s'\ndelay = '10 ms'\n\
             [[link]]\nname = 'b'\nbetween = ['s', 'r']\nrate = '1 Mbit/s'\ndelay = '50 ms'\nloss = ['2 %', '0 %']\n\
             [[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nsend = '20 MB'\n[flow.sctp]\ncmt = true\n{sctp}\n"
        );
        let scenario = Document::parse("x.toml", &text)
            .and_then(|document| document.scenario("x", &Policies::default()))
            .expect("a scenario");
        let result = run(&scenario, RunOptions::default()).expect("it runs");
        let flow = &result.flows[0];
        let blocks: f64 = flow.paths.iter().map(|path| path.blocks).sum();
        let blocked = flow.blocked.peer_window + flow.blocked.send_buffer;
        assert!(blocked > 1.0 && (blocks - blocked).abs() < 1e-6, "{sctp}: {blocks} of {blocked}");
        assert!(flow.paths[1].blocks > flow.paths[0].blocks, "{sctp}: the slow and lossy path blocks");
    }
}
