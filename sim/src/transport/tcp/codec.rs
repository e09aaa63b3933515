//! Encodes and decodes a segment's header.

use etherparse::{TcpHeader, TcpOptionElement};
use smallvec::SmallVec;

use super::segment::{Segment, Sequence};
use crate::transport::mptcp::MptcpOptions;

/// The header of a segment with its options, without a checksum.
pub(crate) fn header(segment: &Segment) -> TcpHeader {
    let Segment { source, destination, sequence, window, .. } = *segment;
    let mut header = TcpHeader::new(source, destination, sequence.0, window);
    header.acknowledgment_number = segment.acknowledgement.unwrap_or_default().0;
    header.ack = segment.acknowledgement.is_some();
    (header.syn, header.fin) = (segment.syn, segment.fin);
    header.psh = segment.length > 0;
    header.set_options(&options(segment)).expect("a segment has at most 40 bytes of options");
    if let Some(mptcp) = &segment.mptcp {
        let all = [header.options.as_slice(), &mptcp.encode()].concat();
        header.set_options_raw(&all).expect("a segment has at most 40 bytes of options");
    }
    header
}

/// The options as senders write them, each padded to a multiple of four bytes.
fn options(segment: &Segment) -> SmallVec<[TcpOptionElement; 8]> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, WindowScale,
    };
    let mut options = SmallVec::new();
    options.extend(segment.mss.map(MaximumSegmentSize));
    if let Some(scale) = segment.window_scale {
        options.extend([Noop, WindowScale(scale)]);
    }
    if segment.sack_permitted {
        options.extend([Noop, Noop, SelectiveAcknowledgementPermitted]);
    }
    let blocks: SmallVec<[(u32, u32); 4]> = segment.sack.iter().map(|block| (block.0.0, block.1.0)).collect();
    if let Some(first) = blocks.first() {
        let rest = [1, 2, 3].map(|n| blocks.get(n).copied());
        options.extend([Noop, Noop, SelectiveAcknowledgement(*first, rest)]);
    }
    options
}

/// The segment after encoding and decoding. Fields that exist only in the simulator are kept.
pub(super) fn through_the_codec(segment: &Segment) -> Segment {
    let bytes = header(segment).to_bytes();
    let (header, _) = TcpHeader::from_slice(&bytes).expect("what was written can be read");
    let mut read = Segment {
        source: header.source_port,
        destination: header.destination_port,
        sequence: Sequence(header.sequence_number),
        acknowledgement: header.ack.then_some(Sequence(header.acknowledgment_number)),
        syn: header.syn,
        fin: header.fin,
        length: segment.length,
        window: header.window_size,
        mptcp: MptcpOptions::decode(header.options.as_slice()),
        plain_header: segment.plain_header,
        ..Segment::default()
    };
    for option in header.options_iterator().flatten() {
        match option {
            TcpOptionElement::MaximumSegmentSize(mss) => read.mss = Some(mss),
            TcpOptionElement::WindowScale(scale) => read.window_scale = Some(scale),
            TcpOptionElement::SelectiveAcknowledgementPermitted => read.sack_permitted = true,
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                let blocks = std::iter::once(first).chain(rest.into_iter().flatten());
                read.sack = blocks.map(|(from, to)| (Sequence(from), Sequence(to))).collect();
            }
            TcpOptionElement::Noop | TcpOptionElement::Timestamp(..) => {}
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let blocks = [(1, 2), (u32::MAX, 3), (9, 20), (30, 40)];
        let data = Segment {
            source: 5000,
            destination: 5001,
            sequence: Sequence(u32::MAX),
            acknowledgement: Some(Sequence(7)),
            length: 1448,
            window: 500,
            sack: blocks.iter().map(|(from, to)| (Sequence(*from), Sequence(*to))).collect(),
            ..Segment::default()
        };
        let syn = Segment {
            syn: true,
            mss: Some(1460),
            window_scale: Some(5),
            sack_permitted: true,
            ..Segment::default()
        };
        for segment in [data, syn, Segment { fin: true, ..Segment::default() }] {
            assert_eq!(through_the_codec(&segment), segment);
            assert_eq!(header(&segment).header_len() as u32, 20 + segment.option_bytes());
        }
    }
}
