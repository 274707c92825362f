//! The files of TLS: PEM, with or without a byte order mark, or DER. A file that cannot be served is refused with the reason.

use std::{fmt::Display, fs, io, path::Path};

use tokio_rustls::rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::ParsedCertificate,
};

const BEGIN: &str = "-----BEGIN ";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The first byte of DER: a sequence.
const SEQUENCE: u8 = 0x30;
/// The first byte of the name of an algorithm: an object identifier.
const OBJECT: u8 = 0x06;

const CLOSED: &str = "the private key is under a password, and a server starts without anybody who types one: \
    openssl pkey -in FILE -out KEY writes it without, for a file that the server's user alone can read";
const VERSION_1: &str = "the certificate is of X.509 version 1, which clients take no more: make one of version 3 that names the \
    server as subjectAltName";

/// An error that names the file.
pub fn wrong(path: &Path, error: &dyn Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {error}", path.display()))
}

/// The content of a file.
enum Content {
    Pem(Vec<u8>),
    Der(Vec<u8>),
}

impl Content {
    fn read(path: &Path) -> io::Result<Self> {
        let bytes = fs::read(path).map_err(|error| wrong(path, &error))?;
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
        match bytes {
            [SEQUENCE, ..] => Ok(Self::Der(bytes.to_vec())),
            // the byte order marks of UTF-16
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                Err(wrong(path, &"this is text in UTF-16: save it as ASCII or UTF-8"))
            }
            _ => Ok(Self::Pem(bytes.to_vec())),
        }
    }
}

/// The labels of the blocks in a PEM text.
fn labels(pem: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(pem);
    let labels = text.lines().filter_map(|line| line.trim().strip_prefix(BEGIN)?.strip_suffix("-----"));
    labels.map(str::to_owned).collect()
}

/// The message for a PEM text without the required block.
fn lacks(what: &str, pem: &[u8]) -> String {
    match labels(pem).as_slice() {
        [] => format!("there is no {what} in it, neither as PEM nor as DER"),
        found => format!("there is no {what} in it, but {}", found.join(", ")),
    }
}

/// The certificates of a file, in its order; none where a PEM text has no blocks at all.
pub fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let pem = match Content::read(path)? {
        Content::Der(bytes) => return Ok(vec![CertificateDer::from(bytes)]),
        Content::Pem(bytes) => bytes,
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| wrong(path, &error))?;
    if found.is_empty() && !labels(&pem).is_empty() {
        return Err(wrong(path, &lacks("certificate", &pem)));
    }
    Ok(found)
}

/// The chain that the server shows, its own certificate first.
pub fn chain(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let chain = certificates(path)?;
    let own = chain.first().ok_or_else(|| wrong(path, &lacks("certificate", b"")))?;
    ParsedCertificate::try_from(own).map_err(|error| {
        let error = error.to_string();
        if error.contains("UnsupportedCertVersion") {
            wrong(path, &VERSION_1)
        } else {
            wrong(path, &format!("the certificate cannot be read: {error}"))
        }
    })?;
    Ok(chain)
}

/// The private key of a file.
pub fn key(path: &Path) -> io::Result<PrivateKeyDer<'static>> {
    match Content::read(path)? {
        Content::Der(bytes) if is_closed(&bytes) => Err(wrong(path, &CLOSED)),
        Content::Der(bytes) => {
            PrivateKeyDer::try_from(bytes).map_err(|_| wrong(path, &"there is no private key in it"))
        }
        Content::Pem(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            if text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
                || text.contains("Proc-Type: 4,ENCRYPTED")
            {
                return Err(wrong(path, &CLOSED));
            }
            if !labels(&bytes).iter().any(|label| label.ends_with("PRIVATE KEY")) {
                return Err(wrong(path, &lacks("private key", &bytes)));
            }
            PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| wrong(path, &error))
        }
    }
}

/// Whether a key in DER is under a password (PKCS#8, `EncryptedPrivateKeyInfo`): it begins with the name of an algorithm.
fn is_closed(der: &[u8]) -> bool {
    let inner = inside(der);
    inner.first() == Some(&SEQUENCE) && inside(inner).first() == Some(&OBJECT)
}

/// The content after the header of a value in DER.
fn inside(der: &[u8]) -> &[u8] {
    let length = der.get(1).copied().unwrap_or_default();
    let more = if length & 0x80 == 0 { 0 } else { usize::from(length & 0x7f) };
    der.get(2 + more..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};

    use super::{BYTE_ORDER_MARK, certificates, chain, key};

    const CERTIFICATE: &[u8] = include_bytes!("samples/certificate.pem");
    const VERSION_1: &[u8] = include_bytes!("samples/version-1.pem");
    const KEY: &[u8] = include_bytes!("samples/key.pem");
    const CLOSED: &[u8] = include_bytes!("samples/closed-key.pem");

    /// A folder that is removed with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("chancery-tls-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn with(&self, content: &[u8]) -> &Path {
            std::fs::write(self.0.join("file"), content).unwrap();
            Box::leak(Box::new(self.0.join("file")))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn der_of(pem: &[u8]) -> Vec<u8> {
        CertificateDer::from_pem_slice(pem).unwrap().to_vec()
    }

    fn utf_16(text: &[u8]) -> Vec<u8> {
        [0xff, 0xfe].into_iter().chain(text.iter().flat_map(|byte| [*byte, 0])).collect()
    }

    #[test]
    fn a_file_is_pem_or_der() {
        let folder = Folder::new("forms");
        let marked = |pem: &[u8]| [BYTE_ORDER_MARK, pem].concat();
        let der = der_of(CERTIFICATE);
        for file in [CERTIFICATE.to_vec(), marked(CERTIFICATE), der.clone()] {
            assert_eq!(chain(folder.with(&file)).unwrap(), [CertificateDer::from(der.clone())]);
        }
        let own = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        for file in [KEY.to_vec(), marked(KEY), own.secret_der().to_vec()] {
            assert_eq!(key(folder.with(&file)).unwrap(), own);
        }
        let both = [CERTIFICATE, KEY].concat();
        assert_eq!(chain(folder.with(&both)).unwrap().len(), 1);
        assert_eq!(key(folder.with(&both)).unwrap(), own);
        assert!(certificates(folder.with(b"# none yet\n")).unwrap().is_empty());
    }

    #[test]
    fn an_invalid_file_is_refused_with_the_reason() {
        let folder = Folder::new("wrong");
        let request = b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";
        for (file, words) in [
            (VERSION_1.to_vec(), "version 1"),
            (der_of(VERSION_1), "version 1"),
            (KEY.to_vec(), "no certificate in it, but EC PRIVATE KEY"),
            (request.to_vec(), "no certificate in it, but CERTIFICATE REQUEST"),
            (utf_16(CERTIFICATE), "UTF-16"),
            (b"".to_vec(), "no certificate"),
            (b"0\x03abc".to_vec(), "cannot be read"),
        ] {
            let message = chain(folder.with(&file)).unwrap_err().to_string();
            assert!(message.contains(words) && message.contains("file: "), "{words}: {message}");
        }
        let der = |pem: &[u8]| {
            let text =
                String::from_utf8(pem.to_vec()).unwrap().replace("ENCRYPTED PRIVATE KEY", "CERTIFICATE");
            der_of(text.as_bytes())
        };
        let old = b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: X\n\nAQID\n-----END RSA PRIVATE KEY-----\n";
        for (file, words) in [
            (CLOSED.to_vec(), "password"),
            (der(CLOSED), "password"),
            (old.to_vec(), "password"),
            (CERTIFICATE.to_vec(), "no private key in it, but CERTIFICATE"),
            (der_of(CERTIFICATE), "no private key"),
            (utf_16(KEY), "UTF-16"),
            (b"key".to_vec(), "no private key"),
        ] {
            let message = key(folder.with(&file)).unwrap_err().to_string();
            assert!(message.contains(words) && message.contains("file: "), "{words}: {message}");
        }
    }
}
