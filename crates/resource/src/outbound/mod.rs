//! Requests to servers that an administrator configures, as operations hand them to the sender.

pub mod metadata;
pub mod text_message;
pub mod webhook;

use std::{pin::Pin, sync::Arc};

/// A request to such a server: a GET, or a POST of a form. `Debug` does not print it.
#[derive(Default)]
pub struct OutboundRequest {
    /// The URL.
    pub url: String,
    /// The form that is posted.
    pub form: Option<String>,
    /// The header `Authorization`.
    pub authorization: Option<String>,
}

impl std::fmt::Debug for OutboundRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OutboundRequest(hidden)")
    }
}

/// The status and the body of the answer (a GET has a body at status 200 alone), or the reason of the failure,
/// for people.
pub type OutboundResponse = Result<(u16, Vec<u8>), String>;

/// Sends a request, within the networks that the operator allows, and its own bounds of size and time.
pub type SendOutbound =
    Arc<dyn Fn(OutboundRequest) -> Pin<Box<dyn Future<Output = OutboundResponse> + Send>> + Send + Sync>;
