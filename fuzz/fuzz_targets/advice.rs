#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anabranch_fuzz::tables::advice(bytes));
