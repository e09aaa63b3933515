//! `dcsctp`: SCTP in Rust, written for data channels of WebRTC. It has one path.

use std::collections::BTreeSet;

use anabranch_proto::Time;
use anabranch_sim::foreign::{
    ForeignEnd, ForeignOutput, ForeignPacket, ForeignStage, ForeignTransport, Setup,
};
use bytes::Bytes;
use dcsctp::api::{
    DcSctpSocket, LifecycleId, Message, Options, PpId, SendError, SendOptions, SocketEvent, SocketTime,
    StreamId,
};

use crate::sctp::{HEADERS, LARGEST_MESSAGE, Wire};

/// The transport.
pub struct Dcsctp;

impl ForeignTransport for Dcsctp {
    fn name(&self) -> &str {
        "dcsctp"
    }

    fn version(&self) -> &str {
        "dcsctp 0.1.16"
    }

    /// It draws its tags and first TSNs from `fastrand`, whose generator of this thread is seeded for each run.
    fn is_repeatable(&self) -> bool {
        true
    }

    fn is_over_udp(&self) -> bool {
        false
    }

    fn ends(&self, setup: &Setup) -> Result<[Box<dyn ForeignEnd>; 2], String> {
        let [seed, ..] = setup.seeds;
        fastrand::seed(u64::from_le_bytes(seed[..8].try_into().expect("eight bytes")));
        let wires = Wire::pair(setup)?;
        let names = ["client", "server"];
        let end = |(wire, name): (Wire, &str)| {
            let options = Options {
                mtu: setup.packet as usize,
                max_message_size: LARGEST_MESSAGE,
                ..Options::default()
            };
            let socket = dcsctp::new_socket(name, &options);
            let stage = if wire.connects { ForeignStage::Busy } else { ForeignStage::Idle };
            Box::new(End {
                socket,
                wire,
                connected: false,
                finishing: false,
                taken: 0,
                under_way: BTreeSet::new(),
                stage,
            }) as Box<dyn ForeignEnd>
        };
        let [client, server] = wires;
        Ok([end((client, names[0])), end((server, names[1]))])
    }
}

struct End {
    socket: Box<dyn DcSctpSocket>,
    wire: Wire,
    connected: bool,
    /// It is to be shut down once it is connected and every message was delivered.
    finishing: bool,
    /// The number of messages that were handed over, and those of them that are not delivered yet.
    taken: u64,
    under_way: BTreeSet<LifecycleId>,
    stage: ForeignStage,
}

impl End {
    fn advance(&mut self, now: Time) {
        self.socket.advance_time(SocketTime::zero() + now.since(Time::ZERO));
    }

    /// Version 0.1.16 sends SHUTDOWN when nothing is in flight, although messages wait or are to be sent again. So it is not asked before.
    fn shut_down(&mut self) {
        if self.connected && self.finishing && self.under_way.is_empty() {
            self.finishing = false;
            self.socket.shutdown();
        }
    }
}

impl ForeignEnd for End {
    fn message_size(&self) -> u32 {
        self.wire.packet - HEADERS
    }

    fn start(&mut self, now: Time) {
        if self.wire.connects {
            self.advance(now);
            self.socket.connect();
        }
    }

    fn handle(&mut self, now: Time, packet: ForeignPacket) {
        self.advance(now);
        self.socket.handle_input(&packet.bytes);
    }

    fn send(&mut self, now: Time, message: &Bytes) -> bool {
        self.advance(now);
        let message = Message::new(StreamId(0), PpId(0), message.to_vec());
        let id = LifecycleId::from(self.taken + 1);
        let options = SendOptions { lifecycle_id: Some(id), ..SendOptions::default() };
        match self.socket.send(message, &options) {
            Ok(()) => {
                self.taken += 1;
                self.under_way.insert(id);
                true
            }
            Err(SendError::ResourceExhaustion) => false,
            Err(_) => {
                self.stage = ForeignStage::Lost;
                false
            }
        }
    }

    fn finish(&mut self, _: Time) {
        self.finishing = true;
        self.shut_down();
    }

    fn poll(&mut self, now: Time) -> ForeignOutput {
        self.advance(now);
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(bytes) => return self.wire.transmit(bytes.into()),
                SocketEvent::OnConnected() => {
                    (self.connected, self.stage) = (true, ForeignStage::Busy);
                    self.shut_down();
                }
                // It can come several times for one message.
                SocketEvent::OnLifecycleEnd(id) => {
                    self.under_way.remove(&id);
                    self.shut_down();
                }
                SocketEvent::OnClosed() => self.stage = ForeignStage::Closed,
                SocketEvent::OnAborted(..) => self.stage = ForeignStage::Lost,
                _ => {}
            }
        }
        if let Some(message) = self.socket.get_next_message() {
            return ForeignOutput::Read(message.payload.len());
        }
        let due = self.socket.poll_timeout();
        let due = (due < SocketTime::infinite_future()).then(|| Time::ZERO + (due - SocketTime::zero()));
        ForeignOutput::Wait(due)
    }

    fn stage(&self) -> ForeignStage {
        self.stage
    }
}
