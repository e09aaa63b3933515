//! A run as a pcapng file: one interface a link end, each packet where its first bit leaves and where its last
//! bit arrives; and one a channel, each frame when it goes on the air.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;

use anabranch_proto::Time;
use anabranch_proto::wire::Chunk;
use bytes::BytesMut;

use super::comment::{Comments, dropped};
use super::option::{RADIOTAP, RAW};
use super::{block, datagram, radio};
use crate::medium::wire::DropCause;
use crate::observe::trace::{Contents, Names, Observer, PacketView, RadioFrame, Record, Wants};

/// Packets that wait at most for what becomes of an earlier one; beyond, the earliest is written as if it had
/// arrived, and appears once more if it does not.
const MOST_HELD: usize = 1 << 17;
/// So many bytes are written together.
const FULL: usize = 1 << 15;

/// How much of each packet is written; its size on the link is written in any case.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Snap {
    /// All but the user data of its last chunk: every header of every chunk, and control chunks whole.
    #[default]
    Headers,
    /// All of it.
    Full,
    /// At most this number of bytes.
    Bytes(u32),
}

impl std::str::FromStr for Snap {
    type Err = String;

    /// `headers`, `full`, or bytes.
    fn from_str(text: &str) -> Result<Snap, String> {
        match text {
            "headers" => Ok(Snap::Headers),
            "full" => Ok(Snap::Full),
            bytes => bytes
                .parse()
                .map(Snap::Bytes)
                .map_err(|_| "write `headers`, `full` or a number of bytes".to_owned()),
        }
    }
}

/// Bytes of user data, with padding, at the end of a packet.
fn user_data(contents: &Contents<'_>) -> usize {
    let last = match contents {
        Contents::Sctp(packet) => packet.chunks.last(),
        Contents::Tcp(packet) => return packet.segment.length as usize,
        Contents::Datagram(datagram) => return datagram.payload as usize,
        Contents::Raw(_) | Contents::Foreign(_) => return 0,
    };
    match last {
        Some(Chunk::Data(data)) => data.payload.len().next_multiple_of(4),
        Some(Chunk::IData(data)) => data.payload.len().next_multiple_of(4),
        _ => 0,
    }
}

/// Writes the packets of one run, in order of time.
///
/// A packet that leaves is written when it is known whether it arrives: if it does not, its comment has the
/// cause. Until then it is held, and what comes after it too.
pub struct CaptureWriter<W: Write> {
    out: W,
    comment: String,
    snap: Snap,
    flows: Vec<String>,
    /// By channel: the nodes of its radios.
    channels: Vec<Vec<String>>,
    /// In order of time.
    pub(super) held: VecDeque<Held>,
    pub(super) most_held: usize,
    /// The number of the first that is held; they are counted from the beginning.
    first: u64,
    /// By link direction: the packets on it, each with its number there and its number here.
    on_link: Vec<VecDeque<(u64, u64)>>,
    comments: Comments,
    /// A datagram, a frame around one, and blocks on their way out.
    datagram: BytesMut,
    framed: BytesMut,
    buffer: Vec<u8>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

impl<W: Write> std::fmt::Debug for CaptureWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureWriter")
            .field("comment", &self.comment)
            .field("snap", &self.snap)
            .finish_non_exhaustive()
    }
}

/// A packet that is still to be written.
pub(super) struct Held {
    at: Time,
    interface: u32,
    inbound: bool,
    /// Its number in the run.
    number: Option<u64>,
    bytes: Rc<Kept>,
    comment: Rc<str>,
    /// Its fate is known.
    settled: bool,
}

/// So much of a packet as is written. It is the same at both ends of a link.
struct Kept {
    bytes: Box<[u8]>,
    /// Its size on the link.
    size: usize,
}

impl<W: Write> CaptureWriter<W> {
    /// Writes to `out`, which should be buffered. `comment` describes the file.
    pub fn new(out: W, comment: &str) -> Self {
        CaptureWriter {
            out,
            comment: comment.to_owned(),
            snap: Snap::Full,
            flows: Vec::new(),
            channels: Vec::new(),
            held: VecDeque::new(),
            most_held: MOST_HELD,
            first: 0,
            on_link: Vec::new(),
            comments: Comments::default(),
            datagram: BytesMut::new(),
            framed: BytesMut::new(),
            buffer: Vec::new(),
            failed: None,
        }
    }

    /// Writes so much of each packet.
    pub fn snap(self, snap: Snap) -> Self {
        CaptureWriter { snap, ..self }
    }

    /// Writes the records that were held back. Fails if anything could not be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.held.iter_mut().for_each(|held| held.settled = true);
        self.release();
        self.write_buffer();
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// A packet appears at one end of a link; returns its number. `bytes`: as it appeared at the other end.
    fn appear(
        &mut self,
        at: Time,
        end: End,
        flow: usize,
        shown: &PacketView<'_>,
        bytes: Option<Rc<Kept>>,
    ) -> u64 {
        let comment = self.comments.of(self.flows.get(flow).map_or("?", String::as_str), flow, shown);
        let (interface, inbound, settled) = match end {
            End::Sending(link) => (link, false, false),
            // The interface at the far end is the one that the other direction leaves from.
            End::Receiving(link) => (link ^ 1, true, true),
        };
        let bytes = bytes.unwrap_or_else(|| {
            let cut = self.encode(shown);
            keep(self.snap, &self.datagram, self.datagram.len(), cut)
        });
        let (interface, number) = (interface as u32, shown.number);
        self.held.push_back(Held { at, interface, inbound, number, bytes, comment, settled });
        self.first + self.held.len() as u64 - 1
    }

    /// Encodes a packet into `datagram`; returns how many of its last bytes are user data.
    fn encode(&mut self, shown: &PacketView<'_>) -> usize {
        self.datagram.clear();
        match datagram::put(shown.contents, shown.size, shown.hops, &mut self.datagram) {
            Ok(()) => user_data(&shown.contents),
            Err(error) => {
                self.fail(io::Error::other(error));
                0
            }
        }
    }

    /// A frame of a radio goes on the air.
    fn send(&mut self, at: Time, channel: usize, frame: RadioFrame, packet: Option<(usize, PacketView<'_>)>) {
        let station = frame.from as usize;
        let node = self.channels[channel].get(station).map_or("?", String::as_str);
        let to = self.channels[channel].get(frame.to as usize).map_or("?", String::as_str);
        let about = packet.map(|(flow, shown)| {
            self.comments.of(self.flows.get(flow).map_or("?", String::as_str), flow, &shown)
        });
        let comment = match about {
            Some(about) => format!("{node} to {to}; {about}"),
            None => format!("{node} to {to}"),
        };
        self.datagram.clear();
        let mut cut = packet.map_or(0, |(_, shown)| self.encode(&shown));
        self.framed.clear();
        let size = radio::put(channel, &frame, &self.datagram, &mut self.framed);
        // The check sequence of a frame follows its user data.
        cut += if cut > 0 { radio::CHECK } else { 0 };
        self.held.push_back(Held {
            at,
            interface: (self.on_link.len() + channel) as u32,
            inbound: false,
            number: None,
            bytes: keep(self.snap, &self.framed, size, cut),
            comment: comment.into(),
            settled: true,
        });
    }

    /// The fate of a packet is known.
    fn settle(&mut self, number: u64) -> Option<&mut Held> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let held = self.held.get_mut(place)?;
        held.settled = true;
        Some(held)
    }

    /// Takes a packet from those on a link, and returns its number here. It is the first, unless packets overtake each
    /// other.
    fn arrived(&mut self, link: usize, number: Option<u64>) -> Option<u64> {
        let place = |here: &u64| usize::try_from(here.checked_sub(self.first)?).ok();
        let is_it = |here: &u64| place(here).and_then(|place| self.held.get(place)?.number) == number;
        let at = self.on_link[link].iter().position(|(_, here)| is_it(here)).unwrap_or(0);
        self.on_link[link].remove(at).map(|(_, here)| here)
    }

    /// A packet is dropped: one that was on its way, or one that never left.
    fn drop(
        &mut self,
        at: Time,
        link: usize,
        number: u64,
        cause: DropCause,
        flow: usize,
        shown: &PacketView<'_>,
    ) {
        let place = self.on_link[link].binary_search_by_key(&number, |(on_link, _)| *on_link);
        let on_link = place.ok().and_then(|place| self.on_link[link].remove(place));
        if let Some(held) = on_link.and_then(|(_, here)| self.settle(here)) {
            held.comment = dropped(cause, true, &held.comment).into();
            return;
        }
        let here = self.appear(at, End::Sending(link), flow, shown, None);
        if let Some(held) = self.settle(here) {
            held.comment = dropped(cause, on_link.is_some(), &held.comment).into();
        }
    }

    /// Writes the earliest packets as long as they are settled, or too many are held.
    fn release(&mut self) {
        while let Some(held) = self.held.pop_front_if(|held| held.settled).or_else(|| self.surplus()) {
            self.first += 1;
            self.write(&held);
        }
    }

    fn surplus(&mut self) -> Option<Held> {
        if self.held.len() > self.most_held { self.held.pop_front() } else { None }
    }

    fn write(&mut self, held: &Held) {
        let Kept { bytes, size } = &*held.bytes;
        let (nanos, bytes) = (held.at.as_nanos(), (&bytes[..], *size));
        block::packet(&mut self.buffer, held.interface, nanos, held.inbound, bytes, &held.comment);
        if self.buffer.len() >= FULL {
            self.write_buffer();
        }
    }

    fn write_buffer(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(&self.buffer)
        {
            self.fail(error);
        }
        self.buffer.clear();
    }

    fn fail(&mut self, error: io::Error) {
        self.failed.get_or_insert(error);
    }
}

/// Keeps as much of these bytes as is written; the last `cut` of them are user data.
fn keep(snap: Snap, bytes: &[u8], size: usize, cut: usize) -> Rc<Kept> {
    let kept = match snap {
        Snap::Full => bytes.len(),
        Snap::Bytes(most) => bytes.len().min(most as usize),
        Snap::Headers => bytes.len().saturating_sub(cut),
    };
    Rc::new(Kept { bytes: bytes[..kept].into(), size })
}

/// An end of a link direction.
enum End {
    Sending(usize),
    Receiving(usize),
}

impl<W: Write> Observer for CaptureWriter<W> {
    fn begin(&mut self, names: &Names) {
        self.flows.clone_from(&names.flows);
        self.on_link = names.links.iter().map(|_| VecDeque::new()).collect();
        let program = concat!("anabranch ", env!("CARGO_PKG_VERSION"));
        block::section(&mut self.buffer, program, &self.comment);
        for (link, direction) in &names.links {
            let (here, there) = direction.split_once('>').unwrap_or((direction, "?"));
            let description = format!("link {link} at {here}, towards {there}");
            block::interface(&mut self.buffer, RAW, &format!("{link}:{here}"), &description);
        }
        for (channel, nodes) in &names.channels {
            let description = format!("channel {channel}, {} radios", nodes.len());
            block::interface(&mut self.buffer, RADIOTAP, channel, &description);
        }
        self.channels = names.channels.iter().map(|(_, nodes)| nodes.clone()).collect();
        self.write_buffer();
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        let wired = |link: usize| link < self.on_link.len();
        match record {
            Record::Air { channel, frame, packet } => self.send(at, *channel, *frame, *packet),
            // Between radios the frames themselves say what becomes of a packet.
            Record::Delivered { link, .. } | Record::Dropped { link, .. } if !wired(*link) => return,
            Record::Started { link, flow, number, packet } => {
                let here = self.appear(at, End::Sending(*link), *flow, packet, None);
                self.on_link[*link].push_back((*number, here));
            }
            Record::Delivered { link, flow, packet } => {
                let sent = self.arrived(*link, packet.number).and_then(|here| self.settle(here));
                let same = sent.filter(|held| held.number.is_some() && held.number == packet.number);
                let bytes = same.map(|held| held.bytes.clone());
                self.appear(at, End::Receiving(*link), *flow, packet, bytes);
            }
            Record::Dropped { link, flow, number, cause, packet } => {
                self.drop(at, *link, *number, *cause, *flow, packet);
            }
            Record::Detail { .. }
            | Record::Sent { .. }
            | Record::Read { .. }
            | Record::Queued { .. }
            | Record::Departed { .. } => return,
        }
        self.release();
    }

    fn wants(&self) -> Wants {
        Wants { details: false, queues: false, ..Wants::PACKETS }
    }
}
