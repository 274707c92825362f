//! A public key as JSON (RFC 7517, section 4).

use chancery_record::{Json, read_json};

use crate::{
    Algorithm, Curve, KeyFault, PublicKey,
    claims::{from_base64, text},
    jwk_set::MAX_LENGTH,
};

/// The members that only a private key has: RSA, EC and OKP (RFC 7518, section 6), AKP.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "priv"];
/// The bytes that a key's id may have: far above any in use.
const MAX_KID: usize = 512;

/// What a key is for (`use`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To verify signatures.
    Signature,
    /// To encrypt for the client.
    Encryption,
}

impl Purpose {
    const fn name(self) -> &'static str {
        match self {
            Self::Signature => "sig",
            Self::Encryption => "enc",
        }
    }

    /// The operations of a public key that fit the purpose (RFC 7517, section 4.3).
    const fn operations(self) -> &'static [&'static str] {
        match self {
            Self::Signature => &["verify"],
            Self::Encryption => &["encrypt", "wrapKey", "deriveKey", "deriveBits"],
        }
    }
}

/// A public key with its id and the uses that its owner allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jwk {
    /// The key.
    pub key: PublicKey,
    /// The key's id in the set.
    pub kid: Option<String>,
    /// The issuer whose tokens alone it signs, where the set tells one (Microsoft's does).
    pub issuer: Option<String>,
    signature: bool,
    encryption: bool,
    algorithm: Option<String>,
}

impl Jwk {
    /// Reads one key from its JSON text.
    ///
    /// # Errors
    /// [`KeyFault`]: what is wrong with the key.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyFault> {
        if bytes.len() > MAX_LENGTH {
            return Err(KeyFault::TooLong);
        }
        Self::read(&read_json(bytes).map_err(|_| KeyFault::NotJson)?)
    }

    /// Reads one key. Unknown members are ignored (RFC 7517, section 4).
    ///
    /// # Errors
    /// [`KeyFault`]: what is wrong with the key.
    pub fn read(json: &Json) -> Result<Self, KeyFault> {
        if PRIVATE.iter().any(|member| json.get(member).is_some()) {
            return Err(KeyFault::Private);
        }
        let family = text(json, "kty").ok_or(KeyFault::Malformed("kty is missing"))?;
        if family == "oct" || json.get("k").is_some() {
            return Err(KeyFault::Symmetric);
        }
        let kid = optional(json, "kid", "kid is no text")?;
        if kid.is_some_and(|kid| kid.is_empty() || kid.len() > MAX_KID) {
            return Err(KeyFault::Malformed("kid must have 1 to 512 bytes"));
        }
        let purpose = optional(json, "use", "use is no text")?;
        let operations = read_operations(json)?;
        let operable = |wanted: Purpose| {
            let has = |names: &Vec<&str>| names.iter().any(|name| wanted.operations().contains(name));
            operations.as_ref().is_none_or(has)
        };
        // an unknown use allows neither purpose
        let serves = |wanted: Purpose| purpose.is_none_or(|name| name == wanted.name()) && operable(wanted);
        let both = [Purpose::Signature, Purpose::Encryption];
        if both.into_iter().any(|wanted| purpose == Some(wanted.name()) && !operable(wanted)) {
            return Err(KeyFault::Malformed("use and key_ops contradict each other"));
        }
        Ok(Self {
            key: read_key(family, json)?,
            kid: kid.map(str::to_owned),
            issuer: text(json, "issuer").map(str::to_owned),
            signature: serves(Purpose::Signature),
            encryption: serves(Purpose::Encryption),
            algorithm: optional(json, "alg", "alg is no text")?.map(str::to_owned),
        })
    }

    /// A key without an id that may be used in any way that its kind allows, e.g. a certificate's.
    pub const fn of(key: PublicKey) -> Self {
        Self { key, kid: None, issuer: None, signature: true, encryption: true, algorithm: None }
    }

    /// Whether the key may serve a purpose, by `use` and `key_ops`.
    pub const fn serves(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Signature => self.signature,
            Purpose::Encryption => self.encryption,
        }
    }

    /// The only algorithm that the key is for (`alg`), of signing or of encryption.
    pub fn algorithm(&self) -> Option<&str> {
        self.algorithm.as_deref()
    }

    /// Whether the key may verify signatures of an algorithm: its kind, `use`, `key_ops` and `alg` all allow
    /// it.
    pub fn may_verify(&self, algorithm: Algorithm) -> bool {
        let only = self.algorithm.as_deref().map(Algorithm::named);
        self.signature && self.key.can(algorithm) && only.is_none_or(|only| only == Some(algorithm))
    }

    /// Whether the signature over the message is this key's, of an algorithm that it may verify.
    pub fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        self.may_verify(algorithm) && self.key.verifies(algorithm, message, signature)
    }
}

fn read_key(family: &str, json: &Json) -> Result<PublicKey, KeyFault> {
    match family {
        "RSA" => PublicKey::rsa(
            bytes(json, "n", "n is missing or no base64url")?,
            bytes(json, "e", "e is missing or no base64url")?,
        ),
        "EC" => {
            let curve = text(json, "crv").ok_or(KeyFault::Malformed("crv is missing"))?;
            let curve = Curve::named(curve).ok_or(KeyFault::Unsupported)?;
            let x = bytes(json, "x", "x is missing or no base64url")?;
            PublicKey::ec(curve, &x, &bytes(json, "y", "y is missing or no base64url")?)
        }
        "OKP" => match text(json, "crv") {
            Some("Ed25519") => PublicKey::ed25519(bytes(json, "x", "x is missing or no base64url")?),
            Some(_) => Err(KeyFault::Unsupported),
            None => Err(KeyFault::Malformed("crv is missing")),
        },
        _ => Err(KeyFault::Unsupported),
    }
}

fn read_operations(json: &Json) -> Result<Option<Vec<&str>>, KeyFault> {
    let wrong = KeyFault::Malformed("key_ops is no array of different texts");
    let items = match json.get("key_ops") {
        None => return Ok(None),
        Some(Json::Array(items)) => items,
        Some(_) => return Err(wrong),
    };
    let mut names = Vec::new();
    for item in items {
        match item {
            Json::Text(name) if names.len() < 16 && !names.contains(&name.as_str()) => {
                names.push(name.as_str());
            }
            _ => return Err(wrong),
        }
    }
    Ok(Some(names))
}

fn optional<'a>(json: &'a Json, name: &str, wrong: &'static str) -> Result<Option<&'a str>, KeyFault> {
    match json.get(name) {
        None => Ok(None),
        Some(Json::Text(text)) => Ok(Some(text)),
        Some(_) => Err(KeyFault::Malformed(wrong)),
    }
}

fn bytes(json: &Json, name: &str, wrong: &'static str) -> Result<Vec<u8>, KeyFault> {
    text(json, name).and_then(from_base64).ok_or(KeyFault::Malformed(wrong))
}
