//! The socket calls of a script: a thin layer over the endpoint's own calls.

use std::collections::{BTreeMap, VecDeque};

use anabranch_proto::wire::Address;
use anabranch_proto::{AssociationId, Config, Endpoint, Event, LostReason, Refused, Reliability, State};
use bytes::Bytes;

use super::ast::{Call, Expr};
use super::names::did_you_mean;
use super::notice::{Events, Notice, Streams};
use super::options::PeerAddress;
use super::receiving::Waiting;
use super::setup::PORT;
use super::sockopt::{self, OptionEffect, number, show};
use super::view::ip;
use super::world::World;

/// The result of a call.
pub(super) struct Returned {
    pub(super) value: i128,
    /// Set if the value is −1.
    pub(super) errno: Option<&'static str>,
}

/// Why a call has no result.
pub(super) enum CallFault {
    /// The script fails here.
    Failed(String),
    /// The runner does not have this call.
    Unsupported(String),
    /// The call is invalid.
    Wrong(String),
}

pub(super) type Outcome = Result<Returned, CallFault>;

pub(super) fn done(value: impl Into<i128>) -> Outcome {
    Ok(Returned { value: value.into(), errno: None })
}

pub(super) fn failed(errno: &'static str) -> Outcome {
    Ok(Returned { value: -1, errno: Some(errno) })
}

pub(super) fn wrong<T>(why: impl Into<String>) -> Result<T, CallFault> {
    Err(CallFault::Wrong(why.into()))
}

/// All handles, and the state of their associations.
pub(super) struct Sockets {
    handles: BTreeMap<i128, Handle>,
    associations: BTreeMap<AssociationId, Ends>,
    /// Associations that were established and not yet accepted.
    backlog: VecDeque<AssociationId>,
    /// Parameters of new sockets.
    defaults: Config,
}

#[derive(Clone)]
pub(super) struct Handle {
    what: SocketState,
    non_blocking: bool,
    config: Config,
    /// Whether `close` aborts.
    linger: bool,
    bound: bool,
    /// The reliability of messages.
    pub(super) reliability: Reliability,
    /// The notifications to which it has subscribed.
    pub(super) events: Events,
    /// SCTP_RECVRCVINFO: whether receiving calls return information about the message.
    pub(super) receive_info: bool,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum SocketState {
    Fresh,
    Listening,
    Association(AssociationId),
}

/// The events of an association so far.
#[derive(Default)]
pub(super) struct Ends {
    up: bool,
    /// The peer will send no more, or the association has ended.
    pub(super) ended: bool,
    pub(super) error: Option<&'static str>,
    /// Notifications, and the rest of a partly read message. They are read before other messages.
    pub(super) waiting: VecDeque<Waiting>,
    /// The numbers of streams at the last event.
    pub(super) streams: Streams,
}

impl Sockets {
    pub(super) fn new(defaults: Config) -> Self {
        Sockets {
            handles: BTreeMap::new(),
            associations: BTreeMap::new(),
            backlog: VecDeque::new(),
            defaults,
        }
    }

    pub(super) fn sysctl(&mut self, name: &str, value: u64) {
        sockopt::sysctl(name, value, &mut self.defaults);
    }

    /// Records an event of an association.
    pub(super) fn take(&mut self, id: AssociationId, event: &Event, notice: Option<Notice>) {
        let notice = notice.filter(|notice| self.wants(id, notice.name));
        let incoming = !self.associations.contains_key(&id);
        let ends = self.ends(id);
        ends.waiting.extend(notice.map(Waiting::notice));
        match event {
            Event::Up => {
                ends.up = true;
                if incoming {
                    self.backlog.push_back(id);
                }
            }
            Event::Lost(reason) => {
                ends.ended = true;
                ends.error = errno(reason, ends.up);
            }
            Event::PeerShutdown | Event::Closed => ends.ended = true,
            _ => {}
        }
    }

    /// The record of an association.
    pub(super) fn ends(&mut self, id: AssociationId) -> &mut Ends {
        self.associations.entry(id).or_default()
    }

    /// The numbers of streams of an association at the last event.
    pub(super) fn streams(&self, id: AssociationId) -> Streams {
        self.associations.get(&id).map_or((0, 0), |ends| ends.streams)
    }

    /// Whether the socket of an association, or else the socket that will accept it, has subscribed.
    pub(super) fn wants(&self, id: AssociationId, notification: &str) -> bool {
        let own = self.handles.values().find(|handle| handle.what == SocketState::Association(id));
        let listener = || self.handles.values().find(|handle| handle.what == SocketState::Listening);
        own.or_else(listener).is_some_and(|handle| handle.events.contains(notification))
    }

    /// Whether the stack is setting up an association without a call.
    pub(super) fn setting_up(&self, endpoint: &Endpoint) -> bool {
        self.in_state(endpoint, |state| matches!(state, State::CookieWait | State::CookieEchoed))
    }

    pub(super) fn awaits_init_ack(&self, endpoint: &Endpoint) -> bool {
        self.in_state(endpoint, |state| state == State::CookieWait)
    }

    fn in_state(&self, endpoint: &Endpoint, is: impl Fn(State) -> bool) -> bool {
        self.associations.keys().any(|id| endpoint.status(*id).is_some_and(|status| is(status.state)))
    }
}

/// The error code of a socket whose association was lost.
fn errno(reason: &LostReason, up: bool) -> Option<&'static str> {
    match reason {
        LostReason::NoAnswer | LostReason::TooManyErrors => Some("ETIMEDOUT"),
        LostReason::PeerAborted(_) if up => Some("ECONNRESET"),
        LostReason::PeerAborted(_) | LostReason::Unreachable => Some("ECONNREFUSED"),
        LostReason::ProtocolViolation | LostReason::NotAuthenticated => Some("ECONNABORTED"),
        _ => None,
    }
}

type Carry = fn(&mut World, &Call) -> Outcome;

/// The calls of a script.
const CALLS: &[(&str, Carry)] = &[
    ("socket", |world, call| world.socket(&call.arguments, &call.result)),
    ("bind", |world, call| world.bind(&call.arguments)),
    ("listen", |world, call| world.listen(&call.arguments)),
    ("connect", |world, call| world.connect(&call.arguments)),
    ("sctp_connectx", |world, call| world.connect(&call.arguments)),
    ("accept", |world, call| world.accept(&call.arguments, &call.result)),
    ("fcntl", |world, call| world.fcntl(&call.arguments)),
    ("write", |world, call| world.write(&call.arguments)),
    ("send", |world, call| world.write(&call.arguments)),
    ("sctp_bindx", |world, call| world.bindx(&call.arguments)),
    ("sctp_sendmsg", |world, call| world.sctp_sendmsg(&call.arguments)),
    ("sctp_send", |world, call| world.sctp_send(&call.arguments)),
    ("sctp_sendx", |world, call| world.sctp_sendx(&call.arguments)),
    ("sctp_sendv", |world, call| world.sctp_sendv(&call.arguments)),
    ("sendmsg", |world, call| world.sendmsg(&call.arguments)),
    ("read", |world, call| world.read(&call.arguments)),
    ("recv", |world, call| world.read(&call.arguments)),
    ("sctp_recvmsg", |world, call| world.sctp_recvmsg(&call.arguments)),
    ("sctp_recvv", |world, call| world.sctp_recvv(&call.arguments)),
    ("recvmsg", |world, call| world.recvmsg(&call.arguments)),
    ("shutdown", |world, call| world.shutdown(&call.arguments)),
    ("close", |world, call| world.close(&call.arguments)),
    ("setsockopt", |world, call| world.set_option(&call.arguments)),
    ("getsockopt", |world, call| world.get_option(&call.arguments)),
    ("abort", |world, call| world.abort(&call.arguments)),
    ("heartbeat", |world, call| world.heartbeat(&call.arguments)),
    ("set_primary", |world, call| world.set_primary(&call.arguments)),
    ("state", |world, call| world.state(&call.arguments, &call.result)),
    ("path", |world, call| world.path(&call.arguments, &call.result)),
];

/// Calls that packetdrill has and this runner has not. A script with one of them is skipped.
const ELSEWHERE: &[&str] = &[
    "cap_set",
    "epoll_create",
    "epoll_ctl",
    "epoll_wait",
    "ioctl",
    "pipe",
    "poll",
    "readv",
    "recvfrom",
    "sctp_freeladdrs",
    "sctp_freepaddrs",
    "sctp_getassocid",
    "sctp_getladdrs",
    "sctp_getpaddrs",
    "sctp_opt_info",
    "sctp_peeloff",
    "sctp_peeloff_flags",
    "sendfile",
    "sendto",
    "splice",
    "writev",
];

impl World {
    /// Carries out the call.
    pub(super) fn call(&mut self, call: &Call) -> Outcome {
        let name = call.name.as_str();
        if let Some((_, carry_out)) = CALLS.iter().find(|(known, _)| *known == name) {
            return carry_out(self, call);
        }
        match ELSEWHERE.contains(&name) {
            true => Err(CallFault::Unsupported(format!("the call {name}()"))),
            false => {
                let known = CALLS.iter().map(|(known, _)| *known);
                wrong(format!("unknown call `{name}`: {}", did_you_mean(name, known)))
            }
        }
    }

    pub(super) fn handle(&mut self, arguments: &[Expr]) -> Result<&mut Handle, CallFault> {
        let Some(label) = arguments.first().and_then(number) else {
            return wrong("the first argument must be a file descriptor");
        };
        self.sockets
            .handles
            .get_mut(&label)
            .ok_or_else(|| CallFault::Wrong(format!("no socket is called {label}")))
    }

    pub(super) fn association(&mut self, arguments: &[Expr]) -> Result<Option<AssociationId>, CallFault> {
        Ok(match self.handle(arguments)?.what {
            SocketState::Association(id) => Some(id),
            SocketState::Fresh | SocketState::Listening => None,
        })
    }

    /// A call that cannot return yet.
    pub(super) fn would_block(&mut self, arguments: &[Expr], errno: &'static str) -> Outcome {
        match self.handle(arguments)?.non_blocking {
            true => failed(errno),
            false => Err(CallFault::Failed("it blocks".to_owned())),
        }
    }

    /// Gives a new handle the label that the script states.
    fn label(&mut self, result: &Expr, handle: Handle) -> Outcome {
        let next = (3..).find(|n| !self.sockets.handles.contains_key(n)).unwrap_or(3);
        let label = match result {
            Expr::Any => next,
            result => number(result).filter(|n| *n >= 0).unwrap_or(next),
        };
        if self.sockets.handles.contains_key(&label) {
            return wrong(format!("there is a socket {label} already"));
        }
        self.sockets.handles.insert(label, handle);
        done(label)
    }

    fn socket(&mut self, arguments: &[Expr], result: &Expr) -> Outcome {
        for (argument, known) in arguments.iter().skip(1).zip(["SOCK_STREAM", "IPPROTO_SCTP"]) {
            if let Expr::Word(word) = argument
                && word != known
            {
                return Err(CallFault::Unsupported(format!("a socket of {word}")));
            }
        }
        let config = self.sockets.defaults.clone();
        let handle = Handle {
            what: SocketState::Fresh,
            non_blocking: false,
            config,
            linger: false,
            bound: false,
            reliability: Reliability::Full,
            events: Events::new(),
            receive_info: false,
        };
        self.label(result, handle)
    }

    fn bind(&mut self, arguments: &[Expr]) -> Outcome {
        if arguments.get(1).is_some_and(|address| *address != Expr::Any) {
            return Err(CallFault::Unsupported("bind() to a given address".to_owned()));
        }
        let bound = &mut self.handle(arguments)?.bound;
        if std::mem::replace(bound, true) { failed("EINVAL") } else { done(0) }
    }

    fn listen(&mut self, arguments: &[Expr]) -> Outcome {
        let handle = self.handle(arguments)?;
        if matches!(handle.what, SocketState::Association(_)) {
            return failed("EINVAL");
        }
        handle.what = SocketState::Listening;
        let config = handle.config.clone();
        self.endpoint.configure(config).map_err(|error| CallFault::Wrong(error.to_string()))?;
        self.endpoint.set_listening(true);
        done(0)
    }

    fn connect(&mut self, arguments: &[Expr]) -> Outcome {
        let to = self.peers(arguments.get(1))?;
        let handle = self.handle(arguments)?;
        match handle.what {
            SocketState::Fresh => {}
            SocketState::Listening => return failed("EOPNOTSUPP"),
            SocketState::Association(id) => {
                let ends = self.sockets.ends(id);
                return match (ends.error.take(), ends.up) {
                    (Some(errno), _) => failed(errno),
                    (None, true) => failed("EISCONN"),
                    (None, false) => failed("EALREADY"),
                };
            }
        }
        let config = handle.config.clone();
        let before = self.endpoint.config().clone();
        self.endpoint.configure(config).map_err(|error| CallFault::Wrong(error.to_string()))?;
        let connected = self.endpoint.connect(self.now, PORT, &to);
        // The listening socket keeps its own parameters.
        let _ = self.endpoint.configure(before);
        match connected {
            Err(Refused::Exists) => return failed("EADDRINUSE"),
            Err(_) => return failed("EADDRNOTAVAIL"),
            Ok(id) => {
                self.sockets.ends(id);
                self.handle(arguments)?.what = SocketState::Association(id);
            }
        }
        self.peer_port = Some(PORT);
        self.live.connecting = true;
        self.would_block(arguments, "EINPROGRESS")
    }

    /// The peer addresses of a connect call.
    fn peers(&self, argument: Option<&Expr>) -> Result<Vec<Address>, CallFault> {
        let named = match argument {
            None | Some(Expr::Any) => vec![self.peer[0]],
            Some(Expr::List(list)) => list.iter().map(ip).collect::<Result<_, _>>()?,
            Some(one) => vec![ip(one)?],
        };
        match named.iter().find(|ip| !self.peer.contains(ip)) {
            Some(other) => wrong(format!("{other} is no address of the peer (--peer)")),
            None => Ok(named.into_iter().map(|ip| self.at(ip)).collect()),
        }
    }

    fn accept(&mut self, arguments: &[Expr], result: &Expr) -> Outcome {
        let handle = self.handle(arguments)?;
        if handle.what != SocketState::Listening {
            return failed("EINVAL");
        }
        let inherits = handle.clone();
        let Some(id) = self.sockets.backlog.pop_front() else {
            return self.would_block(arguments, "EAGAIN");
        };
        self.label(result, Handle { what: SocketState::Association(id), bound: true, ..inherits })
    }

    fn fcntl(&mut self, arguments: &[Expr]) -> Outcome {
        const NON_BLOCKING: i128 = 0x800;
        let flags = arguments.get(2).and_then(number);
        let handle = self.handle(arguments)?;
        match (arguments.get(1), flags) {
            (Some(Expr::Word(word)), _) if word == "F_GETFL" => {
                done(2 | if handle.non_blocking { NON_BLOCKING } else { 0 })
            }
            (Some(Expr::Word(word)), Some(flags)) if word == "F_SETFL" => {
                handle.non_blocking = flags & NON_BLOCKING != 0;
                done(0)
            }
            _ => Err(CallFault::Unsupported("this fcntl()".to_owned())),
        }
    }

    fn shutdown(&mut self, arguments: &[Expr]) -> Outcome {
        let Some(id) = self.association(arguments)? else { return failed("ENOTCONN") };
        match arguments.get(1) {
            Some(Expr::Word(how)) if how == "SHUT_WR" || how == "SHUT_RDWR" => {
                self.endpoint.shutdown(self.now, id);
                done(0)
            }
            _ => Err(CallFault::Unsupported("this shutdown()".to_owned())),
        }
    }

    fn close(&mut self, arguments: &[Expr]) -> Outcome {
        let handle = self.handle(arguments)?;
        let (what, linger) = (handle.what, handle.linger);
        if let Some(label) = arguments.first().and_then(number) {
            self.sockets.handles.remove(&label);
        }
        match what {
            SocketState::Fresh => {}
            SocketState::Listening => {
                let listens = |handle: &Handle| handle.what == SocketState::Listening;
                self.endpoint.set_listening(self.sockets.handles.values().any(listens));
            }
            SocketState::Association(id) if linger => self.endpoint.abort(self.now, id, Bytes::new()),
            SocketState::Association(id) => self.endpoint.shutdown(self.now, id),
        }
        done(0)
    }

    fn set_option(&mut self, arguments: &[Expr]) -> Outcome {
        let (name, value) = option(arguments)?;
        if name == "SCTP_PRIMARY_ADDR" {
            return match value {
                Expr::Fields(fields) => match fields.iter().find(|(key, _)| key == "ssp_addr") {
                    Some((_, address)) => self.set_primary(&[arguments[0].clone(), address.clone()]),
                    None => wrong("ssp_addr is missing"),
                },
                _ => wrong("SCTP_PRIMARY_ADDR takes {ssp_addr=...}"),
            };
        }
        if let Some(asked) = self.request(name, arguments, value) {
            return asked;
        }
        let id = self.association(arguments)?;
        if name == "SCTP_PEER_ADDR_PARAMS" {
            let asked = PeerAddress::read(value)?;
            return match id {
                Some(id) => self.set_peer_address(id, &asked),
                None => self.reconfigured(arguments, |config| asked.apply(config)),
            };
        }
        let mut also = OptionEffect::Nothing;
        let mut config = self.config_in_force(arguments)?;
        sockopt::set(name, value, &mut config, &mut also)?;
        let handle = self.handle(arguments)?;
        match also {
            OptionEffect::Nothing => {}
            OptionEffect::Linger(on) => handle.linger = on,
            OptionEffect::Reliability(reliability) => handle.reliability = reliability,
        }
        self.reconfigured(arguments, |before| *before = config)
    }

    /// The parameters that a handle's association has or will have.
    pub(super) fn config_in_force(&mut self, arguments: &[Expr]) -> Result<Config, CallFault> {
        let id = self.association(arguments)?;
        let now_in_force = id.and_then(|id| self.endpoint.config_of(id)).cloned();
        match now_in_force {
            Some(config) => Ok(config),
            None => Ok(self.handle(arguments)?.config.clone()),
        }
    }

    /// Changes the parameters of a handle and of its association.
    fn reconfigured(&mut self, arguments: &[Expr], change: impl FnOnce(&mut Config)) -> Outcome {
        let mut config = self.config_in_force(arguments)?;
        change(&mut config);
        if config.check().is_err() {
            return failed("EINVAL");
        }
        let id = self.association(arguments)?;
        let handle = self.handle(arguments)?;
        handle.config = config.clone();
        let listening = handle.what == SocketState::Listening;
        let applied = match id {
            Some(id) => {
                self.endpoint.reconfigure(self.now, id, config.parameters).map_err(|error| error.to_string())
            }
            None if listening => self.endpoint.configure(config).map_err(|error| error.to_string()),
            None => Ok(()),
        };
        applied.map_err(CallFault::Wrong)?;
        done(0)
    }

    /// Sets SCTP_RECVRCVINFO.
    pub(super) fn receive_info(&mut self, arguments: &[Expr], value: &Expr) -> Outcome {
        let Some(on) = sockopt::one(value) else { return wrong("SCTP_RECVRCVINFO takes 0 or 1") };
        self.handle(arguments)?.receive_info = on > 0;
        done(0)
    }

    fn get_option(&mut self, arguments: &[Expr]) -> Outcome {
        let (name, expected) = option(arguments)?;
        let id = self.association(arguments)?;
        match name {
            "SO_ERROR" => {
                let error = id.and_then(|id| self.sockets.ends(id).error.take());
                let wanted = match expected {
                    Expr::List(list) => list.first().unwrap_or(&Expr::Any),
                    one => one,
                };
                let got = error.map_or(Expr::Integer(0), |errno| Expr::Word(errno.to_owned()));
                if *wanted != Expr::Any && *wanted != got {
                    return Err(CallFault::Failed(format!("expected {}, got {}", show(wanted), show(&got))));
                }
                done(0)
            }
            name => match self.read_option(name, arguments, expected)? {
                Some(got) => self.same_fields(expected, &got),
                None => failed("EINVAL"),
            },
        }
    }
}

/// The name and the value of a socket option.
fn option(arguments: &[Expr]) -> Result<(&str, &Expr), CallFault> {
    match (arguments.get(2), arguments.get(3)) {
        (Some(Expr::Word(name)), Some(value)) => Ok((name, value)),
        _ => wrong("the arguments are (fd, level, option, value, size)"),
    }
}
