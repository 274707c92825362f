//! Answers that scripts of any site may read (the Fetch standard).

use http::{HeaderValue, Response, header};

use crate::message::answer::{AnswerBody, respond};

/// Lets scripts of any site read an answer, without the browser's cookies.
pub fn open_to_scripts(mut response: Response<AnswerBody>) -> Response<AnswerBody> {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let exposed = HeaderValue::from_static("DPoP-Nonce, WWW-Authenticate");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    response
}

/// The answer to a preflight request of a browser (the Fetch standard, section 3.2).
pub(super) fn preflight() -> Response<AnswerBody> {
    let mut response = respond(204, "text/plain", "");
    let headers = response.headers_mut();
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Content-Type, DPoP"),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
