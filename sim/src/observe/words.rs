//! Terms for captures and explanations.

use anabranch_proto::policy::Why;
use anabranch_proto::{Blocked, Limit, PathState, Purpose};

use crate::medium::wire::DropCause;

/// The purpose of a packet.
pub fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Data(why) => data(why),
        Purpose::Sack => "acknowledgement",
        Purpose::Forward => "data given up",
        Purpose::Streams => "streams reset or added",
        Purpose::Addresses => "addresses changed",
        Purpose::Setup => "setup",
        Purpose::Heartbeat => "heartbeat",
        Purpose::Shutdown => "shutdown",
        Purpose::Abort => "abort",
        Purpose::Error => "error report",
    }
}

/// The reason why user data is sent.
pub fn data(why: Why) -> &'static str {
    match why {
        Why::New => "new data",
        Why::Missing => "retransmission after missing reports",
        Why::Timeout => "retransmission after T3-rtx",
        Why::WindowProbe => "window probe",
        Why::TailProbe => "tail loss probe",
        Why::Reinjected => "copy of a chunk in flight on another path",
    }
}

/// The limit that allowed a packet.
pub fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Control => "control",
        Limit::Window => "within cwnd",
        Limit::Granted => "one packet regardless of cwnd",
    }
}

/// The cause of a drop, either when the packet was offered or after it had `left`.
pub fn drop_cause(cause: DropCause, left: bool) -> &'static str {
    match (cause, left) {
        (DropCause::Queue, _) => "queue full",
        (DropCause::Early, _) => "by the queue's management",
        (DropCause::Loss, _) => "lost on the link",
        (DropCause::Down, false) => "link down",
        (DropCause::Down, true) => "link went down meanwhile",
        (DropCause::Rts, _) => "no CTS to the last RTS",
        (DropCause::Data, _) => "no ACK to the last frame",
        (DropCause::Size, _) => "larger than the link's MTU",
    }
}

/// What data waits for.
pub fn blocked(by: Option<Blocked>) -> &'static str {
    match by {
        Some(Blocked::PeerWindow) => "data waits for the peer's window",
        Some(Blocked::SendBuffer) => "data waits for room in the send buffer",
        Some(Blocked::Window) => "data waits for a congestion window",
        Some(Blocked::Turn) => "data waits for its turn",
        None => "no data waits",
    }
}

/// The state of a path.
pub fn path_state(state: PathState) -> &'static str {
    match state {
        PathState::Unconfirmed => "unconfirmed",
        PathState::Active => "active",
        PathState::PotentiallyFailed => "potentially failed",
        PathState::Inactive => "inactive",
        PathState::Removed => "removed",
    }
}
