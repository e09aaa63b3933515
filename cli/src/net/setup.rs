//! Sets up the association of a client, and reports what it waits for.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anabranch_net::{
    Association, BindError, ConnectError, Endpoint, LostReason, Options, Traffic, addresses,
};
use anabranch_proto::Config;
use anabranch_proto::wire::Cause;
use anabranch_sim::scenario::duration;
use tokio::time::sleep;

use super::places::{PeerAddress, each_once, resolve, routed, without_ports};
use super::recording::Recording;
use super::{Transport, leave};
use crate::address::ip_address;
use crate::output::{fail, note, refuse, warn};
use crate::runtime::Interrupts;
use crate::{FAILED, WRONG_INPUT};

/// The peer of a client, and how to reach it.
#[derive(clap::Args)]
pub(crate) struct Client {
    /// The addresses or names of the listener, with a UDP port if it differs from --udp. The first address is tried
    /// first; a name stands for all its addresses
    #[arg(long, value_name = "PLACE", value_delimiter = ',', required = true)]
    to: Vec<PeerAddress>,
    /// The local addresses, in order [default: the system's routes decide]
    #[arg(long, value_name = "ADDR", value_delimiter = ',', value_parser = ip_address)]
    from: Vec<IpAddr>,
    #[command(flatten)]
    pub(super) transport: Transport,
    /// The time limit for setting up the association, in seconds or with a unit
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "30 s", value_parser = waiting)]
    timeout: Duration,
    /// Print one JSON object, in SI units
    #[arg(long)]
    pub(super) json: bool,
}

/// A duration with its unit, or in seconds.
pub(super) fn waiting(text: &str) -> Result<Duration, String> {
    let read = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| "this is no time to wait".to_owned()),
        Err(_) => duration(text),
    };
    match read? {
        time if time.is_zero() => Err("this is no time to wait".to_owned()),
        // Clocks do not count far enough.
        time if time > LONGEST => Err("nobody waits longer than a year".to_owned()),
        time => Ok(time),
    }
}

/// A year.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// The interval at which the wait is checked.
const GLANCE: Duration = Duration::from_millis(200);
/// After this many unanswered packets, a message says that nobody answers.
const MANY: u64 = 3;

/// Why there is no association.
pub(super) struct NoAssociation {
    pub(super) status: u8,
    /// The reason. `None` if the input was wrong, and the user has been told.
    pub(super) problem: Option<String>,
    pub(super) traffic: Traffic,
}

impl NoAssociation {
    fn failed(why: String) -> NoAssociation {
        NoAssociation { problem: Some(why), ..FAILED.into() }
    }

    fn interrupted(signal: u8) -> NoAssociation {
        NoAssociation { problem: Some("interrupted".to_owned()), ..signal.into() }
    }
}

impl From<u8> for NoAssociation {
    fn from(status: u8) -> NoAssociation {
        NoAssociation { status, problem: None, traffic: Traffic::default() }
    }
}

impl Client {
    /// An association with the listener. The core's calls go to the recording.
    pub(super) async fn connect(
        &self,
        recording: Option<Recording>,
        interrupts: &mut Interrupts,
    ) -> Result<(Endpoint, Association), NoAssociation> {
        if self.transport.raw {
            without_ports(&self.to)?;
        }
        if self.transport.udp == 0 {
            return Err(refuse("--udp 0: name the UDP port of the listener, 1 to 65535").into());
        }
        let to = tokio::select! {
            found = resolve(&self.to, if self.transport.raw { 0 } else { self.transport.udp }) => found.map_err(NoAssociation::failed)?,
            () = sleep(self.timeout) => {
                let seconds = self.timeout.as_secs_f64();
                let why = format!("--to: no answer from the name servers within {seconds} s (--timeout)");
                return Err(NoAssociation::failed(why));
            }
            signal = interrupts.next() => return Err(NoAssociation::interrupted(signal)),
        };
        let to = if self.from.is_empty() { routed(to) } else { to };
        let options = self.options(&to)?;
        let spreads = options.config.new_data != Config::default().new_data;
        let endpoint = match recording {
            None => Endpoint::bind(options),
            Some(recording) => Endpoint::record(options, Box::new(recording)),
        };
        let endpoint = endpoint.map_err(|error| match bind_problem("--from", &self.transport, &error) {
            (FAILED, why) => NoAssociation::failed(why),
            (_, why) => refuse(why).into(),
        })?;
        let outcome = tokio::select! {
            connected = endpoint.connect(&to, self.transport.port) => connected.map_err(|error| {
                NoAssociation::failed(format!("no association with {}: {}", list(&to), self.why(&error)))
            }),
            never = self.watch(&endpoint, &to) => match never {},
            () = sleep(self.timeout) => Err(NoAssociation::failed(self.too_late(&endpoint, &to))),
            signal = interrupts.next() => Err(NoAssociation::interrupted(signal)),
        };
        match outcome {
            Ok(association) => {
                if spreads && has_one_path(&endpoint, &association) {
                    warn(ONE_PATH);
                }
                Ok((endpoint, association))
            }
            Err(none) => {
                leave(&endpoint).await;
                Err(NoAssociation { traffic: endpoint.traffic(), ..none })
            }
        }
    }

    fn options(&self, to: &[SocketAddr]) -> Result<Options, NoAssociation> {
        let config = Config { port: 0, ..self.transport.config()? };
        let to: Vec<IpAddr> = to.iter().map(SocketAddr::ip).collect();
        let options = Options::towards(&to).or_else(|error| match self.from.is_empty() {
            true => Err(NoAssociation::failed(error.to_string())),
            // The given addresses may tell a route.
            false => Ok(Options { listen: false, ..Options::default() }),
        })?;
        let local = if self.from.is_empty() { options.local } else { each_once("--from", &self.from)? };
        let bind_devices = options.bind_devices && !local.iter().any(|own| to.contains(own));
        let (carrier, gso) = (self.transport.carrier(0), !self.transport.no_gso);
        Ok(Options { config, local, carrier, gso, bind_devices, ..options })
    }

    /// Repeats that nobody answers.
    async fn watch(&self, endpoint: &Endpoint, to: &[SocketAddr]) -> Infallible {
        let mut told = MANY - 1;
        loop {
            sleep(GLANCE).await;
            let asked = endpoint.traffic().packets_sent;
            if asked > told {
                told = asked;
                note(self.so_far(endpoint, to));
            }
        }
    }

    /// How often the listener was asked, and whether it has answered.
    fn so_far(&self, endpoint: &Endpoint, to: &[SocketAddr]) -> String {
        let traffic = endpoint.traffic();
        let carrier = if self.transport.raw { "IP protocol 132" } else { "UDP" };
        let asked = match traffic.packets_sent {
            1 => "asked once".to_owned(),
            times => format!("asked {times} times"),
        };
        match traffic.packets_received {
            0 => format!("{asked}, no answer from {} ({carrier})", list(to)),
            _ => format!("{asked}, {} ({carrier}) answered only the first packet", list(to)),
        }
    }

    fn too_late(&self, endpoint: &Endpoint, to: &[SocketAddr]) -> String {
        let answered = endpoint.traffic().packets_received > 0;
        let hint = match self.transport.key {
            Some(_) if answered => ": do both ends have the same key?",
            _ => "",
        };
        let (seconds, so_far) = (self.timeout.as_secs_f64(), self.so_far(endpoint, to));
        format!("no association with {} within {seconds} s (--timeout): {so_far}{hint}", list(to))
    }

    /// A hint for the user, if the failure is about keys.
    fn why(&self, error: &ConnectError) -> String {
        match error {
            ConnectError::Lost(LostReason::NotAuthenticated) => {
                "only this end has a key: give --key FILE at both ends or at none".to_owned()
            }
            ConnectError::Lost(LostReason::PeerAborted(causes)) if causes.iter().any(asks_for_key) => {
                match self.transport.key {
                    None => "only the listener has a key: give --key FILE here too".to_owned(),
                    Some(_) => error.to_string(),
                }
            }
            _ => error.to_string(),
        }
    }
}

/// The warning of an association that is to use several paths and has one.
const ONE_PATH: &str = "--from: the association has one path, because the listener has one address; `--set pairs=all` makes a path \
                        of each pair of addresses";

/// Whether the association has one path, although several local addresses could reach the peer.
fn has_one_path(endpoint: &Endpoint, association: &Association) -> bool {
    let paths = association.paths();
    let local = endpoint.local();
    let reach = |ip: IpAddr| local.iter().filter(|(own, _)| own.is_ipv4() == ip.is_ipv4()).count();
    matches!(paths.as_slice(), [path] if reach(path.remote.ip) > 1)
}

/// Whether the peer ended the association because this end offers no authentication.
fn asks_for_key(cause: &Cause) -> bool {
    matches!(cause, Cause::ProtocolViolation(what) if what.starts_with(b"authentication is required"))
}

fn list(to: &[SocketAddr]) -> String {
    let place = |to: &SocketAddr| if to.port() == 0 { to.ip().to_string() } else { to.to_string() };
    to.iter().map(place).collect::<Vec<_>>().join(", ")
}

/// Reports why a socket cannot be opened; returns the exit status.
pub(super) fn refuse_bind(option: &str, transport: &Transport, error: &BindError) -> u8 {
    match bind_problem(option, transport, error) {
        (FAILED, why) => fail(why),
        (_, why) => refuse(why),
    }
}

/// The exit status for a socket that cannot be opened, and the reason.
fn bind_problem(option: &str, transport: &Transport, error: &BindError) -> (u8, String) {
    let BindError::Socket { address, error } = error else { return (FAILED, error.to_string()) };
    let (ip, udp) = (address.ip(), address.port());
    let why = match error.kind() {
        ErrorKind::AddrNotAvailable if addresses(ip).is_ok_and(|own| own.contains(&ip)) => format!(
            "{option} {ip}: the system does not let this address be used now; `ip address` shows it as tentative, or as dadfailed if \
             another host has it"
        ),
        ErrorKind::AddrNotAvailable => {
            return (WRONG_INPUT, format!("{option} {ip}: no interface of this host has it"));
        }
        ErrorKind::AddrInUse => {
            format!("--udp {udp}: another program has this port at {ip}; end it, or choose another port")
        }
        ErrorKind::PermissionDenied if transport.raw => format!(
            "--raw: {error}; only root and programs with the capability CAP_NET_RAW may open raw sockets"
        ),
        ErrorKind::PermissionDenied => format!("--udp {udp}: {error}; choose a port from 1024 on"),
        _ => format!("{option} {ip}: {error}"),
    };
    (FAILED, why)
}
