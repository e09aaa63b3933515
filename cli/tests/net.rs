//! `serve`, `send` and `perf` from outside, on the loopback interface.

#![allow(clippy::disallowed_methods, reason = "real networks have real clocks")]

#[path = "support/listener.rs"]
mod listener;
mod support;

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::IpAddr;
use std::process::{Child, Command, Output, Stdio};

use anabranch_net::service::{CONTROL, DATA};
use anabranch_net::{Association, Endpoint, Message, Options};
use listener::Listener;
use serde_json::Value;
use support::{anabranch, command, stderr};
use tempfile::TempDir;

impl Listener {
    /// Presses Ctrl-C; the exit status.
    fn interrupt(mut self) -> Option<i32> {
        interrupt(&self.process);
        self.process.wait().expect("it ends").code()
    }
}

fn interrupt(process: &Child) {
    signal(process, "-INT");
}

fn signal(process: &Child, which: &str) {
    let sent = Command::new("kill").args([which, &process.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

fn file(directory: &TempDir, name: &str, size: usize) -> std::path::PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, (0..size).map(|n| (n * 7 % 253) as u8).collect::<Vec<_>>()).expect("a file");
    path
}

fn names(directory: &TempDir) -> usize {
    fs::read_dir(directory.path()).expect("it is there").count()
}

/// `docs/network.md` has every entry.
fn documented(result: &Value) {
    let missing = support::missing_on("network", &["there_by_path", "back_by_path"], result);
    assert!(missing.is_empty(), "docs/network.md says nothing of {missing:?}");
}

#[test]
fn a_file_is_sent_and_received() {
    let (from, to) = (tempfile::tempdir().expect("a place"), tempfile::tempdir().expect("a place"));
    let mut listener = Listener::into(to.path(), &[]);
    let path = file(&from, "a file", 3_000_000);
    let output = listener.send(&path, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    documented(&result);
    assert_eq!(
        (&result["bytes"], &result["arrived"], &result["complete"]),
        (&3_000_000.into(), &3_000_000.into(), &true.into())
    );
    assert_eq!(result["paths"][0]["state"], "active");
    let sent: u64 = result["intervals"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|i| i["there"]["bytes"].as_u64())
        .sum();
    assert!((3_000_000..3_001_000).contains(&sent), "{result}");
    let event = &result["events"][0];
    assert_eq!(
        (&event["state"], &event["path"]),
        (&"active".into(), &"127.0.0.1 → 127.0.0.1".into()),
        "{result}"
    );
    assert!(event["time"].is_f64() && event["cause"].is_string(), "{result}");
    assert!(result["traffic"]["segments_a_send"].as_f64() >= Some(1.0), "{result}");
    assert_eq!(fs::read(to.path().join("a file")).expect("it came"), fs::read(&path).expect("it is there"));
    assert!(listener.line().ends_with("a file, 3000000 bytes"));
    // Once more: it is there already.
    let output = listener.send(&path, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is a file of this name"), "{}", stderr(&output));
    assert!(listener.line().contains("there is a file of this name"));
    assert_eq!(listener.interrupt(), Some(130));
}

#[test]
fn there_is_only_so_much_room() {
    let (from, to) = (tempfile::tempdir().expect("a place"), tempfile::tempdir().expect("a place"));
    let listener = Listener::into(to.path(), &["--max-size", "10 kB"]);
    let output = listener.send(&file(&from, "large", 10_001), &["--json"]);
    assert_eq!((output.status.code(), &json(&output)["complete"]), (Some(1), &Value::from(false)));
    assert_eq!(listener.send(&file(&from, "small", 6_000), &[]).status.code(), Some(0));
    assert_eq!(listener.send(&file(&from, "too much", 6_000), &[]).status.code(), Some(1));
    assert_eq!(names(&to), 1);
}

/// Ctrl-C in the middle of a file that is too long to be sent in that time: both ends say what had arrived, and
/// nothing of it is kept.
#[test]
fn an_interrupted_file_is_told_of_at_both_ends() {
    let (from, to) = (tempfile::tempdir().expect("a place"), tempfile::tempdir().expect("a place"));
    let mut listener = Listener::into(to.path(), &["--max-size", "100 GB"]);
    let path = from.path().join("endless");
    let sparse = fs::File::create(&path).expect("a file");
    sparse.set_len(8_000_000_000).expect("a sparse file");
    let mut client = listener.client("send", &["--json"]);
    let client =
        client.arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    wait_until(|| {
        fs::read_dir(to.path())
            .expect("it is there")
            .any(|e| e.expect("an entry").metadata().is_ok_and(|m| m.len() > 0))
    });
    interrupt(&client);
    let output = client.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let arrived = json(&output)["arrived"].as_u64().expect("a number");
    assert!(0 < arrived && arrived < 8_000_000_000, "{arrived}");
    let line = listener.line();
    assert!(line.contains(&format!("{arrived} of 8000000000 bytes had arrived")), "{line}, {arrived}");
    assert_eq!(names(&to), 0);
}

/// Ctrl-C at the listener ends what goes on; the client is told.
#[test]
fn an_interrupted_listener_ends_its_associations() {
    let to = tempfile::tempdir().expect("a place");
    let listener = Listener::into(to.path(), &[]);
    let client = listener.client("perf", &["--seconds", "60"]);
    let client = { client }.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the binary runs");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(listener.interrupt(), Some(130));
    let output = client.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("error"), "{}", stderr(&output));
}

/// SIGTERM in the middle of a file: the client is told; after SIGKILL, the next listener sweeps away what was left.
#[test]
fn a_listener_that_is_ended_tells_its_peers_and_leaves_nothing() {
    let (from, to) = (tempfile::tempdir().expect("a place"), tempfile::tempdir().expect("a place"));
    let path = from.path().join("endless");
    fs::File::create(&path).and_then(|file| file.set_len(8_000_000_000)).expect("a sparse file");
    for which in ["-TERM", "-KILL"] {
        let mut listener = Listener::into(to.path(), &["--max-size", "100 GB"]);
        let mut client = listener.client("send", &["--json"]);
        let client = client.arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut client = client.expect("the binary runs");
        wait_until(|| {
            fs::read_dir(to.path())
                .expect("it is there")
                .any(|e| e.expect("an entry").metadata().is_ok_and(|m| m.len() > 0))
        });
        signal(&listener.process, which);
        let status = listener.process.wait().expect("it ends");
        if which == "-TERM" {
            assert_eq!(status.code(), Some(143));
            let output = client.wait_with_output().expect("it ends");
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            assert_eq!(names(&to), 0);
        } else {
            client.kill().expect("it runs");
            client.wait().expect("it ends");
            assert_eq!(names(&to), 1, "nobody could remove it");
            assert_eq!(Listener::into(to.path(), &[]).interrupt(), Some(130));
            assert_eq!(names(&to), 0);
        }
    }
}

/// A small disk: what cannot fit is refused when it is announced, and what no longer fits as soon as that is known,
/// not when all of it was sent; without a path of the listener's host.
#[test]
fn a_full_disk_is_told_at_once() {
    const NAME: &str = "a_full_disk_is_told_at_once";
    let (from, to) = (tempfile::tempdir().expect("a place"), tempfile::tempdir().expect("a place"));
    let directory = to.path().display().to_string();
    let mut process = Command::new("unshare");
    let script = r#"mount -t tmpfs -o size=8m none "$1" && exec "$2" serve --udp 0 --receive-into "$1""#;
    process.args(["-m", "sh", "-c", script, "sh", &directory, env!("CARGO_BIN_EXE_anabranch")]);
    let process = process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut process) = process else { return support::skip(NAME, "no unshare (Debian: util-linux)") };
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let Some(Ok(first)) = lines.next() else {
        let _ = process.wait();
        return support::skip(NAME, "only root may mount a small disk");
    };
    let port = first.rsplit(':').next().expect("a port").to_owned();
    let mut listener = Listener { process, lines, port };
    let output = listener.send(&file(&from, "too large", 9_000_000), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the disk has room for"), "{}", stderr(&output));
    listener.line();
    // Something else fills the disk after the announcement. The rest is not waited for.
    let inside = format!("/proc/{}/root{directory}/other", listener.process.id());
    let verdict = by_hand(&listener.port, async |association| {
        say(association, CONTROL, br#"{"send-file":{"name":"fits","size":6000000}}"#).await;
        let go = association.recv().await.expect("it lives").expect("an answer").into_bytes();
        assert_eq!(go, r#"{"go":{}}"#);
        let full = fs::write(inside, vec![1; 9_000_000]).expect_err("that is more than there is");
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        say(association, DATA, &[0; 60_000]).await;
        association.recv().await.expect("it lives").expect("an answer").into_bytes()
    });
    let verdict = String::from_utf8_lossy(&verdict).into_owned();
    assert!(verdict.contains(r#""failed":"the disk is full""#), "{verdict}");
    let line = listener.line();
    assert!(line.contains("the disk is full") && !line.contains(&directory), "{line}");
}

async fn say(association: &Association, ppid: u32, text: &[u8]) {
    let message = Message { stream: 0, ppid, payload: text.to_vec().into(), ..Message::default() };
    association.send(message).await.expect("it is up");
}

/// A conversation with a listener, word by word.
fn by_hand<T>(udp: &str, talk: impl AsyncFnOnce(&Association) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let local = [IpAddr::from([127, 0, 0, 1])];
        let endpoint = Endpoint::bind(Options::towards(&local).expect("a route")).expect("a socket");
        let to = [(local[0], udp.parse().expect("a port")).into()];
        let association = endpoint.connect(&to, 5000).await.expect("it comes up");
        let said = talk(&association).await;
        association.abort();
        drop(association);
        endpoint.close().await;
        said
    })
}

fn wait_until(so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it does not come to this");
}

#[test]
fn a_measurement_goes_both_ways() {
    let listener = Listener::new(&[]);
    let output =
        listener.client("perf", &["--seconds", "0.3", "--streams", "4", "--json"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    documented(&result);
    for direction in ["there", "back"] {
        let measured = &result[direction];
        assert!(measured["bytes"].as_u64() > Some(0) && measured["rate"].as_f64() > Some(0.0), "{result}");
        assert!(measured["cpu_a_gigabyte"].as_f64() > Some(0.0), "{result}");
        let delays = &measured["delays"];
        assert!(delays["delay"]["p99"].as_f64() >= delays["delay"]["p50"].as_f64(), "{result}");
        assert!(delays["jitter"]["max"].as_f64() > Some(0.0), "{result}");
        let carried = result[format!("{direction}_by_path")]["127.0.0.1 → 127.0.0.1"].as_u64();
        assert!(carried >= measured["bytes"].as_u64(), "{result}");
    }
    let text = listener.client("perf", &["--seconds", "0.1"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("CPU s/GB") && text.contains("delay  mean") && text.contains("jitter mean"),
        "{text}"
    );
}

/// Chunks become as large as the search finds, each direction by what its end allows. The headers of IP, UDP and SCTP
/// have 40 bytes.
#[test]
fn jumbo_frames_are_asked_for() {
    let listener = Listener::new(&[]);
    for (mtu, chunk) in [("9000", 8960), ("1500", 1460)] {
        let output = listener.client("perf", &["--seconds", "0.2", "--mtu", mtu, "--json"]).output();
        let result = json(&output.expect("it runs"));
        assert_eq!(result["paths"][0]["pmdcs"], chunk, "{result}");
    }
}

#[test]
fn one_way_both_at_once_and_several_associations() {
    let listener = Listener::new(&[]);
    let perf = |arguments: &[&str]| {
        let output = listener.client("perf", &[&["--json", "--seconds", "0.3"], arguments].concat()).output();
        let output = output.expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        json(&output)
    };
    let reverse = perf(&["--reverse"]);
    assert!(reverse["there"].is_null() && reverse["back"]["bytes"].as_u64() > Some(0), "{reverse}");
    let both = perf(&[
        "--both",
        "--parallel",
        "2",
        "--rate",
        "1 Mbit/s",
        "--message-size",
        "500",
        "--interval",
        "100 ms",
    ]);
    assert_eq!(both["associations"].as_array().map(Vec::len), Some(2));
    for way in ["there", "back"] {
        // Two applications of 1 Mbit/s for 0.3 s: 75,000 bytes and the first messages.
        let bytes = both[way]["bytes"].as_u64().expect("a number");
        assert!((10_000..=77_000).contains(&bytes), "{both}");
        let sum: u64 = both["associations"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one[way]["bytes"].as_u64().expect("a number"))
            .sum();
        assert_eq!(sum, bytes, "{both}");
    }
    let intervals = both["intervals"].as_array().expect("a list");
    assert!(intervals.len() >= 3, "{both}");
    let back: u64 =
        intervals.iter().map(|interval| interval["back"]["bytes"].as_u64().expect("a number")).sum();
    assert_eq!(Some(back), both["back"]["bytes"].as_u64(), "intervals leave nothing out: {both}");
    assert_eq!(both["events"][0]["state"], "active", "{both}");
}

/// A transfer in the log, as text and as JSON, and as events.
#[test]
fn a_listener_keeps_a_log() {
    let from = tempfile::tempdir().expect("a place");
    let path = file(&from, "a file", 1000);
    let to = tempfile::tempdir().expect("a place");
    let mut listener = Listener::into(to.path(), &[]);
    listener.send(&path, &[]);
    let line = listener.line();
    let (time, rest) = line.split_once(' ').expect("a time and the rest");
    assert!(time.ends_with('Z') && time.contains('T'), "{line}");
    assert!(rest.trim_start().starts_with("INFO transfer{id=1 peer=127.0.0.1}: received "), "{line}");
    assert!(rest.ends_with("a file, 1000 bytes"), "{line}");
    drop(listener);

    let directory = to.path().display().to_string();
    let mut process = command(&["serve", "--udp", "0", "--log", "json", "--receive-into", &directory]);
    let mut process = process.stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let mut next =
        || serde_json::from_str::<Value>(&lines.next().expect("a line").expect("text")).expect("JSON");
    let listening = next();
    let port =
        listening["message"].as_str().and_then(|said| said.rsplit(':').next()).expect("a port").to_owned();
    let send = ["send", &path.display().to_string(), "--to", "127.0.0.1", "--udp", &port];
    assert_eq!(anabranch(&send).status.code(), Some(1), "there is a file of this name");
    let said = next();
    assert_eq!(
        (&said["level"], &said["span"]["id"], &said["span"]["peer"]),
        (&"WARN".into(), &1.into(), &"127.0.0.1".into()),
        "{said}"
    );
    assert!(
        said["message"].as_str().is_some_and(|said| said.contains("there is a file of this name")),
        "{said}"
    );
    process.kill().and_then(|()| process.wait()).expect("it ran");

    let mut process = command(&["serve", "--udp", "0", "--json", "--receive-into", &directory]);
    let mut process = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let mut next =
        || serde_json::from_str::<Value>(&lines.next().expect("a line").expect("text")).expect("JSON");
    let listening = next();
    let port =
        listening["address"].as_str().and_then(|place| place.rsplit(':').next()).expect("a port").to_owned();
    let other = file(&from, "another", 2000).display().to_string();
    assert_eq!(anabranch(&["send", &other, "--to", "127.0.0.1", "--udp", &port]).status.code(), Some(0));
    let (connected, ended) = (next(), next());
    assert_eq!(
        (&listening["event"], &connected["event"], &ended["event"]),
        (&"listening".into(), &"connected".into(), &"ended".into())
    );
    assert!(ended["received"].as_str().is_some_and(|path| path.ends_with("/another")), "{ended}");
    assert_eq!(
        (&ended["bytes"], &ended["id"], &ended["peer"]),
        (&2000.into(), &connected["id"], &"127.0.0.1".into())
    );
    assert!(
        ended["time"].as_f64() > connected["time"].as_f64() && ended["seconds"].as_f64() > Some(0.0),
        "{ended}"
    );
    process.kill().expect("it runs");
    let output = process.wait_with_output().expect("it ends");
    assert!(
        stderr(&output).contains("another, 2000 bytes"),
        "the log is on standard error: {}",
        stderr(&output)
    );
}

/// What the systemd unit in docs/ starts is understood.
#[test]
fn the_unit_starts_a_listener() {
    let (place, key) = (tempfile::tempdir().expect("a place"), tempfile::tempdir().expect("a place"));
    fs::write(key.path().join("key"), "sixteen bytes at least").expect("a file");
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/anabranch-serve.service");
    let unit = fs::read_to_string(unit).expect("it is there");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("it starts something");
    let script = start.replace("/usr/local/bin/anabranch", env!("CARGO_BIN_EXE_anabranch"));
    let script = format!("exec {} --udp 0", script.replace("0.0.0.0", "127.0.0.1"));
    let mut process = Command::new("sh");
    process
        .args(["-c", &script])
        .env("STATE_DIRECTORY", place.path())
        .env("CREDENTIALS_DIRECTORY", key.path());
    let mut process = process.stdout(Stdio::piped()).spawn().expect("a shell");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("it says where it listens").expect("text");
    assert!(first.contains("listening at 127.0.0.1:"), "{first}");
    signal(&process, "-TERM");
    let status = process.wait().expect("it ends").code().expect("it exits");
    assert!(unit.contains(&format!("SuccessExitStatus={status}")), "{status}");
}

/// Ctrl-C ends a measurement with what was measured until then.
#[test]
fn an_interrupted_measurement_is_told() {
    let listener = Listener::new(&[]);
    for (which, way) in [(&[][..], "client→server"), (&["--reverse"], "server→client")] {
        let mut client = listener.client("perf", &["--seconds", "60", "--interval", "0.1"]);
        client.args(which).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut client = client.spawn().expect("the binary runs");
        let mut lines = BufReader::new(client.stdout.take().expect("a pipe")).lines();
        let first = lines.next().expect("an interval").expect("text");
        assert!(first.contains(way) && first.contains("Mbit/s"), "{first}");
        interrupt(&client);
        // What the listener has under way is more than there is room for here, and nobody measures it any more.
        let ended = client.wait_with_output().expect("it ends");
        assert_eq!((ended.status.code(), &*stderr(&ended)), (Some(130), "interrupted\n"), "it is no error");
        let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
        assert!(rest.iter().any(|line| line.starts_with(way) && line.contains("cut off")), "{rest:?}");
    }
}

/// What each path carries is told while it does: here in lines, as standard error is no terminal.
#[test]
fn progress_tells_of_each_path() {
    let listener = Listener::new(&[]);
    let arguments = ["--seconds", "1.2", "--cmt", "--progress", "--json"];
    let output = listener.client("perf", &arguments).output().expect("the binary runs");
    let lines = stderr(&output);
    let line = lines.lines().next().expect("a line after a second");
    for part in ["127.0.0.1 → 127.0.0.1: active, ", " (100 %), ", " Mbit/s, round trip "] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(json(&output)["paths"][0]["share"], 1.0);
}

/// With a key nobody gets in without it, or with another.
//= rfc4895#section-6
#[test]
fn only_who_has_the_key() {
    let (from, into) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
    let [right, wrong] = ["right", "wrong"].map(|name| {
        let path = from.path().join(name);
        fs::write(&path, format!("{name} key of many bytes\n")).expect("a file");
        path.display().to_string()
    });
    let sent = file(&from, "sent", 100_000);
    let listener = Listener::into(into.path(), &["--key", &right]);
    let hurry = ["--set", "rto_initial=100ms", "--set", "rto_min=50ms", "--set", "max_init_retransmits=1"];
    let told = ["only the listener has a key", "do both ends have the same key?"];
    for (key, told) in
        [&["--timeout", "20"][..], &["--key", &wrong, "--timeout", "0.2"]].into_iter().zip(told)
    {
        let hurry = if told.contains("same") { &hurry[..4] } else { &hurry[..] };
        let output = listener.send(&sent, &[key, hurry].concat());
        assert_eq!(output.status.code(), Some(1), "{key:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(told), "{key:?}: {}", stderr(&output));
        assert_eq!(names(&into), 0, "{key:?}");
    }
    let open = Listener::into(into.path(), &[]);
    let output = open.send(&sent, &["--key", &right]);
    assert!(stderr(&output).contains("only this end has a key"), "{}", stderr(&output));
    let output = listener.send(&sent, &["--key", &right]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read(into.path().join("sent")).expect("it arrived"), fs::read(&sent).expect("a file"));
}

#[test]
fn wrong_input_is_refused_with_the_reason() {
    let cases: [(&[&str], &str); 19] = [
        (&["perf", "--to", "127.0.0.1", "--seconds", "0"], "--seconds"),
        (&["perf", "--to", "127.0.0.1", "--mtu", "70000"], "576..=65535"),
        (&["perf", "--to", "127.0.0.1", "--rate", "0 bit/s"], "leave out --rate"),
        (&["perf", "--to", "192.0.2.256"], "neither an address nor a name"),
        (
            &["perf", "--to", "127.0.0.1", "--from", "203.0.113.77"],
            "--from 203.0.113.77: no interface of this host",
        ),
        (
            &["serve", "--public", "--listen", "203.0.113.77"],
            "--listen 203.0.113.77: no interface of this host",
        ),
        (&["perf", "--to", "127.0.0.1:9900", "--raw"], "there are no UDP ports"),
        (&["perf", "--to", "127.0.0.1", "--timeout", "5 parsecs"], "parsecs"),
        (&["serve", "--listen", "192.0.2.1"], "--public"),
        (&["serve", "--listen", "127.0.0.1,0.0.0.0"], "--public"),
        (&["serve", "--receive-into", "/dev/null/inbox"], "--receive-into /dev/null/inbox"),
        (&["serve", "--receive-into", "inbox", "--max-size", "10 parsecs"], "--max-size 10 parsecs"),
        (&["serve", "--max-size", "10 GB"], "--receive-into"),
        (&["serve", "--key", "/nowhere/key"], "--key /nowhere/key"),
        (&["serve", "--key", "/dev/null"], "0 bytes are too few"),
        (&["send", "/nowhere", "--to", "127.0.0.1"], "/nowhere"),
        (&["send", "Cargo.toml", "--to", "127.0.0.1", "--set", "rto_mn=1s"], "rto_min"),
        (&["send", "Cargo.toml", "--to", "127.0.0.1", "--retransmit", "nobody"], "nobody"),
        (&["perf", "--to", "127.0.0.1", "--seconds", "4000"], "--seconds"),
    ];
    for (arguments, told) in cases {
        let output = anabranch(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(told), "{arguments:?}: {}", stderr(&output));
    }
}

/// A listener by name, and with its UDP port behind its address.
#[test]
fn a_listener_is_an_address_or_a_name() {
    let listener = Listener::new(&[]);
    let place = format!("127.0.0.1:{}", listener.port);
    for to in [vec!["--to", &place], vec!["--to", "localhost", "--udp", &listener.port]] {
        let output = command(&["perf", "--seconds", "0.1"]).args(&to).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{to:?}: {}", stderr(&output));
    }
    let output = anabranch(&["perf", "--to", "no.such.host.invalid"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("--to no.such.host.invalid: this name has no address"),
        "{}",
        stderr(&output)
    );
}

/// Somebody is there and says nothing: it is told what is waited for, and not for longer than was said.
#[test]
fn a_silent_peer_is_not_waited_for_without_a_word() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let place = silent.local_addr().expect("an address").to_string();
    let hurry = ["--set", "rto_initial=50ms", "--set", "rto_min=50ms", "--timeout", "900 ms"];
    let output = command(&["perf", "--to", &place]).args(hurry).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains(&format!(" times, no answer from {place} (UDP)\n")), "{told}");
    assert!(
        told.contains(&format!("error: no association with {place} within 0.9 s (--timeout): asked ")),
        "{told}"
    );
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let place = silent.local_addr().expect("an address").to_string();
    let mut client = command(&["perf", "--to", &place]);
    let client = client.stderr(Stdio::piped()).spawn().expect("it runs");
    // It has begun when its first packet has come.
    silent.recv(&mut [0; 2000]).expect("an INIT");
    interrupt(&client);
    assert_eq!(client.wait_with_output().expect("it ends").status.code(), Some(130));
}

#[test]
fn nobody_there() {
    let settings = ["rto_initial=100ms", "rto_min=50ms", "max_init_retransmits=1"];
    let mut arguments = vec!["send", "Cargo.toml", "--to", "127.0.0.1", "--udp", "9"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let output = anabranch(&arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("127.0.0.1:9: nothing listens there"), "{}", stderr(&output));
}
