//! The certificates and the private key of one file.

use zeroize::Zeroizing;

use crate::UploadRefusal;

/// The contents of a file, in the order of the file.
#[derive(Default)]
pub struct Contents {
    pub certificates: Vec<Vec<u8>>,
    /// The private key in DER; from a PEM file it may still be encrypted.
    pub key: Option<Zeroizing<Vec<u8>>>,
}

impl Contents {
    pub fn add_key(&mut self, key: Zeroizing<Vec<u8>>) -> Result<(), UploadRefusal> {
        match self.key.replace(key) {
            None => Ok(()),
            Some(_) => Err(UploadRefusal::SeveralPrivateKeys),
        }
    }
}
