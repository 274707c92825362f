//! The functions that the fuzzers in `fuzz/` test, with one input of each kind: a fuzzer continues from there.

use chancery_fuzzed::{body, certificate, filter, scim};

#[test]
fn any_bytes_are_read_or_refused_with_words() {
    let some: [&[u8]; 7] = [
        b"",
        b"\xff\x00",
        b"userName eq \"ada\" and (title pr or not (emails[type eq \"work\"]))",
        br#"{"loginName": "ada", "isUserActive": "yes", "userProfiles": [{}]}"#,
        br#"{"Operations": [{"op": "add", "path": "emails[type eq \"work\"].value", "value": "a@example.com"}]}"#,
        b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
        b"\x30\x82\x01\x0a\x02\x82\x01\x01",
    ];
    for bytes in some {
        for holds in [filter, body, certificate, scim] {
            holds(bytes);
        }
    }
}
