//! An endpoint on real networks.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anabranch_proto::wire::Address;
use anabranch_proto::{Endpoint as Core, LocalAddress, LostReason, Refused};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::association::Association;
use crate::core::{AssociationState, Shared};
use crate::driver::drive;
use crate::interface::{self, Interface};
use crate::options::{Carrier, Options};
use crate::report::{Device, Traffic};
use crate::socket::Socket;
use crate::tape::{Tape, Taped};

/// One SCTP port at one or more local addresses. When it is dropped, no association begins any more, and those that
/// nobody has accepted are aborted; the others go on until they end.
pub struct Endpoint {
    shared: Arc<Shared>,
    /// The driver task, until it has ended.
    driver: Mutex<Option<JoinHandle<()>>>,
}

/// Why an endpoint could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A parameter or policy cannot be used.
    #[error(transparent)]
    Config(#[from] anabranch_proto::NewError),
    /// There is no local address to bind to.
    #[error("no local address was given")]
    NoAddress,
    /// A link-local address means another host on each link.
    #[error("{0}: link-local addresses cannot be used")]
    OfALink(IpAddr),
    /// An interface carries only packets that are too small for SCTP.
    #[error("the interface {interface} carries packets of {mtu} bytes at most, which is too little for SCTP")]
    Narrow {
        /// The name of the interface.
        interface: String,
        /// Its MTU in bytes.
        mtu: u32,
    },
    /// A socket could not be opened.
    #[error("{address}: {error}")]
    Socket {
        /// The local address.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
}

/// Why an association was not set up.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint is closed, or its runtime has ended.
    #[error("the endpoint is closed")]
    Closed,
    /// No peer can have this address: it is unspecified, a multicast or broadcast address, or the UDP port is 0.
    #[error("no peer can have the address {0}")]
    Address(SocketAddr),
    /// No peer can have the SCTP port 0 (RFC 9260 §3.1).
    #[error("no peer can have the SCTP port 0")]
    Port,
    /// It could not be initiated.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It was initiated and failed.
    #[error("{0}")]
    Lost(LostReason),
}

/// The smallest packet that an interface must carry, in bytes without the IP header.
const LEAST: u32 = 508;
/// The number of attempts to find a port that is free on all local addresses.
const TRIES: usize = 16;

impl Endpoint {
    /// Opens the sockets and starts the driver task in the runtime of the caller. When that runtime ends, so do the
    /// endpoint and its associations, and nobody is told. If a policy of your own panics, it does so in the task that
    /// called, or in the driver; the endpoint and its associations end in the same way, and the process goes on.
    ///
    /// # Panics
    /// Outside a tokio runtime, or in one without I/O and time (`enable_all`).
    pub fn bind(options: Options) -> Result<Endpoint, BindError> {
        Endpoint::taped(options, None)
    }

    /// As [`bind`](Endpoint::bind). The tape hears of everything that the core is told.
    pub fn record(options: Options, tape: Box<dyn Tape>) -> Result<Endpoint, BindError> {
        Endpoint::taped(options, Some(tape))
    }

    fn taped(mut options: Options, tape: Option<Box<dyn Tape>>) -> Result<Endpoint, BindError> {
        options.local.iter_mut().for_each(|ip| *ip = ip.to_canonical());
        let interfaces: Vec<Option<Interface>> = options.local.iter().map(|ip| interface::of(*ip)).collect();
        let sockets = open_all(&options, &interfaces)?;
        let (gso, max_per_source) = (options.gso, options.max_per_source);
        let core = core(options, tape, &interfaces, &sockets)?;
        let shared = Arc::new(Shared::new(core, sockets, &interfaces, gso, max_per_source));
        let driver = tokio::spawn(drive(Arc::clone(&shared)));
        Ok(Endpoint { shared, driver: Mutex::new(Some(driver)) })
    }

    /// Initiates an association with the SCTP port `port` of the peer at these addresses (the first is tried first),
    /// and waits until it is established. The ports of the addresses are UDP ports if the carrier is UDP. This may
    /// take minutes (Max.Init.Retransmits); limit it with [`tokio::time::timeout`]. If ICMP reports that nothing
    /// listens, it fails at once.
    ///
    /// An endpoint has one association with a peer at a time. One whose handle was dropped counts until it has ended:
    /// [`Association::close`] waits for that.
    ///
    /// Cancel-safe: if it is dropped before it is ready, the association ends and nothing of it is left.
    pub async fn connect(&self, to: &[SocketAddr], port: u16) -> Result<Association, ConnectError> {
        let raw = self.shared.sockets.iter().any(|socket| socket.address.udp == 0);
        if self.shared.is_closing() {
            return Err(ConnectError::Closed);
        }
        if port == 0 {
            return Err(ConnectError::Port);
        }
        let address =
            |to: &SocketAddr| Address { ip: to.ip().to_canonical(), udp: if raw { 0 } else { to.port() } };
        let to: Vec<Address> = to.iter().map(address).collect();
        if let Some(nobody) = to.iter().find(|to| is_nobody(to.ip) || (to.udp == 0 && !raw)) {
            return Err(ConnectError::Address(SocketAddr::new(nobody.ip, nobody.udp)));
        }
        let id = self.shared.connect(port, &to)?;
        let association = Association::of(&self.shared, id);
        match association.settled().await {
            AssociationState::Lost(reason) => Err(ConnectError::Lost(reason)),
            _ => Ok(association),
        }
    }

    /// The next association that a peer has initiated. `None`: the endpoint is closed.
    ///
    /// Cancel-safe: if it is dropped before it is ready, it has accepted none.
    pub async fn accept(&self) -> Option<Association> {
        loop {
            let waiting = self.shared.accepting.notified();
            let accepted = self.shared.lock().accept();
            if let Some((id, signals)) = accepted {
                return Some(Association::new(&self.shared, id, signals));
            }
            if self.shared.is_closing() {
                return None;
            }
            waiting.await;
        }
    }

    /// The local addresses with their UDP ports (zero without UDP), and the interface to which each is bound.
    pub fn local(&self) -> Vec<(SocketAddr, Device)> {
        let place = |socket: &Socket| {
            (SocketAddr::new(socket.address.ip, socket.address.udp), socket.open().device.clone())
        };
        self.shared.sockets.iter().map(place).collect()
    }

    /// The traffic so far.
    pub fn traffic(&self) -> Traffic {
        self.shared.lock().traffic
    }

    /// Waits until every association has ended and everything is sent. None can be initiated from now on, by peers or
    /// here, and those that nobody has accepted are aborted. It ends no other association itself, and waits for set-ups
    /// that have begun.
    ///
    /// Cancel-safe: if it is dropped, the endpoint still ends after its associations, and another call can wait for
    /// that.
    pub async fn close(&self) {
        self.shared.close();
        let mut driver = self.driver.lock().await;
        if let Some(task) = driver.as_mut() {
            // The driver task ends, or the runtime does.
            let _ = task.await;
            *driver = None;
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local", &self.local()).finish_non_exhaustive()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// Whether an address means no single host.
fn is_nobody(ip: IpAddr) -> bool {
    ip.is_unspecified() || ip.is_multicast() || matches!(ip, IpAddr::V4(v4) if v4.is_broadcast())
}

fn core(
    mut options: Options,
    mut tape: Option<Box<dyn Tape>>,
    interfaces: &[Option<Interface>],
    sockets: &[Socket],
) -> Result<Taped, BindError> {
    let config = &mut options.config;
    let local = |(socket, interface): (&Socket, &Option<Interface>)| {
        let whole = if socket.address.ip.is_ipv4() { 32 } else { 128 };
        LocalAddress { address: socket.address, prefix: interface.as_ref().map_or(whole, |i| i.prefix) }
    };
    config.addresses = sockets.iter().zip(interfaces).map(local).collect();
    if sockets.iter().any(|socket| socket.address.ip.is_ipv6()) {
        config.ip_header = 40;
    }
    for interface in interfaces.iter().flatten() {
        let mtu = interface.mtu.unwrap_or(u32::MAX);
        if mtu < config.ip_header + LEAST {
            return Err(BindError::Narrow { interface: interface.name.clone(), mtu });
        }
        config.mtu = config.mtu.min(mtu);
    }
    let mut seed = [0; 32];
    let filled = getrandom::fill(&mut seed);
    filled.expect("the system has random numbers");
    if config.port == 0 {
        config.port = 49_152 | u16::from_le_bytes([seed[0], seed[1]]) >> 2;
    }
    if let Some(tape) = &mut tape {
        tape.begin(config, &seed);
    }
    let mut core = Core::new(options.config, options.policies, seed)?;
    core.set_listening(options.listen);
    Ok(Taped::new(core, tape))
}

/// A socket for each address, all with the same port if the port may be chosen.
fn open_all(options: &Options, interfaces: &[Option<Interface>]) -> Result<Vec<Socket>, BindError> {
    if options.local.is_empty() {
        return Err(BindError::NoAddress);
    }
    let of_a_link = |ip: &&IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    if let Some(ip) = options.local.iter().find(of_a_link) {
        return Err(BindError::OfALink(*ip));
    }
    let mut result = open_on(options, interfaces, options.carrier);
    for _ in 0..TRIES {
        match &result {
            Err(BindError::Socket { error, .. })
                if error.kind() == io::ErrorKind::AddrInUse && options.carrier == Carrier::Udp(0) =>
            {
                result = open_on(options, interfaces, options.carrier);
            }
            _ => break,
        }
    }
    result
}

/// The peer assumes that all addresses have the UDP port of the first packet until it hears from each address.
fn open_on(
    options: &Options,
    interfaces: &[Option<Interface>],
    mut carrier: Carrier,
) -> Result<Vec<Socket>, BindError> {
    let mut sockets: Vec<Socket> = Vec::new();
    for (ip, interface) in options.local.iter().zip(interfaces) {
        let interface = interface.as_ref().filter(|_| options.bind_devices);
        let socket = Socket::new(*ip, carrier, interface);
        let socket = socket.map_err(|error| refused(*ip, carrier, error))?;
        if carrier == Carrier::Udp(0) {
            carrier = Carrier::Udp(socket.address.udp);
        }
        sockets.push(socket);
    }
    Ok(sockets)
}

fn refused(ip: IpAddr, carrier: Carrier, error: io::Error) -> BindError {
    let port = match carrier {
        Carrier::Udp(port) => port,
        Carrier::Raw => 0,
    };
    BindError::Socket { address: SocketAddr::new(ip, port), error }
}
