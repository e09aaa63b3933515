//! What waits for one socket, and what is known about its local address.

use std::time::{Duration, Instant};

use crate::gather::Gather;
use crate::report::Traffic;
use crate::socket::{Sent, Socket};

/// After the kernel has refused a run of packets, each packet leaves alone for this time. A run is refused by a device
/// that cannot cut it, and also when the interface's MTU has become smaller than its packets.
const ALONE: Duration = Duration::from_secs(1);

/// A full socket that accepted nothing although it was said to accept packets again is asked again after this time.
/// After an ICMP error, tokio says so at all times.
const PAUSE: Duration = Duration::from_millis(1);

/// The packets that wait for one socket.
pub(crate) struct Outbound {
    pub(crate) gather: Gather,
    /// The largest number of packets in a run.
    most: usize,
    /// When runs are tried again, after the kernel has refused one.
    runs_again: Option<Instant>,
    /// Whether the socket is full.
    pub(crate) full: bool,
    /// Whether the core knows that the socket is full.
    pub(crate) told: bool,
    /// Whether the socket has accepted something since it was last full.
    accepted: bool,
    /// When a full socket that accepted nothing is asked again.
    asked_again: Option<Instant>,
    /// Whether a packet could not leave, and the address was not checked since.
    pub(crate) unreachable: bool,
    /// Whether the address has moved to another interface, and the socket could not follow.
    pub(crate) astray: bool,
    /// The largest packet that its interface carries, as far as the system tells.
    pub(crate) mtu: Option<u32>,
    /// When an address that is down is next checked.
    pub(crate) down: Option<Instant>,
}

impl Outbound {
    pub(crate) fn new(most: usize, mtu: Option<u32>) -> Outbound {
        Outbound {
            gather: Gather::new(most),
            most,
            runs_again: None,
            full: false,
            told: false,
            accepted: true,
            asked_again: None,
            unreachable: false,
            astray: false,
            mtu,
            down: None,
        }
    }

    /// Hands the gathered packets to the kernel until its socket is full.
    pub(crate) fn send(&mut self, socket: &Socket, traffic: &mut Traffic) {
        if self.runs_again.is_some_and(|at| Instant::now() >= at) {
            self.runs_again = None;
            self.gather.allow_runs(self.most);
        }
        while !self.full
            && let Some((run, bytes)) = self.gather.first()
        {
            match socket.send(run, bytes) {
                Sent::Done => {
                    self.accepted = true;
                    traffic.sends += 1;
                    traffic.packets_sent += run.packets as u64;
                }
                Sent::Full => {
                    self.full = true;
                    let accepted = std::mem::take(&mut self.accepted);
                    self.asked_again = (!accepted).then(|| Instant::now() + PAUSE);
                    break;
                }
                Sent::NoRuns => {
                    self.gather.no_runs();
                    self.runs_again = Some(Instant::now() + ALONE);
                    continue;
                }
                Sent::Unreachable => self.unreachable = true,
                Sent::Lost => {}
            }
            self.gather.pop();
        }
    }

    /// Until when a full socket is not asked whether it accepts packets again; `None` if it may be asked now.
    pub(crate) fn rests_until(&self) -> Option<Instant> {
        self.asked_again.filter(|at| self.full && *at > Instant::now())
    }

    /// Whether the driver has to do something for this socket.
    pub(crate) fn needs_driver(&self) -> bool {
        if self.full { !self.told } else { self.unreachable || !self.gather.is_empty() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::Manner;
    use crate::options::Carrier;
    use anabranch_proto::wire::chunk::CookieEcho;
    use anabranch_proto::wire::{Address, Chunk, Ecn, Packet, Ports};
    use std::net::{IpAddr, Ipv4Addr};

    fn packet(here: IpAddr) -> Packet {
        let chunk = Chunk::CookieEcho(CookieEcho { cookie: vec![0; 100].into() });
        let ports = Ports { source: 1, destination: 2 };
        let place = Address::ip(here);
        let chunks = [chunk].into_iter().collect();
        Packet { from: place, to: place, ports, tag: 3, ecn: Ecn::NotEct, chunks }
    }

    /// The system's word that a socket accepts packets is believed until it was wrong. Here the socket is new: tokio
    /// does not know yet that it accepts anything.
    #[tokio::test]
    async fn a_full_socket_is_not_asked_without_end() {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let socket = Socket::new(here, Carrier::Udp(0), None).expect("a socket");
        let mut outbound = Outbound::new(1, None);
        outbound.gather.begin((here, 9).into(), &packet(here), Manner::Together);
        let send = |outbound: &mut Outbound| {
            outbound.full = false;
            outbound.send(&socket, &mut Traffic::default());
            outbound.full
        };
        assert!(send(&mut outbound) && outbound.asked_again.is_none(), "it may have room at once");
        assert!(send(&mut outbound) && outbound.asked_again.is_some(), "it was said to have room");
        tokio::time::sleep(PAUSE).await;
        assert!(outbound.rests_until().is_none());
        std::future::poll_fn(|context| socket.open().poll_writable(context)).await;
        assert!(!send(&mut outbound) && outbound.gather.is_empty());
    }

    /// Runs are tried again after a while. Here the kernel refuses a run because it has more packets than the kernel
    /// allows.
    #[tokio::test]
    async fn a_refused_run_does_not_end_all_runs() {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let socket = Socket::new(here, Carrier::Udp(0), None).expect("a socket");
        std::future::poll_fn(|context| socket.open().poll_writable(context)).await;
        let to = (here, 9).into();
        let packet = packet(here);
        let mut outbound = Outbound::new(400, None);
        let send = |outbound: &mut Outbound, packets: usize| {
            for _ in 0..packets {
                if !outbound.gather.extend(to, &packet, Manner::Together) {
                    outbound.gather.begin(to, &packet, Manner::Together);
                }
            }
            let mut traffic = Traffic::default();
            outbound.send(&socket, &mut traffic);
            assert_eq!(traffic.packets_sent, packets as u64);
            traffic.sends
        };
        assert_eq!(send(&mut outbound, 400), 400, "the kernel takes no run of 400");
        assert_eq!(send(&mut outbound, 20), 20, "for a while, each packet leaves alone");
        outbound.runs_again = outbound.runs_again.map(|at| at - ALONE);
        send(&mut outbound, 0);
        assert_eq!(send(&mut outbound, 20), 1, "then there are runs again");
    }
}
