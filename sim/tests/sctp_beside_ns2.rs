//! Era `ns2` beside ns-2's `Agent/SCTP` and the classes of its three cures. Each setting draws two paths, buffers, limits, and the packets that
//! each path loses. Every DATA packet that ns-2 sends must leave here at the same time, to 10 µs, on the same path. Needs `ns`.
//!
//! Rates and delays are odd numbers, so that few events fall on the same moment. Where two do, such as the end of SACK.Delay and the arrival
//! of the next packet, the rounding of ns-2's clock decides which comes first, and the setting may differ from there on.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anabranch_proto::wire::Chunk;
use anabranch_proto::{Policies, Time};
use anabranch_sim::scenario::Document;
use anabranch_sim::trace::{Names, Observer, Record, Side};
use anabranch_sim::{RunOptions, run, stream_seed};

/// Random settings.
const SETTINGS: u64 = 100;
/// At least this many of them agree in every packet.
const AGREE: usize = 93;
/// Times differ by at most this, in seconds: ns-2 prints them to a microsecond.
const TOLERANCE: f64 = 1e-5;

/// ns-2's class and the keys of `[flow.sctp]` that stand for it; messages of `Timestamp` are smaller by the option.
const CLASSES: [(&str, &str, u64); 4] = [
    ("Agent/SCTP", "", 1468),
    ("Agent/SCTP/HbAfterRto", "heartbeat_after_timeout = true\n", 1468),
    ("Agent/SCTP/MultipleFastRtx", "fast_retransmissions = 'per-recovery'\n", 1468),
    ("Agent/SCTP/Timestamp", "timestamps = true\n", 1456),
];
/// ns-2's `rtxToAlt_` 0, 1 and 2.
const POLICIES: [&str; 3] = ["same", "alternate", "timeout-alternate"];

/// One of two disjoint paths.
struct Link {
    rate: u64,
    /// One way, in nanoseconds, of which both edges take 20 ms.
    delay: u64,
    /// DATA packets that are lost, counted from 1 among the packets after the handshake; and SACKs.
    data_lost: Vec<u64>,
    sacks_lost: Vec<u64>,
}

struct Setting {
    class: usize,
    policy: usize,
    links: [Link; 2],
    receive_buffer: u64,
    ssthresh: u64,
    bytes: u64,
    path_max_retrans: u64,
    missing_reports: u64,
    burst: bool,
    delayed: bool,
}

/// A DATA packet: seconds from the first, TSN from 1, path.
type Sent = Vec<(f64, u64, u8)>;

/// Draws by name, 16 bits each.
fn draws(name: &str) -> impl Iterator<Item = u64> + use<> {
    let name = name.to_owned();
    (0..).flat_map(move |block: u64| {
        let key = stream_seed(block, &name);
        key.as_chunks::<2>().0.iter().map(|pair| u64::from(u16::from_le_bytes(*pair))).collect::<Vec<_>>()
    })
}

fn setting(number: u64) -> Setting {
    let mut draw = draws(&format!("setting {number}"));
    let mut next = move || draw.next().expect("endless");
    let mut pick = |choices: &[u64]| choices[next() as usize % choices.len()];
    let small: Vec<u64> = (0..900).collect();
    let mut link = |rates: &[u64], losses: &[u64]| {
        let (rate, delay) = (pick(rates), pick(&[30, 45, 100, 145, 300]));
        let (odd, later) = (pick(&small), pick(&small));
        let mut lost =
            |per_mille: u64| (1..1500).filter(|_| pick(&small) * 10 < per_mille * 9).collect::<Vec<u64>>();
        let data_lost = lost(losses[(rate % losses.len() as u64) as usize]);
        let sacks_lost = lost(if odd % 3 == 0 { 20 } else { 0 });
        Link { rate: rate + 2 * odd + 1, delay: delay * 1_000_000 + 1001 * later, data_lost, sacks_lost }
    };
    let links = [
        link(&[10_000_003, 5_000_002, 2_000_001, 1_000_000], &[5, 20, 50, 100]),
        link(&[10_000_001, 2_000_002, 384_000, 36_000], &[0, 10, 50]),
    ];
    Setting {
        class: pick(&[0, 0, 0, 0, 1, 2, 3]) as usize,
        policy: pick(&[0, 1, 2]) as usize,
        links,
        receive_buffer: pick(&[16_384, 32_768, 65_536, 131_072, 1_048_576]),
        ssthresh: pick(&[20_000, 65_536, 1_048_576]),
        bytes: pick(&[200_000, 500_000, 1_045_440]),
        path_max_retrans: pick(&[0, 2, 5, 5]),
        missing_reports: pick(&[3, 3, 4]),
        burst: pick(&[0, 1, 1, 1]) == 1,
        delayed: pick(&[0, 1, 1, 1]) == 1,
    }
}

/// Numbers of packets as ns-2 and we count them, with this many packets before the first one that the list means.
fn shifted(list: &[u64], before: u64) -> Vec<u64> {
    list.iter().map(|number| number + before).collect()
}

fn theirs(setting: &Setting, trace: &Path) -> Sent {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmt_drop_lists/droplist.tcl");
    let (class, _, chunk) = CLASSES[setting.class];
    let list = |list: Vec<u64>| list.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    let seconds = |nanos: u64| format!("{:.9}", nanos as f64 / 1e9);
    let [first, second] = &setting.links;
    // Counted from 0. Before them INIT, COOKIE ECHO and HEARTBEAT, or a HEARTBEAT, have passed.
    let keys = [
        ("class", class.to_owned()),
        ("policy", "0".to_owned()),
        ("rtxToAlt", setting.policy.to_string()),
        ("bw1", first.rate.to_string()),
        ("bw2", second.rate.to_string()),
        ("d1", seconds(first.delay)),
        ("d2", seconds(second.delay)),
        ("q", "1000".to_owned()),
        ("bytes", setting.bytes.to_string()),
        ("rwnd", setting.receive_buffer.to_string()),
        ("ssthresh", setting.ssthresh.to_string()),
        ("pmr", setting.path_max_retrans.to_string()),
        ("trig", setting.missing_reports.to_string()),
        ("burst", u8::from(setting.burst).to_string()),
        ("delsack", u8::from(setting.delayed).to_string()),
        ("chunk", chunk.to_string()),
        ("hb", "5000".to_owned()),
        ("hbr", "0".to_owned()),
        ("fdrop1", list(shifted(&first.data_lost, 2))),
        ("fdrop2", list(shifted(&second.data_lost, 0))),
        ("rdrop1", list(shifted(&first.sacks_lost, 2))),
        ("rdrop2", list(shifted(&second.sacks_lost, 0))),
    ];
    let words = keys.into_iter().flat_map(|(key, value)| [key.to_owned(), value]);
    let output =
        Command::new("ns").arg(script).args(words).arg("trace").arg(trace).output().expect("ns runs");
    assert!(output.status.success(), "ns: {}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(trace).expect("ns wrote its trace");
    let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let path = |node: &str| ["2", "4"].iter().position(|sender| *sender == node);
    let sent = fields.filter(|f| f[0] == "+" && f[6].ends_with('D')).filter_map(|f| {
        let (time, tsn): (f64, u64) = (f[1].parse().expect("a time"), f[11].parse().expect("a TSN"));
        path(f[2]).map(|path| (time, tsn, path as u8 + 1))
    });
    since_the_first(sent.collect())
}

fn since_the_first(mut sent: Sent) -> Sent {
    let begun = sent.first().expect("data was sent").0;
    sent.iter_mut().for_each(|(time, ..)| *time -= begun);
    sent
}

fn document(setting: &Setting) -> String {
    let mut text = String::from("era = 'ns2'\n");
    for (index, link) in setting.links.iter().enumerate() {
        let path = index + 1;
        for (name, from, to) in
            [("in", "s".to_owned(), format!("a{path}")), ("out", format!("b{path}"), "r".to_owned())]
        {
            write!(
                text,
                "[[link]]\nname = '{name}{path}'\nbetween = ['{from}', '{to}']\nrate = '100 Mbit/s'\ndelay = '10 ms'\nqueue = '1000 packets'\n"
            )
            .unwrap();
        }
        // Our receiver verifies path 2, too: a HEARTBEAT and its answer more have passed there.
        let [data, sacks] = [&link.data_lost, &link.sacks_lost].map(|list| shifted(list, [3, 2][index]));
        write!(
            text,
            "[[link]]\nname = 'core{path}'\nbetween = ['a{path}', 'b{path}']\nrate = '{} bit/s'\ndelay = '{} ns'\nqueue = '1000 packets'\nloss = [{{ packets = {data:?} }}, {{ packets = {sacks:?} }}]\n",
            link.rate,
            link.delay - 20_000_000
        )
        .unwrap();
    }
    let Setting { receive_buffer, ssthresh, bytes, path_max_retrans, missing_reports, .. } = setting;
    write!(
        text,
        "[[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nsend = '{bytes} B'\nstart = '500 ms'\n[flow.sctp]\nprimary = 'in1'\nretransmit = '{}'\nreceive_buffer = '{receive_buffer} B'\nsend_buffer = '100 MB'\ninitial_ssthresh = '{ssthresh} B'\nheartbeat_interval = '5000 s'\npath_max_retrans = {path_max_retrans}\nassociation_max_retrans = 10\nmissing_reports = {missing_reports}\nburst = '{}'\nsack_every = {}\n{}",
        POLICIES[setting.policy],
        if setting.burst { "when-armed" } else { "off" },
        if setting.delayed { 2 } else { 1 },
        CLASSES[setting.class].1,
    )
    .unwrap();
    text
}

/// What leaves the sender.
#[derive(Default)]
struct Seen {
    first: Option<u32>,
    sent: Sent,
}

impl Observer for Seen {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, at: Time, record: &Record<'_>) {
        let Record::Sent { side: Side::Client, path: Some(path), packet, .. } = record else { return };
        for chunk in packet.sctp().map(|packet| &packet.chunks[..]).unwrap_or_default() {
            if let Chunk::Data(data) = chunk {
                let first = *self.first.get_or_insert(data.tsn.0);
                let tsn = u64::from(data.tsn.0.wrapping_sub(first)) + 1;
                self.sent.push((at.as_secs_f64(), tsn, if path.ends_with('1') { 1 } else { 2 }));
            }
        }
    }
}

fn ours(setting: &Setting) -> Sent {
    let text = document(setting);
    let scenario =
        Document::parse("setting", &text).and_then(|d| d.scenario("setting", &Policies::default()));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut seen = Seen::default();
    run(&scenario, RunOptions { observer: Some(&mut seen), ..RunOptions::default() }).expect("it runs");
    since_the_first(seen.sent)
}

/// What differs first, if anything, while ns-2 runs, which ends when all has arrived.
fn difference(there: &Sent, here: &Sent) -> Option<String> {
    if here.len() < there.len() {
        return Some(format!("{} packets there, {} here", there.len(), here.len()));
    }
    let same =
        |a: &(f64, u64, u8), b: &(f64, u64, u8)| (a.1, a.2) == (b.1, b.2) && (a.0 - b.0).abs() <= TOLERANCE;
    let differs = there.iter().zip(here).find(|(there, here)| !same(there, here));
    differs.map(|(there, here)| format!("{there:?} there, {here:?} here"))
}

#[test]
fn era_ns2_sends_what_ns2_sends() {
    if Command::new("ns").arg("/dev/null").output().is_err() {
        assert!(std::env::var("ANABRANCH_REQUIRE").as_deref() != Ok("all"), "skipped: there is no `ns`");
        eprintln!("skipped: era_ns2_sends_what_ns2_sends: there is no `ns`");
        return;
    }
    let trace = std::env::temp_dir().join(format!("anabranch-sctp-{}.tr", std::process::id()));
    let mut differing = Vec::new();
    let mut packets = 0;
    for number in 0..SETTINGS {
        let setting = setting(number);
        let there = theirs(&setting, &trace);
        packets += there.len();
        if let Some(what) = difference(&there, &ours(&setting)) {
            let (class, policy) = (CLASSES[setting.class].0, POLICIES[setting.policy]);
            differing.push(format!("setting {number}, {class}, {policy}: {what}"));
        }
    }
    let _ = std::fs::remove_file(&trace);
    let agree = SETTINGS as usize - differing.len();
    eprintln!(
        "{agree} of {SETTINGS} settings agree in every packet, {packets} in all; the others: {differing:#?}"
    );
    assert!(agree >= AGREE, "{agree} of {SETTINGS} settings agree");
}
