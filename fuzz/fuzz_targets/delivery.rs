#![no_main]

libfuzzer_sys::fuzz_target!(|case: anabranch_fuzz::delivery::Case| case.play());
