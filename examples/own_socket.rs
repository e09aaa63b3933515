//! The core on sockets of one's own: two UDP sockets of the standard library, one endpoint behind each, and a loop that
//! waits, receives and sends. `anabranch-net` does the same for programs that need more.

#![allow(clippy::disallowed_types, reason = "real networks have real clocks")]

use std::error::Error;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use anabranch_proto::bytes::{Bytes, BytesMut};
use anabranch_proto::wire::{Address, Ecn, Packet};
use anabranch_proto::{
    AssociationId, Config, Duration, Endpoint, Event, Incoming, LocalAddress, Message, Output, Policies, Time,
};

fn main() -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let now = || Time::ZERO + begun.elapsed();
    // A program that others can reach takes its seed from the system: whoever knows it can forge cookies.
    let (mut client, mut server) = (Host::new([1; 32])?, Host::new([2; 32])?);

    let association = client.endpoint.connect(now(), 5000, &[server.address])?;
    let message = Message { payload: Bytes::from_static(b"hello"), ..Message::default() };
    client.endpoint.send(now(), association, message)?;
    client.endpoint.shutdown(now(), association);
    loop {
        for (_, event) in client.turn(now())? {
            println!("client: {event:?}");
            match event {
                Event::Closed => return Ok(()),
                Event::Lost(why) => return Err(why.into()),
                _ => {}
            }
        }
        for (id, event) in server.turn(now())? {
            println!("server: {event:?}");
            while let Some(delivery) = server.endpoint.read(now(), id) {
                println!("{:?}", delivery.into_bytes());
            }
        }
    }
}

/// An endpoint with its socket.
struct Host {
    endpoint: Endpoint,
    socket: UdpSocket,
    address: Address,
}

impl Host {
    fn new(seed: [u8; 32]) -> Result<Host, Box<dyn Error>> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = of(socket.local_addr()?);
        let config = Config { addresses: vec![LocalAddress { address, prefix: 8 }], ..Config::default() };
        Ok(Host { endpoint: Endpoint::new(config, Policies::default(), seed)?, socket, address })
    }

    /// Sends what is due, waits a moment for a packet, and hands it over. Returns the events.
    fn turn(&mut self, now: Time) -> Result<Vec<(AssociationId, Event)>, Box<dyn Error>> {
        let mut events = Vec::new();
        let mut bytes = BytesMut::new();
        let due = loop {
            match self.endpoint.poll(now) {
                Output::Transmit(packet, _) => {
                    bytes.clear();
                    packet.encode(&mut bytes)?;
                    self.socket.send_to(&bytes, SocketAddr::new(packet.to.ip, packet.to.udp))?;
                }
                Output::Event(id, event) => events.push((id, event)),
                Output::Note(_) => {}
                Output::Wait(due) => break due,
            }
        };
        // Both hosts take turns in one thread, so neither waits for long.
        let longest = Duration::from_millis(5);
        let wait = due.map_or(longest, |due| due.since(now).min(longest));
        self.socket.set_read_timeout(Some(wait.max(Duration::from_micros(1))))?;
        let mut buffer = vec![0; 65_535];
        match self.socket.recv_from(&mut buffer) {
            Ok((size, from)) => {
                buffer.truncate(size);
                // What cannot be decoded is dropped, as a packet with a wrong checksum is.
                if let Ok(packet) = Packet::decode(of(from), self.address, Ecn::NotEct, buffer.into()) {
                    self.endpoint.handle(now, Incoming::Packet(Box::new(packet)));
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(events)
    }
}

/// An address of a socket as the core writes it.
fn of(place: SocketAddr) -> Address {
    Address { ip: place.ip(), udp: place.port() }
}
