//! CSRF protection: a form belongs to a page of this server and to this session.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Secret, origin_of};
use chancery_resource::{MasterKey, random};
use http::{HeaderMap, header};

/// The CSRF token of a page: a digest of the session under a random mask, which differs on every page because pages are
/// compressed (BREACH).
pub fn token(master: &MasterKey, session: &[u8]) -> String {
    let mask = random::<32>();
    let masked = xor(&master.digest("console-csrf", session), &mask);
    BASE64_URL_SAFE_NO_PAD.encode([&mask[..], &masked[..]].concat())
}

/// Whether a submitted CSRF token belongs to this session.
pub fn is_ours(master: &MasterKey, session: &[u8], shown: &str) -> bool {
    let shown = BASE64_URL_SAFE_NO_PAD.decode(shown).unwrap_or_default();
    let Some((mask, masked)) = shown.split_at_checked(32) else { return false };
    Secret::new(master.digest("console-csrf", session)).matches(&xor(masked, mask))
}

fn xor(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter().zip(other).map(|(one, other)| one ^ other).collect()
}

/// Whether a page of this server sent the form. If the browser sends no `Sec-Fetch-Site`, the `Origin` decides.
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
    fn a_csrf_token_belongs_to_one_session_and_is_unique() {
        let master = MasterKey::generate();
        let issued = token(&master, b"session");
        assert!(is_ours(&master, b"session", &issued));
        assert_ne!(issued, token(&master, b"session"));
        assert!(
            !is_ours(&master, b"another", &issued) && !is_ours(&MasterKey::generate(), b"session", &issued)
        );
        for wrong in ["", "x", &issued[..20], &issued[1..], &"A".repeat(86)] {
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
