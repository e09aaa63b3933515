//! ASCONFs that are repeated, by the peer and by this end (RFC 5061).

use anabranch_proto::wire::Chunk;
use anabranch_proto::wire::chunk::{Asconf, AsconfParam};

use crate::addresses::{acks, asconf, one, request, say};
use crate::auth::Peer;
use crate::support::address;
use crate::support::bench::ms;

fn sequences(peer: &mut Peer) -> Vec<u32> {
    acks(&mut peer.bench).iter().map(|ack| ack.sequence).collect()
}

/// Two ASCONFs come in one packet, and the answers are lost: both get the same answers again. When the next one comes,
/// the peer has heard them.
//= rfc5061#section-5.2
#[test]
fn two_of_one_packet() {
    let mut peer = one();
    let refused = AsconfParam::Delete(request(2, address(0, 1)));
    let both = || vec![asconf(1, vec![]), asconf(2, vec![refused.clone()])];
    say(&mut peer, 0, both());
    let first = acks(&mut peer.bench);
    assert_eq!((first.len(), first[1].responses.len()), (2, 1));
    say(&mut peer, 0, both());
    assert_eq!(acks(&mut peer.bench), first);
    say(&mut peer, 0, vec![asconf(2, vec![refused.clone()]), asconf(3, vec![])]);
    assert_eq!(sequences(&mut peer), [2, 3]);
    say(&mut peer, 0, vec![asconf(4, vec![])]);
    assert_eq!(sequences(&mut peer), [4]);
    say(&mut peer, 0, both());
    assert_eq!(sequences(&mut peer), []);
}

/// A peer that never seems to hear an answer does not fill the memory.
#[test]
fn the_last_answers_are_kept() {
    let mut peer = one();
    say(&mut peer, 0, (1..=40).map(|sequence| asconf(sequence, vec![])).collect());
    assert_eq!(sequences(&mut peer), (1..=40).collect::<Vec<_>>());
    say(&mut peer, 0, (1..=40).map(|sequence| asconf(sequence, vec![])).collect());
    assert_eq!(sequences(&mut peer), (25..=40).collect::<Vec<_>>());
}

/// Our own ASCONF goes again on another path, with the address parameter that it had.
//= rfc5061#section-5.1
#[test]
fn the_same_chunk_on_another_path() {
    let mut peer = one();
    say(&mut peer, 0, vec![asconf(1, vec![AsconfParam::Add(request(1, address(1, 1)))])]);
    peer.bench.answer_heartbeats(|_| true);
    peer.bench.sent.clear();
    peer.bench.end.set_peer_primary(peer.bench.now, peer.bench.id, address(1, 0)).expect("agreed");
    peer.bench.drain();
    peer.bench.pass(ms(1500));
    let asked = |chunk: &Chunk| if let Chunk::Asconf(asconf) = chunk { Some(*asconf.clone()) } else { None };
    let sent: Vec<_> = peer.bench.sent.iter().map(|(_, packet, _)| packet).collect();
    let sent: Vec<(_, Asconf)> =
        sent.iter().filter_map(|p| Some((p.to, p.chunks.iter().find_map(asked)?))).collect();
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [address(0, 1), address(1, 1)]);
    assert_eq!(sent[0].1, sent[1].1);
}
