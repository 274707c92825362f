//! The installation's signing keys: generated at the first start, stored encrypted.

use std::collections::HashMap;

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rand::SystemRandom,
    rsa::KeySize,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_certificate::PrivateKey;
use chancery_oauth::{Jwk, PublicKey};
use chancery_record::{Timestamp, Value};
use chancery_resource::{AuditKey, MasterKey, random};
use chancery_store::{Error, StateTable, Tx, selectable};
use serde_json::json;

/// The purpose of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Token,
    IdToken,
    Audit,
}

impl Purpose {
    const fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::IdToken => "id-token",
            Self::Audit => "audit",
        }
    }
}

/// A key of the installation that signs tokens.
pub struct TokenKey {
    /// Its id.
    pub kid: String,
    /// The private key.
    pub private: PrivateKey,
}

/// The installation's signing keys, ready for use.
pub struct Keyring {
    /// The key that signs access tokens.
    pub token_key: TokenKey,
    /// The public keys that verify access tokens, by id. Their algorithm is ES256.
    pub token_keys: HashMap<String, PublicKey>,
    /// The key that signs ID tokens by RS256, which libraries expect.
    pub id_token_key: TokenKey,
    /// The public keys that verify ID tokens, by id. Their algorithm is RS256.
    pub id_token_keys: HashMap<String, PublicKey>,
    /// The public keys of access tokens and of ID tokens, as JWKs.
    pub token_jwks: Vec<serde_json::Value>,
    /// The public keys of the audit trail, as JWKs.
    pub audit_jwks: Vec<serde_json::Value>,
}

/// Loads the installation's signing keys; generates those that are missing. The audit key signs for this
/// process.
///
/// # Errors
/// [`Error::Unavailable`] when the keys cannot be decrypted with this master key.
pub fn ensure_keys(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    now: Timestamp,
) -> Result<(Keyring, AuditKey), Error> {
    let mut stored = load(tx)?;
    let mut generated = false;
    for purpose in [Purpose::Token, Purpose::IdToken, Purpose::Audit] {
        if !stored.iter().any(|key| key.purpose == purpose.name()) {
            generate(tx, master, purpose, now)?;
            generated = true;
        }
    }
    if generated {
        stored = load(tx)?;
    }
    open(&stored, master).ok_or_else(cannot_open)
}

/// The associated data of the sealed root.
const ROOT: &str = "key_root";

fn cannot_open() -> Error {
    Error::Unavailable(
        "the keys in the database cannot be opened with this master key: start with the \
         master.key that this database was made with"
            .into(),
    )
}

/// The master key with the root that keys of this installation are derived from. A database without a root gets one: the
/// master key that sealed the signing keys, from which earlier releases derive; in a new database the first master key.
///
/// # Errors
/// [`Error::Unavailable`] when the root cannot be decrypted with this master key.
pub fn ensure_root(tx: &mut Tx<'_>, master: &MasterKey, now: Timestamp) -> Result<MasterKey, Error> {
    if let Some(rooted) = read_root(tx, master)? {
        return Ok(rooted);
    }
    let sealed = load(tx)?.into_iter().next().map(|key| key.private_key);
    let root = match sealed {
        Some(sealed) => master.root_by(&sealed).ok_or_else(cannot_open)?,
        None => master.root().clone(),
    };
    let sealed_root = Value::Bytes(master.seal(ROOT, root.expose()));
    // processes that start together store the same root
    let insert =
        StateTable::KeyRoot.insert("(id, sealed, created_on) VALUES (1, ?1, ?2) ON CONFLICT DO NOTHING");
    tx.queue(&insert, vec![sealed_root, Value::Int(now.0)])?;
    Ok(master.clone().with_root(root))
}

/// The master key with the stored root; `None` where the database has none yet.
fn read_root(tx: &mut Tx<'_>, master: &MasterKey) -> Result<Option<MasterKey>, Error> {
    let sealed = tx.one("SELECT sealed FROM key_root WHERE id = 1", &[], |row| Ok(row.bytes(0)?.to_vec()))?;
    let Some(sealed) = sealed else { return Ok(None) };
    let root = master.open(ROOT, &sealed).ok_or_else(cannot_open)?;
    Ok(Some(master.clone().with_root(root)))
}

/// Seals the root and the signing keys again, with the first master key. All other data is opened by the key that sealed
/// it.
///
/// # Errors
/// [`Error::Unavailable`] when one of them cannot be decrypted with this master key.
pub fn wrap_keys(tx: &mut Tx<'_>, master: &MasterKey) -> Result<(), Error> {
    let rooted = read_root(tx, master)?.ok_or_else(|| Error::Internal("the root is not there".into()))?;
    let sealed = Value::Bytes(master.seal(ROOT, rooted.root().expose()));
    tx.queue_one(&StateTable::KeyRoot.update("SET sealed = ?1 WHERE id = 1"), vec![sealed])?;
    for StoredKey { key_id, private_key, .. } in load(tx)? {
        let about = associated_data(&key_id);
        let private = master.open(&about, &private_key).ok_or_else(cannot_open)?;
        let sealed = Value::Bytes(master.seal(&about, private.expose()));
        let update = StateTable::SigningKey.update("SET private_key = ?1 WHERE key_id = ?2");
        tx.queue_one(&update, vec![sealed, key_id.into()])?;
    }
    Ok(())
}

selectable! {
    /// A key as it is stored, the private one encrypted.
    struct StoredKey from "FROM signing_key ORDER BY created_on, rid" {
        purpose: String = "purpose",
        key_id: String = "key_id",
        public_key: Vec<u8> = "public_key",
        private_key: Vec<u8> = "private_key",
    }
}

fn load(tx: &mut Tx<'_>) -> Result<Vec<StoredKey>, Error> {
    let mut keys = Vec::new();
    tx.query(StoredKey::SELECT, &[], |row| {
        keys.push(StoredKey::read(row)?);
        Ok(())
    })?;
    Ok(keys)
}

fn generate(tx: &mut Tx<'_>, master: &MasterKey, purpose: Purpose, now: Timestamp) -> Result<(), Error> {
    let failed = |_| Error::Internal("a key cannot be made".into());
    let generator = SystemRandom::new();
    let key_id = BASE64_URL_SAFE_NO_PAD.encode(random::<12>());
    let (algorithm, document, public_key) = match purpose {
        Purpose::Token => {
            let signing = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let document = EcdsaKeyPair::generate_pkcs8(signing, &generator).map_err(failed)?;
            let pair = EcdsaKeyPair::from_pkcs8(signing, document.as_ref())
                .map_err(|_| Error::Internal("a key cannot be read".into()))?;
            ("ES256", document.as_ref().to_vec(), pair.public_key().as_ref().to_vec())
        }
        Purpose::IdToken => {
            let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(failed)?;
            let document = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).map_err(failed)?;
            ("RS256", document.as_ref().to_vec(), pair.public_key().as_ref().to_vec())
        }
        Purpose::Audit => {
            let document = Ed25519KeyPair::generate_pkcs8(&generator).map_err(failed)?;
            let pair = Ed25519KeyPair::from_pkcs8(document.as_ref())
                .map_err(|_| Error::Internal("a key cannot be read".into()))?;
            ("EdDSA", document.as_ref().to_vec(), pair.public_key().as_ref().to_vec())
        }
    };
    tx.queue(
        &StateTable::SigningKey.insert(
            "(purpose, key_id, algorithm, public_key, private_key, created_on) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        ),
        vec![
            purpose.name().into(),
            key_id.as_str().into(),
            algorithm.into(),
            Value::Bytes(public_key),
            Value::Bytes(master.seal(&associated_data(&key_id), &document)),
            Value::Int(now.0),
        ],
    )
}

fn associated_data(key_id: &str) -> String {
    format!("signing_key/{key_id}")
}

fn open(stored: &[StoredKey], master: &MasterKey) -> Option<(Keyring, AuditKey)> {
    let newest = |purpose: Purpose| stored.iter().rev().find(|key| key.purpose == purpose.name());
    let private = |key: &StoredKey| master.open(&associated_data(&key.key_id), &key.private_key);
    let token = newest(Purpose::Token)?;
    let audit = private(newest(Purpose::Audit)?)?;
    let audit = AuditKey::own(PrivateKey::read(audit.expose(), None).ok()?)?;
    let of = |purpose: Purpose| stored.iter().filter(move |key| key.purpose == purpose.name());
    let public = |key: &StoredKey| {
        let jwk = Jwk::parse(ec_jwk(key).to_string().as_bytes()).ok()?;
        Some((key.key_id.clone(), jwk.key))
    };
    let token_keys = of(Purpose::Token).map(public).collect::<Option<_>>()?;
    let token_key = |key: &StoredKey| {
        let private = PrivateKey::read(private(key)?.expose(), None).ok()?;
        Some(TokenKey { kid: key.key_id.clone(), private })
    };
    let id_tokens: Vec<TokenKey> = of(Purpose::IdToken).map(token_key).collect::<Option<_>>()?;
    let public_key = |key: &TokenKey| {
        let jwk = Jwk::parse(signing_jwk(key, "RS256").to_string().as_bytes()).ok()?;
        Some((key.kid.clone(), jwk.key))
    };
    let id_token_keys = id_tokens.iter().map(public_key).collect::<Option<_>>()?;
    let id_token_jwks: Vec<_> = id_tokens.iter().map(|key| signing_jwk(key, "RS256")).collect();
    let keyring = Keyring {
        token_key: token_key(token)?,
        token_keys,
        id_token_keys,
        id_token_key: id_tokens.into_iter().next_back()?,
        token_jwks: of(Purpose::Token).map(ec_jwk).chain(id_token_jwks).collect(),
        audit_jwks: of(Purpose::Audit).map(ed_jwk).collect(),
    };
    Some((keyring, audit))
}

/// The public key of a key that signs by this algorithm, as a JWK.
fn signing_jwk(key: &TokenKey, algorithm: &str) -> serde_json::Value {
    let mut jwk = key.private.public_jwk(&key.kid);
    if let Some(members) = jwk.as_object_mut() {
        members.insert("use".into(), json!("sig"));
        members.insert("alg".into(), json!(algorithm));
    }
    jwk
}

/// A P-256 key as a JWK; its public key is the uncompressed point `04 x y`.
fn ec_jwk(key: &StoredKey) -> serde_json::Value {
    let part = |from, to| BASE64_URL_SAFE_NO_PAD.encode(key.public_key.get(from..to).unwrap_or_default());
    json!({
        "kty": "EC", "crv": "P-256", "x": part(1, 33), "y": part(33, 65),
        "kid": key.key_id, "use": "sig", "alg": "ES256",
    })
}

/// An Ed25519 key as a JWK.
fn ed_jwk(key: &StoredKey) -> serde_json::Value {
    json!({
        "kty": "OKP", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode(&key.public_key),
        "kid": key.key_id, "use": "sig", "alg": "EdDSA",
    })
}
