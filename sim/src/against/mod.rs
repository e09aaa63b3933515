//! One end of a captured association against our endpoint: where do the answers differ, and which rule makes the
//! difference?
//!
//! The packets of the other end arrive at our endpoint at their times in the capture, in virtual time, and our user
//! does what the captured user did. Our endpoint has the TSNs, streams and addresses of the captured end; tags, cookies
//! and contents of HEARTBEATs are translated. What it sends is compared with what the captured end sent.
//!
//! A difference is explained by experiment: the replay is repeated with another choice of one rule, mechanism or
//! parameter. A choice with which the difference disappears explains it. It is then kept, and the comparison goes on to
//! the next difference.

mod candidates;
mod conversation;
mod entry;
mod manner;
mod messages;
mod met;
mod queue;
mod replay;

use std::collections::VecDeque;

use anabranch_proto::{Config, Duration, NewError, Time};
use serde::Serialize;

use crate::scenario::{ScenarioError, protocol};
use candidates::{Candidate, ERA, candidates};
pub use conversation::{Conversation, NotReplayed};
use entry::Entry;
pub use entry::Subject;
use manner::Manner;
pub use manner::{Assumption, Doubt};
use replay::replay;

/// So many differences are reported at most.
const MOST_DIFFERENCES: usize = 20;
/// One in so many messages that waited for the interface is few.
const FEW: usize = 10;
/// So often the replay goes on after a difference or with another assumption.
const MOST_STEPS: usize = 40;
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
    /// What the capture does not tell, and what may therefore be the whole difference. Then a choice explains it only
    /// if nothing else differs with it.
    pub doubt: Option<Doubt>,
    /// The choices with which the difference disappears, the most far-reaching first; the first is kept for what
    /// follows. None: no single choice explains it, and nothing further is compared on this subject; if it is data,
    /// then neither on `Control`, nor anything after an ABORT of our endpoint.
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

impl Explanation {
    /// Whether it reaches further than until this time.
    fn is_beyond(&self, until: Until) -> bool {
        until.is_some_and(|until| self.until.is_none_or(|own| own > until.as_secs_f64()))
    }
}

/// Where two ends part.
#[derive(Copy, Clone)]
struct Parting<'a> {
    at: Time,
    subject: Subject,
    recorded: Option<&'a Entry>,
}

/// The result of a comparison.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Compared {
    /// What the capture does not tell and was assumed.
    pub assumed: Vec<Assumption>,
    /// The differences, in order of discovery.
    pub differences: Vec<Difference>,
}

/// Replays the conversation against our endpoint.
pub fn compare(conversation: &Conversation, comparison: &Comparison) -> Result<Compared, NotCompared> {
    let asked = Manner::new(comparison.bulk);
    let mut settings = comparison.settings.clone();
    let config = protocol("--against", &settings)?;
    let mut trial = Trial { conversation, comparison, config, manner: asked, open: Subject::ALL.to_vec() };
    let mut differences = Vec::new();
    let all = trial.all();
    for left in (0..MOST_STEPS).rev() {
        if differences.len() == MOST_DIFFERENCES {
            break;
        }
        let sent = trial.run(all)?;
        let Some((parting, ours)) = trial.first(&sent, all) else { break };
        let mut explained = explain(&trial, &settings, parting);
        let doubt = trial.doubt(&parting, ours);
        // In doubt, only a choice with which nothing differs any more explains the difference.
        let doubt = doubt.filter(|_| explained.first().is_none_or(|best| best.until.is_some()));
        if doubt.is_some() {
            explained.clear();
        }
        // The last step reports a difference that is left.
        if left > 0
            && let Some((manner, until)) = trial.other_manner(parting.at)
            && explained.first().is_none_or(|best| !best.is_beyond(until))
        {
            trial.manner = manner;
            continue;
        }
        match explained.first() {
            Some(best) => {
                settings.push(format!("{}={}", best.key, best.recorded));
                trial.config = protocol("--against", &settings)?;
            }
            None => trial.open.retain(|subject| !subject.depends_on(parting.subject)),
        }
        differences.push(Difference { doubt, ..difference(parting, ours, explained) });
    }
    Ok(Compared { assumed: trial.manner.assumes(asked), differences })
}

/// A replay: with which settings, in which manner, and which subjects are compared.
#[derive(Clone)]
struct Trial<'a> {
    conversation: &'a Conversation,
    comparison: &'a Comparison,
    config: Config,
    manner: Manner,
    open: Vec<Subject>,
}

/// The time of a first difference; `None`: there is none.
type Until = Option<Time>;

impl<'a> Trial<'a> {
    /// The end of the comparison.
    fn all(&self) -> Time {
        self.conversation.end + self.comparison.within
    }

    fn run(&self, end: Time) -> Result<Vec<Entry>, NewError> {
        replay(self.conversation, &self.config, self.comparison.mtu, self.manner, end)
    }

    /// The time of the next difference if the one at `at` disappears and nothing differs earlier.
    fn reaches(&self, at: Time) -> Option<Until> {
        let later = |until: &Until| until.is_none_or(|until| until > at);
        let until = |end: Time| -> Option<Until> {
            let sent = self.run(end).ok()?;
            let parting = self.first(&sent, end).map(|(parting, _)| parting.at);
            Some(parting.or(self.aborts(&sent))).filter(later)
        };
        let soon = (at + self.comparison.within + TRIAL).min(self.all());
        until(soon).and_then(|_| until(self.all()))
    }

    /// The first difference on one of the open subjects until `end`, and what our endpoint sent there.
    fn first<'b>(&self, sent: &'b [Entry], end: Time) -> Option<(Parting<'b>, Option<&'b Entry>)>
    where
        'a: 'b,
    {
        let (known, within) = (self.conversation, self.comparison.within);
        let end = self.aborts(sent).map_or(end, |aborted| end.min(aborted));
        let partings = self.open.iter().filter_map(|subject| first_on(*subject, known, sent, within, end));
        partings.min_by_key(|(parting, _)| (parting.at, parting.subject))
    }

    /// When our endpoint ends the association because its data differs: data that it never sent is acknowledged.
    /// Nothing can be compared from then on. The captured end may do the last thing before sooner by as much as times
    /// may differ.
    fn aborts(&self, sent: &[Entry]) -> Option<Time> {
        let ours = sent.iter().find(|entry| entry.what.is_abort())?.at;
        let within = self.comparison.within;
        (!self.open.contains(&Subject::Data)).then(|| Time::ZERO + ours.since(Time::ZERO + within))
    }

    /// Whether the captured end gave up messages that it had until this time.
    fn gives_up(&self, until: Time) -> bool {
        self.conversation.messages.iter().any(|message| message.is_given_up(until))
    }

    /// Whether some of the messages until this time waited for their interface, and not only a few.
    fn waits(&self, until: Time) -> bool {
        let sent = || self.conversation.messages.iter().filter(|message| message.is_sent(until));
        sent().filter(|message| message.waited()).count() * FEW > sent().count()
    }

    /// Whether it is doubtful that a difference is one of the two endpoints.
    fn doubt(&self, parting: &Parting<'_>, ours: Option<&Entry>) -> Option<Doubt> {
        let both = parting.recorded.zip(ours).map(|(theirs, own)| (&theirs.what, &own.what));
        let tolerance = self.conversation.a_rwnd / WINDOW_TOLERANCE;
        let fuller =
            both.is_some_and(|(theirs, own)| theirs.a_rwnd() < own.a_rwnd().saturating_sub(tolerance));
        let lacks = both.is_some_and(|(theirs, own)| theirs.lacks(own));
        match parting.subject {
            Subject::Window | Subject::Acknowledgement if fuller => Some(Doubt::Reading),
            Subject::Acknowledgement if lacks => Some(Doubt::Arrival),
            Subject::Data if self.gives_up(parting.at + self.comparison.within) => Some(Doubt::GivenUp),
            Subject::Data if !self.comparison.bulk && self.waits(parting.at) => Some(Doubt::Waiting),
            _ => None,
        }
    }

    /// What else may be assumed so that the difference at `at` disappears, and the time of the next one: what reaches
    /// furthest.
    fn other_manner(&self, at: Time) -> Option<(Manner, Until)> {
        let known = self.conversation;
        let gives_up = self.gives_up(known.end);
        let addresses = known.peer.len() > 1;
        let mut best: Option<(Manner, Until)> = None;
        for manner in self.manner.others(!known.rates.is_empty(), addresses, gives_up) {
            let Some(until) = (Trial { manner, ..self.clone() }).reaches(at) else { continue };
            if best.is_none_or(|(_, most)| reach(until) > reach(most)) {
                best = Some((manner, until));
            }
        }
        best
    }
}

fn reach(until: Until) -> u64 {
    until.map_or(u64::MAX, Time::as_nanos)
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
        doubt: None,
        explained,
    }
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

/// The place in `recorded` of what the captured end sent where our endpoint sent `own`. Data is compared in the order
/// of each path: a capture shows a packet when it leaves the host, so one that waited for its interface stands behind a
/// later one of another path, and behind a later one of its own path that the link dropped when it was offered.
/// Everything else is compared in the order of sending.
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
fn explain(trial: &Trial<'_>, settings: &[String], parting: Parting<'_>) -> Vec<Explanation> {
    let mut explained = Vec::new();
    for candidate in candidates(&trial.config, settings) {
        let changed = [settings, &[format!("{}={}", candidate.key, candidate.value)]].concat();
        let Ok(config) = protocol("--against", &changed) else { continue };
        let until = (Trial { config, ..trial.clone() }).reaches(parting.at);
        // A whole era is no answer to one difference among several.
        if let Some(until) = until.filter(|until| candidate.key != ERA || until.is_none()) {
            explained.push((until, candidate));
        }
    }
    // The sort is stable: at equal reach, rules stand before mechanisms, these before parameters, and whole eras last.
    explained.sort_by_key(|(until, _)| std::cmp::Reverse(reach(*until)));
    let explanation = |(until, candidate): (Until, Candidate)| Explanation {
        key: candidate.key.to_owned(),
        ours: candidate.ours,
        recorded: candidate.value,
        meaning: candidate.meaning,
        until: until.map(Time::as_secs_f64),
    };
    explained.into_iter().map(explanation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::CaptureReader;

    /// The end that answers the INIT sends SACKs only, and would report each one after the ABORT as missing.
    #[test]
    fn nothing_is_compared_after_an_abort_that_follows_from_other_data() {
        let capture = &include_bytes!("../../tests/captures/usrsctp.pcap")[..];
        let reader = CaptureReader::new(capture).expect("a capture");
        let played = Some("10.9.0.1".parse().expect("an address"));
        let conversation = Conversation::read(reader, &[9899], played).expect("an association");
        let within = Duration::from_millis(1);
        let comparison = Comparison { settings: Vec::new(), within, mtu: None, bulk: false };
        let config = protocol("--against", &[]).expect("settings");
        let open = vec![Subject::Data, Subject::Acknowledgement];
        let mut trial = Trial {
            conversation: &conversation,
            comparison: &comparison,
            config,
            manner: Manner::new(false),
            open,
        };
        let mut sent = conversation.recorded[..10].to_vec();
        let at = sent[9].at;
        sent.push(Entry { at, number: None, reason: None, refused: false, what: entry::What::Control(6) });
        assert!(trial.first(&sent, trial.all()).is_some());
        trial.open.retain(|subject| !subject.depends_on(Subject::Data));
        assert!(trial.first(&sent, trial.all()).is_none());
    }
}
