//! Random numbers. Every stream of random numbers is derived, by name, from the one root seed of a run.
//!
//! A named stream (`"link/wifi/a>b/loss"`, `"flow/download/client"`) stays the same when another flow or link is
//! added, so two policies meet the same losses. The key of a stream is a chain of ChaCha8 blocks: first over the root
//! seed and the length of the name, then once more for each 32 bytes of the name. The draws are ChaCha8 under that
//! key, the same on every machine.

use anabranch_proto::Duration;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::scenario::Start;

/// The 32-byte key of the stream `name` of a run whose root seed is `root`.
pub fn stream_seed(root: u64, name: &str) -> [u8; 32] {
    let mut start = *b"................anabranch chance";
    start[..8].copy_from_slice(&root.to_le_bytes());
    start[8..16].copy_from_slice(&(name.len() as u64).to_le_bytes());
    name.as_bytes().chunks(32).fold(mix(start), |mut key, block| {
        key.iter_mut().zip(block).for_each(|(k, b)| *k ^= b);
        mix(key)
    })
}

fn mix(key: [u8; 32]) -> [u8; 32] {
    let mut mixed = [0; 32];
    ChaCha8Rng::from_seed(key).fill_bytes(&mut mixed);
    mixed
}

/// A stream with random access: the n-th packet takes the n-th draw, whatever happened to the other packets.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    generator: ChaCha8Rng,
    /// The next draw of the generator.
    next: u64,
}

impl Draws {
    pub(crate) fn new(root: u64, name: &str) -> Self {
        Draws { generator: ChaCha8Rng::from_seed(stream_seed(root, name)), next: 0 }
    }

    /// The draw number `n`, counted from 0: a whole number of 53 bits.
    pub(crate) fn nth(&mut self, n: u64) -> u64 {
        if n != self.next {
            self.generator.set_word_pos(u128::from(n) * 2);
        }
        self.next = n + 1;
        self.generator.next_u64() >> 11
    }
}

/// A stream whose draws are taken in sequence.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    draws: Draws,
    next: u64,
}

impl Sequence {
    pub(crate) fn new(root: u64, name: &str) -> Self {
        Sequence { draws: Draws::new(root, name), next: 0 }
    }

    /// The next draw, uniform in [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        let draw = self.draws.nth(self.next);
        self.next += 1;
        draw as f64 / (1u64 << 53) as f64
    }

    /// The start time of something: the next draw, if the start is random.
    pub(crate) fn start(&mut self, start: Start) -> Duration {
        match start {
            Start::At(time) => time,
            Start::Uniform([low, high]) => self.between(low, high),
        }
    }

    /// The next draw: a duration, uniform between two.
    pub(crate) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let nanos = (high - low).as_nanos() as f64 * self.uniform();
        low + Duration::from_nanos(nanos as u64)
    }
}

/// The threshold for an event of this probability: it happens if a draw of 53 bits is below. 1 is always, 0 never.
pub(crate) fn threshold(probability: f64) -> u64 {
    (probability * (1u64 << 53) as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_pinned() {
        assert_eq!(stream_seed(1, "link/wifi/a>b/loss")[..8], [140, 139, 121, 216, 246, 253, 180, 62]);
        let mut draws = Draws::new(1, "link/wifi/a>b/loss");
        assert_eq!(
            [draws.nth(0), draws.nth(1), draws.nth(2)],
            [959000449647846, 5164834420885494, 5265421972199690]
        );
    }

    #[test]
    fn names_and_roots_part_streams() {
        let long = "x".repeat(33);
        let names = ["", "a", "b", "ab", &long[..32], &long];
        let mut keys: Vec<_> = names.iter().flat_map(|n| [stream_seed(0, n), stream_seed(1, n)]).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 12);
    }

    #[test]
    fn a_draw_depends_on_its_number_alone() {
        let mut in_turn = Draws::new(7, "x");
        let all: Vec<_> = (0..40).map(|n| in_turn.nth(n)).collect();
        let mut at_random = Draws::new(7, "x");
        for n in [39, 0, 1, 17, 16, 18, 38] {
            assert_eq!(at_random.nth(n), all[n as usize]);
        }
    }

    #[test]
    fn thresholds() {
        assert_eq!(threshold(0.0), 0);
        assert_eq!(threshold(0.5), 1 << 52);
        assert!(threshold(1.0) > u64::MAX >> 11);
    }
}
