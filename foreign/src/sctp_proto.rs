//! `sctp-proto`: SCTP in Rust, a translation of `pion/sctp`. It has one path.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_proto::Time;
use anabranch_sim::foreign::{
    ForeignEnd, ForeignOutput, ForeignPacket, ForeignStage, ForeignTransport, Setup,
};
use bytes::Bytes;
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event, Payload,
    PayloadProtocolIdentifier, ServerConfig, TransportConfig,
};

use crate::clock::Epoch;
use crate::sctp::{HEADERS, LARGEST_MESSAGE, Wire, chunks};

const STREAM: u16 = 0;
/// The chunk type.
const SHUTDOWN_COMPLETE: u8 = 14;
/// Bytes that it holds for sending: it has no limit of its own.
const SEND_BUFFER: usize = 1 << 20;

/// The transport.
pub struct SctpProto;

impl ForeignTransport for SctpProto {
    fn name(&self) -> &str {
        "sctp-proto"
    }

    fn version(&self) -> &str {
        "sctp-proto 0.10.8"
    }

    /// It draws its tags and first TSNs from the system.
    fn is_repeatable(&self) -> bool {
        false
    }

    fn is_over_udp(&self) -> bool {
        false
    }

    fn ends(&self, setup: &Setup) -> Result<[Box<dyn ForeignEnd>; 2], String> {
        let epoch = Epoch::new();
        let wires = Wire::pair(setup)?;
        Ok(wires.map(|wire| Box::new(End::new(wire, epoch)) as Box<dyn ForeignEnd>))
    }
}

struct End {
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    leaving: VecDeque<Bytes>,
    wire: Wire,
    epoch: Epoch,
    connected: bool,
    finishing: bool,
    stage: ForeignStage,
}

impl End {
    fn new(wire: Wire, epoch: Epoch) -> Self {
        let mut config = EndpointConfig::new();
        config.max_payload_size(wire.packet - HEADERS);
        let server = (!wire.connects).then(|| {
            let mut server = ServerConfig::new();
            server.transport = Arc::new(transport());
            Arc::new(server)
        });
        End {
            endpoint: Endpoint::new(Arc::new(config), server),
            association: None,
            leaving: VecDeque::new(),
            stage: if wire.connects { ForeignStage::Busy } else { ForeignStage::Idle },
            wire,
            epoch,
            connected: false,
            finishing: false,
        }
    }

    /// Lets time pass, and takes what the endpoint and its association have to say.
    fn drain(&mut self, now: Time) {
        let now = self.epoch.instant(now);
        while let Some(transmit) = self.endpoint.poll_transmit() {
            self.leaving.extend(raw(transmit.payload));
        }
        let Some((_, association)) = &mut self.association else { return };
        while association.poll_timeout().is_some_and(|due| due <= now) {
            association.handle_timeout(now);
        }
        while let Some(event) = association.poll() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    if self.wire.connects {
                        let opened = association.open_stream(STREAM, PayloadProtocolIdentifier::Binary);
                        self.stage = if opened.is_ok() { ForeignStage::Busy } else { ForeignStage::Lost };
                    }
                }
                Event::HandshakeFailed { .. } => self.stage = ForeignStage::Lost,
                Event::AssociationLost { .. } if self.stage == ForeignStage::Busy => {
                    self.stage = ForeignStage::Lost;
                }
                _ => {}
            }
        }
        self.shut_down();
        let Some((_, association)) = &mut self.association else { return };
        while let Some(transmit) = association.poll_transmit(now) {
            self.leaving.extend(raw(transmit.payload));
        }
    }

    /// Shuts the association down when everything is acknowledged: it does not wait for that itself.
    fn shut_down(&mut self) {
        let Some((_, association)) = &mut self.association else { return };
        let waits = |association: &mut Association| {
            association.stream(STREAM).and_then(|stream| stream.buffered_amount()).unwrap_or(0) > 0
        };
        if self.finishing && self.connected && !waits(association) && association.shutdown().is_ok() {
            self.finishing = false;
        }
        if association.is_closed() && !self.finishing && self.stage == ForeignStage::Busy {
            self.stage = ForeignStage::Closed;
        }
    }

    fn read(&mut self) -> Option<usize> {
        let (_, association) = self.association.as_mut()?;
        let chunks = association.stream(STREAM).ok()?.read_sctp().ok()??;
        Some(chunks.len())
    }
}

fn transport() -> TransportConfig {
    TransportConfig::default().with_max_send_message_size(LARGEST_MESSAGE as u32)
}

fn raw(payload: Payload) -> Vec<Bytes> {
    match payload {
        Payload::RawEncode(packets) => packets,
        Payload::PartialDecode(_) => Vec::new(),
    }
}

impl ForeignEnd for End {
    fn message_size(&self) -> u32 {
        self.wire.packet - HEADERS
    }

    fn start(&mut self, _: Time) {
        if self.wire.connects {
            let mut config = ClientConfig::new();
            config.transport = Arc::new(transport());
            match self.endpoint.connect(config, self.wire.to) {
                Ok(begun) => self.association = Some(begun),
                Err(_) => self.stage = ForeignStage::Lost,
            }
        }
    }

    fn handle(&mut self, now: Time, packet: ForeignPacket) {
        let instant = self.epoch.instant(now);
        match self.endpoint.handle(instant, packet.from, Some(packet.to.ip()), None, packet.bytes) {
            Some((handle, DatagramEvent::NewAssociation(made))) => {
                self.association = Some((handle, made));
                self.stage = ForeignStage::Busy;
            }
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some((_, association)) = &mut self.association {
                    association.handle_event(event);
                }
            }
            None => {}
        }
    }

    fn send(&mut self, _: Time, message: &Bytes) -> bool {
        let Some((_, association)) = self.association.as_mut().filter(|_| self.connected) else {
            return false;
        };
        let Ok(mut stream) = association.stream(STREAM) else { return false };
        let held = stream.buffered_amount().unwrap_or(usize::MAX);
        held.saturating_add(message.len()) <= SEND_BUFFER
            && stream.write_sctp(message, PayloadProtocolIdentifier::Binary).is_ok()
    }

    fn finish(&mut self, _: Time) {
        self.finishing = true;
    }

    fn poll(&mut self, now: Time) -> ForeignOutput {
        self.drain(now);
        if let Some(bytes) = self.leaving.pop_front() {
            // It stays in its state behind a SHUTDOWN COMPLETE of its own.
            if chunks(&bytes).any(|kind| kind == SHUTDOWN_COMPLETE) {
                self.stage = ForeignStage::Closed;
            }
            return self.wire.transmit(bytes);
        }
        if let Some(bytes) = self.read() {
            return ForeignOutput::Read(bytes);
        }
        let due = self.association.as_ref().and_then(|(_, association)| association.poll_timeout());
        ForeignOutput::Wait(due.map(|due| self.epoch.time(due)))
    }

    fn stage(&self) -> ForeignStage {
        self.stage
    }
}
