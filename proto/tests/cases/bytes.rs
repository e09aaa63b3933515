//! Chunks and parameters as bytes, also such as cannot be.

pub(crate) fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A chunk; its length is right.
pub(crate) fn chunk(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    raw(kind, flags, 4 + value.len() as u16, value)
}

/// A chunk that says to have this length.
pub(crate) fn raw(kind: u8, flags: u8, length: u16, value: &[u8]) -> Vec<u8> {
    padded([&[kind, flags], &length.to_be_bytes()[..], value].concat())
}

pub(crate) fn param(kind: u16, value: &[u8]) -> Vec<u8> {
    long_param(kind, 4 + value.len() as u16, value)
}

/// A parameter that says to have this length.
pub(crate) fn long_param(kind: u16, length: u16, value: &[u8]) -> Vec<u8> {
    padded([&kind.to_be_bytes()[..], &length.to_be_bytes(), value].concat())
}

pub(crate) struct Init {
    pub(crate) kind: u8,
    pub(crate) tag: u32,
    pub(crate) a_rwnd: u32,
    pub(crate) streams: (u16, u16),
    pub(crate) tsn: u32,
    pub(crate) params: Vec<u8>,
}

/// An INIT with tag 5 and first TSN 1.
pub(crate) const INIT: Init =
    Init { kind: 1, tag: 5, a_rwnd: 1 << 20, streams: (10, 10), tsn: 1, params: Vec::new() };

impl Init {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (outbound, inbound) = (self.streams.0.to_be_bytes(), self.streams.1.to_be_bytes());
        let (tag, a_rwnd, tsn) = (self.tag.to_be_bytes(), self.a_rwnd.to_be_bytes(), self.tsn.to_be_bytes());
        chunk(self.kind, 0, &[&tag[..], &a_rwnd, &outbound, &inbound, &tsn, &self.params].concat())
    }
}

/// DATA that is a whole ordered message.
pub(crate) fn data(tsn: u32, stream: u16, ssn: u16, payload: &[u8]) -> Vec<u8> {
    let (tsn, stream, ssn) = (tsn.to_be_bytes(), stream.to_be_bytes(), ssn.to_be_bytes());
    chunk(0, 3, &[&tsn[..], &stream, &ssn, &[0; 4], payload].concat())
}

pub(crate) fn sack(cumulative: u32, gaps: &[(u16, u16)]) -> Vec<u8> {
    let blocks = gaps.iter().flat_map(|(start, end)| [start.to_be_bytes(), end.to_be_bytes()].concat());
    let count = (gaps.len() as u16).to_be_bytes();
    let head = [&cumulative.to_be_bytes()[..], &(1u32 << 20).to_be_bytes(), &count, &[0; 2]].concat();
    chunk(3, 0, &head.into_iter().chain(blocks).collect::<Vec<_>>())
}

/// HEARTBEAT with such information.
pub(crate) fn heartbeat(info: &[u8]) -> Vec<u8> {
    chunk(4, 0, &param(1, info))
}
