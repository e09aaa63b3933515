//! Storms by their seeds.

use arbitrary::Arbitrary;

use crate::world::Storm;

#[derive(Arbitrary, Clone, Debug)]
pub struct Case {
    seed: u64,
    hostile: bool,
}

impl Case {
    pub fn play(self) {
        Storm::new(self.seed, self.hostile).play();
    }
}
