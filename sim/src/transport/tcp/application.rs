//! The application at one end of a byte stream, and the location of that end. TCP and Multipath TCP share both.

use std::net::IpAddr;

use anabranch_proto::Time;

use super::codec::through_the_codec;
use super::connection::Connection;
use super::segment::TcpPacket;
use crate::traffic::{Pace, Sink};
use crate::transport::{Body, Frame};

/// One end of a byte stream as its application sees it. All data are zeros; only their number counts.
pub(crate) trait Stream {
    /// Gives data to be sent.
    fn write(&mut self, bytes: u64);
    /// Bytes that were written and are not yet acknowledged.
    fn unacknowledged(&self) -> u64;
    /// Announces that no more data follows.
    fn close(&mut self);
    /// Bytes that can be read.
    fn readable(&self) -> u64;
    /// Reads this number of bytes, at most [`Stream::readable`].
    fn read(&mut self, bytes: u64);
    /// Whether the other end sends no more and all of its data has arrived.
    fn ended(&self) -> bool;
}

impl Stream for Connection {
    fn write(&mut self, bytes: u64) {
        self.write(bytes);
    }

    fn unacknowledged(&self) -> u64 {
        self.unacknowledged()
    }

    fn close(&mut self) {
        self.close();
    }

    fn readable(&self) -> u64 {
        self.readable()
    }

    fn read(&mut self, bytes: u64) {
        self.read(bytes);
    }

    fn ended(&self) -> bool {
        self.ended()
    }
}

/// The application at one end.
pub(crate) struct Application {
    kind: Kind,
    /// Bytes of the send buffer: data that it has written and that is not acknowledged.
    send_buffer: u64,
    /// Whether the connection was started.
    begun: bool,
    /// When it last acted; `NEVER`: something has arrived since then.
    acted: Time,
}

enum Kind {
    /// Opens the connection, and sends.
    Sender(Pace),
    /// Reads.
    Reader(Sink),
}

impl Application {
    pub(crate) fn sender(pace: Pace, send_buffer: u64) -> Self {
        Application { kind: Kind::Sender(pace), send_buffer, begun: false, acted: Time::NEVER }
    }

    pub(crate) fn reader(sink: Sink) -> Self {
        Application { kind: Kind::Reader(sink), send_buffer: 0, begun: false, acted: Time::NEVER }
    }

    pub(crate) fn is_sender(&self) -> bool {
        matches!(self.kind, Kind::Sender(_))
    }

    /// The sink of a reader.
    pub(crate) fn sink(&self) -> Option<&Sink> {
        match &self.kind {
            Kind::Sender(_) => None,
            Kind::Reader(sink) => Some(sink),
        }
    }

    /// Whether it has data to read.
    pub(crate) fn reads(&self, stream: &impl Stream) -> bool {
        !self.is_sender() && stream.readable() > 0
    }

    /// A packet has arrived: the connection was started, and it may act again.
    #[inline(always)]
    pub(crate) fn arrived(&mut self) {
        (self.begun, self.acted) = (true, Time::NEVER);
    }

    /// Lets it act, once after each arrival and at each time. Returns whether the connection was started.
    #[inline(always)]
    pub(crate) fn act(&mut self, now: Time, stream: &mut impl Stream) -> bool {
        if std::mem::replace(&mut self.acted, now) != now {
            self.act_now(now, stream);
        }
        self.begun
    }

    #[inline(never)]
    fn act_now(&mut self, now: Time, stream: &mut impl Stream) {
        match &mut self.kind {
            Kind::Sender(pace) => {
                self.begun = self.begun || now >= pace.start();
                send(pace, now, stream, self.send_buffer);
            }
            Kind::Reader(sink) => receive(sink, now, stream),
        }
    }

    /// When it acts next without an event.
    pub(crate) fn wakes(&self) -> Option<Time> {
        match &self.kind {
            Kind::Sender(pace) if !self.begun => Some(pace.start()),
            Kind::Sender(pace) => pace.wakes(),
            Kind::Reader(sink) => sink.wakes(),
        }
    }
}

/// Writes what is due. `send_buffer`: the largest number of unacknowledged bytes.
fn send(pace: &mut Pace, now: Time, stream: &mut impl Stream, send_buffer: u64) {
    pace.set_refused(stream.unacknowledged() >= send_buffer);
    while let Some(bytes) = pace.due(now) {
        stream.write(bytes as u64);
        pace.taken(bytes);
        pace.set_refused(stream.unacknowledged() >= send_buffer);
    }
    if pace.exhausted() {
        stream.close();
    }
}

/// Reads what is due.
fn receive(sink: &mut Sink, now: Time, stream: &mut impl Stream) {
    sink.set_readable(stream.readable() > 0);
    while sink.due(now) {
        let bytes = stream.readable().min(u64::from(u16::MAX));
        stream.read(bytes);
        sink.took(now, bytes as usize);
        sink.completes_bytes(now);
        sink.set_readable(stream.readable() > 0);
    }
    if stream.ended() {
        stream.close();
    }
}

/// The location of an end.
pub(crate) struct Place {
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    /// The first hop of the route to the other end.
    pub(crate) route: u32,
    /// Bytes of IP header before every segment.
    pub(crate) ip_header: u32,
    /// The name of the path.
    pub(crate) path: String,
    /// Whether packets go through the codec.
    pub(crate) wire: bool,
}

impl Place {
    /// The frame of a packet.
    #[inline(always)]
    pub(crate) fn frame(&self, mut packet: Box<TcpPacket>) -> Frame {
        let size = packet.segment.size() + self.ip_header;
        if self.wire {
            packet.segment = through_the_codec(&packet.segment);
        }
        Frame::new(Body::Tcp(packet), size, self.route)
    }
}
