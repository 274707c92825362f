//! Providers without ID tokens: Facebook, Twitter, and AD FS without OpenID Connect.

use aws_lc_rs::{
    digest::{SHA256, digest},
    hmac,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{Behaviour, base64, fields, with};

/// The response at these paths; `None` at others.
pub fn answer(
    behaviour: &Behaviour,
    (path, query): (&str, &str),
    head: &str,
    body: &str,
) -> Option<(u16, Value)> {
    match path {
        "/oauth/access_token" | "/2/oauth2/token" | "/adfs/oauth2/token" => {
            Some(redeem(behaviour, path, head, body))
        }
        "/me" => {
            let proof = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"quiet"), b"access");
            let proof_sent = fields(query)["appsecret_proof"].clone();
            let proof_sent: Vec<u8> = (0..proof_sent.len() / 2)
                .map(|at| u8::from_str_radix(&proof_sent[2 * at..2 * at + 2], 16).unwrap())
                .collect();
            assert_eq!(proof_sent, proof.as_ref());
            assert!(fields(query)["fields"].starts_with("id,name"), "{query}");
            let profile = json!({
                "id": "1017", "name": "Ada Lovelace", "first_name": "Ada", "last_name": "Lovelace",
                "email": "ada@example.com", "picture": { "data": { "url": "https://pictures.example/ada" } },
            });
            Some((200, with(profile, &behaviour.profile)))
        }
        "/2/users/me" => {
            assert!(head.to_lowercase().contains("authorization: bearer access"), "{head}");
            let profile = json!({
                "id": "1017", "name": "Ada Lovelace", "username": "ada",
                "profile_image_url": "https://pictures.example/ada",
            });
            Some((200, json!({ "data": with(profile, &behaviour.profile) })))
        }
        _ => None,
    }
}

fn redeem(behaviour: &Behaviour, path: &str, head: &str, body: &str) -> (u16, Value) {
    let form = fields(body);
    let challenge = base64(digest(&SHA256, form["code_verifier"].as_bytes()));
    assert_eq!(behaviour.request.get("code_challenge"), Some(&challenge));
    assert_eq!(behaviour.request.get("redirect_uri"), form.get("redirect_uri"));
    let is_basic = head.contains(&format!("Basic {}", BASE64_STANDARD.encode("us:quiet")));
    let is_posted = form.get("client_id").is_some_and(|id| id == "us")
        && form.get("client_secret").is_some_and(|secret| secret == "quiet");
    if !(if path.starts_with("/2/") { is_basic } else { is_posted }) {
        return (401, json!({ "error": "invalid_client" }));
    }
    if form["code"] != "the code" {
        return (
            400,
            json!({ "error": { "message": "This authorization code has been used.", "code": 100 } }),
        );
    }
    let token = behaviour.access_token.as_deref().unwrap_or("access");
    (200, json!({ "access_token": token, "token_type": "bearer", "expires_in": 3600 }))
}
