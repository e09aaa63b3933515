//! Files that are written and read again, files of other programs, and files of nobody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_proto::wire::chunk::{Bare, Data, GapBlock, Sack};
use anabranch_proto::wire::{Address, Chunk, Ecn, Packet, Ports};
use anabranch_proto::{Limit, PathId, Purpose, Reason, Ssn, Time, Tsn};
use bytes::{Bytes, BytesMut};
use smallvec::smallvec;

use super::*;
use crate::medium::wire::DropCause;
use crate::observe::trace::{Contents, Names, Observer, Origin, PacketView, Record, Side};
use crate::transport::Protocol;

const FROM: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const TO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// DATA and a SACK with a gap.
fn packet(from: impl Into<IpAddr>, to: impl Into<IpAddr>, udp: u16) -> Packet {
    let data = Data {
        tsn: Tsn(7),
        stream: 1,
        ssn: Ssn(2),
        ppid: 3,
        begin: true,
        end: true,
        unordered: false,
        immediate: false,
        payload: Bytes::from_static(&[0; 5]),
    };
    let gaps = smallvec![GapBlock { start: 2, end: 3 }];
    let sack =
        Sack { flags: 0, cumulative: Tsn(u32::MAX), a_rwnd: 4096, gaps, duplicates: smallvec![Tsn(9)] };
    Packet {
        from: Address { ip: from.into(), udp },
        to: Address { ip: to.into(), udp },
        ports: Ports { source: 5000, destination: 5001 },
        tag: 0xabcd,
        ecn: Ecn::Ect0,
        chunks: smallvec![Chunk::Sack(sack), Chunk::Data(data)],
    }
}

fn bytes(packet: &Packet, ip_header: u32) -> Vec<u8> {
    let mut out = BytesMut::new();
    let udp = if packet.from.udp == 0 { 0 } else { 8 };
    datagram::put(Contents::Sctp(packet), packet.size() as u32 + udp + ip_header, 2, &mut out).unwrap();
    out.to_vec()
}

const CHUNKS: &str =
    "SACK cum=4294967295 a_rwnd=4096 gaps=1-2 dups=9; DATA tsn=7 sid=1 ssn=2 ppid=3 len=5 flags=BE";

#[test]
fn the_shortcut_for_summaries_says_the_same() {
    let mut chunks = packet(FROM, TO, 0).chunks;
    let (Chunk::Sack(sack), Chunk::Data(data)) = (chunks[0].clone(), chunks[1].clone()) else {
        unreachable!()
    };
    chunks.push(Chunk::Sack(Sack { duplicates: smallvec![], ..sack.clone() }));
    chunks.push(Chunk::Sack(Sack { duplicates: smallvec![], gaps: smallvec![], ..sack }));
    chunks.push(Chunk::Data(Data { begin: false, end: false, ..data.clone() }));
    chunks.push(Chunk::Data(Data { unordered: true, immediate: true, ..data }));
    let put = chunks.iter().map(|chunk| {
        let mut out = Vec::new();
        let put = put_summary(chunk, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), if put { summary(chunk) } else { String::new() });
        put
    });
    assert_eq!(put.collect::<Vec<_>>(), [false, true, true, true, true, true]);
}

fn line(link_type: u16, bytes: &[u8]) -> String {
    let captured = CapturedPacket {
        number: 1,
        time: Some(1_500_000_000),
        interface: None,
        inbound: None,
        link_type,
        bytes: bytes.to_vec(),
        size: bytes.len() as u32,
        comment: None,
    };
    let lines = explain(&captured, &[9899]);
    serde_json::to_string(&lines).expect("every line can be JSON");
    lines.iter().map(Line::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_same_packet_on_every_link_type() {
    let ip = bytes(&packet(FROM, TO, 0), 20);
    let expected = format!("1.500000000  10.0.0.1:5000 > 10.0.0.2:5001  tag=0x0000abcd  {CHUNKS}");
    let behind = |header: &[u8]| [header, &ip[..]].concat();
    assert_eq!(line(101, &ip), expected);
    assert_eq!(line(228, &ip), expected);
    assert_eq!(line(1, &behind(&[&[2; 12][..], &[8, 0]].concat())), expected);
    assert_eq!(line(1, &behind(&[&[2; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat())), expected, "VLAN");
    assert_eq!(line(113, &behind(&[&[0; 14][..], &[8, 0]].concat())), expected);
    assert_eq!(line(276, &behind(&[&[8, 0][..], &[0; 18]].concat())), expected);
    assert_eq!(line(0, &behind(&[2, 0, 0, 0])), expected);
    assert_eq!(line(147, &ip), "1.500000000  [not read: link type 147]");
}

#[test]
fn over_udp_and_ipv6() {
    let (from, to) = (Ipv6Addr::LOCALHOST, Ipv6Addr::from_bits(2));
    let ends = "1.500000000  [::1]:5000 > [::2]:5001";
    assert_eq!(line(101, &bytes(&packet(from, to, 0), 40)), format!("{ends}  tag=0x0000abcd  {CHUNKS}"));
    let udp = bytes(&packet(from, to, 9899), 40);
    assert_eq!(line(101, &udp), format!("{ends}  udp 9899 > 9899  tag=0x0000abcd  {CHUNKS}"));
    let other = bytes(&packet(from, to, 5), 40);
    assert_eq!(line(101, &other), "1.500000000  ::1 > ::2  [not SCTP: UDP 5 > 5]");
}

#[test]
fn what_is_wrong_is_said() {
    let good = bytes(&packet(FROM, TO, 0), 20);
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        line(101, &bytes)
    };
    let checksum = changed(good.len() - 1, 1);
    assert!(checksum.contains(CHUNKS) && checksum.contains("[wrong checksum: "), "{checksum}");
    let length = changed(20 + 12 + 3, 2);
    assert!(length.contains("malformed: the element at byte 12 cannot be 2 bytes long"), "{length}");
    assert!(changed(9, 47).ends_with("10.0.0.1 > 10.0.0.2  [not SCTP: GRE]"), "{}", changed(9, 47));
    assert!(changed(9, 6).contains("10.0.0.1 > 10.0.0.2  [malformed: "), "{}", changed(9, 6));
    assert!(changed(0, 0x75).contains("[malformed: "), "{}", changed(0, 0x75));
    assert!(changed(6, 0x20).contains("[a fragment of an IP packet"), "{}", changed(6, 0x20));
    assert!(line(101, &good[..25]).contains("[cut: 5 bytes of SCTP were captured]"));
    let cut = line(101, &good[..20 + 12 + 24 + 6]);
    assert!(cut.contains("dups=9; DATA cut  [cut: 42 bytes"), "{cut}");
    assert_eq!(line(1, &[0; 3]).matches("malformed").count(), 1);
    assert_eq!(line(276, &[0; 3]).matches("malformed").count(), 1);
}

/// A datagram of several packets, as a capture sees it on a host that leaves the cutting to the kernel.
fn uncut(packets: &[Packet]) -> Vec<u8> {
    let mut sctp = BytesMut::new();
    packets.iter().for_each(|packet| packet.encode(&mut sctp).unwrap());
    let mut datagram = bytes(&packets[0], 20)[..28].to_vec();
    datagram.extend_from_slice(&sctp);
    let length = datagram.len() as u16;
    datagram[2..4].copy_from_slice(&length.to_be_bytes());
    datagram[24..26].copy_from_slice(&(length - 20).to_be_bytes());
    datagram
}

#[test]
fn a_datagram_that_was_not_cut_yet_is_cut() {
    let one = packet(FROM, TO, 9899);
    let last = Packet { chunks: smallvec![Chunk::CookieAck(Bare)], ..one.clone() };
    let whole = uncut(&[one.clone(), one.clone(), last]);
    let lines = line(101, &whole);
    let start = "1.500000000  10.0.0.1:5000 > 10.0.0.2:5001  udp 9899 > 9899  tag=0x0000abcd";
    let expected =
        [format!("1 of 3  {CHUNKS}"), format!("2 of 3  {CHUNKS}"), "3 of 3  COOKIE ACK".to_owned()];
    assert_eq!(lines, expected.map(|rest| format!("{start}  segment {rest}")).join("\n"));
    // A byte that was changed is still found: there is no cut where all checksums are right.
    let mut wrong = whole.clone();
    *wrong.last_mut().unwrap() ^= 1;
    assert!(line(101, &wrong).contains("[wrong checksum: "), "{}", line(101, &wrong));
    // Without checksums ports and tag show where a packet begins.
    let mut unchecked = whole;
    let size = one.size();
    for at in [0, size, 2 * size] {
        unchecked[28 + at + 8..28 + at + 12].fill(0);
    }
    assert_eq!(line(101, &unchecked).lines().count(), 3);
    assert!(line(101, &unchecked).contains("segment 3 of 3  COOKIE ACK"));
}

/// A capture without user data says as much as one with it.
#[test]
fn headers_say_all_that_a_line_shows() {
    let packet = packet(FROM, TO, 9899);
    let full = bytes(&packet, 20);
    let captured = |kept: usize| CapturedPacket {
        number: 1,
        time: Some(1_500_000_000),
        interface: None,
        inbound: None,
        link_type: 101,
        bytes: full[..kept].to_vec(),
        size: full.len() as u32,
        comment: None,
    };
    let text = |kept: usize| explain(&captured(kept), &[9899])[0].to_string();
    assert_eq!(text(full.len() - 8), text(full.len()), "the user data and its padding");
    assert!(
        text(full.len() - 9).ends_with("DATA cut  [cut: 51 bytes of SCTP were captured]"),
        "{}",
        text(full.len() - 9)
    );
}

#[test]
fn ip_headers_have_the_size_of_the_scenario() {
    let packet = packet(FROM, TO, 9899);
    for (asked, written) in [(20, 20), (24, 24), (60, 60), (0, 20), (22, 20), (64, 20)] {
        let bytes = bytes(&packet, asked);
        assert_eq!(bytes.len(), written + 8 + packet.size(), "{asked}");
        assert_eq!(etherparse::SlicedPacket::from_ip(&bytes).map(|_| ()), Ok(()), "{asked}");
        assert_eq!((bytes[0], bytes[8], bytes[1]), (0x40 + (written / 4) as u8, 62, 2), "{asked}");
    }
}

/// The records of a packet in the only direction of a link.
struct Told {
    writer: CaptureWriter<Vec<u8>>,
    packet: Packet,
}

impl Told {
    fn new(most_held: usize) -> Self {
        let mut writer = CaptureWriter::new(Vec::new(), "a test");
        writer.most_held = most_held;
        let link = |direction: &str| ("wire".to_owned(), direction.to_owned());
        writer.begin(&Names {
            flows: vec!["f".to_owned()],
            protocols: vec![Protocol::Sctp],
            links: vec![link("a>b"), link("b>a")],
            ..Names::default()
        });
        Told { writer, packet: packet(FROM, TO, 0) }
    }

    /// `number`: that of the packet in the run, if it has one.
    fn record(&mut self, at: u64, number: Option<u64>, record: impl FnOnce(PacketView<'_>) -> Record<'_>) {
        let reason =
            Reason { purpose: Purpose::Sack, path: None::<PathId>, limit: Limit::Control, oversize: false };
        let origin = Some(Origin { side: Side::Client, path: Some("p"), reason, wait: None });
        let size = self.packet.size() as u32 + 20;
        let shown = PacketView { size, contents: Contents::Sctp(&self.packet), number, hops: 0, origin };
        self.writer.record(Time::from_nanos(at), &record(shown));
    }

    fn started(&mut self, at: u64, number: u64) {
        self.record(at, Some(number), |packet| Record::Started { link: 0, flow: 0, number, packet });
    }

    fn delivered(&mut self, at: u64, number: u64) {
        self.record(at, Some(number), |packet| Record::Delivered { link: 0, flow: 0, packet });
    }

    fn dropped(&mut self, at: u64, number: u64, cause: DropCause) {
        self.record(at, Some(number), |packet| Record::Dropped { link: 0, flow: 0, number, cause, packet });
    }

    /// Of each packet: nanoseconds, interface, and its comment up to the flow.
    fn seen(self) -> Vec<(i128, String, String)> {
        let file = self.writer.finish().unwrap();
        let packets = CaptureReader::new(&file[..]).unwrap().map(Result::unwrap);
        let seen = packets.map(|packet| {
            let comment = packet.comment.unwrap();
            assert!(comment.ends_with("flow f, path p: acknowledgement, control, RFC 9260 section 6.2"));
            let inbound = packet.interface.as_deref() == Some("wire:b");
            assert_eq!(packet.inbound, Some(inbound));
            let cause = comment.split_once("flow").unwrap().0.to_owned();
            (packet.time.unwrap(), packet.interface.unwrap(), cause)
        });
        seen.collect()
    }
}

fn seen(at: i128, interface: &str, cause: &str) -> (i128, String, String) {
    (at, interface.to_owned(), cause.to_owned())
}

#[test]
fn a_packet_appears_at_both_ends_and_a_drop_once() {
    let mut told = Told::new(100);
    told.started(10, 1);
    told.dropped(11, 2, DropCause::Queue);
    told.started(12, 3);
    told.delivered(20, 1);
    told.dropped(21, 3, DropCause::Down);
    told.dropped(21, 4, DropCause::Down);
    told.started(30, 5);
    let expected = [
        seen(10, "wire:a", ""),
        seen(11, "wire:a", "dropped: queue full; "),
        seen(12, "wire:a", "dropped: link went down meanwhile; "),
        seen(20, "wire:b", ""),
        seen(21, "wire:a", "dropped: link down; "),
        seen(30, "wire:a", ""),
    ];
    assert_eq!(told.seen(), expected);
}

/// The second overtakes the first, which is on its way when the link goes down.
#[test]
fn a_packet_that_is_overtaken_has_its_own_fate() {
    let mut told = Told::new(100);
    told.started(10, 1);
    told.started(11, 2);
    told.delivered(20, 2);
    told.dropped(21, 1, DropCause::Down);
    let late = "dropped: link went down meanwhile; ";
    assert_eq!(told.seen(), [seen(10, "wire:a", late), seen(11, "wire:a", ""), seen(20, "wire:b", "")]);
}

#[test]
fn no_more_is_held_than_was_said() {
    let mut told = Told::new(2);
    (1..=4).for_each(|number| told.started(number, number));
    assert_eq!(told.writer.held.len(), 2);
    (1..=3).for_each(|number| told.dropped(9, number, DropCause::Down));
    let causes: Vec<_> = told.seen().into_iter().map(|(at, _, cause)| (at, cause)).collect();
    let late = "dropped: link went down meanwhile; ";
    let expected = [(1, ""), (2, ""), (3, ""), (4, ""), (9, late), (9, late), (9, late)];
    assert_eq!(causes, expected.map(|(at, cause)| (at, cause.to_owned())));
}

fn classic(nanos: bool, big_endian: bool) -> Vec<u8> {
    let magic = if nanos { 0xa1b2_3c4d_u32 } else { 0xa1b2_c3d4 };
    let ip = bytes(&packet(FROM, TO, 0), 20);
    let size = ip.len() as u32;
    let words = [magic, 0x0002_0004, 0, 0, 65535, 101, 5, 250, size, size];
    let words = words.map(|word| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() });
    [words.as_flattened(), &ip].concat()
}

#[test]
fn classic_pcap_of_either_order_and_resolution() {
    for (nanos, big_endian) in [(false, false), (false, true), (true, false), (true, true)] {
        let file = classic(nanos, big_endian);
        let packets: Vec<_> = CaptureReader::new(&file[..]).unwrap().map(Result::unwrap).collect();
        let part = if nanos { 250 } else { 250_000 };
        assert_eq!((packets.len(), packets[0].time), (1, Some(5_000_000_000 + part)));
        assert!(explain(&packets[0], &[])[0].to_string().ends_with(CHUNKS));
        for end in 25..file.len() {
            let last = CaptureReader::new(&file[..end]).unwrap().last();
            assert!(matches!(last, Some(Err(ReadError::Wrong { at: 24, .. }))), "{end}");
        }
    }
}

fn written() -> Vec<u8> {
    let mut told = Told::new(100);
    told.packet.chunks.push(Chunk::CookieAck(Bare));
    told.started(10, 1);
    told.packet = packet(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 9899);
    told.delivered(20, 1);
    told.dropped(30, 2, DropCause::Loss);
    told.writer.finish().unwrap()
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_packets() {
    let file = written();
    let whole = CaptureReader::new(&file[..]).unwrap().filter(Result::is_ok).count();
    assert_eq!(whole, 3);
    for end in 0..file.len() {
        let Ok(reader) = CaptureReader::new(&file[..end]) else { continue };
        let results: Vec<_> = reader.collect();
        assert!(results.iter().filter(|packet| packet.is_ok()).count() <= 2, "{end}");
        assert!(results.iter().rev().skip(1).all(Result::is_ok));
    }
}

#[test]
fn resolutions_and_offsets_of_interfaces() {
    let file = written();
    let option = [9_u8, 0, 1, 0, 9];
    let at = file.windows(5).position(|window| window == option).unwrap() + 4;
    // The packet of 10 units is of the first interface: its time is this many nanoseconds.
    for (resolution, nanos) in
        [(9, 10), (6, 10_000), (0, 10_000_000_000), (10, 1), (127, 0), (0x80 + 1, 5_000_000_000), (255, 0)]
    {
        let mut file = file.clone();
        file[at] = resolution;
        let first = CaptureReader::new(&file[..]).unwrap().next().unwrap().unwrap();
        assert_eq!(first.time, Some(nanos), "{resolution}");
    }
}

/// A stream of numbers, for tests only.
fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

/// Bytes that were changed, taken out or doubled, most often where lengths and types stand.
fn mutate(file: &[u8], below: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for _ in 0..=below(4) {
        let at = below(bytes.len());
        match below(6) {
            0 => bytes.truncate(at.max(4)),
            1 => drop(bytes.drain(at..(at + below(9)).min(bytes.len()))),
            2 => bytes.extend_from_within(at..),
            3 => bytes[at] = [0, 1, 4, 0x7f, 0x80, 0xff][below(6)],
            _ => bytes[at] ^= 1 << below(8),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

#[test]
fn hostile_files_do_no_harm() {
    let mut below = numbers(5);
    let seeds = [written(), classic(true, false), classic(false, true)];
    let mut packets = 0;
    for round in 0..60_000 {
        let file = mutate(&seeds[round % seeds.len()], &mut below);
        let Ok(reader) = CaptureReader::new(&file[..]) else { continue };
        for mut packet in reader.map_while(Result::ok) {
            assert!(packet.bytes.len() <= file.len());
            if below(4) == 0 {
                packet.link_type = [0, 1, 12, 101, 108, 113, 228, 276][below(8)];
            }
            let lines = explain(&packet, &[9899]);
            let text: String = lines.iter().map(Line::to_string).collect();
            let json = serde_json::to_string(&lines).unwrap();
            assert!(!text.contains(char::is_control) && text.len() + json.len() < 64 * file.len());
            packets += 1;
        }
    }
    assert!(packets > 30_000, "{packets}");
}

#[test]
fn a_length_alone_takes_no_memory() {
    let mut file = written();
    let start = file.len();
    file.extend([6, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(file.len() - start, 9);
    let error = CaptureReader::new(&file[..]).unwrap().last().unwrap().unwrap_err();
    assert_eq!(error.to_string(), format!("at byte {start}: the file ends within a block"));
    let nothing = CaptureReader::new(&b"GIF89a"[..]).err().unwrap();
    assert_eq!(nothing.to_string(), "this is neither pcapng nor pcap");
}

#[test]
fn commands_to_a_terminal_do_not_come_out() {
    let mut file = written();
    let at = file.windows(7).position(|window| window == b"flow f,").unwrap();
    file[at] = 0x1b;
    let first = CaptureReader::new(&file[..]).unwrap().next().unwrap().unwrap();
    assert!(explain(&first, &[])[0].to_string().contains("# \\u{1b}low f,"));
}
