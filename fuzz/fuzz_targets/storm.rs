#![no_main]

libfuzzer_sys::fuzz_target!(|case: anabranch_fuzz::storm::Case| case.play());
