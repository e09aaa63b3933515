//! With whom no association can begin.

use std::net::IpAddr;

use crate::wire::Address;
use crate::{Config, Refused};

/// Why no peer can have this port and these addresses, if that is so.
pub(super) fn refusal(config: &Config, port: u16, to: &[Address]) -> Option<Refused> {
    if port == 0 {
        return Some(Refused::Port);
    }
    if let Some(nobody) = to.iter().find(|to| is_nobody(to.ip)) {
        return Some(Refused::Address(nobody.ip));
    }
    let own = |to: &&Address| port == config.port && config.addresses.iter().any(|own| own.address == **to);
    to.iter().find(own).map(|own| Refused::Itself(own.ip))
}

/// Whether an address means no single host.
fn is_nobody(ip: IpAddr) -> bool {
    ip.is_unspecified() || ip.is_multicast() || matches!(ip, IpAddr::V4(v4) if v4.is_broadcast())
}
