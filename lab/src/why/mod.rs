//! Why a packet was sent, and what blocks each path at a moment: answers in words, from the records of a run.
//!
//! An [`Explainer`] observes a run and keeps the state of every sender: windows, outstanding chunks and where each
//! copy of them is. When the run comes to what was asked, it writes the answer down. Its memory grows with what is
//! outstanding, not with the length of the run.

mod answer;
mod follow;
mod packet;
mod words;

use anabranch_proto::{Blocked, Time};
use anabranch_sim::scenario::Scenario;
use anabranch_sim::trace::{Detail, Names, Observer, Record, Side};
use serde::Serialize;

pub use answer::{Cause, FlowAnswer, PathAnswer, Waiting};
pub use packet::{PacketAnswer, RuleRow, Window};

use follow::Follower;

/// What is asked of a run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Question {
    /// Explain these moments.
    pub at: Vec<Time>,
    /// Explain this packet: they count from 1 in the order in which they are sent, at both ends of all flows, or of
    /// `flow` if that is given.
    pub packet: Option<u64>,
    /// Only this flow.
    pub flow: Option<String>,
}

/// One answer: of a packet, or of a moment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// The moment, seconds from the beginning of the run.
    pub at: f64,
    /// The packet that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<PacketAnswer>,
    /// What each flow waits for.
    pub flows: Vec<FlowAnswer>,
}

impl Answer {
    /// Every sentence, in order, indented by how deep it stands.
    pub fn lines(&self) -> Vec<String> {
        let packet = self.packet.iter().flat_map(PacketAnswer::lines);
        packet.chain(self.flows.iter().flat_map(FlowAnswer::lines)).collect()
    }
}

/// Observes a run, and answers a question about it.
#[derive(Debug)]
pub struct Explainer {
    question: Question,
    scenario: Scenario,
    follower: Follower,
    /// Moments answered.
    answered: usize,
    /// Packets seen that count.
    packets: u64,
    /// The packet that was asked for, until the notes behind it have told what it changed.
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

    /// The answers; a moment after the end of the run is answered with the state at its end. A packet that was never
    /// sent has none.
    pub fn answers(mut self) -> Vec<Answer> {
        self.close_packet();
        while let Some(at) = self.question.at.get(self.answered) {
            self.moment(*at);
        }
        self.answers
    }

    /// How many packets were sent that count.
    pub fn packets(&self) -> u64 {
        self.packets
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

    /// The notes behind a packet are over: what it changed is known.
    fn close_packet(&mut self) {
        let Some(mut packet) = self.open.take() else { return };
        packet.after = packet.path.as_ref().and_then(|path| self.follower.window(&packet.flow, path));
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
        while let Some(moment) = self.question.at.get(self.answered).filter(|moment| **moment < at) {
            self.moment(*moment);
        }
        // What enters a link comes between a packet and its notes.
        let later = self.open.as_ref().is_some_and(|packet| packet.at < words::seconds(at));
        if later || matches!(record, Record::Sent { .. } | Record::Delivered { .. }) {
            self.close_packet();
        }
        self.sent(at, record);
        self.follower.record(at, record);
    }
}

/// The longest times for which data of a flow waited: to be asked about when nobody names a moment.
#[derive(Debug)]
pub struct Waits {
    only: Option<String>,
    names: Vec<String>,
    /// Of each flow: since when it waits, and whether data has left.
    since: Vec<Option<(Blocked, Time)>>,
    begun: Vec<bool>,
    /// Nanoseconds of a wait, and its middle.
    longest: Vec<(u64, Time)>,
}

/// So many waits are kept.
const WAITS: usize = 5;

impl Waits {
    /// Of `flow`, or of all.
    pub fn new(flow: Option<String>) -> Self {
        Waits { only: flow, names: Vec::new(), since: Vec::new(), begun: Vec::new(), longest: Vec::new() }
    }

    /// The middles of the longest waits, in order of time.
    pub fn moments(self) -> Vec<Time> {
        let mut moments: Vec<Time> = self.longest.into_iter().map(|(_, middle)| middle).collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    fn keep(&mut self, since: Time, until: Time) {
        let length = until.as_nanos() - since.as_nanos();
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
        // The same cause again: another path has come to be in the way.
        if before.map(|(by, _)| by) != begins.map(|(by, _)| by) {
            self.since[*flow] = begins;
            before.into_iter().for_each(|(_, since)| self.keep(since, at));
        }
    }
}
