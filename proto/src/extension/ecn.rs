//! Explicit congestion notification (RFC 4960 appendix A): the receiver reports a marked packet with each SACK until
//! the sender confirms that it has reduced its window.

use crate::Tsn;
use crate::path::PathId;
use crate::send::outstanding::Outstanding;
use crate::serial::LATE;
use crate::wire::chunk::EcnEcho;
use crate::wire::{Chunk, Ecn, Packet};

/// The marks to report, and the response to the peer's reports.
#[derive(Clone, Default, Debug)]
pub(crate) struct Congestion {
    /// The lowest TSN of a packet that arrived marked. Reset when the sender has confirmed it.
    echo: Option<Tsn>,
    /// The ECNEs of the packet that is being processed.
    reports: Vec<(EcnEcho, MarkedChunk)>,
    /// The highest TSN that had been sent when the last ECNE came. An ECNE for a chunk up to it that is acknowledged is
    /// a repetition.
    reported: Option<Tsn>,
    /// The CWR that waits for a packet with data.
    answer: Option<EcnEcho>,
    /// The TSN of the last CWR, and the highest TSN that had been sent by then. Until the peer acknowledges a higher
    /// TSN, a repetition of the same ECNE is ignored.
    answered: Option<(Tsn, Tsn)>,
}

/// What is known of a chunk whose packet was marked.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum MarkedChunk {
    /// It was sent once, on this path.
    Once(PathId),
    /// It was sent again. The mark is older: retransmissions are not ECN-capable.
    Again,
    /// It is acknowledged.
    Gone,
}

impl MarkedChunk {
    fn of(tsn: Tsn, outstanding: &Outstanding) -> Self {
        match outstanding.get(tsn) {
            Some(sent) if sent.transmissions == 1 => MarkedChunk::Once(sent.path),
            Some(_) => MarkedChunk::Again,
            None => MarkedChunk::Gone,
        }
    }
}

impl Congestion {
    /// This TSN is sent: forgets TSNs so far before it that they would soon seem to lie ahead.
    //= rfc9260#section-1.6
    fn forget_before(&mut self, tsn: Tsn) {
        let near = |old: Tsn| !tsn.after(old) || tsn.distance_from(old) < LATE;
        self.reported.take_if(|reported| !near(*reported));
        self.answered.take_if(|(_, sent)| !near(*sent));
    }

    /// Reads the ECNEs of a received packet, before a SACK in it acknowledges the chunks that they name, and its ECN
    /// bits. Returns whether it was marked, so that a SACK is due at once.
    //= rfc4960#appendix-A
    pub(crate) fn look_at(&mut self, packet: &Packet, outstanding: &Outstanding) -> bool {
        let report = |chunk: &Chunk| match chunk {
            Chunk::Ecne(echo) => Some((*echo, MarkedChunk::of(echo.tsn, outstanding))),
            _ => None,
        };
        self.reports.clear();
        self.reports.extend(packet.chunks.iter().filter_map(report));
        if packet.ecn != Ecn::Ce {
            return false;
        }
        let lowest = packet.chunks.iter().filter_map(tsn).reduce(|a, b| if b.before(a) { b } else { a });
        let Some(tsn) = lowest else { return false };
        self.echo = Some(self.echo.filter(|echo| !tsn.before(*echo)).unwrap_or(tsn));
        true
    }

    /// Bytes of ECNE in a packet with a SACK.
    pub(crate) fn echo_size(&self) -> usize {
        self.echo.map_or(0, |tsn| EcnEcho { tsn }.size())
    }

    /// Prepares a packet: packets with `new` data are ECN-capable, and ECNE accompanies each SACK. It stands before the
    /// SACK: many a receiver no longer knows the path of a chunk that is acknowledged.
    //= rfc3168#section-6.1.5
    //= rfc3168#section-6.1.6
    pub(super) fn mark(&mut self, packet: &mut Packet, new: bool) {
        if let Some(tsn) = packet.chunks.iter().find_map(tsn) {
            packet.ecn = if new { Ecn::Ect0 } else { Ecn::NotEct };
            self.forget_before(tsn);
        }
        let is_sack = |chunk: &Chunk| matches!(chunk, Chunk::Sack(_) | Chunk::NrSack(_));
        if let Some(tsn) = self.echo
            && let Some(sack) = packet.chunks.iter().position(is_sack)
        {
            packet.chunks.insert(sack, Chunk::Ecne(EcnEcho { tsn }));
        }
    }

    /// The ECNEs of the packet that was processed.
    pub(crate) fn take_reports(&mut self) -> Vec<(EcnEcho, MarkedChunk)> {
        std::mem::take(&mut self.reports)
    }

    /// An ECNE reports that a packet of ours was marked. Returns whether a window may have to be reduced for that.
    //= rfc4960#appendix-A
    pub(crate) fn ecne(&mut self, echo: EcnEcho, chunk: MarkedChunk, outstanding: &Outstanding) -> bool {
        let (highest, point) = (outstanding.highest(), outstanding.point());
        if echo.tsn.after(highest) {
            return false;
        }
        let known = self.reported.is_some_and(|reported| !echo.tsn.after(reported));
        let repeated = chunk == MarkedChunk::Gone && known;
        if !repeated {
            self.reported = Some(highest);
        }
        let same = |(tsn, sent): (Tsn, Tsn)| !echo.tsn.after(tsn) && !point.after(sent);
        if !self.answered.is_some_and(same) {
            self.answer = Some(echo);
        }
        !repeated
    }

    /// Bundles the CWR with the next data, in a packet with at most `limit` bytes of chunks. If the packet is full,
    /// returns the CWR that must leave in a packet without data. `highest` is the highest TSN sent.
    //= rfc4960#appendix-A
    pub(crate) fn bundle_answer(&mut self, limit: u32, packet: &mut Packet, highest: Tsn) -> Option<Chunk> {
        let used: usize = packet.chunks.iter().map(Chunk::padded_size).sum();
        let size = self.answer?.size();
        let answer = self.take_answer(highest)?;
        if used + size > limit as usize {
            return Some(answer);
        }
        packet.chunks.insert(0, answer);
        None
    }

    /// Takes the CWR that leaves now.
    pub(crate) fn take_answer(&mut self, highest: Tsn) -> Option<Chunk> {
        let answer = self.answer.take()?;
        self.answered = Some((answer.tsn, highest));
        Some(Chunk::Cwr(answer))
    }

    /// The sender has reduced its window.
    pub(crate) fn cwr(&mut self, answer: EcnEcho) {
        self.echo = self.echo.filter(|echo| echo.after(answer.tsn));
    }
}

/// The TSN of a chunk of user data.
fn tsn(chunk: &Chunk) -> Option<Tsn> {
    match chunk {
        Chunk::Data(data) => Some(data.tsn),
        Chunk::IData(data) => Some(data.tsn),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::Ssn;
    use crate::wire::chunk::Data;

    /// Data with this TSN leaves.
    fn send(congestion: &mut Congestion, tsn: u32) {
        let [begin, end, unordered, immediate] = [true, true, false, false];
        let (tsn, payload) = (Tsn(tsn), Default::default());
        let data = Data { tsn, stream: 0, ssn: Ssn(0), ppid: 0, begin, end, unordered, immediate, payload };
        congestion.mark(&mut Packet { chunks: smallvec![Chunk::Data(data)], ..Packet::default() }, true);
    }

    /// A window was cut, and then no packet was marked while more than half of all TSNs were used. The next mark cuts
    /// again.
    //= rfc9260#section-1.6
    #[test]
    fn a_mark_counts_however_long_ago_the_last_one_was() {
        let mut congestion = Congestion::default();
        let ecne = |congestion: &mut Congestion, tsn: u32| {
            let outstanding = Outstanding::new(Tsn(tsn + 1));
            let cut = congestion.ecne(EcnEcho { tsn: Tsn(tsn) }, MarkedChunk::Gone, &outstanding);
            (cut, congestion.take_answer(Tsn(tsn)).is_some())
        };
        send(&mut congestion, 9);
        assert_eq!(ecne(&mut congestion, 9), (true, true));
        assert_eq!(ecne(&mut congestion, 9), (false, false), "again");
        let later = 9 + (1 << 31) + 1;
        (0..=4).for_each(|step| send(&mut congestion, 9 + (step << 29)));
        send(&mut congestion, later);
        assert_eq!(ecne(&mut congestion, later), (true, true));
        // A retransmission is no sign of age.
        send(&mut congestion, later - 1);
        assert_eq!(ecne(&mut congestion, later), (false, false));
    }
}
