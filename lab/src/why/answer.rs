//! Explains what a flow waits for at a moment, path by path, with the chain of causes.

use std::sync::Arc;

use anabranch_proto::policy::Why;
use anabranch_proto::{Blocked, PathState, Time};
use anabranch_sim::Protocol;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::words as names;
use serde::Serialize;

use super::follow::{Cut, Facts, Followed, Follower, Piece, Place};
use super::packet::{RuleRow, Window};
use super::sacks::Told;
use super::words::{self, count, length, moment};

/// The number of lost SACKs of one chunk that are told one by one.
const SACKS: usize = 3;

/// The answer for one flow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowAnswer {
    /// Its name.
    pub flow: String,
    /// With `stripe`: the path of this association.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub association: Option<String>,
    /// Why its new data waits; `None`: nothing waits.
    pub waiting: Option<Waiting>,
    /// What blocks each path.
    pub paths: Vec<PathAnswer>,
    /// The chain of causes, the nearest cause first.
    pub causes: Vec<Cause>,
}

/// Why data waits.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Waiting {
    /// `peer_window`, `send_buffer`, `cwnd` or `turn`, as in `--json` and in series.
    #[serde(rename = "for")]
    pub by: &'static str,
    /// When the wait began, seconds.
    pub since: f64,
    /// Whether the wait lasts until the run ends.
    pub endless: bool,
    /// The path that is responsible: it carries the lowest outstanding chunk, or its window is full.
    pub path: Option<String>,
    /// The rules that decide here, with their values.
    pub rules: Vec<RuleRow>,
    /// The same as a sentence.
    pub text: String,
}

/// The cause that keeps new data from a path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathAnswer {
    /// The path.
    pub path: String,
    /// `state`, `peer_window`, `cwnd`, `policy`, `turn`, or `nothing`.
    pub blocked_by: &'static str,
    /// Its window.
    pub window: Option<Window>,
    /// Its retransmission timeout, seconds.
    pub rto: Option<f64>,
    /// When its T3-rtx expires, seconds from the beginning of the run; `None`: it does not run.
    pub t3_expires: Option<f64>,
    /// The same as a sentence.
    pub text: String,
}

/// One link of the chain of causes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cause {
    /// When it happened, seconds; `None`: it is still the case.
    pub at: Option<f64>,
    /// `receiver`, `sent`, `retransmission`, `acknowledgement`, `marked`, `cut`, `oldest` or `timeout`.
    pub kind: &'static str,
    /// The chunk, or the first byte of the segment, that it concerns.
    pub number: Option<u64>,
    /// The path that it concerns.
    pub path: Option<String>,
    /// The same as a sentence.
    pub text: String,
}

impl FlowAnswer {
    /// Says of a wait that is still there at the end of the run that it lasts until then.
    pub(super) fn note_whether_endless(&mut self, ended: &Follower) {
        let Some(waiting) = &mut self.waiting else { return };
        let followed = ended.named(&self.flow, self.association.as_deref());
        let now = followed.map(|followed| followed.blocked);
        if now.is_some_and(|(by, since)| by.is_some() && words::seconds(since) == waiting.since) {
            waiting.endless = true;
            waiting.text.push_str(" The wait lasts until the run ends.");
        }
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let association = self.association.iter().map(|path| format!(", association over {path}"));
        let text = self.waiting.as_ref().map_or("no data waits.", |waiting| &waiting.text);
        let head = format!("Flow {}{}: {text}", self.flow, association.collect::<String>());
        let paths = self.paths.iter().map(|path| format!("  Path {}: {}", path.path, path.text));
        let causes = self.causes.iter().map(|cause| format!("  Because: {}", cause.text));
        std::iter::once(head).chain(paths).chain(causes)
    }
}

/// The cause for which this sender waits at `at`.
pub(super) fn flow(followed: &Followed, scenario: &Scenario, at: Time) -> FlowAnswer {
    let (by, since) = followed.blocked;
    let waiting = by.map(|by| waiting(followed, by, since, scenario));
    let path = |(name, facts): &(Arc<str>, Facts)| path(followed, name, facts, scenario, at);
    FlowAnswer {
        flow: followed.name.clone(),
        association: followed.association.clone(),
        paths: followed.paths.iter().filter(|(name, _)| !name.is_empty()).map(path).collect(),
        causes: causes(followed, by, scenario, at),
        waiting,
    }
}

fn waiting(followed: &Followed, by: Blocked, since: Time, scenario: &Scenario) -> Waiting {
    let (word, keys, what): (_, &[&str], _) = match by {
        Blocked::PeerWindow => {
            let section = match followed.protocol {
                Protocol::Tcp => "RFC 9293 section 3.8.6",
                Protocol::Mptcp => "one receive window for all subflows, RFC 8684 section 3.3.1",
                Protocol::Sctp | Protocol::Udp | Protocol::Foreign => "RFC 9260 section 6.1 A",
            };
            let left = format!("{} bytes left ({section})", followed.room_at_peer());
            ("peer_window", &["window_probe"], ("the peer's window", left))
        }
        Blocked::SendBuffer => {
            ("send_buffer", &[], ("the send buffer", "everything in it was sent".to_owned()))
        }
        Blocked::Window if followed.protocol == Protocol::Mptcp => {
            let full =
                "no subflow that the scheduler would take has room in it (RFC 5681 sections 3.1 and 3.2)";
            ("cwnd", &[], ("the congestion window", full.to_owned()))
        }
        Blocked::Window if followed.is_tcp() => {
            let full = "it is full, or recovery sends nothing new (RFC 5681 sections 3.1 and 3.2)";
            ("cwnd", &[], ("the congestion window", full.to_owned()))
        }
        Blocked::Window => {
            let every = "that of every path that may carry new data is full (RFC 9260 section 6.1 B)";
            ("cwnd", &["send_on"], ("the congestion window", every.to_owned()))
        }
        Blocked::Turn => {
            let (keys, why) = turn(followed, scenario);
            ("turn", keys, ("its turn", why))
        }
    };
    let (what, detail) = what;
    let lowest = followed.hole().and_then(|piece| piece.copies.last()).map(|copy| copy.path.to_string());
    let full =
        || followed.paths.iter().find(|(_, facts)| facts.full.is_some()).map(|(name, _)| name.to_string());
    let rules = words::rows(scenario, &followed.name, keys);
    let decides = if rules.is_empty() { String::new() } else { format!(" [{}]", words::listed(&rules)) };
    Waiting {
        by: word,
        since: words::seconds(since),
        endless: false,
        path: if by == Blocked::Window { full() } else { lowest },
        rules,
        text: format!("blocked by {what} since {}: {detail}.{decides}", moment(since)),
    }
}

/// Why new data may not leave now, and the rules that decide it.
fn turn(followed: &Followed, scenario: &Scenario) -> (&'static [&'static str], String) {
    if followed.is_tcp() {
        return (&[], turn_of_stream(followed, scenario));
    }
    if followed.pieces.is_empty() && followed.heard.is_none() {
        return (&["confirmation"], "the association is not up yet (RFC 9260 section 5.1)".to_owned());
    }
    let marked = followed.pieces.values().filter(|piece| piece.marked.is_some()).count() as u64;
    if marked > 0 {
        let noun = if marked == 1 { "chunk goes" } else { "chunks go" };
        let why = format!("{marked} {noun} first, marked for retransmission (RFC 9260 section 6.1 C)");
        return (&["new_data"], why);
    }
    let one =
        words::value(scenario, &followed.name, "after_timeout").is_some_and(|value| value == "one-packet");
    let probed = followed.paths.iter().find(|(_, facts)| one && facts.one_packet());
    if let Some((name, _)) = probed {
        let why = format!(
            "after its timeout {name} carries one packet until it has an acknowledgement (RFC 9260 section 7.2.3)"
        );
        return (&["after_timeout"], why);
    }
    if words::value(scenario, &followed.name, "send_on").is_some_and(|value| value == "sack") {
        return (&["send_on", "burst"], "data leaves only in answer to a SACK".to_owned());
    }
    (&["burst", "send_on"], "the last event allowed no more packets (RFC 9260 section 6.1 D)".to_owned())
}

/// As `turn`, of a stream of bytes, which has no such rules.
fn turn_of_stream(followed: &Followed, scenario: &Scenario) -> String {
    match (followed.pieces.is_empty(), followed.protocol) {
        (true, Protocol::Mptcp) => {
            "no subflow can carry data before the handshake is complete (RFC 8684 sections 3.1 and 3.2)"
                .to_owned()
        }
        (true, _) => "the connection is not established yet (RFC 9293 section 3.5)".to_owned(),
        (false, _) => {
            let policy = words::new_data_policy(scenario, &followed.name);
            format!("the scheduler {policy} (key `new`) waits for a subflow that has no room now")
        }
    }
}

/// The cause that keeps new data from this path.
fn path(followed: &Followed, name: &str, facts: &Facts, scenario: &Scenario, at: Time) -> PathAnswer {
    let window = facts.window;
    let numbers = window.map_or(" nothing was sent there yet".to_owned(), |window| {
        let marked = if window.marked > 0 { format!(", {} marked", window.marked) } else { String::new() };
        format!(" cwnd {} bytes, in flight {}{marked}", window.cwnd, window.flight)
    });
    let rto = facts.rto.map(|rto| format!(", RTO {}", length(rto))).unwrap_or_default();
    let timer = facts
        .expires
        .map(|expires| format!(", T3-rtx expires in {} (at {})", length(expires.since(at)), moment(expires)));
    let timer = timer.unwrap_or_default();
    let (blocked_by, why) = obstacle(followed, name, facts, scenario);
    PathAnswer {
        path: name.to_owned(),
        blocked_by,
        window,
        rto: facts.rto.map(|rto| rto.as_secs_f64()),
        t3_expires: facts.expires.map(words::seconds),
        text: format!("{why};{numbers}{rto}{timer}."),
    }
}

fn obstacle(followed: &Followed, name: &str, facts: &Facts, scenario: &Scenario) -> (&'static str, String) {
    if let Some((state, since)) = facts.state.filter(|(state, _)| *state != PathState::Active) {
        return ("state", format!("{} since {}", names::path_state(state), moment(since)));
    }
    let full = facts.full.map(|since| format!("its congestion window is full since {}", moment(since)));
    match (followed.blocked.0, full) {
        (None, Some(full)) => ("cwnd", full),
        (None, None) => ("nothing", "nothing blocks it".to_owned()),
        (Some(Blocked::PeerWindow), full) => {
            let left = followed.room_at_peer();
            let also = full.map(|full| format!("; besides, {full}")).unwrap_or_default();
            ("peer_window", format!("blocked by the peer's window, {left} bytes left{also}"))
        }
        (Some(Blocked::SendBuffer), _) => ("send_buffer", "the send buffer holds nothing to send".to_owned()),
        (Some(_), Some(full)) => ("cwnd", full),
        (Some(Blocked::Window), None) if followed.protocol == Protocol::Tcp => {
            ("cwnd", "its window allows no new data".to_owned())
        }
        (Some(Blocked::Window), None) if followed.protocol == Protocol::Mptcp => {
            let policy = words::new_data_policy(scenario, &followed.name);
            let why = format!(
                "its window has no room for a segment, or the scheduler {policy} (key `new`) takes another path"
            );
            ("cwnd", why)
        }
        (Some(Blocked::Window), None) => {
            let policy = words::new_data_policy(scenario, &followed.name);
            (
                "policy",
                format!("it has room, and the policy {policy} (key `new`) names another path than {name}"),
            )
        }
        (Some(Blocked::Turn), None) if followed.protocol == Protocol::Mptcp => {
            let policy = words::new_data_policy(scenario, &followed.name);
            ("policy", format!("the scheduler {policy} (key `new`) waits for another"))
        }
        (Some(Blocked::Turn), None) => ("turn", "new data waits for its turn".to_owned()),
    }
}

/// The chain of causes.
fn causes(followed: &Followed, by: Option<Blocked>, scenario: &Scenario, at: Time) -> Vec<Cause> {
    let mut causes = Vec::new();
    match by {
        Some(Blocked::PeerWindow | Blocked::SendBuffer) if followed.is_tcp() => {
            causes.extend(followed.hole().into_iter().flat_map(|hole| life(followed, hole, scenario)));
        }
        Some(Blocked::PeerWindow | Blocked::SendBuffer) => {
            causes.extend(receiver(followed, scenario));
        }
        Some(Blocked::Window) => {
            let in_the_way = |facts: &Facts| facts.full.is_some() || followed.is_tcp();
            for (name, facts) in followed.paths.iter().filter(|(_, facts)| in_the_way(facts)) {
                causes.extend(cut(name, facts, followed.is_tcp()));
                let piece = followed.oldest_on(name);
                causes.extend(piece.map(|piece| oldest(followed, name, piece)));
                causes.extend(piece.into_iter().flat_map(|piece| acknowledgements(followed, piece)));
            }
        }
        Some(Blocked::Turn) => {
            causes.extend(followed.hole().into_iter().flat_map(|hole| life(followed, hole, scenario)));
        }
        None => {}
    }
    let late = |facts: &Facts| facts.state.is_some_and(|(state, _)| state != PathState::Active);
    let failed = followed.paths.iter().filter(|(_, facts)| late(facts));
    causes.extend(failed.filter_map(|(name, facts)| timeout(followed, name, facts)));
    causes.retain(|cause| cause.at.is_none_or(|then| then <= words::seconds(at)));
    causes
}

/// The contents and the room of the receive buffer, and the history of the missing chunk.
fn receiver(followed: &Followed, scenario: &Scenario) -> Vec<Cause> {
    // Of a recorded transfer only what has arrived from the receiver is known.
    let Some(held) = followed.receiver.as_ref().or(followed.heard.as_ref()) else { return Vec::new() };
    let said = format!("by the receiver's SACK of {}", moment(held.at));
    let missing = held.missing();
    let text = match held.beyond() {
        0 => {
            let free = held.sack.a_rwnd;
            format!(
                "nothing is missing, and the receiving application has left {free} bytes of its buffer free, {said}."
            )
        }
        beyond => {
            let wait = if beyond == 1 { "waits" } else { "wait" };
            format!("{} {wait} at the receiver behind TSN {missing}, {said}.", count(beyond, "chunk"))
        }
    };
    let hole = (held.beyond() > 0).then_some(missing);
    let mut causes = vec![Cause { at: None, kind: "receiver", number: hole, path: None, text }];
    let piece = hole.and_then(|hole| followed.piece(hole));
    causes.extend(piece.into_iter().flat_map(|piece| life(followed, piece, scenario)));
    causes
}

/// The history of a piece of data: its transmissions and its marks.
fn life(followed: &Followed, piece: &Piece, scenario: &Scenario) -> Vec<Cause> {
    let (noun, number) = (followed.noun(), piece.number);
    let mut causes = Vec::new();
    for (i, copy) in piece.copies.iter().enumerate() {
        let verb = if i == 0 { "was sent" } else { "was sent again" };
        let policy = words::policy_of(scenario, &followed.name, copy.why);
        let policy =
            policy.filter(|_| i > 0).map(|policy| format!(" chosen by {policy}")).unwrap_or_default();
        let rules = rules_of(followed, scenario, copy.why);
        let text = format!(
            "{noun} {number} {verb} at {} on {}{policy} ({}{rules}): {}.",
            moment(copy.at),
            copy.path,
            words::data(followed.protocol, copy.why),
            words::place(&copy.place)
        );
        let kind = if i == 0 { "sent" } else { "retransmission" };
        let (at, path) = (Some(words::seconds(copy.at)), Some(copy.path.to_string()));
        causes.push(Cause { at, kind, number: Some(number), path, text });
    }
    causes.extend(acknowledgements(followed, piece));
    causes.extend(piece.marked.map(|(at, why)| marked(followed, piece, at, why)));
    causes
}

/// The SACKs that acknowledge a chunk and have not arrived. Of many, the first ones and the last one.
fn acknowledgements(followed: &Followed, piece: &Piece) -> Vec<Cause> {
    let number = piece.number;
    let cause = |told: &Told, by: &str| Cause {
        at: Some(words::seconds(told.at())),
        kind: "acknowledgement",
        number: Some(number),
        path: Some(told.path.to_string()),
        text: format!(
            "TSN {number} was acknowledged by {by} at {} on {}: {}.",
            moment(told.at()),
            told.path,
            words::place(&told.place)
        ),
    };
    let sacks: Vec<&Told> = followed.unheard.covering(number).collect();
    let shown = if sacks.len() > SACKS + 1 { SACKS } else { sacks.len() };
    let (first, later) = sacks.split_at(shown);
    let first = first.iter().map(|told| cause(told, "a SACK"));
    first.chain(later.last().map(|told| cause(told, "later SACKs, the last"))).collect()
}

fn marked(followed: &Followed, piece: &Piece, at: Time, why: Why) -> Cause {
    let because = words::because(followed.protocol, why);
    let path = piece.copies.last().map(|copy| copy.path.to_string());
    let text = format!(
        "{} {} is marked for retransmission by {because} since {}, and has not left yet.",
        followed.noun(),
        piece.number,
        moment(at)
    );
    Cause { at: Some(words::seconds(at)), kind: "marked", number: Some(piece.number), path, text }
}

/// ", missing_reports = 3" if a rule decides when such data is sent.
fn rules_of(followed: &Followed, scenario: &Scenario, why: Why) -> String {
    let keys: &[&str] = if why == Why::Missing { &["missing_reports"] } else { &[] };
    let rows = words::rows(scenario, &followed.name, keys);
    if rows.is_empty() { String::new() } else { format!(", {}", words::listed(&rows)) }
}

/// When the window of a full path was last cut.
fn cut(name: &str, facts: &Facts, tcp: bool) -> Option<Cause> {
    let Cut { at, from, to, why, idle, ecn } = facts.cut?;
    let by = match why {
        Some(Why::Timeout) if tcp => "by a timeout (RFC 5681 section 3.1)",
        Some(_) if tcp => "by a fast retransmission (RFC 5681 section 3.2)",
        None if tcp && idle => "by idle time (RFC 5681 section 4.1)",
        Some(Why::Timeout) => "by a timeout (RFC 9260 section 7.2.3)",
        Some(_) => "by a fast retransmission (RFC 9260 section 7.2.4)",
        None if ecn => "by a report of congestion (ECN, RFC 4960 appendix A)",
        None if idle => "by idle time (RFC 9260 section 7.2.1)",
        None => "by its window policy",
    };
    let text = format!("the cwnd of {name} was cut {by} from {from} to {to} bytes at {}.", moment(at));
    Some(Cause { at: Some(words::seconds(at)), kind: "cut", number: None, path: Some(name.to_owned()), text })
}

/// The oldest piece in flight on a full path.
fn oldest(followed: &Followed, name: &str, piece: &Piece) -> Cause {
    let copy = piece.copies.last();
    let waits =
        copy.map(|copy| format!("{}, {}", moment(copy.at), words::place(&copy.place))).unwrap_or_default();
    let arrived = copy.is_some_and(|copy| matches!(copy.place, Place::Arrived { .. }));
    let mut sacks = followed.unheard.covering(piece.number).peekable();
    let back = match arrived {
        true if sacks.peek().is_some() && sacks.all(Told::is_lost) => {
            "; no acknowledgement of it has arrived"
        }
        true => "; its acknowledgement is awaited",
        false => "",
    };
    let (noun, number) = (followed.noun(), piece.number);
    Cause {
        at: copy.map(|copy| words::seconds(copy.at)),
        kind: "oldest",
        number: Some(number),
        path: Some(name.to_owned()),
        text: format!("{noun} {number} is the oldest in flight on {name}: sent at {waits}{back}."),
    }
}

/// The last timeout of a path that has failed.
fn timeout(followed: &Followed, name: &str, facts: &Facts) -> Option<Cause> {
    let (at, rto) = facts.expired?;
    let rto = rto.map(|rto| format!(" after an RTO of {}", length(rto))).unwrap_or_default();
    let (timer, section) = words::timer(followed.protocol);
    let text = format!("{timer} of {name} expired last at {}{rto} ({section}).", moment(at));
    Some(Cause {
        at: Some(words::seconds(at)),
        kind: "timeout",
        number: None,
        path: Some(name.to_owned()),
        text,
    })
}
