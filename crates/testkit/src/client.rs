//! A caller of a server, and the answers that it gets.

use std::sync::PoisonError;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy, client::legacy::connect::HttpConnector, rt::TokioExecutor};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    catalogue::{Call, Calls},
    translations,
};

/// A caller of a server, with or without a token. Clones share connections.
#[derive(Clone)]
pub struct Client {
    http: legacy::Client<HttpConnector, Full<Bytes>>,
    base: String,
    token: Option<String>,
    /// The writes that succeeded.
    pub(crate) calls: Calls,
}

/// Server-sent events, as they arrive.
pub struct EventStream {
    body: hyper::body::Incoming,
    read: String,
}

/// A server-sent event.
#[derive(Debug, PartialEq, Eq)]
pub struct StreamedEvent {
    /// The `Last-Event-ID` of a reader that reconnects.
    pub id: String,
    /// Its type.
    pub event: String,
    /// Its data.
    pub data: String,
}

impl EventStream {
    /// The next event; `None` when the server ended the stream.
    pub async fn next(&mut self) -> Option<StreamedEvent> {
        loop {
            if let Some(end) = self.read.find("\n\n") {
                let block = self.read.get(..end).unwrap_or_default();
                let line = |name: &str| {
                    let field = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                    field.unwrap_or_default().to_owned()
                };
                let event = StreamedEvent { id: line("id"), event: line("event"), data: line("data") };
                self.read.drain(..end + 2);
                // without data it only carries the cursor
                if !event.data.is_empty() {
                    return Some(event);
                }
                continue;
            }
            let part = self.body.frame().await?.ok()?.into_data().ok()?;
            self.read.push_str(&String::from_utf8_lossy(&part));
        }
    }
}

/// A complete answer.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub bytes: Bytes,
    request: String,
}

impl Client {
    /// A caller without a token.
    pub fn anonymous(base: &str) -> Self {
        let http = legacy::Client::builder(TokioExecutor::new()).build_http();
        Self { http, base: base.to_owned(), token: None, calls: Calls::default() }
    }

    /// The same caller with a token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The caller's token, if it has one.
    pub fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    /// Sends this form to the token endpoint; returns the endpoint's answer.
    pub async fn ask_for_token(&self, form: &str) -> Answer {
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        self.send(Method::POST, "/connect/token", &headers, form.as_bytes().to_vec()).await
    }

    /// Sends a request to a path of the server, or to a full URL.
    ///
    /// # Panics
    /// When the server does not answer.
    #[expect(clippy::expect_used, reason = "a test cannot go on without an answer")]
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        self.try_send(method, path, headers, body).await.expect("the server answers")
    }

    /// Sends a request; `None` when the connection breaks before the answer is complete.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Option<Answer> {
        let (parts, body) = self.request(&method, path, headers, body).await?;
        let bytes = body.collect().await.ok()?.to_bytes();
        translations::check(path, &parts.headers, &bytes);
        Some(Answer {
            status: parts.status,
            headers: parts.headers,
            bytes,
            request: format!("{method} {path}"),
        })
    }

    /// Opens a stream of events.
    ///
    /// # Panics
    /// When the server does not answer with one.
    #[expect(clippy::expect_used, reason = "a test cannot go on without an answer")]
    pub async fn stream(&self, path: &str, headers: &[(&str, &str)]) -> EventStream {
        self.try_stream(path, headers).await.expect("the server answers with a stream")
    }

    /// The same; `None` where the server does not answer, or not with 200.
    pub async fn try_stream(&self, path: &str, headers: &[(&str, &str)]) -> Option<EventStream> {
        let (parts, body) = self.request(&Method::GET, path, headers, Vec::new()).await?;
        if parts.status != StatusCode::OK {
            return None;
        }
        assert_eq!(parts.headers["content-type"], "text/event-stream");
        Some(EventStream { body, read: String::new() })
    }

    /// The status of the answer to a GET whose body never ends.
    ///
    /// # Panics
    /// When the server does not answer.
    #[expect(clippy::expect_used, reason = "a test cannot go on without an answer")]
    pub async fn status(&self, path: &str) -> u16 {
        let answered = self.request(&Method::GET, path, &[], Vec::new()).await;
        answered.expect("the server answers").0.status.as_u16()
    }

    async fn request(
        &self,
        method: &Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Option<(http::response::Parts, hyper::body::Incoming)> {
        let url = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.base) };
        let mut request = Request::builder().method(method).uri(&url);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let is_named = headers.iter().any(|(name, _)| ["traceparent", "idempotency-key"].contains(name));
        let is_write = *method != Method::GET && path.contains("/v2/") && !path.contains("dryRun=true");
        let trace = Uuid::now_v7().simple().to_string();
        if is_write && !is_named {
            request = request.header("traceparent", format!("00-{trace}-{}-01", &trace[16..]));
        }
        let request = request.body(Full::from(body)).ok()?;
        let (parts, body) = self.http.request(request).await.ok()?.into_parts();
        if is_write && !is_named && parts.status.is_success() {
            let call = Call { trace, method: method.clone(), path: path.to_owned() };
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        }
        Some((parts, body))
    }

    async fn send_json(&self, method: Method, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        self.send(method, path, &headers, body.to_string().into_bytes()).await
    }

    /// Sends a GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], Vec::new()).await
    }

    /// Sends a POST with a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send_json(Method::POST, path, &body).await
    }

    /// Sends a PUT with a JSON body.
    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send_json(Method::PUT, path, &body).await
    }

    /// Sends a PATCH with a JSON body.
    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send_json(Method::PATCH, path, &body).await
    }

    /// Sends a DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], Vec::new()).await
    }

    /// Sends a DELETE with a JSON body.
    pub async fn delete_with(&self, path: &str, body: Value) -> Answer {
        self.send_json(Method::DELETE, path, &body).await
    }
}

impl Answer {
    /// Asserts the status.
    ///
    /// # Panics
    /// When the status is another.
    #[must_use]
    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(
            self.status.as_u16(),
            status,
            "{} answered {}: {}",
            self.request,
            self.status,
            String::from_utf8_lossy(&self.bytes)
        );
        self
    }

    /// Asserts the status where nothing else of the answer matters.
    #[track_caller]
    pub fn expect(self, status: u16) {
        drop(self.is(status));
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When the body is no JSON.
    #[track_caller]
    #[expect(clippy::panic, reason = "a test fails by it")]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| {
            panic!("{}: {error}: {}", self.request, String::from_utf8_lossy(&self.bytes))
        })
    }

    /// Asserts a complete problem (RFC 9457) of this status and kind; returns its body.
    #[track_caller]
    pub fn problem(self, status: u16, kind: &str) -> Value {
        let answer = self.is(status);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        let body = answer.json();
        assert_eq!(body["type"], format!("/problems/{kind}"), "{body}");
        assert_eq!(body["status"], status);
        for member in ["title", "detail", "instance", "traceId"] {
            assert!(body[member].is_string(), "{member} in {body}");
        }
        body
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The URL of the `Link` header with `rel="next"`.
    pub fn next(&self) -> Option<String> {
        let (address, rest) = self.header("link")?.strip_prefix('<')?.split_once('>')?;
        rest.contains("rel=\"next\"").then(|| address.to_owned())
    }
}
