//! Why a packet was sent, and what blocks each path at a moment: answers in words, from the records of a run.
//!
//! An [`Explainer`] observes a run and keeps the state of every sender: windows, outstanding chunks, and the place of
//! each of their transmissions. When the run reaches the moment or the packet of the question, it writes the answer.
//! Its memory grows with the outstanding data, not with the length of the run.

mod answer;
mod follow;
mod packet;
mod sacks;
mod words;

use anabranch_proto::{Blocked, Time};
use anabranch_sim::scenario::Scenario;
use anabranch_sim::trace::{Detail, Names, Observer, Record, Side, Wants};
use serde::Serialize;

pub use answer::{Cause, FlowAnswer, PathAnswer, Waiting};
pub use packet::{PacketAnswer, RuleRow, Window};

use follow::Follower;

/// A question about a run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Question {
    /// Explain the state at these moments.
    pub at: Vec<Time>,
    /// Explain this packet. Packets are counted from 1 in the order of sending, at both ends of all flows, or of
    /// `flow` if it is given.
    pub packet: Option<u64>,
    /// Only this flow.
    pub flow: Option<String>,
}

/// One answer, about a packet or about a moment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// The moment, seconds from the beginning of the run.
    pub at: f64,
    /// The packet of the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<PacketAnswer>,
    /// The answer for each flow.
    pub flows: Vec<FlowAnswer>,
}

impl Answer {
    /// Every sentence in order, with its level of indentation.
    pub fn lines(&self) -> Vec<String> {
        let packet = self.packet.iter().flat_map(PacketAnswer::lines);
        packet.chain(self.flows.iter().flat_map(FlowAnswer::lines)).collect()
    }
}

/// Observes a run and answers a question about it.
#[derive(Debug)]
pub struct Explainer {
    question: Question,
    scenario: Scenario,
    follower: Follower,
    /// Moments answered.
    answered: usize,
    /// Packets seen that count.
    packets: u64,
    /// The packet of the question, until the notes after it have shown its effects.
    open: Option<PacketAnswer>,
    answers: Vec<Answer>,
}

impl Explainer {
    /// Answers `question`, whose moments ascend, about a run of `scenario`.
    pub fn new(question: Question, scenario: &Scenario) -> Self {
        Explainer {
            question,
            scenario: scenario.clone(),
            follower: Follower::default(),
            answered: 0,
            packets: 0,
            open: None,
            answers: Vec::new(),
        }
    }

    /// The answers. A moment after the end of the run is answered with the state at its end. For a packet that was
    /// never sent there is no answer.
    pub fn answers(mut self) -> Vec<Answer> {
        self.close_packet();
        while let Some(at) = self.question.at.get(self.answered) {
            self.moment(*at);
        }
        let waits = self.answers.iter_mut().flat_map(|answer| &mut answer.flows);
        waits.for_each(|flow| flow.note_whether_endless(&self.follower));
        self.answers
    }

    /// The number of counted packets that were sent.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether nothing of the question is open.
    fn has_answered(&self) -> bool {
        let packet = self.question.packet.is_none_or(|packet| packet <= self.packets);
        packet && self.open.is_none() && self.answered == self.question.at.len()
    }

    fn asks_for(&self, flow: usize) -> bool {
        self.question.flow.as_ref().is_none_or(|name| self.follower.flow_name(flow) == name)
    }

    fn moment(&mut self, at: Time) {
        self.answered += 1;
        let flows = (0..self.scenario.flows.len()).filter(|flow| self.asks_for(*flow));
        let associations = flows.flat_map(|flow| self.follower.associations(flow));
        let flows = associations.map(|followed| answer::flow(followed, &self.scenario, at)).collect();
        self.answers.push(Answer { at: words::seconds(at), packet: None, flows });
    }

    /// The notes after a packet are complete: its effects are known.
    fn close_packet(&mut self) {
        let Some(mut packet) = self.open.take() else { return };
        packet.after = packet.sends_data().and_then(|path| self.follower.window(&packet.flow, path));
        let sentence = packet.change();
        packet.text.extend(sentence);
        self.answers.push(Answer { at: packet.at, packet: Some(packet), flows: Vec::new() });
    }

    fn sent(&mut self, at: Time, record: &Record<'_>) {
        let Record::Sent { flow, .. } = record else { return };
        if !self.asks_for(*flow) {
            return;
        }
        self.packets += 1;
        if self.question.packet == Some(self.packets) {
            self.open = packet::answer(&self.follower, &self.scenario, at, self.packets, record);
        }
    }
}

impl Observer for Explainer {
    fn begin(&mut self, names: &Names) {
        self.follower.begin(names, &self.scenario);
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        if self.has_answered() {
            // Whether a wait that was explained ends.
            if let Record::Detail { detail: Detail::Blocked(_), .. } = record {
                self.follower.record(at, record);
            }
            return;
        }
        while let Some(moment) = self.question.at.get(self.answered).filter(|moment| **moment < at) {
            self.moment(*moment);
        }
        // Events of links come between a packet and its notes.
        let later = self.open.as_ref().is_some_and(|packet| packet.at < words::seconds(at));
        if later || matches!(record, Record::Sent { .. } | Record::Delivered { .. }) {
            self.close_packet();
        }
        self.sent(at, record);
        self.follower.record(at, record);
    }

    fn wants(&self) -> Wants {
        Wants::PACKETS
    }
}

/// The longest waits of a flow's data, to be explained when no moment is given.
#[derive(Debug)]
pub struct Waits {
    only: Option<String>,
    names: Vec<String>,
    /// For each flow: since when it waits, and whether data has been sent before.
    since: Vec<Option<(Blocked, Time)>>,
    begun: Vec<bool>,
    /// The length of a wait in nanoseconds, and its middle.
    longest: Vec<(u64, Time)>,
}

/// The number of waits that are kept.
const WAITS: usize = 5;

impl Waits {
    /// Finds the waits of `flow`, or of all flows.
    pub fn new(flow: Option<String>) -> Self {
        Waits { only: flow, names: Vec::new(), since: Vec::new(), begun: Vec::new(), longest: Vec::new() }
    }

    /// The middles of the longest waits, in order of time. The run ended at `ended`, and with it the waits that went on.
    pub fn moments(mut self, ended: Time) -> Vec<Time> {
        let open: Vec<Time> = self.since.iter().flatten().map(|(_, since)| *since).collect();
        open.into_iter().for_each(|since| self.keep(since, ended));
        let mut moments: Vec<Time> = self.longest.into_iter().map(|(_, middle)| middle).collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    fn keep(&mut self, since: Time, until: Time) {
        let length = until.as_nanos().saturating_sub(since.as_nanos());
        let shorter = self.longest.iter().position(|(kept, _)| length > *kept).unwrap_or(self.longest.len());
        self.longest.insert(shorter, (length, Time::from_nanos(since.as_nanos() + length / 2)));
        self.longest.truncate(WAITS);
    }
}

impl Observer for Waits {
    fn begin(&mut self, names: &Names) {
        self.names = names.flows.clone();
        self.since = vec![None; names.flows.len()];
        self.begun = vec![false; names.flows.len()];
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        let Record::Detail { flow, side: Side::Client, detail, .. } = record else { return };
        self.begun[*flow] |= matches!(detail, Detail::Sent { .. });
        let Detail::Blocked(by) = detail else { return };
        if self.only.as_ref().is_some_and(|only| self.names[*flow] != *only) {
            return;
        }
        let begins = by.filter(|by| *by != Blocked::SendBuffer && self.begun[*flow]).map(|by| (by, at));
        let before = self.since[*flow];
        // The same cause again: another path has become responsible.
        if before.map(|(by, _)| by) != begins.map(|(by, _)| by) {
            self.since[*flow] = begins;
            before.into_iter().for_each(|(_, since)| self.keep(since, at));
        }
    }

    fn wants(&self) -> Wants {
        Wants { queues: false, ..Wants::LITTLE }
    }
}
