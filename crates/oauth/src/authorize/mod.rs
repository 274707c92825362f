//! The authorization request (RFC 6749, section 4.1.1; OpenID Connect Core 1.0, section 3.1.2): parsing, validation
//! for a client app, and the form of the response.
//!
//! A request is validated in three stages. [`ResponseTarget`](crate::ResponseTarget) has the client app and the redirect
//! URI: errors in them are shown on an error page, because the redirect URI is not trusted yet. After the caller has
//! verified both, [`AuthorizationRequest`](crate::AuthorizationRequest) parses the other parameters and
//! [`check_request`](crate::check_request) validates them: errors are sent by redirect, in the response mode and with the
//! state of the first stage.

pub mod acr;
pub mod check;
pub mod claims_request;
pub mod prompt;
pub mod request;
pub mod request_object;
pub mod response;
pub mod response_mode;
pub mod response_target;
pub mod response_type;
