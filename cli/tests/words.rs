//! Small things that pages and messages say.

mod support;

use std::fs;
use std::net::TcpListener;

use support::{anabranch, stderr};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The page that the command writes to the file after its last argument.
fn page(arguments: &[&str]) -> String {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("page.html").display().to_string();
    let out = place.path().join("out").display().to_string();
    let out = if arguments[0] == "sweep" { vec!["--out", &out] } else { Vec::new() };
    let output = anabranch(&[arguments, &out, &["--report", &file]].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    fs::read_to_string(file).expect("the page was written")
}

/// What stands before the first chart: scripts have backticks of their own.
fn before_charts(page: &str) -> &str {
    let body = page.find("<h1>").expect("a heading");
    let end = page[body..].find("<h2>").expect("a chart");
    &page[body..body + end]
}

#[test]
fn a_flow_without_an_end_is_not_unfinished() {
    let page = page(&["run", &format!("{ROOT}/scenarios/outage.toml")]);
    assert!(page.contains("<td>no end</td>") && !page.contains("<td>unfinished</td>"));
}

#[test]
fn advice_on_a_page_has_code_instead_of_backticks() {
    let pair = format!("{ROOT}/scenarios/advice/pair.toml");
    let page = page(&["advise", "policy", &pair, "--seconds", "0.1"]);
    let text = before_charts(&page);
    assert!(text.contains("<code>fast</code>") && !text.contains('`'), "{text}");
}

#[test]
fn the_page_of_a_sweep_names_its_scenario_without_detours() {
    let place = tempfile::tempdir().expect("a directory");
    fs::create_dir(place.path().join("sweeps")).expect("made");
    fs::copy(format!("{ROOT}/scenarios/one-path.toml"), place.path().join("one.toml")).expect("copied");
    let sweep = place.path().join("sweeps/small.toml");
    let text = "scenario = \"../one.toml\"\nseeds = 2\n[measure]\ntime = \"flows.transfer.completion\"\n";
    fs::write(&sweep, text).expect("written");
    let page = page(&["sweep", &sweep.display().to_string()]);
    let expected = format!("Sweep of {}", place.path().join("one.toml").display());
    assert!(page.contains(&expected), "{}", before_charts(&page));
}

#[test]
fn the_page_of_a_reproduction_repeats_the_claims_asked_for() {
    let paper = format!("{ROOT}/papers/receive-buffer-blocking");
    let page = page(&["reproduce", &paper, "--claim", "case-study"]);
    assert!(page.contains("anabranch reproduce receive-buffer-blocking --claim case-study</code>"));
}

/// Names of claims have spaces, and what was judged depends on these options.
#[test]
fn the_commands_of_a_reproduction_can_be_run_and_repeat_it() {
    let paper = format!("{ROOT}/papers/cmt-baseline");
    let asked =
        ["reproduce", &paper, "--claim", "IV-A/SACK loss", "--variant", "ns2", "--seeds", "1", "--rows", "2"];
    let page = page(&asked);
    let commands: Vec<String> = page
        .split("<code>anabranch ")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("</code>")?.0.replace("&#39;", "'")))
        .collect();
    assert!(commands.len() > 1 && !page.contains("Add this option"), "{commands:?}");
    for command in commands.iter().filter(|command| !command.contains("--figure")) {
        assert!(command.contains(" --claim 'IV-A/SACK loss"), "{command}");
        assert!(command.ends_with("' --variant ns2 --seeds 1 --rows 2"), "{command}");
    }
}

#[test]
fn words_of_tables_are_whole_on_narrow_terminals() {
    let headline = format!("{ROOT}/scenarios/headline.toml");
    let policies = "flow.download.sctp.retransmit=same,timeout-alternate";
    let run = ["run", &headline, "--set", "flow.download.send=1 MB", "--vary", policies];
    for columns in ["60", "80", "100", "140"] {
        let output = support::command(&run).env("COLUMNS", columns).output().expect("the program runs");
        let text = String::from_utf8(output.stdout).expect("text");
        for word in ["timeout-alternate", "Mbit/s"] {
            let whole = text.split_whitespace().any(|found| found == word);
            assert!(whole, "{word} in {columns} columns:\n{text}");
        }
        // A heading is divided by a hyphen, or not at all.
        let whole = text.matches("retransmissions").count() >= 2;
        assert!(whole || text.matches("retrans-").count() == 2, "{columns} columns:\n{text}");
        // The first line is the title of the scenario.
        let widest = text.lines().skip(1).map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest <= columns.parse().expect("a number"), "{columns} columns:\n{text}");
    }
}

#[test]
fn a_warning_names_file_and_line() {
    let scenario = format!("{ROOT}/scenarios/outage.toml");
    let steady = anabranch(&["run", &scenario, "--set", "stop=1 s"]);
    assert_eq!(
        stderr(&steady),
        "",
        "a packet follows every 16 ms: none waits for SACK.Delay while nothing is lost"
    );
    let output =
        anabranch(&["run", &scenario, "--set", "stop=1 s", "--set", "flow.signalling.rate=8 kbit/s"]);
    let text = fs::read_to_string(&scenario).expect("the scenario");
    let line = text.lines().position(|line| line.starts_with("rto_min")).expect("the key") + 1;
    let expected = format!(
        "warning: {scenario}:{line}: flow.signalling.sctp.rto_min: 200 ms does not exceed sack_delay (200 ms)"
    );
    assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
}

/// The scenario has `path_max_retrans = 2`, and `send` the default of 5: a path that may have as many errors is never
/// potentially failed.
#[test]
fn a_limit_that_is_never_reached_is_told_of() {
    let scenario = format!("{ROOT}/scenarios/outage.toml");
    let with = |key: &str| {
        anabranch(&["run", &scenario, "--set", "stop=1 s", "--set", &format!("flow.signalling.sctp.{key}")])
    };
    let output = with("pf_max_retrans=2");
    let expected = "flow.signalling.sctp.pf_max_retrans: 2 is not below path_max_retrans (2)";
    assert!(output.status.success() && stderr(&output).contains(expected), "{}", stderr(&output));
    for useful in ["pf_max_retrans=1", "pf_max_retrans=off"] {
        assert_eq!(stderr(&with(useful)), "", "{useful}");
    }
    let real = anabranch(&["send", &scenario, "--to", "127.0.0.1:1", "--set", "pf_max_retrans=5"]);
    assert!(stderr(&real).contains("warning: --set pf_max_retrans: 5 is not below"), "{}", stderr(&real));
}

#[test]
fn a_flow_that_abandons_nothing_although_it_says_when_is_told_of() {
    let text =
        fs::read_to_string(format!("{ROOT}/scenarios/partial-reliability.toml")).expect("the scenario");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("live.toml");
    let run = |key: &str| {
        fs::write(&file, text.replace("partial_reliability = true", key)).expect("the scenario");
        stderr(&anabranch(&["run", file.to_str().expect("UTF-8"), "--set", "stop=1 s"]))
    };
    assert!(
        run("").contains("live.toml:26: flow.camera.reliability: no message is abandoned"),
        "{}",
        run("")
    );
    for known in ["partial_reliability = true", "partial_reliability = false"] {
        assert_eq!(run(known), "", "{known}");
    }
    let given = text.lines().find(|line| line.starts_with("reliability")).expect("the scenario says when");
    fs::write(&file, text.replace(given, "reliability = { priority = 5 }")).expect("the scenario");
    let told = stderr(&anabranch(&["run", file.to_str().expect("UTF-8"), "--set", "stop=1 s"]));
    assert!(told.contains("because all messages of a flow have the same priority"), "{told}");
}

/// The server has one address: both networks of the phone lead to it, and only one of them is used.
const ONE_ADDRESS: &str = r#"
[[link]]
name = "wifi"
between = ["phone", "router"]
rate = "10 Mbit/s"

[[link]]
name = "lte"
between = ["phone", "router"]
rate = "10 Mbit/s"

[[link]]
name = "access"
between = ["router", "server"]
rate = "1 Gbit/s"

[[flow]]
name = "upload"
from = "phone"
to = "server"
send = "100 kB"

[flow.sctp]
cmt = true
"#;

#[test]
fn a_link_that_no_path_uses_is_mentioned() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("upload.toml");
    fs::write(&file, ONE_ADDRESS).expect("the scenario");
    let file = file.to_str().expect("UTF-8");
    let expected = format!("warning: {file}:20: flow.upload.to: the association has one path");
    let output = anabranch(&["run", file, "--seeds", "3"]);
    assert_eq!(stderr(&output).matches(&expected).count(), 1, "{}", stderr(&output));
    let all = anabranch(&["run", file, "--set", "flow.upload.sctp.pairs=all"]);
    assert!(!stderr(&all).contains("one path"), "{}", stderr(&all));
}

/// A queue that is smaller than a packet drops it even if it is empty.
#[test]
fn a_queue_smaller_than_a_packet_is_mentioned() {
    let scenario = format!("{ROOT}/scenarios/one-path.toml");
    let told = |queue: &str, mtu: &str| {
        let [queue, mtu] = [format!("link.wire.queue={queue}"), format!("link.wire.mtu={mtu}")];
        stderr(&anabranch(&["run", &scenario, "--set", "stop=1 s", "--set", &queue, "--set", &mtu]))
    };
    for small in ["1499 B", "['30 packets', '1499 B']", "{ codel = { limit = '1499 B' } }"] {
        assert!(
            told(small, "1500 B").contains("packets of more than 1499 bytes are always dropped here"),
            "{small}"
        );
    }
    for large in ["1500 B", "1 packet"] {
        assert_eq!(told(large, "1500 B"), "", "{large}");
    }
    assert_eq!(told("1499 B", "1499 B"), "");
}

#[test]
fn a_file_that_is_missing_is_looked_for_beside_it() {
    let missing = format!("{ROOT}/scenarios/one_path.tom");
    let near = format!(
        "{missing}: No such file or directory (os error 2); did you mean {ROOT}/scenarios/one-path.toml?"
    );
    assert!(stderr(&anabranch(&["run", &missing])).contains(&near));
    let far = stderr(&anabranch(&["run", &format!("{ROOT}/scenarios/nothing-like-it.toml")]));
    assert!(!far.contains("did you mean"), "{far}");
}

/// No file can be made in /proc, whoever asks. The command says so before the run, whose results would be lost.
#[test]
fn a_directory_in_which_nothing_can_be_written_is_refused_before_the_run() {
    let scenario = format!("{ROOT}/scenarios/one-path.toml");
    let files = ["--csv", "--report", "--pcap", "--msc", "--qlog", "--perfetto"];
    let endings = ["csv", "html", "pcapng", "svg", "sqlog", "json"];
    let places = files.iter().zip(endings).map(|(option, ending)| (*option, format!("/proc/x.{ending}")));
    let directories = ["--series", "--figures"].map(|option| (option, "/proc/x".to_owned()));
    for (option, place) in places.chain(directories) {
        let output = anabranch(&["run", &scenario, option, &place]);
        let expected = format!("error: {option} {place}: no file can be made in /proc: ");
        assert!(stderr(&output).starts_with(&expected), "{}", stderr(&output));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{option}");
    }
}

#[test]
fn the_configuration_of_the_program_names_an_option_that_it_has() {
    let task = format!("{ROOT}/scenarios/advice/signalling.toml");
    let output = anabranch(&["advise", "failover", &task]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Anabranch, [flow.sctp], or --set of send and serve"), "{text}");
    for command in ["send", "serve"] {
        let help = String::from_utf8(anabranch(&[command, "--help"]).stdout).expect("text");
        assert!(help.contains("--set <KEY=VALUE>"), "{command}");
    }
}

/// With a small buffer no secondary is fast enough, and without a round-trip time the equation is none for the primary.
#[test]
fn the_model_says_where_it_has_no_limit() {
    let model = ["model", "receive-buffer-blocking", "--primary", "10 Mbit/s", "--secondary", "36 kbit/s"];
    let text = |more: &[&str]| {
        let output = anabranch(&[&model[..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    let small = text(&["--receive-buffer", "10 kB"]);
    assert!(small.contains("a secondary of any rate blocks beside this primary"), "{small}");
    let near = text(&["--receive-buffer", "1 MB", "--primary-rtt", "0 ms"]);
    assert!(near.contains("there is no limit for a primary without a round-trip time"), "{near}");
    assert!(text(&["--receive-buffer", "1 MB"]).contains("a primary above 801.6 kbit/s blocks"));
    assert!(
        small.contains("By equation 1 the buffer") && small.contains("(V1 = B1), "),
        "each names its equation: {small}"
    );
}

#[test]
fn the_lab_names_the_port_that_is_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let output = anabranch(&["lab", "--port", &port]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains(&format!("cannot listen on port {port} of 127.0.0.1")), "{message}");
}

/// What blocks UDP and TCP is not counted.
#[test]
fn a_page_has_no_waiting_times_where_none_are_counted() {
    let page = page(&["run", &format!("{ROOT}/scenarios/datagrams.toml")]);
    assert!(page.contains("<td>-</td><td>-</td>"), "{}", before_charts(&page));
}

#[test]
fn seeds_of_a_flow_without_an_end_are_not_unfinished() {
    let output = anabranch(&["run", &format!("{ROOT}/scenarios/outage.toml"), "--seeds", "2"]);
    let table = String::from_utf8(output.stdout).expect("text");
    assert!(table.contains("no end") && !table.contains("unfinished"), "{table}");
}

#[test]
fn an_example_of_a_setting_belongs_to_the_command() {
    let output = anabranch(&["run", &format!("{ROOT}/scenarios/outage.toml"), "--set", "rto_min"]);
    assert!(stderr(&output).contains("for example seed=7"), "{}", stderr(&output));
    for command in [&["serve", "--set", "rto_min"][..], &["script", ROOT, "--sctp", "rto_min"]] {
        let output = anabranch(command);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(stderr(&output).contains("for example rto_min="), "{}", stderr(&output));
        assert!(!stderr(&output).contains("seed=7"), "{}", stderr(&output));
    }
}

#[test]
fn an_inbox_that_is_a_file_is_called_so() {
    let file = format!("{ROOT}/README.md");
    let output = anabranch(&["serve", "--receive-into", &file]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("this is a file; name a directory"), "{}", stderr(&output));
}

/// The names of several files differ in the number of the run only, also where they are not UTF-8.
#[cfg(unix)]
#[test]
fn numbered_files_keep_the_bytes_of_their_name() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let place = tempfile::tempdir().expect("a directory");
    let name = |bytes: &[u8]| place.path().join(OsStr::from_bytes(bytes));
    let output = support::command(&["run", &format!("{ROOT}/scenarios/one-path.toml"), "--seeds", "2"])
        .arg("--pcap")
        .arg(name(b"a\xff.pcapng"))
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(name(b"a\xff-run-1.pcapng").exists() && name(b"a\xff-run-2.pcapng").exists());
}

#[test]
fn a_trace_that_is_not_there_is_called_so() {
    let set = "link.wire.rate={ trace = \"nothing-here\" }";
    let output = anabranch(&["run", &format!("{ROOT}/scenarios/one-path.toml"), "--set", set]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing-here: No such file or directory"), "{}", stderr(&output));
}
