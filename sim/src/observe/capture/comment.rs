//! The comment of a packet: its flow, its purpose, and the limit that allowed it.

use anabranch_proto::{Blocked, Purpose};

use crate::medium::wire::DropCause;
use crate::observe::trace::{Origin, PacketView, Wait};
use crate::observe::words;

/// "flow download, path wifi: new data, within cwnd, RFC 9260 section 6.1". Only SCTP gives a reason. If a buffer was
/// full until then, or still is, "; new data waited 0.120 s for the peer's window: path lte blocks" follows.
pub(super) fn comment(flow: &str, packet: &PacketView<'_>) -> String {
    let Some(Origin { path, reason, wait, .. }) = &packet.origin else { return format!("flow {flow}") };
    let path = path.map(|path| format!(", path {path}")).unwrap_or_default();
    if packet.sctp().is_none() {
        return format!("flow {flow}{path}");
    }
    let (document, section) = (reason.purpose.document(), reason.purpose.section());
    let (purpose, limit) = (words::purpose(reason.purpose), words::limit(reason.limit));
    let waited = match (reason.purpose, wait) {
        (Purpose::Data(_), Some(wait)) => waited(wait),
        _ => String::new(),
    };
    format!("flow {flow}{path}: {purpose}, {limit}, {document} section {section}{waited}")
}

fn waited(wait: &Wait<'_>) -> String {
    let buffer = match wait.cause {
        Blocked::PeerWindow => "the peer's window",
        Blocked::SendBuffer => "the send buffer",
        // These are no buffers, so no path is responsible.
        Blocked::Window | Blocked::Turn => return String::new(),
    };
    let Wait { path, time, .. } = wait;
    format!("; new data waited {:.3} s for {buffer}: path {path} blocks", time.as_secs_f64())
}

/// The comment of a dropped packet; it was dropped when it was offered or after it had `left`.
pub(super) fn dropped(cause: DropCause, left: bool, comment: &str) -> String {
    let cause = words::drop_cause(cause, left);
    format!("dropped: {cause}; {comment}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_proto::Duration;

    #[test]
    fn a_full_buffer_has_a_path_to_blame() {
        let text = |cause| waited(&Wait { cause, path: "lte", time: Duration::from_millis(120) });
        assert_eq!(
            text(Blocked::PeerWindow),
            "; new data waited 0.120 s for the peer's window: path lte blocks"
        );
        assert_eq!(
            text(Blocked::SendBuffer),
            "; new data waited 0.120 s for the send buffer: path lte blocks"
        );
        assert_eq!(text(Blocked::Window), "");
    }
}
