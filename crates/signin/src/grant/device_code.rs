//! The codes of a device authorization (RFC 8628): the device code, and the user code that a person types.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_credential::typed::read_code;
use chancery_resource::{MasterKey, random};
use uuid::Uuid;

/// The alphabet of user codes: without vowels, so that no words are formed (section 6.1).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// The length of a user code.
const LENGTH: usize = 8;

/// The digest under which a device code is stored.
pub fn digest(master: &MasterKey, code: &str) -> Vec<u8> {
    master.digest("device-code", code.as_bytes())
}

/// The digest of a typed user code: in any case, with or without the dash.
pub fn user_digest(master: &MasterKey, issuing: Option<Uuid>, typed: &str) -> Vec<u8> {
    let letters: String = read_code(typed).chars().filter(char::is_ascii_alphabetic).collect();
    let issuing = issuing.map_or_else(String::new, |id| id.to_string());
    master.digest("device-user-code", format!("{issuing}/{letters}").as_bytes())
}

/// The associated data of a device's sealed grant.
pub fn associated_data(digest: &[u8]) -> String {
    format!("device_authorization/{}", BASE64_URL_SAFE_NO_PAD.encode(digest))
}

/// A new user code. Byte values beyond a multiple of the alphabet's size are skipped, so that all letters are equally
/// likely.
pub fn user_code() -> String {
    let mut code = String::new();
    while code.len() < LENGTH {
        for byte in random::<16>() {
            let even = usize::from(byte) < 256 - 256 % LETTERS.len();
            if let Some(letter) =
                LETTERS.get(usize::from(byte) % LETTERS.len()).filter(|_| even && code.len() < LENGTH)
            {
                code.push(char::from(*letter));
            }
        }
    }
    code
}

/// A user code as it is shown.
pub fn with_dash(code: &str) -> String {
    let (first, second) = code.split_at_checked(LENGTH / 2).unwrap_or((code, ""));
    format!("{first}-{second}")
}

#[cfg(test)]
mod tests {
    use chancery_resource::MasterKey;
    use uuid::Uuid;

    use super::{LETTERS, user_code, user_digest, with_dash};

    #[test]
    fn a_user_code_is_accepted_in_any_form() {
        let code = user_code();
        assert_eq!(code.len(), 8);
        assert!(code.bytes().all(|letter| LETTERS.contains(&letter)));
        let master = MasterKey::generate();
        let digest = |typed: &str| user_digest(&master, None, typed);
        let shown = with_dash(&code);
        assert_eq!((shown.len(), digest(&shown)), (9, digest(&code)));
        assert_eq!(digest(&format!(" {} ", shown.to_lowercase())), digest(&code));
        let wide: String =
            shown.chars().map(|letter| char::from_u32(u32::from(letter) + 0xFEE0).unwrap()).collect();
        assert_eq!(digest(&wide), digest(&code));
        assert_ne!(user_digest(&master, Some(Uuid::nil()), &code), digest(&code), "another issuer's");
    }
}
