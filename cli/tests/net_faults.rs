//! What goes wrong when `serve`, `send` and `perf` are used, and what they make of it.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real networks have real clocks")]

#[path = "support/listener.rs"]
mod listener;
mod support;

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use listener::Listener;
use serde_json::Value;
use support::{anabranch, command, skip, stderr};

fn signal(process: &Child, which: &str) {
    let sent = Command::new("kill").args([which, &process.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// Waits for the end of a process, and kills it after so many seconds.
fn ends_within(mut process: Child, seconds: u64) -> Output {
    let begun = Instant::now();
    while process.try_wait().expect("it can be asked").is_none() {
        if begun.elapsed() > Duration::from_secs(seconds) {
            process.kill().expect("it runs");
            let output = process.wait_with_output().expect("it has ended");
            panic!("it still runs after {seconds} s: {}", stderr(&output));
        }
        sleep(Duration::from_millis(20));
    }
    process.wait_with_output().expect("it has ended")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

fn refused(arguments: &[&str], part: &str) {
    let output = anabranch(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
}

/// One of several associations is refused: the others end with it, so the listener has room for the next attempt.
#[test]
fn associations_end_when_one_of_several_is_refused() {
    let listener = Listener::new(&["--max-per-source", "2"]);
    let perf = |parallel: &str| {
        let perf = listener.client("perf", &["--seconds", "0.1", "--parallel", parallel, "--json"]);
        ends_within({ perf }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs"), 30)
    };
    let output = perf("3");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("too many associations"), "{}", stderr(&output));
    assert_eq!(perf("2").status.code(), Some(0), "there is room again");
}

/// A stopped listener answers nothing. One signal more ends all associations of a measurement, however many.
#[test]
fn a_second_signal_ends_all_associations() {
    let listener = Listener::new(&[]);
    let perf = listener.client("perf", &["--seconds", "60", "--parallel", "3"]);
    let perf = { perf }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    sleep(Duration::from_millis(500));
    signal(&listener.process, "-STOP");
    signal(&perf, "-INT");
    sleep(Duration::from_millis(500));
    signal(&perf, "-INT");
    assert_eq!(ends_within(perf, 10).status.code(), Some(130));
    signal(&listener.process, "-CONT");
}

/// One signal is enough: what waits to be sent to a listener that does not answer delays the end for five seconds.
#[test]
fn one_signal_ends_a_transfer_soon() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("endless");
    fs::File::create(&file).and_then(|file| file.set_len(8_000_000_000)).expect("a sparse file");
    let listener = Listener::into(&place.path().join("inbox"), &["--max-size", "100 GB"]);
    let (file, piped) = (file.display().to_string(), Stdio::piped);
    let clients = [&["send", &file][..], &["perf", "--seconds", "60"]].map(|arguments| {
        let client = listener.client(arguments[0], &arguments[1..]);
        { client }.stdout(piped()).stderr(piped()).spawn().expect("it runs")
    });
    sleep(Duration::from_millis(500));
    signal(&listener.process, "-STOP");
    clients.iter().for_each(|client| signal(client, "-INT"));
    for client in clients {
        assert_eq!(ends_within(client, 10).status.code(), Some(130));
    }
    signal(&listener.process, "-CONT");
}

/// A closed terminal (SIGHUP) ends a listener as SIGTERM does, but not if it was started to survive that.
#[test]
fn a_closed_terminal_ends_a_listener() {
    for (how, survives) in [("--default-signal=HUP", false), ("--ignore-signal=HUP", true)] {
        let place = tempfile::tempdir().expect("a directory");
        let (inbox, qlog) = (place.path().join("inbox"), place.path().join("served.sqlog"));
        let mut serve = Command::new("env");
        serve.args([how, env!("CARGO_BIN_EXE_anabranch"), "serve", "--udp", "0", "--receive-into"]);
        let mut listener = Listener::started(serve.arg(&inbox).arg("--qlog").arg(&qlog));
        let client = listener.client("perf", &["--seconds", "0.1"]).output().expect("it runs");
        assert_eq!(client.status.code(), Some(0), "{}", stderr(&client));
        signal(&listener.process, "-HUP");
        if survives {
            let client = listener.client("perf", &["--seconds", "0.1"]).output().expect("it runs");
            assert_eq!(client.status.code(), Some(0), "{}", stderr(&client));
            signal(&listener.process, "-INT");
        }
        let status = listener.process.wait().expect("it ends").code();
        assert_eq!(status, Some(if survives { 130 } else { 129 }));
        let mut left = names(place.path());
        left.sort();
        assert_eq!(left, ["inbox", "served.sqlog"], "no recording is left");
    }
}

/// It begins with few descriptors and may have more.
#[test]
fn a_listener_uses_all_descriptors_that_it_may_have() {
    let mut serve = Command::new("sh");
    let limited = "ulimit -Sn 64 && exec \"$@\"";
    serve.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_anabranch"), "serve", "--udp", "0"]);
    let listener = Listener::started(&mut serve);
    let limits = fs::read_to_string(format!("/proc/{}/limits", listener.process.id())).expect("its limits");
    let open = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
    let [soft, hard, ..] = open.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{open}") };
    assert!(soft == hard && soft != "64", "{open}");
}

/// A lack of descriptors is an error, and nothing panics.
#[test]
fn few_descriptors_are_an_error() {
    for descriptors in 4..10 {
        let limited = format!("ulimit -n {descriptors} && exec \"$@\"");
        let perf =
            [env!("CARGO_BIN_EXE_anabranch"), "perf", "--to", "127.0.0.1", "--udp", "9", "--timeout", "1 s"];
        let output = Command::new("sh").args(["-c", &limited, "sh"]).args(perf).output().expect("sh runs");
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{descriptors}: {told}");
        assert!(told.starts_with("error: ") && told.lines().count() == 1, "{descriptors}: {told}");
    }
}

/// Nobody reads the output of a listener, and the pipe is full. It serves on, and ends when it is told.
#[test]
fn a_listener_does_not_wait_for_its_reader() {
    let mut listener = Listener::new(&[]);
    let pipe = format!("/proc/{}/fd/1", listener.process.id());
    let mut pipe = fs::File::options().write(true).open(pipe).expect("its standard output");
    // This ends when the reader is gone.
    std::thread::spawn(move || while pipe.write_all(&[b'\n'; 4096]).is_ok() {});
    for _ in 0..3 {
        let perf = listener.client("perf", &["--seconds", "0.1", "--timeout", "5 s"]);
        let perf = { perf }.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
        let output = ends_within(perf, 30);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    signal(&listener.process, "-TERM");
    let begun = Instant::now();
    while listener.process.try_wait().expect("it can be asked").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(10), "it does not end");
        sleep(Duration::from_millis(20));
    }
    assert_eq!(listener.process.wait().expect("it has ended").code(), Some(143));
}

/// What ends before there is an endpoint leaves no recording and no empty trace, and says only its reason.
#[test]
fn what_never_began_leaves_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name).display().to_string();
    fs::write(at("file"), "content").expect("a file");
    let (file, record, qlog) = (at("file"), at("transfer.jsonl"), at("transfer.sqlog"));
    for (to, more, status) in [("no.such.host.invalid", "127.0.0.1", 1), ("127.0.0.1", "192.0.2.77", 2)] {
        let output =
            anabranch(&["send", &file, "--to", to, "--from", more, "--record", &record, "--qlog", &qlog]);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        assert_eq!(names(place.path()), ["file"]);
    }
    let serve = ["serve", "--listen", "192.0.2.77", "--public", "--qlog", &qlog];
    let output = anabranch(&serve);
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(2), 1), "{}", stderr(&output));
    assert_eq!(names(place.path()), ["file"]);
}

/// A listener that refuses an association still writes its traces.
#[test]
fn a_refused_association_can_be_replayed() {
    let place = tempfile::tempdir().expect("a directory");
    let qlog = place.path().join("served.sqlog");
    let mut listener = Listener::new(&["--max-per-source", "1", "--qlog", &qlog.display().to_string()]);
    let perf = listener.client("perf", &["--seconds", "0.1", "--parallel", "2"]).output();
    assert_eq!(perf.expect("it runs").status.code(), Some(1));
    signal(&listener.process, "-INT");
    assert_eq!(listener.process.wait().expect("it ends").code(), Some(130));
    assert!(fs::read_to_string(&qlog).expect("it was written").lines().count() > 5);
}

/// Whoever comes while a listener ends is told at once that nobody listens.
#[test]
fn a_listener_that_ends_accepts_nobody() {
    let listener = Listener::new(&[]);
    let busy = listener.client("perf", &["--seconds", "60"]);
    let mut busy = { busy }.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    sleep(Duration::from_millis(500));
    // Its association does not end while it is stopped.
    signal(&busy, "-STOP");
    signal(&listener.process, "-INT");
    sleep(Duration::from_millis(300));
    let late = listener.client("perf", &["--seconds", "0.1"]);
    let late = { late }.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let output = ends_within(late, 3);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("the peer refused or aborted"), "{}", stderr(&output));
    busy.kill().and_then(|()| busy.wait()).expect("it can be ended");
}

/// In the view on the terminal Ctrl-C is a key. The second one has to be heard too, while a peer that answers nothing
/// is waited for.
#[test]
fn a_second_ctrl_c_ends_a_transfer_that_is_watched() {
    const NAME: &str = "a_second_ctrl_c_ends_a_transfer_that_is_watched";
    let works = |output: Output| output.status.success();
    if !Command::new("script").args(["-qec", "true", "/dev/null"]).output().is_ok_and(works) {
        return skip(NAME, "there is no script(1)");
    }
    let place = tempfile::tempdir().expect("a directory");
    let inbox = place.path().join("inbox");
    let listener = Listener::into(&inbox, &["--max-size", "100 GB"]);
    let file = place.path().join("endless");
    fs::File::create(&file).and_then(|file| file.set_len(8_000_000_000)).expect("a sparse file");
    let (program, port) = (env!("CARGO_BIN_EXE_anabranch"), &listener.port);
    let send = format!("{program} send {} --to 127.0.0.1 --udp {port} --watch", file.display());
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &send, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::piped());
    let mut terminal = terminal.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let (mut keys, mut screen) =
        (terminal.stdin.take().expect("a pipe"), terminal.stdout.take().expect("a pipe"));
    // What is drawn is read, or the program would wait for room.
    std::thread::spawn(move || std::io::copy(&mut screen, &mut std::io::sink()));
    sleep(Duration::from_millis(1500));
    signal(&listener.process, "-STOP");
    for _ in 0..2 {
        keys.write_all(b"\x03").and_then(|()| keys.flush()).expect("a terminal");
        sleep(Duration::from_millis(700));
    }
    assert_eq!(ends_within(terminal, 10).status.code(), Some(130));
    signal(&listener.process, "-CONT");
}

/// Name servers that do not answer: --timeout holds for them, and a signal ends the wait.
#[test]
fn name_servers_are_not_waited_for_without_end() {
    const NAME: &str = "name_servers_are_not_waited_for_without_end";
    let place = tempfile::tempdir().expect("a directory");
    let (servers, file) = (place.path().join("resolv.conf"), place.path().join("file"));
    fs::write(&servers, "nameserver 192.0.2.1\n").expect("a file");
    fs::write(&file, "content").expect("a file");
    // A network of which nothing answers.
    let script = "mount --bind \"$1\" /etc/resolv.conf && ip link add nowhere type veth peer name void && ip link set void up \
        && ip address add 192.0.2.2/24 dev nowhere && ip link set nowhere up && ip neighbour add 192.0.2.1 lladdr 02:00:00:00:00:01 dev nowhere \
        && echo ready && shift && exec \"$@\"";
    let send = |timeout: &str| {
        let mut send = Command::new("unshare");
        send.args(["-mn", "sh", "-c", script, "sh"])
            .arg(&servers)
            .args([env!("CARGO_BIN_EXE_anabranch"), "send"]);
        send.arg(&file).args(["--to", "host.example", "--timeout", timeout]);
        send.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let ready = |process: &mut Child| {
        let mut said = [0; 6];
        process.stdout.as_mut().is_some_and(|out| out.read_exact(&mut said).is_ok())
    };
    let Ok(mut first) = send("500ms") else { return skip(NAME, "no unshare (Debian: util-linux)") };
    if !ready(&mut first) {
        let _ = first.wait();
        return skip(NAME, "only root may make such a network");
    }
    let output = ends_within(first, 4);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("no answer from the name servers within 0.5 s (--timeout)"),
        "{}",
        stderr(&output)
    );
    let mut second = send("1h").expect("it runs");
    assert!(ready(&mut second));
    sleep(Duration::from_millis(500));
    signal(&second, "-INT");
    assert_eq!(ends_within(second, 2).status.code(), Some(130));
}

/// Addresses that are given twice or in another form are one; what cannot be used is refused by its option.
#[test]
fn addresses_and_ports_are_what_is_meant() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("file");
    fs::write(&file, "content").expect("a file");
    let inbox = place.path().join("inbox");
    let mut listener = Listener::into(&inbox, &["--listen", "127.0.0.1,::ffff:127.0.0.1,127.0.0.1"]);
    let output = listener.send(&file, &["--from", "127.0.0.1,127.0.0.1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["paths"].as_array().map(Vec::len), Some(1), "{told}");
    assert!(listener.line().ends_with("file, 7 bytes"));
    let shown = file.display().to_string();
    fs::rename(&file, place.path().join("again")).expect("it is there");
    let again = place.path().join("again").display().to_string();
    let mapped = anabranch(&["send", &again, "--to", &format!("[::ffff:127.0.0.1]:{}", listener.port)]);
    assert_eq!(mapped.status.code(), Some(0), "{}", stderr(&mapped));
    let taken = anabranch(&["serve", "--udp", &listener.port]);
    let message = format!("--udp {}: another program has this port at 127.0.0.1", listener.port);
    assert!(taken.status.code() == Some(1) && stderr(&taken).contains(&message), "{}", stderr(&taken));
    fs::write(&shown, "content").expect("a file");
    refused(
        &["send", &shown, "--to", "127.0.0.1", "--udp", "0"],
        "--udp 0: name the UDP port of the listener",
    );
    refused(&["send", &shown, "--to", "127.0.0.1:0"], "`0` is no UDP port");
    refused(
        &["send", &shown, "--to", "127.0.0.1", "--json", "--interval", "1e19"],
        "nobody waits longer than a year",
    );
}

/// A listener with one address gets one path by default, although CMT was asked for and two local addresses were named.
#[test]
fn the_one_path_of_cmt_is_told_of() {
    let place = tempfile::tempdir().expect("a directory");
    let listener = Listener::into(&place.path().join("inbox"), &[]);
    let told = |name: &str, arguments: &[&str]| {
        let file = place.path().join(name);
        fs::write(&file, "content").expect("a file");
        let output = listener.send(&file, &[&["--from", "127.0.0.1,127.0.0.2"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    let warning = "warning: --from: the association has one path, because the listener has one address";
    assert!(told("one", &["--cmt"]).contains(warning));
    // Without CMT the second address is for a failure of the first.
    assert_eq!(told("spare", &[]), "");
    assert_eq!(told("all", &["--cmt", "--set", "pairs=all"]), "");
}

/// Runs the program in a network of its own, after these commands.
fn alone(commands: &str, arguments: &[&str]) -> std::io::Result<Output> {
    let mut inside = Command::new("unshare");
    let script = format!("{commands} && exec \"$@\"");
    inside.args(["-n", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_anabranch")]);
    inside.args(arguments).stdin(Stdio::null()).output()
}

/// The system keeps a new IPv6 address back until it knows that no other host has it; here the link has no carrier, so
/// it never does.
#[test]
fn an_address_that_is_not_ready_is_told() {
    let commands =
        "ip link add d0 type veth peer name d1 && ip link set d0 up && ip address add 2001:db8::1/64 dev d0";
    if !alone(commands, &["--version"]).is_ok_and(|output| output.status.success()) {
        return skip("an_address_that_is_not_ready_is_told", "only root may make such a network");
    }
    let told = alone(commands, &["serve", "--listen", "2001:db8::1", "--public"]).expect("it runs");
    assert_eq!(told.status.code(), Some(1), "{}", stderr(&told));
    assert!(stderr(&told).contains("--listen 2001:db8::1: the system does not let"), "{}", stderr(&told));
    let told = alone(commands, &["serve", "--listen", "2001:db8::2", "--public"]).expect("it runs");
    assert!(stderr(&told).contains("--listen 2001:db8::2: no interface of this host"), "{}", stderr(&told));
}

/// A host without a network of its own: no interface for `0.0.0.0`, and of several addresses only some have routes.
#[test]
fn what_has_no_route_is_told_by_its_option() {
    const NAME: &str = "what_has_no_route_is_told_by_its_option";
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("file");
    fs::write(&file, "content").expect("a file");
    let within = |arguments: &[&str]| alone("ip link set lo up", arguments);
    if !within(&["--version"]).is_ok_and(|output| output.status.success()) {
        return skip(NAME, "only root may make such a network");
    }
    let told = within(&["serve", "--listen", "0.0.0.0", "--public"]).expect("it runs");
    assert_eq!(told.status.code(), Some(2), "{}", stderr(&told));
    assert!(stderr(&told).contains("--listen 0.0.0.0: this host has only loopback"), "{}", stderr(&told));
    let send = ["send", &file.display().to_string(), "--timeout", "1s", "--to"];
    let told = within(&[&send[..], &["127.0.0.1,192.0.2.1"]].concat()).expect("it runs");
    let said = stderr(&told);
    assert!(said.contains("--to 192.0.2.1: no way leads there from this host"), "{said}");
    assert!(said.contains("no association with 127.0.0.1:9899: nothing listens there"), "{said}");
    let told = within(&[&send[..], &["192.0.2.1"]].concat()).expect("it runs");
    assert!(stderr(&told).contains("no way leads to 192.0.2.1"), "{}", stderr(&told));
}

/// A path need not be UTF-8; the name that the other end gives the file has to be.
#[test]
fn names_that_are_no_text() {
    let place = tempfile::tempdir().expect("a directory");
    let odd = place.path().join(OsStr::from_bytes(b"odd\xff"));
    fs::create_dir(&odd).expect("a directory");
    fs::write(odd.join("file"), "content").expect("a file");
    fs::write(odd.join(OsStr::from_bytes(b"\xfe")), "content").expect("a file");
    let mut listener = Listener::into(&place.path().join("inbox"), &[]);
    let output = listener.send(&odd.join("file"), &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(told["complete"] == true && told["file"].is_string(), "{told}");
    assert!(listener.line().ends_with("file, 7 bytes"));
    let output = listener.send(&odd.join(OsStr::from_bytes(b"\xfe")), &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("its name is not UTF-8"), "{}", stderr(&output));
}

/// A listener whose output cannot be written was not interrupted.
#[test]
fn a_listener_that_cannot_say_where_it_listens_fails() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux");
    let serve =
        command(&["serve", "--udp", "0"]).stdout(full).stderr(Stdio::piped()).spawn().expect("it runs");
    let output = ends_within(serve, 10);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write the results"), "{}", stderr(&output));
}

/// Over IP directly there is no UDP port.
#[test]
fn a_raw_listener_has_no_port() {
    for (arguments, said) in
        [(&[][..], "listening at 127.0.0.1\n"), (&["--json"], r#"{"address":"127.0.0.1","#)]
    {
        let mut serve = command(&["serve", "--raw"]);
        let mut serve =
            serve.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        let mut line = String::new();
        let read = BufReader::new(serve.stdout.take().expect("a pipe")).read_line(&mut line);
        let _ = serve.kill();
        let _ = serve.wait();
        if read.expect("text") == 0 {
            return skip("a_raw_listener_has_no_port", "only root may open raw sockets");
        }
        assert!(line.starts_with(said), "{line}");
    }
}

/// All associations of a measurement have the same settings.
#[test]
fn a_warning_is_said_once() {
    let listener = Listener::new(&[]);
    let harmful = ["--seconds", "0.1", "--parallel", "3", "--set", "pf_max_retrans=5"];
    let output = listener.client("perf", &harmful).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("warning: --set pf_max_retrans").count(), 1, "{}", stderr(&output));
}

/// A hundred streams both ways, though either end would offer fewer by itself.
#[test]
fn a_measurement_has_the_streams_that_it_asks_for() {
    let listener = Listener::new(&[]);
    let output = listener.client("perf", &["--seconds", "0.1", "--streams", "100", "--json"]).output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let few =
        listener.client("perf", &["--seconds", "0.1", "--streams", "100", "--set", "outbound_streams=9"]);
    let output = { few }.output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let message = "100 streams were asked for, and the two ends have agreed on 9";
    assert!(stderr(&output).contains(message), "{}", stderr(&output));
}

/// Without an association there is an object too, and it says why: nobody listens, or a signal came while nobody
/// answered. In text the signal is told as well.
#[test]
fn the_result_is_printed_without_an_association_too() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("file").display().to_string();
    fs::write(&file, "content").expect("a file");
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let nobody = nobody.expect("a port that is free again").port();
    let silent_port = silent.local_addr().expect("it has one").port();
    for client in [&["send", &file][..], &["perf"]] {
        for (port, json, status, why) in [
            (nobody, true, 1, "nothing listens there"),
            (silent_port, true, 130, "interrupted"),
            (silent_port, false, 130, "interrupted"),
        ] {
            let mut process = command(client);
            process.args(["--to", "127.0.0.1", "--udp", &port.to_string()]).args(json.then_some("--json"));
            let process = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
            if status == 130 {
                sleep(Duration::from_millis(700));
                signal(&process, "-INT");
            }
            let output = ends_within(process, 10);
            assert_eq!(output.status.code(), Some(status), "{client:?}: {}", stderr(&output));
            if !json {
                let said =
                    if client[0] == "send" { "0 of 7 bytes had arrived" } else { "nothing was measured" };
                assert!(
                    stderr(&output).contains(why) && stderr(&output).contains(said),
                    "{}",
                    stderr(&output)
                );
                continue;
            }
            let told: Value = serde_json::from_slice(&output.stdout).expect("one object");
            let problem = told["problem"].as_str().expect("it has a reason");
            assert!(problem.contains(why) && told["complete"] == false, "{told}");
            assert!(told["traffic"]["packets_sent"].as_u64() > Some(0), "{told}");
        }
    }
}
