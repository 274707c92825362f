//! Answers and their bodies.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use chancery_resource::{Part, Problem};
use http::{HeaderName, HeaderValue, Response, StatusCode, header, request::Parts};
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use super::{
    base_path::BasePath,
    coding::{Coding, Effort, Encoder},
    peer::trace_of,
};

/// The largest chunk of an answer that is passed to the connection at once, in bytes.
const CHUNK: usize = 64 << 10;

/// The body of an answer: complete, or streamed.
pub enum AnswerBody {
    /// Complete.
    Whole(Option<Bytes>),
    /// Parts, as an operation produces them.
    Parts(mpsc::Receiver<Part>),
    /// Either, compressed.
    EncodedBody(Box<EncodedBody>),
}

/// A body that is streamed through an encoder.
pub struct EncodedBody {
    inner: AnswerBody,
    /// `None` when the body has ended.
    encoder: Option<Encoder>,
}

impl EncodedBody {
    /// A body in this coding; the body itself if there is no encoder.
    pub fn of(inner: AnswerBody, coding: Coding) -> Result<Self, AnswerBody> {
        match Encoder::new(coding, Effort::Low) {
            Some(encoder) => Ok(Self { inner, encoder: Some(encoder) }),
            None => Err(inner),
        }
    }

    /// The next frame.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Interrupted>>> {
        loop {
            let Some(mut encoder) = self.encoder.take() else { return Poll::Ready(None) };
            match Pin::new(&mut self.inner).poll_frame(context) {
                Poll::Pending => {
                    self.encoder = Some(encoder);
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => {
                    let compressed = frame.data_ref().map_or(Ok(Vec::new()), |data| encoder.take(data));
                    self.encoder = Some(encoder);
                    match compressed {
                        Ok(bytes) if bytes.is_empty() => {}
                        Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes.into())))),
                        Err(_) => return Poll::Ready(Some(Err(Interrupted))),
                    }
                }
                Poll::Ready(None) => {
                    let last =
                        encoder.finish().map(|encoded| Frame::data(encoded.into())).map_err(|_| Interrupted);
                    return Poll::Ready(Some(last));
                }
                Poll::Ready(Some(Err(broken))) => return Poll::Ready(Some(Err(broken))),
            }
        }
    }

    /// Whether no frame follows.
    pub const fn is_over(&self) -> bool {
        self.encoder.is_none()
    }
}

/// The list ended early; the reader sees a broken connection.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the answer could not be finished")
    }
}

impl std::error::Error for Interrupted {}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Interrupted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Interrupted>>> {
        match &mut *self {
            Self::Whole(whole) => Poll::Ready(whole.take().map(|mut bytes| {
                // in chunks, so that a reader that takes nothing is noticed
                let chunk = bytes.split_to(bytes.len().min(CHUNK));
                *whole = (!bytes.is_empty()).then_some(bytes);
                Ok(Frame::data(chunk))
            })),
            Self::EncodedBody(encoded) => encoded.poll(context),
            Self::Parts(parts) => parts.poll_recv(context).map(|part| match part {
                Some(Part::Bytes(bytes)) => Some(Ok(Frame::data(bytes.into()))),
                Some(Part::End) => {
                    *self = Self::Whole(None);
                    None
                }
                Some(Part::Head(..)) | None => Some(Err(Interrupted)),
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Parts(_) => false,
            Self::EncodedBody(encoded) => encoded.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Parts(_) | Self::EncodedBody(_) => SizeHint::default(),
        }
    }
}

/// An answer with a body of this type.
pub fn respond(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Response<AnswerBody> {
    let body: Bytes = body.into();
    let mut response = Response::new(AnswerBody::Whole((!body.is_empty()).then_some(body)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if !response.body().is_end_stream() {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    response
}

/// An answer whose chunks are streamed as they are produced.
pub fn stream(status: u16, parts: mpsc::Receiver<Part>) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Parts(parts));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Leaves the body out, and states its length where that is known: the answer to HEAD (RFC 9110, section 9.3.2).
pub fn leave_body_out(response: &mut Response<AnswerBody>) {
    if let Some(length) = response.body().size_hint().exact().filter(|length| *length > 0) {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
    *response.body_mut() = AnswerBody::Whole(None);
}

/// The answer to an unsupported transfer coding. The end of the body is unknown, so the connection ends with it.
pub fn unread_coding() -> Response<AnswerBody> {
    let mut response = respond(501, "text/plain", "No transfer coding but chunked is read.");
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Adds headers; a value that is not valid in a header is left out.
pub fn add_headers(response: &mut Response<AnswerBody>, headers: Vec<(&'static str, String)>) {
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().append(HeaderName::from_static(name), value);
        }
    }
}

/// Adds the headers of every answer: no sniffing of its type, no caching unless it says otherwise.
pub fn protect(response: &mut Response<AnswerBody>) {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// The body of a problem (RFC 9457), with the trace id that the log lines of the request carry.
pub fn problem_body(problem: &Problem, parts: &Parts) -> Vec<u8> {
    let base = parts.extensions.get::<BasePath>().map_or("", BasePath::as_str);
    problem.body(&format!("{base}{}", parts.uri.path()), &trace_of(parts).to_string())
}

/// A problem as an answer.
pub fn problem(problem: Problem, parts: &Parts) -> Response<AnswerBody> {
    let body = problem_body(&problem, parts);
    let mut response = respond(problem.status(), "application/problem+json", body);
    add_headers(&mut response, problem.headers);
    response
}
