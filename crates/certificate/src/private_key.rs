//! Private keys: read in the formats that tools write, stored as PKCS#8, and signed with.

use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    rand::SystemRandom,
    rsa,
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING,
        ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _,
        RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding,
    },
};
use chancery_record::Secret;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::{
    Algorithm, KeyKind, MAX_BYTES, Part, PublicKey, UploadRefusal,
    der::{DerReader, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, magnitude},
    derivation::{Iterations, Password},
    encryption::decrypt_private_key,
    pem,
    public_key::{ED25519, ELLIPTIC_CURVE, P256, P384, P521, RSA, bits},
};

const BROKEN: UploadRefusal = UploadRefusal::Broken(Part::PrivateKey);
const MIN_RSA_BITS: u32 = 2048;
const MAX_RSA_BITS: u32 = 8192;

/// A private key of a supported kind. `Debug` does not print it.
pub struct PrivateKey {
    pair: Pair,
    pkcs8: Secret,
    public: PublicKey,
}

enum Pair {
    Rsa(rsa::KeyPair),
    Curve(EcdsaKeyPair),
    /// P-256 twice, for signatures in JOSE's encoding and in ASN.1.
    P256(EcdsaKeyPair, EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl PrivateKey {
    /// Reads a key from PKCS#8, SEC1 or PKCS#1, in DER or PEM; PKCS#8 may be encrypted.
    pub fn read(bytes: &[u8], password: Option<&Secret>) -> Result<Self, UploadRefusal> {
        if bytes.len() > MAX_BYTES {
            return Err(UploadRefusal::TooLarge);
        }
        Self::read_working(bytes, password, &mut Iterations::full())
    }

    /// Reads a key as [`Self::read`] does, within the rest of a budget of work.
    pub(crate) fn read_working(
        bytes: &[u8],
        password: Option<&Secret>,
        work: &mut Iterations,
    ) -> Result<Self, UploadRefusal> {
        if pem::is_pem(bytes) {
            let mut keys = pem::blocks(bytes)?.into_iter().filter(|block| is_key(block.label));
            let key = keys.next().ok_or(UploadRefusal::NoPrivateKey)?;
            if keys.next().is_some() {
                return Err(UploadRefusal::SeveralPrivateKeys);
            }
            return Self::from_der(&key.content, password, work);
        }
        Self::from_der(bytes, password, work)
    }

    /// Reads DER. The types of its first elements show which format it is.
    pub(crate) fn from_der(
        der: &[u8],
        password: Option<&Secret>,
        work: &mut Iterations,
    ) -> Result<Self, UploadRefusal> {
        let reader = DerReader::only(der, SEQUENCE).ok_or(BROKEN)?;
        if reader.peek() == Some(SEQUENCE) {
            return Self::from_plain(&decrypted(der, password, work)?);
        }
        Self::from_plain(der)
    }

    /// Reads DER that is not encrypted.
    fn from_plain(der: &[u8]) -> Result<Self, UploadRefusal> {
        let mut reader = DerReader::only(der, SEQUENCE).ok_or(BROKEN)?;
        reader.take(INTEGER).ok_or(BROKEN)?;
        match reader.peek() {
            Some(SEQUENCE) => Self::from_pkcs8(der, reader),
            Some(INTEGER) => {
                check_rsa(reader)?;
                Self::of_rsa(rsa::KeyPair::from_der(der).map_err(|_| BROKEN)?)
            }
            // SEC1 may omit the curve: then it is the first one with the key in its range
            Some(OCTET_STRING) => Self::of_curve(der, &ECDSA_P256_SHA256_FIXED_SIGNING)
                .or_else(|_| Self::of_curve(der, &ECDSA_P384_SHA384_FIXED_SIGNING))
                .or_else(|_| Self::of_curve(der, &ECDSA_P521_SHA512_FIXED_SIGNING))
                .map_err(|_| UploadRefusal::UnsupportedKey),
            _ => Err(BROKEN),
        }
    }

    fn from_pkcs8(der: &[u8], mut reader: DerReader<'_>) -> Result<Self, UploadRefusal> {
        let mut algorithm = reader.enter(SEQUENCE).ok_or(BROKEN)?;
        let key = reader.take(OCTET_STRING).ok_or(BROKEN)?;
        match algorithm.take(OBJECT_IDENTIFIER).ok_or(BROKEN)? {
            RSA => {
                let mut inside = DerReader::only(key, SEQUENCE).ok_or(BROKEN)?;
                inside.take(INTEGER).ok_or(BROKEN)?;
                check_rsa(inside)?;
                Self::of_rsa(rsa::KeyPair::from_pkcs8(der).map_err(|_| BROKEN)?)
            }
            ELLIPTIC_CURVE => {
                let signing = match algorithm.take(OBJECT_IDENTIFIER) {
                    Some(P256) => &ECDSA_P256_SHA256_FIXED_SIGNING,
                    Some(P384) => &ECDSA_P384_SHA384_FIXED_SIGNING,
                    Some(P521) => &ECDSA_P521_SHA512_FIXED_SIGNING,
                    _ => return Err(UploadRefusal::UnsupportedKey),
                };
                Self::of_curve(der, signing)
            }
            ED25519 => {
                // the older version of PKCS#8 has no public key to check the private one against
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(|_| BROKEN)?;
                let pkcs8 = pair.to_pkcs8v1().map_err(|_| BROKEN)?;
                let pkcs8 = Secret::new(pkcs8.as_ref());
                let public = public_of(pair.public_key())?;
                Ok(Self { pair: Pair::Ed25519(pair), pkcs8, public })
            }
            _ => Err(UploadRefusal::UnsupportedKey),
        }
    }

    fn of_rsa(pair: rsa::KeyPair) -> Result<Self, UploadRefusal> {
        let pkcs8 = Secret::new(pair.as_der().map_err(|_| BROKEN)?.as_ref());
        let public = public_of(pair.public_key())?;
        Ok(Self { pair: Pair::Rsa(pair), pkcs8, public })
    }

    fn of_curve(der: &[u8], signing: &'static EcdsaSigningAlgorithm) -> Result<Self, UploadRefusal> {
        let pair = EcdsaKeyPair::from_private_key_der(signing, der).map_err(|_| BROKEN)?;
        let pkcs8 = Secret::new(pair.to_pkcs8v1().map_err(|_| BROKEN)?.as_ref());
        let public = public_of(pair.public_key())?;
        let pair = if public.kind() == KeyKind::P256 {
            let signing = &ECDSA_P256_SHA256_ASN1_SIGNING;
            let other = EcdsaKeyPair::from_private_key_der(signing, pkcs8.expose()).map_err(|_| BROKEN)?;
            Pair::P256(pair, other)
        } else {
            Pair::Curve(pair)
        };
        Ok(Self { pair, pkcs8, public })
    }

    /// The key's kind.
    pub const fn kind(&self) -> KeyKind {
        self.public.kind()
    }

    /// The public key.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The public key as a JWK with this `kid`.
    pub fn public_jwk(&self, kid: &str) -> Value {
        self.public.jwk(kid)
    }

    /// The key's thumbprint by RFC 7638, to be its `kid`.
    pub fn thumbprint(&self) -> String {
        self.public.thumbprint()
    }

    /// The key itself, in PKCS#8 as DER. The name makes every use easy to find.
    pub const fn expose_pkcs8(&self) -> &Secret {
        &self.pkcs8
    }

    /// Signs a message.
    pub fn sign(&self, algorithm: Algorithm, message: &[u8]) -> Result<Vec<u8>, UploadRefusal> {
        let random = SystemRandom::new();
        let by_curve =
            |pair: &EcdsaKeyPair| pair.sign(&random, message).map(|signature| signature.as_ref().to_vec());
        let by_rsa = |pair: &rsa::KeyPair, padding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; pair.public_modulus_len()];
            pair.sign(padding, &random, message, &mut signature).map(|()| signature)
        };
        let signature = match (&self.pair, self.kind(), algorithm) {
            (Pair::P256(pair, _), _, Algorithm::Es256)
            | (Pair::P256(_, pair), _, Algorithm::Es256Der)
            | (Pair::Curve(pair), KeyKind::P384, Algorithm::Es384)
            | (Pair::Curve(pair), KeyKind::P521, Algorithm::Es512) => by_curve(pair),
            (Pair::Rsa(pair), _, Algorithm::Rs256) => by_rsa(pair, &RSA_PKCS1_SHA256),
            (Pair::Rsa(pair), _, Algorithm::Ps256) => by_rsa(pair, &RSA_PSS_SHA256),
            (Pair::Ed25519(pair), _, Algorithm::EdDsa) => {
                pair.try_sign(message).map(|signature| signature.as_ref().to_vec())
            }
            _ => return Err(UploadRefusal::UnsuitedAlgorithm),
        };
        signature.map_err(|_| UploadRefusal::UnsuitedAlgorithm)
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PrivateKey({:?}, hidden)", self.kind())
    }
}

/// Whether the label of a PEM block is that of a private key.
pub fn is_key(label: &str) -> bool {
    label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY")
}

fn decrypted(
    der: &[u8],
    password: Option<&Secret>,
    work: &mut Iterations,
) -> Result<Zeroizing<Vec<u8>>, UploadRefusal> {
    if password.is_none() {
        return Err(UploadRefusal::PasswordMissing);
    }
    let mut refused = UploadRefusal::WrongPassword;
    for candidate in Password::candidates(password)? {
        match decrypt_private_key(der, &candidate, work) {
            // the padding can be valid by chance under a wrong password, the start of a key hardly
            Ok(plain) if DerReader::only(&plain, SEQUENCE).is_some() => return Ok(plain),
            Ok(_) => {}
            Err(other) => refused = other,
        }
    }
    Err(refused)
}

/// Checks the size of an RSA key, with its modulus next in the reader, before anything is computed with it.
fn check_rsa(mut reader: DerReader<'_>) -> Result<(), UploadRefusal> {
    let bits = bits(reader.take(INTEGER).and_then(magnitude).ok_or(BROKEN)?);
    if bits > MAX_RSA_BITS {
        return Err(UploadRefusal::UnsupportedKey);
    }
    if bits < MIN_RSA_BITS { Err(UploadRefusal::WeakKey(bits)) } else { Ok(()) }
}

fn public_of(key: &impl AsDer<PublicKeyX509Der<'static>>) -> Result<PublicKey, UploadRefusal> {
    let spki = key.as_der().map_err(|_| BROKEN)?;
    PublicKey::from_spki(spki.as_ref()).ok_or(BROKEN)
}
