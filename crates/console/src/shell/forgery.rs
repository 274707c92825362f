//! What proves that a form is of a page of this server's, and of this session.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Secret, origin_of};
use chancery_resource::{MasterKey, random};
use http::{HeaderMap, header};

/// What a page's forms send along: a digest of the session under a mask that is another on every page, because pages are
/// compressed.
pub fn token(master: &MasterKey, session: &[u8]) -> String {
    let mask = random::<32>();
    let masked = xor(&master.digest("console-csrf", session), &mask);
    BASE64_URL_SAFE_NO_PAD.encode([&mask[..], &masked[..]].concat())
}

/// Whether what a form sent is of a page of this session.
pub fn is_ours(master: &MasterKey, session: &[u8], shown: &str) -> bool {
    let shown = BASE64_URL_SAFE_NO_PAD.decode(shown).unwrap_or_default();
    let Some((mask, masked)) = shown.split_at_checked(32) else { return false };
    Secret::new(master.digest("console-csrf", session)).matches(&xor(masked, mask))
}

fn xor(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter().zip(other).map(|(one, other)| one ^ other).collect()
}

/// Whether a form was sent by a page of this server. Where a browser says nothing of the site, its origin decides.
pub fn is_same_origin(headers: &HeaderMap, public_url: &str) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    origin.is_some_and(|origin| origin == origin_of(public_url))
}

#[cfg(test)]
mod tests {
    use chancery_resource::MasterKey;
    use http::{HeaderMap, HeaderValue};

    use super::{is_ours, is_same_origin, token};

    #[test]
    fn a_token_is_of_one_session_and_never_the_same() {
        let master = MasterKey::generate();
        let made = token(&master, b"session");
        assert!(is_ours(&master, b"session", &made));
        assert_ne!(made, token(&master, b"session"));
        assert!(!is_ours(&master, b"another", &made) && !is_ours(&MasterKey::generate(), b"session", &made));
        for wrong in ["", "x", &made[..20], &made[1..], &"A".repeat(86)] {
            assert!(!is_ours(&master, b"session", wrong), "{wrong}");
        }
    }

    #[test]
    fn a_form_comes_from_this_server() {
        let with = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(http::HeaderName::from_static(name), HeaderValue::from_static(value))])
        };
        let url = "https://ID.example:443/base";
        assert!(is_same_origin(&with("sec-fetch-site", "same-origin"), url));
        assert!(!is_same_origin(&with("sec-fetch-site", "same-site"), url));
        assert!(is_same_origin(&with("origin", "https://id.example"), url));
        for other in ["https://id.example.evil", "http://id.example", "null"] {
            assert!(!is_same_origin(&with("origin", other), url), "{other}");
        }
        assert!(!is_same_origin(&HeaderMap::new(), url));
    }
}
