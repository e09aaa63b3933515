//! The calls of this project: they show the state of an association and its paths, and do what the socket interface has
//! no call for.

use std::net::IpAddr;

use anabranch_proto::{AssociationId, PathState, PathView, State};
use bytes::Bytes;

use super::ast::Expr;
use super::socket::{CallFault, Outcome, Returned, done, failed, wrong};
use super::sockopt::{number, show};
use super::world::World;

impl World {
    /// The fields of SCTP_STATUS.
    pub(super) fn status(&self, id: AssociationId) -> Vec<(&'static str, Expr)> {
        let Some(status) = self.endpoint.status(id) else { return Vec::new() };
        let int = |n: u64| Expr::Integer(n.into());
        let mut fields = vec![
            ("sstat_state", Expr::Word(format!("SCTP_{}", state_name(status.state)))),
            ("sstat_rwnd", int(status.peer_window)),
            ("sstat_unackdata", int(status.unacknowledged as u64)),
            ("sstat_penddata", int(status.unread as u64)),
            ("sstat_instrms", int(status.inbound_streams.into())),
            ("sstat_outstrms", int(status.outbound_streams.into())),
            ("sstat_fragmentation_point", int(status.fragmentation_point.into())),
        ];
        if let Some(primary) = self.endpoint.paths(id).iter().find(|path| path.primary) {
            fields.push(("sstat_primary", Expr::Ip(primary.remote.ip)));
        }
        fields
    }

    /// Compares the fields that are written with the actual values.
    pub(super) fn same_fields<K: AsRef<str>>(&self, expected: &Expr, got: &[(K, Expr)]) -> Outcome {
        let expected = match expected {
            Expr::Any => return done(0),
            Expr::Fields(fields) => fields,
            _ => return wrong("a structure {field=value, ...} is compared"),
        };
        for (key, wanted) in expected.iter().filter(|(_, wanted)| *wanted != Expr::Any) {
            let Some((_, value)) = got.iter().find(|(name, _)| name.as_ref() == key) else {
                let names: Vec<_> = got.iter().map(|(name, _)| name.as_ref()).collect();
                return wrong(format!("there is no field `{key}`: {}", names.join(", ")));
            };
            let same = match (wanted, value) {
                // `...` matches values that a script cannot know.
                (_, Expr::Any) => true,
                (Expr::Range(low, high), Expr::Integer(n)) => (low..=high).contains(&n),
                (wanted, Expr::Ip(address)) => ip(wanted)? == *address,
                (wanted, Expr::Fields(parts)) => {
                    self.same_fields(wanted, parts)?;
                    true
                }
                (wanted, Expr::Integer(n)) => number(wanted) == Some(*n),
                _ => wanted == value,
            };
            if !same {
                return Err(CallFault::Failed(format!(
                    "expected {key}={}, got {key}={}",
                    show(wanted),
                    show(value)
                )));
            }
        }
        done(0)
    }

    /// abort(fd) or abort(fd, "reason").
    pub(super) fn abort(&mut self, arguments: &[Expr]) -> Outcome {
        let Some(id) = self.association(arguments)? else { return failed("ENOTCONN") };
        let reason = match arguments.get(1) {
            None | Some(Expr::Any) => Bytes::new(),
            Some(Expr::Text(text)) => Bytes::copy_from_slice(text.as_bytes()),
            Some(_) => return wrong("the reason is a text between quotes"),
        };
        self.endpoint.abort(self.now, id, reason);
        done(0)
    }

    /// The path to the peer address in the second argument.
    fn path_to(&mut self, arguments: &[Expr]) -> Result<(AssociationId, PathView), CallFault> {
        let Some(id) = self.association(arguments)? else { return wrong("the socket has no association") };
        let Some(address) = arguments.get(1) else { return wrong("the second argument must be an address") };
        let remote = ip(address)?;
        let path = self.endpoint.paths(id).iter().find(|path| path.remote.ip == remote);
        path.cloned()
            .map(|path| (id, path))
            .ok_or_else(|| CallFault::Failed(format!("there is no path to {remote}")))
    }

    /// heartbeat(fd, address): sends a HEARTBEAT now.
    pub(super) fn heartbeat(&mut self, arguments: &[Expr]) -> Outcome {
        let (id, path) = self.path_to(arguments)?;
        self.endpoint.heartbeat(self.now, id, path.id);
        done(0)
    }

    /// set_primary(fd, address).
    pub(super) fn set_primary(&mut self, arguments: &[Expr]) -> Outcome {
        let (id, path) = self.path_to(arguments)?;
        self.endpoint.set_primary(self.now, id, path.id);
        done(0)
    }

    /// state(fd) = NAME.
    pub(super) fn state(&mut self, arguments: &[Expr], expected: &Expr) -> Outcome {
        let Some(id) = self.association(arguments)? else { return wrong("the socket has no association") };
        let state = self.endpoint.status(id).map_or("CLOSED", |status| state_name(status.state));
        compared(expected, Expr::Word(state.to_owned()))
    }

    /// path(fd, address) = {field=value, ...}.
    pub(super) fn path(&mut self, arguments: &[Expr], expected: &Expr) -> Outcome {
        let (_, path) = self.path_to(arguments)?;
        let int = |n: u64| Expr::Integer(n.into());
        let millis = |time: std::time::Duration| Expr::Integer(time.as_millis() as i128);
        let fields = [
            ("state", Expr::Word(path_state_name(path.state).to_owned())),
            ("primary", int(path.primary.into())),
            ("local", Expr::Ip(path.local.ip)),
            ("cwnd", int(path.window)),
            ("ssthresh", int(path.ssthresh)),
            ("flight", int(path.flight)),
            ("errors", int(path.errors.into())),
            ("rto", millis(path.rto)),
            ("srtt", path.srtt.map_or(Expr::Integer(-1), millis)),
            ("pmdcs", int(path.pmdcs.into())),
        ];
        self.same_fields(expected, &fields)?;
        // The result was compared here. It is returned unchanged.
        Ok(Returned { value: 0, errno: None })
    }
}

fn compared(expected: &Expr, got: Expr) -> Outcome {
    match *expected == got || *expected == Expr::Any {
        true => done(0),
        false => Err(CallFault::Failed(format!("expected {}, got {}", show(expected), show(&got)))),
    }
}

pub(super) fn ip(expr: &Expr) -> Result<IpAddr, CallFault> {
    match expr {
        Expr::Ip(ip) => Ok(*ip),
        // In the byte order of htonl().
        Expr::Integer(n) if u32::try_from(*n).is_ok() => Ok(IpAddr::V4((*n as u32).into())),
        // A socket address. Its port is not compared.
        Expr::Fields(fields) => {
            match fields.iter().find(|(key, _)| key == "sin_addr" || key == "sin6_addr") {
                Some((_, address)) => ip(address),
                None => wrong("sin_addr is missing"),
            }
        }
        Expr::Text(text) => text.parse().map_err(|_| CallFault::Wrong(format!("`{text}` is no address"))),
        other => wrong(format!("{} is no address", show(other))),
    }
}

/// The name of a state.
fn state_name(state: State) -> &'static str {
    match state {
        State::CookieWait => "COOKIE_WAIT",
        State::CookieEchoed => "COOKIE_ECHOED",
        State::Established => "ESTABLISHED",
        State::ShutdownPending => "SHUTDOWN_PENDING",
        State::ShutdownSent => "SHUTDOWN_SENT",
        State::ShutdownReceived => "SHUTDOWN_RECEIVED",
        State::ShutdownAckSent => "SHUTDOWN_ACK_SENT",
        State::Closed => "CLOSED",
    }
}

fn path_state_name(state: PathState) -> &'static str {
    match state {
        PathState::Unconfirmed => "UNCONFIRMED",
        PathState::Active => "ACTIVE",
        PathState::PotentiallyFailed => "POTENTIALLY_FAILED",
        PathState::Inactive => "INACTIVE",
        PathState::Removed => "REMOVED",
    }
}
