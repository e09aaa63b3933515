#![no_main]

libfuzzer_sys::fuzz_target!(|case: anabranch_fuzz::endpoint::Case| {
    case.play();
});
