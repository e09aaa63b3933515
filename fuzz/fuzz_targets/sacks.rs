#![no_main]

libfuzzer_sys::fuzz_target!(|case: anabranch_fuzz::sacks::Case| case.play());
