//! What drives an end of a stream of bytes, and where that end is: the same for TCP and its multipath form.

use std::net::IpAddr;

use anabranch_proto::Time;

use super::codec::through_the_codec;
use super::connection::Connection;
use super::segment::{Segment, TcpPacket};
use crate::traffic::{Pace, Sink};
use crate::transport::{Body, Frame};

/// One end of a stream of bytes, as its application sees it. Data are zeros, of which only the number counts.
pub(crate) trait Stream {
    /// Gives data to be sent.
    fn write(&mut self, bytes: u64);
    /// Bytes given and not yet acknowledged.
    fn unacknowledged(&self) -> u64;
    /// No more data follow.
    fn close(&mut self);
    /// Bytes that can be read.
    fn readable(&self) -> u64;
    /// Reads that many bytes, at most what [`Stream::readable`] says.
    fn read(&mut self, bytes: u64);
    /// Whether the other end sends no more, and all that it sent has arrived.
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

/// What drives an end.
pub(crate) enum Application {
    /// Opens the connection, and sends.
    Sender(Pace),
    /// Reads.
    Reader(Sink),
}

impl Application {
    /// The reading application, if it is one.
    pub(crate) fn sink(&self) -> Option<&Sink> {
        match self {
            Application::Sender(_) => None,
            Application::Reader(sink) => Some(sink),
        }
    }

    /// Whether it has begun a connection by now.
    pub(crate) fn begins(&self, now: Time) -> bool {
        matches!(self, Application::Sender(pace) if now >= pace.start())
    }

    /// What it does by itself; `send_buffer`: bytes that may wait for their acknowledgement.
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

    /// When it acts by itself, once the connection has begun.
    pub(crate) fn wakes(&self) -> Option<Time> {
        match self {
            Application::Sender(pace) => pace.wakes(),
            Application::Reader(sink) => sink.wakes(),
        }
    }
}

/// Where an end is.
pub(crate) struct Place {
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    /// Where the route to the other end begins.
    pub(crate) route: u32,
    /// Bytes of IP header before every segment.
    pub(crate) ip_header: u32,
    /// What the path is called.
    pub(crate) path: String,
    /// Through the codec?
    pub(crate) wire: bool,
}

impl Place {
    /// A segment whose first byte of user data is the one at `offset`, on its way.
    pub(crate) fn frame(&self, segment: Segment, offset: u64) -> Frame {
        let size = segment.size() + self.ip_header;
        let segment = if self.wire { through_the_codec(&segment) } else { segment };
        let packet = TcpPacket { from: self.from, to: self.to, offset, segment };
        Frame::new(Body::Tcp(Box::new(packet)), size, self.route)
    }
}
