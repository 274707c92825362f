//! See `crates/fuzzed`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| chancery_fuzzed::scim(bytes));
