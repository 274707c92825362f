//! The authorization request (RFC 6749, section 4.1.1; OpenID Connect Core 1.0, section 3.1.2): what it says,
//! whether a client app may ask for it, and the form of the answer.
//!
//! A request is judged in three stages. [`Addressing`](crate::Addressing) tells who asks and where an answer
//! would go: what is wrong with it is told on an error page, for an answer by redirect could go to anybody. Once
//! the caller knows client app and redirect URI, [`AuthorizationRequest`](crate::AuthorizationRequest) reads the
//! rest and [`check_request`](crate::check_request) judges it: both refuse by redirect, in the response mode and
//! with the state of the first stage.

pub mod acr;
pub mod addressing;
pub mod answer;
pub mod check;
pub mod claims_request;
pub mod prompt;
pub mod request;
pub mod request_object;
pub mod response_mode;
pub mod response_type;
