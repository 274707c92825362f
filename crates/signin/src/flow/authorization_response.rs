//! The response to an authorization request, delivered as the request asked for it.

use chancery_oauth::{AuthorizationResponse, Delivery, ProtocolError, ResponseMode, ResponseTarget};

use super::response::BrowserResponse;

/// The error response to a request.
pub(crate) fn error_response(
    issuer: &str,
    addressing: &ResponseTarget,
    refusal: ProtocolError,
) -> BrowserResponse {
    BrowserResponse::Refused(
        refusal,
        deliver(addressing, addressing.options.response(issuer).with_error(refusal)).into(),
    )
}

/// The response with a code, if one was requested.
pub(crate) fn success_response(
    issuer: &str,
    addressing: &ResponseTarget,
    code: Option<&str>,
) -> BrowserResponse {
    let answer = addressing.options.response(issuer);
    deliver(
        addressing,
        match code {
            Some(code) => answer.with("code", code),
            None => answer,
        },
    )
}

fn deliver(addressing: &ResponseTarget, answer: AuthorizationResponse) -> BrowserResponse {
    // a request for a signed response is refused in the same mode without a signature
    let mode = ResponseMode { is_signed: false, ..addressing.options.mode };
    match answer.deliver(&addressing.redirect_uri, mode, |_| Ok::<_, std::convert::Infallible>(String::new()))
    {
        Ok(Delivery::Redirect(address)) => BrowserResponse::ToClient(address),
        Ok(Delivery::Form { action, fields }) => BrowserResponse::Post { action, fields, session: None },
        Err(never) => match never {},
    }
}
