//! Decryption by a password: PBES2 of PKCS#5 (RFC 8018) and the two schemes of PKCS#12 that old files use.

use std::num::NonZeroU32;

use aws_lc_rs::{
    cipher::{AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey},
    digest::SHA1_FOR_LEGACY_USE_ONLY,
    iv::FixedLength,
    pbkdf2::{self, PBKDF2_HMAC_SHA1, PBKDF2_HMAC_SHA256, PBKDF2_HMAC_SHA384, PBKDF2_HMAC_SHA512},
};
use cbc::{
    Decryptor,
    cipher::{BlockCipherDecrypt, BlockModeDecrypt, KeyInit, KeyIvInit, block_padding::Pkcs7},
};
use des::TdesEde3;
use rc2::Rc2;
use zeroize::Zeroizing;

use crate::{
    Part, UploadRefusal,
    der::{DerReader, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE},
    derivation::{self, Iterations, Password, Purpose},
};

const PBES2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d";
const PBKDF2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c";
/// The default hash of PBKDF2.
const HMAC_SHA1: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x07";
const HMAC_SHA256: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x09";
const HMAC_SHA384: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x0a";
const HMAC_SHA512: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x0b";
const AES_128_CBC: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x02";
const AES_192_CBC: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x16";
const AES_256_CBC: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x2a";
const TRIPLE_DES_CBC: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x03\x07";
const SHA1_TRIPLE_DES: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x03";
const SHA1_RC2_128: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x05";
const SHA1_RC2_40: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x06";

#[derive(Clone, Copy)]
enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    TripleDes,
    Rc2,
}

/// Decrypts a shrouded key bag or an `ENCRYPTED PRIVATE KEY`: an algorithm and the content.
pub fn decrypt_private_key(
    der: &[u8],
    password: &Password,
    work: &mut Iterations,
) -> Result<Zeroizing<Vec<u8>>, UploadRefusal> {
    let broken = UploadRefusal::Broken(Part::PrivateKey);
    let mut reader = DerReader::only(der, SEQUENCE).ok_or(broken)?;
    let algorithm = reader.enter(SEQUENCE).ok_or(broken)?;
    let content = reader.take(OCTET_STRING).ok_or(broken)?;
    decrypt(algorithm, content, password, work, broken)
}

/// Decrypts content by its algorithm and parameters. `broken` is the refusal where these are malformed.
pub fn decrypt(
    mut algorithm: DerReader<'_>,
    content: &[u8],
    password: &Password,
    work: &mut Iterations,
    broken: UploadRefusal,
) -> Result<Zeroizing<Vec<u8>>, UploadRefusal> {
    let scheme = algorithm.take(OBJECT_IDENTIFIER).ok_or(broken)?;
    let (cipher, key_length) = match scheme {
        PBES2 => {
            return decrypt_pbes2(algorithm.enter(SEQUENCE).ok_or(broken)?, content, password, work, broken);
        }
        SHA1_TRIPLE_DES => (Cipher::TripleDes, 24),
        SHA1_RC2_128 => (Cipher::Rc2, 16),
        SHA1_RC2_40 => (Cipher::Rc2, 5),
        _ => return Err(UploadRefusal::UnsupportedProtection),
    };
    let mut parameters = algorithm.enter(SEQUENCE).ok_or(broken)?;
    let salt = parameters.take(OCTET_STRING).ok_or(broken)?;
    let iterations = parameters.number().and_then(NonZeroU32::new).ok_or(broken)?;
    let mut derive = |purpose, length| {
        let hash = &SHA1_FOR_LEGACY_USE_ONLY;
        derivation::pkcs12(hash, purpose, password, salt, iterations, length, work)
    };
    let key = derive(Purpose::Key, key_length)?;
    let vector = derive(Purpose::InitialVector, 8)?;
    open(cipher, &key, &vector, content, broken)
}

fn decrypt_pbes2(
    mut parameters: DerReader<'_>,
    content: &[u8],
    password: &Password,
    work: &mut Iterations,
    broken: UploadRefusal,
) -> Result<Zeroizing<Vec<u8>>, UploadRefusal> {
    let mut derivation = parameters.enter(SEQUENCE).ok_or(broken)?;
    let mut encryption = parameters.enter(SEQUENCE).ok_or(broken)?;
    let (cipher, key_length) = match encryption.take(OBJECT_IDENTIFIER).ok_or(broken)? {
        AES_128_CBC => (Cipher::Aes128, 16),
        AES_192_CBC => (Cipher::Aes192, 24),
        AES_256_CBC => (Cipher::Aes256, 32),
        TRIPLE_DES_CBC => (Cipher::TripleDes, 24),
        _ => return Err(UploadRefusal::UnsupportedProtection),
    };
    let vector = encryption.take(OCTET_STRING).ok_or(broken)?;
    if derivation.take(OBJECT_IDENTIFIER).ok_or(broken)? != PBKDF2 {
        return Err(UploadRefusal::UnsupportedProtection);
    }
    let mut derivation = derivation.enter(SEQUENCE).ok_or(broken)?;
    let salt = derivation.take(OCTET_STRING).ok_or(broken)?;
    let iterations = derivation.number().and_then(NonZeroU32::new).ok_or(broken)?;
    // the key's length is optional, and follows from the cipher
    derivation.take(INTEGER);
    let (hash, hash_length) = match derivation.enter(SEQUENCE) {
        Some(mut hash) => keyed_hash(hash.take(OBJECT_IDENTIFIER).ok_or(broken)?)?,
        None => keyed_hash(HMAC_SHA1)?,
    };
    let key = derivation::pbkdf2(hash, hash_length, password, salt, iterations, key_length, work)?;
    open(cipher, &key, vector, content, broken)
}

fn keyed_hash(name: &[u8]) -> Result<(pbkdf2::Algorithm, usize), UploadRefusal> {
    match name {
        HMAC_SHA1 => Ok((PBKDF2_HMAC_SHA1, 20)),
        HMAC_SHA256 => Ok((PBKDF2_HMAC_SHA256, 32)),
        HMAC_SHA384 => Ok((PBKDF2_HMAC_SHA384, 48)),
        HMAC_SHA512 => Ok((PBKDF2_HMAC_SHA512, 64)),
        _ => Err(UploadRefusal::UnsupportedProtection),
    }
}

/// Decrypts in CBC and removes the padding. Without valid padding, the key is another: the password is wrong.
fn open(
    cipher: Cipher,
    key: &[u8],
    vector: &[u8],
    content: &[u8],
    broken: UploadRefusal,
) -> Result<Zeroizing<Vec<u8>>, UploadRefusal> {
    let aes = match cipher {
        Cipher::Aes128 => &AES_128,
        Cipher::Aes192 => &AES_192,
        Cipher::Aes256 => &AES_256,
        Cipher::TripleDes => return open_by::<TdesEde3>(key, vector, content, broken),
        Cipher::Rc2 => return open_by::<Rc2>(key, vector, content, broken),
    };
    if content.is_empty() || !content.len().is_multiple_of(16) {
        return Err(broken);
    }
    let vector = FixedLength::try_from(vector).map_err(|_| broken)?;
    let key = UnboundCipherKey::new(aes, key).and_then(PaddedBlockDecryptingKey::cbc_pkcs7);
    let mut plain = Zeroizing::new(content.to_vec());
    let length = key
        .and_then(|key| key.decrypt(&mut plain, DecryptionContext::Iv128(vector)).map(|plain| plain.len()))
        .map_err(|_| UploadRefusal::WrongPassword)?;
    plain.truncate(length);
    Ok(plain)
}

fn open_by<C: BlockCipherDecrypt + KeyInit>(
    key: &[u8],
    vector: &[u8],
    content: &[u8],
    broken: UploadRefusal,
) -> Result<Zeroizing<Vec<u8>>, UploadRefusal> {
    if content.is_empty() || !content.len().is_multiple_of(8) {
        return Err(broken);
    }
    let decryptor = Decryptor::<C>::new_from_slices(key, vector).map_err(|_| broken)?;
    let mut plain = Zeroizing::new(content.to_vec());
    let length =
        decryptor.decrypt_padded::<Pkcs7>(&mut plain).map_err(|_| UploadRefusal::WrongPassword)?.len();
    plain.truncate(length);
    Ok(plain)
}
