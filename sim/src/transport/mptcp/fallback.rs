//! The fallback to TCP (RFC 8684 §3.7): the other end does not know Multipath TCP, and the first subflow carries
//! everything.

use anabranch_proto::{Blocked, PathId, Time};

use super::connection::{Connection, ConnectionOutput};
use super::subflow::Stage;
use crate::transport::tcp::{self, State};

impl Connection {
    /// The other end's answer shows that it does not support Multipath TCP.
    //= rfc8684#section-3.7
    pub(super) fn fall_back(&mut self) {
        self.plain = true;
        let subflow = &mut self.subflows[0];
        subflow.stage = Stage::Ready;
        subflow.tcp.own_buffer();
        subflow.tcp.write(self.written);
        if self.closing {
            subflow.tcp.close();
        }
    }

    /// The next output after the fallback.
    pub(super) fn poll_plain(&mut self, now: Time) -> ConnectionOutput {
        let said = self.subflows[0].tcp.poll(now);
        self.translate_notes(0);
        match said {
            tcp::Output::Transmit(packet, why) => {
                ConnectionOutput::Transmit(0, packet, tcp::reason(why, PathId(0)))
            }
            tcp::Output::Wait(until) => {
                self.settle_plain(now);
                ConnectionOutput::Wait(until)
            }
        }
    }

    /// Nothing more leaves now. Records why data waits.
    fn settle_plain(&mut self, now: Time) {
        let tcp = &self.subflows[0].tcp;
        let cause = match tcp.waits_for() {
            _ if !self.client || tcp.state() != State::Established => None,
            None => (tcp.unacknowledged() >= self.config.send_buffer).then_some(Blocked::SendBuffer),
            cause => cause,
        };
        self.blocked_by(now, cause);
    }
}
