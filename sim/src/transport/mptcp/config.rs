//! The parameters of a Multipath TCP connection.

use anabranch_proto::{Duration, PolicySpec};

use crate::transport::tcp::TcpConfig;

/// The parameters of a flow, at both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct MptcpConfig {
    /// The parameters of each subflow.
    pub tcp: TcpConfig,
    /// Bytes of the receive buffer that all subflows share.
    pub receive_buffer: u64,
    /// Bytes of the send buffer: data that the application has written and that is not acknowledged.
    pub send_buffer: u64,
    /// The scheduler, which chooses the subflow of new data.
    pub new_data: PolicySpec,
    /// Whether the lowest data is sent again on another subflow while a full buffer blocks new data.
    pub reinjection: Reinjection,
    /// Whether the window of a subflow that keeps a buffer full is reduced, at most once in a round trip.
    pub penalise: bool,
    /// Whether the data of a subflow is given to others after a timeout by which it is no longer used.
    pub reinject_on_timeout: bool,
    /// The number of consecutive timeouts after which a subflow is no longer used while others work. `None`: no limit.
    pub pf_max_retrans: Option<u32>,
    /// The names of the paths that are backups from the beginning.
    pub backup: Vec<String>,
    /// When the receiver changes the priority of a path.
    pub priorities: Vec<Priority>,
    /// Whether the server supports Multipath TCP. If not, the connection falls back to TCP.
    pub server_multipath: bool,
}

/// When data is sent on a second subflow although the first has not failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Reinjection {
    /// Never.
    Off,
    /// While a full buffer blocks new data.
    Opportunistic,
}

/// Which pairs of addresses get a subflow.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PathManager {
    /// Each pair with a route.
    FullMesh,
    /// One pair for each interface of the client.
    OnePerInterface,
}

/// The receiver makes a path a backup with MP_PRIO, or makes it a normal path again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Priority {
    /// The time since the beginning of the run.
    pub at: Duration,
    /// The name of the path.
    pub path: String,
    /// Whether the path becomes a backup.
    pub backup: bool,
}
