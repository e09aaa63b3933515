//! `anabranch lab` from outside: by requests, and in a browser.

#![allow(clippy::disallowed_methods, reason = "a server has real clocks")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{anabranch, browser, command, opened, skip, stderr};

/// A server, ended when it is dropped.
struct Lab {
    child: Child,
    address: SocketAddr,
    /// `/TOKEN`.
    path: String,
}

impl Lab {
    fn start(arguments: &[&str]) -> Lab {
        let mut all = vec!["lab", "--json"];
        all.extend(arguments);
        Lab::started(&mut command(&all))
    }

    /// The server that a command starts.
    fn started(lab: &mut Command) -> Lab {
        let mut child = lab.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("it tells its address");
        let told: Value = serde_json::from_str(&line).expect("it is JSON");
        let url = told["url"].as_str().expect("it has a URL");
        let (address, token) =
            url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a URL");
        let path = format!("/{}", token.trim_end_matches('/'));
        Lab { child, address: address.parse().expect("an address"), path }
    }

    /// Sends a request as it is; the status, the head and the body of the answer.
    fn raw(&self, request: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("it takes the request");
        let mut bytes = Vec::new();
        // A refused body is not read: the connection may be reset behind the answer.
        let _ = stream.read_to_end(&mut bytes);
        let answer = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, head.to_lowercase(), body.to_owned())
    }

    fn get(&self, place: &str) -> (u16, String, String) {
        let (path, address) = (&self.path, self.address);
        self.raw(&format!("GET {path}{place} HTTP/1.0\r\nHost: {address}\r\n\r\n"))
    }

    fn post(&self, place: &str, body: &Value) -> (u16, Value) {
        let (path, address, body) = (&self.path, self.address, body.to_string());
        let head = "Content-Type: application/json\r\nContent-Length";
        let (status, _, answer) = self.raw(&format!(
            "POST {path}{place} HTTP/1.0\r\nHost: {address}\r\n{head}: {}\r\n\r\n{body}",
            body.len()
        ));
        (status, serde_json::from_str(&answer).expect("it is JSON"))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn example(name: &str) -> String {
    let file = format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(file).expect("the example is there")
}

#[test]
fn only_requests_with_the_token_from_here_are_answered() {
    let lab = Lab::start(&[]);
    let (path, address) = (&lab.path, lab.address);
    assert!(address.ip().is_loopback() && path.len() == 33, "{address} {path}");
    assert_eq!(lab.get("/").0, 200);
    assert_eq!(lab.raw(&format!("GET / HTTP/1.0\r\nHost: {address}\r\n\r\n")).0, 404);
    let guessed = format!("GET /{}/ HTTP/1.0\r\nHost: {address}\r\n\r\n", "0".repeat(32));
    assert_eq!(lab.raw(&guessed).0, 404);
    let elsewhere = format!("GET {path}/ HTTP/1.0\r\nHost: evil.example:{}\r\n\r\n", address.port());
    assert_eq!(lab.raw(&elsewhere).0, 421);
    assert_eq!(lab.raw(&format!("GET {path}/ HTTP/1.0\r\n\r\n")).0, 421);
    let foreign = format!("GET {path}/ HTTP/1.0\r\nHost: {address}\r\nOrigin: http://evil.example\r\n\r\n");
    assert_eq!(lab.raw(&foreign).0, 421);
    let (_, head, _) = lab.get("/");
    for promised in ["default-src 'none'", "no-referrer", "nosniff", "no-store"] {
        assert!(head.contains(promised), "{promised}: {head}");
    }
    let other = Lab::start(&[]);
    assert_ne!(lab.path, other.path);
}

#[test]
fn a_request_that_is_too_long_is_refused() {
    let lab = Lab::start(&[]);
    let (path, address) = (&lab.path, lab.address);
    let head = "Content-Type: application/json\r\nContent-Length: 2000000";
    let long = format!("POST {path}/runs HTTP/1.0\r\nHost: {address}\r\n{head}\r\n\r\n{{");
    assert_eq!(lab.raw(&long).0, 413);
}

/// Its page and its errors have the name of the scenario that was opened; other names are not known.
#[test]
fn a_run_has_the_name_of_its_scenario() {
    let lab = Lab::start(&[]);
    for (name, shown) in [("one-path", "one-path"), ("../one-path", "scenario")] {
        let (status, run) = lab.post("/runs", &json!({ "text": example("one-path"), "name": name }));
        assert_eq!(status, 200, "{run}");
        let (_, _, page) = lab.get(&format!("/runs/{}/report", run["id"]));
        assert!(page.contains(&format!("<h1>{shown}</h1>")), "{name}");
        let (status, refused) = lab.post("/runs", &json!({ "text": "\nx = 1", "name": name }));
        assert_eq!((status, &refused["line"]), (422, &json!(2)), "{refused}");
        let error = refused["error"].as_str().expect("a text");
        assert!(error.contains(&format!(" {shown}.toml:2:")), "{error}");
    }
}

#[test]
fn a_run_has_the_page_and_packets_of_the_command_line() {
    let lab = Lab::start(&[]);
    let text = example("one-path");
    let (status, run) = lab.post("/runs", &json!({ "text": text }));
    assert_eq!(status, 200, "{run}");
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(place("scenario.toml"), &text).expect("it can be written");
    let (page, capture) = (place("page.html"), place("packets.pcapng"));
    let output = anabranch(&["run", &place("scenario.toml"), "--report", &page, "--pcap", &capture]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(run["table"], String::from_utf8_lossy(&output.stdout).as_ref());
    let figure = |page: &str| {
        let from = page.find("id=\"figure\">").expect("a figure");
        page[from..].split("</script>").next().map(str::to_owned)
    };
    let (status, _, report) = lab.get(&format!("/runs/{}/report", run["id"]));
    assert_eq!(status, 200);
    assert_eq!(figure(&report), figure(&std::fs::read_to_string(page).expect("a page")));
    let explained = anabranch(&["explain", &capture, "--json"]);
    let lines: Vec<Value> = String::from_utf8_lossy(&explained.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect();
    let (_, _, packets) = lab.get(&format!("/runs/{}/packets?from=3", run["id"]));
    let packets: Vec<Value> = serde_json::from_str(&packets).expect("it is JSON");
    assert!(packets.len() > 10);
    for (packet, line) in packets.iter().zip(lines.iter().filter(|line| line["number"].as_u64() >= Some(3))) {
        assert_eq!(packet["line"], *line);
    }
}

/// Questions about a run do not take the place of runs that are kept.
#[test]
fn a_run_is_kept_however_often_one_asks_about_it() {
    let lab = Lab::start(&[]);
    let text = example("one-path");
    let (status, run) = lab.post("/runs", &json!({ "text": text }));
    assert_eq!(status, 200, "{run}");
    for _ in 0..5 {
        assert_eq!(lab.post("/why", &json!({ "text": text, "at": 0.1 })).0, 200);
        assert_eq!(lab.post("/compare", &json!({ "a": text, "b": text })).0, 200);
    }
    assert_eq!(lab.get(&format!("/runs/{}/packets?from=1", run["id"])).0, 200);
}

/// More requests than runs that are kept: those that wait or work lose nothing to those that finish.
#[test]
fn many_runs_at_once_do_not_disturb_each_other() {
    let lab = Lab::start(&[]);
    let run = json!({ "text": example("one-path") });
    std::thread::scope(|scope| {
        let posts: Vec<_> = (0..24).map(|_| scope.spawn(|| lab.post("/runs", &run))).collect();
        for post in posts {
            let (status, answer) = post.join().expect("an answer");
            assert_eq!(status, 200, "{answer}");
        }
    });
}

/// The folders of publications hold files of sweeps too, which are no scenarios.
#[test]
fn only_scenarios_are_offered() {
    let lab = Lab::start(&[]);
    let (_, _, scenarios) = lab.get("/scenarios");
    let scenarios: Vec<Value> = serde_json::from_str(&scenarios).expect("it is JSON");
    let sweeps = scenarios
        .iter()
        .filter(|offered| offered["text"].as_str().is_none_or(|text| text.contains("\n[measure]\n")));
    assert_eq!(sweeps.count(), 0);
    assert!(scenarios.len() > 40, "{}", scenarios.len());
}

#[test]
fn an_error_is_that_of_the_command_line() {
    let lab = Lab::start(&[]);
    let text = example("one-path").replace("rate = ", "rat = ");
    let (status, answer) = lab.post("/runs", &json!({ "text": text }));
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("scenario.toml"), &text).expect("it can be written");
    let output = command(&["run", "scenario.toml"]).current_dir(&directory).output().expect("it runs");
    assert_eq!((status, answer["error"].as_str()), (422, Some(stderr(&output).as_str())));
    let line = text.lines().position(|line| line.starts_with("rat = ")).map(|line| line as u64 + 1);
    assert_eq!(answer["line"].as_u64(), line);
}

/// A scenario that would take hours.
const ENDLESS: &str = "[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"10 Gbit/s\"\ndelay = \"1 ms\"\n\
                       [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nsend = \"1000 GB\"\n";

#[test]
fn a_run_has_limits() {
    let lab = Lab::start(&["--time", "1 s"]);
    let (status, answer) = lab.post("/runs", &json!({ "text": ENDLESS }));
    assert_eq!(status, 408, "{answer}");
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("longer than 1 s")), "{answer}");
    if cfg!(target_os = "linux") {
        // With 3 MB, the program cannot start a thread: it panics, which is a signal unless the build unwinds.
        for (memory, expected) in [("3 MB", &[500, 507][..]), ("40 MB", &[507])] {
            let small = Lab::start(&["--memory", memory, "--time", "300 s"]);
            let (status, answer) = small.post("/runs", &json!({ "text": ENDLESS }));
            assert!(expected.contains(&status), "{memory}: {status}: {answer}");
        }
    }
}

#[test]
fn it_explains_compares_and_reproduces() {
    let lab = Lab::start(&["--time", "600 s"]);
    let text = example("outage");
    let (status, why) = lab.post("/why", &json!({ "text": text, "at": 11.0 }));
    assert!(
        status == 200 && why["text"].as_str().is_some_and(|text| text.contains("At 11.000000 s")),
        "{why}"
    );
    let other = text.replace("delay = \"20 ms\"", "delay = \"21 ms\"");
    let (status, parted) = lab.post("/compare", &json!({ "a": text, "b": other }));
    assert!(status == 200 && parted["text"].as_str().is_some_and(|text| text.contains("packet")), "{parted}");
    let claims = json!({ "paper": "receive-buffer-blocking", "claim": "model" });
    let (_, _, papers) = lab.get("/papers");
    let papers: Value = serde_json::from_str(&papers).expect("it is JSON");
    assert!(papers.as_array().is_some_and(|papers| papers.len() >= 5), "{papers}");
    let (status, judged) = lab.post("/reproduce", &claims);
    assert_eq!(status, 200, "{judged}");
    assert_eq!(lab.get(&format!("/runs/{}/report", judged["id"])).0, 200);
    let elsewhere = json!({ "paper": "../..", "claim": "x" });
    assert_eq!(lab.post("/reproduce", &elsewhere).0, 404);
}

#[test]
fn ctrl_c_ends_it_and_its_runs() {
    let mut lab = Lab::start(&[]);
    let (path, address) = (lab.path.clone(), lab.address);
    let body = json!({ "text": ENDLESS }).to_string();
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!("POST {path}/runs HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).expect("it takes the request");
    let children = || {
        let list = format!("/proc/{0}/task/{0}/children", lab.pid().as_raw_nonzero());
        std::fs::read_to_string(list).unwrap_or_default()
    };
    while cfg!(target_os = "linux") && children().is_empty() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let run = children();
    kill_process(lab.pid(), Signal::INT).expect("it gets the signal");
    assert_eq!(lab.child.wait().expect("it ends").code(), Some(130));
    // The run is killed, which takes the system a moment; by itself it would go on for a minute.
    let goes_on = |process: &str| {
        let command = std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        command.contains("scenario.toml")
    };
    for _ in 0..200 {
        if !run.split_whitespace().any(goes_on) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the run goes on");
}

/// Whoever is on this host can connect, also without the token.
#[test]
fn connections_without_a_request_do_not_stay() {
    let mut limited = Command::new("sh");
    limited.args([
        "-c",
        "ulimit -n 300 && exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_anabranch"),
        "lab",
        "--json",
    ]);
    let lab = Lab::started(&mut limited);
    let half = || {
        let mut stream = TcpStream::connect(lab.address).expect("it listens");
        write!(stream, "GET / HTTP/1.1\r\nHost: {}\r\nX: ", lab.address).expect("it takes them");
        stream
    };
    let mut idle: Vec<TcpStream> = (0..400).map(|_| half()).collect();
    assert_eq!(lab.get("/").0, 200, "they are ended, and others have their turn");
    idle[0].set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let told = idle[0].read_to_end(&mut Vec::new());
    assert!(told.is_ok(), "it is closed: {told:?}");
}

/// A server that is killed ends no run; the system then does.
#[test]
fn a_run_has_an_end_without_the_server() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let lab = Lab::start(&["--time", "40 s"]);
    let (path, address) = (&lab.path, lab.address);
    let body = json!({ "text": ENDLESS }).to_string();
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!("POST {path}/runs HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).expect("it takes the request");
    let processors = std::thread::available_parallelism().expect("there are some").get();
    let limit = format!("{} {0} seconds", 41 * processors);
    let pid = lab.pid().as_raw_nonzero();
    for _ in 0..500 {
        let runs = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for run in runs.split_whitespace() {
            let limits = std::fs::read_to_string(format!("/proc/{run}/limits")).unwrap_or_default();
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            if limits.lines().any(|line| words(line) == format!("Max cpu time {limit}")) {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no run has a limit of {limit}");
}

#[test]
fn the_page_runs_two_scenarios_in_a_browser() {
    let Some(browser) = browser() else {
        return skip("the_page_runs_two_scenarios_in_a_browser", "there is no Chromium");
    };
    let lab = Lab::start(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("http://{}{}/#outage,one-path", lab.address, lab.path);
    let dom = opened(browser, directory.path(), &url, &[]);
    let start = &dom[dom.find("<html").expect("the browser shows a page")..];
    let root = &start[..start.find('>').expect("the element ends")];
    assert!(!root.contains("data-error") && !root.contains("data-refused"), "{root}");
    assert!(root.contains("data-ran=\"2\"") && root.contains("data-packet=\"1\""), "{root}");
}
