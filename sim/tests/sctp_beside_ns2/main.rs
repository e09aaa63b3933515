//! Era `ns2` beside ns-2's `Agent/SCTP`, the classes of its three cures, and `Agent/SCTP/CMT`. Each setting draws
//! paths, buffers, limits, the packets that each path loses, and more (see `setting`). Every DATA chunk that ns-2 sends
//! must leave here at the same time, to 10 µs, on the same path. Needs `ns`.
//!
//! Rates and delays are odd numbers, so that few events fall on the same moment. Where two do, such as the end of
//! SACK.Delay and the arrival of the next packet, the rounding of ns-2's clock decides which comes first, and the
//! setting may differ from there on.

#[path = "../coins_of_ns2/mod.rs"]
mod coins_of_ns2;
mod ours;
mod setting;
#[path = "../support/mod.rs"]
mod support;
mod theirs;

use ours::ours;
use setting::Setting;
use support::has_ns2;
use theirs::theirs;

/// Random settings of each kind.
const SETTINGS: u64 = 100;
/// Times differ by at most this, in seconds: ns-2 prints them to a microsecond.
const TOLERANCE: f64 = 1e-5;

/// DATA chunks: seconds from the first, TSN from 1, path from 1.
type Sent = Vec<(f64, u64, u8)>;

fn since_the_first(mut sent: Sent) -> Sent {
    let begun = sent.first().expect("data was sent").0;
    sent.iter_mut().for_each(|(time, ..)| *time -= begun);
    sent
}

/// Which chunk differs first, if one does, while ns-2 runs, which ends when all has arrived.
fn difference(there: &Sent, here: &Sent) -> Option<usize> {
    let same =
        |a: &(f64, u64, u8), b: &(f64, u64, u8)| (a.1, a.2) == (b.1, b.2) && (a.0 - b.0).abs() <= TOLERANCE;
    let differs = there.iter().zip(here).position(|(there, here)| !same(there, here));
    differs.or((here.len() < there.len()).then_some(here.len()))
}

/// Compares the settings, of which all but these must agree in every chunk. The trace of ns-2 has this name.
fn compare(name: &str, known: &[u64], of: impl Fn(u64) -> Setting) {
    if !has_ns2("sctp_beside_ns2") {
        return;
    }
    let file = format!("anabranch-sctp-{}-{name}.tr", std::process::id());
    let trace = std::env::temp_dir().join(file);
    let (mut differing, mut told) = (Vec::new(), Vec::new());
    let (mut chunks, mut ties) = (0, 0);
    for number in 0..SETTINGS {
        let setting = of(number);
        let there = theirs(&setting, &trace);
        chunks += there.len();
        let (here, tie) = ours(&setting, &there);
        let Some(at) = difference(&there, &here) else { continue };
        let tied = tie.is_some_and(|tie| tie < there[at].0);
        ties += usize::from(tied);
        let name = setting.name();
        let of = |sent: &Sent| sent.get(at).map_or("nothing".to_owned(), |sent| format!("{sent:?}"));
        let (count, there, here) = (there.len(), of(&there), of(&here));
        let after = if tied { ", after a tie" } else { "" };
        differing.push(number);
        told.push(format!(
            "setting {number}, {name}: chunk {at} of {count}: {there} there, {here} here{after}"
        ));
    }
    let _ = std::fs::remove_file(&trace);
    let agreeing = SETTINGS as usize - differing.len();
    eprintln!(
        "{agreeing} of {SETTINGS} settings agree in every chunk, {chunks} in all; {ties} part after a tie; the others: {told:#?}"
    );
    assert_eq!(
        differing, known,
        "the settings that differ; docs/choices.md has the reasons of the known ones"
    );
}

#[test]
fn era_ns2_sends_what_ns2_sends() {
    compare("plain", &[62, 98], setting::plain);
}

#[test]
fn era_ns2_sends_what_ns2_sends_in_other_surroundings() {
    compare("wide", &[72, 77], setting::wide);
}

#[test]
fn era_ns2_sends_what_ns2_sends_in_narrow_settings() {
    compare("narrow", &[34, 41, 83], setting::narrow);
}
