//! An engine whose clock is outside: it goes on to the times that it is told, and takes packets in between.

use anabranch_proto::Time;

use super::{Engine, look};
use crate::medium::Medium;
use crate::transport::Agent;

impl<A: Agent, M: Medium> Engine<'_, A, M> {
    /// Does everything that is due at `until` or before. It is `until` afterwards. Nothing ends the run.
    pub(crate) fn advance_to(&mut self, until: Time) {
        self.ahead.stop = until;
        self.look_ahead();
        while let Some((time, turn, entity)) = self.agenda.pop(until) {
            self.now = time;
            self.turn = turn;
            if entity == self.pause_entity() {
                self.pauses.next();
                self.await_pause();
            } else {
                self.happen::<{ look::NOW }>(entity as usize);
            }
            self.events += 1;
        }
        self.now = self.now.max(until);
    }

    /// When something happens next; `NEVER` if nothing does.
    pub(crate) fn next_event(&mut self) -> Time {
        self.agenda.peek().unwrap_or(Time::NEVER)
    }

    /// Calls an agent now, and sends its output.
    pub(crate) fn give(&mut self, agent: usize, give: impl FnOnce(&mut A)) {
        give(&mut self.agents[agent]);
        self.drain::<{ look::NOW }>(agent);
    }

    /// An agent, from which something can be taken.
    pub(crate) fn agent_mut(&mut self, agent: usize) -> &mut A {
        &mut self.agents[agent]
    }
}
