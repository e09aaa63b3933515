//! The calls that send messages (RFC 6458 §9), with their ancillary data (§5.3).

use anabranch_proto::{Message, Reliability, SendError};
use bytes::Bytes;

use super::ast::Expr;
use super::message::{CONTROL, controls, gathered, header, length};
use super::options;
use super::socket::{CallFault, Outcome, done, failed, wrong};
use super::sockopt::{ABORT, EOF, Fields, SACK_IMMEDIATELY, UNORDERED, number};
use super::view::ip;
use super::world::World;

/// The properties that a call gives to the message that it sends.
#[derive(Default)]
struct Order {
    stream: i128,
    ppid: i128,
    flags: i128,
    reliability: Reliability,
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

    /// The destination of a message: the primary path, whatever address the call names.
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

    /// Sends this number of zeros.
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
}

impl Order {
    /// Applies a control message of this type.
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

    /// SCTP_SENDV_SPA: applies the parts that `sendv_flags` declares valid.
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

/// A lifetime in milliseconds; zero means unlimited.
fn lifetime(millis: i128) -> Reliability {
    match millis {
        0 => Reliability::Full,
        millis => Reliability::Lifetime(u32::try_from(millis).unwrap_or(u32::MAX)),
    }
}
