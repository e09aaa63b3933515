//! Counters of a link direction, and the causes of drops.

/// Why a packet was dropped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DropCause {
    /// The queue was full.
    Queue,
    /// RED or CoDel dropped it, although the queue had room.
    Early,
    /// The link lost it.
    Loss,
    /// The link was down, or went down.
    Down,
    /// The last RTS was not answered with a CTS.
    Rts,
    /// The last data frame was not answered with an ACK.
    Data,
    /// The packet was larger than the MTU, which had become smaller.
    Size,
}

/// The counters of a link direction.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Counters {
    /// Packets offered.
    pub(crate) offered: u64,
    /// Bytes delivered at the far end.
    pub(crate) delivered_bytes: u64,
    /// Packets that the queue dropped.
    pub(crate) queue: u64,
    /// Packets lost.
    pub(crate) loss: u64,
    /// Packets dropped because the link was down.
    pub(crate) down: u64,
    /// Packets dropped because they were larger than the link's MTU.
    pub(crate) size: u64,
}

impl Counters {
    /// Packets dropped for any cause.
    pub(crate) fn dropped(&self) -> u64 {
        self.queue + self.loss + self.down + self.size
    }

    /// The difference from `earlier` counters of the same link.
    pub(crate) fn since(&self, earlier: &Counters) -> Counters {
        Counters {
            offered: self.offered - earlier.offered,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            queue: self.queue - earlier.queue,
            loss: self.loss - earlier.loss,
            down: self.down - earlier.down,
            size: self.size - earlier.size,
        }
    }
}
