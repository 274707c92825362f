//! Access to members of headers and claims, and base64url.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::Json;

/// The end of the year 9999, in seconds.
const MAX_SECONDS: i64 = 253_402_300_799;

/// A member, if it is text.
pub fn text<'a>(json: &'a Json, name: &str) -> Option<&'a str> {
    if let Some(Json::Text(text)) = json.get(name) { Some(text) } else { None }
}

/// A member, if it is text of 1 to `max_length` bytes.
pub fn short_text<'a>(json: &'a Json, name: &str, max_length: usize) -> Option<&'a str> {
    text(json, name).filter(|text| !text.is_empty() && text.len() <= max_length)
}

/// An optional time in whole seconds (`NumericDate`, RFC 7519, section 2); an error if the member is something else.
pub fn seconds(json: &Json, name: &str) -> Result<Option<i64>, ()> {
    match json.get(name) {
        None => Ok(None),
        Some(Json::Int(seconds @ 0..=MAX_SECONDS)) => Ok(Some(*seconds)),
        Some(_) => Err(()),
    }
}

pub fn to_base64(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes base64url without padding. Unused bits must be zero, so that bytes have only one encoding.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}
