//! The calls that receive messages and notifications (RFC 6458 §9), with their ancillary data (§5.3).

use anabranch_proto::{AssociationId, Delivery};

use super::ast::Expr;
use super::message::{CONTROL, controls, gathered, header, length};
use super::notice::{Notice, partial_delivery_aborted};
use super::options::Got;
use super::socket::{CallFault, Outcome, Returned, done, failed};
use super::sockopt::{Fields, MSG_EOR, MSG_NOTIFICATION, UNORDERED, number, show};
use super::world::World;

/// The front of a socket's receive queue: unread or partly read.
pub(super) struct Waiting {
    /// The number of unread bytes.
    left: usize,
    /// Whether the last of these bytes ends the message.
    complete: bool,
    what: ReceivedItem,
}

enum ReceivedItem {
    Message { stream: u16, ppid: u32, unordered: bool },
    Notice(Notice),
}

impl Waiting {
    fn message(delivery: &Delivery) -> Self {
        let (stream, ppid, unordered) = (delivery.stream, delivery.ppid, delivery.unordered);
        let what = ReceivedItem::Message { stream, ppid, unordered };
        Waiting { left: delivery.len(), complete: delivery.complete, what }
    }

    pub(super) fn notice(notice: Notice) -> Self {
        Waiting { left: notice.length, complete: true, what: ReceivedItem::Notice(notice) }
    }
}

/// The result of one call.
struct Received<'w> {
    length: usize,
    flags: i128,
    what: &'w ReceivedItem,
}

impl World {
    /// read(fd, ..., length), recv(fd, ..., length, flags).
    pub(super) fn read(&mut self, arguments: &[Expr]) -> Outcome {
        self.receive(arguments, length(arguments.get(2))?, |_, _| Ok(()))
    }

    /// sctp_recvmsg(fd, ..., length, from, fromlen, info, flags).
    pub(super) fn sctp_recvmsg(&mut self, arguments: &[Expr]) -> Outcome {
        self.receive(arguments, length(arguments.get(2))?, |world, received| {
            world.compare_info(arguments.get(5), &received.sndrcvinfo())?;
            compare_flags(arguments.get(6), received.flags)
        })
    }

    /// sctp_recvv(fd, iov, count, from, fromlen, info, [size], [type], [flags]).
    pub(super) fn sctp_recvv(&mut self, arguments: &[Expr]) -> Outcome {
        let told = self.handle(arguments)?.receive_info;
        let given = arguments.get(5).filter(|info| **info != Expr::Word("NULL".to_owned()));
        self.receive(arguments, gathered(arguments.get(1))?, |world, received| {
            world.compare_buffer(arguments.get(1), received)?;
            let info = if told { received.info() } else { None };
            let kind = if info.is_some() { "SCTP_RECVV_RCVINFO" } else { "SCTP_RECVV_NOINFO" };
            match arguments.get(7).map(inner) {
                None | Some(Expr::Any) => {}
                Some(Expr::Word(wanted)) if wanted == kind => {}
                Some(other) => return unlike("type of info", &show(other), kind),
            }
            world.compare_info(given, &info)?;
            compare_flags(arguments.get(8), received.flags)
        })
    }

    /// recvmsg(fd, {msg_name, msg_iov, msg_control, msg_flags}, flags).
    pub(super) fn recvmsg(&mut self, arguments: &[Expr]) -> Outcome {
        let told = self.handle(arguments)?.receive_info;
        let header = header(arguments.get(1))?;
        self.receive(arguments, gathered(header.expr("msg_iov"))?, |world, received| {
            world.compare_buffer(header.expr("msg_iov"), received)?;
            let info = if told { received.info() } else { None };
            if header.expr("msg_control").is_some() {
                world.compare_controls(controls(&header)?, info)?;
            }
            compare_flags(header.expr("msg_flags"), received.flags)
        })
    }

    /// Reads at most this number of bytes, and calls `compare` with the result.
    fn receive(
        &mut self,
        arguments: &[Expr],
        most: usize,
        compare: impl FnOnce(&World, &Received<'_>) -> Result<(), CallFault>,
    ) -> Outcome {
        let Some(id) = self.association(arguments)? else { return failed("ENOTCONN") };
        let Some(mut waiting) = self.next_waiting(id) else {
            let ends = self.sockets.ends(id);
            return match (ends.error.take(), ends.ended) {
                (Some(errno), _) => failed(errno),
                (None, true) => done(0),
                (None, false) => self.would_block(arguments, "EAGAIN"),
            };
        };
        let length = most.min(waiting.left);
        waiting.left -= length;
        let end = if waiting.left == 0 && waiting.complete { MSG_EOR } else { 0 };
        let kind = if matches!(waiting.what, ReceivedItem::Notice(_)) { MSG_NOTIFICATION } else { 0 };
        compare(self, &Received { length, flags: end | kind, what: &waiting.what })?;
        if waiting.left > 0 {
            self.sockets.ends(id).waiting.push_front(waiting);
        }
        Ok(Returned { value: length as i128, errno: None })
    }

    /// Notifications and the rest of a partly read message come first, then the next message.
    fn next_waiting(&mut self, id: AssociationId) -> Option<Waiting> {
        if let Some(waiting) = self.sockets.ends(id).waiting.pop_front() {
            return Some(waiting);
        }
        loop {
            let delivery = self.endpoint.read(self.now, id)?;
            if !delivery.abandoned {
                return Some(Waiting::message(&delivery));
            }
            let notice = partial_delivery_aborted(delivery.stream);
            if self.sockets.wants(id, notice.name) {
                return Some(Waiting::notice(notice));
            }
        }
    }

    /// Compares a notification with the first buffer of `iov`.
    fn compare_buffer(&self, iov: Option<&Expr>, received: &Received<'_>) -> Result<(), CallFault> {
        let Some(Expr::List(list)) = iov else { return Ok(()) };
        let base = list.first().and_then(|one| match one {
            Expr::Fields(fields) => fields.iter().find(|(key, _)| key == "iov_base").map(|(_, base)| base),
            _ => None,
        });
        match (base, received.what) {
            (None | Some(Expr::Any), _) => Ok(()),
            (Some(base), ReceivedItem::Notice(notice)) => self.same_fields(base, &notice.fields).map(drop),
            (Some(base), ReceivedItem::Message { .. }) => {
                unlike("what was read", &show(base), &format!("{} bytes of a message", received.length))
            }
        }
    }

    fn compare_info(&self, expected: Option<&Expr>, got: &Option<Got>) -> Result<(), CallFault> {
        match (expected, got) {
            (None | Some(Expr::Any), _) => Ok(()),
            (Some(expected), Some(got)) => {
                refuse_sequence_numbers(expected)?;
                self.same_fields(expected, got).map(drop)
            }
            (Some(expected), None) => unlike("info", &show(expected), "none"),
        }
    }

    fn compare_controls(&self, expected: &[Expr], info: Option<Got>) -> Result<(), CallFault> {
        match (expected, info) {
            ([], None) => Ok(()),
            ([one], Some(info)) => {
                let control = Fields::of("a control message", one, &CONTROL)?;
                match control.expr("cmsg_type") {
                    None => {}
                    Some(Expr::Word(kind)) if kind == "SCTP_RCVINFO" => {}
                    Some(other) => return unlike("cmsg_type", &show(other), "SCTP_RCVINFO"),
                }
                self.compare_info(control.expr("cmsg_data"), &Some(info))
            }
            (expected, info) => unlike(
                "msg_control",
                &format!("{} control messages", expected.len()),
                &usize::from(info.is_some()).to_string(),
            ),
        }
    }
}

impl Received<'_> {
    /// The fields of SCTP_RCVINFO. Only messages have them.
    fn info(&self) -> Option<Got> {
        self.message().map(|(stream, ppid, flags)| {
            let named = [("rcv_sid", stream), ("rcv_flags", flags), ("rcv_ppid", ppid), ("rcv_context", 0)];
            about(&named, "rcv_assoc_id")
        })
    }

    /// The fields of SCTP_SNDRCV.
    fn sndrcvinfo(&self) -> Option<Got> {
        self.message().map(|(stream, ppid, flags)| {
            let named = [
                ("sinfo_stream", stream),
                ("sinfo_flags", flags),
                ("sinfo_ppid", ppid),
                ("sinfo_context", 0),
            ];
            about(&named, "sinfo_assoc_id")
        })
    }

    fn message(&self) -> Option<(i128, i128, i128)> {
        match self.what {
            ReceivedItem::Message { stream, ppid, unordered } => {
                Some(((*stream).into(), (*ppid).into(), if *unordered { UNORDERED } else { 0 }))
            }
            ReceivedItem::Notice(_) => None,
        }
    }
}

/// Fields with numbers, and the association's id, which is not compared.
fn about(named: &[(&'static str, i128)], id: &'static str) -> Got {
    let numbers = named.iter().map(|(key, n)| (*key, Expr::Integer(*n)));
    numbers.chain([(id, Expr::Any)]).collect()
}

/// The core does not report the TSNs of a message.
fn refuse_sequence_numbers(info: &Expr) -> Result<(), CallFault> {
    let Expr::Fields(fields) = info else { return Ok(()) };
    let unknown = ["rcv_ssn", "rcv_tsn", "rcv_cumtsn", "sinfo_ssn", "sinfo_tsn", "sinfo_cumtsn"];
    match fields.iter().find(|(key, value)| unknown.contains(&key.as_str()) && *value != Expr::Any) {
        Some((key, _)) => Err(CallFault::Unsupported(format!("{key} of a message that was read"))),
        None => Ok(()),
    }
}

/// A value that a call writes may be in brackets.
fn inner(expr: &Expr) -> &Expr {
    match expr {
        Expr::List(list) => list.first().unwrap_or(&Expr::Any),
        other => other,
    }
}

fn compare_flags(expected: Option<&Expr>, got: i128) -> Result<(), CallFault> {
    match expected.map(inner) {
        None | Some(Expr::Any) => Ok(()),
        Some(expected) if number(expected) == Some(got) => Ok(()),
        Some(expected) => {
            let names = [(MSG_EOR, "MSG_EOR"), (MSG_NOTIFICATION, "MSG_NOTIFICATION")];
            let names: Vec<_> = names.iter().filter(|(flag, _)| got & flag != 0).map(|(_, n)| *n).collect();
            let got = if names.is_empty() { "0".to_owned() } else { names.join("|") };
            unlike("flags", &show(expected), &got)
        }
    }
}

fn unlike<T>(what: &str, expected: &str, got: &str) -> Result<T, CallFault> {
    Err(CallFault::Failed(format!("{what}: expected {expected}, got {got}")))
}
