//! SCIM tokens: a prefix and a checksum let secret scanners recognize leaked ones.

use chancery_resource::MasterKey;

/// The keyed digest by which a token is stored.
pub fn digest_of(master: &MasterKey, token: &str) -> Vec<u8> {
    master.digest("scim-token", token.as_bytes())
}

/// The prefix of a token.
const PREFIX: &str = "chscim_";

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 62^43 is more than 2^256.
const SECRET_DIGITS: usize = 43;
/// 62^6 is more than 2^32.
const CHECK_DIGITS: usize = 6;

/// The token of these random bytes: the prefix, the bytes in base 62, and the CRC-32 of both in base 62.
pub fn token_of(secret: [u8; 32]) -> String {
    let start = format!("{PREFIX}{}", base62(secret, SECRET_DIGITS));
    let check = base62(checksum(start.as_bytes()).to_be_bytes(), CHECK_DIGITS);
    start + &check
}

/// The bytes as a big-endian number in base 62, in as many digits.
fn base62<const LENGTH: usize>(mut number: [u8; LENGTH], count: usize) -> String {
    let mut digits = Vec::with_capacity(count);
    for _ in 0..count {
        let mut rest = 0_u16;
        for byte in &mut number {
            let value = rest * 256 + u16::from(*byte);
            // the quotient is one byte, because the rest was less than 62
            [_, *byte] = (value / 62).to_be_bytes();
            rest = value % 62;
        }
        digits.extend(DIGITS.get(usize::from(rest)).map(|digit| char::from(*digit)));
    }
    digits.iter().rev().collect()
}

/// CRC-32 as in ISO 3309.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |rest: u32, _| if rest & 1 == 1 { (rest >> 1) ^ 0xEDB8_8320 } else { rest >> 1 };
    !bytes.iter().fold(u32::MAX, |rest, byte| (0..8).fold(rest ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::token_of;

    /// Expected values were computed by other programs.
    #[test]
    fn tokens_match_other_implementations() {
        let counted: Vec<u8> = (0..32).collect();
        let counted = token_of(counted.try_into().unwrap());
        assert_eq!(counted, "chscim_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf2guo0X");
        assert_eq!(token_of([u8::MAX; 32]), "chscim_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp10ORZ3B");
    }
}
