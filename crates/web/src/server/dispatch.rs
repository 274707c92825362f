//! The way of a request to its endpoint, and of the answer back.

use std::{sync::Arc, time::Instant};

use chancery_resource::{Problem, ProblemKind};
use http::{HeaderMap, HeaderValue, Request, Response, Version, header, request::Parts};
use hyper::body::Incoming;
use tracing::{Instrument as _, Span};

use crate::{
    app::App,
    connection::request_body::RequestBody,
    endpoints::{cors::open_to_scripts, provider_callback},
    message::{
        answer::{self, AnswerBody},
        base_path::BasePath,
        peer::span_of,
    },
    operation::from_http,
    routes::{Entry, Target, choose},
};

impl App {
    /// Answers a request; never fails.
    pub async fn handle(self: &Arc<Self>, request: Request<Incoming>) -> Response<AnswerBody> {
        let (mut parts, body) = request.into_parts();
        if !self.base.as_str().is_empty() {
            self.base.strip_from(&mut parts.uri);
            parts.extensions.insert(self.base.clone());
        }
        let span = span_of(&parts);
        self.answer(parts, RequestBody::from(body)).instrument(span).await
    }

    async fn answer(self: &Arc<Self>, parts: Parts, mut body: RequestBody) -> Response<AnswerBody> {
        let started = Instant::now();
        let (mut entry, mut fallback) = (None, None);
        let outcome = match check_host(&parts) {
            Ok(()) if has_unread_coding(&parts.headers) => Ok(answer::unread_coding()),
            Ok(()) => self.dispatch(&parts, &mut body, &mut entry, &mut fallback).await,
            Err(problem) => Err(problem),
        };
        let mut response = outcome.unwrap_or_else(|problem| {
            self.log_problem(&problem, &parts);
            answer::problem(problem, &parts)
        });
        body.finish(&parts, response.headers_mut()).await;
        answer::protect(&mut response);
        let (status, seconds) = (response.status().as_u16(), started.elapsed().as_secs_f64());
        self.metrics.note(entry.map(|entry| entry.number), status, seconds);
        if let Some(entry) = entry.or(fallback) {
            self.deprecation.set_headers(response.headers_mut(), entry.base, entry.op, parts.uri.path());
        }
        self.base.prefix_headers(response.headers_mut());
        if self.access_log.has(status) {
            // the path is left out: it can identify a person
            tracing::info!(method = %parts.method, status, seconds, "answered");
        } else {
            tracing::debug!(method = %parts.method, path = parts.uri.path(), status, seconds, "answered");
        }
        response
    }

    /// Answers a request at the address that serves only metrics.
    pub async fn handle_metrics(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let (parts, _) = request.into_parts();
        let mut response = if parts.uri.path() == "/metrics" {
            self.metrics_text().instrument(span_of(&parts)).await
        } else {
            let problem = Problem::new(ProblemKind::NoSuchRoute, "This address has /metrics only.");
            answer::problem(problem, &parts)
        };
        answer::protect(&mut response);
        response
    }

    async fn dispatch(
        self: &Arc<Self>,
        parts: &Parts,
        body: &mut RequestBody,
        chosen: &mut Option<Entry>,
        fallback: &mut Option<Entry>,
    ) -> Result<Response<AnswerBody>, Problem> {
        let now = self.clock.now();
        let path = parts.uri.path();
        let (target, parameters) = match self.routes.find(path) {
            Ok(found) => found,
            Err(problem) => {
                let is_of_protocol = ["/connect/", "/.well-known/"].iter().any(|part| path.contains(part));
                return match Box::pin(provider_callback::configured_callback(self, parts, now)).await {
                    None if is_of_protocol => Ok(self.problem_for_scripts(problem, parts)),
                    found => found.unwrap_or(Err(problem)),
                };
            }
        };
        match target {
            Target::System(route, kind) => {
                Span::current().record("operation", route.path());
                // boxed: the future of every request is as large as the largest
                let answered = Box::pin(route.answer(self, *kind, parameters, parts, body, now)).await;
                if route.is_open_to_scripts() {
                    let response = answered.or_else(|problem| Ok(self.problem_for_scripts(problem, parts)));
                    return response.map(open_to_scripts);
                }
                let mut response = answered?;
                if route.shows_pages() {
                    prefix_page(&self.base, &mut response);
                }
                Ok(response)
            }
            Target::Operations(entries) => {
                *fallback = entries.first().copied();
                let entry = choose(entries, &parts.method)?;
                *chosen = Some(entry);
                Span::current().record("operation", entry.op.name);
                from_http::answer_operation(self, entry, parts, body, parameters?, now).await
            }
        }
    }

    /// A problem that scripts of any site may read.
    fn problem_for_scripts(&self, problem: Problem, parts: &Parts) -> Response<AnswerBody> {
        self.log_problem(&problem, parts);
        open_to_scripts(answer::problem(problem, parts))
    }
}

/// Puts the path before the addresses of a page.
fn prefix_page(base: &BasePath, response: &mut Response<AnswerBody>) {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_page = kind.is_some_and(|kind| kind.starts_with("text/html"));
    if base.as_str().is_empty() || !is_page {
        return;
    }
    if let AnswerBody::Whole(Some(bytes)) = response.body_mut()
        && let Ok(html) = str::from_utf8(bytes)
    {
        *bytes = base.prefix_html(html).into();
    }
}

/// Checks that an HTTP/1.1 request has exactly one `Host` (RFC 9112, section 3.2).
fn check_host(parts: &Parts) -> Result<(), Problem> {
    let hosts = parts.headers.get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && parts.version == Version::HTTP_11) {
        let problem = Problem::invalid("A request of HTTP/1.1 has the header Host, once.");
        return Err(problem.with_header("connection", "close"));
    }
    Ok(())
}

/// Whether a body has a transfer coding besides the framing of HTTP/1.1, which alone is read (RFC 9112, section 6.1): a proxy in
/// front that decodes it would read another body.
fn has_unread_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_read = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    codings.next().is_some_and(|first| !is_read(first)) || codings.next().is_some()
}
