//! Reads an upload: a certificate, its chain and its private key.

use chancery_record::Secret;

use crate::{
    Facts, MAX_BYTES, MAX_CERTIFICATES, PrivateKey, PublicKey, UploadRefusal,
    contents::Contents,
    derivation::Iterations,
    facts::{facts, parse},
    pem, pkcs12,
    private_key::is_key,
};

/// The format of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// PKCS#12: certificates and their key in one file, under a password.
    Pkcs12,
    /// PEM: blocks of base64 with certificates, and possibly their key.
    Pem,
    /// DER: one certificate.
    Der,
}

/// The contents of an upload.
#[derive(Debug)]
pub struct CertificateBundle {
    /// The certificate, in DER.
    pub certificate: Vec<u8>,
    /// The chain of issuers, the nearest first, as far as the upload has them, in DER. Issuers are matched by
    /// name: no signature is verified. Certificates outside the chain are left out.
    pub chain: Vec<Vec<u8>>,
    /// The certificate's private key.
    pub private_key: Option<PrivateKey>,
    /// The facts that the certificate states.
    pub facts: Facts,
}

/// Reads an upload.
///
/// `private_key` is for a certificate with its key in a separate file, in PEM or DER. With a private key,
/// the certificate is the one of this key. Without, it is the only one; of several, the one that issued no other, in
/// any order.
pub fn read(
    format: Format,
    data: &[u8],
    private_key: Option<&[u8]>,
    password: Option<&Secret>,
) -> Result<CertificateBundle, UploadRefusal> {
    read_within(format, data, private_key, password, &mut Iterations::full())
}

/// Reads one of several uploads, which share a budget of work.
pub fn read_within(
    format: Format,
    data: &[u8],
    private_key: Option<&[u8]>,
    password: Option<&Secret>,
    work: &mut Iterations,
) -> Result<CertificateBundle, UploadRefusal> {
    if data.len() > MAX_BYTES || private_key.is_some_and(|key| key.len() > MAX_BYTES) {
        return Err(UploadRefusal::TooLarge);
    }
    let contents = match format {
        Format::Pkcs12 => pkcs12::open(data, password, work)?,
        Format::Pem => open_pem(data)?,
        Format::Der => Contents { certificates: vec![data.to_vec()], key: None },
    };
    let key = match (&contents.key, private_key) {
        (Some(_), Some(_)) => return Err(UploadRefusal::SeveralPrivateKeys),
        (Some(inside), None) => Some(PrivateKey::from_der(inside, password, work)?),
        (None, Some(separate)) => Some(PrivateKey::read_working(separate, password, work)?),
        (None, None) => None,
    };
    pick(&contents.certificates, key)
}

fn open_pem(data: &[u8]) -> Result<Contents, UploadRefusal> {
    let mut contents = Contents::default();
    for block in pem::blocks(data)? {
        if is_key(block.label) {
            contents.add_key(block.content)?;
        } else if ["CERTIFICATE", "X509 CERTIFICATE"].contains(&block.label) {
            parse(&block.content).map_err(|_| UploadRefusal::BrokenPem(block.line))?;
            contents.certificates.push(block.content.to_vec());
        } else if ["TRUSTED CERTIFICATE", "PKCS7", "CMS"].contains(&block.label) {
            // it holds certificates in another form: one of them could be meant
            return Err(UploadRefusal::BrokenPem(block.line));
        }
    }
    Ok(contents)
}

/// Finds the certificate of the upload, and orders its chain.
fn pick(certificates: &[Vec<u8>], key: Option<PrivateKey>) -> Result<CertificateBundle, UploadRefusal> {
    if certificates.len() > MAX_CERTIFICATES {
        return Err(UploadRefusal::TooManyCertificates);
    }
    // one that is there twice counts once
    let once = certificates
        .iter()
        .enumerate()
        .filter(|(at, der)| !certificates.iter().take(*at).any(|other| other == *der));
    let parsed: Result<Vec<_>, _> = once.map(|(_, der)| parse(der).map(|one| (der, one))).collect();
    let parsed = parsed?;
    if parsed.is_empty() {
        return Err(UploadRefusal::NoCertificate);
    }
    let (der, own) = if let Some(key) = &key {
        parsed
            .iter()
            .find(|(_, one)| PublicKey::from_spki(one.public_key().raw).as_ref() == Some(key.public()))
            .ok_or(UploadRefusal::KeyDoesNotFit)?
    } else {
        let issued = |der: &[u8], name: &[u8]| {
            parsed.iter().any(|(other, one)| other.as_slice() != der && one.issuer().as_raw() == name)
        };
        let mut last = parsed.iter().filter(|(der, one)| !issued(der, one.subject().as_raw()));
        match (last.next(), last.next()) {
            (Some(only), None) => only,
            _ => return Err(UploadRefusal::AmbiguousCertificate),
        }
    };
    let mut chain: Vec<Vec<u8>> = Vec::new();
    let mut link = own;
    // each certificate once, so that a cycle of names ends
    while let Some((next, issuer)) = parsed.iter().find(|(other, one)| {
        one.subject().as_raw() == link.issuer().as_raw() && other != der && !chain.contains(*other)
    }) {
        if link.issuer().as_raw() == link.subject().as_raw() {
            break;
        }
        chain.push((*next).clone());
        link = issuer;
    }
    let facts = facts(der, own)?;
    Ok(CertificateBundle { certificate: (*der).clone(), chain, private_key: key, facts })
}
