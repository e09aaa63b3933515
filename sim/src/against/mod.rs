//! One end of a captured association against our endpoint: where do the answers differ, and which rule makes the difference?
//!
//! The packets of the other end arrive at our endpoint at their times in the capture, in virtual time, and our user does
//! what the captured user did. Our endpoint has the TSNs, streams and addresses of the captured end; tags, cookies and
//! contents of HEARTBEATs are translated. What it sends is compared with what the captured end sent.
//!
//! A difference is explained by experiment: the replay is repeated with another choice of one rule, mechanism or
//! parameter. A choice with which the difference disappears explains it. It is then kept, and the comparison goes on to
//! the next difference.

mod candidates;
mod conversation;
mod entry;
mod replay;

use std::collections::VecDeque;

use anabranch_proto::{Config, Duration, NewError, Time};
use serde::Serialize;

use crate::scenario::{ScenarioError, protocol};
use candidates::{Candidate, candidates};
pub use conversation::{Conversation, NotReplayed};
use entry::Entry;
pub use entry::Subject;
use replay::replay;

/// So many differences are reported at most.
const MOST_DIFFERENCES: usize = 20;
/// A trial goes on for so long after the difference that it shall explain.
const TRIAL: Duration = Duration::from_millis(500);
/// a_rwnd may differ by this part of the receive buffer: stacks count the overhead of their buffers differently.
const WINDOW_TOLERANCE: u32 = 4;

/// How the comparison is made.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Settings of our endpoint, `KEY=VALUE` as in `[flow.sctp]`.
    pub settings: Vec<String>,
    /// How far times may differ.
    pub within: Duration,
    /// The MTU of our endpoint; `None`: as the capture shows it, 1,500 bytes at least.
    pub mtu: Option<u32>,
    /// Whether the user gives all messages at once, instead of each when its first chunk was sent.
    pub bulk: bool,
}

/// Why nothing was compared.
#[derive(Debug, thiserror::Error)]
pub enum NotCompared {
    /// A setting is wrong.
    #[error(transparent)]
    Setting(#[from] ScenarioError),
    /// The settings do not fit the capture.
    #[error(transparent)]
    Endpoint(#[from] NewError),
}

/// A difference.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// When, in seconds since the first packet.
    pub at: f64,
    /// The number of the packet in the capture; `None` if only our endpoint sent something.
    pub packet: Option<u64>,
    /// What differs.
    pub subject: Subject,
    /// What the captured end sent; `None`: nothing more.
    pub recorded: Option<Sent>,
    /// What our endpoint sent; `None`: nothing more.
    pub ours: Option<Sent>,
    /// The section that rules it.
    pub section: String,
    /// The choices with which the difference disappears, the most far-reaching first; the first is kept for what
    /// follows. None: no single choice explains it, and nothing further is compared on this subject.
    pub explained: Vec<Explanation>,
}

/// A chunk that one end sent.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sent {
    /// When, in seconds since the first packet.
    pub at: f64,
    /// What.
    pub what: String,
}

/// A choice with which a difference disappears.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explanation {
    /// The key in `[flow.sctp]`.
    pub key: String,
    /// Our endpoint's value.
    pub ours: String,
    /// The value with which it answers as recorded.
    pub recorded: String,
    /// The meaning of the key.
    pub meaning: String,
    /// The time of the next difference with this value, in seconds; `None`: there is none.
    pub until: Option<f64>,
}

/// Where two ends part.
#[derive(Copy, Clone)]
struct Parting<'a> {
    at: Time,
    subject: Subject,
    recorded: Option<&'a Entry>,
}

/// Replays the conversation against our endpoint and returns the differences in order of discovery.
pub fn compare(conversation: &Conversation, comparison: &Comparison) -> Result<Vec<Difference>, NotCompared> {
    let mut settings = comparison.settings.clone();
    let mut open = Subject::ALL.to_vec();
    let mut differences = Vec::new();
    let all = conversation.end + comparison.within;
    let mut config = protocol("--against", &settings)?;
    while differences.len() < MOST_DIFFERENCES {
        let sent = run(conversation, comparison, &config, all)?;
        let Some((parting, ours)) = first(conversation, &sent, comparison.within, &open, all) else { break };
        let explained = explain(conversation, comparison, &settings, &config, parting, &open);
        match explained.first() {
            Some(best) => {
                settings.push(format!("{}={}", best.key, best.recorded));
                config = protocol("--against", &settings)?;
            }
            None => open.retain(|subject| *subject != parting.subject),
        }
        differences.push(difference(parting, ours, explained));
    }
    Ok(differences)
}

fn run(
    conversation: &Conversation,
    comparison: &Comparison,
    config: &Config,
    end: Time,
) -> Result<Vec<Entry>, NewError> {
    replay(conversation, config, comparison.mtu, comparison.bulk, end)
}

fn difference(parting: Parting<'_>, ours: Option<&Entry>, explained: Vec<Explanation>) -> Difference {
    let sent = |entry: &Entry| Sent { at: entry.at.as_secs_f64(), what: entry.what.to_string() };
    let section = parting.recorded.or(ours).map(|entry| entry.section(parting.subject)).unwrap_or_default();
    Difference {
        at: parting.at.as_secs_f64(),
        packet: parting.recorded.and_then(|entry| entry.number),
        subject: parting.subject,
        recorded: parting.recorded.map(sent),
        ours: ours.map(sent),
        section,
        explained,
    }
}

/// The first difference on one of the `open` subjects until `end`, and what our endpoint sent there.
fn first<'a>(
    conversation: &'a Conversation,
    sent: &'a [Entry],
    within: Duration,
    open: &[Subject],
    end: Time,
) -> Option<(Parting<'a>, Option<&'a Entry>)> {
    let partings = open.iter().filter_map(|subject| first_on(*subject, conversation, sent, within, end));
    partings.min_by_key(|(parting, _)| (parting.at, parting.subject))
}

fn first_on<'a>(
    subject: Subject,
    conversation: &'a Conversation,
    sent: &'a [Entry],
    within: Duration,
    end: Time,
) -> Option<(Parting<'a>, Option<&'a Entry>)> {
    let of = |entry: &&Entry| entry.what.belongs_to(subject);
    let mut recorded: VecDeque<&Entry> = conversation.recorded.iter().filter(of).collect();
    let mut ours = sent.iter().filter(of);
    let buffer = conversation.a_rwnd;
    loop {
        let own = ours.next();
        let place = own.and_then(|own| counterpart(own, &recorded, within));
        let theirs = recorded.remove(place.unwrap_or(0));
        let at = match (theirs, own) {
            (None, None) => return None,
            (Some(theirs), Some(own)) if subject == Subject::Window => {
                // When SACKs differ, their windows cannot be compared any more.
                let apart = theirs.what.a_rwnd().abs_diff(own.what.a_rwnd());
                match theirs.what.same(&own.what) {
                    true if apart <= buffer / WINDOW_TOLERANCE => continue,
                    true => theirs.at,
                    false => return None,
                }
            }
            (Some(_), Some(_)) if place.is_some() => continue,
            (Some(theirs), Some(own)) => theirs.at.min(own.at),
            (Some(theirs), None) => theirs.at,
            (None, Some(own)) => own.at,
        };
        // What comes so late may only lack its counterpart because the replay ends.
        let alone = theirs.is_none() || own.is_none();
        if subject == Subject::Window && alone || alone && at + within >= end && own.is_some() || at > end {
            return None;
        }
        return Some((Parting { at, subject, recorded: theirs }, own));
    }
}

/// The place in `recorded` of what the captured end sent where our endpoint sent `own`. Data is compared in the order of each
/// path: a capture shows a packet when it leaves the host, so one that waited for its interface stands behind a later one of
/// another path, and behind a later one of its own path that the link dropped when it was offered. Everything else is compared in the order of
/// sending.
fn counterpart(own: &Entry, recorded: &VecDeque<&Entry>, within: Duration) -> Option<usize> {
    let until = recorded.front()?.at + within;
    let first = |refused| {
        let mut near = recorded.iter().take_while(|entry| entry.at <= until);
        near.position(|entry| entry.refused == refused && entry.what.destination() == own.what.destination())
    };
    let same = |place: &usize| {
        let theirs = recorded[*place];
        let apart = theirs.at.max(own.at).since(theirs.at.min(own.at));
        theirs.what.same(&own.what) && apart <= within
    };
    [false, true].into_iter().filter_map(first).find(same)
}

/// The choices with which the difference disappears and nothing that agreed before differs.
fn explain(
    conversation: &Conversation,
    comparison: &Comparison,
    settings: &[String],
    config: &Config,
    parting: Parting<'_>,
    open: &[Subject],
) -> Vec<Explanation> {
    let all = conversation.end + comparison.within;
    let trial = (parting.at + comparison.within + TRIAL).min(all);
    // The time of the first difference; None: no difference until `end`.
    let next = |candidate: &Candidate, end: Time| -> Option<Option<Time>> {
        let changed = [settings, &[format!("{}={}", candidate.key, candidate.value)]].concat();
        let config = protocol("--against", &changed).ok()?;
        let sent = run(conversation, comparison, &config, end).ok()?;
        let parting = first(conversation, &sent, comparison.within, open, end);
        Some(parting.map(|(parting, _)| parting.at))
    };
    let mut explained = Vec::new();
    for candidate in candidates(config) {
        let later = |at: Option<Time>| at.is_none_or(|at| at > parting.at);
        if !next(&candidate, trial).is_some_and(later) {
            continue;
        }
        if let Some(until) = next(&candidate, all).filter(|at| later(*at)) {
            explained.push((until, candidate));
        }
    }
    // The sort is stable: at equal reach, rules stand before mechanisms, and these before parameters.
    explained.sort_by_key(|(until, _)| std::cmp::Reverse(until.map_or(u64::MAX, Time::as_nanos)));
    let explanation = |(until, candidate): (Option<Time>, Candidate)| Explanation {
        key: candidate.key.to_owned(),
        ours: candidate.ours,
        recorded: candidate.value,
        meaning: candidate.meaning,
        until: until.map(Time::as_secs_f64),
    };
    explained.into_iter().map(explanation).collect()
}
