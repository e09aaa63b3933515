//! Interfaces: the interface of an address, the routes of the system, and notifications when either changes.

use std::io;
use std::net::{IpAddr, SocketAddr};

use if_addrs::IfAddr;
use rustix::net::{self, AddressFamily, RecvFlags, SocketFlags, SocketType, netlink};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// The interface of an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    /// Its number in the system, which no other interface gets, not even one of the same name.
    pub(crate) index: Option<u32>,
    /// Bits of the prefix of its link.
    pub(crate) prefix: u8,
    /// The largest packet in bytes, if the system tells.
    pub(crate) mtu: Option<u32>,
    pub(crate) loopback: bool,
}

/// The interface that has this address.
pub(crate) fn of(ip: IpAddr) -> Option<Interface> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let found = all.into_iter().find(|interface| interface.ip() == ip)?;
    let prefix = match &found.addr {
        IfAddr::V4(v4) => v4.prefixlen,
        IfAddr::V6(v6) => v6.prefixlen,
    };
    let told = std::fs::read_to_string(format!("/sys/class/net/{}/mtu", found.name));
    let mtu = told.ok().and_then(|text| text.trim().parse().ok());
    Some(Interface { prefix, mtu, index: found.index, loopback: found.is_loopback(), name: found.name })
}

/// The addresses of this host in the family of `ip`, without loopback and link-local addresses.
pub fn addresses(ip: IpAddr) -> io::Result<Vec<IpAddr>> {
    let all = if_addrs::get_if_addrs()?;
    let wanted =
        |i: &if_addrs::Interface| i.ip().is_ipv4() == ip.is_ipv4() && !i.is_loopback() && !i.is_link_local();
    Ok(all.into_iter().filter(wanted).map(|interface| interface.ip()).collect())
}

/// The local addresses from which the system's routes lead to these, each once, in their order.
pub fn sources(to: &[IpAddr]) -> io::Result<Vec<IpAddr>> {
    let mut found = Vec::new();
    for peer in to {
        let source = route(None, None, *peer)
            .map_err(|error| io::Error::new(error.kind(), format!("no way leads to {peer}: {error}")))?;
        if !found.contains(&source) {
            found.push(source);
        }
    }
    Ok(found)
}

/// Asks the system for a route to `to` from this address and through this interface. Returns the source address.
/// Sends nothing.
pub(crate) fn route(from: Option<IpAddr>, device: Option<&str>, to: IpAddr) -> io::Result<IpAddr> {
    let socket = Socket::new(Domain::for_address(SocketAddr::new(to, 0)), Type::DGRAM, Some(Protocol::UDP))?;
    if let Some(device) = device {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    if let Some(from) = from {
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    socket.connect(&SocketAddr::new(to, super::UDP_PORT).into())?;
    let local = socket.local_addr()?.as_socket();
    local.map(|local| local.ip()).ok_or_else(|| io::Error::other("the system names no source address"))
}

/// Reports changes of links, addresses or routes of this host. The caller then asks for the details.
pub(crate) struct Watch {
    /// A socket of rtnetlink(7); tokio waits for it as for any datagram socket.
    socket: UdpSocket,
}

/// Links; addresses and routes of both families.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

impl Watch {
    pub(crate) fn new() -> io::Result<Watch> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, None)?;
        net::bind(&socket, &netlink::SocketAddrNetlink::new(0, GROUPS))?;
        Ok(Watch { socket: UdpSocket::from_std(socket.into())? })
    }

    /// Waits for a change. Several changes at once count as one.
    pub(crate) async fn changed(&self) {
        // The contents of the message are not needed. A loss of messages (ENOBUFS) counts as a change, too.
        let mut message = [0; 4096];
        let mut take = || net::recv(&self.socket, &mut message, RecvFlags::empty()).map_err(io::Error::from);
        let _ = self.socket.async_io(Interest::READABLE, &mut take).await;
        while self.socket.try_io(Interest::READABLE, &mut take).is_ok() {}
    }
}
