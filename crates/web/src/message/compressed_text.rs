//! A text that is compressed once for all callers.

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};

use super::{
    answer::{AnswerBody, respond},
    coding::{Coding, Effort, SMALL},
};

/// Longer texts, such as descriptions of the interface, take a second at high effort, in bytes.
const LONG: usize = 128 << 10;

/// A text that is the same for all callers, cached in each coding requested so far.
pub struct CompressedText {
    content_type: &'static str,
    plain: Bytes,
    encoded: [OnceLock<Option<Bytes>>; Coding::ALL.len()],
}

impl CompressedText {
    /// The text, which is compressed on the first request.
    pub fn new(content_type: &'static str, plain: Bytes) -> Self {
        Self { content_type, plain, encoded: Default::default() }
    }

    /// The text as an answer, in the coding that the caller prefers.
    pub fn answer(&self, headers: &HeaderMap) -> Response<AnswerBody> {
        let preferred = Coding::preferred(headers).filter(|_| self.plain.len() >= SMALL);
        let cached =
            Coding::ALL.into_iter().zip(&self.encoded).find(|(coding, _)| Some(*coding) == preferred);
        let effort = if self.plain.len() > LONG { Effort::Low } else { Effort::High };
        let encoded = cached.and_then(|(coding, cached)| {
            cached.get_or_init(|| coding.encode(&self.plain, effort)).clone().map(|encoded| (coding, encoded))
        });
        let mut response = match encoded {
            Some((coding, encoded)) => {
                let mut response = respond(200, self.content_type, encoded);
                coding.set_headers(response.headers_mut());
                response
            }
            None => respond(200, self.content_type, self.plain.clone()),
        };
        response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        response
    }
}
