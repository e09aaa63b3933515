//! The commands for real networks, and what they share.

#![allow(clippy::disallowed_types, reason = "real networks have real clocks")]

mod live;
mod log;
mod paths;
pub(crate) mod perf;
mod perf_report;
mod places;
mod record;
pub(crate) mod send;
pub(crate) mod serve;
mod setup;
mod watched;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_net::{Association, Carrier, Endpoint, UDP_PORT};
use anabranch_proto::{Config, SharedKey};
use anabranch_sim::scenario::protocol;
use bytes::Bytes;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::output::{fail, refuse, refuse_scenario, warn};
use crate::{INTERRUPTED, TERMINATED};

/// The SCTP port of a listener, unless it is told another.
const PORT: u16 = 5000;

/// The carrier of the packets, and the parameters of the protocol.
#[derive(clap::Args)]
pub(crate) struct Transport {
    /// The UDP port of the listener (RFC 6951); a client uses any free port
    #[arg(long, value_name = "PORT", default_value_t = UDP_PORT)]
    udp: u16,
    /// Send SCTP directly over IP, without UDP; needs the right to open raw sockets
    #[arg(long, conflicts_with = "udp")]
    raw: bool,
    /// The SCTP port of the listener
    #[arg(long, value_name = "PORT", default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Set a key of [flow.sctp] (`anabranch keys`): a rule or a parameter of the protocol
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The route of retransmissions (`anabranch policies`): short for --set retransmit=POLICY
    #[arg(long, value_name = "POLICY")]
    retransmit: Option<String>,
    /// Send new data on all active paths at once (concurrent multipath transfer): short for --set cmt=true. The other
    /// end need not know of it
    #[arg(long)]
    cmt: bool,
    /// Authenticate with the shared key in this file (RFC 4895); both ends need it
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Hand each packet to the kernel separately, so that captures on this host show single packets
    #[arg(long)]
    no_gso: bool,
}

impl Transport {
    /// The protocol's parameters; or the exit status of what was wrong.
    fn config(&self) -> Result<Config, u8> {
        let route = self.retransmit.iter().map(|policy| format!("retransmit={policy}"));
        let own = ["mtu_discovery=true", "rehome=true", "fill_packets=true"];
        let own = own.into_iter().chain(self.cmt.then_some("cmt=true"));
        let settings: Vec<String> =
            own.map(str::to_owned).chain(self.set.iter().cloned()).chain(route).collect();
        let mut config = protocol("--set", &settings).map_err(|error| refuse_scenario(&error))?;
        if let Some(file) = &self.key {
            config.shared_key = Some(shared_key(file)?);
            config.extensions.authentication = true;
            config.authenticated_chunks = AUTHENTICATED.to_vec();
        }
        config.warnings().iter().for_each(|warning| warn(format!("--set {warning}")));
        Ok(config)
    }

    fn carrier(&self, udp: u16) -> Carrier {
        if self.raw { Carrier::Raw } else { Carrier::Udp(udp) }
    }
}

/// What counts only if it is authentic, where there is a key: COOKIE ECHO, user data and what acknowledges it, what ends an
/// association, and what lets an extension give data up or count streams anew. A peer that does not use an extension ignores its types.
const AUTHENTICATED: [u8; 11] = [
    0,   // DATA
    3,   // SACK
    6,   // ABORT
    7,   // SHUTDOWN
    8,   // SHUTDOWN ACK
    10,  // COOKIE ECHO
    16,  // NR-SACK
    64,  // I-DATA
    130, // RE-CONFIG
    192, // FORWARD TSN
    194, // I-FORWARD-TSN
];

/// The key in a file, as it is there but for an end of line; or the exit status of what is wrong with it.
fn shared_key(file: &Path) -> Result<SharedKey, u8> {
    let bytes = std::fs::read(file).map_err(|error| refuse(format!("--key {}: {error}", file.display())))?;
    let secret = bytes.trim_ascii_end();
    if secret.len() < 16 {
        let (file, bytes) = (file.display(), secret.len());
        return Err(refuse(format!(
            "--key {file}: {bytes} bytes are too few for a key; give it 16 at least"
        )));
    }
    Ok(SharedKey { id: 1, secret: Bytes::copy_from_slice(secret) })
}

/// Runs a command, which is told of every signal to end, to its exit status.
pub(crate) fn in_runtime(command: impl AsyncFnOnce(&mut Interrupts) -> u8) -> u8 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let (keyboard, system) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
            Ok(command(&mut Interrupts { keyboard, system }).await)
        })
    });
    result.unwrap_or_else(|error| fail(format!("the system gives no runtime: {error}")))
}

/// Every Ctrl-C and every SIGTERM from the beginning on: none is missed, whatever goes on when it comes.
pub(crate) struct Interrupts {
    keyboard: Signal,
    system: Signal,
}

impl Interrupts {
    /// Waits for the next one; the exit status that says which it was.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.keyboard.recv() => INTERRUPTED,
            _ = self.system.recv() => TERMINATED,
        }
    }
}

/// Ends an association gracefully, as long as no signal comes (again); then at once. The peer is told either way.
async fn end(association: &Association, interrupts: &mut Interrupts) {
    tokio::select! {
        _ = association.close() => {}
        never = read_away(association) => match never {},
        _ = interrupts.next() => association.abort(),
    }
}

/// Takes what the peer had under way: it does not agree to the end before that has found room here.
async fn read_away(association: &Association) -> Infallible {
    while let Ok(Some(_)) = association.recv().await {}
    std::future::pending().await
}

/// The last packet leaves before the process does.
async fn leave(endpoint: &Endpoint) {
    let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.close()).await;
}
