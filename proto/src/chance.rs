//! A random stream that is part of the state of an endpoint.

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
