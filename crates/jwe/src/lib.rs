//! Decrypts tokens in compact serialization (JWE, RFC 7516) with a private key of this server.
//!
//! The key is RSA (RSA-OAEP, RSA-OAEP-256) or on a curve (ECDH-ES, with and without key wrap); the content is encrypted
//! by AES in GCM or CBC with HMAC (RFC 7518). Everything is pure, and the cryptography is `aws-lc-rs`'s. Errors do not
//! tell which part of a token is invalid, so that senders learn nothing from them.

mod content;
mod key;

use aws_lc_rs::error::Unspecified;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Json, Secret, read_json};

pub use key::DecryptionKey;

/// The longest token that is decrypted, in bytes.
pub const LONGEST: usize = 64 * 1024;

/// Whether a token is of the form of an encrypted one: five parts.
pub fn is_encrypted(token: &str) -> bool {
    token.bytes().filter(|byte| *byte == b'.').count() == 4
}

/// Decrypts a token. `None`: it is malformed, of an unsupported algorithm, or not encrypted for this key.
pub fn decrypt(token: &str, key: &DecryptionKey) -> Option<Secret> {
    if token.len() > LONGEST {
        return None;
    }
    let parts: Vec<&str> = token.split('.').collect();
    let [header_text, wrapped, vector, sealed, tag] = parts.as_slice() else { return None };
    let header = read_json(&bytes(header_text)?).ok()?;
    // no extension is supported (RFC 7516, section 4.1.13), and compressed content may expand without bound
    if header.get("crit").is_some() || header.get("zip").is_some() {
        return None;
    }
    let content = content::Content::named(text(&header, "enc")?)?;
    let secret = key.content_key(&header, &bytes(wrapped)?, content).ok()?;
    let parts = [bytes(vector)?, bytes(sealed)?, bytes(tag)?];
    content.decrypt(secret.expose(), header_text.as_bytes(), &parts).ok()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

fn text<'a>(json: &'a Json, name: &str) -> Option<&'a str> {
    if let Some(Json::Text(text)) = json.get(name) { Some(text) } else { None }
}

/// A result whose error says nothing more.
type Decrypted = Result<Secret, Unspecified>;

#[cfg(test)]
mod tests;
