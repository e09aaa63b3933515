//! The commands for real networks, and their common parts.

#![allow(clippy::disallowed_types, reason = "real networks have real clocks")]

mod live;
mod log;
mod paths;
mod pen;
pub(crate) mod perf;
mod perf_report;
mod places;
mod record;
mod recording;
mod repeat;
pub(crate) mod replay;
pub(crate) mod send;
pub(crate) mod serve;
mod setup;
mod traced;
mod watched;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_net::{Association, Carrier, Endpoint, UDP_PORT};
use anabranch_proto::{Config, SharedKey};
use anabranch_sim::scenario::{protocol, read_bytes};
use bytes::Bytes;
use tokio::time::sleep;

use crate::output::{refuse, refuse_scenario, warn};
use crate::runtime::Interrupts;

/// The default SCTP port of a listener.
const PORT: u16 = 5000;

/// The carrier of the packets and the parameters of the protocol.
#[derive(clap::Args)]
pub(crate) struct Transport {
    /// The UDP port of the listener (RFC 6951); a client uses any free local port
    #[arg(long, value_name = "PORT", allow_negative_numbers = true, default_value_t = UDP_PORT)]
    udp: u16,
    /// Send SCTP directly over IP, without UDP; needs the permission to open raw sockets
    #[arg(long, conflicts_with = "udp")]
    raw: bool,
    /// The SCTP port of the listener
    #[arg(long, value_name = "PORT", allow_negative_numbers = true, default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Set a key of [flow.sctp] (`anabranch keys`): a rule or a parameter of the protocol
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The policy for retransmissions (`anabranch policies`): short for --set retransmit=POLICY
    #[arg(long, value_name = "POLICY")]
    retransmit: Option<String>,
    /// Send new data on all active paths at once (concurrent multipath transfer): short for --set cmt=true. The other
    /// end needs no support for it
    #[arg(long)]
    cmt: bool,
    /// Authenticate with the shared key in this file (RFC 4895); both ends need it
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Hand each packet to the kernel separately, so that captures on this host show single packets
    #[arg(long)]
    no_gso: bool,
    /// The largest packet that the search for the path MTU tries, IP header included: 9000 for jumbo frames. It is for
    /// what this end sends, and lowered to the MTU of the local interfaces
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, default_value_t = 1500, value_parser = clap::value_parser!(u32).range(576..=65535))]
    mtu: u32,
}

impl Transport {
    /// The parameters of the protocol, or the exit status of a fault in them.
    fn config(&self) -> Result<Config, u8> {
        let mut config = protocol("--set", &self.settings()).map_err(|error| refuse_scenario(&error))?;
        config.mtu = self.mtu;
        if let Some(file) = &self.key {
            config.shared_key = Some(shared_key(file)?);
            config.extensions.authentication = true;
            config.authenticated_chunks = AUTHENTICATED.to_vec();
        }
        config.warnings().iter().for_each(|warning| warn(format!("--set {warning}")));
        Ok(config)
    }

    /// Whether chunks may be authenticated, or the exit status of a fault in the settings.
    fn authenticates(&self) -> Result<bool, u8> {
        let config = protocol("--set", &self.settings()).map_err(|error| refuse_scenario(&error))?;
        Ok(self.key.is_some() || config.extensions.authentication)
    }

    /// The settings of the protocol, `KEY=VALUE`.
    fn settings(&self) -> Vec<String> {
        let route = self.retransmit.iter().map(|policy| format!("retransmit={policy}"));
        // As many streams as may come in: a stream that is not used costs nothing.
        let own = ["mtu_discovery=true", "rehome=true", "fill_packets=true", "outbound_streams=1024"];
        let own = own.into_iter().chain(self.cmt.then_some("cmt=true"));
        own.map(str::to_owned).chain(self.set.iter().cloned()).chain(route).collect()
    }

    fn carrier(&self, udp: u16) -> Carrier {
        if self.raw { Carrier::Raw } else { Carrier::Udp(udp) }
    }
}

/// The chunks that must be authentic if there is a key: COOKIE ECHO, user data and its acknowledgements, chunks that
/// end an association, and chunks by which an extension abandons data or restarts numbering. A peer without an
/// extension ignores the types of its chunks.
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

/// The key in a file, without its line end; or the exit status of a fault.
fn shared_key(file: &Path) -> Result<SharedKey, u8> {
    let bytes = read_bytes(file).map_err(|error| refuse(format!("--key {}: {error}", file.display())))?;
    let secret = bytes.trim_ascii_end();
    if secret.len() < 16 {
        let (file, bytes) = (file.display(), secret.len());
        return Err(refuse(format!(
            "--key {file}: {bytes} bytes are too few for a key; give it 16 at least"
        )));
    }
    Ok(SharedKey { id: 1, secret: Bytes::copy_from_slice(secret) })
}

/// Ends an association gracefully until the next signal, then at once. The peer is told in both cases.
async fn end(association: &Association, interrupts: &mut Interrupts) {
    tokio::select! {
        _ = association.close() => {}
        never = read_away(association) => match never {},
        _ = interrupts.next() => association.abort(),
    }
}

/// The time that associations have to end gracefully after a signal, or when there is nothing left to say.
const FAREWELL: Duration = Duration::from_secs(5);

/// As [`end`], but at once when the time is over: data that waits to be sent would delay the end for long.
async fn end_soon(association: &Association, interrupts: &mut Interrupts) {
    tokio::select! {
        () = end(association, interrupts) => {}
        () = sleep(FAREWELL) => association.abort(),
    }
}

/// Reads the data that the peer had in flight. The peer does not agree to the end before this data has found room
/// here.
async fn read_away(association: &Association) -> Infallible {
    while let Ok(Some(_)) = association.recv().await {}
    std::future::pending().await
}

/// Waits until the last packet has left.
async fn leave(endpoint: &Endpoint) {
    let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.close()).await;
}
