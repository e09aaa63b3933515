//! The results as a page, and as JSON.

use std::process::Command;

use serde::Serialize;

use crate::bench::Role;
use crate::matrix::{Entry, Outcome, Stack};

/// What is locked is what runs.
const LOCK: &str = include_str!("../Cargo.lock");

/// The table of the last series of cuts.
pub const CUTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cuts.md");

/// What the series is, and its table.
fn cuts() -> String {
    let table = std::fs::read_to_string(CUTS).unwrap_or_default();
    format!(
        "\n## The cut of the link in use\n\n`make cuts` plays the cut ten times for each line (six minutes; \
         needs root and libusrsctp-dev): two hosts with two links of 20 Mbit/s, 4 MB, the sender's primary path on the link that is cut \
         silently after 0.6 s. RTO.Min is 200 ms and Path.Max.Retrans 2 at both ends, so the path is inactive after timeouts of 200, 400 \
         and 800 ms. A stall is the time from the cut to the end of the receiver's last pause of 200 ms or more; it should be at most \
         the sum of the timeouts and one RTO more. \"Whole\": every message arrived once, whole and in order. It exits with 1 unless all \
         are whole and nine of ten are in time. The rows `paths-...` of the matrix are its short form.\n\n{table}\n\
         Played on two cores that other programs kept busy.\n"
    )
}

/// The version of dcsctp that this program was built with.
fn dcsctp() -> String {
    let package = LOCK.split("[[package]]").find(|package| package.contains("name = \"dcsctp\""));
    let version = package.and_then(|package| package.split("version = \"").nth(1)?.split('"').next());
    version.unwrap_or("unknown").to_owned()
}

/// The version of usrsctp on this machine, by what its package says.
fn usrsctp() -> String {
    debian("libusrsctp-dev")
}

/// The same of the kernel.
fn linux() -> String {
    debian("user-mode-linux")
}

fn debian(package: &str) -> String {
    let said = Command::new("dpkg-query").args(["--show", "--showformat=${Version}", package]).output();
    let said = said.ok().filter(|output| output.status.success());
    let debian = said.map(|output| format!("Debian {}", String::from_utf8_lossy(&output.stdout).trim()));
    debian.unwrap_or_else(|| "of unknown version".to_owned())
}

pub fn markdown(entries: &[Entry]) -> String {
    let mut notes: Vec<String> = Vec::new();
    let mut page = format!(
        "# Beside other people's stacks\n\n\
         What was tried and what passed. This page is written by\n\n```\nmake interop\n```\n\n\
         (three minutes; needs Debian's libusrsctp-dev, user-mode-linux and a C compiler, and root), against\n\n\
         - **usrsctp** {}: a process of its own, `interop/peer.c` on its public interface, SCTP in UDP on loopback, \
         in real time. Its limit of chunks held (`sctp_max_chunks_on_queue`, 512) is raised: above it, it refuses \
         I-DATA that fills a gap, and the association hangs;\n\
         - **linux** {}: the kernel's own SCTP, in Debian's user-mode-linux, with `interop/kernel.c` on its console; in UDP over a tap \
         interface, in real time. Its SCTP sends without segmentation offload: the driver of user-mode-linux accepts packets that are to be cut, and drops \
         them, every second packet of a burst. Each loss cost the kernel's T3-rtx, and rows in which it sends took up to 120 s instead of 3;\n\
         - **dcsctp** {}: in process, in virtual time.\n\n\
         Between the ends is a small network that takes 2 ms each way and loses what a row says, both ways, by a \
         seeded draw. The rows with several paths run on `anabranch-net` between two hosts (network namespaces, or one and the \
         kernel's machine) with two links of 20 Mbit/s, of which one is cut silently after 0.6 s where the row says so. \"Peer wrong\": the row cannot \
         pass, since the peer breaks the RFC that the note names. Number, stream, size, order and content \
         of every message are compared; a malformed packet of the peer, or an error that it reports, fails a row. \
         \"Server\" and \"client\" are the roles of the peer. One row alone, every packet printed: \
         `cargo run --manifest-path interop/Cargo.toml -- --only usrsctp/reset-us/server --trace`.\n\n",
        usrsctp(),
        linux(),
        dcsctp(),
    );
    page += "| what | row | usrsctp as server | as client | linux as server | as client | dcsctp as server | as client |\n|---|---|---|---|---|---|---|---|\n";
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let of_row = rest.iter().take_while(|entry| entry.case.row.name == first.case.row.name).count();
        let (row, after) = rest.split_at(of_row);
        rest = after;
        page += &format!("| {} | `{}` |", first.case.row.what, first.case.row.name);
        for (stack, role) in Stack::ALL.into_iter().flat_map(|stack| Role::ALL.map(|role| (stack, role))) {
            let entry = row.iter().find(|entry| (entry.case.stack, entry.case.role) == (stack, role));
            page += &format!(" {} |", cell(entry, &mut notes));
        }
        page += "\n";
    }
    page += "\n";
    for (number, note) in notes.iter().enumerate() {
        page += &format!("{}. {note}\n", number + 1);
    }
    page + &cuts()
}

fn cell(entry: Option<&Entry>, notes: &mut Vec<String>) -> String {
    let note = entry.and_then(|entry| entry.case.row.note.filter(|(stack, _)| *stack == entry.case.stack));
    let (word, why) = match entry.map(|entry| (&entry.outcome, entry.case.stack.name())) {
        None => return String::new(),
        Some((Outcome::Passed, stack)) => match note {
            Some((_, note)) => ("passed", format!("{stack}: {note}")),
            None => return "passed".to_owned(),
        },
        Some((Outcome::NotOffered(why), stack)) => ("not offered", format!("{stack}: {why}")),
        Some((Outcome::PeerWrong(why), stack)) => ("peer wrong", format!("{stack}: {why}")),
        Some((Outcome::Failed(why), stack)) => ("**failed**", format!("{stack}: {why}")),
        Some((Outcome::Skipped(why), stack)) => ("skipped", format!("{stack}: {why}")),
    };
    let known = notes.iter().position(|note| *note == why);
    let number = known.unwrap_or_else(|| {
        notes.push(why);
        notes.len() - 1
    });
    format!("{word} ({})", number + 1)
}

/// In one line.
pub fn summary(entries: &[Entry]) -> String {
    let count = |of: fn(&Outcome) -> bool| entries.iter().filter(|entry| of(&entry.outcome)).count();
    let (passed, failed) = (count(|o| *o == Outcome::Passed), count(|o| matches!(o, Outcome::Failed(_))));
    let not_offered = count(|o| matches!(o, Outcome::NotOffered(_)));
    let skipped = count(|o| matches!(o, Outcome::Skipped(_)));
    let wrong = count(|o| matches!(o, Outcome::PeerWrong(_)));
    format!(
        "{passed} passed, {not_offered} not offered, {wrong} where the peer is wrong, {skipped} skipped, {failed} failed"
    )
}

#[derive(Serialize)]
struct Report<'a> {
    usrsctp: String,
    linux: String,
    dcsctp: String,
    rows: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Line<'a> {
    peer: &'a str,
    row: &'a str,
    role: &'a str,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    seconds: f64,
}

pub fn json(entries: &[Entry]) -> String {
    let rows = entries.iter().map(|entry| {
        let (outcome, why) = match &entry.outcome {
            Outcome::Passed => ("passed", None),
            Outcome::NotOffered(why) => ("not offered", Some(why.as_str())),
            Outcome::PeerWrong(why) => ("peer wrong", Some(why.as_str())),
            Outcome::Failed(why) => ("failed", Some(why.as_str())),
            Outcome::Skipped(why) => ("skipped", Some(why.as_str())),
        };
        let (peer, row, role) = (entry.case.stack.name(), entry.case.row.name, entry.case.role.name());
        Line { peer, row, role, outcome, why, seconds: entry.seconds }
    });
    let report = Report { usrsctp: usrsctp(), linux: linux(), dcsctp: dcsctp(), rows: rows.collect() };
    serde_json::to_string_pretty(&report).expect("it is plain data")
}
