//! The metadata of authenticator models, and its effect on ceremonies.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use chancery_record::{Timestamp, parse_day};
use chancery_trust::Snapshot;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use serde_json::json;
use uuid::Uuid;

use super::{Authenticator, policy, user};
use crate::{
    Attestation, AuthenticatorModels, CeremonyRefusal, Credential, Policy, RefusalKind,
    finish_authentication, finish_registration, start_authentication, start_registration,
};

/// The model of the tests' authenticator.
const MODEL: [u8; 16] = [9; 16];

fn at(text: &str) -> Timestamp {
    parse_day(text).unwrap()
}

/// A manufacturer: a root, and an intermediate authority that certifies authenticators.
struct Manufacturer {
    root: CertifiedIssuer<'static, KeyPair>,
    office: CertifiedIssuer<'static, KeyPair>,
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Manufacturer {
    fn new(name: &str) -> Self {
        let root = CertifiedIssuer::self_signed(authority(name), KeyPair::generate().unwrap()).unwrap();
        let office = authority(&format!("office of {name}"));
        let office = CertifiedIssuer::signed_by(office, KeyPair::generate().unwrap(), &root).unwrap();
        Self { root, office }
    }

    /// An authenticator that attests with a certificate valid in 2026.
    fn authenticator(&self) -> Authenticator {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::ExplicitNoCa;
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2027, 1, 1);
        for (kind, text) in [
            (DnType::CountryName, "DE"),
            (DnType::OrganizationName, "A manufacturer"),
            (DnType::OrganizationalUnitName, "Authenticator Attestation"),
            (DnType::CommonName, "A key"),
        ] {
            params.distinguished_name.push(kind, text);
        }
        let own = params.signed_by(&key, &self.office).unwrap();
        let chain = vec![own.der().to_vec(), self.office.der().to_vec()];
        let signer = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &key.serialize_der()).unwrap();
        Authenticator { attester: Some((signer, chain)), ..Authenticator::new() }
    }
}

/// A snapshot with the model of the tests: its status, and its roots.
fn snapshot(status: &str, since: Option<i64>, roots: &[&[u8]]) -> Snapshot {
    let model = json!({
        "name": "A key", "attestation_types": ["basic_full"],
        "statuses": [{ "status": status, "since": since }],
        "roots": (0..roots.len()).collect::<Vec<_>>(),
    });
    let roots: Vec<_> = roots.iter().map(|root| BASE64_STANDARD_NO_PAD.encode(root)).collect();
    let stored = json!({
        "no": 1, "version": "1-a", "next_update": 0, "entries": 1, "skipped": 0, "skipped_roots": 0,
        "reasons": [], "makes": { Uuid::from_bytes(MODEL).to_string(): model }, "roots": roots,
    });
    Snapshot::from_bytes(stored.to_string().as_bytes()).unwrap()
}

fn register(
    policy: &Policy,
    models: AuthenticatorModels<'_>,
    device: &Authenticator,
) -> Result<Credential, CeremonyRefusal> {
    let (options, state) = start_registration(policy, &user(), &[])?;
    finish_registration(policy, models, &state, &device.create(&options))
}

fn listed(attestation: Attestation) -> Policy {
    Policy { attestation, allowed_aaguids: vec!["09".repeat(16)], ..policy() }
}

#[test]
fn a_model_that_is_compromised_is_refused_from_then_on() {
    let (before, after) = (at("2026-05-31"), at("2026-06-01"));
    let snapshot = snapshot("USER_KEY_REMOTE_COMPROMISE", Some(after.0), &[]);
    let mut device = Authenticator::new();
    let then = AuthenticatorModels::new(Some(&snapshot), before);
    let credential = register(&policy(), then, &device).unwrap();
    assert_eq!((then.name(MODEL), then.is_undesired(MODEL)), (Some("A key"), false));
    let now = AuthenticatorModels::new(Some(&snapshot), after);
    assert!(now.is_undesired(MODEL) && !now.is_undesired([1; 16]));
    assert_eq!(register(&policy(), now, &device).unwrap_err().kind, RefusalKind::Authenticator);
    // a credential registered before is refused, too
    device.sign_count = 2;
    for (models, refused) in [(then, None), (now, Some(RefusalKind::Authenticator))] {
        let (options, state) =
            start_authentication(&policy(), Some(std::slice::from_ref(&credential))).unwrap();
        let used = finish_authentication(&policy(), models, &state, &device.get(&options), &credential);
        assert_eq!(used.err().map(|refusal| refusal.kind), refused);
    }
}

#[test]
fn a_list_requires_certificates_of_the_model_with_every_attestation() {
    let (own, other) = (Manufacturer::new("one"), Manufacturer::new("another"));
    let device = own.authenticator();
    let known = snapshot("FIDO_CERTIFIED", None, &[own.root.der()]);
    let wrong = snapshot("FIDO_CERTIFIED", None, &[other.root.der()]);
    let none = snapshot("FIDO_CERTIFIED", None, &[]);
    let now = at("2026-06-01");
    for attestation in
        [Attestation::None, Attestation::Indirect, Attestation::Direct, Attestation::Enterprise]
    {
        let policy = listed(attestation);
        let credential = register(&policy, AuthenticatorModels::new(Some(&known), now), &device).unwrap();
        assert_eq!(credential.attestation_chain.len(), 2);
        for models in [Some(&wrong), Some(&none), None] {
            let refusal = register(&policy, AuthenticatorModels::new(models, now), &device).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::Attestation, "{}", refusal.detail);
        }
        // its certificate is valid in 2026 only
        for moment in ["2025-06-01", "2027-06-01"] {
            let refusal =
                register(&policy, AuthenticatorModels::new(Some(&known), at(moment)), &device).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::Attestation);
        }
        let silent = Authenticator::new();
        let refusal = register(&policy, AuthenticatorModels::new(Some(&known), now), &silent).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Attestation);
    }
}

#[test]
fn a_model_may_name_another_certificate_than_the_last() {
    let own = Manufacturer::new("one");
    let device = own.authenticator();
    let chain = device.attester.as_ref().unwrap().1.clone();
    let now = at("2026-06-01");
    for root in &chain {
        let known = snapshot("FIDO_CERTIFIED", None, &[root]);
        register(&listed(Attestation::Direct), AuthenticatorModels::new(Some(&known), now), &device).unwrap();
    }
    // the root may be sent, too
    let mut device = own.authenticator();
    device.attester.as_mut().unwrap().1.push(own.root.der().to_vec());
    let known = snapshot("FIDO_CERTIFIED", None, &[own.root.der()]);
    register(&listed(Attestation::Direct), AuthenticatorModels::new(Some(&known), now), &device).unwrap();
}

#[test]
fn without_a_list_a_known_model_cannot_be_claimed_falsely() {
    let (own, other) = (Manufacturer::new("one"), Manufacturer::new("another"));
    let known = snapshot("FIDO_CERTIFIED", None, &[own.root.der()]);
    let models = AuthenticatorModels::new(Some(&known), at("2026-06-01"));
    let direct = Policy { attestation: Attestation::Direct, ..policy() };
    register(&direct, models, &own.authenticator()).unwrap();
    assert_eq!(register(&direct, models, &other.authenticator()).unwrap_err().kind, RefusalKind::Attestation);
    register(&direct, models, &Authenticator::new()).unwrap();
    // an unknown model
    let unknown = Authenticator { aaguid: [1; 16], ..other.authenticator() };
    register(&direct, models, &unknown).unwrap();
}
