//! The ID token (OpenID Connect Core 1.0, sections 2 and 3.1.3.7; RFC 8725).

mod claims;

pub use claims::{audiences, times};

use chancery_jwe::{DecryptionKey, decrypt, is_encrypted};
use chancery_oauth::{Algorithm, Jwk, NoMatchingKey, TokenParts, matching_keys};
use chancery_record::{Json, Timestamp};

use crate::{
    Check, Client, Demands, ProviderKind,
    check::{quoted, text},
};

/// The maximum length of an ID token, in bytes.
const MAX_LENGTH: usize = 64 * 1024;

/// The values that an ID token is validated with.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// This server's registration at the provider.
    pub client: &'a Client,
    /// The issuer of the discovery document.
    pub issuer: &'a str,
    /// The provider's keys.
    pub keys: &'a [Jwk],
    /// The keys of linked certificates that decrypt tokens.
    pub decryption_keys: &'a [DecryptionKey],
    /// `nonce` of the request.
    pub nonce: &'a str,
    /// The access token of the same response.
    pub access_token: &'a str,
    /// The demands of the sign-in.
    pub demands: &'a Demands,
    /// The time.
    pub now: Timestamp,
}

/// Validates an ID token. Returns all checks, and the claims, which count only if every check passed.
pub fn check_id_token(token: &str, expected: &Expected<'_>) -> (Vec<Check>, Option<Json>) {
    let mut checks = Vec::new();
    let mut decrypted = None;
    if is_encrypted(token) {
        let plaintext = expected.decryption_keys.iter().find_map(|key| decrypt(token, key));
        let text = plaintext.and_then(|secret| String::from_utf8(secret.expose().to_vec()).ok());
        checks
            .push(encryption(text.is_some(), expected.decryption_keys.is_empty()).with_option("certStores"));
        let Some(text) = text else { return (checks, None) };
        decrypted = Some(text);
    }
    let parts = match TokenParts::read(decrypted.as_deref().unwrap_or(token), MAX_LENGTH) {
        Ok(parts) => parts,
        Err(why) => {
            checks.push(Check::failed("idToken", format!("The ID token cannot be read. {why}")));
            return (checks, None);
        }
    };
    let algorithm = text(&parts.header, "alg").unwrap_or_default();
    let keys = keys_of_issuer(&parts.claims, expected);
    checks.extend(signature(&parts, algorithm, &keys));
    checks.extend(claims::check(&parts.claims, algorithm, expected));
    (checks, Some(parts.claims))
}

/// The keys that may sign for the token's issuer: Microsoft publishes the keys of all organisations in one set, and names the issuer of
/// each.
fn keys_of_issuer(claims: &Json, expected: &Expected<'_>) -> Vec<Jwk> {
    let (issuer, tid) = (text(claims, "iss"), text(claims, "tid"));
    let is_of = |key: &&Jwk| {
        let key_issuer = key.issuer.as_ref().filter(|_| expected.client.kind == ProviderKind::Microsoft);
        key_issuer
            .is_none_or(|pattern| expected.client.kind.issuer_of_token(pattern, tid).as_deref() == issuer)
    };
    expected.keys.iter().filter(is_of).cloned().collect()
}

fn encryption(is_decrypted: bool, has_no_key: bool) -> Check {
    if is_decrypted {
        return Check::new("encryption", true, "The ID token is encrypted, and was opened.");
    }
    let why = if has_no_key {
        "no certificate of type OidcTokenEncryption with its private key is linked"
    } else {
        "no linked certificate opens it"
    };
    Check::failed("encryption", format!("The ID token is encrypted, and {why}."))
}

/// Checks the algorithm, the key, and the signature.
fn signature(parts: &TokenParts<'_>, name: &str, keys: &[Jwk]) -> Vec<Check> {
    // with `none` anyone can sign, and with an HMAC everyone who knows the client's secret
    let Some(algorithm) = Algorithm::named(name).filter(|algorithm| !algorithm.is_symmetric()) else {
        let detail = format!(
            "The ID token is signed by {}, and must be by a key pair: RS, PS, ES or EdDSA.",
            quoted(name)
        );
        return vec![Check::failed("algorithm", detail)];
    };
    let algorithm_check = Check::new("algorithm", true, format!("The ID token is signed by {name}."));
    let kid = text(&parts.header, "kid")
        .map_or_else(|| "without a kid".to_owned(), |kid| format!("of kid {}", quoted(kid)));
    let key_check = |passed, result: &str| Check::new("key", passed, format!("The key {kid} {result}."));
    let matches = match matching_keys(&parts.header, keys, algorithm) {
        Ok(matches) => matches,
        Err(reason) => {
            let result = match reason {
                NoMatchingKey::Malformed => "is named by no text",
                NoMatchingKey::Unknown => "is none that the provider publishes",
                NoMatchingKey::OtherUse => "is for another use than signatures",
                NoMatchingKey::OtherAlgorithm => "is for another algorithm",
                NoMatchingKey::Many => "may be one of many: the token must name it",
            };
            return vec![algorithm_check, key_check(false, result)];
        }
    };
    let is_signed = is_signed_by(parts, algorithm, matches);
    let detail =
        if is_signed { "The signature is the provider's." } else { "The signature is not by this key." };
    vec![algorithm_check, key_check(true, "is the provider's"), Check::new("signature", is_signed, detail)]
}

/// Whether one of these keys signed the token.
pub fn is_signed_by<'a>(
    parts: &TokenParts<'_>,
    algorithm: Algorithm,
    keys: impl IntoIterator<Item = &'a Jwk>,
) -> bool {
    keys.into_iter().any(|key| key.verifies(algorithm, parts.signed, &parts.signature))
}
