//! ICMP errors about packets that were sent: the error queue of a socket (ip(7), IP_RECVERR).

use std::io::{self, IoSliceMut};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use anabranch_proto::wire::Quoted;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use socket2::Socket;

/// ICMP, type 3: destination unreachable; code 2: protocol, code 3: port.
const V4: (u8, u8, [u8; 2]) = (2, 3, [2, 3]);
/// ICMPv6, type 1: destination unreachable, code 4: port; type 4, code 1: unknown next header, which is the protocol.
const V6: [(u8, u8, u8); 2] = [(3, 1, 4), (3, 4, 1)];

/// Bytes of control messages: the error, and the data of other socket options (time, TOS, interface).
const CONTROL: usize = 512;

/// An ICMP error reported that SCTP is not reachable at this address of a peer.
pub(crate) struct Unreachable {
    pub(crate) ip: IpAddr,
    pub(crate) port: u16,
    pub(crate) quoted: Quoted,
}

/// Makes the kernel keep errors in the queue of a socket of this address.
pub(crate) fn report(socket: &Socket, ip: IpAddr) -> io::Result<()> {
    match ip {
        IpAddr::V4(_) => setsockopt(socket, sockopt::Ipv4RecvErr, &true)?,
        IpAddr::V6(_) => setsockopt(socket, sockopt::Ipv6RecvErr, &true)?,
    }
    Ok(())
}

/// Takes the next error from the queue; `None` if it is of another kind or concerns no packet of ours.
pub(crate) fn next(socket: BorrowedFd<'_>) -> io::Result<Option<Unreachable>> {
    let mut quoted = [0; 128];
    let mut parts = [IoSliceMut::new(&mut quoted)];
    let mut control = [0; CONTROL];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
    let refused = message.cmsgs()?.any(|message| match message {
        ControlMessageOwned::Ipv4RecvErr(error, _) => {
            (error.ee_origin, error.ee_type) == (V4.0, V4.1) && V4.2.contains(&error.ee_code)
        }
        ControlMessageOwned::Ipv6RecvErr(error, _) => {
            V6.contains(&(error.ee_origin, error.ee_type, error.ee_code))
        }
        _ => false,
    });
    // The destination address of the packet.
    let (to, bytes) = (message.address, message.bytes);
    let place = to.and_then(|to| {
        let v4 = to.as_sockaddr_in().map(|to| (IpAddr::V4(to.ip()), to.port()));
        v4.or_else(|| to.as_sockaddr_in6().map(|to| (IpAddr::V6(to.ip()), to.port())))
    });
    let quoted = Quoted::read(&quoted[..bytes]);
    Ok(place.zip(quoted).filter(|_| refused).map(|((ip, port), quoted)| Unreachable { ip, port, quoted }))
}
