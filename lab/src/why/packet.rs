//! Why one packet was sent.

use anabranch_proto::policy::Why;
use anabranch_proto::{Limit, Purpose, Reason, Time};
use anabranch_sim::Protocol;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::trace::{Contents, Record, Side};
use anabranch_sim::words as names;
use serde::Serialize;

use super::follow::{Followed, Follower, Piece};
use super::words::{self, count, moment};

/// The window of a path, in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold, if there is one.
    pub ssthresh: Option<u64>,
    /// Bytes in flight, without those marked for retransmission.
    pub flight: u64,
    /// Marked for retransmission.
    pub marked: u64,
}

/// A rule or mechanism with its value in the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RuleRow {
    /// Its key in a scenario.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Its meaning.
    pub meaning: String,
}

/// Why a packet was sent.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PacketAnswer {
    /// Its number.
    pub number: u64,
    /// When it was sent, seconds.
    pub at: f64,
    /// Its flow.
    pub flow: String,
    /// The end that sent it: `client`, which sends the data of the flow, or `server`.
    pub sender: &'static str,
    /// The path that it took.
    pub path: Option<String>,
    /// Bytes, IP header included.
    pub size: u32,
    /// Its chunks or its segment.
    pub chunks: Vec<String>,
    /// Its purpose.
    pub purpose: &'static str,
    /// The section of the standard that requires it.
    pub section: String,
    /// The limit that allowed it.
    pub limit: &'static str,
    /// The rules that decide here, with their values.
    pub rules: Vec<RuleRow>,
    /// The policy that chose the path: `new`, `fast` or `timeout`, and its name.
    pub policy: Option<(&'static str, String)>,
    /// The timer whose expiry led to the packet: its path, when it expired, and the timeout in seconds.
    pub timer: Option<Timer>,
    /// The window of its path before it was sent; `None` for the end that receives the data.
    pub before: Option<Window>,
    /// The same after it was sent.
    pub after: Option<Window>,
    /// The same in sentences.
    pub text: Vec<String>,
}

/// The end that sends the data of a flow.
const CLIENT: &str = "client";

/// A timer that expired.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Timer {
    /// The timer: `T3-rtx`; of TCP, `the retransmission timer`.
    pub name: &'static str,
    /// Its path.
    pub path: String,
    /// When it expired, seconds.
    pub expired: f64,
    /// How long it ran, seconds, if known.
    pub rto: Option<f64>,
}

impl PacketAnswer {
    pub(super) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.text.iter().enumerate().map(|(i, text)| if i == 0 { text.clone() } else { format!("  {text}") })
    }

    /// The path, if the packet comes from the end whose windows are known: the one that sends the data.
    pub(super) fn sends_data(&self) -> Option<&str> {
        self.path.as_deref().filter(|_| self.sender == CLIENT)
    }

    /// The sentence about the window before and after.
    pub(super) fn change(&self) -> Option<String> {
        let (path, after) = (self.path.as_ref()?, self.after?);
        let Some(before) = self.before else {
            let Window { cwnd, flight, .. } = after;
            return Some(format!("Window of {path}, bytes: cwnd {cwnd}, in flight {flight}."));
        };
        let change = |name: &str, before: u64, after: u64| match before == after {
            true => format!("{name} {before}"),
            false => format!("{name} {before} → {after}"),
        };
        let ssthresh = after.ssthresh.map(|to| change(", ssthresh", before.ssthresh.unwrap_or(to), to));
        Some(format!(
            "Window of {path}, bytes before → after: {}{}, {}, {}.",
            change("cwnd", before.cwnd, after.cwnd),
            ssthresh.unwrap_or_default(),
            change("in flight", before.flight, after.flight),
            change("marked", before.marked, after.marked),
        ))
    }
}

/// The answer for a packet that is being sent, without its effects.
pub(super) fn answer(
    follower: &Follower,
    scenario: &Scenario,
    at: Time,
    number: u64,
    record: &Record<'_>,
) -> Option<PacketAnswer> {
    let Record::Sent { flow, side, path, reason, packet } = record else { return None };
    let followed = follower.association(*flow, *path);
    let name = &followed.name;
    let followed_end = *side == Side::Client;
    let first = packet.numbers().next().filter(|_| followed_end).and_then(|number| followed.piece(number));
    let timer = timer(followed, reason.purpose, first);
    let (purpose, section, limit) = said(followed.protocol, reason, &packet.contents);
    let mut answer = PacketAnswer {
        number,
        at: words::seconds(at),
        flow: name.clone(),
        sender: if followed_end { CLIENT } else { "server" },
        path: path.map(str::to_owned),
        size: packet.size,
        chunks: chunks(&packet.contents),
        purpose,
        section,
        limit,
        rules: words::rows(scenario, name, keys(reason.purpose, reason.limit)),
        policy: policy(scenario, name, reason.purpose),
        timer,
        before: None,
        after: None,
        text: Vec::new(),
    };
    answer.before = answer.sends_data().and_then(|path| followed.facts(path)?.window);
    answer.text = sentences(&answer, followed, first, at);
    Some(answer)
}

/// The purpose of a packet, the section that requires it, and the limit that allowed it, in words.
fn said(
    protocol: Protocol,
    reason: &Reason,
    contents: &Contents<'_>,
) -> (&'static str, String, &'static str) {
    let limit = names::limit(reason.limit);
    match contents {
        Contents::Sctp(_) => {
            let section = format!("{} section {}", reason.purpose.document(), reason.purpose.section());
            (names::purpose(reason.purpose), section, limit)
        }
        Contents::Tcp(packet) => {
            let purpose = match reason.purpose {
                Purpose::Data(why) => words::data(protocol, why),
                purpose => names::purpose(purpose),
            };
            let section = words::section(reason.purpose, packet.segment.joins(), protocol);
            (purpose, section.to_owned(), limit)
        }
        Contents::Datagram(_) | Contents::Raw(_) | Contents::Foreign(_) => ("datagram", String::new(), ""),
    }
}

fn chunks(contents: &Contents<'_>) -> Vec<String> {
    match contents {
        Contents::Sctp(packet) => packet.chunks.iter().map(anabranch_sim::capture::summary).collect(),
        Contents::Tcp(packet) => {
            let length = u64::from(packet.segment.length);
            let data = (length > 0).then(|| format!("bytes {} to {}", packet.offset, packet.offset + length));
            data.into_iter().chain(anabranch_sim::capture::segment_summary(&packet.segment)).collect()
        }
        Contents::Datagram(_) => vec!["datagram".to_owned()],
        Contents::Raw(_) => vec!["IP packet of a program".to_owned()],
        Contents::Foreign(_) => vec!["packet of a foreign transport".to_owned()],
    }
}

/// The rules that decide whether such a packet is sent.
fn keys(purpose: Purpose, limit: Limit) -> &'static [&'static str] {
    match (purpose, limit) {
        (Purpose::Data(Why::New), _) => &["send_on", "new_data", "burst"],
        (Purpose::Data(Why::Missing), Limit::Granted) => {
            &["loss_detection", "missing_reports", "missing_below", "on_marking"]
        }
        (Purpose::Data(Why::Missing), _) => {
            &["loss_detection", "missing_reports", "missing_below", "taken_back", "timed_out"]
        }
        (Purpose::Data(Why::Timeout), Limit::Granted) => {
            &["t3_restart", "t3_resent", "t3_together", "on_timeout"]
        }
        (Purpose::Data(Why::Timeout), _) => &["t3_restart", "after_timeout"],
        (Purpose::Data(Why::TailProbe), _) => &["tail_probe"],
        (Purpose::Data(_), _) => &["window_probe"],
        (Purpose::Sack, _) => {
            &["gap_filled", "duplicate_sack", "delayed_sack", "first_data", "window_updates"]
        }
        (Purpose::Setup, _) => &["confirmation"],
        (Purpose::Heartbeat, _) => &["heartbeat_errors"],
        _ => &[],
    }
}

/// The policy that names the path of such data, with its key.
fn policy(scenario: &Scenario, flow: &str, purpose: Purpose) -> Option<(&'static str, String)> {
    let Purpose::Data(why) = purpose else { return None };
    let key = match why {
        Why::Missing => "fast",
        Why::Timeout => "timeout",
        _ => "new",
    };
    Some((key, words::policy_of(scenario, flow, why)?))
}

/// The timer that caused a retransmission: that of the path which last carried the chunk.
fn timer(followed: &Followed, purpose: Purpose, first: Option<&Piece>) -> Option<Timer> {
    let (Purpose::Data(Why::Timeout), Some(copy)) = (purpose, first?.copies.last()) else { return None };
    let (expired, rto) = followed.facts(&copy.path)?.expired?;
    let rto = rto.map(|rto| rto.as_secs_f64());
    let (name, _) = words::timer(followed.protocol);
    Some(Timer { name, path: copy.path.to_string(), expired: words::seconds(expired), rto })
}

fn sentences(answer: &PacketAnswer, followed: &Followed, first: Option<&Piece>, at: Time) -> Vec<String> {
    let path = answer.path.as_ref().map(|path| format!(", path {path}")).unwrap_or_default();
    let mut text = vec![format!(
        "Packet {} at {}, flow {}, from the {}{path}: {} ({} bytes).",
        answer.number,
        moment(at),
        answer.flow,
        answer.sender,
        answer.chunks.join(", "),
        answer.size
    )];
    if !answer.section.is_empty() {
        text.push(format!("It is sent as {}, {}: {}.", answer.purpose, answer.limit, answer.section));
    }
    if let Some(piece) = first.filter(|piece| !piece.copies.is_empty()) {
        text.push(before(piece, followed));
    }
    if let Some(timer) = &answer.timer {
        let rto = timer.rto.map(|rto| format!(" after an RTO of {rto} s")).unwrap_or_default();
        text.push(format!("{} of {} expired at {:.6} s{rto}.", timer.name, timer.path, timer.expired));
    }
    if let (Some((kind, policy)), Some(path)) = (&answer.policy, &answer.path) {
        let said = first.and_then(|piece| piece.route).filter(|(when, _)| *when == at);
        let reason = said.map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
        text.push(format!("The policy {policy} (key `{kind}`) chose the path {path}{reason}."));
    }
    if !answer.rules.is_empty() {
        text.push(format!("Rules that decide here: {}.", words::listed(&answer.rules)));
    }
    text
}

/// The fate of the earlier transmissions.
fn before(piece: &Piece, followed: &Followed) -> String {
    let copies = piece.copies.iter().map(|copy| {
        format!(
            "sent at {} on {} ({}), {}",
            moment(copy.at),
            copy.path,
            words::data(followed.protocol, copy.why),
            words::place(&copy.place)
        )
    });
    let marked = piece.marked.map(|(at, why)| {
        let because = words::because(followed.protocol, why);
        format!("; marked for retransmission by {because} at {}", moment(at))
    });
    let copies: Vec<String> = copies.collect();
    let sent = count(copies.len() as u64, "time");
    format!(
        "{} {} was sent {sent} before: {}{}.",
        followed.noun(),
        piece.number,
        copies.join("; "),
        marked.unwrap_or_default()
    )
}
