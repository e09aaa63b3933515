//! `anabranch shell`: real programs over simulated links. What makes namespaces is for root only.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "real programs have real clocks")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use support::{anabranch, command, skip, stderr};

/// Two hosts and two links; the third packet that `a` sends over the first is lost.
const TWO_LINKS: &str = r#"
[[link]]
name = "wifi"
between = ["a", "b"]
rate = "50 Mbit/s"
delay = "2 ms"
loss = [{ packets = [3] }, "0 %"]

[[link]]
name = "a-very-long-link-name"
between = ["a", "b"]
rate = "50 Mbit/s"
delay = "2 ms"

[[flow]]
name = "beside"
from = "a"
to = "b"
send = "10 kB"
"#;

/// Whether sessions can be made here; says so if not.
fn possible(test: &str) -> bool {
    let works = |program: &str| Command::new(program).arg("-V").output().is_ok();
    let why = match () {
        () if !geteuid().is_root() => "only root can make network namespaces",
        () if !works("ip") => "ip is not installed",
        () if !Path::new("/dev/net/tun").exists() => "there is no /dev/net/tun",
        () => return true,
    };
    skip(test, why);
    false
}

fn scenario(directory: &Path) -> String {
    let file = directory.join("two.toml");
    fs::write(&file, TWO_LINKS).expect("the scenario is written");
    file.display().to_string()
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn wrong_input_is_one_line_with_the_fix() {
    let directory = directory();
    let file = scenario(directory.path());
    let cases: [(&[&str], &str); 6] = [
        (&["--at", "a", "--", "no-such-program"], "there is no such program; give its path"),
        (&["--at", "nobody", "--", "true"], "no link has a node `nobody`; the nodes are: a, b"),
        (&["--at", "a", "--at", "b=no-such-program x", "--at", "a", "--", "true"], "names node `a` twice"),
        (&["--at", "a=true"], "--at a -- PROGRAM"),
        (&["--at", "a", "--without", "download", "--", "true"], "the flows are: beside"),
        (&["--at", "a", "--set", "link.wifi.rate=fast", "--", "true"], "link.wifi.rate"),
    ];
    for (arguments, message) in cases {
        let output = anabranch(&[&["shell", &file], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

/// A user namespace in which no other can be made, and no capability: as an unprivileged user meets a host that refuses
/// user namespaces.
const REFUSED: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
    exec setpriv --inh-caps=-all --bounding-set=-all --no-new-privs \"$@\"";

#[test]
fn without_permission_for_namespaces_one_line_names_the_fix() {
    let unshare = |arguments: &[&str]| {
        Command::new("unshare").args(["--user", "--map-root-user", "sh", "-c"]).args(arguments).output()
    };
    let works = |output: Output| output.status.success();
    if !unshare(&[REFUSED, "sh", "true"]).is_ok_and(works) {
        return skip(
            "without_permission_for_namespaces_one_line_names_the_fix",
            "there is no unshare, no setpriv or no user namespace",
        );
    }
    let directory = directory();
    let file = scenario(directory.path());
    let program = env!("CARGO_BIN_EXE_anabranch");
    let output =
        unshare(&[REFUSED, "sh", program, "shell", &file, "--at", "a", "--", "true"]).expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("run it as root (sudo), or allow user namespaces (sysctl user.max_user_namespaces)"),
        "{said}"
    );
}

#[test]
fn a_node_has_one_device_for_each_interface_and_the_exit_status_is_the_programs() {
    if !possible("shell: devices") {
        return;
    }
    let directory = directory();
    let file = scenario(directory.path());
    let script = "ip -brief -4 address; ip route get 10.0.0.6; ip route get 10.0.0.2; exit 7";
    let output = anabranch(&["shell", &file, "--at", "a", "--without", "all", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let shown = stdout(&output);
    assert!(shown.contains("10.0.0.1/30") && shown.contains("10.0.0.5/30"), "{shown}");
    assert!(shown.contains("a-very-long-lin"), "{shown}");
    assert!(
        shown.contains("dev wifi src 10.0.0.5") && shown.contains("dev a-very-long-lin src 10.0.0.1"),
        "{shown}"
    );
}

#[test]
fn nodes_have_ipv6_addresses_if_the_scenario_says_so_and_a_summary_is_not_overwritten() {
    if !possible("shell: IPv6") {
        return;
    }
    let directory = directory();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let [file, summary, inbox] = ["six.toml", "summary.json", "inbox"].map(path);
    fs::write(&file, format!("ip_header = \"40 B\"\n{TWO_LINKS}")).expect("the scenario is written");
    let program = env!("CARGO_BIN_EXE_anabranch");
    let server = format!("b={program} serve --listen fd00::2,fd00::6 --public --receive-into {inbox}");
    let script = format!(
        "ip -brief -6 address; ip -6 route get fd00::6; sleep 0.5; {program} send {file} --to fd00::2,fd00::6"
    );
    let shell = ["shell", &file, "--at", "a", "--at", &server, "--without", "all", "--summary", &summary];
    let run = |more: &[&str]| anabranch(&[&shell[..], more, &["--", "sh", "-c", &script]].concat());
    let output = run(&[]);
    let shown = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{shown}{}", stderr(&output));
    assert!(shown.contains("fd00::5/126") && shown.contains("dev wifi src fd00::5"), "{shown}");
    assert_eq!(fs::read_to_string(Path::new(&inbox).join("six.toml")).ok(), fs::read_to_string(&file).ok());
    let again = run(&[]);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
    assert!(stderr(&again).contains("--force overwrites it"), "{}", stderr(&again));
}

#[test]
fn two_programs_meet_the_losses_of_the_scenario_beside_its_flows() {
    if !possible("shell: two programs") {
        return;
    }
    let directory = directory();
    let file = scenario(directory.path());
    let [source, inbox, summary] =
        ["source", "inbox", "summary.json"].map(|name| directory.path().join(name).display().to_string());
    fs::create_dir(&inbox).expect("an inbox");
    fs::write(&source, vec![7; 300_000]).expect("a file");
    let binary = env!("CARGO_BIN_EXE_anabranch");
    let serve = format!("b={binary} serve --listen 10.0.0.6,10.0.0.2 --public --receive-into {inbox}");
    let send = format!("sleep 1; exec {binary} send {source} --to 10.0.0.6,10.0.0.2");
    let output = anabranch(&[
        "shell",
        &file,
        "--at",
        "a",
        "--at",
        &serve,
        "--summary",
        &summary,
        "--",
        "sh",
        "-c",
        &send,
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read(format!("{inbox}/source")).expect("the file arrived"), vec![7; 300_000]);
    let report: Value = serde_json::from_slice(&fs::read(&summary).expect("a summary")).expect("JSON");
    assert_eq!(report["ending"]["exit"], 0);
    let links = report["run"]["links"].as_array().expect("links");
    let lost: u64 = links.iter().filter_map(|link| link["drops"]["loss"].as_u64()).sum();
    assert_eq!(lost, 1, "the third packet: {report}");
    assert_eq!(report["run"]["flows"][0]["delivered"], 10_000, "the scenario's flow ran beside them");
    assert!(report["lateness"]["packets"].as_u64() > Some(200), "{report}");
}

/// `interop/mptcp.py` drives it. What it skips, it skips with a line of its own.
#[test]
fn multipath_tcp_of_the_kernel_uses_both_links() {
    const TEST: &str = "shell: the kernel's Multipath TCP";
    if !possible(TEST) {
        return;
    }
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../interop/mptcp.py");
    let arguments = [program, env!("CARGO_BIN_EXE_anabranch"), "--only", "equal", "--tries", "1"];
    let measured = Command::new("python3")
        .args(arguments)
        .args(["--without-cmt", "--json"])
        .stdin(Stdio::null())
        .output();
    let Ok(output) = measured else { return skip(TEST, "python3 is not installed") };
    if let Some((_, why)) = stderr(&output).split_once("skipped: interop/mptcp.py: ") {
        return skip(TEST, why.trim());
    }
    // Whether the figures are within their bounds depends on how busy the machine is.
    let row: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", stdout(&output), stderr(&output)));
    for link in ["one", "two"] {
        assert!(row["carried"][link].as_f64().is_some_and(|part| part > 0.25), "{row}");
    }
}

/// What the kernel did not do ends the script with one line. The measurement is replaced: this needs neither links nor
/// the kernel.
#[test]
fn mptcp_py_says_that_the_second_link_was_not_used() {
    let script = "import sys; sys.path.insert(0, sys.argv[1])\nimport mptcp\n\
        sys.argv = ['mptcp.py', sys.argv[2], '--only', 'fails', '--tries', '1']\n\
        mptcp.impossible = lambda program: None\n\
        mptcp.kernel = lambda *_: {'new_data': None, 'resumed': 0.0, 'late': 0.0}\n\
        sys.exit(mptcp.main())";
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../interop");
    let ended =
        Command::new("python3").args(["-B", "-c", script, folder, env!("CARGO_BIN_EXE_anabranch")]).output();
    let Ok(output) = ended else { return skip("shell: mptcp.py", "python3 is not installed") };
    let why = "after the failure of the first link the kernel sent nothing new by the second";
    assert_eq!(stderr(&output), format!("repeated: {why}\ninterop/mptcp.py: fails: {why}\n"));
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
}

/// A program beside the first is any shell command. Its failure is told, and so is a summary that cannot be written,
/// before the session.
#[test]
fn programs_beside_the_first_are_shell_commands() {
    if !possible("shell: commands") {
        return;
    }
    let directory = directory();
    let file = scenario(directory.path());
    let written = directory.path().join("written");
    let other = format!("b=true && echo done >{}; exit 3", written.display());
    let session = ["shell", &file, "--at", "a", "--at", &other, "--without", "all", "--quiet"];
    let output = anabranch(&[&session[..], &["--", "sleep", "1"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&written).expect("the command went on"), "done\n");
    let message = "warning: --at b=…: the program failed before the end of the session, exit status 3";
    assert!(stderr(&output).contains(message), "{}", stderr(&output));
    let summary = directory.path().join("missing/summary.json").display().to_string();
    let first = format!("touch {}", directory.path().join("ran").display());
    let output = anabranch(&[&session[..], &["--summary", &summary, "--", "sh", "-c", &first]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("create it first") && !directory.path().join("ran").exists());
}

/// A session lasts until its program ends, also when no packet moves for a while: rates are means over all of it.
#[test]
fn an_idle_session_lasts_until_its_program_ends() {
    if !possible("shell: idle") {
        return;
    }
    let directory = directory();
    let (file, summary) = (scenario(directory.path()), directory.path().join("summary.json"));
    let summary = summary.display().to_string();
    let session = ["shell", &file, "--at", "a", "--without", "all", "--summary", &summary, "--quiet", "--"];
    let output = anabranch(&[&session[..], &["sleep", "1"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told: Value = serde_json::from_str(&fs::read_to_string(&summary).expect("a file")).expect("JSON");
    assert!(told["run"]["ended"].as_f64() >= Some(1.0), "{told}");
}

/// A program beside the first that takes a moment to end is given it.
#[test]
fn programs_end_in_their_own_way() {
    if !possible("shell: ends") {
        return;
    }
    let directory = directory();
    let file = scenario(directory.path());
    let said = directory.path().join("said");
    let shown = said.display();
    let other = format!(
        "b=trap 'sleep 0.3; echo ended >>{shown}; exit 0' TERM; echo up >>{shown}; while :; do sleep 0.1; done"
    );
    let first = format!("until [ -s {shown} ]; do sleep 0.1; done");
    let session = ["shell", &file, "--at", "a", "--at", &other, "--without", "all", "--quiet", "--"];
    let output = anabranch(&[&session[..], &["sh", "-c", &first]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&said).expect("it was written"), "up\nended\n");
}

/// A device that a program removes ends the session, and no program goes on without its network.
#[test]
fn no_program_outlives_a_session_that_fails() {
    if !possible("shell: failures") {
        return;
    }
    let directory = directory();
    let file = scenario(directory.path());
    let pid = directory.path().join("pid");
    let first = format!("echo $$ >{}; ip link delete wifi; exec sleep 1000", pid.display());
    let output = anabranch(&["shell", &file, "--at", "a", "--quiet", "--", "sh", "-c", &first]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let pid = fs::read_to_string(pid).expect("it was written");
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z"), "{pid} still runs: {state}");
}

#[test]
fn a_signal_ends_all_programs() {
    if !possible("shell: signals") {
        return;
    }
    let mut session = TwoPrograms::begin();
    kill_process(Pid::from_child(&session.process), Signal::TERM).expect("it is there");
    assert_eq!(session.process.wait().expect("it ends").code(), Some(143));
    assert_eq!(session.running(), Vec::<String>::new());
}

/// The process that ends the programs of a killed session knows them by the number of their namespace, which another
/// session may get when the namespace is gone. So that process keeps it.
#[test]
fn the_namespaces_of_a_killed_session_keep_their_numbers() {
    if !possible("shell: numbers") {
        return;
    }
    let mut session = TwoPrograms::begin();
    let children =
        fs::read_to_string(format!("/proc/{0}/task/{0}/children", session.process.id())).expect("Linux");
    let words = |pid: &str| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).split('\0').map(str::to_owned).collect::<Vec<_>>()
    };
    let numbered = |pid: &&str| words(pid).iter().any(|word| word.starts_with("net:["));
    let guard = children.split_whitespace().find(numbered).expect("a process that waits").to_owned();
    let files = fs::read_dir(format!("/proc/{guard}/fd")).expect("its files");
    let held: Vec<_> = files.flatten().filter_map(|file| fs::read_link(file.path()).ok()).collect();
    for number in words(&guard).iter().filter(|word| word.starts_with("net:[")) {
        assert!(held.iter().any(|file| file == Path::new(number)), "{number}: {held:?}");
    }
    session.process.kill().expect("it is there");
    session.process.wait().expect("it ends");
}

/// A session that is killed cannot end its programs. Another process does.
#[test]
fn no_program_outlives_a_session_that_is_killed() {
    if !possible("shell: killed") {
        return;
    }
    let mut session = TwoPrograms::begin();
    session.process.kill().expect("it is there");
    session.process.wait().expect("it ends");
    let begun = Instant::now();
    while !session.running().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?} still run", session.running());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A session with two programs that do not end by themselves, and have said their numbers.
struct TwoPrograms {
    process: Child,
    directory: tempfile::TempDir,
}

impl TwoPrograms {
    fn begin() -> TwoPrograms {
        let directory = directory();
        let file = scenario(directory.path());
        let pids = directory.path().join("pids");
        let other = format!("b=sh -c 'echo $$ >>{0}; sleep 1000; :'", pids.display());
        let first = format!("echo $$ >>{}; sleep 1000; :", pids.display());
        let process =
            command(&["shell", &file, "--at", "a", "--at", &other, "--quiet", "--", "sh", "-c", &first])
                .stderr(Stdio::null())
                .spawn()
                .expect("the binary runs");
        let session = TwoPrograms { process, directory };
        let begun = Instant::now();
        while session.pids().len() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the programs never began");
            std::thread::sleep(Duration::from_millis(20));
        }
        session
    }

    fn pids(&self) -> Vec<String> {
        let written = fs::read_to_string(self.directory.path().join("pids")).unwrap_or_default();
        written.lines().map(str::to_owned).collect()
    }

    /// The programs that have not ended.
    fn running(&self) -> Vec<String> {
        let runs = |pid: &String| {
            let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z")
        };
        self.pids().into_iter().filter(runs).collect()
    }
}
