//! What we send.

use std::fmt::Write;

use anabranch_proto::wire::Chunk;
use anabranch_proto::{Policies, Time};
use anabranch_sim::scenario::Document;
use anabranch_sim::trace::{Detail, Names, Observer, Record, Side};
use anabranch_sim::{RunOptions, run};

use crate::coins_of_ns2::with_coins;
use crate::setting::{CLASSES, CMT_POLICIES, Class, DATAGRAM, Load, POLICIES, QUEUE, Setting};
use crate::{Sent, since_the_first};

/// Numbers of packets as we count them, from 1, with this many packets before the first one that the list means.
fn shifted(list: &[u64], before: u64) -> Vec<u64> {
    list.iter().map(|number| number + before).collect()
}

fn links(setting: &Setting, text: &mut String) {
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
        // Our receiver verifies the other paths, too: a HEARTBEAT and its answer more have passed there.
        let [data, sacks] =
            [&link.data_lost, &link.sacks_lost].map(|list| shifted(list, if index == 0 { 3 } else { 2 }));
        write!(
            text,
            "[[link]]\nname = 'core{path}'\nbetween = ['a{path}', 'b{path}']\nrate = '{} bit/s'\ndelay = '{} ns'\nqueue = '{QUEUE} packets'\nloss = [{{ packets = {data:?} }}, {{ packets = {sacks:?} }}]\n",
            link.rate,
            link.delay - 20_000_000,
        )
        .unwrap();
    }
}

fn class(setting: &Setting, text: &mut String) {
    match setting.class {
        Class::One { class, policy } => {
            write!(text, "retransmit = '{}'\n{}", POLICIES[policy], CLASSES[class].1).unwrap();
        }
        Class::Cmt { policy, sfr, cuc, dac, pf } => {
            let (cuc, dac) = (if cuc { "'v2'" } else { "'off'" }, if dac { "'literal'" } else { "false" });
            let policy = match CMT_POLICIES[policy] {
                "rtx-lossrate" => {
                    let rates = &["0.01", "0.02", "0.03"][..setting.links.len()].join(", ");
                    format!("{{ name = 'rtx-lossrate', rates = [{rates}] }}")
                }
                other => format!("'{other}'"),
            };
            write!(text, "cmt = true\nretransmit = {policy}\nsfr = {sfr}\ncuc = {cuc}\ndac = {dac}\n")
                .unwrap();
            if pf {
                text.push_str("pf_max_retrans = 0\n");
            }
        }
    }
}

/// The scenario. `first`: when the first DATA leaves; `last`: how many seconds later the last one leaves.
fn document(setting: &Setting, first: Time, last: f64) -> String {
    let mut text = String::from("era = 'ns2'\n");
    let after = |ms: u64| first.as_nanos() + ms * 1_000_000;
    if setting.cross.is_some() || matches!(setting.load, Load::Chunks { .. }) {
        // ns-2 ends when all has arrived.
        writeln!(text, "stop = '{} ns'", after((1000.0 * last) as u64 + 10)).unwrap();
    }
    links(setting, &mut text);
    if let Some(outage) = &setting.outage {
        for (ms, loss) in [(outage.begin_ms, "100 %"), (outage.end_ms, "0 %")] {
            let (at, path) = (after(ms), outage.path + 1);
            write!(text, "[[change]]\nat = '{at} ns'\nlink = 'core{path}'\nloss = '{loss}'\n").unwrap();
        }
    }
    if let Some(interval) = setting.cross {
        let message = DATAGRAM - 28;
        // The sender's link takes 80 ns for a datagram.
        let (start, rate) = (first.as_nanos() + interval * 1000 - 80, message * 8 * 1_000_000 / interval);
        for (name, node, core) in [("enter", "x", "a1"), ("leave", "y", "b1")] {
            write!(text, "[[link]]\nname = '{name}'\nbetween = ['{node}', '{core}']\nrate = '100 Gbit/s'\ndelay = '0 ns'\n").unwrap();
        }
        write!(text, "[[flow]]\nname = 'beside'\nfrom = 'x'\nto = 'y'\nprotocol = 'udp'\nmessage_size = '{message} B'\nrate = '{rate} bit/s'\nstart = '{start} ns'\n").unwrap();
    }
    let send = match setting.load {
        Load::Bytes(bytes) => format!("send = '{bytes} B'"),
        Load::Chunks { size, streams, unordered, .. } => {
            format!("message_size = '{} B'\nstreams = {streams}\nunordered = {unordered}", size - 16)
        }
    };
    let Setting { receive_buffer, ssthresh, path_max_retrans, missing_reports, rto_min_ms, .. } = setting;
    write!(
        text,
        "[[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\n{send}\nstart = '500 ms'\n[flow.sctp]\nprimary = 'in1'\nreceive_buffer = '{receive_buffer} B'\nsend_buffer = '100 MB'\ninitial_ssthresh = '{ssthresh} B'\nheartbeat_interval = '5000 s'\npath_max_retrans = {path_max_retrans}\nassociation_max_retrans = 10\nmissing_reports = {missing_reports}\nrto_min = '{rto_min_ms} ms'\nburst = '{}'\nsack_every = {}\nsack_delay = '{} ms'\n",
        match (setting.burst, &setting.class) {
            (false, _) => "off",
            (true, Class::One { .. }) => "when-armed",
            (true, Class::Cmt { .. }) => "once-armed",
        },
        if setting.delayed { 2 } else { 1 },
        setting.sack_delay_ms,
    )
    .unwrap();
    class(setting, &mut text);
    text
}

/// What leaves the sender.
#[derive(Default)]
struct Seen {
    first: Option<(Time, u32)>,
    sent: Sent,
    /// When the last SACK left.
    sack: Option<Time>,
    /// When a chunk first arrived at the moment at which a SACK had left.
    tie: Option<Time>,
}

impl Observer for Seen {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, at: Time, record: &Record<'_>) {
        let (path, packet) = match record {
            Record::Sent { side: Side::Client, path: Some(path), packet, .. } => (path, packet),
            Record::Sent { side: Side::Server, .. } => return self.sack = Some(at),
            Record::Detail { side: Side::Server, detail: Detail::Received { .. }, .. } => {
                self.tie = self.tie.or(self.sack.filter(|sack| *sack == at));
                return;
            }
            _ => return,
        };
        let path = path.chars().last().and_then(|digit| digit.to_digit(10)).unwrap_or(0);
        for chunk in packet.sctp().map(|packet| &packet.chunks[..]).unwrap_or_default() {
            if let Chunk::Data(data) = chunk {
                let (_, first) = *self.first.get_or_insert((at, data.tsn.0));
                let tsn = u64::from(data.tsn.0.wrapping_sub(first)) + 1;
                self.sent.push((at.as_secs_f64(), tsn, path as u8));
            }
        }
    }
}

fn simulate(text: &str, policies: Policies) -> Seen {
    let scenario = Document::parse("setting", text).and_then(|d| d.scenario("setting", &policies));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut seen = Seen::default();
    let options = RunOptions { observer: Some(&mut seen), policies, ..RunOptions::default() };
    run(&scenario, options).expect("it runs");
    seen
}

/// What we send, and when the order of two events at the receiver first depended on the rounding of ns-2's clock:
/// SACK.Delay ended as a packet arrived. The coins of ns-2's policies fall as it `sends` tell.
pub(crate) fn ours(setting: &Setting, sends: &Sent) -> (Sent, Option<f64>) {
    let cmt = matches!(setting.class, Class::Cmt { .. });
    let timed =
        setting.outage.is_some() || setting.cross.is_some() || matches!(setting.load, Load::Chunks { .. });
    let (mut first, mut policies) = (Time::ZERO, Policies::default());
    if cmt || timed {
        let until_first = Setting { outage: None, cross: None, load: Load::Bytes(1000), ..setting.clone() };
        let probe = simulate(&document(&until_first, first, 1.0), policies.clone());
        let (at, tsn) = probe.first.expect("data was sent");
        first = at;
        policies = if cmt {
            with_coins("rtx-cwnd", sends.iter().map(|(_, tsn, path)| (*tsn as u32, *path)), tsn)
        } else {
            policies
        };
    }
    let last = sends.last().expect("data was sent").0;
    let seen = simulate(&document(setting, first, last), policies);
    let (first, _) = seen.first.expect("data was sent");
    (since_the_first(seen.sent), seen.tie.map(|tie| tie.since(first).as_secs_f64()))
}
