//! The chunks (RFC 9260 §3.3): one table here, one file a procedure.

mod close;
mod data;
mod path;
mod sack;
mod setup;

pub use close::{Abort, OperationError, Shutdown, ShutdownComplete};
pub use data::Data;
pub(crate) use data::DATA_HEADER;
pub use path::Heartbeat;
pub(crate) use sack::SACK_HEADER;
pub use sack::{GapBlock, Sack};
pub use setup::{CookieEcho, Init};

use bytes::Bytes;

/// Bytes of a chunk header: type, flags, length.
pub const CHUNK_HEADER: usize = 4;

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
    /// It is.
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
    /// The association is over.
    14 ShutdownComplete(ShutdownComplete),
}

/// The content of a chunk that has none.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Bare;

impl Bare {
    const fn size(&self) -> usize {
        CHUNK_HEADER
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
}

/// `size` rounded up to a multiple of four.
pub const fn padded(size: usize) -> usize {
    (size + 3) & !3
}
