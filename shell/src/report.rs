//! The summary of a session: packets carried, and their lateness.

use anabranch_sim::results::RunResult;
use hdrhistogram::Histogram;
use serde::Serialize;

/// Packets that are later than this at the 99 % quantile are not carried as the scenario says.
const LATE: f64 = 1e-3;

/// The summary of a session.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How it ended.
    pub ending: Ending,
    /// The programs beside the first that failed before the session ended.
    pub failed: Vec<FailedProgram>,
    /// The interfaces of the nodes with programs.
    pub interfaces: Vec<InterfaceReport>,
    /// How much later than in the simulation packets reached programs.
    pub lateness: Lateness,
    /// Packets of programs that had no route: their destination is no host of the scenario that can be reached from
    /// there.
    pub unroutable: u64,
    /// Packets that reached hosts without a program and were no pings.
    pub unanswered: u64,
    /// Packets of programs that were dropped before they were read, because this machine was too slow.
    pub overrun: u64,
    /// The links and the scenario's own flows, as in a simulation.
    pub run: RunResult,
}

/// How a session ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The program ended, with this exit status.
    Exit(u8),
    /// A signal of this number asked for the end.
    Signal(u8),
}

/// A program beside the first that failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FailedProgram {
    /// Its node.
    pub node: String,
    /// Its exit status, as a shell reports it.
    pub status: u8,
}

/// An interface of a node with a program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InterfaceReport {
    /// Its node.
    pub node: String,
    /// Its link.
    pub link: String,
    /// Its address.
    pub address: std::net::IpAddr,
    /// Packets that the node's programs sent.
    pub sent: u64,
    /// Their bytes, with IP headers.
    pub sent_bytes: u64,
    /// Packets that reached the node's programs.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
}

/// How much later than in the simulation packets reached programs, in seconds.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct Lateness {
    /// Packets.
    pub packets: u64,
    /// The median.
    pub p50: f64,
    /// The 99 % quantile.
    pub p99: f64,
    /// The most.
    pub max: f64,
}

impl Lateness {
    pub(crate) fn new(nanos: &Histogram<u64>) -> Self {
        let quantile = |share| nanos.value_at_quantile(share) as f64 / 1e9;
        Lateness {
            packets: nanos.len(),
            p50: quantile(0.5),
            p99: quantile(0.99),
            max: nanos.max() as f64 / 1e9,
        }
    }
}

impl Report {
    /// The reason why packets were not carried as the scenario says; `None` if they were.
    pub fn could_not_keep_up(&self) -> Option<String> {
        let Lateness { p99, .. } = self.lateness;
        if self.overrun > 0 {
            return Some(format!("{} packets were dropped before they were read", self.overrun));
        }
        (p99 > LATE).then(|| format!("one packet in a hundred was more than {:.1} ms late", p99 * 1e3))
    }
}
