//! What an end of an association sends, chunk by chunk, in a form in which two ends can be compared.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use anabranch_proto::policy::Why;
use anabranch_proto::wire::chunk::{GapBlock, Sack};
use anabranch_proto::wire::{Chunk, Packet};
use anabranch_proto::{Purpose, Reason, Time, Tsn};
use serde::Serialize;
use smallvec::SmallVec;

use crate::capture;

/// What is compared separately. A difference in one does not hide a difference in another.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// INIT, INIT ACK, COOKIE ECHO, COOKIE ACK.
    Setup,
    /// Which TSNs are sent, where to, in which order, and when.
    Data,
    /// What SACKs report, and when they are sent.
    Acknowledgement,
    /// The a_rwnd of SACKs.
    Window,
    /// HEARTBEAT ACK, SHUTDOWN and its answers, ABORT, ERROR, ECNE, CWR.
    Control,
}

impl Subject {
    /// All, in the order of their names above.
    pub const ALL: [Subject; 5] =
        [Subject::Setup, Subject::Data, Subject::Acknowledgement, Subject::Window, Subject::Control];

    /// Whether a difference on it can only be judged while nothing unexplained differs on `other`. SHUTDOWN follows
    /// the data, and ABORT answers an acknowledgement of data that was never sent.
    pub(super) fn depends_on(self, other: Subject) -> bool {
        self == other || self == Subject::Control && other == Subject::Data
    }
}

/// A chunk that was sent.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: Time,
    /// The number of its packet in the capture.
    pub(super) number: Option<u64>,
    /// Why our endpoint sent it.
    pub(super) reason: Option<Reason>,
    /// Whether its link dropped it at once: it is captured before packets that were sent earlier and waited in the
    /// queue.
    pub(super) refused: bool,
    pub(super) what: What,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum What {
    Setup(u8),
    Data { tsn: Tsn, again: bool, to: IpAddr },
    Sack { cumulative: Tsn, gaps: SmallVec<[GapBlock; 4]>, duplicates: usize, a_rwnd: u32 },
    Control(u8),
}

/// Appends what a packet tells. HEARTBEATs leave at random times and are not compared; nor are chunks that the replay
/// does not cause (RE-CONFIG, ASCONF, FORWARD TSN).
pub(super) fn entries(
    at: Time,
    number: Option<u64>,
    packet: &Packet,
    reason: Option<Reason>,
    out: &mut Vec<Entry>,
) {
    let data = |tsn: Tsn| What::Data { tsn, again: false, to: packet.to.ip };
    for chunk in &packet.chunks {
        let what = match chunk {
            Chunk::Init(_) | Chunk::InitAck(_) | Chunk::CookieEcho(_) | Chunk::CookieAck(_) => {
                What::Setup(chunk.number())
            }
            Chunk::Data(chunk) => data(chunk.tsn),
            Chunk::IData(chunk) => data(chunk.tsn),
            Chunk::Sack(sack) => acknowledgement(sack),
            Chunk::NrSack(sack) => acknowledgement(&sack.to_sack()),
            Chunk::HeartbeatAck(_)
            | Chunk::Shutdown(_)
            | Chunk::ShutdownAck(_)
            | Chunk::ShutdownComplete(_)
            | Chunk::Abort(_)
            | Chunk::Error(_)
            | Chunk::Ecne(_)
            | Chunk::Cwr(_) => What::Control(chunk.number()),
            _ => continue,
        };
        out.push(Entry { at, number, reason, refused: false, what });
    }
}

fn acknowledgement(sack: &Sack) -> What {
    What::Sack {
        cumulative: sack.cumulative,
        gaps: sack.gaps.clone(),
        duplicates: sack.duplicates.len(),
        a_rwnd: sack.a_rwnd,
    }
}

/// Tells the retransmissions of these entries, which are in the order of their times.
pub(super) fn mark_repeated(entries: &mut [Entry]) {
    let mut seen = BTreeSet::new();
    for entry in entries {
        if let What::Data { tsn, again, .. } = &mut entry.what {
            *again = !seen.insert(tsn.0);
        }
    }
}

impl What {
    /// Whether a comparison of `subject` looks at it.
    pub(super) fn belongs_to(&self, subject: Subject) -> bool {
        match self {
            What::Setup(_) => subject == Subject::Setup,
            What::Data { .. } => subject == Subject::Data,
            What::Sack { .. } => matches!(subject, Subject::Acknowledgement | Subject::Window),
            What::Control(_) => subject == Subject::Control,
        }
    }

    /// Whether both say the same, but for a_rwnd.
    pub(super) fn same(&self, other: &What) -> bool {
        match (self, other) {
            (
                What::Sack { cumulative, gaps, duplicates, .. },
                What::Sack { cumulative: theirs, gaps: their_gaps, duplicates: their_duplicates, .. },
            ) => (cumulative, gaps, duplicates) == (theirs, their_gaps, their_duplicates),
            _ => self == other,
        }
    }

    pub(super) fn is_abort(&self) -> bool {
        *self == What::Control(6)
    }

    /// Where data was sent.
    pub(super) fn destination(&self) -> Option<IpAddr> {
        if let What::Data { to, .. } = self { Some(*to) } else { None }
    }

    /// Whether it reports a gap at a TSN that the other one acknowledges.
    pub(super) fn lacks(&self, other: &What) -> bool {
        let (What::Sack { cumulative, gaps, .. }, What::Sack { cumulative: theirs, gaps: their_gaps, .. }) =
            (self, other)
        else {
            return false;
        };
        let missing = cumulative.next();
        let offset = missing.distance_from(*theirs);
        let has = |gap: &GapBlock| (u32::from(gap.start)..=u32::from(gap.end)).contains(&offset);
        !gaps.is_empty() && (!missing.after(*theirs) || their_gaps.iter().any(has))
    }

    pub(super) fn a_rwnd(&self) -> u32 {
        if let What::Sack { a_rwnd, .. } = self { *a_rwnd } else { 0 }
    }
}

impl Entry {
    /// The document and the section that rule it.
    pub(super) fn section(&self, subject: Subject) -> String {
        let purpose = match (&self.what, self.reason) {
            (_, _) if subject == Subject::Window => return "RFC 9260 section 6.2.1".to_owned(),
            (What::Data { .. }, Some(Reason { purpose: purpose @ Purpose::Data(_), .. })) => purpose,
            (What::Data { again: false, .. }, _) => Purpose::Data(Why::New),
            (What::Data { .. }, _) => return "RFC 9260 sections 6.3.3 and 7.2.4".to_owned(),
            (What::Sack { .. }, _) => Purpose::Sack,
            (What::Setup(_), _) => Purpose::Setup,
            (What::Control(5), _) => Purpose::Heartbeat,
            (What::Control(6), _) => Purpose::Abort,
            (What::Control(9), _) => Purpose::Error,
            (What::Control(12 | 13), _) => return "RFC 4960 appendix A".to_owned(),
            (What::Control(_), _) => Purpose::Shutdown,
        };
        format!("{} section {}", purpose.document(), purpose.section())
    }
}

/// "DATA 17 again to 10.0.0.2", "SACK 12 gaps 14-15, a_rwnd 65536".
impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Setup(number) | What::Control(number) => f.write_str(&capture::name(*number)),
            What::Data { tsn, again, to } => {
                write!(f, "DATA {}{} to {to}", tsn.0, if *again { " again" } else { "" })
            }
            What::Sack { cumulative, gaps, duplicates, a_rwnd } => {
                write!(f, "SACK {}", cumulative.0)?;
                let tsn = |offset: u16| cumulative.plus(u32::from(offset)).0;
                let gaps: Vec<String> =
                    gaps.iter().map(|gap| format!("{}-{}", tsn(gap.start), tsn(gap.end))).collect();
                if !gaps.is_empty() {
                    write!(f, ", gaps {}", gaps.join(" "))?;
                }
                if *duplicates > 0 {
                    write!(f, ", {duplicates} duplicates")?;
                }
                write!(f, ", a_rwnd {a_rwnd}")
            }
        }
    }
}
