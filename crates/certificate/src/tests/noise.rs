//! Damaged and arbitrary uploads are read or refused, and never panic.

use chancery_record::Secret;
use proptest::{prelude::*, sample::Index};

use super::{
    der, file,
    forged::{safes, safes_of_a_file},
};
use crate::{Format, PrivateKey, PublicKey, facts_of, matches_subject, names_of, read};

const FILES: [(&str, Format); 8] = [
    ("modern-p256.p12", Format::Pkcs12),
    ("unencrypted.p12", Format::Pkcs12),
    ("legacy-rc2-3des.p12", Format::Pkcs12),
    ("absent-password.p12", Format::Pkcs12),
    ("p256.certificate.pem", Format::Pem),
    ("p256.encrypted.pem", Format::Pem),
    ("ed25519.key.pem", Format::Pem),
    ("rsa.pkcs1.pem", Format::Pem),
];

/// Bytes that change, and the place from which others follow.
#[derive(Debug)]
struct Damage {
    changes: Vec<(Index, u8)>,
    cut: Option<Index>,
    extra: Vec<u8>,
}

/// Some bytes changed, and possibly the end replaced by other bytes.
fn damage() -> impl Strategy<Value = Damage> {
    let changes = proptest::collection::vec(any::<(Index, u8)>(), 0..4);
    let damage = (changes, proptest::option::weighted(0.2, any::<Index>()), any::<Vec<u8>>());
    damage.prop_map(|(changes, cut, extra)| Damage { changes, cut, extra })
}

fn damaged(whole: &[u8], damage: &Damage) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for (at, value) in &damage.changes {
        let at = at.index(bytes.len());
        bytes[at] = *value;
    }
    if let Some(cut) = damage.cut {
        bytes.truncate(cut.index(bytes.len()));
        bytes.extend(&damage.extra);
    }
    bytes
}

fn try_all(bytes: &[u8], format: Format) {
    let password = Secret::new("secret");
    let _ = read(format, bytes, None, Some(&password));
    let _ = read(format, bytes, Some(bytes), None);
    let _ = facts_of(bytes);
    let _ = names_of(bytes);
    let _ = matches_subject("CN=a", bytes);
    let _ = PrivateKey::read(bytes, Some(&password));
    let _ = PublicKey::from_spki(bytes);
}

proptest! {
    // fewer cases than others: for each file a key is derived from the password many times
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]
    #[test]
    fn damaged_files_are_answered(which in any::<Index>(), damage in damage()) {
        let (name, format) = FILES[which.index(FILES.len())];
        try_all(&damaged(&file(name), &damage), format);
    }
}

proptest! {
    #[test]
    fn damaged_certificates_and_keys_are_answered(which in any::<Index>(), damage in damage()) {
        let names = ["rsa", "p256", "p521", "ed25519"];
        let name = names[which.index(names.len())];
        try_all(&damaged(&der(&format!("{name}.certificate.pem")), &damage), Format::Der);
        let key = crate::pem::blocks(&file(&format!("{name}.key.pem"))).unwrap().remove(0).content;
        try_all(&damaged(&key, &damage), Format::Der);
    }

    /// Damaged bags under a valid MAC, as nothing is read without one.
    #[test]
    fn damaged_bags_are_answered(damage in damage()) {
        let file = safes(&damaged(&safes_of_a_file(), &damage), 1);
        let _ = read(Format::Pkcs12, &file, None, Some(&Secret::new("secret")));
    }

    #[test]
    fn any_bytes_are_answered(bytes in any::<Vec<u8>>()) {
        for format in [Format::Pkcs12, Format::Pem, Format::Der] {
            try_all(&bytes, format);
        }
    }
}
