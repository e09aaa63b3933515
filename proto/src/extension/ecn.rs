//! Explicit congestion notification (RFC 4960 appendix A): a marked packet is told with each SACK until the sender says
//! that it has cut its window.

use super::Came;
use crate::association::Association;
use crate::output::Purpose;
use crate::path::PathId;
use crate::policy::Loss;
use crate::wire::chunk::EcnEcho;
use crate::wire::{Chunk, Ecn, Packet};
use crate::{Time, Tsn};

/// What is to be told of congestion, and what was done about it.
#[derive(Default)]
pub(crate) struct Congestion {
    /// The lowest TSN of a packet that came marked, until the sender has heard.
    echo: Option<Tsn>,
    /// The highest TSN that had been sent when a window was cut last: marks up to there are the same congestion.
    cut: Option<Tsn>,
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
            && matches!(packet.chunks.first(), Some(Chunk::Sack(_)))
        {
            packet.chunks.insert(1, Chunk::Ecne(EcnEcho { tsn }));
        }
    }

    /// A packet of ours was marked: its path's window is cut as for a loss, once a window of data.
    //= rfc4960#appendix-A
    pub(super) fn ecne(&mut self, echo: EcnEcho, came: Came, now: Time) {
        let outstanding = &self.sender.outstanding;
        let highest = outstanding.highest();
        let path: PathId = outstanding.get(echo.tsn).map_or(came.path, |sent| sent.path);
        let Some(congestion) = self.congestion().filter(|_| !echo.tsn.after(highest)) else { return };
        if congestion.cut.is_none_or(|cut| echo.tsn.after(cut)) {
            congestion.cut = Some(highest);
            let (_, around, _) = self.sending(now);
            around.paths.cut(path, Loss::Missing, now, around.notes);
        }
        if self.may_reply() {
            self.control.push_back((self.open_path(came.path), Chunk::Cwr(echo), Purpose::Sack));
        }
    }

    /// The sender has cut its window.
    pub(super) fn cwr(&mut self, answer: EcnEcho) {
        if let Some(congestion) = self.congestion() {
            congestion.echo = congestion.echo.filter(|echo| echo.after(answer.tsn));
        }
    }
}
