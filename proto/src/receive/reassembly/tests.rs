use super::*;
use crate::{Delivery, Tsn};
use bytes::Bytes;

fn piece(tsn: u32, ssn: u16, flags: &str) -> Data {
    Data {
        tsn: Tsn(tsn),
        stream: 1,
        ssn: Ssn(ssn),
        ppid: 9,
        begin: flags.contains('B'),
        end: flags.contains('E'),
        unordered: flags.contains('U'),
        immediate: false,
        payload: Bytes::from(vec![tsn as u8; 4]),
    }
}

#[derive(Default)]
struct Bench {
    reassembly: Reassembly,
    ready: Ready,
}

impl Bench {
    fn insert(&mut self, data: Data) {
        self.reassembly.insert(data.tsn.0.into(), data, &mut self.ready);
    }

    fn part(&mut self, cumulative: u64) {
        self.reassembly.deliver_part(cumulative, &mut self.ready);
    }

    fn delivered(&mut self) -> Vec<(Vec<u8>, bool)> {
        self.numbered().into_iter().map(|(_, tsns, complete)| (tsns, complete)).collect()
    }

    /// The number of each message, too.
    fn numbered(&mut self) -> Vec<(u64, Vec<u8>, bool)> {
        let tell = |(d, held): (Delivery, Held)| {
            assert_eq!(held.bytes as usize, d.len() + 16 * d.pieces.len());
            assert_eq!(held.chunks as usize, d.pieces.len());
            (d.message, d.pieces.iter().map(|p| p[0]).collect(), d.complete)
        };
        std::iter::from_fn(|| self.ready.pop()).map(tell).collect()
    }
}

#[test]
fn ordered_messages_wait_for_their_turn() {
    let mut b = Bench::default();
    b.insert(piece(3, 2, "BE"));
    b.insert(piece(2, 1, "E"));
    assert!(b.ready.is_empty());
    b.insert(piece(0, 0, "BE"));
    assert_eq!(b.delivered(), [(vec![0], true)]);
    b.insert(piece(1, 1, "B"));
    assert_eq!(b.delivered(), [(vec![1, 2], true), (vec![3], true)]);
}

/// TSN 1 has SSN 2, TSN 2 and 3 have SSN 1, TSN 4 has SSN 0.
//= rfc9260#section-6.6
#[test]
fn the_turn_is_that_of_the_ssn() {
    let mut b = Bench::default();
    for (tsn, ssn, flags) in [(1, 2, "BE"), (3, 1, "E"), (2, 1, "B")] {
        b.insert(piece(tsn, ssn, flags));
    }
    assert!(b.ready.is_empty());
    b.insert(piece(4, 0, "BE"));
    assert_eq!(b.delivered(), [(vec![4], true), (vec![2, 3], true), (vec![1], true)]);
}

/// Messages wait in pages or as runs: SSN 5 comes before 4, and 2 in two fragments.
#[test]
fn pages_and_runs_alternate() {
    let mut b = Bench::default();
    let pieces =
        [(1, 1, "BE"), (2, 2, "B"), (3, 2, "E"), (4, 3, "BE"), (5, 5, "BE"), (6, 4, "BE"), (7, 6, "BE")];
    for (tsn, ssn, flags) in pieces {
        b.insert(piece(tsn, ssn, flags));
    }
    assert_eq!((b.reassembly.pages.len(), b.reassembly.ordered.len()), (1, 1));
    b.insert(piece(0, 0, "BE"));
    let whole = |tsn| (vec![tsn], true);
    assert_eq!(
        b.delivered(),
        [whole(0), whole(1), (vec![2, 3], true), whole(4), whole(6), whole(5), whole(7)]
    );
    assert!(b.reassembly.pages.is_empty());
}

/// Behind the greatest SSN the smallest follow, on another page; so do those of the next page.
#[test]
fn pages_follow_each_other() {
    for first in [u16::MAX - 1, 6] {
        let mut b = Bench { reassembly: Reassembly::new(Ssn(first)), ..Bench::default() };
        for place in (1..80).rev() {
            b.insert(piece(place, first.wrapping_add(place as u16), "BE"));
        }
        assert!(b.ready.is_empty() && b.reassembly.pages.len() == if first == 6 { 3 } else { 4 });
        b.insert(piece(0, first, "BE"));
        assert_eq!(b.delivered(), (0..80).map(|tsn| (vec![tsn], true)).collect::<Vec<_>>());
        assert!(b.reassembly.pages.is_empty());
    }
}

/// A full buffer discards the highest chunk, also out of a page; the others are delivered as before.
#[test]
fn pages_are_broken_for_room() {
    let mut b = Bench::default();
    for (tsn, ssn) in [(1, 1), (2, 2), (3, 3)] {
        b.insert(piece(tsn, ssn, "BE"));
    }
    assert_eq!(b.reassembly.discard_above(0), Some((3, Held { bytes: 20, chunks: 1 })));
    b.insert(piece(4, 4, "BE"));
    assert!(b.reassembly.pages.is_empty(), "no page while the buffer is full");
    b.insert(piece(0, 0, "BE"));
    b.insert(piece(3, 3, "BE"));
    assert_eq!(b.delivered(), [0, 1, 2, 3, 4].map(|tsn| (vec![tsn as u8], true)));
}

#[test]
fn unordered_messages_do_not() {
    let mut b = Bench::default();
    b.insert(piece(7, 0, "UE"));
    b.insert(piece(9, 0, "UBE"));
    b.insert(piece(5, 0, "UB"));
    assert_eq!(b.delivered(), [(vec![9], true)]);
    b.insert(piece(6, 0, "U"));
    assert_eq!(b.delivered(), [(vec![5, 6, 7], true)]);
}

#[test]
fn runs_join_whichever_is_longer() {
    for missing in [12, 17] {
        let mut b = Bench::default();
        for tsn in (10..20).filter(|tsn| *tsn != missing) {
            let flags = match tsn {
                10 => "UB",
                19 => "UE",
                _ => "U",
            };
            b.insert(piece(tsn, 0, flags));
        }
        assert!(b.ready.is_empty());
        b.insert(piece(missing, 0, "U"));
        assert_eq!(b.delivered(), [((10..20).collect(), true)]);
    }
}

#[test]
fn a_part_is_resumed_where_it_ended() {
    let mut b = Bench::default();
    b.insert(piece(1, 0, "B"));
    b.insert(piece(2, 0, ""));
    b.insert(piece(4, 0, "E"));
    b.part(2);
    assert_eq!(b.delivered(), [(vec![1, 2], false)]);
    b.insert(piece(3, 0, ""));
    assert_eq!(b.delivered(), [(vec![3, 4], true)]);
    b.insert(piece(5, 1, "BE"));
    assert_eq!(b.delivered(), [(vec![5], true)]);
}

/// Between the parts of an unordered message come others of its stream: the number tells them apart.
#[test]
fn parts_have_the_number_of_their_message() {
    let mut b = Bench::default();
    b.insert(piece(1, 0, "UB"));
    b.part(1);
    b.insert(piece(3, 0, "UE"));
    b.insert(piece(4, 0, "UBE"));
    b.insert(piece(2, 0, "U"));
    assert_eq!(b.numbered(), [(1, vec![1], false), (2, vec![4], true), (1, vec![2, 3], true)]);
}

/// A peer that breaks off a message of which a part was delivered.
#[test]
fn a_part_that_is_not_continued_is_given_up() {
    let mut b = Bench::default();
    b.insert(piece(1, 0, "UB"));
    b.part(1);
    b.insert(piece(2, 0, "UBE"));
    assert_eq!(b.numbered(), [(1, vec![1], false), (1, vec![], true), (2, vec![2], true)]);
}

#[test]
fn a_discarded_chunk_can_come_again() {
    let mut b = Bench::default();
    b.insert(piece(2, 0, ""));
    b.insert(piece(3, 0, "E"));
    assert_eq!(b.reassembly.discard_above(1), Some((3, Held { bytes: 20, chunks: 1 })));
    assert_eq!(b.reassembly.discard_above(2), None);
    b.insert(piece(1, 0, "B"));
    assert!(b.ready.is_empty());
    b.insert(piece(3, 0, "E"));
    assert_eq!(b.delivered(), [(vec![1, 2, 3], true)]);
}

/// A stream in use, on which the first two fragments of a message have come.
fn growing() -> Bench {
    let mut b = Bench::default();
    b.insert(piece(0, 0, "BE"));
    b.insert(piece(1, 1, "B"));
    b.insert(piece(2, 1, ""));
    assert_eq!(b.delivered(), [(vec![0], true)]);
    assert!(!b.reassembly.growing.is_empty());
    b
}

#[test]
fn a_message_grows_whatever_comes_between() {
    let between = [
        (vec![], vec![], vec![]),
        (vec![piece(4, 2, "BE")], vec![], vec![(vec![4], true)]),
        (vec![piece(5, 2, "E")], vec![], vec![]),
        (vec![piece(4, 0, "UBE")], vec![(vec![4], true)], vec![]),
        (vec![piece(4, 0, "UB"), piece(5, 0, "UE")], vec![(vec![4, 5], true)], vec![]),
    ];
    for (chunks, at_once, behind) in between {
        let mut b = growing();
        chunks.into_iter().for_each(|data| b.insert(data));
        assert_eq!(b.delivered(), at_once);
        b.insert(piece(3, 1, "E"));
        assert_eq!(b.delivered(), [vec![(vec![1, 2, 3], true)], behind].concat());
    }
}

#[test]
fn messages_grow_one_after_the_other() {
    let mut b = growing();
    b.insert(piece(3, 1, "E"));
    (4..200).for_each(|tsn| b.insert(piece(tsn, 2, if tsn == 4 { "B" } else { "" })));
    b.insert(piece(200, 2, "E"));
    b.insert(piece(201, 3, "B"));
    b.insert(piece(202, 3, "E"));
    let long = (4..=200).collect();
    assert_eq!(b.delivered(), [(vec![1, 2, 3], true), (long, true), (vec![201, 202], true)]);
}

#[test]
fn a_message_that_grows_is_delivered_in_parts_and_discarded_for_room() {
    let mut b = growing();
    b.part(2);
    b.insert(piece(3, 1, "E"));
    assert_eq!(b.delivered(), [(vec![1, 2], false), (vec![3], true)]);
    let mut b = growing();
    assert_eq!(b.reassembly.discard_above(1), Some((2, Held { bytes: 20, chunks: 1 })));
    b.insert(piece(2, 1, ""));
    b.insert(piece(3, 1, "E"));
    assert_eq!(b.delivered(), [(vec![1, 2, 3], true)]);
}
