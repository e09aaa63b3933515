//! A frame of a radio as the bytes that a capture has: radiotap, the MAC frame of IEEE 802.11, and its check sequence.
//!
//! Between the MAC header and a packet stand LLC and SNAP, 8 bytes, whatever the scenario's `llc` says: programs look
//! for the packet behind them.

use bytes::{BufMut, BytesMut};
use crc_fast::{CrcAlgorithm, checksum};

use crate::observe::trace::{FrameKind, RadioFrame};

/// Radiotap: flags, rate and channel are present.
const PRESENT: u32 = 0b1110;
const RADIOTAP: u16 = 14;
/// The frame check sequence is there.
const WITH_CHECK: u8 = 0x10;
const RETRY: u8 = 0x08;
/// Rates of 802.11b up to 11 Mbit/s are CCK's or DSSS's, and most others OFDM's.
const DIRECT: [u64; 4] = [1_000_000, 2_000_000, 5_500_000, 11_000_000];
/// Bytes of the MAC header of data.
const MAC_HEADER: usize = 24;
/// Bytes of the check sequence at the end of a frame.
pub(super) const CHECK: usize = 4;
/// The LLC and SNAP headers; the type of IPv4 or IPv6 follows.
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

/// Writes a frame on channel number `channel` with this `datagram`. Returns how many bytes it really has: more than are
/// written if it carries a datagram that is not known any more.
pub(super) fn put(channel: usize, frame: &RadioFrame, datagram: &[u8], out: &mut BytesMut) -> usize {
    radiotap(frame, out);
    let start = out.len();
    let kind = match frame.kind {
        FrameKind::Rts => 0xb4,
        FrameKind::Cts => 0xc4,
        FrameKind::Ack => 0xd4,
        FrameKind::Data => 0x08,
    };
    out.put_u8(kind);
    // Control frames never have this bit (IEEE 802.11-1999, 7.1.3.1.5), not even an RTS that is sent again.
    out.put_u8(if frame.retry && frame.kind == FrameKind::Data { RETRY } else { 0 });
    out.put_u16_le((frame.duration / 1000).min(0x7fff) as u16);
    out.put_slice(&address(channel, frame.to));
    if matches!(frame.kind, FrameKind::Rts | FrameKind::Data) {
        out.put_slice(&address(channel, frame.from));
    }
    if frame.kind == FrameKind::Data {
        // The cell's own address: no station has this number.
        out.put_slice(&address(channel, u32::from(u16::MAX)));
        out.put_u16_le(frame.sequence << 4);
        let Some(first) = datagram.first() else {
            return usize::from(RADIOTAP) + frame.size as usize;
        };
        out.put_slice(&SNAP);
        out.put_u16(if first >> 4 == 6 { 0x86dd } else { 0x0800 });
        out.put_slice(datagram);
    }
    let check = checksum(CrcAlgorithm::Crc32IsoHdlc, &out[start..]);
    out.put_u32_le(check as u32);
    out.len()
}

/// What a frame of data carries, check sequence and all, behind LLC and SNAP, whose type are the two bytes before it;
/// or why there is none.
pub(super) fn datagram(bytes: &[u8]) -> Result<&[u8], &'static str> {
    const CUT: &str = "malformed: less than an 802.11 header";
    let header = bytes.get(2..4).ok_or(CUT)?;
    let frame = bytes.get(usize::from(u16::from_le_bytes([header[0], header[1]]))..).ok_or(CUT)?;
    match frame.first().ok_or(CUT)? {
        0xb4 => return Err("not SCTP: RTS"),
        0xc4 => return Err("not SCTP: CTS"),
        0xd4 => return Err("not SCTP: ACK of 802.11"),
        0x08 => {}
        _ => return Err("not SCTP: 802.11, not data"),
    }
    let logical = frame.get(MAC_HEADER..).ok_or(CUT)?;
    match logical.get(..SNAP.len()) {
        Some(snap) if snap == SNAP => logical.get(SNAP.len() + 2..).ok_or(CUT),
        Some(_) => Err("not SCTP: 802.11 without SNAP"),
        None => Err("802.11 data whose packet had arrived before"),
    }
}

fn radiotap(frame: &RadioFrame, out: &mut BytesMut) {
    let direct = DIRECT.contains(&frame.rate) && !frame.five_gigahertz;
    let modulation = if direct { 0x0020 } else { 0x0040 };
    let (megahertz, band) = if frame.five_gigahertz { (5180, 0x0100) } else { (2412, 0x0080) };
    out.put_u16_le(0);
    out.put_u16_le(RADIOTAP);
    out.put_u32_le(PRESENT);
    out.put_u8(WITH_CHECK);
    out.put_u8((frame.rate / 500_000) as u8);
    out.put_u16_le(megahertz);
    out.put_u16_le(modulation | band);
}

/// An address that is administered locally: the channel's number and the radio's.
fn address(channel: usize, station: u32) -> [u8; 6] {
    let ([_, _, a, b], [_, _, c, d]) = ((channel as u32).to_be_bytes(), station.to_be_bytes());
    [2, 0, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: FrameKind, size: u32) -> RadioFrame {
        RadioFrame {
            kind,
            from: 1,
            to: 2,
            size,
            rate: 2_000_000,
            airtime: 272_000,
            duration: 258_000,
            sequence: 5,
            retry: true,
            five_gigahertz: false,
        }
    }

    #[test]
    fn frames_have_their_sizes() {
        for (kind, size) in [(FrameKind::Rts, 20), (FrameKind::Cts, 14), (FrameKind::Ack, 14)] {
            let mut out = BytesMut::new();
            assert_eq!(put(0, &frame(kind, size), &[], &mut out), 14 + size as usize);
            assert_eq!(out.len(), 14 + size as usize);
            assert_eq!(out[15], 0, "a control frame has no flag of a retransmission");
        }
    }

    #[test]
    fn a_frame_of_data() {
        let mut out = BytesMut::new();
        put(3, &frame(FrameKind::Data, 29), &[0x45], &mut out);
        assert_eq!(out[..14], [0, 0, 14, 0, 14, 0, 0, 0, 0x10, 4, 0x6c, 9, 0xa0, 0]);
        assert_eq!(out[14..18], [0x08, 0x08, 2, 1]);
        assert_eq!(out[18..30], [2, 0, 0, 3, 0, 2, 2, 0, 0, 3, 0, 1]);
        assert_eq!(datagram(&out), Ok(&out[46..]));
        assert_eq!(datagram(&out[..40]), Err("802.11 data whose packet had arrived before"));
        assert!(datagram(&out[..3]).is_err() && datagram(&out[..20]).is_err());
        assert_eq!(out[36..47], [0x50, 0, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45]);
        let mut cut = BytesMut::new();
        assert_eq!(put(3, &frame(FrameKind::Data, 1056), &[], &mut cut), 14 + 1056);
        assert_eq!(cut.len(), 14 + 24);
    }
}
