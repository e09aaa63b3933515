//! The start of one of our packets, as an ICMP error quotes it.

use super::chunk::CHUNK_HEADER;
use super::{HEADER, Ports};

/// The quoted part of a packet. It is enough to decide whether we sent the packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Quoted {
    /// SCTP ports; the source port is ours.
    pub ports: Ports,
    /// The verification tag.
    pub tag: u32,
    /// The Initiate Tag, if the first chunk is an INIT and its tag was quoted.
    pub initiate_tag: Option<u32>,
}

impl Quoted {
    /// Reads the quoted bytes of an SCTP packet. The result is `None` if they do not include the verification tag. The
    /// checksum cannot be verified, because the end of the packet is missing.
    //= rfc9260#section-10
    pub fn read(bytes: &[u8]) -> Option<Quoted> {
        let long = |at: usize| bytes.get(at..)?.first_chunk().map(|four| u32::from_be_bytes(*four));
        let (ports, tag) = (long(0)?, long(4)?);
        let ports = Ports { source: (ports >> 16) as u16, destination: ports as u16 };
        let is_init = bytes.get(HEADER) == Some(&1);
        Some(Quoted { ports, tag, initiate_tag: long(HEADER + CHUNK_HEADER).filter(|_| is_init) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_init_is_known_by_its_own_tag_and_others_by_the_peers() {
        let init = [19, 136, 19, 137, 0, 0, 0, 0, 9, 9, 9, 9, 1, 0, 0, 20, 1, 2, 3, 4];
        let ports = Ports { source: 5000, destination: 5001 };
        let quoted = Quoted { ports, tag: 0, initiate_tag: Some(0x0102_0304) };
        assert_eq!(Quoted::read(&init), Some(quoted));
        assert_eq!(Quoted::read(&init[..18]), Some(Quoted { initiate_tag: None, ..quoted }));
        let data = [19, 136, 19, 137, 0, 0, 0, 7];
        assert_eq!(Quoted::read(&data), Some(Quoted { ports, tag: 7, initiate_tag: None }));
        assert_eq!(Quoted::read(&data[..7]), None);
    }
}
