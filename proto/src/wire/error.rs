//! The errors of decoding and encoding.

use thiserror::Error;

/// Why a packet was rejected. Offsets are in bytes from the start of the common header.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
pub enum DecodeError {
    /// Fewer bytes than a common header has.
    #[error("{size} bytes are not an SCTP packet: the common header alone has 12")]
    TooShort {
        /// The packet's size in bytes.
        size: usize,
    },
    /// The CRC32c does not match.
    #[error("the checksum is {found:#010x}, but the bytes have {computed:#010x}")]
    Checksum {
        /// The checksum in the common header.
        found: u32,
        /// The checksum computed over the received bytes.
        computed: u32,
    },
    /// A length field is smaller than its header, or reaches beyond the enclosing element.
    #[error("the element at byte {at} cannot be {length} bytes long")]
    Length {
        /// Where the chunk, parameter or cause begins.
        at: usize,
        /// The value of its length field.
        length: usize,
    },
    /// After the last parameter or cause, bytes remain that are too few for another one.
    #[error("the bytes at {at} are too few for a parameter or cause")]
    Remainder {
        /// Where they begin.
        at: usize,
    },
    /// A known chunk, parameter or cause has more or fewer bytes than its content needs, or its counts contradict its
    /// length.
    #[error("the content of the element at byte {at} does not fit its length")]
    Content {
        /// Where the chunk, parameter or cause begins.
        at: usize,
    },
}

/// Why a packet cannot be encoded. The stack never builds such a packet; a caller can.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
pub enum EncodeError {
    /// A chunk, parameter or cause is longer than its length field can express.
    #[error("{size} bytes are more than the 65,535 that a length field can say")]
    TooLong {
        /// Its size in bytes, without padding.
        size: usize,
    },
    /// An `Unknown` has a number that the table knows. Decoding would return a different variant, or fail.
    #[error("number {number} is known and has its own variant")]
    Known {
        /// The chunk type, parameter type or cause code.
        number: u16,
    },
}
