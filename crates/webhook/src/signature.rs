//! Signed requests (Standard Webhooks 1.0): `webhook-id`, `webhook-timestamp` and `webhook-signature` over both and the body.

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::{Mismatch, Timestamp, Value, pairs_of};
use chancery_resource::{MasterKey, StoredRow, WebhookRequest, open_secret};
use uuid::Uuid;

use crate::{
    secret::key_of,
    subscription::{EventSubscription, TABLE},
};

/// How long a former secret signs besides the new one, in ms.
pub const SECRET_LIFE: i64 = 24 * 3_600_000;

/// The most former secrets that sign besides the new one.
pub const MAX_FORMER: usize = 3;

/// The former secrets of a subscription that still sign, each with the moment up to which it does, the newest last.
///
/// # Errors
/// The row is of another record.
pub fn former_secrets(
    master: &MasterKey,
    row: &StoredRow,
    now: Timestamp,
) -> Result<Vec<(String, Timestamp)>, Mismatch> {
    let key = Value::Id(row.get(EventSubscription::ID)?.0);
    let column = EventSubscription::FORMER_SECRET.column();
    let stored = row.text(EventSubscription::FORMER_SECRET);
    let stored = stored.and_then(|text| open_secret(master, TABLE, column, &key, text)).unwrap_or_default();
    // earlier releases stored one secret, and its end in a field of its own
    let end_of_one = row.get(EventSubscription::FORMER_UNTIL)?.unwrap_or(Timestamp(0));
    let former = stored.split_ascii_whitespace().map(|one| match one.split_once('@') {
        Some((secret, until)) => (secret.to_owned(), Timestamp(until.parse().unwrap_or(0))),
        None => (one.to_owned(), end_of_one),
    });
    Ok(former.filter(|(_, until)| until.0 > now.0).collect())
}

/// The stored form of former secrets.
pub fn former_text(former: &[(String, Timestamp)]) -> String {
    let all: Vec<String> = former.iter().map(|(secret, until)| format!("{secret}@{}", until.0)).collect();
    all.join(" ")
}

/// The signer of a subscription's requests: opened once for many of them. It is not printed.
pub struct Signing {
    subscription: Uuid,
    url: String,
    keys: Vec<hmac::Key>,
    headers: Vec<(String, String)>,
    seconds: i64,
}

impl Signing {
    /// The current signer of a subscription's requests.
    ///
    /// # Errors
    /// The row is of another record.
    pub fn of(master: &MasterKey, row: &StoredRow, now: Timestamp) -> Result<Self, Mismatch> {
        let subscription = row.get(EventSubscription::ID)?.0;
        let key = Value::Id(subscription);
        let open = |column: &str, text: Option<&str>| open_secret(master, TABLE, column, &key, text?);
        let secret = open("signing_secret", row.text(EventSubscription::SIGNING_SECRET));
        let former = former_secrets(master, row, now)?;
        let secrets = secret.iter().chain(former.iter().map(|(secret, _)| secret));
        let fixed = open("sealed_headers", row.text(EventSubscription::SEALED_HEADERS));
        let fixed = fixed.as_deref().and_then(pairs_of).unwrap_or_default();
        Ok(Self {
            subscription,
            url: row.text(EventSubscription::URL).unwrap_or_default().to_owned(),
            keys: secrets.filter_map(|secret| key_of(secret)).collect(),
            headers: fixed.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
            seconds: now.0.div_euclid(1000),
        })
    }

    /// A request that delivers an event to the subscription's receiver.
    pub fn request(&self, id: &str, body: String) -> WebhookRequest {
        let signed = format!("{id}.{}.{body}", self.seconds);
        let signatures: Vec<String> = self.keys.iter().map(|key| sign(key, &signed)).collect();
        let mut headers = vec![
            ("webhook-id".to_owned(), id.to_owned()),
            ("webhook-timestamp".to_owned(), self.seconds.to_string()),
            ("webhook-signature".to_owned(), signatures.join(" ")),
        ];
        headers.extend_from_slice(&self.headers);
        WebhookRequest { subscription: self.subscription, url: self.url.clone(), headers, body }
    }
}

/// The signature by a key.
fn sign(key: &hmac::Key, text: &str) -> String {
    format!("v1,{}", BASE64_STANDARD.encode(hmac::sign(key, text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::sign;
    use crate::secret::{key_of, new_secret};

    /// Vectors by another implementation: `standardwebhooks` 1.1.0.
    #[test]
    fn signatures_are_those_that_foreign_receivers_expect() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let text = "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}";
        let signature = sign(&key_of(secret).unwrap(), text);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(key_of("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").is_none());
        assert!(new_secret() != new_secret() && key_of(&new_secret()).is_some());
    }
}
