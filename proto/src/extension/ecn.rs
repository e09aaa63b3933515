//! Explicit congestion notification (RFC 4960 appendix A): a marked packet is told with each SACK until the sender says
//! that it has cut its window.

use super::PacketOrigin;
use crate::association::Association;
use crate::output::Purpose;
use crate::path::PathId;
use crate::policy::Loss;
use crate::wire::chunk::EcnEcho;
use crate::wire::{Chunk, Ecn, Packet};
use crate::{Time, Tsn};

/// What is to be told of congestion, and what was done about it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Congestion {
    /// The lowest TSN of a packet that arrived marked, until the sender knows of it.
    echo: Option<Tsn>,
    /// The highest TSN that had been sent when a window was cut last: marks up to there are the same congestion.
    cut: Option<Tsn>,
    /// The CWR that waits for a packet with data.
    answer: Option<EcnEcho>,
    /// The TSN of the last CWR, and the highest that had been sent by then: until the peer acknowledges beyond that, the same ECNE says
    /// nothing new.
    answered: Option<(Tsn, Tsn)>,
}

impl Congestion {
    /// Bytes of ECNE in a packet with a SACK.
    pub(crate) fn echo_size(&self) -> usize {
        self.echo.map_or(0, |tsn| EcnEcho { tsn }.size())
    }
}

impl Association {
    fn congestion(&mut self) -> Option<&mut Congestion> {
        self.extended.as_mut().and_then(|extended| extended.congestion.as_mut())
    }

    /// A packet has come: was it marked?
    //= rfc4960#appendix-A
    pub(crate) fn look_for_mark(&mut self, packet: &Packet) {
        let tsn = |chunk: &Chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn),
            Chunk::IData(data) => Some(data.tsn),
            _ => None,
        };
        let lowest = packet.chunks.iter().filter_map(tsn).reduce(|a, b| if b.before(a) { b } else { a });
        if packet.ecn != Ecn::Ce {
            return;
        }
        let Some(tsn) = lowest else { return };
        let Some(congestion) = self.congestion() else { return };
        congestion.echo = Some(congestion.echo.filter(|echo| !tsn.before(*echo)).unwrap_or(tsn));
        self.receiver.schedule.now = true;
    }

    /// Packets with data can be marked; ECNE goes with each SACK.
    pub(super) fn mark_packet(&mut self, packet: &mut Packet) {
        let Some(congestion) = self.congestion() else { return };
        if packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Data(_) | Chunk::IData(_))) {
            packet.ecn = Ecn::Ect0;
        }
        if let Some(tsn) = congestion.echo
            && matches!(packet.chunks.first(), Some(Chunk::Sack(_) | Chunk::NrSack(_)))
        {
            packet.chunks.insert(1, Chunk::Ecne(EcnEcho { tsn }));
        }
    }

    /// A packet of ours was marked: its path's window is cut as for a loss, once a window of data.
    //= rfc4960#appendix-A
    pub(super) fn ecne(&mut self, echo: EcnEcho, came: PacketOrigin, now: Time) {
        let outstanding = &self.sender.outstanding;
        let (highest, point) = (outstanding.highest(), outstanding.point());
        let path: PathId = outstanding.get(echo.tsn).map_or(came.path, |sent| sent.path);
        let Some(congestion) = self.congestion().filter(|_| !echo.tsn.after(highest)) else { return };
        if congestion.cut.is_none_or(|cut| echo.tsn.after(cut)) {
            congestion.cut = Some(highest);
            let (_, around, _) = self.sending(now);
            around.paths.cut(path, Loss::Missing, now, around.notes);
        }
        let Some(congestion) = self.congestion() else { return };
        let same = |(tsn, sent): (Tsn, Tsn)| !echo.tsn.after(tsn) && !point.after(sent);
        if congestion.answered.is_some_and(same) {
            return;
        }
        congestion.answer = Some(echo);
    }

    /// A packet was taken in: if there is no data to send, CWR does not wait for any.
    pub(crate) fn answer_if_idle(&mut self, path: PathId) {
        if self.user_bytes() == 0 {
            self.answer_echo(path);
        }
    }

    /// CWR in a packet without data.
    fn answer_echo(&mut self, path: PathId) {
        if let Some(answer) = self.take_answer().filter(|_| self.may_reply()) {
            self.control.push_back((self.open_path(path), Chunk::Cwr(answer), Purpose::Sack));
        }
    }

    /// CWR goes with the next data, in a packet of at most `limit` bytes of chunks; behind it, if that is full.
    //= rfc4960#appendix-A
    pub(crate) fn bundle_answer(&mut self, path: PathId, limit: u32, packet: &mut Packet) {
        let used: usize = packet.chunks.iter().map(Chunk::padded_size).sum();
        let Some(answer) = self.congestion().and_then(|congestion| congestion.answer) else { return };
        if used + answer.size() > limit as usize {
            return self.answer_echo(path);
        }
        packet.chunks.insert(0, Chunk::Cwr(answer));
        self.take_answer();
    }

    /// The CWR that leaves now.
    fn take_answer(&mut self) -> Option<EcnEcho> {
        let highest = self.sender.outstanding.highest();
        let congestion = self.congestion()?;
        let answer = congestion.answer.take()?;
        congestion.answered = Some((answer.tsn, highest));
        Some(answer)
    }

    /// The sender has cut its window.
    pub(super) fn cwr(&mut self, answer: EcnEcho) {
        if let Some(congestion) = self.congestion() {
            congestion.echo = congestion.echo.filter(|echo| echo.after(answer.tsn));
        }
    }
}
