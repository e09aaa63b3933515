//! What a packet's comment says: whose it is, what for, and what let it go.

use crate::medium::wire::DropCause;
use crate::observe::trace::{Origin, PacketView};
use crate::observe::words;

/// "flow download, path wifi: new data, within cwnd, RFC 9260 section 6.1". Only SCTP gives its reason.
pub(super) fn comment(flow: &str, packet: &PacketView<'_>) -> String {
    let Some(Origin { path, reason, .. }) = &packet.origin else { return format!("flow {flow}") };
    let path = path.map(|path| format!(", path {path}")).unwrap_or_default();
    if packet.sctp().is_none() {
        return format!("flow {flow}{path}");
    }
    let (document, section) = (reason.purpose.document(), reason.purpose.section());
    let (purpose, limit) = (words::purpose(reason.purpose), words::limit(reason.limit));
    format!("flow {flow}{path}: {purpose}, {limit}, {document} section {section}")
}

/// The same of a packet that was dropped, when it was offered or when it had `left`.
pub(super) fn dropped(cause: DropCause, left: bool, comment: &str) -> String {
    let cause = words::drop_cause(cause, left);
    format!("dropped: {cause}; {comment}")
}
