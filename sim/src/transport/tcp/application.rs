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
pub(crate) enum Application {
    /// Opens the connection, and sends.
    Sender(Pace),
    /// Reads.
    Reader(Sink),
}

impl Application {
    /// The reading application, if this is one.
    pub(crate) fn sink(&self) -> Option<&Sink> {
        match self {
            Application::Sender(_) => None,
            Application::Reader(sink) => Some(sink),
        }
    }

    /// Whether it has started a connection by now.
    pub(crate) fn begins(&self, now: Time) -> bool {
        matches!(self, Application::Sender(pace) if now >= pace.start())
    }

    /// Lets it act if it is due. `send_buffer`: the largest number of unacknowledged bytes.
    pub(crate) fn act(&mut self, now: Time, stream: &mut impl Stream, send_buffer: u64) {
        match self {
            Application::Sender(pace) => {
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
            Application::Reader(sink) => {
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
        }
    }

    /// When it acts next without an event, once the connection has started.
    pub(crate) fn wakes(&self) -> Option<Time> {
        match self {
            Application::Sender(pace) => pace.wakes(),
            Application::Reader(sink) => sink.wakes(),
        }
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
