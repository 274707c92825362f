//! A metadata service for the tests.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding,
        RsaKeyPair,
    },
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use chancery_record::{Timestamp, parse_day, parse_timestamp};
use chancery_trust::{Anchors, MetadataRefusal, Snapshot, verify};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_RSA_SHA256,
    RsaKeySize, date_time_ymd,
};
use serde_json::{Value, json};

pub const NAME: &str = "mds.example";

pub fn at(text: &str) -> Timestamp {
    parse_timestamp(text).or_else(|| parse_day(text)).unwrap()
}

/// A time at which the service's certificates are valid.
pub fn now() -> Timestamp {
    at("2026-06-01")
}

/// A root, an intermediate authority, and a signer with a certificate of the latter.
pub struct Service {
    pub root: CertifiedIssuer<'static, KeyPair>,
    office: CertifiedIssuer<'static, KeyPair>,
    pub key: KeyPair,
    pub leaf: Certificate,
}

impl Service {
    /// Signs with ES256.
    pub fn new() -> Self {
        Self::signing_with(KeyPair::generate().unwrap())
    }

    pub fn with_rsa() -> Self {
        Self::signing_with(KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap())
    }

    fn signing_with(key: KeyPair) -> Self {
        let root = CertifiedIssuer::self_signed(office_params(), KeyPair::generate().unwrap()).unwrap();
        let office =
            CertifiedIssuer::signed_by(office_params(), KeyPair::generate().unwrap(), &root).unwrap();
        let leaf = leaf_params(NAME).signed_by(&key, &office).unwrap();
        Self { root, office, key, leaf }
    }

    /// Replaces the signer's certificate.
    pub fn certified(mut self, params: &CertificateParams) -> Self {
        self.leaf = params.signed_by(&self.key, &self.office).unwrap();
        self
    }

    pub fn anchors(&self) -> Anchors {
        Anchors::of(self.root.der(), NAME).unwrap()
    }

    pub fn header(&self, alg: &str) -> Value {
        let x5c = [&self.leaf, self.office.as_ref()].map(|one| BASE64_STANDARD.encode(one.der()));
        json!({"alg": alg, "typ": "JWT", "x5c": x5c})
    }

    pub fn signed(&self, payload: &Value) -> String {
        self.signed_under(&self.header("ES256"), payload.to_string().as_bytes())
    }

    /// Signs a payload under this header, by its algorithm if the key can.
    pub fn signed_under(&self, header: &Value, payload: &[u8]) -> String {
        let text = unsigned(header, payload);
        let key = self.key.serialize_der();
        let random = SystemRandom::new();
        let scheme: Option<&'static dyn RsaEncoding> = match header["alg"].as_str() {
            Some("RS256") => Some(&RSA_PKCS1_SHA256),
            Some("PS256") => Some(&RSA_PSS_SHA256),
            _ => None,
        };
        let signature = if let Some(scheme) = scheme {
            let key = RsaKeyPair::from_pkcs8(&key).unwrap();
            let mut signature = vec![0; key.public_modulus_len()];
            key.sign(scheme, &random, text.as_bytes(), &mut signature).unwrap();
            signature
        } else {
            let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key).unwrap();
            key.sign(&random, text.as_bytes()).unwrap().as_ref().to_vec()
        };
        format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    pub fn verify(&self, jwt: &str) -> Result<Snapshot, MetadataRefusal> {
        verify(jwt, &self.anchors(), now())
    }

    /// The snapshot of a list of entries.
    pub fn read(&self, entries: &Value) -> Snapshot {
        self.verify(&self.signed(&json!({"no": 7, "nextUpdate": "2026-07-01", "entries": entries}))).unwrap()
    }
}

pub fn unsigned(header: &Value, payload: &[u8]) -> String {
    let part = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    format!("{}.{}", part(header.to_string().as_bytes()), part(payload))
}

fn office_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // a name of its own for each, because chains are matched by name
    let name = format!("office {:?}", std::time::Instant::now());
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params
}

pub fn leaf_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2027, 1, 1);
    params
}
