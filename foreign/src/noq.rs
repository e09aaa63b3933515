//! `noq-proto`: QUIC with several paths (draft-ietf-quic-multipath), a descendant of `quinn-proto`.
//!
//! Messages are written to one stream, one behind the other. Every pair of addresses that the scenario pairs becomes a
//! path.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use anabranch_proto::Time;
use anabranch_sim::foreign::{
    ForeignEnd, ForeignOutput, ForeignPacket, ForeignStage, ForeignTransport, Setup,
};
use bytes::{Bytes, BytesMut};
use noq_proto::rustls::RootCertStore;
use noq_proto::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, FourTuple, PathStatus, ServerConfig, StreamEvent, StreamId, Transmit,
    TransportConfig, VarInt,
};

use crate::clock::Epoch;

/// The smallest packet that QUIC may be limited to (RFC 9000 section 14).
const SMALLEST: u32 = 1200;
/// Bytes of a packet with one STREAM frame that are not user data: 1 + 8 of the header, up to 4 of the packet number,
/// 16 of the tag, and up to 15 of the frame's header.
const HEADERS: u32 = 44;
/// The name in the certificate.
const HOST: &str = "localhost";

/// The transport.
pub struct Noq;

impl ForeignTransport for Noq {
    fn name(&self) -> &str {
        "noq"
    }

    fn version(&self) -> &str {
        "noq-proto 1.4.0"
    }

    /// Its keys are new each time, but neither the sizes nor the times of its packets depend on them.
    fn is_repeatable(&self) -> bool {
        true
    }

    fn is_over_udp(&self) -> bool {
        true
    }

    fn ends(&self, setup: &Setup) -> Result<[Box<dyn ForeignEnd>; 2], String> {
        if setup.packet < SMALLEST {
            return Err(format!("QUIC needs room for {SMALLEST} bytes behind the headers of IP and UDP"));
        }
        let credentials = Credentials::new().map_err(|error| format!("no certificate: {error}"))?;
        let epoch = Epoch::new();
        let (first, others) = setup.paths.split_first().ok_or("there is no path")?;
        let pair =
            |&(client, server): &(usize, usize)| (setup.addresses[0][client], setup.addresses[1][server]);
        let config = Arc::new(transport(setup));
        let endpoint = |seed, server| {
            let mut config = EndpointConfig::default();
            config.rng_seed(Some(seed));
            Endpoint::new(Arc::new(config), server, false)
        };
        let mut server = credentials.server;
        server.transport_config(Arc::clone(&config));
        let mut client = credentials.client;
        client.transport_config(config);
        let addresses = |side: usize| setup.addresses[side].clone();
        let others = others.iter().map(pair).collect();
        let [one, two] = setup.seeds;
        let connecting = Connecting { config: client, to: pair(first).1 };
        Ok([
            Box::new(End::new(
                endpoint(one, None),
                Some(connecting),
                addresses(0),
                others,
                pair(first).0,
                setup,
                epoch,
            )),
            Box::new(End::new(
                endpoint(two, Some(Arc::new(server))),
                None,
                addresses(1),
                Vec::new(),
                pair(first).1,
                setup,
                epoch,
            )),
        ])
    }
}

/// As published, but packets have the size of the link from the beginning, as with the other stacks.
fn transport(setup: &Setup) -> TransportConfig {
    let size = u16::try_from(setup.packet).unwrap_or(u16::MAX);
    let mut config = TransportConfig::default();
    config.initial_mtu(size).min_mtu(size).mtu_discovery_config(None);
    if setup.paths.len() > 1 {
        config.max_concurrent_multipath_paths(setup.paths.len() as u32);
    }
    config
}

/// What both ends need for the handshake: a certificate signed by itself.
struct Credentials {
    client: ClientConfig,
    server: ServerConfig,
}

impl Credentials {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        // The signatures of this algorithm have one size, so that packets have the same size each time.
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
        let mut parameters = rcgen::CertificateParams::new([HOST.to_owned()])?;
        parameters.serial_number = Some(1_u64.into());
        let certificate = CertificateDer::from(parameters.self_signed(&key)?);
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone())?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Credentials {
            client: ClientConfig::with_root_certificates(Arc::new(roots))?,
            server: ServerConfig::with_single_cert(vec![certificate], key.into())?,
        })
    }
}

struct Connecting {
    config: ClientConfig,
    to: SocketAddr,
}

struct End {
    endpoint: Endpoint,
    connecting: Option<Connecting>,
    connection: Option<(ConnectionHandle, Connection)>,
    leaving: VecDeque<ForeignPacket>,
    buffer: Vec<u8>,
    /// Its addresses, and that from which packets leave unless the connection names another.
    addresses: Vec<SocketAddr>,
    default: SocketAddr,
    /// Paths that are to be opened.
    unopened: Vec<(SocketAddr, SocketAddr)>,
    stream: Option<StreamId>,
    /// STREAM frames sent so far.
    frames: u64,
    /// The rest of a message of which a part was taken.
    rest: usize,
    finishing: bool,
    stage: ForeignStage,
    packet: u32,
    epoch: Epoch,
}

impl End {
    fn new(
        endpoint: Endpoint,
        connecting: Option<Connecting>,
        addresses: Vec<SocketAddr>,
        unopened: Vec<(SocketAddr, SocketAddr)>,
        default: SocketAddr,
        setup: &Setup,
        epoch: Epoch,
    ) -> Self {
        End {
            endpoint,
            stage: if connecting.is_some() { ForeignStage::Busy } else { ForeignStage::Idle },
            connecting,
            connection: None,
            leaving: VecDeque::new(),
            buffer: Vec::new(),
            addresses,
            default,
            unopened,
            stream: None,
            frames: 0,
            rest: 0,
            finishing: false,
            packet: setup.packet,
            epoch,
        }
    }

    /// Takes the packet in the buffer.
    fn leaves(&mut self, transmit: &Transmit, has_data: bool) {
        let ip: IpAddr = transmit.src_ip.unwrap_or(self.default.ip());
        let from = self.addresses.iter().find(|address| address.ip() == ip).copied().unwrap_or(self.default);
        let bytes = Bytes::copy_from_slice(&self.buffer[..transmit.size]);
        self.buffer.clear();
        self.leaving.push_back(ForeignPacket { from, to: transmit.destination, bytes, has_data });
    }

    /// Lets time pass, and takes what the connection has to say.
    fn drain(&mut self, now: Time) {
        let now = self.epoch.instant(now);
        while let Some((handle, connection)) = &mut self.connection {
            if connection.poll_timeout().is_some_and(|due| due <= now) {
                connection.handle_timeout(now);
                continue;
            }
            if let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
                continue;
            }
            if let Some(event) = connection.poll() {
                self.happened(event, now);
                continue;
            }
            let Some(transmit) = connection.poll_transmit(now, NonZeroUsize::MIN, &mut self.buffer) else {
                break;
            };
            let frames = connection.stats().frame_tx.stream;
            let has_data = frames > self.frames;
            self.frames = frames;
            self.leaves(&transmit, has_data);
        }
    }

    fn happened(&mut self, event: Event, now: std::time::Instant) {
        let Some((_, connection)) = &mut self.connection else { return };
        match event {
            Event::Connected if self.connecting.is_some() => {
                self.stream = connection.streams().open(Dir::Uni)
            }
            Event::Stream(StreamEvent::Opened { dir }) => self.stream = connection.streams().accept(dir),
            // Everything was acknowledged.
            Event::Stream(StreamEvent::Finished { .. }) => {
                connection.close(now, VarInt::from_u32(0), Bytes::new());
                self.stage = ForeignStage::Closed;
            }
            Event::ConnectionLost { reason } if self.stage == ForeignStage::Busy => {
                self.stage = match reason {
                    ConnectionError::ApplicationClosed(_) => ForeignStage::Closed,
                    _ => ForeignStage::Lost,
                };
            }
            _ => {}
        }
        self.open_paths(now);
    }

    /// Opens the paths for which the peer has given connection identifiers.
    fn open_paths(&mut self, now: std::time::Instant) {
        let Some((_, connection)) = &mut self.connection else { return };
        self.unopened.retain(|(from, to)| {
            let tuple = FourTuple::new(*to, Some(from.ip()));
            connection.open_path(tuple, PathStatus::Available, now).is_err()
        });
    }

    fn read(&mut self) -> Option<usize> {
        let (stream, (_, connection)) = (self.stream?, self.connection.as_mut()?);
        if self.connecting.is_some() {
            return None;
        }
        let mut stream = connection.recv_stream(stream);
        let mut chunks = stream.read(true).ok()?;
        let chunk = chunks.next(usize::MAX).ok()?;
        let _ = chunks.finalize();
        chunk.map(|chunk| chunk.bytes.len())
    }
}

impl ForeignEnd for End {
    fn message_size(&self) -> u32 {
        self.packet - HEADERS
    }

    fn start(&mut self, now: Time) {
        let Some(Connecting { config, to }) = &self.connecting else { return };
        match self.endpoint.connect(self.epoch.instant(now), config.clone(), *to, HOST) {
            Ok(begun) => self.connection = Some(begun),
            Err(_) => self.stage = ForeignStage::Lost,
        }
    }

    fn handle(&mut self, now: Time, packet: ForeignPacket) {
        let instant = self.epoch.instant(now);
        let tuple = FourTuple::new(packet.from, Some(packet.to.ip()));
        let bytes = BytesMut::from(&packet.bytes[..]);
        match self.endpoint.handle(instant, tuple, None, bytes, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                    self.open_paths(instant);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, instant, &mut self.buffer, None) {
                    Ok(made) => (self.connection, self.stage) = (Some(made), ForeignStage::Busy),
                    Err(_) => self.stage = ForeignStage::Lost,
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.leaves(&transmit, false),
            None => {}
        }
    }

    fn send(&mut self, _: Time, message: &Bytes) -> bool {
        let (Some(stream), Some((_, connection))) = (self.stream, &mut self.connection) else { return false };
        // Of a message of which a part was taken before, the rest is at its end.
        let rest = if self.rest == 0 { message.len() } else { self.rest };
        let taken = connection.send_stream(stream).write(&message[message.len() - rest..]).unwrap_or(0);
        self.rest = rest - taken;
        self.rest == 0
    }

    fn finish(&mut self, _: Time) {
        if let (Some(stream), Some((_, connection))) = (self.stream, &mut self.connection) {
            self.finishing = connection.send_stream(stream).finish().is_err();
        }
    }

    fn poll(&mut self, now: Time) -> ForeignOutput {
        self.drain(now);
        if let Some(packet) = self.leaving.pop_front() {
            return ForeignOutput::Transmit(packet);
        }
        if let Some(bytes) = self.read() {
            return ForeignOutput::Read(bytes);
        }
        let due = self.connection.as_ref().and_then(|(_, connection)| connection.poll_timeout());
        ForeignOutput::Wait(due.map(|due| self.epoch.time(due)))
    }

    fn stage(&self) -> ForeignStage {
        self.stage
    }
}
