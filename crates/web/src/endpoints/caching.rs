//! Answers that may be cached.

use chancery_resource::{Preconditions, Problem, etag};
use http::{HeaderValue, Response, header, request::Parts};

use crate::message::{
    answer::{AnswerBody, respond},
    request::text,
};

/// A document that may be cached for five minutes, and is revalidated by its tag then.
pub(super) fn cached_for_minutes(
    parts: &Parts,
    media_type: &'static str,
    document: String,
) -> Result<Response<AnswerBody>, Problem> {
    let tag = etag(document.as_bytes());
    let if_none_match = text(&parts.headers, header::IF_NONE_MATCH).map(str::to_owned);
    let status = Preconditions { if_match: None, if_none_match }.evaluate(&tag, None)?;
    let mut response = respond(status, media_type, if status == 304 { String::new() } else { document });
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

/// An answer that is revalidated each time.
pub(super) fn revalidated(mut response: Response<AnswerBody>) -> Response<AnswerBody> {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
