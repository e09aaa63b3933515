//! The initial congestion window of a path (RFC 9260 §7.2.1), and the unit in which its window grows.

use super::mtu::pmdcs;
use crate::Config;
use crate::policy::Start;
use crate::rules::{InitialWindow, WindowUnit};
use crate::wire::Address;

/// The unit of the window of a path whose packets have at most `mtu` bytes. Timestamps occupy `stamps` of them.
pub(super) fn unit(config: &Config, remote: Address, mtu: u32, stamps: u32) -> u64 {
    u64::from(match config.rules.window_unit {
        WindowUnit::Mtu => mtu,
        WindowUnit::Pmdcs => pmdcs(mtu, config.ip_header, remote) - stamps,
    })
}

pub(super) fn start(config: &Config, remote: Address, unit: u64) -> Start {
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
        let first = |rules| {
            let config = Config { rules, ..Config::default() };
            start(&config, remote, unit(&config, remote, config.mtu, 0)).window
        };
        assert_eq!(first(Rules::RFC2960), 3000);
        assert_eq!(first(Rules::RFC4960), 4380);
        assert_eq!(first(Rules::RFC9260), 4404);
        assert_eq!(first(Rules::NS2), 4380);
    }
}
