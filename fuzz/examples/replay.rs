//! Plays inputs again without libFuzzer: `cargo run --example replay -- TARGET FILE…`. Prints each as it is
//! understood; a failed case shows its last packets with `ANABRANCH_LOG=1`.

use std::fmt::Debug;

use anabranch_fuzz::{
    capture, codec, cookie, delivery, endpoint, extensions, recorded, sacks, scenario, script, storm, tables,
};
use arbitrary::{Arbitrary, Unstructured};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().expect("the name of a target");
    for file in arguments {
        println!("{file}");
        let bytes = std::fs::read(&file).expect("a readable file");
        match target.as_str() {
            "packet" => codec::packet(&bytes),
            "params" => codec::params(&bytes),
            "script" => script::script(&bytes),
            "scenario" => scenario::scenario(&bytes),
            "trace" => scenario::trace(&bytes),
            "recording" => recorded::recorded(&bytes),
            "advice" => tables::advice(&bytes),
            "claims" => tables::claims(&bytes),
            "journal" => tables::journal(&bytes),
            "service" => tables::service(&bytes),
            "capture" => {
                capture::capture(&bytes);
                capture::against(&bytes);
            }
            "cookie" => cookie::Case::play(case(&bytes)),
            "sacks" => sacks::Case::play(case(&bytes)),
            "endpoint" => println!("{:?}", endpoint::Case::play(case(&bytes))),
            "extensions" => extensions::Case::play(case(&bytes)),
            "delivery" => delivery::Case::play(case(&bytes)),
            "storm" => storm::Case::play(case(&bytes)),
            other => panic!("no target {other}"),
        }
    }
}

fn case<'a, T: Arbitrary<'a> + Debug>(bytes: &'a [u8]) -> T {
    let case = T::arbitrary_take_rest(Unstructured::new(bytes)).expect("bytes make a case");
    println!("{case:?}");
    case
}
