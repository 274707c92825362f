//! Signed requests (Standard Webhooks 1.0): `webhook-id`, `webhook-timestamp` and `webhook-signature` over both and the body.

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::{Mismatch, Timestamp, Value, pairs_of};
use chancery_resource::{MasterKey, StoredRow, WebhookRequest, open_secret, random};

use crate::subscription::{EventSubscription, TABLE};

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// How long a former secret signs beside the new one, in ms.
pub const SECRET_LIFE: i64 = 24 * 3_600_000;

/// A new secret: 32 random bytes.
pub fn new_secret() -> String {
    format!("{PREFIX}{}", BASE64_STANDARD.encode(random::<32>()))
}

/// A request that delivers an event to a subscription's receiver.
///
/// # Errors
/// The row is of another record.
pub fn request(
    master: &MasterKey,
    row: &StoredRow,
    (id, body): (&str, String),
    now: Timestamp,
) -> Result<WebhookRequest, Mismatch> {
    let key = Value::Id(row.get(EventSubscription::ID)?.0);
    let open = |column: &str, text: Option<&str>| open_secret(master, TABLE, column, &key, text?);
    let secret = open("signing_secret", row.text(EventSubscription::SIGNING_SECRET));
    let is_former_valid = row.get(EventSubscription::FORMER_UNTIL)?.is_some_and(|until| until.0 > now.0);
    let former =
        open("former_secret", row.text(EventSubscription::FORMER_SECRET)).filter(|_| is_former_valid);
    let seconds = now.0.div_euclid(1000);
    let signed = format!("{id}.{seconds}.{body}");
    let signatures: Vec<String> =
        secret.iter().chain(&former).filter_map(|secret| sign(secret, &signed)).collect();
    let mut headers = vec![
        ("webhook-id".to_owned(), id.to_owned()),
        ("webhook-timestamp".to_owned(), seconds.to_string()),
        ("webhook-signature".to_owned(), signatures.join(" ")),
    ];
    let fixed = open("sealed_headers", row.text(EventSubscription::SEALED_HEADERS));
    let fixed = fixed.as_deref().and_then(pairs_of).unwrap_or_default();
    headers.extend(fixed.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let url = row.text(EventSubscription::URL).unwrap_or_default().to_owned();
    Ok(WebhookRequest { url, headers, body })
}

/// The signature by a secret; none where the secret is none.
fn sign(secret: &str, text: &str) -> Option<String> {
    let key = BASE64_STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()?;
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), text.as_bytes());
    Some(format!("v1,{}", BASE64_STANDARD.encode(tag)))
}

#[cfg(test)]
mod tests {
    use super::{new_secret, sign};

    /// Vectors by another implementation: `standardwebhooks` 1.1.0.
    #[test]
    fn signatures_are_those_that_foreign_receivers_expect() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let text = "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}";
        assert_eq!(sign(secret, text).as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
        assert_eq!(sign("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", text), None);
        assert!(new_secret() != new_secret() && sign(&new_secret(), text).is_some());
    }
}
