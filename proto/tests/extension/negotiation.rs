//! What INIT and INIT ACK offer, and what two ends that offer different things use.

use anabranch_proto::wire::chunk::{Init, Pad};
use anabranch_proto::wire::{Chunk, Param};
use anabranch_proto::{Config, Extensions};
use bytes::Bytes;

use crate::support::bench::{Bench, chunk, era};
use crate::support::{World, secs};
use crate::with;

const ALL: Extensions = Extensions {
    partial_reliability: true,
    reconfiguration: true,
    authentication: true,
    addresses: true,
    interleaving: true,
    zero_checksum: true,
    timestamps: false,
    ecn: true,
    nr_sack: false,
};

/// The parameters of the INIT, addresses and cookie aside.
fn offered(extensions: Extensions) -> Vec<Param> {
    let mut params = Vec::new();
    let take = |init: &Init| {
        params.clone_from(&init.params);
        Vec::new()
    };
    Bench::with(with(extensions), 1, take);
    params
}

/// Nothing is offered unless it is switched on; what is, as its document says.
//= rfc5061#section-4.2.7
//= rfc3758#section-3.1
//= rfc9653#section-4
//= rfc4960#appendix-A
#[test]
fn what_is_offered() {
    assert_eq!(offered(Extensions::default()), []);
    let one = |extensions| offered(extensions);
    let supported = |types: &'static [u8]| Param::SupportedExtensions(Bytes::from_static(types));
    let partial = Extensions { partial_reliability: true, ..Default::default() };
    assert_eq!(one(partial), [Param::ForwardTsnSupported, supported(&[0xc0, 0x84])]);
    let reconfiguration = Extensions { reconfiguration: true, ..Default::default() };
    assert_eq!(one(reconfiguration), [supported(&[0x82, 0x84])]);
    let both = Extensions { interleaving: true, ..partial };
    assert_eq!(one(both), [Param::ForwardTsnSupported, supported(&[0xc0, 0x40, 0xc2, 0x84])]);
    assert_eq!(one(Extensions { ecn: true, ..Default::default() }), [Param::EcnCapable]);
    assert_eq!(one(Extensions { zero_checksum: true, ..Default::default() }), [Param::ZeroChecksum(1)]);
    let all = offered(ALL);
    let [Param::Random(random), Param::ChunkList(chunks), Param::HmacAlgorithms(hmacs), ..] = &all[..] else {
        panic!("{all:?}")
    };
    //= rfc4895#section-3.1
    //= rfc4895#section-3.2
    //= rfc4895#section-3.3
    assert_eq!((random.len(), &chunks[..], &hmacs[..]), (32, &[0xc1, 0x80][..], &[3, 1][..]));
}

/// A chunk of an extension that was not agreed is one that is not understood: by its two high bits.
//= rfc9260#section-3.2
#[test]
fn what_was_not_agreed_is_unknown() {
    use anabranch_proto::wire::chunk::ForwardTsn;
    let partial = Extensions { partial_reliability: true, ..Default::default() };
    for config in [era("rfc9260"), with(partial)] {
        let mut bench = Bench::new(config, 1);
        let forward = ForwardTsn { cumulative: anabranch_proto::Tsn(9), skipped: vec![] };
        bench.hear(Chunk::ForwardTsn(forward));
        let errors = bench.take(|c| if let Chunk::Error(error) = c { Some(error.clone()) } else { None });
        assert_eq!(errors.len(), 1, "reported");
        assert_eq!(bench.sacks().len(), 0, "and not acted upon");
    }
}

/// PAD is thrown away, whatever was agreed.
//= rfc4820#section-3
#[test]
fn padding_is_thrown_away() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.hear_packet(0, bench.tag, [Chunk::Pad(Pad { bytes: 1000 }), chunk(1, 10), chunk(2, 10)]);
    assert_eq!(bench.take(|c| matches!(c, Chunk::Error(_)).then_some(())), []);
    bench.pass(crate::support::bench::ms(200));
    assert_eq!(bench.sacks()[0].1.cumulative.0, 2);
}

/// Two ends of which one offers everything and the other nothing understand each other; so do two that offer
/// everything, also through the codec, and when their INITs cross.
#[test]
fn ends_of_all_kinds_meet() {
    let none = era("rfc9260");
    let all = with(ALL);
    for (a, b) in [(&none, &all), (&all, &none), (&all, &all)] {
        for crossing in [false, true] {
            let (mut world, id) = World::joined([a, b], 2);
            world.wire = true;
            if crossing {
                let to = [crate::support::address(0, 0), crate::support::address(1, 0)];
                world.ends[1].connect(world.now, crate::support::PORT, &to).expect("a path");
                world.drain(1);
            }
            world.run(secs(1.0));
            world.give(0, id, 3000);
            let back = world.up(1).expect("it is up");
            world.give(1, back, 3000);
            world.run(secs(2.0));
            assert_eq!((world.take(0), world.take(1)), (vec![3000], vec![3000]), "crossing {crossing}");
        }
    }
}

/// A configuration that contradicts itself is refused.
#[test]
fn what_needs_authentication() {
    let refused = |config: Config| {
        let config = crate::support::at(0, 1, &config);
        config.check().expect_err("refused").key
    };
    let addresses = Extensions { addresses: true, ..Default::default() };
    assert_eq!(refused(with(addresses)), "dynamic_addresses");
    assert_eq!(refused(Config { authenticated_chunks: vec![0], ..era("rfc9260") }), "authenticated_chunks");
    let authentication = Extensions { authentication: true, ..Default::default() };
    let listed = Config { authenticated_chunks: vec![1], ..with(authentication) };
    assert_eq!(refused(listed), "authenticated_chunks");
}
