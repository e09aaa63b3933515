//! Multipath TCP: what two paths carry, one path beside TCP, coupled windows, and that every byte arrives whatever
//! happens.
//!
//! `ANABRANCH_RUNS=100000` makes so many random runs instead of 300; `ANABRANCH_FIRST` is the seed of the first.

use anabranch_proto::{Duration, Policies, Time};
use anabranch_sim::results::{FlowResult, RunResult};
use anabranch_sim::scenario::Document;
use anabranch_sim::trace::{Contents, Names, Observer, Record, Side};
use anabranch_sim::{RunOptions, run};

fn result_with(text: &str, options: RunOptions<'_>) -> RunResult {
    let document =
        Document::parse("test.toml", text).unwrap_or_else(|e| panic!("{}\n{text}", e.render(false)));
    let scenario = document
        .scenario("test", &Policies::default())
        .unwrap_or_else(|e| panic!("{}\n{text}", e.render(false)));
    run(&scenario, options).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn result(text: &str) -> RunResult {
    result_with(text, RunOptions::default())
}

/// Links between two nodes: Mbit/s, milliseconds, and what else a link has.
fn links(paths: &[(u32, u32, &str)]) -> String {
    let link = |(number, (rate, delay, more)): (usize, &(u32, u32, &str))| {
        format!(
            "[[link]]\nname = 'l{number}'\nbetween = ['a', 'b']\nrate = '{rate} Mbit/s'\ndelay = '{delay} ms'\n{more}\n"
        )
    };
    paths.iter().enumerate().map(link).collect()
}

const QUEUE: &str = "queue = '100 packets'";

/// A flow over these links, with these keys of its own and of `[flow.mptcp]`.
fn flow(top: &str, paths: &[(u32, u32, &str)], own: &str, keys: &str) -> String {
    let links = links(paths);
    format!(
        "{top}\n{links}[[flow]]\nname = 'f'\nfrom = 'a'\nto = 'b'\nprotocol = 'mptcp'\n{own}\n[flow.mptcp]\n{keys}\n"
    )
}

/// Of each packet of 1500 bytes 1436 are user data: IP and TCP take 40, a mapping with its acknowledgement 24.
#[test]
fn loss_free_paths_carry_what_their_rates_allow() {
    let top = "stop = '25 s'\nmeasure = ['10 s', '25 s']";
    for (first, second, delay) in [(20, 20, 5), (20, 20, 30), (20, 5, 10), (5, 20, 30)] {
        for window in ["standard", "lia"] {
            let keys = format!("receive_buffer = '8 MiB'\nwindow = '{window}'");
            let text = flow(top, &[(first, 10, QUEUE), (second, delay, QUEUE)], "", &keys);
            let goodput = result(&text).flows[0].measured.as_ref().expect("it is measured").goodput;
            let part = goodput / (f64::from(first + second) * 1e6 * 1436.0 / 1500.0);
            assert!((0.97..1.01).contains(&part), "{first}+{second} Mbit/s, {delay} ms, {window}: {part}");
        }
    }
}

/// With one path it is TCP with smaller segments: as many of them, at nearly the same times. The options make each
/// packet 24 bytes longer, so TCP gets an IP header that much longer; beside DATA_ACK there is room for three SACK
/// blocks.
#[test]
fn one_path_is_tcp() {
    for loss in ["0 %", "1 %"] {
        let path = format!("{QUEUE}\nloss = ['{loss}', '0 %']");
        let multipath = flow("stop = '100 s'", &[(10, 20, &path)], "send = '2872 kB'", "");
        let tcp = multipath
            .replace("protocol = 'mptcp'", "protocol = 'tcp'\nip_header = '44 B'")
            .replace("[flow.mptcp]", "[flow.tcp]\nsack_blocks = 3\nsegment_size = '1436 B'");
        let [multipath, tcp] = [multipath, tcp].map(|text| result(&text).flows.remove(0));
        let times = [&multipath, &tcp].map(|flow| flow.completion.expect("it is complete"));
        assert!((times[0] / times[1] - 1.0).abs() < 0.01, "{loss}: {times:?} s");
        assert!(
            multipath.packets.abs_diff(tcp.packets) <= 2,
            "{loss}: {} and {}",
            multipath.packets,
            tcp.packets
        );
    }
}

/// A loss leaves half of five segments and not four of them, and the timeouts of a segment in a row cut ssthresh once,
/// whatever the window.
//= rfc5681#section-3.1
#[test]
fn every_window_has_the_thresholds_of_tcp() {
    let ssthresh = |window: &str, lost: &str| {
        let path = format!("{QUEUE}\nloss = [{{ flow = 'f', data = [{lost}] }}, '0 %']");
        let keys =
            format!("window = '{window}'\ninitial_window = '5 packets'\ninitial_ssthresh = '5 packets'");
        let flow = result(&flow("", &[(10, 10, &path)], "send = '10052 B'", &keys)).flows.remove(0);
        flow.paths[0].ssthresh.expect("it is set")
    };
    for window in ["standard", "lia", "olia", "balia"] {
        assert_eq!(ssthresh(window, "1"), 5 * 1436 / 2, "{window}: one loss");
        assert_eq!(ssthresh(window, "1, 2, 3, 4, 5, 6, 7"), 5 * 1436 / 2, "{window}: three timeouts");
    }
}

fn has_all(flow: &FlowResult, bytes: u64, text: &str) {
    assert_eq!((flow.delivered, flow.outcome), (bytes, "closed"), "{text}");
    let blocks: f64 = flow.paths.iter().map(|path| path.blocks).sum();
    let blocked = flow.blocked.peer_window + flow.blocked.send_buffer;
    assert!((blocks - blocked).abs() < 1e-6, "{blocks} s by path, {blocked} s in all\n{text}");
}

#[test]
fn a_connection_outlives_a_path() {
    for down in ["[['0.5 s', '2 s']]", "[['0.5 s']]"] {
        let cut = format!("{QUEUE}\ndown = {down}");
        let text = flow("stop = '900 s'", &[(10, 10, &cut), (10, 20, QUEUE)], "send = '3 MB'", "");
        let flow = result(&text).flows.remove(0);
        has_all(&flow, 3_000_000, &text);
        assert!(flow.completion.expect("it is complete") < 4.0, "{:?}", flow.completion);
        assert!(flow.paths[1].reinjected > 0, "what the first path held went by the second");
        assert!(flow.outages[0].detected.expect("it is noticed") < 1.2, "{:?}", flow.outages);
    }
}

/// The packets that the client sends on the first path, and the times of those with FIN.
#[derive(Default)]
struct Fins {
    packets: u64,
    /// The number of the packet, counted from 1, and when it leaves.
    fins: Vec<(u64, Time)>,
}

impl Observer for Fins {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, at: Time, record: &Record<'_>) {
        if let Record::Sent { side: Side::Client, path: Some("l0"), packet, .. } = record {
            self.packets += 1;
            if matches!(packet.contents, Contents::Tcp(tcp) if tcp.segment.fin) {
                self.fins.push((self.packets, at));
            }
        }
    }
}

/// The other subflow waits for its own FIN. The first does not wait for that: its RTO is 1 s, the other's round trip
/// 1.2 s.
#[test]
fn a_lost_fin_goes_again_after_a_timeout() {
    let fins = |loss: &str| {
        let path = format!("{QUEUE}\nloss = [{loss}, '0 %']");
        let text = flow("stop = '100 s'", &[(10, 10, &path), (10, 600, QUEUE)], "send = '5 MB'", "");
        let mut seen = Fins::default();
        result_with(&text, RunOptions { observer: Some(&mut seen), ..RunOptions::default() });
        seen.fins
    };
    let without = fins("'0 %'");
    assert_eq!(without.len(), 1, "{without:?}");
    let number = without[0].0;
    let lost = fins(&format!("{{ packets = [{number}, {}, {}] }}", number + 1, number + 2));
    assert_eq!(lost[0], without[0], "{lost:?}");
    let waits: Vec<_> = lost.windows(2).map(|pair| pair[1].1.since(pair[0].1)).collect();
    assert_eq!(waits, [1, 2].map(Duration::from_secs), "then nobody waits for it any longer");
}

#[test]
fn a_backup_carries_nothing_until_it_is_needed() {
    let chunks = |keys: &str, down: &str| {
        let path = format!("{QUEUE}\ndown = {down}");
        let text = flow("stop = '100 s'", &[(10, 10, &path), (10, 20, QUEUE)], "send = '3 MB'", keys);
        let flow = result(&text).flows.remove(0);
        has_all(&flow, 3_000_000, &text);
        flow.paths[1].chunks
    };
    assert!(chunks("", "[]") > 500);
    assert!(chunks("backup = ['l1']", "[]") <= 1, "no more than FIN");
    assert!(chunks("backup = ['l1']", "[['0.5 s', '60 s']]") > 500);
    let asked = chunks("priorities = [{ at = '0.3 s', path = 'l1', backup = true }]", "[]");
    assert!((50..400).contains(&asked), "MP_PRIO stops it: {asked} segments");
}

#[test]
fn a_server_without_multipath_gets_plain_tcp() {
    let text = flow("", &[(10, 10, QUEUE), (10, 20, QUEUE)], "send = '1 MB'", "server_multipath = false");
    let flow = result(&text).flows.remove(0);
    assert_eq!((flow.delivered, flow.outcome, flow.paths[1].chunks), (1_000_000, "closed", 0));
    let states: Vec<_> = flow.paths.iter().map(|path| path.state).collect();
    assert_eq!(states, ["active", "unconfirmed"]);
    assert!((0.3..0.9).contains(&flow.blocked.cwnd), "of 0.9 s: {:?}", flow.blocked);
    let slow = text.replace("send = '1 MB'", "send = '1 MB'\nread = '1 Mbit/s'");
    let slow = slow.replace("server_multipath", "receive_buffer = '64 KiB'\nserver_multipath");
    let flow = result(&slow).flows.remove(0);
    let full = flow.blocked.peer_window + flow.blocked.send_buffer;
    assert!(full > 6.0 && (flow.paths[0].blocks - full).abs() < 1e-9, "of 8 s: {:?}", flow.blocked);
}

/// The round trip is longer than the timeout of a SYN, so the SYN and its answer come twice. What the application has
/// written is sent once.
#[test]
fn a_fallback_that_is_told_twice_happens_once() {
    let text = flow("", &[(10, 700, QUEUE)], "send = '100 B'", "server_multipath = false");
    let flow = result(&text).flows.remove(0);
    assert_eq!((flow.delivered, flow.outcome), (100, "closed"));
}

/// When a connection with one path and this data is closed.
fn closed(path: &str, own: &str) -> f64 {
    let result = result(&flow("", &[(10, 10, &format!("{QUEUE}\n{path}"))], own, ""));
    assert_eq!((result.flows[0].missing, result.flows[0].outcome), (None, "closed"), "{path}");
    result.ended
}

/// The first data goes with the keys and has no DATA_FIN. That follows at once when the keys have arrived, and not
/// after a timeout.
#[test]
fn data_fin_follows_the_keys() {
    let ended = closed("", "send = '1 B'");
    assert!(ended < 0.3, "an acknowledgement is delayed by 0.2 s: {ended} s");
}

/// The packets of the client are SYN, the data, DATA_FIN nine times, which are lost. The tenth leaves after 1 + 2 + … +
/// 32 s and three times 60 s, `rto_max`.
#[test]
fn data_fin_is_repeated_as_often_as_a_segment() {
    let ended = closed("loss = [{ packets = [3, 4, 5, 6, 7, 8, 9, 10, 11] }, '0 %']", "send = '1 B'");
    assert!((243.0..244.0).contains(&ended), "{ended} s");
}

/// The last data and all copies of DATA_FIN, from 2 s on, are lost until 100 s. The data arrives with the timeout after
/// 1 + 2 + … + 32 + 60 s, and DATA_FIN follows.
#[test]
fn data_fin_follows_the_last_data_after_an_outage() {
    let ended = closed("down = [['1 s', '100 s']]", TWO_MESSAGES);
    assert!((125.0..126.0).contains(&ended), "{ended} s");
}

/// 100 bytes at the beginning, and 100 bytes after two seconds.
const TWO_MESSAGES: &str = "send = '200 B'\nrate = '400 bit/s'\nmessage_size = '100 B'";

/// The last acknowledgement is lost. The other end repeats its FIN after a second, and that is answered although all is
/// over here.
#[test]
fn a_closed_subflow_answers_a_fin_that_comes_twice() {
    let ended = closed("loss = [{ packets = [5] }, '0 %']", "send = '1 B'");
    assert!((1.2..1.4).contains(&ended), "{ended} s");
}

/// When the other end's DATA_FIN arrives, data is missing on the first path, which has come by the second, and nothing
/// comes back on the second. Although both subflows have timeouts, one tells the other end that its DATA_FIN has
/// arrived.
#[test]
fn data_fin_is_acknowledged_by_whichever_subflow_is_left() {
    let first = format!("{QUEUE}\nloss = [{{ packets = [4, 5] }}, '0 %']");
    let second = format!("{QUEUE}\nloss = ['0 %', {{ packets = [3, 4, 5, 6, 7, 8] }}]");
    let text = flow("", &[(10, 10, &first), (10, 20, &second)], TWO_MESSAGES, "");
    let result = result(&text);
    has_all(&result.flows[0], 200, &text);
    assert!(result.ended < 10.0, "{} s", result.ended);
}

/// Nobody answers any more after the data is acknowledged: the connection is lost, and does not stay open for good.
#[test]
fn a_connection_is_lost_if_nobody_answers_data_fin() {
    let path = format!("{QUEUE}\nloss = [{{ packets = [3] }}, '0 %']\ndown = [['0.5 s']]");
    let result = result(&flow("", &[(10, 10, &path)], "send = '1 B'", ""));
    assert_eq!((result.flows[0].delivered, result.flows[0].outcome), (1, "lost"));
    assert!(result.ended < 1000.0, "{} s", result.ended);
}

/// The first path fails for good. Before that ADD_ADDR was lost; or the last segment of MP_JOIN is lost again and
/// again. Neither is repeated for ever.
#[test]
fn a_run_ends_although_a_subflow_never_begins() {
    let down = |at: &str| format!("{QUEUE}\ndown = [['{at}']]");
    let unheard = [(10, 10, &*down("35 ms")), (10, 20, QUEUE)];
    let proofs = format!("{}\nloss = [{{ packets = [2, 3, 4, 5] }}, '0 %']", down("0.5 s"));
    let unproved = [(10, 10, &*down("0.5 s")), (10, 20, &*proofs)];
    for paths in [unheard, unproved] {
        let result = result(&flow("stop = '2000 s'", &paths, "send = '2 MB'", ""));
        assert_eq!(result.flows[0].outcome, "lost");
        assert!(result.ended < 700.0, "{} s", result.ended);
    }
}

/// Each address of the server costs a round trip until it is confirmed, and not a timeout.
#[test]
fn addresses_are_announced_one_after_the_other() {
    let text = flow("", &[(10, 10, QUEUE); 5], "send = '2 MB'", "");
    let flow = result(&text).flows.remove(0);
    has_all(&flow, 2_000_000, &text);
    assert!(flow.completion.is_some_and(|at| at < 0.8), "{:?}", flow.completion);
    let chunks: Vec<_> = flow.paths.iter().map(|path| path.chunks).collect();
    assert!(chunks.iter().all(|chunks| *chunks > 150), "{chunks:?}");
}

/// Nothing is lost. While the reader is slow, windows are advertised again and again on the slow path, which is still
/// waiting for its first acknowledgement. Without SACK too they are no duplicates.
//= rfc8684#section-3.4.1
#[test]
fn a_window_that_opens_is_no_sign_of_a_loss() {
    let own = "send = '1 MB'\nread = '2 Mbit/s'";
    for scheduler in ["round-robin", "lowest-rtt", "window-share"] {
        let keys = format!("variant = 'newreno'\nreceive_buffer = '20 kB'\nnew = '{scheduler}'");
        let text = flow("", &[(10, 10, QUEUE), (2, 300, QUEUE)], own, &keys);
        let flow = result(&text).flows.remove(0);
        has_all(&flow, 1_000_000, &text);
        assert_eq!((flow.fast_recoveries, flow.duplicates), (0, 0), "{scheduler}");
    }
}

#[test]
fn a_full_mesh_has_a_subflow_for_every_pair() {
    let links: String = [("s1", "s", "x"), ("s2", "s", "x"), ("r1", "x", "r"), ("r2", "x", "r")]
        .iter()
        .map(|(name, a, b)| {
            format!("[[link]]\nname = '{name}'\nbetween = ['{a}', '{b}']\nrate = '10 Mbit/s'\ndelay = '5 ms'\n{QUEUE}\n")
        })
        .collect();
    let flow = "[[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nprotocol = 'mptcp'\nsend = '3 MB'\n[flow.mptcp]\npath_manager = ";
    for (manager, paths) in [("fullmesh", 4), ("one-per-interface", 2)] {
        let text = format!("{links}{flow}'{manager}'\n");
        let flow = result(&text).flows.remove(0);
        has_all(&flow, 3_000_000, &text);
        assert_eq!(flow.paths.iter().filter(|path| path.chunks > 100).count(), paths, "{manager}");
    }
}

/// A phone with two networks, and a server with one address.
#[test]
fn each_interface_of_the_client_joins_a_server_with_one_address() {
    let links: String = [("wifi", "s", "x", 10), ("lte", "s", "x", 10), ("access", "x", "r", 100)]
        .iter()
        .map(|(name, a, b, rate)| {
            format!("[[link]]\nname = '{name}'\nbetween = ['{a}', '{b}']\nrate = '{rate} Mbit/s'\ndelay = '5 ms'\n{QUEUE}\n")
        })
        .collect();
    let flow = "[[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nprotocol = 'mptcp'\nsend = '5 MB'\n";
    let text = format!("{links}{flow}");
    let flow = result(&text).flows.remove(0);
    has_all(&flow, 5_000_000, &text);
    let names: Vec<_> = flow.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["lte", "wifi"]);
    assert!(flow.paths.iter().all(|path| path.chunks > 1000) && flow.goodput > 15e6, "{}", flow.goodput);
}

/// Two subflows through one link, beside one flow of TCP, 0.1 % random loss and room for all: coupled windows together
/// take about what TCP takes, uncoupled ones twice that.
#[test]
fn coupled_windows_are_as_aggressive_as_one_flow() {
    let ratio = |window: &str| {
        let text = format!(
            "stop = '400 s'\n\
             [[link]]\nname = 'one'\nbetween = ['s', 'x']\nrate = '1 Gbit/s'\ndelay = '1 ms'\n\
             [[link]]\nname = 'two'\nbetween = ['s', 'x']\nrate = '1 Gbit/s'\ndelay = '1 ms'\n\
             [[link]]\nname = 'shared'\nbetween = ['x', 'y']\nrate = '1 Gbit/s'\ndelay = '48 ms'\nloss = '0.1 %'\n\
             [[link]]\nname = 'three'\nbetween = ['y', 'r']\nrate = '1 Gbit/s'\ndelay = '1 ms'\n\
             [[link]]\nname = 'four'\nbetween = ['y', 'r']\nrate = '1 Gbit/s'\ndelay = '1 ms'\n\
             [[flow]]\nname = 'm'\nfrom = 's'\nto = 'r'\nprotocol = 'mptcp'\n[flow.mptcp]\nwindow = '{window}'\nreceive_buffer = '8 MiB'\n\
             [[flow]]\nname = 't'\nfrom = 's'\nto = 'r'\nprotocol = 'tcp'\n[flow.tcp]\nreceive_window = '8 MiB'\n"
        );
        let flows = result(&text).flows;
        flows[0].goodput / flows[1].goodput
    };
    for window in ["lia", "olia", "balia"] {
        let ratio = ratio(window);
        assert!((0.75..1.4).contains(&ratio), "{window}: {ratio}");
    }
    let uncoupled = ratio("standard");
    assert!((1.7..2.3).contains(&uncoupled), "uncoupled: {uncoupled}");
}

/// Numbers that a seed gives (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)) % limit
    }

    fn one_of<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A random scenario, and how many bytes it sends.
fn random(seed: u64) -> (String, u64) {
    let mut n = Numbers(seed);
    let mut paths = Vec::new();
    let count = 1 + n.below(3);
    for path in 0..count {
        let mut more = format!("queue = '{} packets'", 3 + n.below(40));
        more += &format!("\nloss = ['{} %', '{} %']", n.below(12), n.below(8));
        if n.below(2) == 0 {
            more += &format!("\njitter = '{} ms'\nreorder = true", n.below(40));
        }
        // The first path may be cut after the connection is there.
        if n.below(3) == 0 {
            let from = if path == 0 { 2000 } else { 0 } + n.below(6000);
            more += &format!("\ndown = [['{from} ms', '{} ms']]", from + 1 + n.below(9000));
        }
        paths.push((1 + n.below(20) as u32, n.below(120) as u32, more));
    }
    let paths: Vec<_> = paths.iter().map(|(rate, delay, more)| (*rate, *delay, more.as_str())).collect();
    let bytes = 1 + n.below(400_000);
    let mut own = format!("send = '{bytes} B'");
    own += ["", "\nread = '2 Mbit/s'", "\nrate = '1 Mbit/s'\nmessage_size = '3 kB'"][n.below(3) as usize];
    let keys = format!(
        "receive_buffer = '{} B'\nnew = '{}'\nwindow = '{}'\nvariant = '{}'\nreinjection = '{}'\npenalise = {}\npath_manager = '{}'\n",
        3000 + n.below(100_000),
        n.one_of(&["round-robin", "lowest-rtt", "window-share", "ecf", "blest"]),
        n.one_of(&["standard", "cubic", "lia", "olia", "balia"]),
        n.one_of(&["standard", "newreno"]),
        n.one_of(&["off", "opportunistic"]),
        n.one_of(&["false", "true"]),
        n.one_of(&["fullmesh", "one-per-interface"]),
    );
    let wire = n.one_of(&["false", "true"]);
    (flow(&format!("seed = {seed}\nwire = {wire}\nstop = '5000 s'"), &paths, &own, &keys), bytes)
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn every_byte_arrives_whatever_happens() {
    let first = number("ANABRANCH_FIRST", 0);
    for seed in first..first + number("ANABRANCH_RUNS", 300) {
        let (text, bytes) = random(seed);
        let flow = result(&text).flows.remove(0);
        has_all(&flow, bytes, &text);
    }
}

#[test]
fn polling_more_often_and_the_codec_change_nothing() {
    for seed in 0..200 {
        let (text, _) = random(seed);
        let other = text.replace("wire = false", "wire = true");
        let extra_polls = RunOptions { extra_polls: true, ..RunOptions::default() };
        let [mut flows, mut again] = [result(&text).flows, result_with(&other, extra_polls).flows];
        // When an outage is noticed depends on when an end is looked at.
        flows.iter_mut().chain(&mut again).for_each(|flow| flow.outages.clear());
        assert_eq!(flows, again, "{text}");
    }
}
