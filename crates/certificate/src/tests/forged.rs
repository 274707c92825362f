//! PKCS#12 files as no tool would write them, with a valid MAC.

use std::num::NonZeroU32;

use aws_lc_rs::{
    digest::SHA256,
    hmac::{self, HMAC_SHA256},
};
use chancery_record::Secret;

use super::{der as certificate, file};
use crate::{
    CertificateBundle, Format, Part, UploadRefusal,
    der::{DerReader, EXPLICIT_0, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE},
    derivation::{Iterations, Password, Purpose, pkcs12},
    read,
};

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x84][..], &length, content].concat()
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(0x30, &parts.concat())
}

fn octets(content: &[u8]) -> Vec<u8> {
    element(4, content)
}

fn explicit(content: &[u8]) -> Vec<u8> {
    element(0xa0, content)
}

fn number(number: u32) -> Vec<u8> {
    element(2, &[&[0][..], &number.to_be_bytes()].concat())
}

const DATA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";

/// A bag with an object identifier that ends in this number.
fn bag(kind: u8, value: &[u8]) -> Vec<u8> {
    let name = element(6, &[b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01", &[kind][..]].concat());
    sequence(&[&name, &explicit(value)])
}

fn certificate_bag(der: &[u8]) -> Vec<u8> {
    let kind = element(6, b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01");
    bag(3, &sequence(&[&kind, &explicit(&octets(der))]))
}

/// A key bag encrypted with 3DES that has no key: finding that out costs the iterations.
fn shrouded_bag(iterations: u32) -> Vec<u8> {
    let scheme = element(6, b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x03");
    let parameters = sequence(&[&octets(b"saltsalt"), &number(iterations)]);
    bag(2, &sequence(&[&sequence(&[&scheme, &parameters]), &octets(&[0; 16])]))
}

/// A file of one unencrypted safe, with a MAC by the password "secret".
fn p12(bags: &[Vec<u8>], mac_iterations: u32) -> Vec<u8> {
    let bags = sequence(&bags.iter().map(Vec::as_slice).collect::<Vec<_>>());
    safes(&sequence(&[&sequence(&[DATA, &explicit(&octets(&bags))])]), mac_iterations)
}

/// A file of these safes, with a valid MAC.
pub fn safes(safes: &[u8], mac_iterations: u32) -> Vec<u8> {
    let password = &Password::candidates(Some(&Secret::new("secret"))).unwrap()[0];
    let counted = NonZeroU32::new(mac_iterations.clamp(1, 1000)).unwrap();
    let key = pkcs12(&SHA256, Purpose::Mac, password, b"salt", counted, 32, &mut Iterations::full()).unwrap();
    let mac = hmac::sign(&hmac::Key::new(HMAC_SHA256, &key), safes);
    let algorithm = sequence(&[b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01"]);
    let info = sequence(&[&algorithm, &octets(mac.as_ref())]);
    sequence(&[
        &number(3),
        &sequence(&[DATA, &explicit(&octets(safes))]),
        &sequence(&[&info, &octets(b"salt"), &number(mac_iterations)]),
    ])
}

/// The safes of a file by another tool, encrypted with "secret".
pub fn safes_of_a_file() -> Vec<u8> {
    let file = file("legacy-rc2-3des.p12");
    let mut reader = DerReader::only(&file, SEQUENCE).unwrap();
    reader.number().unwrap();
    let mut content = reader.enter(SEQUENCE).unwrap();
    content.take(OBJECT_IDENTIFIER).unwrap();
    content.enter(EXPLICIT_0).unwrap().take(OCTET_STRING).unwrap().to_vec()
}

fn opened(file: &[u8]) -> Result<CertificateBundle, UploadRefusal> {
    read(Format::Pkcs12, file, None, Some(&Secret::new("secret")))
}

fn refused(file: &[u8]) -> Option<UploadRefusal> {
    opened(file).err()
}

fn key() -> Vec<u8> {
    crate::pem::blocks(&file("p256.key.pem")).unwrap().remove(0).content.to_vec()
}

#[test]
fn a_valid_forged_file_is_read() {
    let der = certificate("p256.certificate.pem");
    let read = opened(&p12(&[certificate_bag(&der), bag(1, &key()), bag(5, b"passed over")], 1)).unwrap();
    assert_eq!(read.certificate, der);
    assert!(read.private_key.is_some());
}

#[test]
fn iterations_are_counted_and_zero_is_refused() {
    assert_eq!(refused(&p12(&[shrouded_bag(1000)], 1000)), Some(UploadRefusal::WrongPassword));
    for costly in
        [p12(&[shrouded_bag(2_000_000)], 1000), p12(&[shrouded_bag(u32::MAX)], 1000), p12(&[], u32::MAX)]
    {
        assert_eq!(refused(&costly), Some(UploadRefusal::TooMuchWork));
    }
    let broken = Some(UploadRefusal::Broken(Part::File));
    assert_eq!(refused(&p12(&[], 0)), broken);
    assert_eq!(refused(&p12(&[shrouded_bag(0)], 1000)), Some(UploadRefusal::Broken(Part::PrivateKey)));
}

#[test]
fn the_contents_are_bounded_and_checked() {
    let der = certificate("p256.certificate.pem");
    let key = bag(1, &key());
    let many = vec![certificate_bag(&der); 17];
    assert_eq!(refused(&p12(&many, 1)), Some(UploadRefusal::TooManyCertificates));
    assert_eq!(refused(&p12(&[key.clone(), key.clone()], 1)), Some(UploadRefusal::SeveralPrivateKeys));
    assert_eq!(refused(&p12(&[key], 1)), Some(UploadRefusal::NoCertificate));
    assert_eq!(refused(&p12(&[], 1)), Some(UploadRefusal::NoCertificate));
    assert_eq!(refused(&p12(&[certificate_bag(b"no")], 1)), Some(UploadRefusal::Broken(Part::Certificate)));
    assert_eq!(refused(&p12(&[bag(1, b"no")], 1)), Some(UploadRefusal::Broken(Part::PrivateKey)));
    assert_eq!(refused(&p12(&[bag(3, b"no")], 1)), Some(UploadRefusal::Broken(Part::File)));
    assert_eq!(refused(&p12(&[b"no".to_vec()], 1)), Some(UploadRefusal::Broken(Part::File)));
    assert_eq!(refused(&safes(b"no", 1)), Some(UploadRefusal::Broken(Part::File)));
    let enveloped = sequence(&[b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x03", &explicit(b"")]);
    assert_eq!(refused(&safes(&sequence(&[&enveloped]), 1)), Some(UploadRefusal::UnsupportedProtection));
}

/// Two certificates that issued each other, by their names.
#[test]
fn a_cycle_of_names_ends() {
    let params = |name: &str| {
        let mut params = rcgen::CertificateParams::new([]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params
    };
    let issued = |own: &str, issuer: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let issuer = rcgen::Issuer::new(params(issuer), rcgen::KeyPair::generate().unwrap());
        (params(own).signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
    };
    let (one, key) = issued("a", "b");
    let (other, _) = issued("b", "a");
    let read = read(Format::Pem, format!("{other}{one}{key}").as_bytes(), None, None).unwrap();
    assert_eq!((read.facts.subject.as_str(), read.chain.len()), ("CN=a", 1));
}
