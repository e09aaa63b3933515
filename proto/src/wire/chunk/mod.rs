//! The chunks (RFC 9260 §3.3): one table here, one file a procedure.

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

use super::reader::Reader;
pub use super::reader::padded;
use super::tlv::{length, pad};
use super::{DecodeError, EncodeError};
use content::Content;

/// Declares the chunk types: number, variant, content.
macro_rules! chunks {
    ($( $(#[$doc:meta])* $number:literal $name:ident($content:ty), )+) => {
        /// A chunk.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Chunk {
            $( $(#[$doc])* $name($content), )+
            /// A chunk of a type that this stack does not know.
            Unknown(Box<Unknown>),
        }

        impl Chunk {
            /// The chunk type's number.
            pub fn number(&self) -> u8 {
                match self {
                    $( Chunk::$name(_) => $number, )+
                    Chunk::Unknown(unknown) => unknown.number,
                }
            }

            /// Encoded length in bytes: what the chunk's length field says, without the final padding.
            pub fn size(&self) -> usize {
                match self {
                    $( Chunk::$name(content) => content.size(), )+
                    Chunk::Unknown(unknown) => CHUNK_HEADER + unknown.value.len(),
                }
            }

            fn flags(&self) -> u8 {
                match self {
                    $( Chunk::$name(content) => content.flags(), )+
                    Chunk::Unknown(unknown) => unknown.flags,
                }
            }

            fn put_value(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
                match self {
                    $( Chunk::$name(content) => content.put(out), )+
                    Chunk::Unknown(unknown) if [$( $number ),+].contains(&unknown.number) => {
                        Err(EncodeError::Known { number: unknown.number.into() })
                    }
                    Chunk::Unknown(unknown) => Ok(out.put_slice(&unknown.value)),
                }
            }

            #[inline(always)]
            fn take_value(number: u8, flags: u8, mut value: Reader<'_>) -> Result<Self, DecodeError> {
                Ok(match number {
                    $( $number => {
                        let content = Content::take(flags, &mut value)?;
                        value.finish()?;
                        Chunk::$name(content)
                    } )+
                    _ => Chunk::Unknown(Box::new(Unknown { number, flags, value: value.rest() })),
                })
            }
        }
    };
}

chunks! {
    /// User data.
    0 Data(Data),
    /// The first packet of an association.
    1 Init(Box<Init>),
    /// The answer to it, with the cookie.
    2 InitAck(Box<Init>),
    /// What has arrived.
    3 Sack(Sack),
    /// Is this path alive?
    4 Heartbeat(Heartbeat),
    /// Yes.
    5 HeartbeatAck(Heartbeat),
    /// The association ends at once.
    6 Abort(Abort),
    /// No more data will come from here.
    7 Shutdown(Shutdown),
    /// Nor from here.
    8 ShutdownAck(Bare),
    /// Something was wrong, the association lives.
    9 Error(OperationError),
    /// The cookie comes back.
    10 CookieEcho(CookieEcho),
    /// The association is up.
    11 CookieAck(Bare),
    /// A packet came that had met congestion.
    12 Ecne(EcnEcho),
    /// The window was cut for it.
    13 Cwr(EcnEcho),
    /// The association is over.
    14 ShutdownComplete(ShutdownComplete),
    /// The chunks behind this one are authentic.
    15 Auth(Box<Auth>),
    /// What has arrived, and what of it is not taken back.
    16 NrSack(Box<NrSack>),
    /// User data, whose message may be interleaved with others.
    64 IData(IData),
    /// The answer to requests to change addresses.
    128 AsconfAck(Box<AsconfAck>),
    /// Streams are reset or added.
    130 ReConfig(ReConfig),
    /// Nothing.
    132 Pad(Pad),
    /// When the packet left, and which packet its SACK answers: our own.
    144 Timestamp(Timestamp),
    /// What was given up counts as received.
    192 ForwardTsn(ForwardTsn),
    /// Addresses of the sender change.
    193 Asconf(Box<Asconf>),
    /// What was given up, where messages are interleaved.
    194 IForwardTsn(IForwardTsn),
}

/// The content of a chunk that has none.
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

/// A chunk kept as it came. Its number is none of the table's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unknown {
    /// The chunk type.
    pub number: u8,
    /// The chunk flags.
    pub flags: u8,
    /// What follows the header, without padding.
    pub value: Bytes,
}

impl Chunk {
    /// Encoded length in bytes with the padding to a multiple of four.
    pub fn padded_size(&self) -> usize {
        padded(self.size())
    }

    /// The chunk as bytes, header, padding and all: what stands inside
    /// [`Cause::UnrecognizedChunk`](super::Cause::UnrecognizedChunk).
    pub fn to_bytes(&self) -> Result<Bytes, EncodeError> {
        let mut out = BytesMut::with_capacity(self.padded_size());
        self.put(&mut out)?;
        Ok(out.freeze())
    }

    /// Appends the chunk and its padding.
    pub(super) fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let start = out.len();
        self.put_unpadded(out)?;
        pad(out, start);
        Ok(())
    }

    fn put_unpadded(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let [high, low] = length(self.size())?.to_be_bytes();
        out.put_slice(&[self.number(), self.flags(), high, low]);
        self.put_value(out)
    }

    /// Reads the next chunk, which must fill its length, and skips its padding.
    #[inline(always)]
    pub(super) fn take(packet: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let ([number, flags], value) = packet.element()?;
        Chunk::take_value(number, flags, value)
    }
}
