//! Text messages for SMS gateways, as operations hand them to the sender.

use std::{pin::Pin, sync::Arc};

use chancery_fetch::Permission;
use chancery_record::Secret;
use uuid::Uuid;

/// A text message for an SMS gateway.
#[derive(Clone)]
pub struct TextMessage {
    /// The MFA instance of the gateway, for the log.
    pub instance: Uuid,
    /// The gateway.
    pub url: String,
    /// The credential of this server at the gateway.
    pub token: Option<Secret>,
    /// The request body, as JSON.
    pub body: Secret,
}

/// Sends a text message to its gateway, within the networks that the operator allows and with bounds of its own on size and time.
/// Returns whether the gateway accepted it; if not, the log says why.
pub type SendText =
    Arc<dyn Fn(Permission, TextMessage) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;
