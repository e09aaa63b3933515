//! Parameters that a path can have of its own (RFC 9260 §11.1.9, §11.1.12; RFC 6458 §8.1.12).

use crate::Duration;

/// What holds for one path instead of what holds for its association. `Default`: nothing.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct PathParameters {
    /// Its HB.interval.
    pub heartbeats: Heartbeats,
    /// Its Path.Max.Retrans; `None`: the association's.
    pub max_retrans: Option<u32>,
    /// Its MTU in bytes, IP header included, whatever routers say and probes find; at most the association's.
    /// `None`: it is found out.
    pub mtu: Option<u32>,
}

/// The periodic heartbeats of a path.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Heartbeats {
    /// As the association has them.
    #[default]
    Inherited,
    /// None.
    Off,
    /// After so long.
    Every(Duration),
}
