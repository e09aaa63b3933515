//! What a packet's comment says: whose it is, what for, and what let it go.

use anabranch_proto::policy::Why;
use anabranch_proto::{Limit, Purpose};

use crate::medium::wire::DropCause;
use crate::observe::trace::{Origin, PacketView};

/// "flow download, path wifi: new data, within cwnd, RFC 9260 section 6.1". Only SCTP gives its reason.
pub(super) fn comment(flow: &str, packet: &PacketView<'_>) -> String {
    let Some(Origin { path, reason, .. }) = &packet.origin else { return format!("flow {flow}") };
    let path = path.map(|path| format!(", path {path}")).unwrap_or_default();
    if packet.sctp().is_none() {
        return format!("flow {flow}{path}");
    }
    let (document, section) = (reason.purpose.document(), reason.purpose.section());
    let (purpose, limit) = (purpose(reason.purpose), limit(reason.limit));
    format!("flow {flow}{path}: {purpose}, {limit}, {document} section {section}")
}

/// The same of a packet that was dropped, when it was offered or when it had `left`.
pub(super) fn dropped(cause: DropCause, left: bool, comment: &str) -> String {
    let cause = match (cause, left) {
        (DropCause::Queue, _) => "queue full",
        (DropCause::Loss, _) => "lost on the link",
        (DropCause::Down, false) => "link down",
        (DropCause::Down, true) => "link went down meanwhile",
        (DropCause::Rts, _) => "no CTS to the last RTS",
        (DropCause::Data, _) => "no ACK to the last frame",
        (DropCause::Size, _) => "larger than the link's MTU",
    };
    format!("dropped: {cause}; {comment}")
}

fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Data(Why::New) => "new data",
        Purpose::Data(Why::Missing) => "retransmission after missing reports",
        Purpose::Data(Why::Timeout) => "retransmission after T3-rtx",
        Purpose::Data(Why::WindowProbe) => "window probe",
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

fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Control => "control",
        Limit::Window => "within cwnd",
        Limit::Granted => "granted whatever the cwnd",
    }
}
