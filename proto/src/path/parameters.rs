//! Parameters that a single path can have (RFC 9260 §11.1.9, §11.1.12; RFC 6458 §8.1.12).

use crate::Duration;

/// Parameters of one path that replace those of its association. `Default`: none.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct PathParameters {
    /// Its HB.interval.
    pub heartbeats: Heartbeats,
    /// Its Path.Max.Retrans; `None`: the association's.
    pub max_retrans: Option<u32>,
    /// Its MTU in bytes, IP header included, regardless of routers and probes; at most the association's. `None`: the
    /// MTU is found by probes and routers.
    pub mtu: Option<u32>,
}

/// The periodic heartbeats of a path.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Heartbeats {
    /// As the association's.
    #[default]
    Inherited,
    /// No periodic heartbeats.
    Off,
    /// This interval.
    Every(Duration),
}
