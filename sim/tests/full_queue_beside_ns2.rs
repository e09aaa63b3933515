//! Flows that lose packets in a full drop-tail queue, beside ns-2's: one `sack1` or `sack1-2002`, two or three of them,
//! or SCTP of era `ns2` and one or two of them. Every flow must send the same data as in ns-2 at the same times, to 20
//! µs. Needs `ns`.
//!
//! In a tie, a packet reaches a full queue at the very moment at which another one leaves it, or two packets arrive at
//! the same moment. In slow start such ties are the rule: the first packet of a round finds an idle link and leaves it
//! when the second one arrives, both one round trip after the packets that released them. Here the departure comes
//! first; in ns-2 the rounding of its clock decides, so that its result can depend on the second at which it begins. So
//! a setting with a tie may differ from there on, and one without may not.

mod support;

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anabranch_proto::{Policies, Time};
use anabranch_sim::scenario::Document;
use anabranch_sim::trace::{Detail, DropCause, Names, Observer, Record, Side};
use anabranch_sim::{RunOptions, run, stream_seed};
use support::has_ns2;

/// Random settings.
const SETTINGS: u64 = 60;
/// Of them, at least as many send the same as ns-2 to the end.
const AGREE: usize = 41;
/// Seconds that each run lasts.
const END: u64 = 10;
/// Times differ by at most this, in seconds.
const TOLERANCE: f64 = 2e-5;
/// ns-2's draws of a TCP agent's clock phase, as fractions of a tick: each agent draws when it is made, and
/// again when the run begins.
const PHASES: [f64; 6] = [0.00034, 0.555_880_716, 0.014_204_660, 0.088_122_671, 0.441_173_382, 0.799_155_453];
/// A tick in nanoseconds.
const TICK: f64 = 1e7;

#[derive(Clone)]
struct Flow {
    kind: &'static str,
    access_rate: u64,
    /// One way, in nanoseconds.
    access_delay: u64,
    /// In nanoseconds.
    start: u64,
    /// Packets, or bytes for SCTP.
    window: u64,
    /// Bytes of a segment, or of a DATA chunk.
    size: u64,
    /// SACK blocks in an acknowledgement of TCP.
    blocks: u64,
}

struct Setting {
    rate: u64,
    /// One way, in nanoseconds.
    delay: u64,
    queue: u64,
    flows: Vec<Flow>,
}

/// Of each flow: when its data packets leave, in seconds, and their numbers from 1.
type Sent = Vec<Vec<(f64, u64)>>;

/// Draws by name, 16 bits each.
fn draws(name: &str) -> impl Iterator<Item = u64> + use<> {
    let name = name.to_owned();
    (0..).flat_map(move |block: u64| {
        let key = stream_seed(block, &name);
        key.as_chunks::<2>().0.iter().map(|pair| u64::from(u16::from_le_bytes(*pair))).collect::<Vec<_>>()
    })
}

fn setting(number: u64) -> Setting {
    let mut drawn = draws(&format!("full queue {number}"));
    let mut next = move || drawn.next().expect("endless");
    // Odd numbers, so that few events fall on the same moment.
    let mut between = |low: u64, high: u64| (low + (next() * 65_536 + next()) % (high - low)) | 1;
    let (rate, delay) = (between(300_000, 4_000_000), between(1_000_000, 60_000_000));
    let queue = between(3, 40);
    let kinds: &[&str] = match number % 3 {
        0 => &["tcp"],
        1 => &["tcp", "tcp", "tcp"][..2 + between(0, 100) as usize / 50],
        _ => &["sctp", "tcp", "tcp"][..2 + between(0, 100) as usize / 50],
    };
    let flow = |kind: &&str| {
        let (access_rate, access_delay) = (between(5_000_000, 80_000_000), between(500_000, 20_000_000));
        if *kind == "sctp" {
            let window = between(10_000, 150_000) / 4 * 4;
            return Flow {
                kind: "sctp",
                access_rate,
                access_delay,
                start: 500_000_000,
                window,
                size: 1448,
                blocks: 0,
            };
        }
        // TCP starts when the handshake of SCTP, whose packets have other sizes here, is over.
        let start = if kinds[0] == "sctp" { 1_500_000_000 } else { 0 } + between(0, 1_000_000_000);
        let kind = ["sack1", "sack1-2002"][between(0, 100) as usize / 50];
        let size = [536, 1000, 1448][between(0, 90) as usize / 30];
        let blocks = 1 + between(0, 90) / 30;
        Flow { kind, access_rate, access_delay, start, window: between(10, 100), size, blocks }
    };
    Setting { rate, delay, queue, flows: kinds.iter().map(flow).collect() }
}

fn seconds(nanos: u64) -> String {
    format!("{:.9}", nanos as f64 / 1e9)
}

/// What ns-2 sends if the run begins after so many whole seconds; times are counted from there.
fn theirs(setting: &Setting, begin: u64, trace: &Path) -> Sent {
    let flows = setting.flows.iter().map(|flow| {
        let Flow { kind, access_rate, access_delay, start, window, size, blocks } = flow;
        format!(
            "{kind} {access_rate} {} {} {window} {size} {blocks}",
            seconds(*access_delay),
            seconds(*start)
        )
    });
    let status = Command::new("ns")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/full_queue_beside_ns2.tcl"))
        .args([setting.rate.to_string(), seconds(setting.delay), setting.queue.to_string()])
        .args([begin.to_string(), END.to_string()])
        .arg(trace)
        .args(flows)
        .status();
    assert!(status.expect("ns runs").success(), "ns failed");
    let text = std::fs::read_to_string(trace).expect("ns wrote its trace");
    let mut sent: Sent = setting.flows.iter().map(|_| Vec::new()).collect();
    for fields in text.lines().map(|line| line.split(' ').collect::<Vec<_>>()) {
        let (number, data) = match fields[4] {
            "tcp" => (fields[10], fields[10] != "0"),
            _ => (fields[11], fields[6].ends_with('D')),
        };
        // The nodes 0 and 1 are the router and the sink.
        let source: usize = fields[2].parse().expect("a node");
        if fields[0] == "+" && source >= 2 && data {
            let time = fields[1].parse::<f64>().expect("a time") - begin as f64;
            sent[source - 2].push((time, number.parse().expect("a number")));
        }
    }
    sent
}

/// What leaves, and the first tie.
struct Seen {
    /// The size of a segment of each TCP; SCTP counts chunks.
    segments: Vec<Option<u64>>,
    queue: u64,
    link: usize,
    sent: Sent,
    departed: Option<Time>,
    arrived: Option<Time>,
    tie: Option<f64>,
}

impl Observer for Seen {
    fn begin(&mut self, names: &Names) {
        let bottleneck = ("bottleneck".to_owned(), "r>d".to_owned());
        self.link = names.links.iter().position(|link| *link == bottleneck).expect("a link");
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        match *record {
            Record::Detail { flow, side: Side::Client, detail: Detail::Sent { number, .. }, .. } => {
                let number = self.segments[flow].map_or(*number, |size| number / size + 1);
                self.sent[flow].push((at.as_secs_f64(), number));
            }
            Record::Departed { link, .. } if link == self.link => self.departed = Some(at),
            Record::Queued { link, queue, .. } if link == self.link => {
                self.arrives(at, u64::from(queue.packets) >= self.queue);
            }
            Record::Dropped { link, cause: DropCause::Queue, .. } if link == self.link => {
                self.arrives(at, true)
            }
            _ => {}
        }
    }
}

impl Seen {
    /// A packet arrives. `full`: it finds the queue full, or fills it.
    fn arrives(&mut self, at: Time, full: bool) {
        let together = self.arrived.replace(at) == Some(at);
        if together || full && self.departed == Some(at) {
            self.tie = self.tie.or(Some(at.as_secs_f64()));
        }
    }
}

/// What we send, and when the first tie was. `later`: nanoseconds by which the handshake of SCTP takes longer in ns-2.
fn ours(setting: &Setting, later: i64) -> Seen {
    let Setting { rate, delay, queue, flows } = setting;
    let mut text = format!(
        "era = 'ns2'\nstop = '{END} s'\n[[link]]\nname = 'bottleneck'\nbetween = ['r', 'd']\nrate = '{rate} bit/s'\ndelay = '{delay} ns'\nqueue = ['{queue} packets', '10000 packets']\n"
    );
    let mut drawing: Vec<usize> = (0..flows.len()).filter(|index| flows[*index].kind != "sctp").collect();
    if flows.len() == 3 {
        // ns-2 begins agents in the order of Tcl's array of nodes, in which the fifth node comes first.
        drawing.rotate_right(1);
    }
    for (index, flow) in flows.iter().enumerate() {
        let Flow { kind, access_rate, access_delay, start, window, size, blocks } = flow;
        let start = if *kind == "sctp" { start.saturating_add_signed(later) } else { *start };
        write!(
            text,
            "[[link]]\nname = 'a{index}'\nbetween = ['s{index}', 'r']\nrate = '{access_rate} bit/s'\ndelay = '{access_delay} ns'\nqueue = '10000 packets'\n\
             [[flow]]\nname = 'f{index}'\nfrom = 's{index}'\nto = 'd'\nstart = '{start} ns'\n"
        )
        .unwrap();
        if *kind == "sctp" {
            write!(
                text,
                "ip_header = '40 B'\nmessage_size = '{} B'\n[flow.sctp]\nfirst_tsn = 1\nreceive_buffer = '{window} B'\nsend_buffer = '100 MB'\ninitial_ssthresh = '65536 B'\nheartbeat_interval = '5000 s'\nmissing_reports = 4\nsack_every = 1\n",
                size - 16
            )
            .unwrap();
        } else {
            let turn = drawing.iter().position(|drawer| *drawer == index).expect("it draws");
            let phase = (PHASES[drawing.len() + turn] * TICK) as u64;
            write!(
                text,
                "protocol = 'tcp'\n[flow.tcp]\nvariant = '{kind}'\nsegment_size = '{size} B'\nreceive_window = '{window} packets'\nsack_blocks = {blocks}\nrto_phase = '{phase} ns'\n"
            )
            .unwrap();
        }
    }
    let document = Document::parse("setting.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let scenario =
        document.scenario("setting", &Policies::default()).unwrap_or_else(|error| panic!("{error}"));
    let segments = flows.iter().map(|flow| (flow.kind != "sctp").then_some(flow.size)).collect();
    let sent = flows.iter().map(|_| Vec::new()).collect();
    let mut seen = Seen { segments, queue: *queue, link: 0, sent, departed: None, arrived: None, tie: None };
    run(&scenario, RunOptions { observer: Some(&mut seen), ..RunOptions::default() }).expect("it runs");
    seen
}

/// By how many nanoseconds the first data of SCTP leaves later in ns-2, with nothing beside it.
fn later(setting: &Setting, trace: &Path) -> i64 {
    let Some(sctp) = setting.flows.iter().find(|flow| flow.kind == "sctp") else { return 0 };
    let alone = Setting { flows: vec![sctp.clone()], ..*setting };
    let (there, here) = (theirs(&alone, 0, trace)[0][0].0, ours(&alone, 0).sent[0][0].0);
    ((there - here) * 1e9).round() as i64
}

/// When the flows first differ, and how.
fn difference(there: &Sent, here: &Sent) -> Option<(f64, String)> {
    let of_flow = |(flow, (there, here)): (usize, (&Vec<(f64, u64)>, &Vec<(f64, u64)>))| {
        let same = |at: &usize| match (there.get(*at), here.get(*at)) {
            (Some(there), Some(here)) => there.1 == here.1 && (there.0 - here.0).abs() <= TOLERANCE,
            // One more may leave at the very end.
            (one, other) => one.is_none() && other.is_none() || there.len().abs_diff(here.len()) <= 1,
        };
        let at = (0..there.len().max(here.len())).find(|at| !same(at))?;
        let times = [there.get(at), here.get(at)].into_iter().flatten().map(|sent| sent.0);
        let what = format!("flow {flow}, packet {at}: {:?} there, {:?} here", there.get(at), here.get(at));
        Some((times.fold(f64::MAX, f64::min), what))
    };
    let differing = there.iter().zip(here).enumerate().filter_map(of_flow);
    differing.min_by(|a, b| a.0.total_cmp(&b.0))
}

#[test]
fn flows_over_a_full_queue_are_ns2s() {
    if !has_ns2("flows_over_a_full_queue_are_ns2s") {
        return;
    }
    let trace = std::env::temp_dir().join(format!("anabranch-full-queue-{}.tr", std::process::id()));
    let (mut after_ties, mut others, mut packets, mut untied) = (Vec::new(), Vec::new(), 0, 0);
    for number in 0..SETTINGS {
        let setting = setting(number);
        let here = ours(&setting, later(&setting, &trace));
        packets += here.sent.iter().map(Vec::len).sum::<usize>();
        untied += usize::from(here.tie.is_none());
        // The second of the beginning decides some ties.
        let from = |begin| difference(&theirs(&setting, begin, &trace), &here.sent);
        let Some((at, what)) =
            from(0).and_then(|first| from(1).map(|second| if second.0 > first.0 { second } else { first }))
        else {
            continue;
        };
        let tied = here.tie.is_some_and(|tie| tie <= at);
        let differing = if tied { &mut after_ties } else { &mut others };
        differing.push(format!("setting {number}, {:.3} s: {what}", at));
    }
    let _ = std::fs::remove_file(&trace);
    let agree = SETTINGS as usize - after_ties.len() - others.len();
    eprintln!(
        "{agree} of {SETTINGS} settings agree, {packets} packets; {untied} have no tie; {} part after a tie; the others: {others:#?}",
        after_ties.len()
    );
    assert!(others.is_empty(), "{others:#?}");
    assert!(agree >= AGREE, "{agree} of {SETTINGS} settings agree: {after_ties:#?}");
}
