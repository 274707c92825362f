//! Derivation of keys from a password, within a budget of iterations.

use std::num::NonZeroU32;

use aws_lc_rs::{
    digest::{self, digest},
    pbkdf2,
};
use chancery_record::Secret;
use zeroize::Zeroizing;

use crate::{MAX_PASSWORD_BYTES, UploadRefusal};

/// The most iterations that the uploads of one call may cost, however they are spread: some seconds of work.
const MAX_WORK: u64 = 4_000_000;

/// The budget of work, in iterations, that is left for the uploads of one call.
#[derive(Debug)]
pub struct Iterations(u64);

impl Iterations {
    /// The full budget.
    pub const fn full() -> Self {
        Self(MAX_WORK)
    }

    /// Takes the cost of one derivation from the budget.
    fn spend(&mut self, iterations: NonZeroU32, blocks: usize, bytes: usize) -> Result<(), UploadRefusal> {
        let long = u64::try_from(bytes / 64).unwrap_or(u64::MAX);
        let blocks = u64::try_from(blocks).unwrap_or(u64::MAX);
        let cost = u64::from(iterations.get()).saturating_add(long).saturating_mul(blocks);
        self.0 = self.0.checked_sub(cost).ok_or(UploadRefusal::TooMuchWork)?;
        Ok(())
    }
}

/// A password, in the two encodings that are hashed.
pub struct Password {
    utf8: Zeroizing<Vec<u8>>,
    /// UTF-16, big-endian, with a final zero (RFC 7292, appendix B.1); empty when there is no password.
    utf16: Zeroizing<Vec<u8>>,
}

impl Password {
    /// The passwords to try. No password and the empty one look alike to a person, but PKCS#12 distinguishes
    /// them.
    pub fn candidates(given: Option<&Secret>) -> Result<Vec<Self>, UploadRefusal> {
        let given = given.map_or(&[][..], Secret::expose);
        if given.is_empty() {
            let none = Self { utf8: Zeroizing::default(), utf16: Zeroizing::default() };
            return Ok(vec![Self::new("")?, none]);
        }
        let text = str::from_utf8(given).map_err(|_| UploadRefusal::UnusablePassword)?;
        Ok(vec![Self::new(text)?])
    }

    fn new(text: &str) -> Result<Self, UploadRefusal> {
        if text.len() > MAX_PASSWORD_BYTES {
            return Err(UploadRefusal::UnusablePassword);
        }
        // capacity for all of it at once: reallocation would leave copies of the secret behind
        let mut utf16 = Zeroizing::new(Vec::with_capacity(2 * text.len() + 2));
        for unit in text.encode_utf16().chain([0]) {
            utf16.extend(unit.to_be_bytes());
        }
        Ok(Self { utf8: Zeroizing::new(text.as_bytes().to_vec()), utf16 })
    }
}

/// PBKDF2 (RFC 8018).
pub fn pbkdf2(
    algorithm: pbkdf2::Algorithm,
    hash_length: usize,
    password: &Password,
    salt: &[u8],
    iterations: NonZeroU32,
    length: usize,
    work: &mut Iterations,
) -> Result<Zeroizing<Vec<u8>>, UploadRefusal> {
    work.spend(iterations, length.div_ceil(hash_length), salt.len())?;
    let mut key = Zeroizing::new(vec![0; length]);
    pbkdf2::derive(algorithm, iterations, salt, &password.utf8, &mut key);
    Ok(key)
}

/// The purpose of a derived key (RFC 7292, appendix B.3).
#[derive(Clone, Copy)]
pub enum Purpose {
    Key = 1,
    InitialVector = 2,
    Mac = 3,
}

/// PKCS#12's own derivation (RFC 7292, appendix B.2); the variables have the letters of the text.
pub fn pkcs12(
    hash: &'static digest::Algorithm,
    purpose: Purpose,
    password: &Password,
    salt: &[u8],
    iterations: NonZeroU32,
    length: usize,
    work: &mut Iterations,
) -> Result<Zeroizing<Vec<u8>>, UploadRefusal> {
    let (block, hash_length) = (hash.block_len, hash.output_len());
    work.spend(iterations, length.div_ceil(hash_length), salt.len() + password.utf16.len())?;
    let (d, d_length) = (purpose as u8, block);
    let salt_length = salt.len().next_multiple_of(block);
    let password_length = password.utf16.len().next_multiple_of(block);
    let mut d_and_i = Zeroizing::new(Vec::with_capacity(d_length + salt_length + password_length));
    d_and_i.resize(d_length, d);
    d_and_i.extend(salt.iter().cycle().take(salt_length));
    d_and_i.extend(password.utf16.iter().cycle().take(password_length));

    let mut key = Zeroizing::new(Vec::with_capacity(length + hash_length));
    while key.len() < length {
        let mut a = digest(hash, &d_and_i);
        for _ in 1..iterations.get() {
            a = digest(hash, a.as_ref());
        }
        key.extend(a.as_ref());
        let b: Zeroizing<Vec<u8>> = Zeroizing::new(a.as_ref().iter().copied().cycle().take(block).collect());
        for part in d_and_i.chunks_exact_mut(block).skip(1) {
            add_and_one(part, &b);
        }
    }
    key.truncate(length);
    Ok(key)
}

/// `number = number + other + 1`, modulo `256 ^ number.len()`.
fn add_and_one(number: &mut [u8], other: &[u8]) {
    let mut carry = 1_u16;
    for (digit, other) in number.iter_mut().rev().zip(other.iter().rev()) {
        let [over, sum] = (u16::from(*digit) + u16::from(*other) + carry).to_be_bytes();
        (*digit, carry) = (sum, u16::from(over));
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use aws_lc_rs::digest::SHA256;
    use chancery_record::Secret;

    use super::{Iterations, MAX_WORK, Password, Purpose, add_and_one, pkcs12};
    use crate::UploadRefusal;

    #[test]
    fn the_carry_is_propagated() {
        let mut number = [0, 0xff, 0xff];
        add_and_one(&mut number, &[0, 0, 0]);
        assert_eq!(number, [1, 0, 0]);
        let mut number = [0xff, 0xff];
        add_and_one(&mut number, &[0xff, 0xff]);
        assert_eq!(number, [0xff, 0xff]);
    }

    #[test]
    fn no_password_and_an_empty_one_are_two_candidates() {
        let candidates = Password::candidates(None).unwrap();
        assert_eq!(candidates.iter().map(|one| one.utf16.len()).collect::<Vec<_>>(), [2, 0]);
        assert_eq!(Password::candidates(Some(&Secret::new("x"))).unwrap().len(), 1);
        for unusable in [vec![0xff], vec![b'x'; 1025]] {
            let refused = Password::candidates(Some(&Secret::new(unusable))).err();
            assert_eq!(refused, Some(UploadRefusal::UnusablePassword));
        }
    }

    /// The budget is one for all derivations, so that many small ones cannot evade it.
    #[test]
    fn the_budget_bounds_the_sum_of_work() {
        let password = &Password::candidates(None).unwrap()[0];
        let mut work = Iterations(10);
        let mut once = |iterations, length| {
            let iterations = NonZeroU32::new(iterations).unwrap();
            pkcs12(&SHA256, Purpose::Key, password, b"salt", iterations, length, &mut work)
                .map(|key| key.len())
        };
        assert_eq!(once(4, 64), Ok(64));
        assert_eq!(once(2, 16), Ok(16));
        assert_eq!(once(1, 16), Err(UploadRefusal::TooMuchWork));
        let mut work = Iterations::full();
        assert_eq!(work.spend(NonZeroU32::MAX, usize::MAX, usize::MAX), Err(UploadRefusal::TooMuchWork));
        assert_eq!(work.0, MAX_WORK);
    }
}
