//! One-time passwords of authenticators (TOTP, RFC 6238), and their enrolment.

use aws_lc_rs::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, HMAC_SHA512};
use chancery_record::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::typed::read_code;

/// The bytes of a secret: as long as SHA-1's output (RFC 4226, section 4).
pub const SECRET_LENGTH: usize = 20;
/// The number of steps that a code may be early or late.
const LEEWAY: i64 = 1;
/// The alphabet of base32 (RFC 4648, section 6).
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The hash of the codes: the option `Algorithm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// SHA-1, which all authenticators know. Its collisions do not matter in an HMAC.
    Sha1,
    /// SHA-256
    Sha256,
    /// SHA-512
    Sha512,
}

impl Algorithm {
    /// The algorithm of this name in the options; SHA-1 for an unknown name.
    pub fn named(name: &str) -> Self {
        match name {
            "SHA256" => Self::Sha256,
            "SHA512" => Self::Sha512,
            _ => Self::Sha1,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
            Self::Sha512 => "SHA512",
        }
    }
}

/// The parameters of the codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totp {
    /// The digits of a code, 6 to 8.
    pub digits: u32,
    /// The period of a code, in ms.
    pub period_ms: i64,
    /// The hash.
    pub algorithm: Algorithm,
}

impl Totp {
    /// The code of a step.
    fn code(&self, secret: &[u8], step: i64) -> String {
        let algorithm = match self.algorithm {
            Algorithm::Sha1 => HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::Sha256 => HMAC_SHA256,
            Algorithm::Sha512 => HMAC_SHA512,
        };
        let tag = hmac::sign(&hmac::Key::new(algorithm, secret), &step.to_be_bytes());
        let bytes = tag.as_ref();
        let offset = usize::from(bytes.last().copied().unwrap_or_default() & 15);
        let chosen = bytes.get(offset..offset + 4).and_then(|four| four.try_into().ok());
        let number = u32::from_be_bytes(chosen.unwrap_or_default()) & 0x7fff_ffff;
        let digits = self.digits.min(9);
        format!("{:0width$}", number % 10_u32.pow(digits), width = digits as usize)
    }

    /// The step of a typed code, which is valid once: the caller stores the last step. `None` if the code is wrong, or
    /// its step not after `last`.
    pub fn verify(&self, secret: &[u8], typed: &str, last: i64, now: Timestamp) -> Option<i64> {
        let typed = read_code(typed);
        let present = now.0.div_euclid(self.period_ms.max(1));
        let mut found = None;
        // all steps are compared, for constant time
        for step in present - LEEWAY..=present + LEEWAY {
            let code = self.code(secret, step);
            let is_right =
                aws_lc_rs::constant_time::verify_slices_are_equal(code.as_bytes(), typed.as_bytes());
            if is_right.is_ok() && step > last {
                found = found.or(Some(step));
            }
        }
        found
    }

    /// The `otpauth:` URI that an authenticator reads from a QR code. Colons of both names are left out.
    pub fn address(&self, secret: &[u8], issuer: &str, account: &str) -> String {
        // authenticators split the label at its colon, also at one in percent form
        let (issuer, account) = (issuer.replace(':', ""), account.replace(':', ""));
        let encode = |text| utf8_percent_encode(text, RESERVED);
        let (issuer, account) = (encode(&issuer), encode(&account));
        format!(
            "otpauth://totp/{issuer}:{account}?secret={}&issuer={issuer}&algorithm={}&digits={}&period={}",
            base32(secret),
            self.algorithm.name(),
            self.digits,
            self.period_ms / 1000,
        )
    }
}

/// A secret as it is typed: base32, without padding.
pub fn base32(bytes: &[u8]) -> String {
    let (mut text, mut held, mut bits) = (String::new(), 0_u32, 0_u32);
    let letter = |index: u32| char::from(BASE32.get(index as usize & 31).copied().unwrap_or(b'A'));
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(letter(held >> bits));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(letter(held << (5 - bits)));
    }
    text
}

/// All but the characters that no part of an address needs in percent forms (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;

    use super::{Algorithm, Totp, base32};

    /// RFC 6238, appendix B: seconds, and the code by each hash.
    const VECTORS: [(i64, [&str; 3]); 6] = [
        (59, ["94287082", "46119246", "90693936"]),
        (1_111_111_109, ["07081804", "68084774", "25091201"]),
        (1_111_111_111, ["14050471", "67062674", "99943326"]),
        (1_234_567_890, ["89005924", "91819424", "93441116"]),
        (2_000_000_000, ["69279037", "90698825", "38618901"]),
        (20_000_000_000, ["65353130", "77737706", "47863826"]),
    ];

    fn totp(algorithm: Algorithm) -> Totp {
        Totp { digits: 8, period_ms: 30_000, algorithm }
    }

    #[test]
    fn codes_match_the_vectors_of_the_rfc() {
        let secret = b"1234567890".repeat(7);
        let hashes = [(Algorithm::Sha1, 20), (Algorithm::Sha256, 32), (Algorithm::Sha512, 64)];
        for (seconds, codes) in VECTORS {
            for ((algorithm, length), code) in hashes.into_iter().zip(codes) {
                let now = Timestamp(seconds * 1000);
                let found = totp(algorithm).verify(&secret[..length], code, i64::MIN, now);
                assert_eq!(found, Some(seconds / 30), "{seconds} {}", algorithm.name());
            }
        }
    }

    #[test]
    fn a_code_is_valid_once_and_one_step_early_or_late() {
        let (totp, secret) = (totp(Algorithm::Sha1), b"12345678901234567890");
        let at = |seconds: i64| Timestamp(seconds * 1000);
        // the code of step 1, which is from 30 to 59
        for (seconds, is_right) in [(-1, false), (0, true), (29, true), (59, true), (89, true), (90, false)] {
            let found = totp.verify(secret, "94 287 082", 0, at(seconds));
            assert_eq!(found, is_right.then_some(1), "{seconds}");
        }
        assert_eq!(totp.verify(secret, "94287082", 1, at(59)), None, "used");
        assert_eq!(totp.verify(secret, "９4287-082", 0, at(59)), Some(1), "typed in full width");
        for wrong in ["", "9428708", "942870820", "94287083", "9428708x"] {
            assert_eq!(totp.verify(secret, wrong, 0, at(59)), None, "{wrong}");
        }
    }

    #[test]
    fn secrets_are_base32() {
        // RFC 4648, section 10
        let vectors = [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
        ];
        for (plain, text) in vectors {
            assert_eq!(base32(plain.as_bytes()), text);
        }
    }

    #[test]
    fn an_address_names_issuer_and_account() {
        let address = totp(Algorithm::Sha256).address(b"foobar", "Ink & Quill", "ann@example.com");
        assert_eq!(
            address,
            "otpauth://totp/Ink%20%26%20Quill:ann%40example.com?secret=MZXW6YTBOI&issuer=Ink%20%26%20Quill\
             &algorithm=SHA256&digits=8&period=30"
        );
        let address = totp(Algorithm::Sha256).address(b"foobar", "Contoso: Test", "a:b");
        assert!(address.starts_with("otpauth://totp/Contoso%20Test:ab?"), "{address}");
    }
}
