//! `--msc` from outside: the chart has every packet, and a hostile name is only text.

mod support;

use support::{anabranch, stderr};

/// The chart of the example `name` with these further arguments.
fn chart(name: &str, more: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("chart.svg").display().to_string();
    let scenario = format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let output = anabranch(&[&["run", &scenario, "--msc", &file], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    std::fs::read_to_string(&file).expect("the chart was written")
}

#[test]
fn every_packet_of_the_part_is_drawn() {
    let chart = chart("one-path", &["--between", "0s,0.13s"]);
    for says in ["INIT", "COOKIE-WAIT", "COOKIE-ECHOED", "ESTABLISHED", "DATA 1624781518, 1452 bytes"] {
        assert!(chart.contains(says), "{says}");
    }
    // Four packets of set-up, three of data and the SACKs of the first and the third arrive; five leave at the end.
    assert_eq!(chart.matches("<polygon").count(), 9);
    assert_eq!(chart.matches(" · 0.123942 s").count(), 3);
}

#[test]
fn what_is_lost_is_crossed_and_timers_expire() {
    let chart = chart("outage", &["--between", "9.99s,10.2s"]);
    assert!(chart.contains("lost: link down") && chart.contains("T3-rtx of first expires"));
    assert!(chart.contains("DATA 1422704047 to 1422704052, 6 chunks (retransmission after T3-rtx)"));
}

/// A TCP segment without data is what its flags say.
#[test]
fn segments_without_data_are_told_apart() {
    let chart = chart("tcp-beside-sctp", &["--between", "0s,2s"]);
    for says in ["tcp: SYN · ", " · tcp: SYN ACK ", " · tcp: ACK "] {
        assert!(chart.contains(says), "{says}: {chart}");
    }
    // An arrival has no text but the name of its flow.
    assert!(chart.contains(" · tcp\n") && !chart.contains("tcp: \n"));
}

#[test]
fn a_long_run_is_cut_and_says_so() {
    assert!(chart("one-path", &[]).contains("more packets: --between shows a part of the run"));
}

#[test]
fn a_hostile_name_is_only_text() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name).display().to_string();
    let scenario = place("<script>x&.toml");
    let example = format!("{}/../scenarios/one-path.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(example, &scenario).expect("it can be copied");
    let output = anabranch(&["run", &scenario, "--msc", &place("chart.svg"), "--between", "0s,0.1s"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let chart = std::fs::read_to_string(place("chart.svg")).expect("the chart was written");
    assert!(!chart.contains("<script>") && chart.contains("&lt;script&gt;x&amp;"));
}

/// On a fast and short link, microseconds would show packets that follow each other at one moment.
#[test]
fn close_moments_have_nanoseconds() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name).display().to_string();
    let scenario = "[[link]]\nname = \"a\"\nbetween = [\"s\", \"r\"]\nrate = \"100 Gbit/s\"\ndelay = \"10 ns\"\n\
                    [[flow]]\nname = \"f\"\nfrom = \"s\"\nto = \"r\"\nsend = \"1 B\"\n";
    std::fs::write(place("near.toml"), scenario).expect("it can be written");
    let output = anabranch(&["run", &place("near.toml"), "--msc", &place("chart.svg")]);
    assert!(output.status.success(), "{}", stderr(&output));
    let chart = std::fs::read_to_string(place("chart.svg")).expect("the chart was written");
    assert!(chart.contains(" · 0.000000000 s") && !chart.contains("0.000000 s"), "{chart}");
}
