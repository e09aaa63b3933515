//! Interleaved messages (RFC 8260): I-DATA in place of DATA, I-FORWARD-TSN in place of FORWARD TSN.
//!
//! `sending.rs` numbers fragments and gives each stream its turn, chunk by chunk; `receive/interleaved.rs` joins them.

mod sending;

pub(crate) use sending::Interleaving;

use super::PacketOrigin;
use crate::Time;
use crate::association::Association;
use crate::receive::Arrival;
use crate::wire::Cause;
use crate::wire::chunk::{IData, IForwardTsn};

impl Association {
    /// I-DATA came.
    //= rfc8260#section-2.2.3
    pub(super) fn idata(&mut self, data: IData, came: PacketOrigin, arrival: &mut Arrival, now: Time) {
        self.data_shows_cookie_ack(now);
        if !self.state.receives_data() {
            return;
        }
        if data.payload.is_empty() {
            return self.violated(Cause::NoUserData(data.tsn), now);
        }
        if data.stream >= self.streams.1 {
            return self.invalid_stream(data.stream, data.tsn, came.path, arrival);
        }
        let (tsn, size) = (data.tsn, data.size());
        let outcome = self.receiver.idata(data, &self.config.rules, arrival);
        self.taken(outcome, (tsn, size), came.path, now);
    }

    /// I-FORWARD-TSN came.
    //= rfc8260#section-2.3.1
    pub(super) fn interleaved_forward(&mut self, forward: &IForwardTsn, arrival: &mut Arrival, now: Time) {
        if !self.may_skip_to(forward.cumulative, arrival, now) {
            return;
        }
        let inbound = self.streams.1;
        let skipped = forward.skipped.iter().copied().filter(|message| message.stream < inbound);
        self.receiver.interleaved_forward(forward.cumulative, skipped, arrival);
    }

    /// Chunks of the other kind than was agreed.
    //= rfc8260#section-2.2.3
    //= rfc8260#section-2.3.1
    pub(crate) fn wrong_kind(&mut self, now: Time) {
        let what = b"a chunk of the kind that was not agreed: DATA or I-DATA".as_slice();
        self.violated(Cause::ProtocolViolation(what.into()), now);
    }
}
