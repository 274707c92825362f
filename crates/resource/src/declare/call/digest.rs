//! Digests and entity tags.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

/// The SHA-256 of text, in lower-case hexadecimal.
pub fn digest(text: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().fold(String::with_capacity(64), |mut hex, byte| {
        hex.extend([byte >> 4, byte & 15].iter().filter_map(|half| char::from_digit(u32::from(*half), 16)));
        hex
    })
}

/// The strong `ETag` of a representation.
pub fn etag(body: &[u8]) -> String {
    tag_of(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body).as_ref())
}

/// The strong `ETag` of a representation with this digest.
pub fn tag_of(digest: &[u8]) -> String {
    format!("\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(digest.get(..16).unwrap_or_default()))
}
