//! Parses the addresses and names of listeners.

use std::net::{IpAddr, SocketAddr};

use anabranch_net::sources;

use crate::output::{fail, refuse};

/// A value of `--to`: an address or a name, with or without a UDP port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PeerAddress {
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Host {
    Address(IpAddr),
    Name(String),
}

impl std::str::FromStr for PeerAddress {
    type Err = String;

    /// `192.0.2.1`, `192.0.2.1:9900`, `2001:db8::1`, `[2001:db8::1]:9900`, `host.example`, `host.example:9900`.
    fn from_str(text: &str) -> Result<PeerAddress, String> {
        if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse() {
            return Ok(PeerAddress { host: Host::Address(ip), port: None });
        }
        if let Ok(place) = text.parse::<SocketAddr>() {
            return Ok(PeerAddress { host: Host::Address(place.ip()), port: Some(place.port()) });
        }
        let (name, port) = match text.rsplit_once(':') {
            None => (text, None),
            Some((name, port)) => {
                let port = port.parse().map_err(|_| format!("`{port}` is no UDP port: 1 to 65535"))?;
                (name, Some(port))
            }
        };
        let letter = |c: char| c.is_alphanumeric() || "-._".contains(c);
        // If the last part is a number, this is a mistyped address: no host name ends with a number.
        let last = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
        if name.is_empty() || !name.chars().all(letter) || last.chars().all(|c| c.is_ascii_digit()) {
            return Err(
                "this is neither an address nor a name; write 192.0.2.1, 192.0.2.1:9900, 2001:db8::1, \
                        [2001:db8::1]:9900 or host.example"
                    .to_owned(),
            );
        }
        Ok(PeerAddress { host: Host::Name(name.to_owned()), port })
    }
}

/// The addresses of these places, each once: all addresses of a name that this host has routes to. Ports that were
/// not given are `udp`. The error is the exit status.
pub(super) async fn resolve(places: &[PeerAddress], udp: u16) -> Result<Vec<SocketAddr>, u8> {
    let mut found = Vec::new();
    for PeerAddress { host, port } in places {
        let port = port.unwrap_or(udp);
        let addresses = match host {
            Host::Address(ip) => vec![SocketAddr::new(*ip, port)],
            Host::Name(name) => look_up(name, port).await?,
        };
        for address in addresses {
            if !found.contains(&address) {
                found.push(address);
            }
        }
    }
    Ok(found)
}

async fn look_up(name: &str, port: u16) -> Result<Vec<SocketAddr>, u8> {
    let found = tokio::net::lookup_host((name, port)).await;
    let found = found.map_err(|error| fail(format!("--to {name}: this name has no address: {error}")))?;
    let mut found: Vec<SocketAddr> = found.collect();
    // A listener uses 127.0.0.1 by default.
    found.sort_by_key(|address| address.ip().is_loopback() && address.is_ipv6());
    let routed: Vec<SocketAddr> = found.iter().filter(|to| sources(&[to.ip()]).is_ok()).copied().collect();
    match (found.first(), routed.is_empty()) {
        (None, _) => Err(fail(format!("--to {name}: this name has no address"))),
        (Some(first), true) => Err(fail(format!("--to {name}: no way leads to {}", first.ip()))),
        _ => Ok(routed),
    }
}

/// Refuses UDP ports with --raw, where there is no UDP.
pub(super) fn without_ports(places: &[PeerAddress]) -> Result<(), u8> {
    match places.iter().find_map(|place| place.port) {
        Some(port) => {
            Err(refuse(format!("--to …:{port}: with --raw there are no UDP ports; the SCTP port is --port")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_with_and_without_a_port() {
        let address = |text: &str, port| Ok(PeerAddress { host: Host::Address(text.parse().unwrap()), port });
        let name = |text: &str, port| Ok(PeerAddress { host: Host::Name(text.to_owned()), port });
        for (text, place) in [
            ("192.0.2.1", address("192.0.2.1", None)),
            ("192.0.2.1:9900", address("192.0.2.1", Some(9900))),
            ("2001:db8::1", address("2001:db8::1", None)),
            ("[2001:db8::1]", address("2001:db8::1", None)),
            ("[2001:db8::1]:9900", address("2001:db8::1", Some(9900))),
            ("localhost", name("localhost", None)),
            ("a-b.example:9900", name("a-b.example", Some(9900))),
        ] {
            assert_eq!(text.parse(), place, "{text}");
        }
        for text in
            ["", "192.0.2", "192.0.2.256", "192.0.2.1:port", "host:70000", "a b", "[host]:1", "http://a"]
        {
            assert!(text.parse::<PeerAddress>().is_err(), "{text}");
        }
    }
}
