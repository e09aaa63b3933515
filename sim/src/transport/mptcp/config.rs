//! What a connection of Multipath TCP can be told.

use anabranch_proto::{Duration, PolicySpec};

use crate::transport::tcp::TcpConfig;

/// The parameters of a flow, at both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct MptcpConfig {
    /// The parameters of each subflow.
    pub tcp: TcpConfig,
    /// Bytes that the receiver holds for all subflows together.
    pub receive_buffer: u64,
    /// Bytes given by the application that may wait for their acknowledgement.
    pub send_buffer: u64,
    /// The scheduler: which subflow gets new data.
    pub new_data: PolicySpec,
    /// Whether the lowest data goes again on another subflow while a full buffer keeps new data waiting.
    pub reinjection: Reinjection,
    /// Whether the window of a subflow that keeps a buffer full is cut, at most once a round trip.
    pub penalise: bool,
    /// Whether a timeout of a subflow gives its data to others.
    pub reinject_on_timeout: bool,
    /// Timeouts in a row that a subflow may have and still be used while others work; `None`: any number.
    pub pf_max_retrans: Option<u32>,
    /// Which pairs of addresses have a subflow.
    pub path_manager: PathManager,
    /// The paths that are backups from the beginning, by name.
    pub backup: Vec<String>,
    /// When the receiver changes the priority of a path.
    pub priorities: Vec<Priority>,
    /// Whether the server knows Multipath TCP; if not, the connection falls back to TCP.
    pub server_multipath: bool,
}

/// When data goes on a second subflow though the first has not failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Reinjection {
    /// Never.
    Off,
    /// While a full buffer keeps new data waiting.
    Opportunistic,
}

/// Which pairs of addresses have a subflow.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PathManager {
    /// Each with a route.
    FullMesh,
    /// Each interface of the client has one.
    OnePerInterface,
}

/// The receiver asks by MP_PRIO that a path becomes a backup, or is one no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Priority {
    /// When, from the beginning of the run.
    pub at: Duration,
    /// The path, by name.
    pub path: String,
    /// What it becomes.
    pub backup: bool,
}
