//! Signing and verifying access tokens in their compact form (RFC 7515, section 7.1).

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_certificate::{Algorithm as Signing, KeyKind, PrivateKey};
use chancery_oauth::{Algorithm, PublicKey};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The longest token that is read, in bytes: this server issues none that is longer.
pub const MAX_LENGTH: usize = 8192;

/// The header of an access token.
#[derive(Serialize, Deserialize)]
pub struct Header {
    typ: String,
    alg: String,
    /// The id of the key that signed.
    pub kid: String,
    #[serde(rename = "x5t#S256", default, skip_serializing_if = "Option::is_none")]
    x5t: Option<String>,
}

/// The algorithm of each kind of key: one, so that no header can choose (RFC 8725, section 3.1).
pub const fn algorithms(kind: KeyKind) -> Option<(Signing, Algorithm)> {
    Some(match kind {
        KeyKind::Rsa { .. } => (Signing::Rs256, Algorithm::Rs256),
        KeyKind::P256 => (Signing::Es256, Algorithm::Es256),
        KeyKind::P384 => (Signing::Es384, Algorithm::Es384),
        KeyKind::P521 => (Signing::Es512, Algorithm::Es512),
        KeyKind::Ed25519 => (Signing::EdDsa, Algorithm::EdDsa),
        KeyKind::Other => return None,
    })
}

/// The `typ` of an access token (RFC 9068, section 2.1).
pub const ACCESS_TOKEN: &str = "at+jwt";
/// The `typ` of an ID token, and of an access token for resource servers that accept no other.
pub const ID_TOKEN: &str = "JWT";

/// Signs claims. `None`: the key cannot sign.
pub fn sign(
    key: &PrivateKey,
    kid: &str,
    x5t: Option<&str>,
    typ: &str,
    claims: &impl Serialize,
) -> Option<String> {
    let (signing, algorithm) = algorithms(key.kind())?;
    let header = Header {
        typ: typ.into(),
        alg: algorithm.name().into(),
        kid: kid.into(),
        x5t: x5t.map(str::to_owned),
    };
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let header = encode(&serde_json::to_vec(&header).ok()?);
    let signed = format!("{header}.{}", encode(&serde_json::to_vec(claims).ok()?));
    let signature = key.sign(signing, signed.as_bytes()).ok()?;
    Some(format!("{signed}.{}", encode(&signature)))
}

/// An access token whose signature is not verified yet.
pub struct UnverifiedToken<'a> {
    /// The token's header.
    pub header: Header,
    signed: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

impl<'a> UnverifiedToken<'a> {
    /// Reads a token whose `typ` is that of an access token (RFC 9068, section 2.1), or of any JWT.
    pub fn read(token: &'a str) -> Option<Self> {
        Self::of_types(token, &["at+jwt", "application/at+jwt", "jwt"])
    }

    /// Whether its `typ` is that of any JWT.
    pub fn has_plain_type(&self) -> bool {
        self.header.typ.eq_ignore_ascii_case(ID_TOKEN)
    }

    /// Reads a token whose `typ` is that of an ID token.
    pub fn read_id_token(token: &'a str) -> Option<Self> {
        Self::of_types(token, &["jwt"])
    }

    fn of_types(token: &'a str, types: &[&str]) -> Option<Self> {
        if token.len() > MAX_LENGTH {
            return None;
        }
        let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
        let typ = header.typ.to_ascii_lowercase();
        types.contains(&typ.as_str()).then_some(Self {
            header,
            signed,
            claims,
            signature: decode(signature)?,
        })
    }

    /// The token's claims, if this key signed them by this algorithm.
    pub fn verified<T: DeserializeOwned>(&self, key: &PublicKey, algorithm: Algorithm) -> Option<T> {
        let valid = self.header.alg == algorithm.name()
            && key.verifies(algorithm, self.signed.as_bytes(), &self.signature);
        let claims = BASE64_URL_SAFE_NO_PAD.decode(self.claims).ok().filter(|_| valid)?;
        serde_json::from_slice(&claims).ok()
    }
}
