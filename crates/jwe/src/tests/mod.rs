//! Tokens of another implementation (joserfc 1): every algorithm is decrypted; tokens for other keys and damaged ones are
//! not.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::Secret;
use serde_json::Value;

use crate::{DecryptionKey, decrypt, is_encrypted};

fn vectors() -> Value {
    serde_json::from_str(include_str!("joserfc.json")).unwrap()
}

fn key(vectors: &Value, name: &str) -> DecryptionKey {
    let der = BASE64_STANDARD.decode(vectors["keys"][name].as_str().unwrap()).unwrap();
    DecryptionKey::read(&Secret::new(der)).unwrap()
}

fn tokens(vectors: &Value) -> impl Iterator<Item = (&str, &str)> {
    let all = vectors["tokens"].as_array().unwrap().iter();
    all.map(|one| (one["key"].as_str().unwrap(), one["token"].as_str().unwrap()))
}

#[test]
fn tokens_of_every_algorithm_are_decrypted() {
    let vectors = vectors();
    for (name, token) in tokens(&vectors) {
        assert!(is_encrypted(token));
        let decrypted = decrypt(token, &key(&vectors, name)).unwrap();
        assert_eq!(decrypted.expose(), br#"{"sub":"ada"}"#);
    }
}

#[test]
fn a_token_for_another_key_is_not_decrypted() {
    let vectors = vectors();
    for (name, token) in tokens(&vectors) {
        for other in ["RSA", "P-256", "P-384", "P-521"].into_iter().filter(|other| *other != name) {
            assert!(decrypt(token, &key(&vectors, other)).is_none(), "{name} {other}");
        }
    }
}

/// Each part changed, truncated and removed.
#[test]
fn a_damaged_token_is_not_decrypted() {
    let vectors = vectors();
    for (name, token) in tokens(&vectors) {
        let key = key(&vectors, name);
        let parts: Vec<&str> = token.split('.').collect();
        for (at, part) in parts.iter().enumerate() {
            let begin = if part.starts_with('A') { "B" } else { "A" };
            let changed = if part.is_empty() { "AAAA".to_owned() } else { format!("{begin}{}", &part[1..]) };
            for other in [changed.as_str(), part.get(..part.len().saturating_sub(4)).unwrap_or("A"), ""] {
                let mut damaged = parts.clone();
                damaged[at] = other;
                let damaged = damaged.join(".");
                assert!(damaged == token || decrypt(&damaged, &key).is_none(), "{name} part {at}: {other}");
            }
        }
        for more in [format!("{token}."), parts[..4].join("."), String::new(), ".".repeat(4)] {
            assert!(decrypt(&more, &key).is_none());
        }
    }
}

#[test]
fn only_a_decryption_key_is_read() {
    assert!(DecryptionKey::read(&Secret::new(*b"no key")).is_none());
    let hidden = format!("{:?}", key(&vectors(), "RSA"));
    assert_eq!(hidden, "DecryptionKey(hidden)");
}
