//! How deep the cases of `endpoint` go: `cargo run --release --example depth [FILE…]`. Of random bytes, or of these
//! files, how many cases have the peer acknowledge data, and how many the user read some.

use anabranch_fuzz::endpoint::{Case, Reached};
use arbitrary::{Arbitrary, Unstructured};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const CASES: u64 = 2000;
const BYTES: usize = 300;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let reached: Vec<Reached> = if files.is_empty() {
        (0..CASES).map(|seed| play(&random(seed))).collect()
    } else {
        files.iter().map(|file| play(&std::fs::read(file).expect("a readable file"))).collect()
    };
    let share = |of: fn(&Reached) -> bool| 100 * reached.iter().filter(|r| of(r)).count() / reached.len();
    let [acknowledged, read] = [share(|r| r.acknowledged > 0), share(|r| r.read > 0)];
    let both = share(|r| r.acknowledged > 0 && r.read > 0);
    println!(
        "{} cases: data acknowledged in {acknowledged} %, read in {read} %, both in {both} %",
        reached.len()
    );
}

fn random(seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

fn play(bytes: &[u8]) -> Reached {
    Case::arbitrary_take_rest(Unstructured::new(bytes)).expect("bytes make a case").play()
}
