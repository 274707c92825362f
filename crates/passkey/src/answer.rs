//! The answer of a client: `PublicKeyCredential.toJSON()`, read strictly and within bounds.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::Value;

use crate::{CeremonyRefusal, Policy, RefusalKind};

/// The maximum size of a credential id in WebAuthn, in bytes.
const MAX_ID: usize = 1023;
/// The maximum size of a user handle in WebAuthn, in bytes.
const MAX_USER_HANDLE: usize = 64;
/// The maximum size of client data in bytes: far above that of real clients.
pub(crate) const MAX_CLIENT_DATA: usize = 16 * 1024;
/// The maximum size of an attestation object in bytes: enough for a chain of certificates.
pub(crate) const MAX_ATTESTATION: usize = 64 * 1024;
/// The maximum size of authenticator data in an authentication, in bytes: flags, a counter and extensions.
pub(crate) const MAX_AUTHENTICATOR_DATA: usize = 4 * 1024;
/// The maximum size of a signature in bytes: that of an RSA key of 16,384 bits.
pub(crate) const MAX_SIGNATURE: usize = 2 * 1024;

/// The credential id of an answer, to look up the credential.
pub fn credential_id_of(answer: &Value) -> Result<Vec<u8>, CeremonyRefusal> {
    if text(answer, "type")? != "public-key" {
        return Err(CeremonyRefusal::new(RefusalKind::Type, "the answer is of no public key credential"));
    }
    let id = bytes(answer, "rawId", MAX_ID)?;
    if id.is_empty() || bytes(answer, "id", MAX_ID)? != id {
        return Err(malformed("id and rawId differ"));
    }
    Ok(id)
}

/// The user handle in the answer to an authentication, if there is one: the bytes of the user's id.
pub fn user_handle_of(answer: &Value) -> Result<Option<Vec<u8>>, CeremonyRefusal> {
    let response = answer.get("response").unwrap_or(&Value::Null);
    match response.get("userHandle") {
        None | Some(Value::Null) => Ok(None),
        Some(_) => bytes(response, "userHandle", MAX_USER_HANDLE).map(Some),
    }
}

/// The `response` of an answer, with the data of the authenticator.
pub(crate) fn response_of(answer: &Value) -> Result<&Value, CeremonyRefusal> {
    answer.get("response").filter(|response| response.is_object()).ok_or_else(|| malformed("no response"))
}

/// The bytes of a member that is base64url without padding.
pub(crate) fn bytes(object: &Value, name: &str, longest: usize) -> Result<Vec<u8>, CeremonyRefusal> {
    let encoded = text(object, name)?;
    if encoded.len() > longest.saturating_mul(4).div_ceil(3) {
        return Err(malformed(&format!("{name} is too long")));
    }
    from_base64(encoded).ok_or_else(|| malformed(&format!("{name} is no base64url")))
}

fn text<'a>(object: &'a Value, name: &str) -> Result<&'a str, CeremonyRefusal> {
    object.get(name).and_then(Value::as_str).ok_or_else(|| malformed(&format!("no {name}")))
}

pub(crate) fn malformed(detail: &str) -> CeremonyRefusal {
    CeremonyRefusal::new(RefusalKind::Malformed, detail)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientData {
    origin: String,
    #[serde(default)]
    cross_origin: bool,
    top_origin: Option<String>,
}

/// Checks the origin as text, and that the page was not framed: the library compares URLs, which may have a
/// path or a user, and checks `crossOrigin` in registrations only. Type and challenge it does check.
pub(crate) fn check_origin(policy: &Policy, client_data: &[u8]) -> Result<(), CeremonyRefusal> {
    let data: ClientData =
        serde_json::from_slice(client_data).map_err(|_| malformed("clientDataJSON cannot be read"))?;
    if data.cross_origin || data.top_origin.is_some() {
        return Err(CeremonyRefusal::new(RefusalKind::Origin, "the page was framed by another origin"));
    }
    if policy.allowed_origins.contains(&data.origin) {
        Ok(())
    } else {
        Err(CeremonyRefusal::new(RefusalKind::Origin, "the page's origin is not allowed"))
    }
}

/// Bytes in base64url, as WebAuthn's JSON holds them.
pub fn to_base64(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

/// Serializes bytes as base64url.
pub(crate) mod base64_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::to_base64(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::from_base64(&text).ok_or_else(|| D::Error::custom("no base64url"))
    }
}
