//! Stateless nonces for DPoP (RFC 9449, section 8).

use aws_lc_rs::hmac;
use chancery_record::Timestamp;

use crate::claims::{from_base64, to_base64};

/// The time for which a nonce is issued, in milliseconds. It stays valid for the same time after that.
const SLOT: i64 = 5 * 60 * 1000;
/// The prefix of the MAC's input: it separates nonces from other uses of the key.
const LABEL: &[u8] = b"dpop nonce ";

/// Issues and verifies nonces. A nonce is a MAC over the time slot, so that processes with the same key accept each
/// other's nonces.
pub struct Nonces(hmac::Key);

impl Nonces {
    /// Uses a key of random bytes.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The current nonce.
    pub fn issue(&self, now: Timestamp) -> String {
        let tag = hmac::sign(&self.0, &message(now.0.div_euclid(SLOT)));
        to_base64(tag.as_ref())
    }

    /// Whether the nonce is of the current or the previous slot.
    pub fn is_valid(&self, nonce: &str, now: Timestamp) -> bool {
        let Some(tag) = from_base64(nonce) else { return false };
        let slot = now.0.div_euclid(SLOT);
        let is_of = |slot: i64| hmac::verify(&self.0, &message(slot), &tag).is_ok();
        is_of(slot) || is_of(slot.saturating_sub(1))
    }
}

impl std::fmt::Debug for Nonces {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Nonces(hidden)")
    }
}

fn message(slot: i64) -> Vec<u8> {
    [LABEL, &slot.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::{Nonces, SLOT, Timestamp};

    #[test]
    fn a_nonce_is_valid_in_its_slot_and_the_next() {
        let nonces = Nonces::new(&[7; 32]);
        let start = Timestamp(1_800_000_000_000 / SLOT * SLOT);
        let nonce = nonces.issue(start);
        assert_eq!(nonce, nonces.issue(start.plus(SLOT - 1)));
        assert_ne!(nonce, nonces.issue(start.plus(SLOT)));
        for (later, is_valid) in
            [(-1, false), (0, true), (SLOT, true), (2 * SLOT - 1, true), (2 * SLOT, false)]
        {
            assert_eq!(nonces.is_valid(&nonce, start.plus(later)), is_valid, "{later}");
        }
        for wrong in ["", "!", &nonce[1..], &format!("{nonce}A"), &nonce[..20]] {
            assert!(!nonces.is_valid(wrong, start), "{wrong}");
        }
        assert!(!Nonces::new(&[8; 32]).is_valid(&nonce, start));
        assert_eq!(format!("{nonces:?}"), "Nonces(hidden)");
    }
}
