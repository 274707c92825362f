//! PKCS#12 files (RFC 7292): the MAC is verified before anything inside is read.

use std::num::NonZeroU32;

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{self, SHA1_FOR_LEGACY_USE_ONLY, SHA224, SHA256, SHA384, SHA512},
    hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA224, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512},
};
use chancery_record::Secret;
use zeroize::Zeroizing;

use crate::{
    MAX_CERTIFICATES, Part, UploadRefusal,
    contents::Contents,
    der::{DerReader, EXPLICIT_0, IMPLICIT_0, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE},
    derivation::{self, Iterations, Password, Purpose},
    encryption::{decrypt, decrypt_private_key},
};

const DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";
const ENCRYPTED_DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x06";
const KEY: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x01";
const SHROUDED_KEY: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x02";
const CERTIFICATE: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03";
const X509: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01";
const SHA1: &[u8] = b"\x2b\x0e\x03\x02\x1a";
const SHA2_256: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x01";
const SHA2_384: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x02";
const SHA2_512: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x03";
const SHA2_224: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x04";

const BROKEN: UploadRefusal = UploadRefusal::Broken(Part::File);

/// Opens a PKCS#12 file.
pub fn open(
    file: &[u8],
    password: Option<&Secret>,
    work: &mut Iterations,
) -> Result<Contents, UploadRefusal> {
    let mut reader = DerReader::only(file, SEQUENCE).ok_or(BROKEN)?;
    if reader.number().ok_or(BROKEN)? != 3 {
        return Err(BROKEN);
    }
    let mut authenticated = reader.enter(SEQUENCE).ok_or(BROKEN)?;
    // a file with a signature instead of a MAC has another type here
    if authenticated.take(OBJECT_IDENTIFIER).ok_or(BROKEN)? != DATA {
        return Err(UploadRefusal::UnsupportedProtection);
    }
    let safes = plain_content(&mut authenticated)?;
    if reader.is_done() {
        return Err(UploadRefusal::NoMac);
    }
    let mac = Mac::read(reader.enter(SEQUENCE).ok_or(BROKEN)?)?;
    let mut matching = None;
    for candidate in Password::candidates(password)? {
        if mac.is_valid(safes, &candidate, work)? {
            matching = Some(candidate);
            break;
        }
    }
    let Some(matching) = matching else {
        return Err(if password.is_none() {
            UploadRefusal::PasswordMissing
        } else {
            UploadRefusal::WrongPassword
        });
    };
    let mut contents = Contents::default();
    let mut safes = DerReader::only(safes, SEQUENCE).ok_or(BROKEN)?;
    while !safes.is_done() {
        read_safe(safes.enter(SEQUENCE).ok_or(BROKEN)?, &matching, work, &mut contents)?;
    }
    Ok(contents)
}

/// Takes a content of the type "data": an octet string in `[0]`.
fn plain_content<'a>(reader: &mut DerReader<'a>) -> Result<&'a [u8], UploadRefusal> {
    reader.enter(EXPLICIT_0).and_then(|mut inside| inside.take(OCTET_STRING)).ok_or(BROKEN)
}

/// The MAC, which protects the file against changes without the password.
struct Mac<'a> {
    hash: &'static digest::Algorithm,
    keyed: hmac::Algorithm,
    value: &'a [u8],
    salt: &'a [u8],
    iterations: NonZeroU32,
}

impl<'a> Mac<'a> {
    fn read(mut reader: DerReader<'a>) -> Result<Self, UploadRefusal> {
        let mut info = reader.enter(SEQUENCE).ok_or(BROKEN)?;
        let mut algorithm = info.enter(SEQUENCE).ok_or(BROKEN)?;
        let (hash, keyed) = match algorithm.take(OBJECT_IDENTIFIER).ok_or(BROKEN)? {
            SHA1 => (&SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA1_FOR_LEGACY_USE_ONLY),
            SHA2_224 => (&SHA224, HMAC_SHA224),
            SHA2_256 => (&SHA256, HMAC_SHA256),
            SHA2_384 => (&SHA384, HMAC_SHA384),
            SHA2_512 => (&SHA512, HMAC_SHA512),
            _ => return Err(UploadRefusal::UnsupportedProtection),
        };
        let value = info.take(OCTET_STRING).ok_or(BROKEN)?;
        let salt = reader.take(OCTET_STRING).ok_or(BROKEN)?;
        let iterations = if reader.is_done() { Some(1) } else { reader.number() };
        let iterations = iterations.and_then(NonZeroU32::new).ok_or(BROKEN)?;
        Ok(Self { hash, keyed, value, salt, iterations })
    }

    fn is_valid(
        &self,
        content: &[u8],
        password: &Password,
        work: &mut Iterations,
    ) -> Result<bool, UploadRefusal> {
        let length = self.hash.output_len();
        let key =
            derivation::pkcs12(self.hash, Purpose::Mac, password, self.salt, self.iterations, length, work)?;
        let value = hmac::sign(&hmac::Key::new(self.keyed, &key), content);
        Ok(verify_slices_are_equal(value.as_ref(), self.value).is_ok())
    }
}

/// Reads one safe: bags, which may be encrypted together.
fn read_safe(
    mut safe: DerReader<'_>,
    password: &Password,
    work: &mut Iterations,
    contents: &mut Contents,
) -> Result<(), UploadRefusal> {
    match safe.take(OBJECT_IDENTIFIER).ok_or(BROKEN)? {
        DATA => read_bags(plain_content(&mut safe)?, password, work, contents),
        ENCRYPTED_DATA => {
            let mut inside =
                safe.enter(EXPLICIT_0).and_then(|mut inside| inside.enter(SEQUENCE)).ok_or(BROKEN)?;
            inside.number().ok_or(BROKEN)?;
            let mut inside = inside.enter(SEQUENCE).ok_or(BROKEN)?;
            inside.take(OBJECT_IDENTIFIER).ok_or(BROKEN)?;
            let algorithm = inside.enter(SEQUENCE).ok_or(BROKEN)?;
            let content = inside.take(IMPLICIT_0).ok_or(BROKEN)?;
            let bags = decrypt(algorithm, content, password, work, BROKEN)?;
            read_bags(&bags, password, work, contents)
        }
        _ => Err(UploadRefusal::UnsupportedProtection),
    }
}

/// Reads bags. Those that are neither a key nor an X.509 certificate are skipped, and so are nested bags.
fn read_bags(
    bags: &[u8],
    password: &Password,
    work: &mut Iterations,
    contents: &mut Contents,
) -> Result<(), UploadRefusal> {
    let mut bags = DerReader::only(bags, SEQUENCE).ok_or(BROKEN)?;
    while !bags.is_done() {
        let mut bag = bags.enter(SEQUENCE).ok_or(BROKEN)?;
        let kind = bag.take(OBJECT_IDENTIFIER).ok_or(BROKEN)?;
        let value = bag.take(EXPLICIT_0).ok_or(BROKEN)?;
        match kind {
            KEY => contents.add_key(Zeroizing::new(value.to_vec()))?,
            SHROUDED_KEY => contents.add_key(decrypt_private_key(value, password, work)?)?,
            CERTIFICATE => {
                let mut value = DerReader::only(value, SEQUENCE).ok_or(BROKEN)?;
                if value.take(OBJECT_IDENTIFIER).ok_or(BROKEN)? == X509 {
                    contents.certificates.push(plain_content(&mut value)?.to_vec());
                }
            }
            _ => {}
        }
        if contents.certificates.len() > MAX_CERTIFICATES {
            return Err(UploadRefusal::TooManyCertificates);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{DerReader, Iterations, Mac, Password, SEQUENCE, plain_content};

    /// No password and an empty one make different MACs, and tools write both.
    #[test]
    fn no_password_and_an_empty_one_have_different_macs() {
        for (file, expected) in [
            (&include_bytes!("../testdata/empty-password.p12")[..], [true, false]),
            (&include_bytes!("../testdata/absent-password.p12")[..], [false, true]),
        ] {
            let mut reader = DerReader::only(file, SEQUENCE).unwrap();
            reader.number().unwrap();
            let mut content = reader.enter(SEQUENCE).unwrap();
            content.element().unwrap();
            let content = plain_content(&mut content).unwrap();
            let mac = Mac::read(reader.enter(SEQUENCE).unwrap()).unwrap();
            let candidates = Password::candidates(None).unwrap();
            let held =
                candidates.iter().map(|one| mac.is_valid(content, one, &mut Iterations::full()).unwrap());
            assert_eq!(held.collect::<Vec<_>>(), expected);
        }
    }
}
