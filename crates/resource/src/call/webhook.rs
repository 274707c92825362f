//! Requests to receivers of events, as operations and jobs hand them to what sends them.

use std::{pin::Pin, sync::Arc};

use chancery_fetch::{Permission, Quiet};
use uuid::Uuid;

/// A request that delivers an event: a signed POST.
pub struct WebhookRequest {
    /// The subscription that it is of.
    pub subscription: Uuid,
    /// Where to.
    pub url: String,
    /// Its headers, beside those of every request.
    pub headers: Vec<(String, String)>,
    /// The envelope.
    pub body: String,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookOutcome {
    /// The status of the answer.
    pub status: Option<u16>,
    /// After how many seconds the receiver wants to be asked again.
    pub retry_after: Option<i64>,
    /// Why there was no answer, for people: never with what answered.
    pub failure: Option<String>,
    /// How long it took, in ms.
    pub duration: i64,
}

impl From<Quiet> for WebhookOutcome {
    /// Nothing was sent.
    fn from(quiet: Quiet) -> Self {
        Self { failure: Some(quiet.to_string()), ..Self::default() }
    }
}

impl WebhookOutcome {
    /// Whether the event was delivered.
    pub fn is_delivered(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// Why it was not, for people.
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
