//! Parses the addresses and names of listeners.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use anabranch_net::local_addresses_towards;
use tokio::sync::oneshot;

use crate::output::{refuse, warn};

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
        if text.contains('%') {
            return Err(OF_A_LINK.to_owned());
        }
        if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Ok(PeerAddress { host: Host::Address(of_a_host(ip)?), port: None });
        }
        let port = |port: &str| match port.parse() {
            Ok(0) | Err(_) => Err(format!("`{port}` is no UDP port: 1 to 65535")),
            Ok(port) => Ok(Some(port)),
        };
        if let Ok(place) = text.parse::<SocketAddr>() {
            let port = port(&place.port().to_string())?;
            return Ok(PeerAddress { host: Host::Address(of_a_host(place.ip())?), port });
        }
        let (name, port) = match text.rsplit_once(':') {
            None => (text, None),
            Some((name, given)) => (name, port(given)?),
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

/// The address, if it can be that of another host.
fn of_a_host(ip: IpAddr) -> Result<IpAddr, String> {
    match ip.to_canonical() {
        ip if is_of_a_link(ip) => Err(OF_A_LINK.to_owned()),
        ip if ip.is_unspecified() || ip.is_multicast() => Err("this is no address of a host".to_owned()),
        ip => Ok(ip),
    }
}

/// The addresses of these places, each once: all addresses of a name that this host has routes to. Ports that were
/// not given are `udp`. The error is the exit status.
pub(super) async fn resolve(places: &[PeerAddress], udp: u16) -> Result<Vec<SocketAddr>, String> {
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

async fn look_up(name: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let (tell, told) = oneshot::channel();
    let place = (name.to_owned(), port);
    // Not a thread of the runtime, which would wait for its end: name servers that do not answer take long.
    std::thread::spawn(move || tell.send(place.to_socket_addrs().map(Vec::from_iter)));
    let found = told.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    let mut found = found.map_err(|error| format!("--to {name}: this name has no address: {error}"))?;
    // A listener uses 127.0.0.1 by default.
    found.sort_by_key(|address| address.ip().is_loopback() && address.is_ipv6());
    let routed: Vec<SocketAddr> =
        found.iter().filter(|to| local_addresses_towards(&[to.ip()]).is_ok()).copied().collect();
    match (found.first(), routed.is_empty()) {
        (None, _) => Err(format!("--to {name}: this name has no address")),
        (Some(first), true) => Err(format!("--to {name}: no way leads to {}", first.ip())),
        _ => Ok(routed),
    }
}

/// The local addresses that an option names, each once. An IPv4 address in the form of an IPv6 address is that IPv4
/// address.
pub(super) fn each_once(option: &str, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, u8> {
    let mut each = Vec::new();
    for ip in addresses.iter().map(IpAddr::to_canonical) {
        if is_of_a_link(ip) {
            return Err(refuse(format!("{option} {ip}: {OF_A_LINK}")));
        }
        if !each.contains(&ip) {
            each.push(ip);
        }
    }
    Ok(each)
}

/// Whether an address means another host on each link.
fn is_of_a_link(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

const OF_A_LINK: &str = "link-local addresses cannot be used; name an address that is valid beyond its link";

/// Those of a listener's addresses to which this host has routes, with a warning about the others; all if there is
/// none.
pub(super) fn routed(to: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let (near, far): (Vec<SocketAddr>, Vec<SocketAddr>) =
        to.iter().partition(|to| local_addresses_towards(&[to.ip()]).is_ok());
    if near.is_empty() {
        return to;
    }
    for to in &far {
        warn(format!("--to {}: no way leads there from this host; it goes without this address", to.ip()));
    }
    near
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
            ("::ffff:192.0.2.1", address("192.0.2.1", None)),
            ("[::ffff:192.0.2.1]:9900", address("192.0.2.1", Some(9900))),
            ("localhost", name("localhost", None)),
            ("a-b.example:9900", name("a-b.example", Some(9900))),
        ] {
            assert_eq!(text.parse(), place, "{text}");
        }
        for text in [
            "",
            "192.0.2",
            "192.0.2.256",
            "192.0.2.1:port",
            "host:70000",
            "host:0",
            "fe80::1",
            "fe80::1%eth0",
            "0.0.0.0",
            "[ff02::1]:9900",
            "192.0.2.1:0",
            "a b",
            "[host]:1",
            "http://a",
        ] {
            assert!(text.parse::<PeerAddress>().is_err(), "{text}");
        }
    }
}
