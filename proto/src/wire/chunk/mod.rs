//! The chunks (RFC 9260 §3.3). The table in this file lists their types; each procedure has a file of its own.

mod address;
mod auth;
mod close;
mod content;
mod data;
mod ecn;
mod forward;
mod interleaved;
mod pad;
mod path;
mod reconfig;
mod sack;
mod setup;
mod timestamp;

pub use address::{AddressRequest, Asconf, AsconfAck, AsconfParam, Failed};
pub use auth::{AUTH_HEADER, Auth, Covered};
pub use close::{Abort, OperationError, Shutdown, ShutdownComplete};
pub use content::CHUNK_HEADER;
pub use data::{DATA_HEADER, Data};
pub use ecn::EcnEcho;
pub use forward::{FORWARD_HEADER, ForwardTsn, IForwardTsn, SkippedMessage};
pub use interleaved::{FragmentPosition, IDATA_HEADER, IData};
pub use pad::Pad;
pub use path::Heartbeat;
pub use reconfig::{AddStreams, IncomingReset, OutgoingReset, ReConfig, ReConfigParam, Response};
pub use sack::{GapBlock, NR_SACK_HEADER, NrSack, SACK_HEADER, Sack};
pub use setup::{CookieEcho, INIT_HEADER, Init};
pub use timestamp::Timestamp;

use bytes::{BufMut, Bytes, BytesMut};
use smallvec::SmallVec;

use super::reader::Reader;
pub use super::reader::padded;
use super::tlv::{length, pad};
use super::{DecodeError, EncodeError};
use content::Content;

/// Declares the chunk types: number, variant, content. A chunk of an extension whose content cannot be read is kept as
/// unknown: it may mean something else to a peer with which the extension was not agreed. The usual ones are encoded and decoded where a packet is: in a
/// function with all types, the compiler would prepare the registers and the stack for those that hardly any packet
/// holds.
macro_rules! chunks {
    (
        usual { $( $(#[$usual_doc:meta])* $usual_number:literal $usual:ident($usual_content:ty), )+ }
        others { $( $(#[$doc:meta])* $number:literal $name:ident($content:ty), )+ }
        extensions { $( $(#[$added_doc:meta])* $added_number:literal $added:ident($added_content:ty), )+ }
    ) => {
        /// A chunk.
        // The tag has eight bytes, so that there is no gap behind it. A gap is copied together with the fields behind
        // it, and such copies wait until all of these are stored: 2.5 % of the time of a simulated transfer.
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[repr(u64)]
        pub enum Chunk {
            $( $(#[$usual_doc])* $usual($usual_content), )+
            $( $(#[$doc])* $name($content), )+
            $( $(#[$added_doc])* $added($added_content), )+
            /// A chunk of a type that this stack does not know, or of an extension and with content that it cannot read.
            Unknown(Box<Unknown>),
        }

        impl Chunk {
            /// The chunk type's number.
            pub fn number(&self) -> u8 {
                match self {
                    $( Chunk::$usual(_) => $usual_number, )+
                    $( Chunk::$name(_) => $number, )+
                    $( Chunk::$added(_) => $added_number, )+
                    Chunk::Unknown(unknown) => unknown.number,
                }
            }

            /// Encoded length in bytes: the value of the chunk's length field, without the final padding.
            pub fn size(&self) -> usize {
                match self {
                    $( Chunk::$usual(content) => content.size(), )+
                    $( Chunk::$name(content) => content.size(), )+
                    $( Chunk::$added(content) => content.size(), )+
                    Chunk::Unknown(unknown) => CHUNK_HEADER + unknown.value.len(),
                }
            }

            /// Appends the chunk without its padding.
            #[inline]
            fn put_unpadded(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
                match self {
                    $( Chunk::$usual(content) => {
                        put_header(out, $usual_number, content.flags(), content.size())?;
                        content.put(out)
                    } )+
                    other => other.put_other(out),
                }
            }

            #[inline(never)]
            fn put_other(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
                match self {
                    $( Chunk::$usual(_) => self.put_unpadded(out), )+
                    $( Chunk::$name(content) => {
                        put_header(out, $number, content.flags(), content.size())?;
                        content.put(out)
                    } )+
                    $( Chunk::$added(content) => {
                        put_header(out, $added_number, content.flags(), content.size())?;
                        content.put(out)
                    } )+
                    Chunk::Unknown(unknown)
                        if [$( $usual_number, )+ $( $number ),+].contains(&unknown.number)
                            || unknown.can_be_read() =>
                    {
                        Err(EncodeError::Known { number: unknown.number.into() })
                    }
                    Chunk::Unknown(unknown) => {
                        put_header(out, unknown.number, unknown.flags, self.size())?;
                        Ok(out.put_slice(&unknown.value))
                    }
                }
            }

            /// Reads a chunk, which must use all of its length, to the end of a list.
            #[inline(always)]
            pub(super) fn take(
                [number, flags]: [u8; 2],
                mut value: Reader<'_>,
                into: &mut SmallVec<[Chunk; 2]>,
            ) -> Result<(), DecodeError> {
                match number {
                    $( $usual_number => {
                        let content = Content::take(flags, &mut value)?;
                        value.finish()?;
                        into.push(Chunk::$usual(content));
                    } )+
                    _ => into.push(Chunk::take_other(number, flags, value)?),
                }
                Ok(())
            }

            #[inline(never)]
            fn take_other(number: u8, flags: u8, mut value: Reader<'_>) -> Result<Self, DecodeError> {
                Ok(match number {
                    $( $number => {
                        let content = Content::take(flags, &mut value)?;
                        value.finish()?;
                        Chunk::$name(content)
                    } )+
                    _ => Chunk::take_extension(number, flags, value.clone()).unwrap_or_else(|_| {
                        Chunk::Unknown(Box::new(Unknown { number, flags, value: value.rest() }))
                    }),
                })
            }

            fn take_extension(number: u8, flags: u8, mut value: Reader<'_>) -> Result<Self, DecodeError> {
                Ok(match number {
                    $( $added_number => {
                        let content = Content::take(flags, &mut value)?;
                        value.finish()?;
                        Chunk::$added(content)
                    } )+
                    _ => return Err(value.wrong()),
                })
            }
        }
    };
}

chunks! {
    usual {
        /// DATA: user data.
        0 Data(Data),
        /// SACK: reports which data has arrived.
        3 Sack(Sack),
    }
    others {
        /// INIT: the first packet of an association.
        1 Init(Box<Init>),
        /// INIT ACK: answers INIT and carries the cookie.
        2 InitAck(Box<Init>),
        /// HEARTBEAT: asks whether a path works.
        4 Heartbeat(Heartbeat),
        /// HEARTBEAT ACK: confirms that the path works.
        5 HeartbeatAck(Heartbeat),
        /// ABORT: the association ends at once.
        6 Abort(Abort),
        /// SHUTDOWN: the sender will send no more data.
        7 Shutdown(Shutdown),
        /// SHUTDOWN ACK: the other end will send no more data either.
        8 ShutdownAck(Bare),
        /// ERROR: reports an error; the association continues.
        9 Error(OperationError),
        /// COOKIE ECHO: returns the cookie.
        10 CookieEcho(CookieEcho),
        /// COOKIE ACK: the association is established.
        11 CookieAck(Bare),
        /// SHUTDOWN COMPLETE: the association has ended.
        14 ShutdownComplete(ShutdownComplete),
    }
    extensions {
        /// ECNE: a packet arrived with a congestion mark.
        12 Ecne(EcnEcho),
        /// CWR: the sender has reduced its window.
        13 Cwr(EcnEcho),
        /// AUTH: authenticates the chunks that follow it.
        15 Auth(Box<Auth>),
        /// NR-SACK: a SACK that also says which data the receiver will keep.
        16 NrSack(Box<NrSack>),
        /// I-DATA: user data of a message that may be interleaved with others.
        64 IData(IData),
        /// ASCONF-ACK: answers requests to change addresses.
        128 AsconfAck(Box<AsconfAck>),
        /// RE-CONFIG: resets or adds streams.
        130 ReConfig(ReConfig),
        /// PAD: padding, which the receiver ignores.
        132 Pad(Pad),
        /// TIMESTAMP, an extension of this project: when the packet left, and which packet its SACK answers.
        144 Timestamp(Timestamp),
        /// FORWARD TSN: moves the receiver past data that was given up.
        192 ForwardTsn(ForwardTsn),
        /// ASCONF: requests changes of the sender's addresses.
        193 Asconf(Box<Asconf>),
        /// I-FORWARD-TSN: the same as FORWARD TSN for interleaved messages.
        194 IForwardTsn(IForwardTsn),
    }
}

/// Appends the header of a chunk of `size` bytes.
#[inline]
fn put_header(out: &mut BytesMut, number: u8, flags: u8, size: usize) -> Result<(), EncodeError> {
    let [high, low] = length(size)?.to_be_bytes();
    out.extend_from_slice(&[number, flags, high, low]);
    Ok(())
}

/// The content of a chunk that consists of a header only.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Bare;

impl Bare {
    const fn size(&self) -> usize {
        CHUNK_HEADER
    }
}

//= rfc9260#section-3.3.9
//= rfc9260#section-3.3.12
impl Content for Bare {
    fn put(&self, _: &mut BytesMut) -> Result<(), EncodeError> {
        Ok(())
    }

    fn take(_: u8, _: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Bare)
    }
}

/// A chunk of an unknown type, or of an extension and with content that cannot be read, kept as received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unknown {
    /// The chunk type.
    pub number: u8,
    /// The chunk flags.
    pub flags: u8,
    /// What follows the header, without padding.
    pub value: Bytes,
}

impl Unknown {
    /// Whether this is a chunk of an extension that is decoded as such.
    fn can_be_read(&self) -> bool {
        Chunk::take_extension(self.number, self.flags, Reader::new(&self.value, &self.value)).is_ok()
    }
}

impl Chunk {
    /// Encoded length in bytes with the padding to a multiple of four.
    #[inline]
    pub fn padded_size(&self) -> usize {
        match self {
            // Most chunks: asking these two first is cheaper than a table of all.
            Chunk::Data(data) => padded(data.size()),
            Chunk::Sack(sack) => padded(sack.size()),
            other => padded(other.size()),
        }
    }

    /// The chunk as bytes, with header and padding. [`Cause::UnrecognizedChunk`](super::Cause::UnrecognizedChunk)
    /// contains them.
    pub fn to_bytes(&self) -> Result<Bytes, EncodeError> {
        let mut out = BytesMut::with_capacity(self.padded_size());
        self.put(&mut out)?;
        Ok(out.freeze())
    }

    /// Appends the chunk and its padding.
    #[inline]
    pub(super) fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let start = out.len();
        self.put_unpadded(out)?;
        pad(out, start);
        Ok(())
    }
}
