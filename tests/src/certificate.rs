//! Certificates that are uploaded to the cert store.

use chancery_testkit::World;
use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};
use serde_json::{Value, json};

/// An uploaded certificate.
pub struct UploadedCertificate {
    /// Its row in the cert store.
    pub store: Value,
    /// Its key.
    pub key: KeyPair,
}

/// A body that uploads a certificate that is valid until the last second of a year.
pub fn body(kind: &'static SignatureAlgorithm, until: i32, more: &Value) -> (Value, KeyPair) {
    let key = KeyPair::generate_for(kind).unwrap();
    let mut parameters = CertificateParams::new(vec![]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(until, 12, 31) + std::time::Duration::from_secs(86_399);
    let certificate = parameters.self_signed(&key).unwrap();
    let mut body = json!({
        "name": "signing", "certificateStorageFormat": "Pem",
        "certificateInput": { "format": "Pem", "data": certificate.pem(), "privateKey": key.serialize_pem() },
    });
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    (body, key)
}

/// Uploads such a certificate.
pub async fn upload(
    world: &World,
    kind: &'static SignatureAlgorithm,
    until: i32,
    more: Value,
) -> UploadedCertificate {
    let (body, key) = body(kind, until, &more);
    UploadedCertificate { store: world.make("CertStore", body).await, key }
}
