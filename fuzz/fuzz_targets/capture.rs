#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    anabranch_fuzz::capture::capture(bytes);
    anabranch_fuzz::capture::against(bytes);
});
