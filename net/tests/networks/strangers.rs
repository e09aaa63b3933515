//! A listener with two addresses, and strangers who name addresses to which one of its interfaces has no route.

use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anabranch_net::{Association, Carrier, Endpoint, Options, PathState};
use tokio::time::{sleep, timeout};

use crate::network::{Network, skip};
use crate::{ms, transfer::in_runtime};

const PORT: u16 = 5000;
const UDP: u16 = 9899;
/// More than are asked about one address.
const STRANGERS: u16 = 9;

fn place(host: u16, link: u16) -> IpAddr {
    Ipv6Addr::new(0xfd01 + link, 0, 0, 0, 0, 0, 0, host + 1).into()
}

fn unreachable(stranger: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, stranger + 1).into()
}

/// Two links with IPv6 addresses. The listener's default route is by the first: the second reaches its own link only.
fn network(name: &str) -> Option<std::sync::Arc<Network>> {
    if !Path::new("/proc/net/if_inet6").exists() {
        skip(name, "there is no IPv6");
        return None;
    }
    let network = Network::new(name)?;
    for (host, link) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (device, address) = (network.interface(host, link), place(host as u16, link as u16));
        network.on(host, &format!("ip address add {address}/64 dev {device} nodad"));
    }
    for stranger in 0..STRANGERS {
        network.on(0, &format!("ip address add {}/128 dev lo nodad", unreachable(stranger)));
    }
    network.on(1, &format!("ip route add default via fd01::fe dev {}", network.interface(1, 0)));
    Some(network)
}

async fn connected(local: Vec<IpAddr>, to: &[IpAddr]) -> (Endpoint, Association) {
    let carrier = Carrier::Udp(0);
    let endpoint = Endpoint::bind(Options { local, carrier, ..Options::default() }).expect("sockets");
    let to: Vec<_> = to.iter().map(|ip| (*ip, UDP).into()).collect();
    let association = endpoint.connect(&to, PORT).await.expect("it comes up");
    (endpoint, association)
}

/// Each stranger has one address that the second interface cannot reach. Who comes later uses both paths.
#[test]
fn strangers_switch_no_address_off() {
    let Some(network) = network("strangers_switch_no_address_off") else { return };
    let network = &network;
    let (ready, listening) = mpsc::channel();
    let (done, ended) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            network.enter(1);
            in_runtime(async {
                let local = vec![place(1, 0), place(1, 1)];
                let options = Options { local, carrier: Carrier::Udp(UDP), ..Options::default() };
                let endpoint = Endpoint::bind(options).expect("sockets");
                ready.send(()).expect("the others wait");
                let mut strangers = Vec::new();
                for _ in 0..STRANGERS {
                    strangers.push(endpoint.accept().await.expect("it is open"));
                }
                let victim = endpoint.accept().await.expect("it is open");
                let usable = async || victim.paths().iter().all(|path| path.state == PathState::Active);
                let verified = async {
                    while !usable().await {
                        sleep(ms(10)).await;
                    }
                };
                let verified = timeout(Duration::from_secs(10), verified).await;
                let far = strangers.iter().flat_map(Association::paths);
                let far = far.filter(|path| path.local.ip == place(1, 1)).count();
                let paths = victim.paths();
                done.send(()).expect("the others wait");
                assert_eq!(far, STRANGERS as usize, "each stranger has a path at the second address");
                assert!(verified.is_ok() && paths.len() == 2, "{paths:?}");
                assert!(paths.iter().all(|path| path.up), "{paths:?}");
            });
        });
        scope.spawn(move || {
            network.enter(0);
            listening.recv().expect("the listener is there");
            in_runtime(async {
                let mut others = Vec::new();
                for stranger in 0..STRANGERS {
                    others.push(connected(vec![place(0, 0), unreachable(stranger)], &[place(1, 0)]).await);
                }
                let both = [place(1, 0), place(1, 1)];
                others.push(connected(vec![place(0, 0), place(0, 1)], &both).await);
                while ended.try_recv().is_err() {
                    sleep(ms(20)).await;
                }
                others.iter().for_each(|(_, association)| association.abort());
            });
        });
    });
}
