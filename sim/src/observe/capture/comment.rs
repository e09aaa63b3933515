//! The comment of a packet: its flow, its purpose, and the limit that allowed it.

use std::rc::Rc;

use anabranch_proto::{Blocked, Purpose, Reason};

use crate::medium::wire::DropCause;
use crate::observe::trace::{Origin, PacketView, Wait};
use crate::observe::words;

/// Most packets have the comment of an earlier one: so many are remembered.
const REMEMBERED: usize = 64;

/// The comments of packets.
#[derive(Default, Debug)]
pub(super) struct Comments {
    /// The flow, the path, whether the packet is SCTP, the reason, and the comment.
    known: Vec<(usize, Option<String>, bool, Reason, Rc<str>)>,
}

impl Comments {
    /// The comment of a packet of the flow `name` with the number `flow`.
    pub(super) fn of(&mut self, name: &str, flow: usize, packet: &PacketView<'_>) -> Rc<str> {
        let Some(Origin { path, reason, wait: None, .. }) = packet.origin else {
            return comment(name, packet).into();
        };
        let is_sctp = packet.sctp().is_some();
        let same = |(of, on, sctp, why, _): &&(usize, Option<String>, bool, Reason, Rc<str>)| {
            (*of, *sctp, *why) == (flow, is_sctp, reason) && on.as_deref() == path
        };
        if let Some((.., comment)) = self.known.iter().find(same) {
            return comment.clone();
        }
        if self.known.len() == REMEMBERED {
            self.known.clear();
        }
        let comment: Rc<str> = comment(name, packet).into();
        self.known.push((flow, path.map(str::to_owned), is_sctp, reason, comment.clone()));
        comment
    }
}

/// "flow download, path wifi: new data, within cwnd, RFC 9260 section 6.1". Only SCTP gives a reason. If a buffer was
/// full until then, or still is, "; new data waited 0.120 s for the peer's window: path lte blocks" follows.
fn comment(flow: &str, packet: &PacketView<'_>) -> String {
    let mut comment = String::with_capacity(LENGTH);
    let mut add = |parts: &[&str]| parts.iter().for_each(|part| comment.push_str(part));
    add(&["flow ", flow]);
    let Some(Origin { path, reason, wait, .. }) = &packet.origin else { return comment };
    if let Some(path) = path {
        add(&[", path ", path]);
    }
    if packet.sctp().is_none() {
        return comment;
    }
    let (document, section) = (reason.purpose.document(), reason.purpose.section());
    let (purpose, limit) = (words::purpose(reason.purpose), words::limit(reason.limit));
    add(&[": ", purpose, ", ", limit, ", ", document, " section ", section]);
    if let (Purpose::Data(_), Some(wait)) = (reason.purpose, wait) {
        add(&[&waited(wait)]);
    }
    comment
}

/// The bytes of most comments.
const LENGTH: usize = 96;

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
