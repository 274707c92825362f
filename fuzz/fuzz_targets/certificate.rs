//! Any bytes are a certificate, a key or a file of them, or are refused; never a panic.

#![no_main]

use chancery_certificate::{Format, PrivateKey, facts_of, names_of, read};
use chancery_record::Secret;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let password = Secret::new("secret");
    for format in [Format::Pkcs12, Format::Pem, Format::Der] {
        if let Err(refusal) = read(format, bytes, None, Some(&password)) {
            assert!(!refusal.to_string().is_empty());
        }
    }
    let _ = PrivateKey::read(bytes, Some(&password));
    let _ = facts_of(bytes);
    let _ = names_of(bytes);
});
