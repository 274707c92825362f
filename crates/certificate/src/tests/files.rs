//! Files by other tools are read.

use proptest::prelude::{Strategy as _, any};

use super::{der, file, read_p12, read_pem};
use chancery_record::Secret;

use crate::{Format, Iterations, KeyKind, PublicKey, UploadRefusal, facts_of, read, read_within};

const KINDS: [(&str, KeyKind); 5] = [
    ("rsa", KeyKind::Rsa { bits: 2048 }),
    ("p256", KeyKind::P256),
    ("p384", KeyKind::P384),
    ("p521", KeyKind::P521),
    ("ed25519", KeyKind::Ed25519),
];

#[test]
fn pkcs12_has_certificate_chain_and_key_of_every_kind() {
    for (name, kind) in KINDS {
        let read = read_p12(&format!("modern-{name}.p12"), "secret").unwrap();
        assert_eq!(read.facts.key, kind);
        assert_eq!(read.facts.subject, format!("CN={name},OU=Tokens,O=Example\\, Ltd,C=DE"));
        assert_eq!(read.facts.issuer, "CN=Middle,O=Example,C=DE");
        assert_eq!(read.facts.serial_number, "A0B1C2D3E4F50617");
        assert_eq!(read.certificate, der(&format!("{name}.certificate.pem")));
        let chain: Vec<_> = read.chain.iter().map(|der| facts_of(der).unwrap().subject).collect();
        assert_eq!(chain, ["CN=Middle,O=Example,C=DE", "CN=Root,O=Example,C=DE"]);
        let key = read.private_key.unwrap();
        assert_eq!(key.kind(), kind);
        assert_eq!(Some(key.public()), PublicKey::from_spki(&read.facts.subject_public_key_info).as_ref());
    }
}

#[test]
fn every_protection_is_opened() {
    for (name, password) in [
        ("legacy-rc2-3des.p12", "secret"),
        ("legacy-rc2-128.p12", "secret"),
        ("sha512-aes128.p12", "secret"),
        ("unencrypted.p12", "secret"),
        ("unicode-password.p12", "pässwörd 🔑"),
        ("empty-password.p12", ""),
        ("absent-password.p12", ""),
    ] {
        let read = read_p12(name, password).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        assert!(read.private_key.is_some(), "{name}");
        let chain = if name == "absent-password.p12" { 0 } else { 2 };
        assert_eq!(read.chain.len(), chain, "{name}");
    }
    for name in ["empty-password.p12", "absent-password.p12"] {
        assert!(read(Format::Pkcs12, &file(name), None, None).is_ok(), "{name}");
    }
    let bare = read_p12("certificate-only.p12", "secret").unwrap();
    assert!(bare.private_key.is_none());
    assert_eq!(bare.certificate, der("p256.certificate.pem"));
}

#[test]
fn pem_has_certificates_and_keys_in_every_form_and_order() {
    for (key, certificate) in [
        ("rsa.key.pem", "rsa.certificate.pem"),
        ("rsa.pkcs1.pem", "rsa.certificate.pem"),
        ("p256.key.pem", "p256.certificate.pem"),
        ("p256.sec1.pem", "p256.certificate.pem"),
        ("p384.sec1.pem", "p384.certificate.pem"),
        ("p521.sec1.pem", "p521.certificate.pem"),
        ("ed25519.key.pem", "ed25519.certificate.pem"),
        ("p256.encrypted.pem", "p256.certificate.pem"),
        ("p256.encrypted-3des.pem", "p256.certificate.pem"),
    ] {
        for names in [[key, certificate, "root-and-middle.pem"], ["root-and-middle.pem", certificate, key]] {
            let read = read_pem(&names, Some("secret")).unwrap_or_else(|refusal| panic!("{key}: {refusal}"));
            assert_eq!(read.certificate, der(certificate));
            assert_eq!(read.chain.len(), 2);
            assert!(read.private_key.is_some());
        }
    }
}

#[test]
fn without_a_key_the_certificate_that_issued_no_other_is_chosen() {
    for names in
        [["p384.certificate.pem", "root-and-middle.pem"], ["root-and-middle.pem", "p384.certificate.pem"]]
    {
        let read = read_pem(&names, None).unwrap();
        assert_eq!((read.certificate, read.chain.len()), (der("p384.certificate.pem"), 2));
    }
    let middle = read_pem(&["root-and-middle.pem"], None).unwrap();
    assert_eq!((middle.facts.subject.as_str(), middle.chain.len()), ("CN=Middle,O=Example,C=DE", 1));
    let two = read_pem(&["p384.certificate.pem", "p256.certificate.pem", "root-and-middle.pem"], None);
    assert_eq!(two.err(), Some(UploadRefusal::AmbiguousCertificate));
}

/// Three that issued each other, the last one first; and one that has nothing to do with them.
fn issued() -> ([String; 3], String) {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
    let params = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let key = || KeyPair::generate().unwrap();
    let root = Issuer::new(params("Root"), key());
    let root_certificate = params("Root").self_signed(root.key()).unwrap();
    let middle = Issuer::new(params("Middle"), key());
    let middle_certificate = params("Middle").signed_by(middle.key(), &root).unwrap();
    let leaf = params("Leaf").signed_by(&key(), &middle).unwrap();
    let other = params("Other").self_signed(&key()).unwrap();
    ([leaf.pem(), middle_certificate.pem(), root_certificate.pem()], other.pem())
}

proptest::proptest! {
    /// The certificate is found in any order, with any surrounding text and line ends.
    #[test]
    fn a_bundle_is_read_in_any_order_and_with_any_text(
        order in proptest::sample::subsequence(vec![0_usize, 1, 2], 1..=3).prop_shuffle(),
        words in proptest::collection::vec("([A-Za-z =,.:ö-]{0,20}\n){0,3}", 4),
        (has_mark, ends, adds_other, repeats) in (any::<bool>(), proptest::sample::select(vec!["\n", "\r\n", "\r"]), any::<bool>(), any::<bool>()),
    ) {
        static ISSUED: std::sync::LazyLock<([String; 3], String)> = std::sync::LazyLock::new(issued);
        let (chain, other) = &*ISSUED;
        let mut blocks: Vec<&str> = order.iter().map(|at| chain[*at].as_str()).collect();
        if repeats { blocks.push(blocks[0]); }
        if adds_other { blocks.insert(0, other); }
        let parts: Vec<String> = blocks.iter().zip(words.iter().cycle()).map(|(block, words)| format!("{words}{block}")).collect();
        let mut text = parts.concat();
        text = text.replace("\r\n", "\n").replace('\n', ends);
        if has_mark { text.insert(0, '\u{feff}'); }
        let read = read(Format::Pem, text.as_bytes(), None, None);
        // without the one between them, the two others have nothing to do with each other
        let is_broken = order.contains(&0) && order.contains(&2) && !order.contains(&1);
        if adds_other || is_broken {
            proptest::prop_assert_eq!(read.err(), Some(UploadRefusal::AmbiguousCertificate));
        } else {
            let read = read.unwrap();
            let name = ["Leaf", "Middle", "Root"][*order.iter().min().unwrap()];
            proptest::prop_assert!(read.facts.subject.contains(name), "{} is not {name}", read.facts.subject);
            proptest::prop_assert_eq!(read.chain.len(), order.len() - 1);
        }
    }
}

#[test]
fn a_key_may_be_in_a_separate_file() {
    let certificate = der("p256.certificate.pem");
    let key_of = |read: crate::CertificateBundle| read.private_key.unwrap().expose_pkcs8().clone();
    let with_separate_key = |key: &[u8]| read(Format::Der, &certificate, Some(key), None).map(key_of);
    let pkcs8 = with_separate_key(&file("p256.key.pem")).unwrap();
    for key in ["p256.key.pem", "p256.sec1.pem"] {
        assert!(with_separate_key(&file(key)).unwrap().matches(pkcs8.expose()), "one form for all");
        let text = file(key);
        let block = crate::pem::blocks(&text).unwrap().remove(0);
        assert!(with_separate_key(&block.content).unwrap().matches(pkcs8.expose()));
    }
    let encrypted = file("p256.encrypted.pem");
    let password = chancery_record::Secret::new("secret");
    let block = crate::pem::blocks(&encrypted).unwrap().remove(0);
    for encrypted in [&encrypted[..], &block.content] {
        let read = read(Format::Der, &certificate, Some(encrypted), Some(&password)).unwrap();
        assert!(key_of(read).matches(pkcs8.expose()));
    }
    let pem = read(Format::Pem, &file("p256.certificate.pem"), Some(&file("p256.key.pem")), None);
    assert!(key_of(pem.unwrap()).matches(pkcs8.expose()));
    assert!(read(Format::Der, &certificate, None, None).unwrap().private_key.is_none());
}

/// Against `openssl x509 -fingerprint` for the file.
#[test]
fn thumbprints_are_of_the_whole_certificate() {
    let facts = facts_of(&der("p256.certificate.pem")).unwrap();
    assert_eq!(facts.thumbprint, "6CFEDC999347BD7436E451D3CE1F6D29BD20B382");
    assert_eq!(facts.thumbprint_sha256, "z8C_UQUAFZm0IkmDbDmWSGoCzQfisvoTjx6gsow8XWo");
    assert_eq!(facts.valid_from.0, 1_795_284_451_000);
    assert_eq!(facts.valid_to.0, 4_948_884_451_000);
}

/// Years that RFC 3339 cannot write, and the last that it can write.
#[test]
fn dates_are_clamped_to_the_range_of_rfc_3339() {
    let certificate = der("p256.certificate.pem");
    let at = certificate.windows(2).rposition(|window| window == [0x18, 15]).unwrap() + 2;
    for (year, expected) in [
        ("99991231235959Z", 253_402_300_799_000),
        ("00000101000000Z", -62_135_596_800_000),
        ("00010101000000Z", -62_135_596_800_000),
    ] {
        let mut changed = certificate.clone();
        changed[at..at + 15].copy_from_slice(year.as_bytes());
        assert_eq!(facts_of(&changed).unwrap().valid_to.0, expected, "{year}");
    }
}

/// A certificate of an unsupported key is read if the private key is not uploaded.
#[test]
fn a_bare_certificate_may_have_any_key() {
    assert_eq!(facts_of(&der("k256.certificate.pem")).unwrap().key, KeyKind::Other);
    assert_eq!(facts_of(&der("weak.certificate.pem")).unwrap().key, KeyKind::Rsa { bits: 1024 });
}

/// A8: the files of one call share a budget of work.
#[test]
fn files_share_the_budget_of_iterations() {
    let (file, password) = (file("modern-p256.p12"), Secret::new("secret"));
    let mut left = Iterations::full();
    let mut opened = 0;
    let refused = loop {
        match read_within(Format::Pkcs12, &file, None, Some(&password), &mut left) {
            Ok(_) => opened += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refused, UploadRefusal::TooMuchWork);
    assert!((10..2_000).contains(&opened), "{opened}");
}
