//! The send buffer, and messages that do not fit the receive buffer.

use anabranch_proto::wire::Chunk;
use anabranch_proto::{Config, Event, Message, SendError};
use bytes::{Bytes, BytesMut};

use crate::support::bench::{Bench, era, ms};
use crate::support::{World, secs};

/// A buffer of 16,000 bytes: a message that does not fit is refused; told when a sixteenth, 1000 bytes, is free.
#[test]
fn refused_when_full_and_writable_later() {
    let mut bench = Bench::new(era("rfc9260").with(|parameters| parameters.send_buffer = Some(16_000)), 1);
    (0..11).for_each(|_| bench.try_send(1452).expect("15,972 bytes fit"));
    let Err(SendError::Full(back)) = bench.try_send(29) else { panic!("it does not fit") };
    assert_eq!(back.payload.len(), 29);
    bench.try_send(28).expect("this does");
    assert!(matches!(bench.try_send(1), Err(SendError::Full(_))));
    bench.drain();
    let writable = |bench: &Bench| bench.events.iter().filter(|e| e.1 == Event::Writable).count();
    assert_eq!(writable(&bench), 0);
    bench.sack(1, &[]);
    assert_eq!(writable(&bench), 1);
    bench.sack(2, &[]);
    assert_eq!(writable(&bench), 1, "nobody was refused since");
    bench.try_send(1452).expect("there is room");
}

/// Small messages free less than a sixteenth at first: 100 of 160 bytes; the seventh acknowledged makes 1120.
#[test]
fn writable_is_not_announced_for_a_crumb() {
    let mut bench = Bench::new(era("rfc9260").with(|parameters| parameters.send_buffer = Some(16_000)), 1);
    bench.send(100, 160);
    assert!(matches!(bench.try_send(160), Err(SendError::Full(_))));
    for tsn in 1..=7 {
        assert!(!bench.events.iter().any(|e| e.1 == Event::Writable), "{tsn}");
        bench.sack(tsn, &[]);
    }
    assert!(bench.events.iter().any(|e| e.1 == Event::Writable));
}

/// A message larger than the whole buffer is taken when that is empty, and only then.
#[test]
fn a_message_larger_than_the_send_buffer() {
    let mut bench = Bench::new(era("rfc9260").with(|parameters| parameters.send_buffer = Some(2000)), 1);
    bench.send(1, 100);
    assert!(matches!(bench.try_send(5000), Err(SendError::Full(_))));
    bench.sack(1, &[]);
    assert!(bench.events.iter().any(|e| e.1 == Event::Writable));
    bench.try_send(5000).expect("the buffer is empty");
    assert!(matches!(bench.try_send(1), Err(SendError::Full(_))));
}

/// 20,000 bytes through a receive buffer of 5,000: parts, in order, the last of them complete.
//= rfc9260#section-6.9
#[test]
fn a_message_larger_than_the_receive_buffer() {
    for (unordered, loss) in [(false, 0), (true, 0), (false, 100), (true, 100)] {
        let config = Config { receive_buffer: 5000, ..era("rfc9260") };
        let (mut world, id) = World::joined([&config, &config], 1);
        world.weather[0].loss = loss;
        let payload: Bytes = (0..20_000u32).map(|n| (n * 7 % 251) as u8).collect();
        let message =
            Message { stream: 3, ppid: 8, unordered, payload: payload.clone(), ..Message::default() };
        world.ends[0].send(world.now, id, message).expect("the buffer is empty");
        world.drain(0);
        let mut whole = BytesMut::new();
        let mut parts = Vec::new();
        while parts.last() != Some(&true) {
            assert!(world.now < secs(600.0), "{} bytes came", whole.len());
            world.run(world.now + ms(100));
            let Some(peer) = world.up(1) else { continue };
            while let Some(part) = world.ends[1].read(world.now, peer) {
                assert_eq!((part.stream, part.ppid, part.unordered), (3, 8, unordered));
                parts.push(part.complete);
                whole.extend_from_slice(&part.into_bytes());
            }
            world.drain(1);
        }
        assert_eq!(whole.freeze(), payload);
        assert!(parts.len() > 3 && parts[..parts.len() - 1].iter().all(|complete| !complete));
    }
}

/// Side 0 fills chunks up to its own MTU; side 1 has a smaller one. Whatever the sizes, every byte arrives, even if one
/// chunk is larger than the whole receive buffer.
//= rfc9260#section-6.9
#[test]
fn chunks_larger_than_our_own_packets() {
    for (mtu, buffer) in
        [(9000, 20_000), (9000, 10_000), (9000, 9200), (9000, 1500), (1500, 5000), (65_535, 40_000)]
    {
        for (unordered, interleaving) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut sender = era("rfc9260").with(|parameters| parameters.mtu = mtu);
            let mut receiver =
                Config { receive_buffer: buffer, ..era("rfc9260") }.with(|parameters| parameters.mtu = 600);
            sender.extensions.interleaving = interleaving;
            receiver.extensions.interleaving = interleaving;
            let (mut world, id) = World::joined([&sender, &receiver], 1);
            let payload: Bytes = (0..150_000u32).map(|n| (n * 7 % 251) as u8).collect();
            let message = Message { unordered, payload: payload.clone(), ..Message::default() };
            world.ends[0].send(world.now, id, message).expect("the buffer is empty");
            world.drain(0);
            let mut whole = BytesMut::new();
            while whole.len() < payload.len() {
                assert!(world.now < secs(900.0), "{mtu} {buffer} {unordered}: {} bytes came", whole.len());
                world.run(world.now + ms(100));
                let Some(peer) = world.up(1) else { continue };
                while let Some(part) = world.ends[1].read(world.now, peer) {
                    whole.extend_from_slice(&part.into_bytes());
                }
                world.drain(1);
            }
            assert_eq!(whole, payload);
        }
    }
}

/// The end of a long unordered message is lost; a short one of its stream comes while the first is delivered in parts.
/// Each part says which message it belongs to, with DATA and with I-DATA.
//= rfc6458#section-5.3.5
#[test]
fn parts_name_their_message() {
    for interleaving in [false, true] {
        let mut sender = era("rfc9260").with(|parameters| parameters.mtu = 1500);
        let mut receiver = Config { receive_buffer: 5000, ..era("rfc9260") };
        sender.extensions.interleaving = interleaving;
        receiver.extensions.interleaving = interleaving;
        let (mut world, id) = World::joined([&sender, &receiver], 1);
        world.run(secs(1.0));
        let unordered = |length: usize, byte: u8| Message {
            unordered: true,
            payload: Bytes::from(vec![byte; length]),
            ..Message::default()
        };
        let mut passed = 0;
        world.drop = Box::new(move |_, side, packet| {
            let data = |chunk: &&Chunk| matches!(chunk, Chunk::Data(_) | Chunk::IData(_));
            passed += if side == 0 { packet.chunks.iter().filter(data).count() } else { 0 };
            side == 0 && passed == 3
        });
        world.ends[0].send(world.now, id, unordered(4300, 1)).expect("there is room");
        world.ends[0].send(world.now, id, unordered(500, 2)).expect("there is room");
        world.drain(0);
        world.run(secs(10.0));
        let peer = world.up(1).expect("it is up");
        let mut parts = Vec::new();
        while parts.iter().filter(|(_, _, complete)| *complete).count() < 2 {
            assert!(world.now < secs(60.0), "{parts:?}");
            while let Some(part) = world.ends[1].read(world.now, peer) {
                let (message, complete) = (part.message, part.complete);
                let bytes = part.into_bytes();
                assert!(bytes.iter().all(|byte| *byte == bytes[0]));
                parts.push((message, bytes[0], complete));
            }
            world.drain(1);
            world.run(world.now + ms(100));
        }
        let numbers: std::collections::BTreeSet<_> =
            parts.iter().map(|(number, byte, _)| (*number, *byte)).collect();
        assert_eq!(numbers.len(), 2, "a number a message: {parts:?}");
    }
}
