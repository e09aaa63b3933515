//! A model of delivery that knows nothing of chunks: what was sent, less what has arrived.

use std::collections::{BTreeMap, VecDeque};

use anabranch_proto::{Delivery, Message};
use bytes::{Bytes, BytesMut};

/// What one side must still receive: an ordered message in its stream's turn, any message once.
#[derive(Default)]
pub struct Expected {
    ordered: BTreeMap<u16, VecDeque<Bytes>>,
    unordered: Vec<(u16, Bytes)>,
    /// Parts of messages not yet complete, by the number of the message.
    parts: BTreeMap<u64, BytesMut>,
}

impl Expected {
    pub fn is_empty(&self) -> bool {
        self.unordered.is_empty() && self.ordered.values().all(VecDeque::is_empty)
    }

    /// Whether some message was delivered in part only.
    pub fn in_part(&self) -> bool {
        !self.parts.is_empty()
    }

    pub fn sent(&mut self, message: &Message) {
        let payload = message.payload.clone();
        if message.unordered {
            self.unordered.push((message.stream, payload));
        } else {
            self.ordered.entry(message.stream).or_default().push_back(payload);
        }
    }

    pub fn arrived(&mut self, delivery: Delivery) {
        let (stream, unordered, complete) = (delivery.stream, delivery.unordered, delivery.complete);
        let message = delivery.message;
        let whole = self.parts.entry(message).or_default();
        whole.extend_from_slice(&delivery.into_bytes());
        if !complete {
            return;
        }
        let whole = self.parts.remove(&message).expect("just put there").freeze();
        if unordered {
            let at = self.unordered.iter().position(|sent| *sent == (stream, whole.clone()));
            self.unordered
                .swap_remove(at.expect("an unordered message that was sent, and not delivered before"));
        } else {
            let next = self.ordered.get_mut(&stream).and_then(VecDeque::pop_front);
            assert_eq!(next, Some(whole), "the next message of stream {stream}");
        }
    }
}
