//! The states of an association and the steps of its end (RFC 9260 §4, §9).

/// The state of an association (RFC 9260 §4).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// INIT was sent.
    CookieWait,
    /// COOKIE ECHO was sent.
    CookieEchoed,
    /// Data flows.
    Established,
    /// SHUTDOWN-PENDING: the user has requested the shutdown; data is not yet acknowledged.
    ShutdownPending,
    /// SHUTDOWN was sent.
    ShutdownSent,
    /// SHUTDOWN-RECEIVED: SHUTDOWN arrived; data is not yet acknowledged.
    ShutdownReceived,
    /// SHUTDOWN ACK was sent.
    ShutdownAckSent,
    /// The association has ended.
    Closed,
}

/// A step towards the end of an association.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The user requests the shutdown.
    Requested,
    /// All data sent is acknowledged.
    Drained,
    /// SHUTDOWN arrived.
    Shutdown,
    /// SHUTDOWN ACK arrived.
    ShutdownAck,
    /// SHUTDOWN COMPLETE arrived.
    Complete,
}

impl State {
    /// The state after `step`; `None` if the step has no meaning in this state.
    //= rfc9260#section-9.2
    pub(crate) fn after(self, step: Step) -> Option<State> {
        use State::*;
        match (self, step) {
            (Established, Step::Requested) => Some(ShutdownPending),
            (ShutdownPending, Step::Drained) => Some(ShutdownSent),
            (ShutdownReceived, Step::Drained) => Some(ShutdownAckSent),
            (Established | ShutdownPending, Step::Shutdown) => Some(ShutdownReceived),
            (ShutdownSent, Step::Shutdown) => Some(ShutdownAckSent),
            (ShutdownSent | ShutdownAckSent, Step::ShutdownAck) => Some(Closed),
            (ShutdownAckSent, Step::Complete) => Some(Closed),
            _ => None,
        }
    }

    /// Whether the user may give data to send.
    pub(crate) fn takes_data(self) -> bool {
        matches!(self, State::CookieWait | State::CookieEchoed | State::Established)
    }

    /// Whether DATA may be sent.
    pub(crate) fn sends_data(self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownReceived)
    }

    /// Whether arriving DATA is accepted.
    pub(crate) fn receives_data(self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownSent)
    }

    /// Whether heartbeats are sent.
    //= rfc9260#section-8.3
    pub(crate) fn heartbeats(self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownReceived)
    }

    /// Whether set-up is still in progress.
    pub(crate) fn setting_up(self) -> bool {
        matches!(self, State::CookieWait | State::CookieEchoed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole table of figure 3 and §9.2, with every state and every step.
    #[test]
    fn every_step_from_every_state() {
        use State::*;
        let states = [
            CookieWait,
            CookieEchoed,
            Established,
            ShutdownPending,
            ShutdownSent,
            ShutdownReceived,
            ShutdownAckSent,
            Closed,
        ];
        let table = [
            (Step::Requested, [None, None, Some(ShutdownPending), None, None, None, None, None]),
            (Step::Drained, [None, None, None, Some(ShutdownSent), None, Some(ShutdownAckSent), None, None]),
            (
                Step::Shutdown,
                [
                    None,
                    None,
                    Some(ShutdownReceived),
                    Some(ShutdownReceived),
                    Some(ShutdownAckSent),
                    None,
                    None,
                    None,
                ],
            ),
            (Step::ShutdownAck, [None, None, None, None, Some(Closed), None, Some(Closed), None]),
            (Step::Complete, [None, None, None, None, None, None, Some(Closed), None]),
        ];
        for (step, row) in table {
            for (state, expected) in states.into_iter().zip(row) {
                assert_eq!(state.after(step), expected, "{state:?} after {step:?}");
            }
        }
    }
}
