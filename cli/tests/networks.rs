//! `anabranch send` between two hosts in a box, joined by two links. For root only.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "real networks have real clocks")]

#[path = "../../net/tests/support/network.rs"]
mod network;
mod support;

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use network::{Cut, Network, QUEUE, RATE, address, routed_address, skip};
use serde_json::Value;
use support::{anabranch, stderr};

const BINARY: &str = env!("CARGO_BIN_EXE_anabranch");
const SIZE: u64 = 5_000_000;
/// What both ends keep to, in the box and in the simulator.
const SETTINGS: [&str; 5] = [
    "rto_initial=200ms",
    "rto_min=200ms",
    "path_max_retrans=2",
    "sack_delay=20ms",
    "heartbeat_interval=500ms",
];

/// What these tests see takes its time; beside each other they would see each other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn with_settings(command: &mut Command) -> &mut Command {
    command.args(SETTINGS.iter().flat_map(|setting| ["--set", setting]))
}

/// Where a host is found by a link.
type Place = fn(usize, usize) -> IpAddr;

fn list(host: usize, place: Place) -> String {
    format!("{},{}", place(host, 0), place(host, 1))
}

/// A listener on host `b`, and the line in which it says where.
fn serve(network: &Network, place: Place, directory: &Path) -> Process {
    let mut command = network.command(1, BINARY);
    command.args(["serve", "--public", "--listen", &list(1, place), "--receive-into"]).arg(directory);
    let mut process = with_settings(&mut command).stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(process.stdout.take().expect("a pipe")));
    for link in 0..2 {
        let line = lines.next().expect("it says where it listens").expect("text");
        let device = network.interface(1, link);
        assert_eq!(line, format!("listening at {}:9899 on {device}", place(1, link)));
    }
    Process(process)
}

fn client(network: &Network, place: Place, what: &[&str]) -> Command {
    let mut command = network.command(0, BINARY);
    command.args(what).args(["--to", &list(1, place), "--from", &list(0, place), "--json"]);
    with_settings(&mut command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn content() -> Vec<u8> {
    (0..SIZE).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// A link that fails in the middle of a transfer: how long after the beginning, and how.
#[derive(Copy, Clone)]
struct Failure {
    link: usize,
    after: Duration,
    how: Cut,
}

/// Sends a file by `network`, with these arguments, while a link fails; what `send` says, and the
/// seconds until the file is there. The verdict takes longer: by the cut link first, and by a timeout.
fn send_and_cut(
    network: &Arc<Network>,
    place: Place,
    failure: Option<Failure>,
    arguments: &[&str],
) -> (Value, f64) {
    // In memory: a file has its name when it is on the disk, and the disk is no part of what is measured.
    let from = tempfile::tempdir().expect("a place");
    let to = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a place");
    let file = from.path().join("a file");
    fs::write(&file, content()).expect("a file");
    let _listener = serve(network, place, to.path());
    let begun = Instant::now();
    let path = file.to_string_lossy();
    let client =
        client(network, place, &[&["send", &path], arguments].concat()).spawn().expect("the binary runs");
    if let Some(Failure { link, after, how }) = failure {
        sleep(after.saturating_sub(begun.elapsed()));
        network.cut(link, how, false);
    }
    let arrived = to.path().join("a file");
    while !arrived.exists() && begun.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(1));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let output = client.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(fs::read(arrived).expect("it came") == content(), "it is the same");
    (serde_json::from_slice(&output.stdout).expect("JSON"), seconds)
}

/// When a link fails: 2 MB have arrived by then on one link.
const CUT: Duration = Duration::from_millis(800);

fn first_link(how: Cut) -> Failure {
    Failure { link: 0, after: CUT, how }
}

#[test]
fn a_file_survives_the_loss_of_either_kind() {
    let _alone = alone();
    for how in [Cut::Dropped, Cut::OwnEnd] {
        let Some(network) = Network::new("a_file_survives_the_loss_of_either_kind") else { return };
        let (result, _) = send_and_cut(&network, address, Some(first_link(how)), &[]);
        let state = if how == Cut::OwnEnd { "down here" } else { "inactive" };
        assert_eq!(result["paths"][0]["state"], state, "{how:?}: {result}");
        assert_eq!(result["paths"][1]["state"], "active");
        for link in 0..2 {
            assert_eq!(result["paths"][link]["device"], network.interface(0, link), "bound to it");
            assert!(result["paths"][link]["delivered"].as_u64() > Some(500_000), "{how:?}: {result}");
        }
    }
}

/// The own interface carries smaller packets from now on. The system says so: the path goes on with smaller packets,
/// and what is under way goes again in fragments. Without that, every packet that is too large is lost until timeouts
/// have shown it.
#[test]
fn a_smaller_mtu_of_the_own_interface_is_heard_of() {
    let _alone = alone();
    let Some(network) = Network::new("a_smaller_mtu_of_the_own_interface_is_heard_of") else { return };
    let smaller = first_link(Cut::Mtu(1300));
    let (result, seconds) = send_and_cut(&network, address, Some(smaller), &["--set", "mtu_discovery=false"]);
    let first = &result["paths"][0];
    assert!(first["pmdcs"].as_u64().is_some_and(|largest| largest <= 1300 - 40), "{result}");
    assert!(first["state"] == "active" && first["share"].as_f64() > Some(0.9), "{result}");
    assert!(seconds < 10.0, "{seconds} s, {result}");
}

/// Concurrent multipath transfer to a listener that was told nothing of it carries what both links do. A machine that
/// does something else for a moment takes from either: it has to be right once in four times.
#[test]
fn cmt_carries_what_both_links_carry() {
    let _alone = alone();
    let mut seen = Vec::new();
    while !seen.iter().any(|ratio| *ratio >= 1.96) {
        assert!(seen.len() < 4, "goodput with CMT, as a multiple of that without: {seen:?}");
        let Some(network) = Network::new("cmt_carries_what_both_links_carry") else { return };
        let directory = tempfile::tempdir().expect("a place");
        let _listener = serve(&network, address, directory.path());
        let [one, both] = [&[][..], &["--cmt"]].map(|cmt| goodput(&network, cmt));
        seen.push(both / one);
        println!("one path {:.2} Mbit/s, CMT {:.2} Mbit/s: {:.3}", one / 1e6, both / 1e6, both / one);
    }
}

/// Bit/s of user data from `a` to `b`, from the second second on: before, both begin slowly.
fn goodput(network: &Network, cmt: &[&str]) -> f64 {
    let output = client(network, address, &[&["perf", "--seconds", "8"], cmt].concat()).output();
    let output = output.expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let paths = result["there_by_path"].as_object().expect("an object");
    // Without CMT the other link carries a retransmission at most.
    let carried: Vec<f64> = paths.values().filter_map(Value::as_f64).collect();
    let share = carried.iter().copied().fold(0.0, f64::max) / carried.iter().sum::<f64>();
    assert!(if cmt.is_empty() { share > 0.95 } else { share < 0.9 }, "{paths:?}");
    let steady = &result["intervals"].as_array().expect("a list")[1..8];
    let bytes = |interval: &Value| interval["there"]["bytes"].as_f64().expect("a number");
    let time = steady[6]["to"].as_f64().expect("a number") - steady[0]["from"].as_f64().expect("a number");
    steady.iter().map(bytes).sum::<f64>() * 8.0 / time
}

/// Whichever link fails, and however: what was under way there goes again by the other.
#[test]
fn a_file_by_cmt_survives_the_loss_of_a_path() {
    let _alone = alone();
    for (link, how) in [(0, Cut::Dropped), (1, Cut::Dropped), (0, Cut::OwnEnd), (1, Cut::FarEnd)] {
        let Some(network) = Network::new("a_file_by_cmt_survives_the_loss_of_a_path") else { return };
        let failure = Failure { link, after: CUT, how };
        let (result, _) = send_and_cut(&network, address, Some(failure), &["--cmt"]);
        let delivered = |path: usize| result["paths"][path]["delivered"].as_u64().expect("a number");
        assert!(delivered(link) > 500_000, "link {link}, {how:?}: {result}");
        assert!(delivered(1 - link) > delivered(link), "link {link}, {how:?}: {result}");
        let shares = [0, 1].map(|path| result["paths"][path]["share"].as_f64().expect("a number"));
        assert!((shares[0] + shares[1] - 1.0).abs() < 1e-9 && shares[1 - link] > shares[link], "{shares:?}");
    }
}

/// The same recording with every SACK from the peer's other address, but for those in packets with user data: where
/// that comes from decides where its own SACK goes.
fn crossed(recording: &str) -> String {
    let others = [address(1, 0).to_string(), address(1, 1).to_string()];
    let mut sacks = 0;
    let mut lines = Vec::new();
    for line in recording.lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if let Some(packet) = line.pointer_mut("/call/packet") {
            let bytes = packet["bytes"].as_str().map(|bytes| BASE64_STANDARD.decode(bytes).expect("base64"));
            // The first chunk stands after 12 bytes; 3 is a SACK. Bytes 2 and 3 of a chunk are its length.
            let length = |bytes: &[u8]| usize::from(bytes[14]) << 8 | usize::from(bytes[15]);
            let alone = |bytes: Vec<u8>| bytes[12] == 3 && bytes.len() == 12 + length(&bytes);
            let sack = bytes.is_some_and(alone);
            sacks += u32::from(sack);
            if sack {
                let from = packet["from"].as_str().expect("an address");
                let its = usize::from(from.starts_with(&others[1]));
                packet["from"] = from.replace(&others[its], &others[1 - its]).into();
            }
        }
        lines.push(line.to_string());
    }
    assert!(sacks > 500, "{sacks} SACKs");
    lines.join("\n") + "\n"
}

/// Both paths lose every fortieth packet. The recording of a transfer over them explains every wait of each path, also
/// where SACKs come from another of the peer's addresses.
#[test]
fn a_transfer_over_two_lossy_paths_is_explained_from_its_recording() {
    let _alone = alone();
    let test = "a_transfer_over_two_lossy_paths_is_explained_from_its_recording";
    let Some(network) = Network::new(test) else { return };
    if !Command::new("nft").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip(test, "nft is not installed");
    }
    network.on(1, "nft add table inet lossy");
    network.on(1, "nft add chain inet lossy arriving { type filter hook input priority 0 ; }");
    for link in 0..2 {
        let device = network.interface(1, link);
        let rule = format!("iifname {device} udp dport 9899 numgen inc mod 40 39 drop");
        network.on(1, &format!("nft add rule inet lossy arriving {rule}"));
    }
    let directory = tempfile::tempdir().expect("a place");
    let place = |name: &str| directory.path().join(name).display().to_string();
    send_and_cut(&network, address, None, &["--cmt", "--record", &place("recording")]);
    let recording = fs::read_to_string(place("recording")).expect("it was recorded");
    fs::write(place("crossed"), crossed(&recording)).expect("it can be written");
    let explained = |name: &str, question: &[&str]| -> Value {
        let output = anabranch(&[&["replay", &place(name), "--why", "--json"], question].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let times: Vec<String> = (30..110).map(|hundredth| format!("{}ms", hundredth * 10)).collect();
    let moments: Vec<&str> = times.iter().flat_map(|time| ["--at", time]).collect();
    let answers = explained("recording", &moments);
    assert!(answers == explained("crossed", &moments), "every SACK is heard");
    let said = answers.to_string();
    for link in 0..2 {
        let path = format!("{} → {}", address(0, link), address(1, link));
        assert!(said.contains(&format!("the cwnd of {path} was cut by a fast retransmission")), "{answers}");
    }
    let flows = answers.as_array().into_iter().flatten().map(|answer| &answer["flows"][0]);
    assert!(
        flows.clone().all(|flow| flow["paths"].as_array().is_some_and(|paths| paths.len() == 2)),
        "{answers}"
    );
    let waits = explained("recording", &[]);
    assert!(waits.as_array().is_some_and(|waits| !waits.is_empty()), "{waits}");
}

/// Each host has one default route, by its first interface. Captures at the router show each path's packets on
/// its own link, those of the second too, and also when the first, and with it the route, is gone.
#[test]
fn with_one_default_route_each_path_leaves_by_its_own_interface() {
    let _alone = alone();
    const NAME: &str = "with_one_default_route_each_path_leaves_by_its_own_interface";
    let Some(network) = Network::routed(NAME) else { return };
    if Command::new("tcpdump").arg("--version").output().is_err() {
        return skip(NAME, "tcpdump is not installed");
    }
    let directory = tempfile::tempdir().expect("a place");
    let captures = [0, 1].map(|link| directory.path().join(format!("{link}.pcap")));
    let capture = |link: usize| {
        let mut command = network.command(2, "tcpdump");
        command
            .args([
                "--immediate-mode",
                "-U",
                "-s",
                "100",
                "-Z",
                "root",
                "-i",
                &network.router_side(0, link),
                "-w",
            ])
            .arg(&captures[link]);
        Process(command.arg("udp").stderr(Stdio::null()).spawn().expect("it is installed"))
    };
    let running = [capture(0), capture(1)];
    while !captures.iter().all(|file| file.exists()) {
        sleep(Duration::from_millis(10));
    }
    let (result, _) = send_and_cut(&network, routed_address, Some(first_link(Cut::OwnEnd)), &[]);
    drop(running);
    assert_eq!(result["paths"][0]["state"], "down here", "{result}");
    for (link, file) in captures.iter().enumerate() {
        let output = Command::new("tcpdump").args(["-nn", "-r"]).arg(file).output().expect("it is installed");
        let lines = String::from_utf8(output.stdout).expect("text");
        let (own, peer) = (routed_address(0, link), routed_address(1, link));
        let ours = |line: &&str| line.contains(&format!("{own}.")) && line.contains(&format!("{peer}."));
        assert!(lines.lines().filter(ours).count() > 5, "link {link}: {lines}");
        assert!(lines.lines().all(|line| ours(&line)), "link {link}: {lines}");
    }
}

/// The same two links in the simulator. A token bucket counts 14 bytes of Ethernet besides what the simulator
/// counts; messages and parameters are those of `send`.
fn simulated(cut: Option<Duration>) -> Value {
    let rate = RATE * 1500 / 1514;
    let queue = QUEUE * 1500 / 1514;
    let link = |name, extra: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nbetween = [\"a\", \"b\"]\nrate = \"{rate} bit/s\"\ndelay = \"20 us\"\nqueue = \"{queue} B\"\n{extra}\n"
        )
    };
    let down = cut.map_or(String::new(), |at| format!("down = [[\"{} ms\", \"1 h\"]]", at.as_millis()));
    let sctp: String = SETTINGS
        .iter()
        .map(|setting| {
            let (key, value) = setting.split_once('=').expect("an assignment");
            let value = if value.ends_with("ms") { format!("\"{value}\"") } else { value.to_owned() };
            format!("{key} = {value}\n")
        })
        .collect();
    // What `send` does as well: a packet is filled with the beginning of the next message.
    let sctp = sctp + "fill_packets = true\n";
    let flow = format!(
        "[[flow]]\nname = \"file\"\nfrom = \"a\"\nto = \"b\"\nudp = true\nsend = \"{SIZE} B\"\nmessage_size = \"64 KiB\"\n[flow.sctp]\nprimary = \"first\"\n{sctp}"
    );
    let directory = tempfile::tempdir().expect("a place");
    let scenario = directory.path().join("box.toml");
    fs::write(&scenario, link("first", &down) + &link("second", "") + &flow).expect("a file");
    let output: Output = anabranch(&["run", &scenario.display().to_string(), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let runs: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    runs[0]["flows"][0].clone()
}

/// With and without a silent cut, the simulator says how long it takes within 5 %, and how many packets the
/// sender sends within 2 %. Where within a window the cut falls is not the same; one window is 75 kB, 1.5 % of
/// the file. A machine that does something else for a moment makes it longer, never shorter, which the simulator
/// cannot know: it has to be right once in five times.
#[test]
fn the_simulator_predicts_it() {
    let _alone = alone();
    for cut in [None, Some(CUT)] {
        let predicted = simulated(cut);
        let predicted = ["completion", "packets"].map(|key| predicted[key].as_f64().expect("a number"));
        let mut seen = Vec::new();
        while !seen.iter().any(|&real| agree(real, predicted)) {
            assert!(seen.len() < 5, "{cut:?}: {seen:?}, in the simulator {predicted:?}");
            let Some(network) = Network::new("the_simulator_predicts_it") else { return };
            let (real, seconds) = send_and_cut(&network, address, cut.map(|_| first_link(Cut::Dropped)), &[]);
            seen.push([seconds, real["traffic"]["packets_sent"].as_f64().expect("a number")]);
        }
        println!("{cut:?}: seconds and packets {seen:?}, in the simulator {predicted:?}");
    }
}

fn agree(real: [f64; 2], predicted: [f64; 2]) -> bool {
    let off = |of: usize| (real[of] / predicted[of] - 1.0).abs();
    off(0) < 0.05 && off(1) < 0.02
}
