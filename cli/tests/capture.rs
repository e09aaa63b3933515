//! `--pcap` from outside, with tshark as the judge.

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use support::{anabranch, documents, explain, skip, stderr};
use tempfile::TempDir;

/// What makes a scenario's run short; others are short by themselves.
const SHORTER: [(&str, &str); 9] = [
    ("crosstraffic", "flow.transfer.start=1 s"),
    ("crosstraffic", "stop=3 s"),
    ("tcp-beside-sctp", "stop=30 s"),
    ("headline", "flow.download.send=1 MB"),
    ("case-study", "flow.transfer.send=1 MB"),
    ("shared-link", "flow.new.send=500 kB"),
    ("shared-link", "flow.old.send=500 kB"),
    ("streams", "flow.ordered.send=500 kB"),
    ("slow-reader", "flow.transfer.send=500 kB"),
];

/// The scenarios of the examples and of every publication.
fn scenarios() -> Vec<PathBuf> {
    let papers = concat!(env!("CARGO_MANIFEST_DIR"), "/../papers");
    let folders = std::fs::read_dir(papers).expect("the directory is there");
    let folders = folders.map(|entry| entry.expect("the entry can be read").path());
    let mut files = documents("../scenarios");
    files.extend(folders.filter(|folder| folder.is_dir()).flat_map(|folder| {
        let folder = folder.display().to_string();
        documents(&folder)
    }));
    // Beside a publication's scenarios are documents of other kinds.
    files.retain(|file| text(file).lines().any(|line| line == "[[link]]"));
    files
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).expect("it can be read")
}

fn stem(file: &Path) -> String {
    file.file_stem().expect("a file").to_string_lossy().into_owned()
}

fn example(name: &str) -> String {
    format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Runs a scenario, with or without a capture, and returns the JSON.
fn run(file: &Path, pcap: Option<&Path>) -> Value {
    run_set(file, pcap, &[])
}

fn run_set(file: &Path, pcap: Option<&Path>, settings: &[&str]) -> Value {
    let (file_name, pcap) = (file.display().to_string(), pcap.map(|pcap| pcap.display().to_string()));
    let mut arguments = vec!["run", &file_name, "--json"];
    let name = stem(file);
    for (_, setting) in SHORTER.iter().filter(|(scenario, _)| *scenario == name) {
        arguments.extend(["--set", setting]);
    }
    arguments.extend(shorter(file).iter().flat_map(|setting| ["--set", *setting]));
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    if let Some(pcap) = &pcap {
        // Checksums are those of whole packets.
        arguments.extend(["--force", "--pcap", pcap, "--snaplen", "full"]);
    }
    let output = anabranch(&arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

/// Of a publication's scenario with a fixed end the first ten seconds are enough.
fn shorter(file: &Path) -> &'static [&'static str] {
    let text = text(file);
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    match file.components().any(|part| part.as_os_str() == "papers") {
        true if has("measure = ") => &["stop=10 s", "measure=[\"1 s\", \"9 s\"]"],
        true if has("stop = ") => &["stop=10 s"],
        _ => &[],
    }
}

/// A packet as tshark sees it.
struct Judged {
    fields: Vec<String>,
}

const FIELDS: [&str; 11] = [
    "frame.interface_name",
    "frame.time_epoch",
    "frame.len",
    "frame.packet_flags_direction",
    "frame.comment",
    "sctp.checksum.status",
    "ip.checksum.status",
    "udp.checksum.status",
    "tcp.checksum.status",
    "frame.protocols",
    "_ws.malformed",
];

impl Judged {
    fn field(&self, name: &str) -> &str {
        &self.fields[FIELDS.iter().position(|field| *field == name).expect("a field that was asked for")]
    }

    fn inbound(&self) -> bool {
        self.field("frame.packet_flags_direction") == "0x00000001"
    }

    /// What is wrong with it.
    fn fault(&self) -> Option<String> {
        let status = |field, good: &[&str]| good.contains(&self.field(field));
        let time = self.field("frame.time_epoch");
        let protocols = self.field("frame.protocols");
        let carries = |protocol: &str| protocols.split(':').any(|part| part == protocol);
        let own: Vec<_> = ["sctp", "tcp", "udp"].into_iter().filter(|protocol| carries(protocol)).collect();
        let judgements = [
            (!own.is_empty(), "it is of no transport"),
            (status("sctp.checksum.status", if carries("sctp") { &["1"] } else { &[""] }), "its checksum"),
            (status("tcp.checksum.status", if carries("tcp") { &["1"] } else { &[""] }), "its TCP checksum"),
            // Neither IPv6 nor SCTP on IP have those two.
            (status("ip.checksum.status", &["1", ""]), "the checksum of its IP header"),
            (status("udp.checksum.status", &["1", ""]), "its UDP checksum"),
            (status("_ws.malformed", &[""]), "it is malformed"),
            (self.field("frame.comment").contains("flow "), "it has no reason"),
            (time.split_once('.').is_some_and(|(_, part)| part.len() == 9), "its time has no nanoseconds"),
        ];
        let wrong = judgements.into_iter().find(|(right, _)| !right);
        wrong.map(|(_, what)| format!("{what}: {:?}", self.fields))
    }
}

/// Every packet of a capture, and the first one that is not as it should be.
fn judge(capture: &Path) -> Result<Vec<Judged>, String> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture).args(["-n", "-T", "fields", "-E", "separator=/t"]);
    // Port 5000 belongs to a protocol that our user data, zeros, is not.
    tshark.args(["--disable-protocol", "gsm_ipa"]);
    for option in [
        "sctp.checksum:CRC-32c",
        "ip.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
    ] {
        tshark.args(["-o", option]);
    }
    tshark.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().expect("tshark runs");
    assert!(output.status.success(), "{}: {}", capture.display(), stderr(&output));
    let text = String::from_utf8(output.stdout).expect("its output is UTF-8");
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect();
    let packets: Vec<_> = text.lines().map(|line| Judged { fields: fields(line) }).collect();
    match packets.iter().find_map(Judged::fault) {
        Some(fault) => Err(fault),
        None => Ok(packets),
    }
}

/// A run that is captured. Its file lasts as long as its directory.
struct Captured {
    _directory: TempDir,
    file: PathBuf,
    json: Value,
    packets: Vec<Judged>,
}

fn captured(scenario: &str, settings: &[&str]) -> Captured {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("capture.pcapng");
    let json = run_set(Path::new(scenario), Some(&file), settings);
    let packets = judge(&file).unwrap_or_else(|fault| panic!("{fault}"));
    Captured { _directory: directory, file, json, packets }
}

fn has_tshark(test: &str) -> bool {
    let there = Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        skip(test, "no tshark (Debian: tshark)");
    }
    there
}

#[test]
fn tshark_reads_the_capture_of_every_scenario() {
    if !has_tshark("tshark_reads_the_capture_of_every_scenario") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let files = scenarios();
    assert!(files.len() >= 13);
    for file in files {
        let capture = directory.path().join(stem(&file)).with_extension("pcapng");
        let json = run(&file, Some(&capture));
        let packets = judge(&capture).unwrap_or_else(|fault| panic!("{}: {fault}", file.display()));
        let times: Vec<_> = packets.iter().map(|packet| packet.field("frame.time_epoch")).collect();
        let order =
            |time: &&str| time.split_once('.').map(|(s, n)| (s.parse::<u64>().unwrap(), n.to_owned()));
        assert!(times.is_sorted_by_key(order), "{}: not in order of time", file.display());
        for link in json[0]["links"].as_array().expect("links") {
            counts_agree(link, &packets, stops(&file), real_sizes(&file))
                .unwrap_or_else(|why| panic!("{}: {link}: {why}", file.display()));
        }
        std::fs::remove_file(capture).unwrap();
    }
}

/// The example is over IPv6. On IPv4 a checksum has other words before it, and options may stand between.
#[test]
fn tshark_reads_udp_over_ipv4() {
    if !has_tshark("tshark_reads_udp_over_ipv4") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("capture.pcapng");
    for header in ["20 B", "32 B"] {
        run_set(Path::new(&example("udp")), Some(&capture), &[&format!("ip_header={header}")]);
        let packets = judge(&capture).unwrap_or_else(|fault| panic!("{header}: {fault}"));
        let checked = |p: &Judged| ["ip.checksum.status", "udp.checksum.status"].map(|f| p.field(f) == "1");
        assert!(packets.len() > 1000 && packets.iter().all(|p| checked(p) == [true; 2]), "{header}");
    }
}

/// A TCP that counts its headers as they are: all bytes agree.
#[test]
fn tshark_counts_the_bytes_of_tcp() {
    if !has_tshark("tshark_counts_the_bytes_of_tcp") {
        return;
    }
    let run = captured(&example("tcp-beside-sctp"), &["flow.tcp.tcp.variant=standard", "stop=30 s"]);
    for link in run.json[0]["links"].as_array().expect("links") {
        counts_agree(link, &run.packets, true, true).unwrap_or_else(|why| panic!("{link}: {why}"));
    }
}

/// The publication on retransmission policies: cross traffic, and timestamps in every packet with data and in every
/// SACK.
#[test]
fn tshark_reads_cross_traffic_and_timestamps() {
    if !has_tshark("tshark_reads_cross_traffic_and_timestamps") {
        return;
    }
    let scenario =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../papers/retransmission-policy-flaw/crosstraffic.toml");
    let run = captured(scenario, &["flow.transfer.sctp.timestamps=true"]);
    let packets = &run.packets;
    let crossing = packets.iter().filter(|packet| packet.field("frame.protocols").contains(":udp")).count();
    assert!(crossing > 5_000, "{crossing} of {} packets are of UDP", packets.len());
    let stamped = explain(&run.file, &[]);
    let carries =
        |kind: &str| stamped.iter().filter(|line| line.contains(kind) && line.contains("TIMESTAMP ")).count();
    assert!(carries("DATA tsn=") > 100 && carries("SACK cum=") > 100, "{}", stamped.len());
}

/// NR-SACKs over two paths with losses: they have blocks of what is kept, and no SACK goes beside them.
#[test]
fn tshark_reads_nr_sacks() {
    if !has_tshark("tshark_reads_nr_sacks") {
        return;
    }
    let settings = ["flow.upload.sctp.nr_sack=true", "flow.upload.send=1 MB", "link.wifi.loss=3 %"];
    let run = captured(&example("cmt"), &settings);
    let file = run.file.display().to_string();
    let count = |filter: &str| tshark(&["-r", &file, "-Y", filter]).lines().count();
    let kept = count("sctp.chunk_type == 16 && sctp.nr_sack_number_of_nr_gap_blocks > 0");
    assert!(kept > 50, "{kept} NR-SACKs with blocks of what is kept");
    assert_eq!(count("sctp.chunk_type == 3"), 0, "SACKs beside them");
}

/// What a sender of TCP sends again, beside what Wireshark's analysis marks where the packets leave: as
/// retransmissions, or, soon after others, as out of order.
#[test]
fn tshark_marks_the_retransmissions_of_tcp() {
    if !has_tshark("tshark_marks_the_retransmissions_of_tcp") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    for variant in ["standard", "newreno", "sack1"] {
        let (capture, series) = (path(&format!("{variant}.pcapng")), path(variant));
        let variant = format!("flow.tcp.tcp.variant={variant}");
        let edits = ["--set", &variant, "--set", "stop=60 s", "--pcap", &capture, "--series", &series];
        let output = anabranch(&[&["run", &example("tcp-beside-sctp")], &edits[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        // Each packet of a simulation is captured on every link; the analysis is to see it once.
        let sender = path("sender.pcapng");
        let leaving = "frame.interface_name == \"tcp-access:tcp-host\" && tcp";
        tshark(&["-r", &capture, "-Y", leaving, "-w", &sender]);
        let kinds = ["retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order"];
        let marks = kinds.map(|kind| format!("tcp.analysis.{kind}")).join(" || ");
        let filter = format!("tcp.len > 0 && ({marks})");
        let marked = tshark(&["-r", &sender, "-Y", &filter, "-T", "fields", "-e", "tcp.seq"]);
        // Wireshark's relative numbers begin with SYN.
        let marked: Vec<u64> = marked.lines().map(|seq| seq.parse::<u64>().expect("a number") - 1).collect();
        let sent =
            std::fs::read_to_string(format!("{series}/tcp.sent.csv")).expect("the series of what was sent");
        let again = sent.lines().skip(1).filter(|row| !row.ends_with(",new"));
        let again: Vec<u64> =
            again.map(|row| row.split(',').nth(2).expect("a number").parse().expect("a number")).collect();
        assert!(again.len() > 10, "{variant}: {again:?}");
        assert_eq!(marked, again, "{variant}: what tshark marks, and what was sent again");
    }
}

/// MP_PRIO, beside the DATA_ACK in one segment: the receiver makes a subflow a backup, and later a regular one again.
#[test]
fn tshark_reads_mp_prio() {
    if !has_tshark("tshark_reads_mp_prio") {
        return;
    }
    let changes =
        "[{ at = '1 s', path = 'lte', backup = true }, { at = '2 s', path = 'lte', backup = false }]";
    let priorities = format!("flow.download.mptcp.priorities={changes}");
    let run = captured(&example("mptcp"), &[&priorities, "stop=3 s"]);
    let file = run.file.display().to_string();
    let fields = ["subtype", "backup.flag"].map(|field| format!("tcp.options.mptcp.{field}"));
    let told = tshark(
        &[
            &["-r", &file, "-Y", "frame.interface_name == \"lte:client\" && tcp.options.mptcp.subtype == 5"],
            &["-T", "fields", "-e", &fields[0], "-e", &fields[1]][..],
        ]
        .concat(),
    );
    assert_eq!(told, "2,5\t1\n2,5\t0\n");
}

/// What tshark prints.
fn tshark(arguments: &[&str]) -> String {
    let output = Command::new("tshark").arg("-n").args(arguments).output().expect("tshark runs");
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// Whether the run counts the bytes that a wire would carry: ns-2's TCP counts a SACK option four bytes short.
fn real_sizes(file: &Path) -> bool {
    !text(file).contains("variant = \"sack1")
}

/// Whether packets may be under way when the run ends: at a given time, or with endless cross traffic.
fn stops(file: &Path) -> bool {
    text(file).lines().any(|line| line.starts_with("stop ") || line == "[[traffic]]")
}

/// Whether the capture has the packets that the run counted in a link direction.
fn counts_agree(link: &Value, packets: &[Judged], stops: bool, real_sizes: bool) -> Result<(), String> {
    let name = link["name"].as_str().expect("a name");
    let (from, to) = link["direction"].as_str().and_then(|ends| ends.split_once('>')).expect("two ends");
    let count = |key: &Value| key.as_u64().expect("a count");
    let at = |end: &str, inbound: bool| {
        let interface = format!("{name}:{end}");
        packets.iter().filter(move |p| p.inbound() == inbound && p.field("frame.interface_name") == interface)
    };
    let said = |packet: &&Judged, causes: &[&str]| {
        let comment = packet.field("frame.comment");
        let cause = comment.strip_prefix("dropped: ").unwrap_or_default();
        causes.iter().any(|begin| cause.starts_with(begin))
    };
    for (cause, begins) in [
        ("queue", &["queue full", "by the queue's management"][..]),
        ("loss", &["lost on"]),
        ("down", &["link "]),
    ] {
        let dropped = at(from, false).filter(|packet| said(packet, begins)).count();
        if dropped as u64 != count(&link["drops"][cause]) {
            return Err(format!("{dropped} dropped, {cause}"));
        }
    }
    let sent = at(from, false).count() as u64;
    // What stands in the queue when a run is stopped has not left.
    let waiting = count(&link["packets"]).checked_sub(sent).ok_or("more left than were offered")?;
    if waiting > if stops { count(&link["queue_max"]) } else { 0 } {
        return Err(format!("only {sent} left"));
    }
    let received = at(to, true).count() as u64;
    let bytes: u64 = at(to, true).map(|p| p.field("frame.len").parse::<u64>().expect("a length")).sum();
    if (real_sizes && bytes != count(&link["bytes"])) || received + count(&link["dropped"]) > sent {
        return Err(format!("{received} packets of {bytes} bytes arrived"));
    }
    Ok(())
}

#[test]
fn tshark_finds_a_byte_that_was_changed() {
    if !has_tshark("tshark_finds_a_byte_that_was_changed") {
        return;
    }
    let run = captured(&example("listed-loss"), &[]);
    let capture = &run.file;
    let mut bytes = std::fs::read(capture).unwrap();
    // A long run of zeros is user data.
    let payload = bytes.windows(1000).position(|window| window.iter().all(|byte| *byte == 0));
    bytes[payload.expect("there is user data") + 500] = 1;
    std::fs::write(capture, &bytes).unwrap();
    let fault = judge(capture).err().expect("a fault");
    assert!(fault.starts_with("its checksum"), "{fault}");
    let lines = explain(capture, &[]);
    assert_eq!(lines.iter().filter(|line| line.contains("[wrong checksum: ")).count(), 1);
}

#[test]
fn a_capture_changes_no_result() {
    let directory = tempfile::tempdir().unwrap();
    for file in scenarios() {
        let capture = directory.path().join("capture.pcapng");
        assert_eq!(run(&file, None), run(&file, Some(&capture)), "{}", file.display());
    }
}

/// At 10 Mbit/s a byte takes 800 ns, and the way 20 ms.
#[test]
fn first_bits_leave_and_last_bits_arrive_when_they_should() {
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("capture.pcapng");
    run(Path::new(&example("one-path")), Some(&capture));
    let nanos = |packet: &Value| (packet["time"].as_f64().expect("a time") * 1e9).round() as u64;
    let mut on_link: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    let mut arrived = 0;
    for line in explain(&capture, &["--json"]) {
        let packet: Value = serde_json::from_str(&line).expect("every line is JSON");
        let (size, from) = (packet["size"].as_u64().unwrap(), packet["from"].as_str().unwrap().to_owned());
        if packet["direction"] == "in" {
            let (left, sent) = on_link.get_mut(&from).expect("it left").remove(0);
            assert_eq!((nanos(&packet), size), (left + size * 800 + 20_000_000, sent), "{line}");
            arrived += 1;
        } else if !packet["comment"].as_str().unwrap().starts_with("dropped") {
            on_link.entry(from).or_default().push((nanos(&packet), size));
        }
    }
    assert!(arrived > 2000, "{arrived}");
    for left in on_link.values() {
        assert!(left.is_sorted_by(|(a, size), (b, _)| a + size * 800 <= *b), "two are sent at once");
    }
}

#[test]
fn several_runs_get_a_file_each() {
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("loss.v1.pcapng").display().to_string();
    let output = anabranch(&["run", &example("listed-loss"), "--seeds", "2", "--pcap", &capture]);
    assert!(output.status.success(), "{}", stderr(&output));
    let packets = ["loss.v1-run-1.pcapng", "loss.v1-run-2.pcapng"].map(|name| {
        let lines = explain(&directory.path().join(name), &[]);
        assert!(lines.iter().any(|line| line.contains("SACK cum=") && line.contains(" gaps=")));
        lines.len()
    });
    assert!(packets.iter().all(|packets| *packets > 1000), "{packets:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

/// Unless it is told otherwise, a capture has all headers and no user data: a fraction of the bytes, and as much to
/// say, to tshark too.
#[test]
fn a_capture_has_the_headers_of_all_chunks() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let scenario = example("listed-loss");
    for (name, snaplen) in [("headers", None), ("full", Some("full")), ("short", Some("40"))] {
        let file = path(name).display().to_string();
        let mut arguments = vec!["run", &scenario, "--pcap", &file];
        arguments.extend(snaplen.iter().flat_map(|length| ["--snaplen", length]));
        let output = anabranch(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert_eq!(explain(&path("headers"), &["--json"]), explain(&path("full"), &["--json"]));
    let short = explain(&path("short"), &[]);
    assert!(short.iter().any(|line| line.contains("[cut: 20 bytes of SCTP were captured]")));
    let size = |name| std::fs::metadata(path(name)).unwrap().len();
    assert!(size("headers") * 3 < size("full"), "{} of {}", size("headers"), size("full"));
    let wrong = anabranch(&["run", &scenario, "--pcap", "x", "--snaplen", "tall"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("headers"), "{}", stderr(&wrong));
    if has_tshark("a_capture_has_the_headers_of_all_chunks") {
        let output =
            Command::new("tshark").arg("-n").arg("-r").arg(path("headers")).output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let data = text.lines().filter(|line| line.contains("SCTP 1500 DATA [Packet size limited")).count();
        assert!(data > 1000 && !text.contains("Malformed"), "{data}");
    }
}

/// Our own traffic on the loopback interface: the kernel shows it before it has cut it, and every packet of it is found
/// all the same. With --no-gso there is nothing to cut.
#[test]
fn a_capture_of_our_own_traffic_has_no_wrong_checksum() {
    const NAME: &str = "a_capture_of_our_own_traffic_has_no_wrong_checksum";
    let directory = tempfile::tempdir().unwrap();
    for no_gso in [false, true] {
        let file = directory.path().join(format!("{no_gso}.pcap"));
        let mut serve = support::command(&["serve", "--udp", "0"]);
        if no_gso {
            serve.arg("--no-gso");
        }
        let mut serve = serve.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut first = String::new();
        let mut lines = BufReader::new(serve.stdout.take().expect("a pipe"));
        lines.read_line(&mut first).expect("it says where it listens");
        let port = first.trim().rsplit(':').next().expect("a port").to_owned();
        let tcpdump = Command::new("tcpdump")
            .args(["-Z", "root", "-i", "lo", "-U", "--immediate-mode", "-c", "400", "-w"])
            .arg(&file)
            .args(["udp", "port", &port])
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut tcpdump) = tcpdump else {
            let _ = serve.kill().and_then(|()| serve.wait());
            return skip(NAME, "no tcpdump (Debian: tcpdump)");
        };
        // It says so when it listens, and something else if it may not.
        let mut said = String::new();
        let mut told = BufReader::new(tcpdump.stderr.take().expect("a pipe"));
        while !said.contains("listening on") && told.read_line(&mut said).is_ok_and(|n| n > 0) {}
        let mut arguments = vec!["perf", "--to", "127.0.0.1", "--udp", &port, "--seconds", "0.5"];
        arguments.extend(no_gso.then_some("--no-gso"));
        let output = anabranch(&arguments);
        let _ = serve.kill().and_then(|()| serve.wait());
        if !said.contains("listening on") {
            let _ = tcpdump.wait();
            return skip(NAME, "only root may capture");
        }
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(tcpdump.wait().expect("it ends after 400 packets").success(), "{said}");
        let lines = explain(&file, &["--udp", &port]);
        let is_wrong = |line: &&String| line.contains("wrong checksum") || line.contains("malformed");
        let wrong: Vec<_> = lines.iter().filter(is_wrong).collect();
        assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), lines.len(), wrong[0]);
        let segments = lines.iter().filter(|line| line.contains("  segment ")).count();
        assert_eq!(segments == 0, no_gso, "{segments} of {}", lines.len());
    }
}
