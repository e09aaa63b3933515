//! The parameters that may change while an association lives (RFC 9260 §11.1.13, SET PROTOCOL PARAMETERS).

use crate::Duration;

/// The part of a [`Config`](crate::Config) that may change while an association lives. Each parameter is read where
/// it is needed, so a change takes effect at once. `Default` gives RFC 9260's values (§16).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// RTO.Initial.
    pub rto_initial: Duration,
    /// RTO.Min.
    pub rto_min: Duration,
    /// RTO.Max.
    pub rto_max: Duration,
    /// Max.Burst, in packets.
    pub max_burst: u32,
    /// Association.Max.Retrans.
    pub association_max_retrans: u32,
    /// Path.Max.Retrans.
    pub path_max_retrans: u32,
    /// PotentiallyFailed.Max.Retrans (RFC 7829): a path with more consecutive errors is potentially failed. `None`:
    /// paths are active or inactive only.
    pub pf_max_retrans: Option<u32>,
    /// The window, in packets, of a potentially failed path that has answered a heartbeat; `None`: the window it had
    /// before.
    pub pf_window: Option<u32>,
    /// Primary.Switchover.Max.Retrans (RFC 7829 §5): if the primary path has more consecutive errors, the path that
    /// takes over becomes the primary for good. Not below `pf_max_retrans`, or below `path_max_retrans` without that.
    /// `None`: data returns to the primary when it is active again, unless the rule `failover` says otherwise.
    pub primary_switchover_max_retrans: Option<u32>,
    /// Max.Init.Retransmits.
    pub max_init_retransmits: u32,
    /// The longest retransmission timeout of INIT and COOKIE ECHO (RFC 6458 §8.1.3); `None`: RTO.Max.
    pub max_init_timeout: Option<Duration>,
    /// T5-shutdown-guard (§9.2): the number of RTO.Max after which a shutdown that is not complete becomes an ABORT;
    /// `None`: no limit.
    pub shutdown_guard: Option<u32>,
    /// HB.interval; `None` switches periodic heartbeats off.
    pub heartbeat_interval: Option<Duration>,
    /// Whether a heartbeat's time is jittered by half an RTO either way (§8.3).
    pub heartbeat_jitter: bool,
    /// HB.Max.Burst: the largest number of heartbeats that leave at once.
    pub heartbeat_max_burst: u32,
    /// SACK.Delay; at most 500 ms. Zero disables the delay.
    pub sack_delay: Duration,
    /// The number of packets after which a SACK is sent at the latest; 1 disables the delay.
    pub sack_every: u32,
    /// The send buffer, in bytes of user data not yet acknowledged; `None`: twice the receive buffer.
    pub send_buffer: Option<u64>,
    /// The path MTU in bytes, IP header included. With `mtu_discovery`, the largest size that is tried.
    pub mtu: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_secs(1),
            rto_max: Duration::from_secs(60),
            max_burst: 4,
            association_max_retrans: 10,
            path_max_retrans: 5,
            pf_max_retrans: None,
            pf_window: None,
            primary_switchover_max_retrans: None,
            max_init_retransmits: 8,
            max_init_timeout: None,
            shutdown_guard: Some(5),
            heartbeat_interval: Some(Duration::from_secs(30)),
            heartbeat_jitter: true,
            heartbeat_max_burst: 1,
            sack_delay: Duration::from_millis(200),
            sack_every: 2,
            send_buffer: None,
            mtu: 1500,
        }
    }
}
