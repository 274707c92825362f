//! JSON Web Keys (RFC 7517, section 4).

use chancery_record::{Json, read_json};

use crate::{
    Algorithm, Curve, KeyFault, PublicKey,
    claims::{from_base64, text},
};

/// The members of private keys: RSA, EC and OKP (RFC 7518, section 6), AKP.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "priv"];
/// The maximum length of the JSON text of a key or a set, in bytes.
pub const MAX_LENGTH: usize = 256 * 1024;
/// The maximum length of a key's id, in bytes.
const MAX_KID: usize = 512;

/// The use of a key (`use`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Verification of signatures.
    Signature,
    /// Encryption for the client.
    Encryption,
}

impl Purpose {
    const fn name(self) -> &'static str {
        match self {
            Self::Signature => "sig",
            Self::Encryption => "enc",
        }
    }

    /// The operations of a public key with this use (RFC 7517, section 4.3).
    const fn operations(self) -> &'static [&'static str] {
        match self {
            Self::Signature => &["verify"],
            Self::Encryption => &["encrypt", "wrapKey", "deriveKey", "deriveBits"],
        }
    }
}

/// A public key with its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jwk {
    /// The key.
    pub key: PublicKey,
    /// The key's id in the set.
    pub kid: Option<String>,
    /// The only issuer whose tokens the key signs, if the set names one (Microsoft's does).
    pub issuer: Option<String>,
    signature: bool,
    encryption: bool,
    algorithm: Option<String>,
}

impl Jwk {
    /// Parses a key.
    ///
    /// # Errors
    /// The fault of the key.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyFault> {
        if bytes.len() > MAX_LENGTH {
            return Err(KeyFault::TooLong);
        }
        Self::read(&read_json(bytes).map_err(|_| KeyFault::NotJson)?)
    }

    /// Reads a key. Unknown members are ignored (RFC 7517, section 4).
    ///
    /// # Errors
    /// The fault of the key.
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
        let has_operation = |required: Purpose| {
            let has = |names: &Vec<&str>| names.iter().any(|name| required.operations().contains(name));
            operations.as_ref().is_none_or(has)
        };
        // an unknown use allows neither purpose
        let allows =
            |required: Purpose| purpose.is_none_or(|name| name == required.name()) && has_operation(required);
        let both = [Purpose::Signature, Purpose::Encryption];
        if both.into_iter().any(|required| purpose == Some(required.name()) && !has_operation(required)) {
            return Err(KeyFault::Malformed("use and key_ops contradict each other"));
        }
        Ok(Self {
            key: read_key(family, json)?,
            kid: kid.map(str::to_owned),
            issuer: text(json, "issuer").map(str::to_owned),
            signature: allows(Purpose::Signature),
            encryption: allows(Purpose::Encryption),
            algorithm: optional(json, "alg", "alg is no text")?.map(str::to_owned),
        })
    }

    /// A key without metadata, e.g. a certificate's: it has no id, and all uses are allowed.
    pub const fn of(key: PublicKey) -> Self {
        Self { key, kid: None, issuer: None, signature: true, encryption: true, algorithm: None }
    }

    /// Whether `use` and `key_ops` allow a purpose.
    pub const fn allows(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Signature => self.signature,
            Purpose::Encryption => self.encryption,
        }
    }

    /// The only algorithm of the key (`alg`), for signatures or encryption.
    pub fn algorithm(&self) -> Option<&str> {
        self.algorithm.as_deref()
    }

    /// Whether the key may verify signatures of an algorithm by its kind, `use`, `key_ops` and `alg`.
    pub fn may_verify(&self, algorithm: Algorithm) -> bool {
        let only = self.algorithm.as_deref().map(Algorithm::named);
        self.signature && self.key.supports(algorithm) && only.is_none_or(|only| only == Some(algorithm))
    }

    /// Verifies a signature, if the key may verify the algorithm.
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
    let fault = KeyFault::Malformed("key_ops is no array of different texts");
    let items = match json.get("key_ops") {
        None => return Ok(None),
        Some(Json::Array(items)) => items,
        Some(_) => return Err(fault),
    };
    let mut names = Vec::new();
    for item in items {
        match item {
            Json::Text(name) if names.len() < 16 && !names.contains(&name.as_str()) => {
                names.push(name.as_str());
            }
            _ => return Err(fault),
        }
    }
    Ok(Some(names))
}

fn optional<'a>(json: &'a Json, name: &str, error: &'static str) -> Result<Option<&'a str>, KeyFault> {
    match json.get(name) {
        None => Ok(None),
        Some(Json::Text(text)) => Ok(Some(text)),
        Some(_) => Err(KeyFault::Malformed(error)),
    }
}

fn bytes(json: &Json, name: &str, error: &'static str) -> Result<Vec<u8>, KeyFault> {
    text(json, name).and_then(from_base64).ok_or(KeyFault::Malformed(error))
}
