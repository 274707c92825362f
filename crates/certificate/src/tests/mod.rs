//! Tests with the files in `testdata` and with generated certificates.

mod files;
mod forged;
mod keys;
mod names;
mod noise;
mod refusals;

use chancery_record::Secret;

use crate::{CertificateBundle, Format, UploadRefusal, read};

/// A file of `testdata`.
fn file(name: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/");
    std::fs::read(format!("{path}{name}")).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Reads a PKCS#12 file of `testdata`.
fn read_p12(name: &str, password: &str) -> Result<CertificateBundle, UploadRefusal> {
    read(Format::Pkcs12, &file(name), None, Some(&Secret::new(password)))
}

/// Reads the PEM files of `testdata`, joined.
fn read_pem(names: &[&str], password: Option<&str>) -> Result<CertificateBundle, UploadRefusal> {
    let text: Vec<u8> = names.iter().flat_map(|name| file(name)).collect();
    read(Format::Pem, &text, None, password.map(Secret::new).as_ref())
}

/// The certificate of a PEM file of `testdata`, in DER.
fn der(name: &str) -> Vec<u8> {
    read_pem(&[name], None).unwrap().certificate
}
