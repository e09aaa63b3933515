//! Why bytes are no packet, and why a packet has no bytes.

use thiserror::Error;

/// Why a packet was refused. Offsets count bytes from the start of the common header.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
pub enum DecodeError {
    /// Less than a common header.
    #[error("{size} bytes are no SCTP packet: the common header alone has 12")]
    TooShort {
        /// The packet's size in bytes.
        size: usize,
    },
    /// The CRC32c of the bytes is another one.
    #[error("the checksum is {found:#010x}, but the bytes have {computed:#010x}")]
    Checksum {
        /// The one in the common header.
        found: u32,
        /// The one of the bytes that came.
        computed: u32,
    },
    /// A length field is smaller than its own header, or reaches beyond what encloses it: a parameter that
    /// leaves its chunk.
    #[error("the element at byte {at} cannot be {length} bytes long")]
    Length {
        /// Where the chunk, parameter or cause begins.
        at: usize,
        /// What its length field says.
        length: usize,
    },
    /// Bytes behind the last parameter or cause that are too few for another.
    #[error("the bytes at {at} are too few for a parameter or cause")]
    Remainder {
        /// Where they begin.
        at: usize,
    },
    /// A known chunk, parameter or cause has more or fewer bytes than its content needs, or its counts
    /// disagree with its length.
    #[error("the content of the element at byte {at} does not fit its length")]
    Content {
        /// Where the chunk, parameter or cause begins.
        at: usize,
    },
}

/// Why a packet cannot be encoded. The stack builds no such packet; only a hand can.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
pub enum EncodeError {
    /// A chunk, parameter or cause is longer than its length field can say.
    #[error("{size} bytes are more than the 65,535 that a length field can say")]
    TooLong {
        /// Its size in bytes, without padding.
        size: usize,
    },
    /// An `Unknown` carries a number that the table knows: it would come back as something else.
    #[error("number {number} is known and has its own variant")]
    Known {
        /// The chunk type, parameter type or cause code.
        number: u16,
    },
}
