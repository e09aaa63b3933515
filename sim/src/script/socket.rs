//! The calls of a script: sockets as a thin layer over the endpoint's own calls.

use std::collections::{BTreeMap, VecDeque};

use anabranch_proto::wire::Address;
use anabranch_proto::{
    AssociationId, Config, Endpoint, Event, LostReason, Message, Refused, Reliability, SendError, State,
};
use bytes::Bytes;

use super::ast::{Call, Expr};
use super::options::PeerAddress;
use super::setup::PORT;
use super::sockopt::{self, Also, number, show};
use super::view::ip;
use super::world::World;

/// What a call returned.
pub(super) struct Returned {
    pub(super) value: i128,
    /// Set if the value is -1.
    pub(super) errno: Option<&'static str>,
}

/// Why a call returned nothing.
pub(super) enum CallFault {
    /// The script fails here.
    Failed(String),
    /// There is no such call here.
    Unsupported(String),
    /// The script cannot mean it.
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

/// All handles, and what is known of the associations behind them.
pub(super) struct Sockets {
    handles: BTreeMap<i128, Handle>,
    associations: BTreeMap<AssociationId, Ends>,
    /// Established, and not accepted yet.
    backlog: VecDeque<AssociationId>,
    /// Parameters of sockets that will be made.
    defaults: Config,
}

struct Handle {
    what: What,
    non_blocking: bool,
    config: Config,
    /// `close` aborts.
    linger: bool,
    bound: bool,
    /// How long messages are worth sending.
    reliability: Reliability,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum What {
    Fresh,
    Listening,
    Association(AssociationId),
}

/// What has happened to an association.
#[derive(Default)]
struct Ends {
    up: bool,
    /// The peer will send no more, or it is over.
    ended: bool,
    error: Option<&'static str>,
    /// What a read call left of a message.
    rest: Bytes,
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

    /// Notes what the endpoint says of an association.
    pub(super) fn take(&mut self, id: AssociationId, event: Event) {
        let incoming = !self.associations.contains_key(&id);
        let ends = self.associations.entry(id).or_default();
        match event {
            Event::Up => {
                ends.up = true;
                if incoming {
                    self.backlog.push_back(id);
                }
            }
            Event::Lost(reason) => {
                ends.ended = true;
                ends.error = errno(&reason, ends.up);
            }
            Event::PeerShutdown | Event::Closed => ends.ended = true,
            _ => {}
        }
    }

    /// Whether the stack is setting up an association by itself.
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

/// The error that a socket has after its association was lost.
fn errno(reason: &LostReason, up: bool) -> Option<&'static str> {
    match reason {
        LostReason::NoAnswer | LostReason::TooManyErrors => Some("ETIMEDOUT"),
        LostReason::PeerAborted(_) if up => Some("ECONNRESET"),
        LostReason::PeerAborted(_) => Some("ECONNREFUSED"),
        LostReason::ProtocolViolation => Some("ECONNABORTED"),
        LostReason::UserAborted => None,
    }
}

impl World {
    /// Makes the call.
    pub(super) fn call(&mut self, call: &Call) -> Outcome {
        let arguments = &call.arguments;
        match call.name.as_str() {
            "socket" => self.socket(&call.result),
            "bind" => self.bind(arguments),
            "listen" => self.listen(arguments),
            "connect" | "sctp_connectx" => self.connect(arguments),
            "accept" => self.accept(arguments, &call.result),
            "fcntl" => self.fcntl(arguments),
            "write" | "send" => self.write(arguments),
            "sctp_bindx" => self.bindx(arguments),
            "sctp_sendmsg" => self.send_message(arguments),
            "read" | "recv" => self.read(arguments),
            "shutdown" => self.shutdown(arguments),
            "close" => self.close(arguments),
            "setsockopt" => self.set_option(arguments),
            "getsockopt" => self.get_option(arguments),
            "abort" => self.abort(arguments),
            "heartbeat" => self.heartbeat(arguments),
            "set_primary" => self.set_primary(arguments),
            "state" => self.state(arguments, &call.result),
            "path" => self.path(arguments, &call.result),
            name => Err(CallFault::Unsupported(format!("the call {name}()"))),
        }
    }

    fn handle(&mut self, arguments: &[Expr]) -> Result<&mut Handle, CallFault> {
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
            What::Association(id) => Some(id),
            What::Fresh | What::Listening => None,
        })
    }

    /// A call that cannot return yet.
    fn would_block(&mut self, arguments: &[Expr], errno: &'static str) -> Outcome {
        match self.handle(arguments)?.non_blocking {
            true => failed(errno),
            false => Err(CallFault::Failed("it blocks".to_owned())),
        }
    }

    /// Gives a new handle the label that the script expects.
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

    fn socket(&mut self, result: &Expr) -> Outcome {
        let config = self.sockets.defaults.clone();
        let handle = Handle {
            what: What::Fresh,
            non_blocking: false,
            config,
            linger: false,
            bound: false,
            reliability: Reliability::Full,
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
        if matches!(handle.what, What::Association(_)) {
            return failed("EINVAL");
        }
        handle.what = What::Listening;
        let config = handle.config.clone();
        self.endpoint.configure(config).map_err(|error| CallFault::Wrong(error.to_string()))?;
        self.endpoint.set_listening(true);
        done(0)
    }

    fn connect(&mut self, arguments: &[Expr]) -> Outcome {
        let to = self.peers(arguments.get(1))?;
        let handle = self.handle(arguments)?;
        match handle.what {
            What::Fresh => {}
            What::Listening => return failed("EOPNOTSUPP"),
            What::Association(id) => {
                let ends = self.sockets.associations.entry(id).or_default();
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
        // What listens goes on with its own parameters.
        let _ = self.endpoint.configure(before);
        match connected {
            Err(Refused::Exists) => return failed("EADDRINUSE"),
            Err(Refused::NoPath) => return failed("EADDRNOTAVAIL"),
            Ok(id) => {
                self.sockets.associations.insert(id, Ends::default());
                self.handle(arguments)?.what = What::Association(id);
            }
        }
        self.peer_port = Some(PORT);
        self.live.connecting = true;
        self.would_block(arguments, "EINPROGRESS")
    }

    /// The peer addresses that a connect call names.
    fn peers(&self, argument: Option<&Expr>) -> Result<Vec<Address>, CallFault> {
        let named = match argument {
            None | Some(Expr::Any) => vec![self.peer[0]],
            Some(Expr::List(list)) => list.iter().map(ip).collect::<Result<_, _>>()?,
            Some(one) => vec![ip(one)?],
        };
        match named.iter().find(|ip| !self.peer.contains(ip)) {
            Some(other) => wrong(format!("{other} is no address of the peer (--peer)")),
            None => Ok(named.into_iter().map(|ip| Address { ip, udp: 0 }).collect()),
        }
    }

    fn accept(&mut self, arguments: &[Expr], result: &Expr) -> Outcome {
        let handle = self.handle(arguments)?;
        if handle.what != What::Listening {
            return failed("EINVAL");
        }
        let (non_blocking, linger, config) = (handle.non_blocking, handle.linger, handle.config.clone());
        let reliability = handle.reliability;
        let Some(id) = self.sockets.backlog.pop_front() else {
            return self.would_block(arguments, "EAGAIN");
        };
        let what = What::Association(id);
        let handle = Handle { what, non_blocking, config, linger, bound: true, reliability };
        self.label(result, handle)
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

    fn write(&mut self, arguments: &[Expr]) -> Outcome {
        self.send(arguments, Message::default())
    }

    /// sctp_sendmsg(fd, message, length, to, tolen, ppid, flags, stream, lifetime, context).
    fn send_message(&mut self, arguments: &[Expr]) -> Outcome {
        let given = |at: usize| arguments.get(at).filter(|e| **e != Expr::Any).map_or(Some(0), number);
        let (Some(ppid), Some(flags), Some(stream), Some(lifetime)) =
            (given(5), given(6), given(7), given(8))
        else {
            return wrong("ppid, flags, stream and lifetime must be numbers");
        };
        if flags & 0x200 != 0 {
            return self.abort(&arguments[..1]);
        }
        let Ok(stream) = u16::try_from(stream) else { return failed("EINVAL") };
        let reliability = match lifetime {
            0 => Reliability::Full,
            millis => Reliability::Lifetime(u32::try_from(millis).unwrap_or(u32::MAX)),
        };
        let message = Message {
            stream,
            ppid: ppid as u32,
            unordered: flags & 1 != 0,
            immediate: flags & 0x400 != 0,
            reliability,
            ..Message::default()
        };
        let sent = self.send(arguments, message)?;
        if flags & 0x100 != 0 {
            self.shutdown(&[arguments[0].clone(), Expr::Word("SHUT_WR".to_owned())])?;
        }
        Ok(sent)
    }

    /// Sends as many zeros as the third argument says; else as `message` has it.
    fn send(&mut self, arguments: &[Expr], message: Message) -> Outcome {
        let size = match arguments.get(2).and_then(number).map(usize::try_from) {
            Some(Ok(size)) if size <= 1 << 24 => size,
            _ => return wrong("the third argument must be a number of bytes"),
        };
        let Some(id) = self.association(arguments)? else { return failed("ENOTCONN") };
        if let Some(errno) = self.sockets.associations.entry(id).or_default().error.take() {
            return failed(errno);
        }
        let default = self.handle(arguments)?.reliability;
        let reliability =
            if message.reliability == Reliability::Full { default } else { message.reliability };
        let message = Message { payload: Bytes::from(vec![0; size]), reliability, ..message };
        match self.endpoint.send(self.now, id, message) {
            Ok(()) => done(size as i128),
            Err(SendError::Full(_)) => self.would_block(arguments, "EAGAIN"),
            Err(SendError::Closed(_)) => failed("EPIPE"),
            Err(SendError::Invalid(_)) => failed("EINVAL"),
        }
    }

    fn read(&mut self, arguments: &[Expr]) -> Outcome {
        let Some(most) = arguments.get(2).and_then(number).and_then(|n| usize::try_from(n).ok()) else {
            return wrong("the third argument must be a number of bytes");
        };
        let Some(id) = self.association(arguments)? else { return failed("ENOTCONN") };
        let ends = self.sockets.associations.entry(id).or_default();
        if ends.rest.is_empty()
            && let Some(delivery) = self.endpoint.read(self.now, id)
        {
            ends.rest = delivery.into_bytes();
        }
        if !ends.rest.is_empty() {
            let read = ends.rest.split_to(most.min(ends.rest.len()));
            return done(read.len() as i128);
        }
        match (ends.error.take(), ends.ended) {
            (Some(errno), _) => failed(errno),
            (None, true) => done(0),
            (None, false) => self.would_block(arguments, "EAGAIN"),
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
            What::Fresh => {}
            What::Listening => {
                let listens = |handle: &Handle| handle.what == What::Listening;
                self.endpoint.set_listening(self.sockets.handles.values().any(listens));
            }
            What::Association(id) if linger => self.endpoint.abort(self.now, id, Bytes::new()),
            What::Association(id) => self.endpoint.shutdown(self.now, id),
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
        let mut also = Also::Nothing;
        let mut config = self.config_in_force(arguments)?;
        sockopt::set(name, value, &mut config, &mut also)?;
        let handle = self.handle(arguments)?;
        match also {
            Also::Nothing => {}
            Also::Linger(on) => handle.linger = on,
            Also::Reliability(reliability) => handle.reliability = reliability,
        }
        self.reconfigured(arguments, |before| *before = config)
    }

    /// The parameters that a handle's association has, or will have.
    pub(super) fn config_in_force(&mut self, arguments: &[Expr]) -> Result<Config, CallFault> {
        let id = self.association(arguments)?;
        let now_in_force = id.and_then(|id| self.endpoint.config_of(id)).cloned();
        match now_in_force {
            Some(config) => Ok(config),
            None => Ok(self.handle(arguments)?.config.clone()),
        }
    }

    /// Changes the parameters of a handle, and of what is behind it.
    fn reconfigured(&mut self, arguments: &[Expr], change: impl FnOnce(&mut Config)) -> Outcome {
        let mut config = self.config_in_force(arguments)?;
        change(&mut config);
        if config.check().is_err() {
            return failed("EINVAL");
        }
        let id = self.association(arguments)?;
        let handle = self.handle(arguments)?;
        handle.config = config.clone();
        let listening = handle.what == What::Listening;
        let applied = match id {
            Some(id) => self.endpoint.reconfigure(self.now, id, config).map_err(|error| error.to_string()),
            None if listening => self.endpoint.configure(config).map_err(|error| error.to_string()),
            None => Ok(()),
        };
        applied.map_err(CallFault::Wrong)?;
        done(0)
    }

    fn get_option(&mut self, arguments: &[Expr]) -> Outcome {
        let (name, expected) = option(arguments)?;
        let id = self.association(arguments)?;
        match name {
            "SO_ERROR" => {
                let error = id.and_then(|id| self.sockets.associations.entry(id).or_default().error.take());
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
