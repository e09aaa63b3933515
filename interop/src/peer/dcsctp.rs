//! The `dcsctp` crate: in process, in virtual time.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::wire::Address;
use anabranch_proto::{Duration, Outcome, Reliability, Time};
use bytes::Bytes;
use dcsctp::api::{
    DcSctpSocket, ErrorKind, LifecycleId, Message, Options, PpId, SendError, SendOptions, SocketEvent,
    SocketTime, StreamId, ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS as OVER_DTLS,
};

use super::{Ask, MTU, Make, PORTS, Peer, PeerEvent, PeerOutput, Refused, STREAMS, has_no};
use crate::letter::{Arrived, Letter, fnv};

pub struct Dcsctp {
    socket: Box<dyn DcSctpSocket>,
    options: Options,
    /// It counts from the making of the socket.
    begun: Time,
    /// What it knows no event for.
    own: VecDeque<PeerEvent>,
}

/// What it says when we abort: the text that our reason follows.
const BY_USER: &str = "User-Initiated Abort";

impl Dcsctp {
    pub fn new(make: &Make) -> Result<Dcsctp, Refused> {
        if make.authenticated || make.extensions.authentication {
            return Err(has_no("authentication (no AUTH in dcsctp::api::Options)"));
        }
        if make.extensions.nr_sack {
            return Err(has_no("NR-SACK in dcsctp::api::Options"));
        }
        // The same tags and TSNs in every run.
        fastrand::seed(1);
        let mut options = Options {
            local_port: PORTS[1],
            remote_port: PORTS[0],
            announced_maximum_incoming_streams: STREAMS,
            announced_maximum_outgoing_streams: STREAMS,
            mtu: MTU as usize - 20,
            max_message_size: 1 << 21,
            max_send_buffer_size: 1 << 26,
            per_stream_send_queue_limit: 1 << 26,
            enable_partial_reliability: make.extensions.partial_reliability,
            enable_message_interleaving: make.extensions.interleaving,
            ..Options::default()
        };
        if make.extensions.zero_checksum {
            options.zero_checksum_alternate_error_detection_method = OVER_DTLS;
        }
        let socket = dcsctp::new_socket("peer", &options);
        Ok(Dcsctp { socket, options, begun: Time::ZERO, own: VecDeque::new() })
    }

    fn advance(&mut self, now: Time) {
        self.socket.advance_time(SocketTime::zero() + now.since(self.begun));
    }

    fn send(&mut self, letter: &Letter, reliability: Reliability) -> Result<(), Refused> {
        let mut options = SendOptions {
            unordered: letter.unordered,
            lifecycle_id: LifecycleId::new(u64::from(letter.number) + 1),
            ..SendOptions::default()
        };
        match reliability {
            Reliability::Full => {}
            Reliability::Lifetime(ms) => options.lifetime = Some(Duration::from_millis(u64::from(ms))),
            Reliability::Retransmissions(n) => options.max_retransmissions = Some(n as u16),
            Reliability::Priority(_) => {
                return Err(has_no("priorities of messages in dcsctp::api::SendOptions"));
            }
        }
        let payload = letter.content().to_vec();
        let message = Message::new(StreamId(letter.stream), PpId(letter.number), payload);
        self.socket.send(message, &options).map_err(|error| match error {
            SendError::ResourceExhaustion => Refused::Busy,
            error => Refused::NotOffered(format!("send: {error}")),
        })
    }

    fn reset(&mut self, streams: &[u16]) -> Result<(), Refused> {
        let streams: Vec<StreamId> = streams.iter().copied().map(StreamId).collect();
        let done = self.socket.reset_streams(&streams);
        done.map_err(|error| Refused::NotOffered(format!("reset_streams: {error}")))
    }

    fn up(&self) -> PeerEvent {
        let metrics = self.socket.get_metrics().expect("it is connected");
        let used = [
            (self.options.enable_partial_reliability, "partial-reliability"),
            (metrics.uses_message_interleaving, "interleaving"),
            (metrics.uses_zero_checksum, "zero-checksum"),
        ];
        let extensions = used.iter().filter(|(used, _)| *used).map(|(_, name)| (*name).to_owned()).collect();
        let streams =
            [metrics.negotiated_maximum_outgoing_streams, metrics.negotiated_maximum_incoming_streams];
        PeerEvent::Up { streams, extensions }
    }

    fn told(&self, event: SocketEvent) -> Option<PeerEvent> {
        let ids = |streams: Vec<StreamId>| streams.into_iter().map(|id| id.0).collect();
        let reset =
            |outgoing, outcome, streams| PeerEvent::StreamsReset { outgoing, outcome, streams: ids(streams) };
        let number = |id: LifecycleId| (id.value() - 1) as u32;
        Some(match event {
            SocketEvent::OnConnected() => self.up(),
            SocketEvent::OnClosed() => PeerEvent::Closed,
            SocketEvent::OnConnectionRestarted() => PeerEvent::Restarted,
            SocketEvent::OnAborted(ErrorKind::PeerReported, text) if text.contains(BY_USER) => {
                PeerEvent::Aborted(text)
            }
            SocketEvent::OnAborted(kind, text) => PeerEvent::Lost(format!("{kind:?}: {text}")),
            SocketEvent::OnError(kind, text) => PeerEvent::Error(format!("{kind:?}: {text}")),
            SocketEvent::OnStreamsResetPerformed(streams) => reset(true, Outcome::Done, streams),
            SocketEvent::OnStreamsResetFailed(streams) => reset(true, Outcome::Failed, streams),
            SocketEvent::OnIncomingStreamReset(streams) => reset(false, Outcome::Done, streams),
            SocketEvent::OnLifecycleMessageExpired(id) | SocketEvent::OnLifecycleMessageMaybeExpired(id) => {
                PeerEvent::Failed(number(id))
            }
            _ => return None,
        })
    }
}

impl Peer for Dcsctp {
    fn ask(&mut self, now: Time, ask: &Ask) -> Result<(), Refused> {
        self.advance(now);
        match ask {
            Ask::Listen => {}
            Ask::Connect => self.socket.connect(),
            Ask::Send(letter, reliability) => return self.send(letter, *reliability),
            Ask::ResetOutgoing(streams) => return self.reset(streams),
            Ask::ResetIncoming(_) => {
                return Err(has_no("DcSctpSocket::reset_streams takes outgoing streams only"));
            }
            Ask::AddStreams { .. } => return Err(has_no("DcSctpSocket adds no streams")),
            Ask::ResetTsns => return Err(has_no("DcSctpSocket resets no TSNs")),
            Ask::Shutdown => self.socket.shutdown(),
            // It has a reason of its own, always the same.
            Ask::Abort(_) => self.socket.close(),
            Ask::Restart => {
                self.socket = dcsctp::new_socket("peer, again", &self.options);
                self.begun = now;
                self.socket.connect();
            }
        }
        Ok(())
    }

    fn take(&mut self, now: Time, packet: Bytes) {
        self.advance(now);
        self.socket.handle_input(&packet);
    }

    fn wait(&mut self, now: Time, until: Time) -> Time {
        let due = self.socket.poll_timeout();
        let next = match due < SocketTime::infinite_future() {
            true => self.begun + (due - SocketTime::zero()),
            false => Time::NEVER,
        };
        let then = next.min(until).max(now);
        self.advance(then);
        then
    }

    fn said(&mut self) -> Option<PeerOutput> {
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => return Some(PeerOutput::Packet(packet.into())),
                event => self.own.extend(self.told(event)),
            }
        }
        if let Some(Message { stream_id, ppid, payload, .. }) = self.socket.get_next_message() {
            let (size, hash) = (payload.len(), fnv(&payload));
            let arrived = Arrived { number: ppid.0, stream: stream_id.0, size, unordered: None, hash };
            return Some(PeerOutput::PeerEvent(PeerEvent::Arrived(arrived)));
        }
        self.own.pop_front().map(PeerOutput::PeerEvent)
    }

    fn addresses(&self) -> [Address; 2] {
        [1, 2].map(|host| Address::ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host))))
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(300)
    }
}
