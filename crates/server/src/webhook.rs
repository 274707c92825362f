//! Sends events to receivers, within the networks that the operator allows.

use std::{sync::Arc, time::Instant};

use chancery_fetch::{Connections, Failure, Limits, Networks, Permission, Policy, Pool, PostBody, deliver};
use chancery_resource::{SendWebhook, WebhookOutcome, WebhookRequest};
use chancery_webhook::LONGEST_PAUSE;

/// The bounds of a delivery: of the answer nothing is needed.
const LIMITS: Limits = Limits { bytes: 4 << 10, seconds: 15 };
/// The media type of an event (CloudEvents 1.0, HTTP binding, section 3.2).
const EVENT: &str = "application/cloudevents+json";

/// The sender of events: https to the public internet and to these networks; http to this machine, if they hold it.
pub fn sender(networks: Networks) -> SendWebhook {
    let shared = Arc::new((Policy::within(networks), Connections::default()));
    Arc::new(move |permission, request| {
        let shared = Arc::clone(&shared);
        Box::pin(async move { send(permission, request, &shared.0, &shared.1).await })
    })
}

async fn send(
    permission: Permission,
    request: WebhookRequest,
    policy: &Policy,
    connections: &Connections,
) -> WebhookOutcome {
    let body = PostBody { headers: request.headers, ..PostBody::of(EVENT, request.body) };
    let began = Instant::now();
    let pool = Pool { connections, owner: request.subscription.as_u128() };
    let answered = deliver(permission, &request.url, body, LIMITS, policy, pool).await;
    let duration = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    match answered {
        Ok((status, retry_after)) => {
            let retry_after = retry_after.filter(|_| matches!(status, 429 | 503));
            let retry_after = retry_after.map(|seconds| seconds.clamp(0, LONGEST_PAUSE / 1000));
            WebhookOutcome { status: Some(status), retry_after, failure: None, duration }
        }
        Err(failure) => {
            WebhookOutcome { failure: Some(reason(failure)), duration, ..WebhookOutcome::default() }
        }
    }
}

/// The reason why a receiver was not reached, for an administrator.
fn reason(failure: Failure) -> String {
    match failure {
        Failure::Address => {
            "the receiver is not on the public internet: CHANCERY_EVENT_NETWORKS names networks to allow"
                .to_owned()
        }
        other => other.to_string().replace("the host", "the receiver"),
    }
}
