//! Random streams that are part of the state of an endpoint.

use std::ops::{Deref, DerefMut};

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use crate::digest::Digest;

/// A random stream. `Debug` distinguishes streams at different positions without showing their next numbers.
#[derive(Clone)]
pub(crate) struct Chance(ChaCha8Rng);

impl Chance {
    pub(crate) fn from_seed(seed: [u8; 32]) -> Chance {
        Chance(ChaCha8Rng::from_seed(seed))
    }
}

impl From<ChaCha8Rng> for Chance {
    fn from(stream: ChaCha8Rng) -> Chance {
        Chance(stream)
    }
}

impl Deref for Chance {
    type Target = ChaCha8Rng;

    fn deref(&self) -> &ChaCha8Rng {
        &self.0
    }
}

impl DerefMut for Chance {
    fn deref_mut(&mut self) -> &mut ChaCha8Rng {
        &mut self.0
    }
}

impl std::fmt::Debug for Chance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut digest = Digest::default();
        digest.add(&self.0.get_seed());
        digest.add(&self.0.get_stream().to_le_bytes());
        digest.add(&self.0.get_word_pos().to_le_bytes());
        write!(f, "Chance({:016x})", digest.value())
    }
}

/// A random stream from which little is drawn. Only its place is kept, which takes a sixth of a generator's memory;
/// each draw makes the generator again.
#[derive(Clone)]
pub(crate) struct SeldomChance {
    seed: [u8; 32],
    stream: u64,
    /// The position, in words of 32 bits.
    at: u64,
}

impl SeldomChance {
    /// Draws from the stream.
    pub(crate) fn draw<T>(&mut self, draw: impl FnOnce(&mut ChaCha8Rng) -> T) -> T {
        let mut generator = self.generator();
        let drawn = draw(&mut generator);
        self.at = generator.get_word_pos() as u64;
        drawn
    }

    fn generator(&self) -> ChaCha8Rng {
        let mut generator = ChaCha8Rng::from_seed(self.seed);
        generator.set_stream(self.stream);
        generator.set_word_pos(self.at.into());
        generator
    }
}

impl From<ChaCha8Rng> for SeldomChance {
    fn from(stream: ChaCha8Rng) -> SeldomChance {
        let at = stream.get_word_pos() as u64;
        SeldomChance { seed: stream.get_seed(), stream: stream.get_stream(), at }
    }
}

impl std::fmt::Debug for SeldomChance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Chance(self.generator()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;

    use super::*;

    #[test]
    fn a_stream_that_is_seldom_used_has_the_same_numbers() {
        let mut always = ChaCha8Rng::seed_from_u64(7);
        always.set_stream(3);
        let mut seldom = SeldomChance::from(always.clone());
        let mut bytes = [[0; 5]; 2];
        for _ in 0..100 {
            assert_eq!(seldom.draw(Rng::next_u32), always.next_u32());
            assert_eq!(seldom.draw(Rng::next_u64), always.next_u64());
            always.fill_bytes(&mut bytes[0]);
            seldom.draw(|chance| chance.fill_bytes(&mut bytes[1]));
            assert_eq!(bytes[0], bytes[1]);
            assert_eq!(format!("{seldom:?}"), format!("{:?}", Chance::from(always.clone())));
        }
    }
}
