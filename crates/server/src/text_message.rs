//! Sends texts to SMS gateways, within the networks that the operator allows.

use std::{sync::Arc, time::Duration};

use chancery_fetch::{Limits, Networks, Permission, Policy, PostBody, post};
use chancery_resource::{SendText, TextMessage};

/// The timeout of a gateway, and the bytes of its answer that are read.
const LIMITS: Limits = Limits { seconds: 5, bytes: 16 << 10 };
/// How often a text is offered to a gateway.
const TRIES: u32 = 3;
/// The interval between two tries.
const REST: Duration = Duration::from_millis(200);

/// The sender of texts: https to the public internet and to these networks; http to this machine, if they hold it.
pub fn sender(networks: Networks) -> SendText {
    let policy = Arc::new(Policy::within(networks));
    Arc::new(move |permission, text| {
        let policy = Arc::clone(&policy);
        Box::pin(async move { send(permission, &text, &policy).await })
    })
}

async fn send(permission: Permission, text: &TextMessage, policy: &Policy) -> bool {
    let body = String::from_utf8(text.body.expose().to_vec()).unwrap_or_default();
    for attempt in 0..TRIES {
        if attempt > 0 {
            tokio::time::sleep(REST).await;
        }
        let body = PostBody { bearer: text.token.clone(), ..PostBody::json(body.clone()) };
        match post(permission, &text.url, body, LIMITS, policy).await {
            Ok(status) if (200..300).contains(&status) => return true,
            Ok(status) => {
                tracing::warn!(instance = %text.instance, status, "an SMS gateway refused a text message");
            }
            Err(failure) => {
                tracing::warn!(instance = %text.instance, %failure, "an SMS gateway cannot be reached");
            }
        }
    }
    false
}
