//! Readers of members of headers and claims, and base64url.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::Json;

/// The end of the year 9999, in seconds.
const LAST: i64 = 253_402_300_799;

/// A member that is text.
pub fn text<'a>(json: &'a Json, name: &str) -> Option<&'a str> {
    if let Some(Json::Text(text)) = json.get(name) { Some(text) } else { None }
}

/// A member that is text of 1 to `longest` bytes.
pub fn short_text<'a>(json: &'a Json, name: &str, longest: usize) -> Option<&'a str> {
    text(json, name).filter(|text| !text.is_empty() && text.len() <= longest)
}

/// A member that is a moment in whole seconds (`NumericDate`, RFC 7519, section 2), if it is there.
pub fn seconds(json: &Json, name: &str) -> Result<Option<i64>, ()> {
    match json.get(name) {
        None => Ok(None),
        Some(Json::Int(seconds @ 0..=LAST)) => Ok(Some(*seconds)),
        Some(_) => Err(()),
    }
}

pub fn to_base64(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Bytes from base64url without padding. Unused bits must be zero, so that bytes have one text only.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}
