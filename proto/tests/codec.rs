//! What holds for every packet: it comes back equal, `size` is its length, and no bytes do harm.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_proto::wire::chunk::{
    Abort, AddStreams, AddressRequest, Asconf, AsconfAck, AsconfParam, Auth, Bare, CookieEcho, Data, EcnEcho,
    Failed, ForwardTsn, FragmentPosition, GapBlock, Heartbeat, IData, IForwardTsn, IncomingReset, Init,
    NrSack, OperationError, OutgoingReset, Pad, ReConfig, ReConfigParam, Response, Sack, Shutdown,
    ShutdownComplete, SkippedMessage, Timestamp, Unknown,
};
use anabranch_proto::wire::{Address, Cause, Chunk, DecodeError, Ecn, Packet, Param, Ports};
use anabranch_proto::{Mid, Ssn, Tsn};
use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn decoding_undoes_encoding(packet in packets()) {
        let bytes = encoded(&packet);
        prop_assert_eq!(bytes.len(), packet.size());
        prop_assert_eq!(decoded(&packet, bytes.clone()), Ok(packet.clone()));
        prop_assert_eq!(unchecked(&packet, bytes), Ok(packet));
    }

    #[test]
    fn parameters_survive_alone(list in vec(params(), 0..6)) {
        let bytes = Param::encode_list(&list).unwrap();
        prop_assert_eq!(Param::decode_list(&bytes), Ok(list));
    }

    #[test]
    fn a_chunk_alone_is_its_part_of_the_packet(packet in packets()) {
        let bytes = encoded(&packet);
        let mut at = 12;
        for chunk in &packet.chunks {
            let alone = chunk.to_bytes().unwrap();
            prop_assert_eq!(alone.len(), chunk.padded_size());
            prop_assert_eq!(&alone[..], &bytes[at..at + alone.len()]);
            at += chunk.padded_size();
        }
    }

    #[test]
    fn packets_follow_one_another_in_one_buffer(first in packets(), second in packets()) {
        let mut out = BytesMut::new();
        first.encode(&mut out).unwrap();
        second.encode(&mut out).unwrap();
        let second_bytes = out.split_off(first.size()).freeze();
        prop_assert_eq!(decoded(&first, out.freeze()), Ok(first));
        prop_assert_eq!(decoded(&second, second_bytes), Ok(second));
    }

    #[test]
    fn one_changed_byte_fails_the_checksum(packet in packets(), at: Index, flip in 1..=255u8) {
        let mut bytes = encoded(&packet).to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let refused = matches!(decoded(&packet, bytes.into()), Err(DecodeError::Checksum { .. }));
        prop_assert!(refused);
    }

    #[test]
    fn random_bytes_do_no_harm(packet in packets(), bytes in vec(any::<u8>(), 0..300)) {
        let bytes = Bytes::from(bytes);
        let _ = decoded(&packet, bytes.clone());
        harmless(&packet, bytes)?;
    }

    #[test]
    fn random_chunks_do_no_harm(packet in packets(), random in vec(random_chunk(), 0..8)) {
        let mut bytes = vec![0; 12];
        bytes.extend(random.concat());
        harmless(&packet, bytes.into())?;
    }

    #[test]
    fn damaged_packets_do_no_harm(packet in packets(), damage in vec(damage(), 1..5)) {
        let mut bytes = encoded(&packet).to_vec();
        damage.iter().for_each(|damage| damage.apply(&mut bytes));
        let _ = decoded(&packet, bytes.clone().into());
        harmless(&packet, bytes.into())?;
    }
}

#[test]
fn the_emptiest_elements_cost_the_most_and_stay_bounded() {
    let header = [0; 12];
    let causes: Vec<u8> = [9, 0, 0x80, 0].into_iter().chain([0x77, 0, 0, 4].repeat(0x1fff)).collect();
    for chunks in [[0xc7, 0, 0, 4].repeat(16_000), [9, 0, 0, 4].repeat(16_400), causes] {
        let bytes = Bytes::from([&header[..], &chunks].concat());
        let size = bytes.len();
        let packet = Packet::decode_unchecked(PLACE, PLACE, Ecn::NotEct, bytes).unwrap();
        assert!(footprint(&packet) <= 64 * size, "{} bytes for {size}", footprint(&packet));
    }
}

/// Whatever these bytes are taken for can be encoded, is not longer than they with the last chunk's padding, which may
/// be missing, comes back equal, and is small in memory.
fn harmless(like: &Packet, bytes: Bytes) -> Result<(), TestCaseError> {
    let size = bytes.len();
    let Ok(packet) = unchecked(like, bytes) else { return Ok(()) };
    prop_assert!(footprint(&packet) <= 64 * size);
    let again = encoded(&packet);
    prop_assert!(again.len() <= size.next_multiple_of(4));
    prop_assert_eq!(decoded(like, again), Ok(packet));
    Ok(())
}

/// Bytes of memory behind a packet, shared payloads aside.
fn footprint(packet: &Packet) -> usize {
    let spilled = if packet.chunks.spilled() { packet.chunks.capacity() } else { 0 };
    spilled * size_of::<Chunk>() + packet.chunks.iter().map(behind).sum::<usize>()
}

/// Bytes of memory behind a chunk.
fn behind(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Init(init) | Chunk::InitAck(init) => {
            let lists = init.params.iter().map(|param| match param {
                Param::SupportedAddressTypes(types) | Param::HmacAlgorithms(types) => 2 * types.capacity(),
                _ => 0,
            });
            size_of::<Init>() + init.params.capacity() * size_of::<Param>() + lists.sum::<usize>()
        }
        Chunk::Abort(Abort { causes, .. }) | Chunk::Error(OperationError { causes }) => {
            let lists = causes.iter().map(|cause| match cause {
                Cause::MissingParameter(types) => 2 * types.capacity(),
                _ => 0,
            });
            causes.capacity() * size_of::<Cause>() + lists.sum::<usize>()
        }
        Chunk::Sack(sack) => 4 * (sack.gaps.capacity() + sack.duplicates.capacity()),
        Chunk::NrSack(sack) => {
            let lists = sack.gaps.capacity() + sack.kept.capacity() + sack.duplicates.capacity();
            size_of::<NrSack>() + 4 * lists
        }
        Chunk::Auth(_) => size_of::<Auth>(),
        Chunk::ForwardTsn(forward) => 4 * forward.skipped.capacity(),
        Chunk::IForwardTsn(forward) => size_of::<SkippedMessage>() * forward.skipped.capacity(),
        Chunk::ReConfig(config) => config.params.capacity() * size_of::<ReConfigParam>(),
        Chunk::Asconf(asconf) => size_of::<Asconf>() + asconf.requests.capacity() * size_of::<AsconfParam>(),
        Chunk::AsconfAck(ack) => size_of::<AsconfAck>() + ack.responses.capacity() * size_of::<AsconfParam>(),
        Chunk::Unknown(_) => size_of::<Unknown>(),
        _ => 0,
    }
}

const PLACE: Address = Address::ip(IpAddr::V4(Ipv4Addr::LOCALHOST));

fn encoded(packet: &Packet) -> Bytes {
    let mut out = BytesMut::new();
    packet.encode(&mut out).unwrap();
    out.freeze()
}

fn decoded(like: &Packet, bytes: Bytes) -> Result<Packet, DecodeError> {
    Packet::decode(like.from, like.to, like.ecn, bytes)
}

fn unchecked(like: &Packet, bytes: Bytes) -> Result<Packet, DecodeError> {
    Packet::decode_unchecked(like.from, like.to, like.ecn, bytes)
}

prop_compose! {
    fn packets()(
        from in addresses(),
        to in addresses(),
        source: u16,
        destination: u16,
        tag: u32,
        ecn in prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)],
        chunks in vec(chunks(), 0..5),
    ) -> Packet {
        Packet { from, to, ports: Ports { source, destination }, tag, ecn, chunks: chunks.into() }
    }
}

fn addresses() -> impl Strategy<Value = Address> {
    (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, udp)| Address { ip, udp })
}

fn heartbeat() -> impl Strategy<Value = Heartbeat> {
    (octets(40), vec(params(), 0..3)).prop_map(|(info, others)| {
        let others = Param::encode_list(&others).expect("short");
        Heartbeat { info, others: Some(Box::new(others)).filter(|others| !others.is_empty()) }
    })
}

/// Each row of the table, and the numbers that have none.
fn chunks() -> impl Strategy<Value = Chunk> {
    prop_oneof![
        data().prop_map(Chunk::Data),
        init().prop_map(|init| Chunk::Init(Box::new(init))),
        init().prop_map(|init| Chunk::InitAck(Box::new(init))),
        sack().prop_map(Chunk::Sack),
        (sack(), sack()).prop_map(|(sack, other)| {
            let Sack { flags, cumulative, a_rwnd, gaps, duplicates } = sack;
            let kept = other.gaps;
            Chunk::NrSack(Box::new(NrSack { flags, cumulative, a_rwnd, gaps, kept, duplicates }))
        }),
        heartbeat().prop_map(Chunk::Heartbeat),
        heartbeat().prop_map(Chunk::HeartbeatAck),
        (any::<bool>(), vec(causes(), 0..4))
            .prop_map(|(reflected, causes)| Chunk::Abort(Abort { reflected, causes })),
        tsns().prop_map(|cumulative| Chunk::Shutdown(Shutdown { cumulative })),
        Just(Chunk::ShutdownAck(Bare)),
        vec(causes(), 0..4).prop_map(|causes| Chunk::Error(OperationError { causes })),
        octets(400).prop_map(|cookie| Chunk::CookieEcho(CookieEcho { cookie })),
        Just(Chunk::CookieAck(Bare)),
        any::<bool>().prop_map(|reflected| Chunk::ShutdownComplete(ShutdownComplete { reflected })),
        extensions(),
        (any::<u8>(), any::<u8>(), octets(40))
            .prop_filter(
                "known",
                |(number, ..)| !matches!(number, 0..=16 | 64 | 128 | 130 | 132 | 144 | 192..=194)
            )
            .prop_map(|(number, flags, value)| Chunk::Unknown(Box::new(Unknown { number, flags, value }))),
        (0..2000u16).prop_map(|bytes| Chunk::Pad(Pad { bytes })),
    ]
}

fn extensions() -> impl Strategy<Value = Chunk> {
    let echo = || tsns().prop_map(|tsn| EcnEcho { tsn });
    prop_oneof![
        any::<(Option<u32>, Option<u32>)>()
            .prop_map(|(sent, echo)| Chunk::Timestamp(Timestamp { sent, echo })),
        echo().prop_map(Chunk::Ecne),
        echo().prop_map(Chunk::Cwr),
        (any::<u16>(), any::<u16>(), octets(40)).prop_map(|(key, algorithm, hmac)| {
            Chunk::Auth(Box::new(Auth { key, algorithm, hmac, covered: Default::default() }))
        }),
        interleaved().prop_map(Chunk::IData),
        (any::<u32>(), vec(changes(), 0..4))
            .prop_map(|(sequence, responses)| Chunk::AsconfAck(Box::new(AsconfAck { sequence, responses }))),
        (any::<u32>(), any::<IpAddr>(), vec(changes(), 0..4)).prop_map(|(sequence, address, requests)| {
            Chunk::Asconf(Box::new(Asconf { sequence, address, requests }))
        }),
        vec(reconfigurations(), 0..4).prop_map(|params| Chunk::ReConfig(ReConfig { params })),
        (0..2000u16).prop_map(|bytes| Chunk::Pad(Pad { bytes })),
        (tsns(), vec((any::<u16>(), any::<u16>().prop_map(Ssn)), 0..6))
            .prop_map(|(cumulative, skipped)| Chunk::ForwardTsn(ForwardTsn { cumulative, skipped })),
        (tsns(), vec(skipped(), 0..6))
            .prop_map(|(cumulative, skipped)| Chunk::IForwardTsn(IForwardTsn { cumulative, skipped })),
    ]
}

fn skipped() -> impl Strategy<Value = SkippedMessage> {
    let make = |(stream, unordered, mid)| SkippedMessage { stream, unordered, mid: Mid(mid) };
    any::<(u16, bool, u32)>().prop_map(make)
}

prop_compose! {
    fn interleaved()(
        tsn in tsns(),
        stream: u16,
        mid in any::<u32>().prop_map(Mid),
        place in prop_oneof![
            any::<u32>().prop_map(|ppid| FragmentPosition::First { ppid }),
            any::<u32>().prop_map(|fsn| FragmentPosition::Later { fsn }),
        ],
        [end, unordered, immediate]: [bool; 3],
        payload in octets(1500),
    ) -> IData {
        IData { tsn, stream, mid, place, end, unordered, immediate, payload }
    }
}

fn reconfigurations() -> impl Strategy<Value = ReConfigParam> {
    let streams = || vec(any::<u16>(), 0..4);
    let add = || any::<(u32, u16)>().prop_map(|(request, count)| AddStreams { request, count });
    let next = prop_oneof![Just(None), (tsns(), tsns()).prop_map(Some)];
    prop_oneof![
        (any::<[u32; 2]>(), tsns(), streams()).prop_map(|([request, response], last_tsn, streams)| {
            ReConfigParam::OutgoingReset(OutgoingReset { request, response, last_tsn, streams })
        }),
        (any::<u32>(), streams())
            .prop_map(|(request, streams)| ReConfigParam::IncomingReset(IncomingReset { request, streams })),
        any::<u32>().prop_map(ReConfigParam::TsnReset),
        (any::<[u32; 2]>(), next).prop_map(|([request, result], next)| ReConfigParam::Response(Response {
            request,
            result,
            next
        })),
        add().prop_map(ReConfigParam::AddOutgoing),
        add().prop_map(ReConfigParam::AddIncoming),
        (any::<u16>(), octets(20))
            .prop_filter("known", |(kind, _)| !matches!(kind, 13..=18))
            .prop_map(|(kind, value)| ReConfigParam::Unknown { kind, value }),
    ]
}

fn changes() -> impl Strategy<Value = AsconfParam> {
    let request =
        || any::<(u32, IpAddr)>().prop_map(|(correlation, address)| AddressRequest { correlation, address });
    prop_oneof![
        request().prop_map(AsconfParam::Add),
        request().prop_map(AsconfParam::Delete),
        (any::<u32>(), vec(causes(), 0..3))
            .prop_map(|(correlation, causes)| AsconfParam::Failed(Failed { correlation, causes })),
        request().prop_map(AsconfParam::SetPrimary),
        any::<u32>().prop_map(AsconfParam::Succeeded),
        (any::<u16>(), octets(20))
            .prop_filter("known", |(kind, _)| !matches!(kind, 0xc001..=0xc005))
            .prop_map(|(kind, value)| AsconfParam::Unknown { kind, value }),
    ]
}

prop_compose! {
    fn data()(
        tsn in tsns(),
        stream: u16,
        ssn in any::<u16>().prop_map(Ssn),
        ppid: u32,
        [begin, end, unordered, immediate]: [bool; 4],
        payload in octets(1500),
    ) -> Data {
        Data { tsn, stream, ssn, ppid, begin, end, unordered, immediate, payload }
    }
}

prop_compose! {
    fn init()(
        tag: u32,
        a_rwnd: u32,
        outbound: u16,
        inbound: u16,
        tsn in tsns(),
        params in vec(params(), 0..6),
    ) -> Init {
        Init { tag, a_rwnd, outbound, inbound, tsn, params }
    }
}

prop_compose! {
    fn sack()(
        cumulative in tsns(),
        a_rwnd: u32,
        gaps in vec(any::<[u16; 2]>().prop_map(|[start, end]| GapBlock { start, end }), 0..8),
        duplicates in vec(tsns(), 0..8),
    ) -> Sack {
        Sack { flags: 0, cumulative, a_rwnd, gaps: gaps.into(), duplicates: duplicates.into() }
    }
}

fn params() -> impl Strategy<Value = Param> {
    prop_oneof![
        any::<Ipv4Addr>().prop_map(Param::Ipv4),
        any::<Ipv6Addr>().prop_map(Param::Ipv6),
        octets(300).prop_map(Param::Cookie),
        octets(20).prop_map(Param::Unrecognized),
        any::<u32>().prop_map(Param::CookiePreservative),
        octets(20).prop_map(Param::HostName),
        vec(any::<u16>(), 0..5).prop_map(Param::SupportedAddressTypes),
        any::<u32>().prop_map(Param::ZeroChecksum),
        octets(40).prop_map(Param::Random),
        octets(10).prop_map(Param::ChunkList),
        vec(any::<u16>(), 0..5).prop_map(Param::HmacAlgorithms),
        octets(40).prop_map(Param::Padding),
        octets(10).prop_map(Param::SupportedExtensions),
        Just(Param::EcnCapable),
        Just(Param::ForwardTsnSupported),
        (any::<u16>(), octets(20))
            .prop_filter("known", |(kind, _)| {
                !matches!(kind, 5..=9 | 11 | 12 | 0x8000..=0x8005 | 0x8008 | 0xc000)
            })
            .prop_map(|(kind, value)| Param::Unknown { kind, value }),
    ]
}

fn causes() -> impl Strategy<Value = Cause> {
    prop_oneof![
        any::<u16>().prop_map(Cause::InvalidStream),
        vec(any::<u16>(), 0..5).prop_map(Cause::MissingParameter),
        any::<u32>().prop_map(Cause::StaleCookie),
        Just(Cause::OutOfResource),
        octets(20).prop_map(Cause::UnresolvableAddress),
        octets(20).prop_map(Cause::UnrecognizedChunk),
        Just(Cause::InvalidMandatoryParameter),
        octets(20).prop_map(Cause::UnrecognizedParameters),
        tsns().prop_map(Cause::NoUserData),
        Just(Cause::CookieWhileShutdown),
        octets(20).prop_map(Cause::RestartWithNewAddresses),
        octets(20).prop_map(Cause::UserInitiated),
        octets(20).prop_map(Cause::ProtocolViolation),
        octets(20).prop_map(Cause::DeletesLastAddress),
        octets(20).prop_map(Cause::ResourceShortage),
        octets(20).prop_map(Cause::DeletesSourceAddress),
        Just(Cause::IllegalAsconfAck),
        octets(20).prop_map(Cause::NotAuthorized),
        any::<u16>().prop_map(Cause::UnsupportedHmac),
        (any::<u16>(), octets(20))
            .prop_filter("known", |(code, _)| !matches!(code, 1..=13 | 0xa0..=0xa4 | 0x105))
            .prop_map(|(code, value)| Cause::Unknown { code, value }),
    ]
}

fn tsns() -> impl Strategy<Value = Tsn> {
    any::<u32>().prop_map(Tsn)
}

fn octets(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=most).prop_map(Bytes::from)
}

/// A chunk of a known type and a plausible length, with anything in it.
fn random_chunk() -> impl Strategy<Value = Vec<u8>> {
    let numbers = prop_oneof![0..16u8, proptest::sample::select(vec![64u8, 128, 130, 132, 192, 193, 194])];
    (numbers, any::<u8>(), vec(small_words(), 0..8), 0..4u16).prop_map(|(number, flags, words, short)| {
        let length = (4 * words.len() as u16 + 4).saturating_sub(short).max(4);
        let mut bytes = vec![number, flags];
        bytes.extend(length.to_be_bytes());
        bytes.extend(words.into_iter().flatten());
        bytes
    })
}

/// Four bytes that often look like the header of a parameter or cause.
fn small_words() -> impl Strategy<Value = [u8; 4]> {
    let high = proptest::sample::select(vec![0u8, 0, 0x80, 0xc0]);
    let header = (high, 0..19u8, 0..24u8).prop_map(|(high, kind, length)| [high, kind, 0, length]);
    prop_oneof![any::<[u8; 4]>(), header]
}

/// Something that happens to bytes.
#[derive(Clone, Debug)]
enum Damage {
    Set(Index, u8),
    /// Where a header's length ends.
    SetFourth(Index, u8),
    Cut(Index),
    Insert(Index, [u8; 4]),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::SetFourth(at, byte)),
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), small_words()).prop_map(|(at, word)| Damage::Insert(at, word)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let words = bytes.len() / 4;
        match self {
            _ if words == 0 => {}
            Damage::Set(at, byte) => bytes[at.index(4 * words)] = *byte,
            Damage::SetFourth(at, byte) => bytes[4 * at.index(words) + 3] = *byte,
            Damage::Cut(at) => bytes.truncate(4 * at.index(words)),
            Damage::Insert(at, word) => {
                let at = 4 * at.index(words);
                bytes.splice(at..at, *word);
            }
        }
    }
}
