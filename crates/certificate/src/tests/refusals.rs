//! Every refusal has its cause.

use chancery_record::Secret;

use super::{der, file, read_p12, read_pem};
use crate::{
    CertificateBundle, Format, MAX_BYTES, Part, PrivateKey, UploadRefusal, facts_of, matches_subject,
    names_of, read,
};

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "reads like an assertion")]
fn assert_refused(read: Result<CertificateBundle, UploadRefusal>, expected: UploadRefusal) {
    assert_eq!(read.as_ref().err(), Some(&expected));
}

fn block(name: &str) -> Vec<u8> {
    crate::pem::blocks(&file(name)).unwrap().remove(0).content.to_vec()
}

#[test]
fn a_file_of_pkcs12_is_opened_only_by_its_password() {
    for name in ["modern-p256.p12", "legacy-rc2-3des.p12", "unencrypted.p12"] {
        assert_refused(read_p12(name, "Secret"), UploadRefusal::WrongPassword);
        assert_refused(read_p12(name, ""), UploadRefusal::WrongPassword);
        assert_refused(read(Format::Pkcs12, &file(name), None, None), UploadRefusal::PasswordMissing);
    }
    for name in ["empty-password.p12", "absent-password.p12"] {
        assert_refused(read_p12(name, "secret"), UploadRefusal::WrongPassword);
    }
    let binary = Secret::new([0xff]);
    let refused = read(Format::Pkcs12, &file("modern-p256.p12"), None, Some(&binary));
    assert_refused(refused, UploadRefusal::UnusablePassword);
}

#[test]
fn a_broken_file_of_pkcs12_is_refused() {
    let whole = file("modern-p256.p12");
    let broken = UploadRefusal::Broken(Part::File);
    for end in [0, 1, 4, 100, whole.len() - 1] {
        assert_refused(read(Format::Pkcs12, &whole[..end], None, None), broken);
    }
    let longer: Vec<_> = whole.iter().copied().chain([0]).collect();
    assert_refused(read(Format::Pkcs12, &longer, None, None), broken);
    assert_refused(read(Format::Pkcs12, &file("p256.key.pem"), None, None), broken);
    let mut changed = whole;
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    let refused = read(Format::Pkcs12, &changed, None, Some(&Secret::new("secret")));
    assert_refused(refused, UploadRefusal::WrongPassword);
}

#[test]
fn absurd_iterations_are_refused_at_once() {
    let start = std::time::Instant::now();
    assert_refused(read_p12("many-iterations.p12", "secret"), UploadRefusal::TooMuchWork);
    assert!(start.elapsed().as_secs() < 1);
}

#[test]
fn a_file_without_mac_is_refused() {
    assert_refused(read_p12("no-mac.p12", "secret"), UploadRefusal::NoMac);
}

#[test]
fn an_ambiguous_upload_is_refused() {
    assert_refused(read_p12("two-certificates.p12", "secret"), UploadRefusal::AmbiguousCertificate);
    let refused = read_pem(&["p256.certificate.pem", "p256.key.pem", "p384.key.pem"], None);
    assert_refused(refused, UploadRefusal::SeveralPrivateKeys);
    let (certificate, key) = (file("p256.certificate.pem"), file("p256.key.pem"));
    let both = [certificate.clone(), key.clone()].concat();
    assert_refused(read(Format::Pem, &both, Some(&key), None), UploadRefusal::SeveralPrivateKeys);
    let refused = read(Format::Pkcs12, &file("modern-p256.p12"), Some(&key), Some(&Secret::new("secret")));
    assert_refused(refused, UploadRefusal::SeveralPrivateKeys);
    let keys = [key.clone(), key].concat();
    assert_refused(read(Format::Pem, &certificate, Some(&keys), None), UploadRefusal::SeveralPrivateKeys);
    assert_refused(read(Format::Pem, &certificate, Some(&certificate), None), UploadRefusal::NoPrivateKey);
}

#[test]
fn a_key_must_fit_and_be_of_use() {
    for (certificate, key, expected) in [
        ("p256.certificate.pem", "p384.key.pem", UploadRefusal::KeyDoesNotFit),
        ("p256.certificate.pem", "ed25519.key.pem", UploadRefusal::KeyDoesNotFit),
        ("root-and-middle.pem", "p256.key.pem", UploadRefusal::KeyDoesNotFit),
        ("weak.certificate.pem", "weak.key.pem", UploadRefusal::WeakKey(1024)),
        ("k256.certificate.pem", "k256.key.pem", UploadRefusal::UnsupportedKey),
    ] {
        assert_refused(read_pem(&[certificate, key], None), expected);
    }
    assert_refused(read_p12("modern-weak.p12", "secret"), UploadRefusal::WeakKey(1024));
    assert_refused(read_p12("modern-k256.p12", "secret"), UploadRefusal::UnsupportedKey);
}

#[test]
fn a_broken_key_is_refused() {
    let certificate = der("p256.certificate.pem");
    let broken = UploadRefusal::Broken(Part::PrivateKey);
    for key in [&b""[..], b"key", b"\x30\x00", b"\x30\x03\x02\x01\x00"] {
        assert_refused(read(Format::Der, &certificate, Some(key), None), broken);
    }
    for name in ["p256", "rsa", "ed25519"] {
        let key = block(&format!("{name}.key.pem"));
        for end in [1, 10, key.len() - 1] {
            assert_eq!(PrivateKey::read(&key[..end], None).err(), Some(broken));
        }
    }
    let mut other_modulus = block("rsa.key.pem");
    other_modulus[100] ^= 1;
    assert_eq!(PrivateKey::read(&other_modulus, None).err(), Some(broken));
}

#[test]
fn an_encrypted_key_is_opened_only_by_its_password() {
    for name in ["p256.encrypted.pem", "p256.encrypted-3des.pem"] {
        let names = ["p256.certificate.pem", name];
        assert_refused(read_pem(&names, None), UploadRefusal::PasswordMissing);
        assert_refused(read_pem(&names, Some("Secret")), UploadRefusal::WrongPassword);
        assert_refused(read_pem(&names, Some("")), UploadRefusal::WrongPassword);
    }
    for name in ["p256.encrypted-scrypt.pem", "rsa.old-encryption.pem"] {
        let refused = read_pem(&["p256.certificate.pem", name], Some("secret"));
        assert_refused(refused, UploadRefusal::UnsupportedProtection);
    }
}

#[test]
fn a_broken_certificate_is_refused() {
    let broken = UploadRefusal::Broken(Part::Certificate);
    let certificate = der("p256.certificate.pem");
    let longer: Vec<_> = certificate.iter().copied().chain([0]).collect();
    for bytes in [&[][..], &certificate[..certificate.len() - 1], &longer, &file("p256.certificate.pem")] {
        assert_refused(read(Format::Der, bytes, None, None), broken);
        assert_eq!(facts_of(bytes).err(), Some(broken));
        assert_eq!(names_of(bytes).err(), Some(broken));
        assert_eq!(matches_subject("CN=a", bytes).err(), Some(broken));
    }
    assert_refused(read_pem(&["p256.key.pem"], None), UploadRefusal::NoCertificate);
    assert_refused(read(Format::Pem, b"", None, None), UploadRefusal::NoCertificate);
    let text = b"\n-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
    assert_refused(read(Format::Pem, text, None, None), UploadRefusal::BrokenPem(2));
}

#[test]
fn size_and_number_are_bounded() {
    let large = vec![0; MAX_BYTES + 1];
    for format in [Format::Pkcs12, Format::Pem, Format::Der] {
        assert_refused(read(format, &large, None, None), UploadRefusal::TooLarge);
    }
    let certificate = der("p256.certificate.pem");
    assert_refused(read(Format::Der, &certificate, Some(&large), None), UploadRefusal::TooLarge);
    assert_eq!(PrivateKey::read(&large, None).err(), Some(UploadRefusal::TooLarge));
    assert_eq!(facts_of(&large).err(), Some(UploadRefusal::TooLarge));
    assert_refused(read_pem(&["p256.certificate.pem"; 17], None), UploadRefusal::TooManyCertificates);
    assert_refused(read_pem(&["p256.certificate.pem"; 33], None), UploadRefusal::TooManyCertificates);
    assert!(read_pem(&["p256.certificate.pem"; 16], None).unwrap().chain.is_empty());
}

#[test]
fn a_refusal_says_what_to_do() {
    for (refusal, text) in [
        (UploadRefusal::WeakKey(1024), "the RSA key has 1024 bits: use one with at least 2,048"),
        (
            UploadRefusal::BrokenPem(7),
            "the PEM text cannot be read at line 7: copy it whole, with its BEGIN and END lines",
        ),
        (UploadRefusal::WrongPassword, "the password does not open it: check the password"),
    ] {
        assert_eq!(refusal.to_string(), text);
    }
}
