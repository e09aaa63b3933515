//! Two endpoints of `sctp-proto`, as it is published.
//!
//! Asked for packets after each datagram it looks through all that is in flight each time. Its best case is to
//! be asked once for all datagrams that arrive together, at the price of fewer SACKs: both are measured.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event, Payload,
    PayloadProtocolIdentifier, ServerConfig,
};

use crate::{MESSAGE, SEND_BUFFER};

const STREAM: u16 = 0;

pub struct Pair {
    ends: [End; 2],
    now: Instant,
    /// Asks for packets after each datagram.
    each: bool,
    packets: u64,
}

struct End {
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    leaving: VecDeque<Bytes>,
    connected: bool,
    read: u64,
}

impl Pair {
    pub fn new(each: bool) -> Self {
        let now = Instant::now();
        let config = Arc::new(EndpointConfig::new());
        let mut client = End::new(Endpoint::new(Arc::clone(&config), None));
        let server = End::new(Endpoint::new(config, Some(Arc::new(ServerConfig::new()))));
        let up = client.endpoint.connect(ClientConfig::new(), address(1)).expect("it can be begun");
        client.association = Some(up);
        client.drain(now);
        let mut pair = Pair { ends: [client, server], now, each, packets: 0 };
        crate::Pair::exchange(&mut pair);
        assert!(pair.ends.iter().all(|end| end.connected), "both are up");
        let (_, association) = pair.ends[0].association.as_mut().expect("it is up");
        association.open_stream(STREAM, PayloadProtocolIdentifier::Binary).expect("a new stream");
        pair
    }
}

impl Pair {
    /// Everything that is on its way to this side arrives.
    fn carry(&mut self, side: usize) {
        let (now, from) = (self.now, address(1 - side));
        let arriving = std::mem::take(&mut self.ends[1 - side].leaving);
        self.packets += arriving.len() as u64;
        for bytes in arriving {
            self.ends[side].arrive(from, bytes, now);
            if self.each {
                self.ends[side].drain(now);
            }
        }
        self.ends[side].drain(now);
    }
}

impl End {
    fn new(endpoint: Endpoint) -> Self {
        End { endpoint, association: None, leaving: VecDeque::new(), connected: false, read: 0 }
    }

    fn arrive(&mut self, from: SocketAddr, bytes: Bytes, now: Instant) {
        match self.endpoint.handle(now, from, None, None, bytes) {
            Some((handle, DatagramEvent::NewAssociation(made))) => self.association = Some((handle, made)),
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                let (_, association) = self.association.as_mut().expect("it is known");
                association.handle_event(event);
            }
            None => {}
        }
    }

    /// Takes what the endpoint and its association have to say, and reads what has arrived.
    fn drain(&mut self, now: Instant) {
        while let Some(transmit) = self.endpoint.poll_transmit() {
            self.leaving.extend(raw(transmit.payload));
        }
        let Some((handle, association)) = &mut self.association else { return };
        while let Some(event) = association.poll() {
            self.connected |= matches!(event, Event::Connected);
        }
        while let Some(chunks) =
            association.stream(STREAM).ok().and_then(|mut s| s.read_sctp().ok().flatten())
        {
            assert_eq!(chunks.len(), MESSAGE.len());
            self.read += 1;
        }
        while let Some(event) = association.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
        while let Some(transmit) = association.poll_transmit(now) {
            self.leaving.extend(raw(transmit.payload));
        }
    }
}

impl crate::Pair for Pair {
    fn fill(&mut self, most: u64) -> u64 {
        let end = &mut self.ends[0];
        let (_, association) = end.association.as_mut().expect("it is up");
        let mut stream = association.stream(STREAM).expect("it was opened");
        let mut taken = 0;
        while taken < most
            && stream.buffered_amount().expect("it is open") + MESSAGE.len() <= SEND_BUFFER as usize
        {
            stream.write_sctp(&MESSAGE, PayloadProtocolIdentifier::Binary).expect("it is open");
            taken += 1;
        }
        end.drain(self.now);
        taken
    }

    fn exchange(&mut self) -> u64 {
        let before = self.ends[1].read;
        while !self.ends.iter().all(|end| end.leaving.is_empty()) {
            for side in 0..2 {
                self.carry(side);
            }
        }
        self.ends[1].read - before
    }

    fn wait(&mut self) {
        let timers = self.ends.iter().filter_map(|end| end.association.as_ref()?.1.poll_timeout());
        self.now = timers.min().expect("a timer");
        for end in &mut self.ends {
            if let Some((_, association)) = &mut end.association {
                association.handle_timeout(self.now);
            }
            end.drain(self.now);
        }
    }

    fn packets(&self) -> u64 {
        self.packets
    }
}

fn raw(payload: Payload) -> Vec<Bytes> {
    match payload {
        Payload::RawEncode(packets) => packets,
        Payload::PartialDecode(_) => Vec::new(),
    }
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + side as u8], 9899))
}
