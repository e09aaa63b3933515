//! The calls that send and receive messages, and what goes and comes with a message (RFC 6458 §5.3, §9).

use anabranch_proto::{Message, Reliability, SendError};
use bytes::Bytes;

use super::ast::Expr;
use super::notice::{Notice, partial_delivery_aborted};
use super::options::{self, Got};
use super::socket::{CallFault, Outcome, Returned, done, failed, wrong};
use super::sockopt::{Fields, number, show};
use super::view::ip;
use super::world::World;

/// Flags of a message to send.
const UNORDERED: i128 = 1;
const EOF: i128 = 0x100;
const ABORT: i128 = 0x200;
const SACK_IMMEDIATELY: i128 = 0x400;
/// Flags of what was received.
const MSG_EOR: i128 = 0x80;
const MSG_NOTIFICATION: i128 = 0x8000;

/// The longest message that a script can send.
const LONGEST: usize = 1 << 24;

/// What a call says of the message that it sends.
#[derive(Default)]
struct Order {
    stream: i128,
    ppid: i128,
    flags: i128,
    reliability: Reliability,
}

/// What waits at the front of a socket, read in part or not at all.
pub(super) struct Waiting {
    /// Bytes that were not read.
    left: usize,
    /// Whether the last of these bytes is the last of the message.
    complete: bool,
    what: What,
}

enum What {
    Message { stream: u16, ppid: u32, unordered: bool },
    Notice(Notice),
}

impl Waiting {
    pub(super) fn notice(notice: Notice) -> Self {
        Waiting { left: notice.length, complete: true, what: What::Notice(notice) }
    }
}

/// What one call read.
struct Received<'w> {
    length: usize,
    flags: i128,
    what: &'w What,
}

impl World {
    /// write(fd, ..., length), send(fd, ..., length, flags).
    pub(super) fn write(&mut self, arguments: &[Expr]) -> Outcome {
        self.give(arguments, length(arguments.get(2))?, &Order::default())
    }

    /// sctp_sendmsg(fd, message, length, to, tolen, ppid, flags, stream, lifetime, context).
    pub(super) fn sctp_sendmsg(&mut self, arguments: &[Expr]) -> Outcome {
        self.destination(arguments, arguments.get(3))?;
        let given = |at: usize| arguments.get(at).filter(|e| **e != Expr::Any).map_or(Some(0), number);
        let (Some(ppid), Some(flags), Some(stream), Some(life)) = (given(5), given(6), given(7), given(8))
        else {
            return wrong("ppid, flags, stream and lifetime must be numbers");
        };
        let order = Order { stream, ppid, flags, reliability: lifetime(life) };
        self.give(arguments, length(arguments.get(2))?, &order)
    }

    /// sctp_send(fd, message, length, info, flags).
    pub(super) fn sctp_send(&mut self, arguments: &[Expr]) -> Outcome {
        let order = sndrcvinfo(arguments.get(3))?;
        self.give(arguments, length(arguments.get(2))?, &order)
    }

    /// sctp_sendx(fd, message, length, addresses, count, info, flags).
    pub(super) fn sctp_sendx(&mut self, arguments: &[Expr]) -> Outcome {
        self.destination(arguments, arguments.get(3))?;
        let order = sndrcvinfo(arguments.get(5))?;
        self.give(arguments, length(arguments.get(2))?, &order)
    }

    /// sctp_sendv(fd, iov, count, addresses, count, info, size, type, flags).
    pub(super) fn sctp_sendv(&mut self, arguments: &[Expr]) -> Outcome {
        self.destination(arguments, arguments.get(3))?;
        let mut order = Order::default();
        match (arguments.get(7), arguments.get(5)) {
            (Some(Expr::Word(kind)), _) if kind == "SCTP_SENDV_NOINFO" => {}
            (Some(Expr::Word(kind)), Some(info)) if kind == "SCTP_SENDV_SPA" => order.all(info)?,
            (Some(Expr::Word(kind)), Some(info)) => match kind.strip_prefix("SCTP_SENDV_") {
                Some(kind) => order.take(&format!("SCTP_{kind}"), info)?,
                None => return wrong(format!("{kind} is no type of info")),
            },
            _ => {
                return wrong(
                    "the arguments are (fd, iov, count, addresses, count, info, size, type, flags)",
                );
            }
        }
        self.give(arguments, gathered(arguments.get(1))?, &order)
    }

    /// sendmsg(fd, {msg_name, msg_iov, msg_control, msg_flags}, flags).
    pub(super) fn sendmsg(&mut self, arguments: &[Expr]) -> Outcome {
        let header = header(arguments.get(1))?;
        self.destination(arguments, header.expr("msg_name"))?;
        let mut order = Order::default();
        for item in controls(&header)? {
            let control = Fields::of("a control message", item, &CONTROL)?;
            match (control.expr("cmsg_type"), control.expr("cmsg_data")) {
                (Some(Expr::Word(kind)), Some(data)) => order.take(kind, data)?,
                _ => return wrong("a control message has cmsg_type and cmsg_data"),
            }
        }
        self.give(arguments, gathered(header.expr("msg_iov"))?, &order)
    }

    /// A message goes where the association's primary path leads, whatever the call names.
    fn destination(&mut self, arguments: &[Expr], named: Option<&Expr>) -> Result<(), CallFault> {
        let named = match named {
            None | Some(Expr::Any) => return Ok(()),
            Some(Expr::Word(word)) if word == "NULL" => return Ok(()),
            Some(Expr::List(list)) => list.iter().map(ip).collect::<Result<Vec<_>, _>>()?,
            Some(one) => vec![ip(one)?],
        };
        let id = self.association(arguments)?;
        let paths = id.map_or(&[][..], |id| self.endpoint.paths(id));
        let primary = paths.iter().find(|path| path.primary).map(|path| path.remote.ip);
        match named.iter().all(|ip| Some(*ip) == primary) {
            true => Ok(()),
            false => Err(CallFault::Unsupported("a message to another address than the primary".to_owned())),
        }
    }

    /// Sends so many zeros.
    fn give(&mut self, arguments: &[Expr], size: usize, order: &Order) -> Outcome {
        if order.flags & ABORT != 0 {
            return self.abort(&arguments[..1]);
        }
        let Ok(stream) = u16::try_from(order.stream) else { return failed("EINVAL") };
        let Some(id) = self.association(arguments)? else { return failed("ENOTCONN") };
        if let Some(errno) = self.sockets.ends(id).error.take() {
            return failed(errno);
        }
        let default = self.handle(arguments)?.reliability;
        let message = Message {
            stream,
            ppid: order.ppid as u32,
            unordered: order.flags & UNORDERED != 0,
            immediate: order.flags & SACK_IMMEDIATELY != 0,
            payload: Bytes::from(vec![0; size]),
            reliability: if order.reliability == Reliability::Full { default } else { order.reliability },
        };
        let sent = match self.endpoint.send(self.now, id, message) {
            Ok(()) => done(size as i128),
            Err(SendError::Full(_)) => self.would_block(arguments, "EAGAIN"),
            Err(SendError::Closed(_)) => failed("EPIPE"),
            Err(SendError::Invalid(_)) => failed("EINVAL"),
        };
        if order.flags & EOF != 0 {
            self.endpoint.shutdown(self.now, id);
        }
        sent
    }

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

    /// Reads at most so many bytes of what is next, and lets `compare` look at it.
    fn receive(
        &mut self,
        arguments: &[Expr],
        most: usize,
        compare: impl FnOnce(&World, &Received<'_>) -> Result<(), CallFault>,
    ) -> Outcome {
        let Some(id) = self.association(arguments)? else { return failed("ENOTCONN") };
        while self.sockets.ends(id).waiting.is_empty() {
            let Some(delivery) = self.endpoint.read(self.now, id) else { break };
            let waiting = if delivery.abandoned {
                let notice = partial_delivery_aborted(delivery.stream);
                if !self.sockets.wants(id, notice.name) {
                    continue;
                }
                Waiting::notice(notice)
            } else {
                let what = What::Message {
                    stream: delivery.stream,
                    ppid: delivery.ppid,
                    unordered: delivery.unordered,
                };
                Waiting { left: delivery.len(), complete: delivery.complete, what }
            };
            self.sockets.ends(id).waiting.push_back(waiting);
        }
        let ends = self.sockets.ends(id);
        let Some(mut waiting) = ends.waiting.pop_front() else {
            return match (ends.error.take(), ends.ended) {
                (Some(errno), _) => failed(errno),
                (None, true) => done(0),
                (None, false) => self.would_block(arguments, "EAGAIN"),
            };
        };
        let length = most.min(waiting.left);
        waiting.left -= length;
        let end = if waiting.left == 0 && waiting.complete { MSG_EOR } else { 0 };
        let kind = if matches!(waiting.what, What::Notice(_)) { MSG_NOTIFICATION } else { 0 };
        compare(self, &Received { length, flags: end | kind, what: &waiting.what })?;
        if waiting.left > 0 {
            self.sockets.ends(id).waiting.push_front(waiting);
        }
        Ok(Returned { value: length as i128, errno: None })
    }

    /// What a notification says, as the first buffer of `iov` has it.
    fn compare_buffer(&self, iov: Option<&Expr>, received: &Received<'_>) -> Result<(), CallFault> {
        let Some(Expr::List(list)) = iov else { return Ok(()) };
        let base = list.first().and_then(|one| match one {
            Expr::Fields(fields) => fields.iter().find(|(key, _)| key == "iov_base").map(|(_, base)| base),
            _ => None,
        });
        match (base, received.what) {
            (None | Some(Expr::Any), _) => Ok(()),
            (Some(base), What::Notice(notice)) => self.same_fields(base, &notice.fields).map(drop),
            (Some(base), What::Message { .. }) => {
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
    /// The fields of SCTP_RCVINFO: of a message, not of a notification.
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
            What::Message { stream, ppid, unordered } => {
                Some(((*stream).into(), (*ppid).into(), if *unordered { UNORDERED } else { 0 }))
            }
            What::Notice(_) => None,
        }
    }
}

/// Fields that are numbers, and the association's id, which is not compared.
fn about(named: &[(&'static str, i128)], id: &'static str) -> Got {
    let numbers = named.iter().map(|(key, n)| (*key, Expr::Integer(*n)));
    numbers.chain([(id, Expr::Any)]).collect()
}

/// The core does not say which chunks a message came in.
fn refuse_sequence_numbers(info: &Expr) -> Result<(), CallFault> {
    let Expr::Fields(fields) = info else { return Ok(()) };
    let unknown = ["rcv_ssn", "rcv_tsn", "rcv_cumtsn", "sinfo_ssn", "sinfo_tsn", "sinfo_cumtsn"];
    match fields.iter().find(|(key, value)| unknown.contains(&key.as_str()) && *value != Expr::Any) {
        Some((key, _)) => Err(CallFault::Unsupported(format!("{key} of a message that was read"))),
        None => Ok(()),
    }
}

impl Order {
    /// Takes what a control message of this type says.
    fn take(&mut self, kind: &str, data: &Expr) -> Result<(), CallFault> {
        match kind {
            "SCTP_SNDINFO" => {
                let known = ["snd_sid", "snd_flags", "snd_ppid", "snd_context", "snd_assoc_id"];
                let info = Fields::of(kind, data, &known)?;
                self.stream = info.number("snd_sid")?;
                self.flags = info.number("snd_flags")?;
                self.ppid = info.number("snd_ppid")?;
            }
            "SCTP_SNDRCV" => *self = sndrcvinfo(Some(data))?,
            "SCTP_PRINFO" => self.reliability = options::reliability(data)?,
            kind => return Err(CallFault::Unsupported(format!("{kind} with a message"))),
        }
        Ok(())
    }

    /// SCTP_SENDV_SPA: what of it `sendv_flags` calls valid.
    fn all(&mut self, info: &Expr) -> Result<(), CallFault> {
        let known = ["sendv_flags", "sendv_sndinfo", "sendv_prinfo", "sendv_authinfo"];
        let parts = Fields::of("SCTP_SENDV_SPA", info, &known)?;
        let valid = parts.number("sendv_flags")?;
        for (flag, key, kind) in
            [(1, known[1], "SCTP_SNDINFO"), (2, known[2], "SCTP_PRINFO"), (4, known[3], "SCTP_AUTHINFO")]
        {
            match parts.expr(key) {
                Some(part) if valid & flag != 0 => self.take(kind, part)?,
                None if valid & flag != 0 => return wrong(format!("{key} is missing")),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The structure sctp_sndrcvinfo.
fn sndrcvinfo(info: Option<&Expr>) -> Result<Order, CallFault> {
    let Some(info) = info.filter(|info| **info != Expr::Any) else { return Ok(Order::default()) };
    let known = [
        "sinfo_stream",
        "sinfo_ssn",
        "sinfo_flags",
        "sinfo_ppid",
        "sinfo_context",
        "sinfo_timetolive",
        "sinfo_tsn",
        "sinfo_cumtsn",
        "sinfo_assoc_id",
    ];
    let fields = Fields::of("SCTP_SNDRCV", info, &known)?;
    Ok(Order {
        stream: fields.number("sinfo_stream")?,
        flags: fields.number("sinfo_flags")?,
        ppid: fields.number("sinfo_ppid")?,
        reliability: lifetime(fields.number("sinfo_timetolive")?),
    })
}

/// Milliseconds; none: for ever.
fn lifetime(millis: i128) -> Reliability {
    match millis {
        0 => Reliability::Full,
        millis => Reliability::Lifetime(u32::try_from(millis).unwrap_or(u32::MAX)),
    }
}

const CONTROL: [&str; 4] = ["cmsg_len", "cmsg_level", "cmsg_type", "cmsg_data"];

fn header(expr: Option<&Expr>) -> Result<Fields<'_>, CallFault> {
    let known =
        ["msg_name", "msg_namelen", "msg_iov", "msg_iovlen", "msg_control", "msg_controllen", "msg_flags"];
    Fields::of("the second argument", expr.unwrap_or(&Expr::Any), &known)
}

fn controls<'e>(header: &Fields<'e>) -> Result<&'e [Expr], CallFault> {
    match header.expr("msg_control") {
        None => Ok(&[]),
        Some(Expr::List(list)) => Ok(list),
        Some(other) => wrong(format!("msg_control takes a list, not {}", show(other))),
    }
}

/// Bytes of all buffers: `{iov_base=..., iov_len=500}` or `{..., 500}`.
fn gathered(iov: Option<&Expr>) -> Result<usize, CallFault> {
    let Some(Expr::List(list)) = iov else { return wrong("buffers are a list [{..., LENGTH}]") };
    let mut sum: usize = 0;
    for buffer in list {
        let size = match buffer {
            Expr::Fields(fields) => fields.iter().rfind(|(key, _)| key == "iov_len" || key.is_empty()),
            _ => None,
        };
        sum = sum.saturating_add(length(size.map(|(_, size)| size))?);
    }
    length(Some(&Expr::Integer(sum as i128)))
}

fn length(expr: Option<&Expr>) -> Result<usize, CallFault> {
    match expr.and_then(number).map(usize::try_from) {
        Some(Ok(size)) if size <= LONGEST => Ok(size),
        _ => wrong(format!("a length is a number of bytes, at most {LONGEST}")),
    }
}

/// A value that a call writes is in brackets, or is not.
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
