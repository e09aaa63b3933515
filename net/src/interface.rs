//! Interfaces: the interface of an address, the routes of the system, and notifications when either changes.

use std::io;
use std::net::{IpAddr, SocketAddr};

use if_addrs::IfAddr;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
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
    /// Whether it is the loopback interface. It can have addresses that other hosts reach by any link.
    pub(crate) loopback: bool,
    /// Whether it is switched on, as far as the system tells.
    pub(crate) up: bool,
}

/// The interface that has this address.
pub(crate) fn of(ip: IpAddr) -> Option<Interface> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let found = all.into_iter().find(|interface| interface.ip() == ip)?;
    let prefix = match &found.addr {
        IfAddr::V4(v4) => v4.prefixlen,
        IfAddr::V6(v6) => v6.prefixlen,
    };
    let link = found.index.and_then(link).unwrap_or_default();
    Some(Interface {
        prefix,
        mtu: attribute(&link, MTU),
        index: found.index,
        loopback: found.is_loopback() || flags(&link).is_some_and(|flags| flags & LOOPBACK != 0),
        up: flags(&link).is_none_or(|flags| flags & UP != 0),
        name: found.name,
    })
}

/// The type of rtnetlink(7) messages that ask for a link, of those that describe one, and of the attribute with the
/// MTU.
const GET_LINK: u16 = 18;
const LINK: u16 = 16;
const MTU: u16 = 4;
/// The flags `IFF_UP` and `IFF_LOOPBACK` of a link.
const UP: u32 = 1;
const LOOPBACK: u32 = 8;
/// Bytes of the two headers of such a message: `nlmsghdr` and `ifinfomsg`.
const MESSAGE: usize = 16;
const LINK_HEADER: usize = 16;

/// What the kernel tells about the interface with this number. The files below /sys do not serve: they show the network
/// namespace in which /sys was mounted, and that may have another interface of the same name.
fn link(index: u32) -> Option<Vec<u8>> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, None).ok()?;
    let mut question = [0; MESSAGE + LINK_HEADER];
    question[..4].copy_from_slice(&((MESSAGE + LINK_HEADER) as u32).to_ne_bytes());
    question[4..6].copy_from_slice(&GET_LINK.to_ne_bytes());
    // NLM_F_REQUEST.
    question[6..8].copy_from_slice(&1_u16.to_ne_bytes());
    question[MESSAGE + 4..MESSAGE + 8].copy_from_slice(&index.to_ne_bytes());
    net::send(&socket, &question, SendFlags::empty()).ok()?;
    // The kernel answers before the call returns.
    let mut answer = vec![0; 1 << 15];
    let (length, _) = net::recv(&socket, &mut answer[..], RecvFlags::empty()).ok()?;
    answer.truncate(length);
    Some(answer)
}

/// The flags in the description of a link.
fn flags(link: &[u8]) -> Option<u32> {
    if u16::from_ne_bytes(*link.get(4..)?.first_chunk()?) != LINK {
        return None;
    }
    Some(u32::from_ne_bytes(*link.get(MESSAGE + 8..)?.first_chunk()?))
}

/// An attribute of 32 bits in the description of a link.
fn attribute(link: &[u8], wanted: u16) -> Option<u32> {
    let two = |at: usize| Some(u16::from_ne_bytes(*link.get(at..)?.first_chunk()?));
    if two(4)? != LINK {
        return None;
    }
    let mut at = MESSAGE + LINK_HEADER;
    loop {
        let (length, kind) = (usize::from(two(at)?), two(at + 2)?);
        if kind == wanted {
            return Some(u32::from_ne_bytes(*link.get(at + 4..)?.first_chunk()?));
        }
        at += length.max(4).next_multiple_of(4);
    }
}

/// The addresses of this host in the family of `ip`, without loopback and link-local addresses.
pub fn addresses(ip: IpAddr) -> io::Result<Vec<IpAddr>> {
    let all = if_addrs::get_if_addrs()?;
    let wanted =
        |i: &if_addrs::Interface| i.ip().is_ipv4() == ip.is_ipv4() && !i.is_loopback() && !i.is_link_local();
    Ok(all.into_iter().filter(wanted).map(|interface| interface.ip()).collect())
}

/// The local addresses from which the system's routes lead to these, each once, in their order.
pub fn local_addresses_towards(to: &[IpAddr]) -> io::Result<Vec<IpAddr>> {
    let mut found = Vec::new();
    for peer in to.iter().map(IpAddr::to_canonical) {
        let source = route(None, None, peer)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mtu_of_an_interface_is_the_kernels() {
        let loopback = of(IpAddr::from([127, 0, 0, 1])).expect("every host has it");
        let shown = std::fs::read_to_string("/sys/class/net/lo/mtu").expect("Linux");
        assert_eq!(loopback.mtu, shown.trim().parse().ok());
        let none = link(u32::MAX >> 1).unwrap_or_default();
        assert_eq!((attribute(&none, MTU), flags(&none)), (None, None), "no such interface");
    }

    #[test]
    fn no_description_of_a_link_is_read_beyond_its_end() {
        let mut link = vec![0; 44];
        link[4..6].copy_from_slice(&LINK.to_ne_bytes());
        // An attribute of another kind with a length of zero, then the MTU.
        link[34..36].copy_from_slice(&9_u16.to_ne_bytes());
        link[36..38].copy_from_slice(&8_u16.to_ne_bytes());
        link[38..40].copy_from_slice(&MTU.to_ne_bytes());
        link[40..44].copy_from_slice(&900_u32.to_ne_bytes());
        link[24..28].copy_from_slice(&(LOOPBACK | 1).to_ne_bytes());
        assert_eq!((attribute(&link, MTU), flags(&link)), (Some(900), Some(LOOPBACK | 1)));
        for length in 0..44 {
            assert_eq!(attribute(&link[..length], MTU), None, "{length}");
            assert_eq!(flags(&link[..length]).is_some(), length >= 28, "{length}");
        }
    }
}
