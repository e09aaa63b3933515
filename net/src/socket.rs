//! One socket for one local address.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket as StdSocket};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use anabranch_proto::wire::{Address, Copies, DecodeError, Ecn, Packet, Quoted};
use bytes::{Bytes, BytesMut};
use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::io::Errno;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::errors::{self, Unreachable};
use crate::gather::{Manner, Run};
use crate::interface::Interface;
use crate::options::Carrier;
use crate::report::Device;

/// The protocol number of SCTP on IP.
const SCTP: i32 = 132;
/// The requested size of the kernel's buffers in each direction; the system may grant less.
const BUFFER: usize = 4 << 20;
/// The number of errors of earlier packets that a receiving call may return before it returns packets.
const PENDING_ERRORS: usize = 8;
/// The largest number of datagrams per receiving system call. Each may be many packets that the kernel has joined.
const BATCH: usize = 8;
/// Bytes of a buffer: the largest datagram.
const BUFFER_SIZE: usize = 1 << 16;
/// The largest number of buffers that are lent.
const MOST_LENT: usize = 32;

pub(crate) struct Socket {
    raw: bool,
    pub(crate) address: Address,
    /// Another one after the interface of the address was replaced.
    open: Mutex<Arc<Open>>,
}

/// An open socket of the system.
pub(crate) struct Open {
    io: UdpSocket,
    state: Mutex<UdpSocketState>,
    pub(crate) device: Device,
    /// The number of the interface that it is bound to.
    bound_to: Option<u32>,
}

/// The outcome of sending a run of packets.
pub(crate) enum Sent {
    Done,
    /// The socket accepts no packets now.
    Full,
    /// The packets are lost, as on any network.
    Lost,
    /// The kernel cannot cut runs for this destination: one packet at a time.
    NoRuns,
    /// No packet can leave from this address: its interface is down or gone.
    Unreachable,
}

impl Socket {
    /// A socket of `ip`, bound to the interface if there is one.
    pub(crate) fn new(ip: IpAddr, carrier: Carrier, interface: Option<&Interface>) -> io::Result<Socket> {
        let open = Open::new(ip, carrier, interface)?;
        let raw = carrier == Carrier::Raw;
        let udp = if raw { 0 } else { open.io.local_addr()?.port() };
        Ok(Socket { raw, address: Address { ip, udp }, open: Mutex::new(Arc::new(open)) })
    }

    /// The socket as it is now.
    pub(crate) fn open(&self) -> Arc<Open> {
        Arc::clone(&self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the socket anew if it is bound to another interface than this one, which has its address now: an interface
    /// that was removed and made again is another one for the system, also under the same name. Returns whether it did.
    pub(crate) fn follow(&self, interface: &Interface) -> io::Result<bool> {
        if self.open().bound_to.is_none_or(|index| Some(index) == interface.index) {
            return Ok(false);
        }
        let carrier = if self.raw { Carrier::Raw } else { Carrier::Udp(self.address.udp) };
        let open = Arc::new(Open::new(self.address.ip, carrier, Some(interface))?);
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = open;
        Ok(true)
    }

    /// The largest number of packets in a run.
    pub(crate) fn most(&self) -> usize {
        if self.raw { 1 } else { self.open().state().max_gso_segments() }
    }

    /// Hands a run of packets to the kernel.
    pub(crate) fn send(&self, run: &Run, contents: &[u8]) -> Sent {
        let open = self.open();
        if run.manner != Manner::Fragmented {
            return open.send_whole(run, contents);
        }
        // This is rare: a packet that was built before a smaller path MTU was found.
        open.allow_fragments(self.address.ip, true);
        let sent = open.send_whole(run, contents);
        open.allow_fragments(self.address.ip, false);
        sent
    }

    /// Receives datagrams with one system call, and passes each to `take`; `None` if there are none.
    pub(crate) fn receive(&self, buffers: &mut Buffers, mut take: impl FnMut(&Datagram<'_>)) -> Option<()> {
        let open = self.open();
        let mut meta = [RecvMeta::default(); BATCH];
        let mut slices = buffers.slices();
        let mut receive = || open.state().recv(UdpSockRef::from(&open.io), &mut slices, &mut meta);
        let received =
            (0..PENDING_ERRORS).find_map(|_| match open.io.try_io(Interest::READABLE, &mut receive) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => None,
                other => Some(other),
            });
        let datagrams = received?.ok()?;
        for (index, meta) in meta.iter().enumerate().take(datagrams) {
            let lent = buffers.lend(index, meta.len);
            take(&Datagram {
                from: Address { ip: meta.addr.ip(), udp: if self.raw { 0 } else { meta.addr.port() } },
                to: self.address,
                ecn: ecn(meta.ecn),
                bytes: lent.as_ref().map_or(&buffers.ready[index][..meta.len], |lent| &lent[..meta.len]),
                lent: lent.as_ref(),
                stride: meta.stride.max(1),
                // Only a raw IPv4 socket also delivers the IP header.
                with_header: self.raw && self.address.ip.is_ipv4(),
            });
        }
        Some(())
    }

    /// Takes the next ICMP error: the peer address at which SCTP is not reachable, and the quoted packet.
    pub(crate) fn take_errors(&self, mut take: impl FnMut(Address, Quoted)) {
        let open = self.open();
        // This costs no system call if there are no errors.
        while let Ok(error) = open.io.try_io(Interest::ERROR, || errors::next(open.io.as_fd())) {
            let Some(Unreachable { ip, port, quoted }) = error else { continue };
            take(Address { ip, udp: if self.raw { 0 } else { port } }, quoted);
        }
    }
}

impl Open {
    fn new(ip: IpAddr, carrier: Carrier, interface: Option<&Interface>) -> io::Result<Open> {
        let domain = Domain::for_address(SocketAddr::new(ip, 0));
        let (socket, port) = match carrier {
            Carrier::Udp(port) => (RawSocket::new(domain, Type::DGRAM, Some(Protocol::UDP))?, port),
            Carrier::Raw => (RawSocket::new(domain, Type::RAW, Some(Protocol::from(SCTP)))?, 0),
        };
        if ip.is_ipv6() && carrier != Carrier::Raw {
            socket.set_only_v6(true)?;
        }
        // Larger buffers are better, but smaller ones work.
        let _ = socket.set_recv_buffer_size(BUFFER);
        let _ = socket.set_send_buffer_size(BUFFER);
        let device = bind_device(&socket, interface);
        socket.bind(&SocketAddr::new(ip, port).into())?;
        socket.set_nonblocking(true)?;
        errors::report(&socket, ip)?;
        let io = UdpSocket::from_std(StdSocket::from(socket))?;
        let state = Mutex::new(state(&io, ip)?);
        let bound_to = interface.and_then(|bound| bound.index).filter(|_| matches!(device, Device::Bound(_)));
        Ok(Open { io, state, device, bound_to })
    }

    fn state(&self) -> MutexGuard<'_, UdpSocketState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a refused call, `UdpSocketState` writes no ECN code points into IPv4 headers any more: it takes the kernel
    /// for one that cannot. Here the run was at fault.
    fn forget_refusal(&self, ip: IpAddr) {
        if let Ok(fresh) = state(&self.io, ip) {
            *self.state() = fresh;
        }
    }

    /// The name of the interface that the socket is bound to.
    pub(crate) fn bound(&self) -> Option<&str> {
        match &self.device {
            Device::Bound(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
        self.io.poll_recv_ready(context).map(|_| ())
    }

    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<()> {
        self.io.poll_send_ready(context).map(|_| ())
    }

    /// Allows or forbids IP to fragment packets of this socket. On an error nothing changes.
    fn allow_fragments(&self, ip: IpAddr, allow: bool) {
        let _ = match (ip, allow) {
            (IpAddr::V4(_), true) => set_ip_mtu_discover(&self.io, Ipv4PathMtuDiscovery::DONT),
            (IpAddr::V4(_), false) => set_ip_mtu_discover(&self.io, Ipv4PathMtuDiscovery::PROBE),
            (IpAddr::V6(_), true) => set_ipv6_mtu_discover(&self.io, Ipv6PathMtuDiscovery::DONT),
            (IpAddr::V6(_), false) => set_ipv6_mtu_discover(&self.io, Ipv6PathMtuDiscovery::PROBE),
        };
    }

    /// A call that fails because of an earlier packet, which ICMP reports only now, is repeated.
    fn send_whole(&self, run: &Run, contents: &[u8]) -> Sent {
        match self.send_once(run, contents) {
            Sent::Lost | Sent::Unreachable => self.send_once(run, contents),
            sent => sent,
        }
    }

    fn send_once(&self, run: &Run, contents: &[u8]) -> Sent {
        let segment_size = (contents.len() > run.size).then_some(run.size);
        let ecn = code_point(run.ecn);
        let transmit = Transmit { destination: run.to, ecn, contents, segment_size, src_ip: None };
        let socket = UdpSockRef::from(&self.io);
        let sent = self.io.try_io(Interest::WRITABLE, || self.state().try_send(socket, &transmit));
        match sent {
            Ok(()) => Sent::Done,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Sent::Full,
            Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(
                    Errno::NETUNREACH
                    | Errno::NETDOWN
                    | Errno::ADDRNOTAVAIL
                    | Errno::NODEV
                    | Errno::HOSTUNREACH,
                ) => Sent::Unreachable,
                // UDP_SEGMENT is refused by some devices, and for packets that are larger than the MTU.
                Some(Errno::IO | Errno::INVAL) if segment_size.is_some() => {
                    self.forget_refusal(run.to.ip());
                    Sent::NoRuns
                }
                _ => Sent::Lost,
            },
        }
    }

    /// Waits until ICMP has reported an error about a sent packet.
    pub(crate) async fn failed(&self) {
        // The wait itself fails only when the runtime ends.
        let _ = self.io.ready(Interest::ERROR).await;
    }
}

/// What has arrived: packets of one size, which the kernel has joined; the last may be shorter.
pub(crate) struct Datagram<'a> {
    from: Address,
    to: Address,
    ecn: Ecn,
    bytes: &'a [u8],
    /// The buffer, if the packets may keep parts of it.
    lent: Option<&'a Bytes>,
    /// The size of a packet.
    stride: usize,
    /// Whether it begins with the IP header.
    with_header: bool,
}

impl<'a> Datagram<'a> {
    /// The bytes of each packet.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let with_header = self.with_header;
        self.bytes.chunks(self.stride).map(move |bytes| match with_header {
            true => bytes.get(usize::from(bytes.first().unwrap_or(&0) & 15) * 4..).unwrap_or_default(),
            false => bytes,
        })
    }

    /// Whether it came directly on IP, without UDP.
    pub(crate) fn is_raw(&self) -> bool {
        self.to.udp == 0
    }

    /// Decodes one of its packets.
    pub(crate) fn decode(&self, bytes: &[u8], into: &mut Packet, copies: &Copies) -> Result<(), DecodeError> {
        match self.lent {
            Some(buffer) => into.decode_into(self.from, self.to, self.ecn, bytes, buffer),
            None => into.decode_copied(self.from, self.to, self.ecn, bytes, copies),
        }
    }
}

/// Buffers for system calls.
pub(crate) struct Buffers {
    ready: Vec<BytesMut>,
    /// Buffers of which payloads are parts that were perhaps not read yet. They are asked in turn.
    lent: VecDeque<Bytes>,
    /// Buffers that are not lent any more. The last one was in use until just now, so the cache may still hold it.
    idle: Vec<BytesMut>,
}

impl Buffers {
    pub(crate) fn new() -> Buffers {
        Buffers { ready: vec![BytesMut::zeroed(BUFFER_SIZE); BATCH], lent: VecDeque::new(), idle: Vec::new() }
    }

    fn slices(&mut self) -> [IoSliceMut<'_>; BATCH] {
        let mut buffers = self.ready.iter_mut();
        std::array::from_fn(|_| IoSliceMut::new(buffers.next().map_or(&mut [], |buffer| buffer)))
    }

    /// Lends a buffer that holds so many bytes, so that they need not be copied. `None` if it is rather empty, or too
    /// many are lent: payloads that are not read keep at most `MOST_LENT` buffers.
    fn lend(&mut self, index: usize, len: usize) -> Option<Bytes> {
        if len < BUFFER_SIZE / 2 {
            return None;
        }
        while let Some(oldest) = self.lent.pop_front() {
            match oldest.try_into_mut() {
                Ok(read) => self.idle.push(read),
                Err(held) => {
                    self.lent.push_back(held);
                    break;
                }
            }
        }
        let next = match self.idle.pop() {
            Some(read) => read,
            None if self.lent.len() >= MOST_LENT => return None,
            None => BytesMut::zeroed(BUFFER_SIZE),
        };
        let buffer = std::mem::replace(&mut self.ready[index], next).freeze();
        self.lent.push_back(buffer.clone());
        Some(buffer)
    }
}

fn state(io: &UdpSocket, ip: IpAddr) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(UdpSockRef::from(io))?;
    tell_less(io, ip);
    Ok(state)
}

/// Asks the kernel not to write beside each datagram when it arrived and to which address, as `UdpSocketState` wants
/// it. Nothing here reads that; if the kernel writes it all the same, it costs a little time.
fn tell_less(io: &UdpSocket, ip: IpAddr) {
    let _ = setsockopt(io, sockopt::ReceiveTimestampns, &false);
    let _ = match ip {
        IpAddr::V4(_) => setsockopt(io, sockopt::Ipv4PacketInfo, &false),
        IpAddr::V6(_) => setsockopt(io, sockopt::Ipv6RecvPacketInfo, &false),
    };
}

fn bind_device(socket: &RawSocket, interface: Option<&Interface>) -> Device {
    let Some(interface) = interface.filter(|interface| !interface.loopback) else { return Device::Any };
    match socket.bind_device(Some(interface.name.as_bytes())) {
        Ok(()) => Device::Bound(interface.name.clone()),
        Err(error) => Device::Refused(interface.name.clone(), error.to_string()),
    }
}

fn code_point(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

fn ecn(code: Option<EcnCodepoint>) -> Ecn {
    match code {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn full_buffers_are_lent_and_used_again_when_they_were_read() {
        let mut buffers = Buffers::new();
        assert!(buffers.lend(0, BUFFER_SIZE / 2 - 1).is_none(), "a few bytes would keep a buffer");
        let held: Vec<Bytes> = (0..MOST_LENT).map_while(|_| buffers.lend(0, BUFFER_SIZE)).collect();
        assert_eq!(held.len(), MOST_LENT);
        assert!(buffers.lend(0, BUFFER_SIZE).is_none(), "nobody has read");
        let places: Vec<*const u8> = held.iter().map(|buffer| buffer.as_ptr()).collect();
        drop(held);
        assert!(buffers.lend(0, BUFFER_SIZE).is_some());
        assert!(places.contains(&buffers.ready[0].as_ptr()) && buffers.ready[0].len() == BUFFER_SIZE);
        assert_eq!(buffers.lent.len() + buffers.idle.len(), MOST_LENT);
    }

    /// A run that the kernel refuses leaves ECN as it was.
    #[tokio::test]
    async fn packets_after_a_refused_run_say_the_same_about_congestion() {
        for ip in [IpAddr::from([127, 0, 0, 1]), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            let [from, to] = [(); 2].map(|()| Socket::new(ip, Carrier::Udp(0), None).expect("a socket"));
            let place = SocketAddr::new(ip, to.address.udp);
            std::future::poll_fn(|context| from.open().poll_writable(context)).await;
            let run = |packets: usize| {
                let (size, manner, ecn) = (10, Manner::Together, Ecn::Ect0);
                (Run { to: place, size, len: packets * size, packets, manner, ecn }, vec![0; packets * size])
            };
            let (many, bytes) = run(1000);
            assert!(matches!(from.send(&many, &bytes), Sent::NoRuns), "the kernel cuts fewer");
            let (one, bytes) = run(1);
            assert!(matches!(from.send(&one, &bytes), Sent::Done));
            let mut heard = Vec::new();
            let mut buffers = Buffers::new();
            while heard.is_empty() {
                std::future::poll_fn(|context| to.open().poll_readable(context)).await;
                to.receive(&mut buffers, |datagram| heard.push(datagram.ecn));
            }
            assert_eq!(heard, [Ecn::Ect0], "{ip}");
        }
    }
}
