//! Reads capture files, pcapng and classic pcap, packet by packet. Any bytes may come: what is wrong with them is
//! said, and memory stays bounded.

use std::io::{self, Read};

use super::option::{
    BYTE_ORDER, COMMENT, END, FLAGS, INBOUND, INTERFACE, NAME, OFFSET, OUTBOUND, PACKET, PACKET_OBSOLETE,
    PACKET_SIMPLE, RESOLUTION, SECTION,
};

/// A block or record may have so many bytes.
const MOST: u32 = 16 << 20;
/// A section may have so many interfaces.
const MOST_INTERFACES: usize = 1 << 16;
/// So much of an interface's name is kept.
const MOST_NAME: usize = 255;

/// A packet of a capture file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedPacket {
    /// Counted from 1.
    pub number: u64,
    /// Nanoseconds since 1970, in a simulation since its beginning; `None` if the file does not say.
    pub time: Option<i128>,
    /// The interface's name or number in the file; `None` in classic pcap.
    pub interface: Option<String>,
    /// Whether it came in (`true`) or went out there, if the file says so.
    pub inbound: Option<bool>,
    /// The link type, which says how the bytes begin (www.tcpdump.org/linktypes.html).
    pub link_type: u16,
    /// The captured part of the packet.
    pub bytes: Vec<u8>,
    /// Its size in bytes on the link.
    pub size: u32,
    /// The comment in the file.
    pub comment: Option<String>,
}

/// Why a capture file cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read at all.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It begins like neither format.
    #[error("this is neither pcapng nor pcap")]
    NoCapture,
    /// Its structure is wrong.
    #[error("at byte {at}: {why}")]
    Wrong {
        /// Where the block or record begins.
        at: u64,
        /// The error.
        why: &'static str,
    },
}

/// Reads a capture file. Iterate over it; after an error it is over.
pub struct CaptureReader<R> {
    input: R,
    format: Format,
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// How many bytes of the file came before.
    at: u64,
    packets: u64,
    over: bool,
}

impl<R> std::fmt::Debug for CaptureReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureReader").finish_non_exhaustive()
    }
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Format {
    Pcapng,
    /// With microseconds or nanoseconds.
    Classic {
        nanos: bool,
    },
}

#[derive(Clone)]
struct Interface {
    name: Option<String>,
    link_type: u16,
    /// `if_tsresol`: the exponent, negative, of 10 or, with the highest bit, of 2.
    resolution: u8,
    /// Seconds to be added.
    offset: i64,
    /// Bytes kept of a packet; 0: all.
    limit: u32,
}

type Found<T> = Result<T, &'static str>;

impl<R: Read> CaptureReader<R> {
    /// Looks at the beginning of `input`, which had better be buffered.
    pub fn new(input: R) -> Result<Self, ReadError> {
        let mut reader = CaptureReader {
            input,
            format: Format::Pcapng,
            big_endian: false,
            interfaces: Vec::new(),
            at: 0,
            packets: 0,
            over: false,
        };
        let magic = reader.bytes(4)?;
        let magic: [u8; 4] = magic.try_into().map_err(|_| ReadError::NoCapture)?;
        if u32::from_le_bytes(magic) == SECTION {
            reader.section().map_err(|error| if reader.at == 0 { ReadError::NoCapture } else { error })?;
        } else {
            reader.classic(magic)?;
        }
        Ok(reader)
    }

    fn classic(&mut self, magic: [u8; 4]) -> Result<(), ReadError> {
        self.big_endian = matches!(magic[0], 0xa1);
        let nanos = match self.number(magic) {
            0xa1b2_c3d4 => false,
            0xa1b2_3c4d => true,
            _ => return Err(ReadError::NoCapture),
        };
        self.format = Format::Classic { nanos };
        let header = self.bytes(20)?;
        let mut header = Fields { bytes: &header, big_endian: self.big_endian };
        let read = |header: &mut Fields<'_>| {
            header.take(16)?;
            // The upper bits describe a frame check sequence, which follows the bytes that are read.
            header.u32().map(|network| network as u16)
        };
        let link_type = read(&mut header).map_err(|_| ReadError::NoCapture)?;
        let resolution = if nanos { 9 } else { 6 };
        self.interfaces = vec![Interface { name: None, link_type, resolution, offset: 0, limit: 0 }];
        self.at = 24;
        Ok(())
    }

    /// The next packet; `None` at the end of the file.
    fn packet(&mut self) -> Result<Option<CapturedPacket>, ReadError> {
        match self.format {
            Format::Pcapng => self.packet_of_blocks(),
            Format::Classic { .. } => self.record(),
        }
    }

    fn packet_of_blocks(&mut self) -> Result<Option<CapturedPacket>, ReadError> {
        loop {
            let Some(kind) = self.first_word()? else { return Ok(None) };
            if u32::from_le_bytes(kind) == SECTION {
                self.section()?;
                continue;
            }
            let length = self.word("the file ends within a block")?;
            let length = self.number(length);
            let body = self.body(length, 8)?;
            let fields = Fields { bytes: &body, big_endian: self.big_endian };
            let found = self.block(self.number(kind), fields).map_err(|why| self.wrong(why))?;
            self.at += u64::from(length);
            if let Some(packet) = found {
                self.packets += 1;
                return Ok(Some(packet));
            }
        }
    }

    /// Reads a block; `None` if it has no packet.
    fn block(&mut self, kind: u32, mut body: Fields<'_>) -> Found<Option<CapturedPacket>> {
        match kind {
            INTERFACE if self.interfaces.len() == MOST_INTERFACES => Err("there are too many interfaces"),
            INTERFACE => {
                self.interfaces.push(interface(&mut body)?);
                Ok(None)
            }
            PACKET => {
                let interface = body.u32()?;
                self.enhanced(interface, body).map(Some)
            }
            PACKET_OBSOLETE => {
                let interface = u32::from(body.u16()?);
                body.u16()?;
                self.enhanced(interface, body).map(Some)
            }
            PACKET_SIMPLE => self.simple(body).map(Some),
            _ => Ok(None),
        }
    }

    fn enhanced(&self, number: u32, mut body: Fields<'_>) -> Found<CapturedPacket> {
        let interface = self.interface(number)?;
        let (high, low) = (body.u32()?, body.u32()?);
        let (captured, size) = (body.u32()?, body.u32()?);
        let bytes = body.padded(captured)?.to_vec();
        let (mut comments, mut inbound) = (Vec::new(), None);
        body.options(|code, value| match code {
            COMMENT => comments.push(String::from_utf8_lossy(value.bytes).into_owned()),
            FLAGS => {
                inbound = value.clone().u32().ok().and_then(|flags| match flags & 3 {
                    INBOUND => Some(true),
                    OUTBOUND => Some(false),
                    _ => None,
                });
            }
            _ => {}
        })?;
        Ok(CapturedPacket {
            number: self.packets + 1,
            time: Some(interface.time(u64::from(high) << 32 | u64::from(low))),
            interface: Some(interface.name.clone().unwrap_or_else(|| number.to_string())),
            inbound,
            link_type: interface.link_type,
            bytes,
            size,
            comment: (!comments.is_empty()).then(|| comments.join("; ")),
        })
    }

    fn simple(&self, mut body: Fields<'_>) -> Found<CapturedPacket> {
        let interface = self.interface(0)?;
        let size = body.u32()?;
        let limit = if interface.limit == 0 { size } else { interface.limit };
        Ok(CapturedPacket {
            number: self.packets + 1,
            time: None,
            interface: Some(interface.name.clone().unwrap_or_else(|| "0".to_owned())),
            inbound: None,
            link_type: interface.link_type,
            bytes: body.padded(size.min(limit))?.to_vec(),
            size,
            comment: None,
        })
    }

    fn interface(&self, number: u32) -> Found<&Interface> {
        let known = usize::try_from(number).ok().and_then(|number| self.interfaces.get(number));
        known.ok_or("a packet of an interface that is not described")
    }

    /// Reads the rest of a section header, whose type was already read.
    fn section(&mut self) -> Result<(), ReadError> {
        const CUT: &str = "the file ends within a section header";
        let (length, order) = (self.word(CUT)?, self.word(CUT)?);
        self.big_endian = match order {
            _ if u32::from_le_bytes(order) == BYTE_ORDER => false,
            _ if u32::from_be_bytes(order) == BYTE_ORDER => true,
            _ => return Err(self.wrong("a section header without its byte order")),
        };
        let length = self.number(length);
        let body = self.body(length, 12)?;
        let mut body = Fields { bytes: &body, big_endian: self.big_endian };
        if body.u16().map_err(|why| self.wrong(why))? != 1 {
            return Err(self.wrong("a version of pcapng other than 1"));
        }
        self.interfaces.clear();
        self.at += u64::from(length);
        Ok(())
    }

    /// The rest of a block of which `before` bytes were read, without the length at its end.
    fn body(&mut self, length: u32, before: u32) -> Result<Vec<u8>, ReadError> {
        let left = match length.checked_sub(before + 4) {
            Some(left) if length.is_multiple_of(4) && length <= MOST => left,
            _ => return Err(self.wrong("a block of an impossible length")),
        };
        let body = self.bytes(left)?;
        let end = self.word("the file ends within a block")?;
        if self.number(end) != length {
            return Err(self.wrong("the two lengths of a block differ"));
        }
        Ok(body)
    }

    /// A record of classic pcap.
    fn record(&mut self) -> Result<Option<CapturedPacket>, ReadError> {
        const CUT: &str = "the file ends within a packet";
        let Some(seconds) = self.first_word()? else { return Ok(None) };
        let (part, captured, size) = (self.word(CUT)?, self.word(CUT)?, self.word(CUT)?);
        let [seconds, part, captured, size] = [seconds, part, captured, size].map(|word| self.number(word));
        if captured > MOST {
            return Err(self.wrong("a packet of an impossible length"));
        }
        let bytes = self.bytes(captured)?;
        if bytes.len() as u32 != captured {
            return Err(self.wrong(CUT));
        }
        self.at += 16 + u64::from(captured);
        self.packets += 1;
        let unit = if self.format == (Format::Classic { nanos: true }) { 1 } else { 1000 };
        Ok(Some(CapturedPacket {
            number: self.packets,
            time: Some(i128::from(seconds) * 1_000_000_000 + i128::from(part) * unit),
            interface: None,
            inbound: None,
            link_type: self.interfaces[0].link_type,
            bytes,
            size,
            comment: None,
        }))
    }

    /// The first four bytes of a block or record; `None` at the end of the file.
    fn first_word(&mut self) -> Result<Option<[u8; 4]>, ReadError> {
        let word = self.bytes(4)?;
        match <[u8; 4]>::try_from(&word[..]) {
            Ok(word) => Ok(Some(word)),
            Err(_) if word.is_empty() => Ok(None),
            Err(_) => Err(self.wrong("the file ends within a block")),
        }
    }

    fn word(&mut self, otherwise: &'static str) -> Result<[u8; 4], ReadError> {
        let word = self.bytes(4)?;
        <[u8; 4]>::try_from(&word[..]).map_err(|_| self.wrong(otherwise))
    }

    /// Reads this number of bytes, or fewer if the file ends. Missing bytes take no memory.
    fn bytes(&mut self, count: u32) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.input.by_ref().take(count.into()).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn number(&self, word: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }

    fn wrong(&self, why: &'static str) -> ReadError {
        ReadError::Wrong { at: self.at, why }
    }
}

impl<R: Read> Iterator for CaptureReader<R> {
    type Item = Result<CapturedPacket, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let packet = self.packet().transpose();
        self.over = !matches!(packet, Some(Ok(_)));
        packet
    }
}

/// An interface description.
fn interface(body: &mut Fields<'_>) -> Found<Interface> {
    let link_type = body.u16()?;
    body.u16()?;
    let limit = body.u32()?;
    let mut interface = Interface { name: None, link_type, resolution: 6, offset: 0, limit };
    body.options(|code, value| match (code, value.bytes) {
        (NAME, name) => {
            let name = &name[..name.len().min(MOST_NAME)];
            interface.name = Some(String::from_utf8_lossy(name).into_owned());
        }
        (RESOLUTION, [resolution]) => interface.resolution = *resolution,
        (OFFSET, offset) => {
            if let Ok(offset) = <[u8; 8]>::try_from(offset) {
                let big = value.big_endian;
                interface.offset = if big { i64::from_be_bytes(offset) } else { i64::from_le_bytes(offset) };
            }
        }
        _ => {}
    })?;
    Ok(interface)
}

impl Interface {
    /// Nanoseconds. Resolutions finer than that are rounded down.
    fn time(&self, units: u64) -> i128 {
        let (exponent, units) = (u32::from(self.resolution & 0x7f), i128::from(units));
        let nanos = match self.resolution & 0x80 {
            0 if exponent <= 9 => units * 10_i128.pow(9 - exponent),
            0 => 10_i128.checked_pow(exponent - 9).map_or(0, |unit| units / unit),
            _ => (units * 1_000_000_000) >> exponent,
        };
        nanos + i128::from(self.offset) * 1_000_000_000
    }
}

/// The unread rest of a block.
#[derive(Clone)]
struct Fields<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Found<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or("a block too short for its content")?;
        self.bytes = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Found<u16> {
        let bytes = self.take(2)?;
        let bytes = [bytes[0], bytes[1]];
        Ok(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32(&mut self) -> Found<u32> {
        let bytes = self.take(4)?;
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Reads this number of bytes and skips the padding after them.
    fn padded(&mut self, count: u32) -> Found<&'a [u8]> {
        let count = count as usize;
        let bytes = self.take(count)?;
        self.take((count.next_multiple_of(4) - count).min(self.bytes.len()))?;
        Ok(bytes)
    }

    /// Shows every option with its value.
    fn options(&mut self, mut show: impl FnMut(u16, Fields<'a>)) -> Found<()> {
        while !self.bytes.is_empty() {
            let (code, length) = (self.u16()?, self.u16()?);
            if code == END {
                break;
            }
            let bytes = self.padded(length.into())?;
            show(code, Fields { bytes, big_endian: self.big_endian });
        }
        Ok(())
    }
}
