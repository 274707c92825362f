//! Texts for SMS gateways, as operations hand them to what sends them.

use std::{pin::Pin, sync::Arc};

use chancery_fetch::Permission;
use chancery_record::Secret;

/// A text for an SMS gateway.
#[derive(Clone)]
pub struct TextMessage {
    /// The gateway.
    pub url: String,
    /// What the gateway knows this server by.
    pub token: Option<Secret>,
    /// What it is sent, as JSON.
    pub body: Secret,
}

/// Hands a text to its gateway, within the networks that the operator allows, and its own bounds of size and time; whether it
/// was taken. Why it was not is logged.
pub type SendText =
    Arc<dyn Fn(Permission, TextMessage) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;
