//! The initial congestion window of a path (RFC 9260 §7.2.1).

use super::mtu::pmdcs;
use crate::Config;
use crate::policy::Start;
use crate::rules::{InitialWindow, WindowUnit};
use crate::wire::Address;

/// The unit of windows is the size that the search for the MTU aims at, not the size with which it begins. Timestamps
/// occupy `stamps` bytes of it.
pub(super) fn start(config: &Config, remote: Address, stamps: u32) -> Start {
    let unit = u64::from(match config.rules.window_unit {
        WindowUnit::Mtu => config.mtu,
        WindowUnit::Pmdcs => pmdcs(config.mtu, config.ip_header, remote) - stamps,
    });
    let window = initial_window(config, unit, remote.ip.is_ipv6());
    Start { unit, window, ssthresh: config.initial_ssthresh.unwrap_or(u64::MAX) }
}

//= rfc9260#section-7.2.1
fn initial_window(config: &Config, unit: u64, ipv6: bool) -> u64 {
    let bytes = match config.rules.initial_window {
        InitialWindow::Two => return 2 * unit,
        InitialWindow::Bytes4380 => 4380,
        InitialWindow::Bytes4404 if ipv6 => 4344,
        InitialWindow::Bytes4404 => 4404,
    };
    (4 * unit).min((2 * unit).max(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;

    //= rfc9260#section-7.2.1
    #[test]
    fn initial_windows_of_the_eras() {
        let remote = Address::ip(std::net::IpAddr::from([127, 0, 0, 1]));
        let first = |rules| start(&Config { rules, ..Config::default() }, remote, 0).window;
        assert_eq!(first(Rules::RFC2960), 3000);
        assert_eq!(first(Rules::RFC4960), 4380);
        assert_eq!(first(Rules::RFC9260), 4404);
        assert_eq!(first(Rules::NS2), 4380);
    }
}
