//! Requests to event receivers, as operations and jobs hand them to the sender.

use std::{pin::Pin, sync::Arc};

use chancery_fetch::{OutboundDisabled, Permission};
use uuid::Uuid;

/// A request that delivers an event: a signed POST.
pub struct WebhookRequest {
    /// The event subscription.
    pub subscription: Uuid,
    /// The URL.
    pub url: String,
    /// Its headers, in addition to those of every request.
    pub headers: Vec<(String, String)>,
    /// The envelope.
    pub body: String,
}

/// The outcome of a delivery attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookOutcome {
    /// The status of the answer.
    pub status: Option<u16>,
    /// Seconds after which the receiver wants a retry.
    pub retry_after: Option<i64>,
    /// Why there was no answer, for people: never with content of the answer.
    pub failure: Option<String>,
    /// How long it took, in ms.
    pub duration: i64,
}

impl From<OutboundDisabled> for WebhookOutcome {
    /// Nothing was sent.
    fn from(quiet: OutboundDisabled) -> Self {
        Self { failure: Some(quiet.to_string()), ..Self::default() }
    }
}

impl WebhookOutcome {
    /// Whether the event was delivered.
    pub fn is_delivered(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// The reason of a failed delivery, for people.
    pub fn reason(&self) -> Option<String> {
        match self.status {
            _ if self.is_delivered() => None,
            Some(status) => Some(format!("the receiver answered {status}")),
            None => self.failure.clone(),
        }
    }
}

/// Sends a request, within the networks that the operator allows, and its own bounds of size and time.
pub type SendWebhook = Arc<
    dyn Fn(Permission, WebhookRequest) -> Pin<Box<dyn Future<Output = WebhookOutcome> + Send>> + Send + Sync,
>;
