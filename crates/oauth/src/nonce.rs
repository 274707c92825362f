//! Nonces for DPoP that need no storage (RFC 9449, section 8).

use aws_lc_rs::hmac;
use chancery_record::Timestamp;

use crate::claims::{from_base64, to_base64};

/// How long one nonce is handed out, in milliseconds. After that it is valid for as long again.
const SLOT: i64 = 5 * 60 * 1000;
/// The prefix of what the key authenticates, so that no tag is of use elsewhere.
const LABEL: &[u8] = b"dpop nonce ";

/// Issues and checks nonces: a nonce is a MAC over the slot of time. Processes that share the key share the
/// nonces.
pub struct Nonces(hmac::Key);

impl Nonces {
    /// Issues nonces by a key of random bytes.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The current nonce.
    pub fn make(&self, now: Timestamp) -> String {
        let tag = hmac::sign(&self.0, &message(now.0.div_euclid(SLOT)));
        to_base64(tag.as_ref())
    }

    /// Whether it is the nonce of this slot or of the one before.
    pub fn is_good(&self, nonce: &str, now: Timestamp) -> bool {
        let Some(tag) = from_base64(nonce) else { return false };
        let slot = now.0.div_euclid(SLOT);
        let good = |slot: i64| hmac::verify(&self.0, &message(slot), &tag).is_ok();
        good(slot) || good(slot.saturating_sub(1))
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
    fn a_nonce_is_good_for_its_slot_and_the_next() {
        let nonces = Nonces::new(&[7; 32]);
        let start = Timestamp(1_800_000_000_000 / SLOT * SLOT);
        let nonce = nonces.make(start);
        assert_eq!(nonce, nonces.make(start.plus(SLOT - 1)));
        assert_ne!(nonce, nonces.make(start.plus(SLOT)));
        for (later, good) in [(-1, false), (0, true), (SLOT, true), (2 * SLOT - 1, true), (2 * SLOT, false)] {
            assert_eq!(nonces.is_good(&nonce, start.plus(later)), good, "{later}");
        }
        for wrong in ["", "!", &nonce[1..], &format!("{nonce}A"), &nonce[..20]] {
            assert!(!nonces.is_good(wrong, start), "{wrong}");
        }
        assert!(!Nonces::new(&[8; 32]).is_good(&nonce, start));
        assert_eq!(format!("{nonces:?}"), "Nonces(hidden)");
    }
}
