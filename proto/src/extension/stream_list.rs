//! Lists of streams in requests (RFC 6525). An empty list means all streams.

/// A list of streams, in order and each once: the peer may name thousands, and each poll asks for them.
pub(super) fn listed(streams: &[u16]) -> Vec<u16> {
    let mut listed = streams.to_vec();
    listed.sort_unstable();
    listed.dedup();
    listed
}

/// Whether such a list contains this stream. An empty list contains all.
pub(crate) fn covers(listed: &[u16], stream: u16) -> bool {
    listed.is_empty() || listed.binary_search(&stream).is_ok()
}
