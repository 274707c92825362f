//! The names of client certificates.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use super::der;
use crate::{matches_subject, names_of};

/// A certificate with this subject and no other name.
fn certificate(subject: &[(DnType, &str)]) -> Vec<u8> {
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in subject {
        params.distinguished_name.push(kind.clone(), *value);
    }
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

#[test]
fn alternative_names_are_read_and_found() {
    let names = names_of(&der("p256.certificate.pem")).unwrap();
    assert_eq!(names.subject, "CN=p256,OU=Tokens,O=Example\\, Ltd,C=DE");
    assert_eq!(names.dns, ["Id.Example.org"]);
    assert!(names.has_dns("id.example.ORG") && !names.has_dns("example.org") && !names.has_dns("*"));
    assert!(names.has_uri("https://example.org/app") && !names.has_uri("https://example.org/App"));
    assert!(names.has_ip("192.0.2.7") && names.has_ip("2001:0db8:0::7"));
    assert!(!names.has_ip("192.0.2.8") && !names.has_ip("") && !names.has_ip("Id.Example.org"));
    assert!(names.has_email("app@example.org") && !names.has_email("App@example.org"));
}

#[test]
fn a_subject_is_compared_by_its_meaning() {
    let der = der("p256.certificate.pem");
    for (expected, matches) in [
        ("CN=p256,OU=Tokens,O=Example\\, Ltd,C=DE", true),
        ("cn = p256 , ou=Tokens, 2.5.4.10=Example\\2c Ltd , c=DE", true),
        ("CN=p256,OU=Tokens,O=Example,C=DE", false),
        ("C=DE,O=Example\\, Ltd,OU=Tokens,CN=p256", false),
        ("CN=P256,OU=Tokens,O=Example\\, Ltd,C=DE", false),
        ("CN=p256", false),
        ("", false),
        ("p256", false),
    ] {
        assert_eq!(matches_subject(expected, &der), Ok(matches), "{expected}");
    }
}

#[test]
fn unusual_subjects_round_trip_through_text() {
    for subject in [
        &[(DnType::CommonName, "Jürgen \"J\" <x>; y+z\\")][..],
        &[(DnType::CommonName, " spaces "), (DnType::OrganizationName, "#hash")],
        &[(DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 99999, 1]), "own")],
        &[(DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]), "a@example.org")],
        &[(DnType::CommonName, "a\0b\n")],
    ] {
        let der = certificate(subject);
        let names = names_of(&der).unwrap();
        assert_eq!(matches_subject(&names.subject, &der), Ok(true), "{}", names.subject);
        assert!(names.dns.is_empty());
    }
}

#[test]
fn an_empty_subject_matches_no_name() {
    let der = certificate(&[]);
    assert_eq!(names_of(&der).unwrap().subject, "");
    assert_eq!(matches_subject("", &der), Ok(false));
}
