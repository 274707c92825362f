//! Error pages, and the delay after which a request may be repeated.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::{HeaderValue, Method, Response, request::Parts};
use serde_json::{Value, json};

use super::{reauthentication::Explanation, render::page, words::Words};

/// An error page, with the trace id that the log contains, too.
pub struct Failure {
    status: u16,
    /// Title of the page.
    pub heading: &'static str,
    /// Context of the template.
    pub content: Value,
}

impl Failure {
    /// The error page of a problem. Internal errors are logged.
    pub fn of(parts: &Parts, words: &'static Words, problem: &Problem) -> Self {
        let status = problem.status();
        if status == 500 {
            let cause = problem.cause.as_ref().map(ToString::to_string);
            tracing::error!(path = parts.uri.path(), cause, detail = problem.detail, "a page failed");
        }
        let heading = match status {
            401 => words.page("signed_out"),
            403 => words.page("forbidden"),
            404 => words.page("not_found"),
            409 => words.page("conflict"),
            429 => words.page("too_many"),
            503 => words.page("unavailable"),
            _ => words.page("failed"),
        };
        let facts = problem.errors.as_slice().iter().map(|error| words.error_text(&error.detail));
        let facts: Vec<_> = facts.collect();
        let wait = retry_after_seconds(problem);
        let wait = wait.map(|seconds| json!({ "seconds": seconds, "again": parts.method != Method::POST }));
        let content = json!({
            "heading": heading, "text": words.error_text(&problem.detail), "facts": facts,
            "trace": chancery_web::trace_of(parts).to_string(), "wait": wait, "link": next_link(parts, words, status),
        });
        Self { status, heading, content }
    }

    /// The same for a form that is only delayed: the page holds it, and the user sends it again.
    pub fn for_held_form(self, words: &Words) -> Explanation {
        let mut content = self.content;
        if let Some(members) = content.as_object_mut() {
            members.insert("hint".to_owned(), json!(words.page("wait_hint")));
            members.insert("link".to_owned(), Value::Null);
        }
        Explanation { status: self.status, content }
    }

    /// The response, with the headers of the problem.
    ///
    /// # Errors
    /// The template uses a variable that the context lacks.
    pub fn response(&self, problem: &Problem, context: &Value) -> Result<Response<AnswerBody>, Problem> {
        let mut response = page(self.status, "message.html", context)?;
        for (name, value) in &problem.headers {
            if let Ok(value) = HeaderValue::try_from(value) {
                response.headers_mut().insert(*name, value);
            }
        }
        Ok(response)
    }
}

/// The link of an error page: from a refused form back to its list or item, else to the overview.
fn next_link(parts: &Parts, words: &Words, status: u16) -> Value {
    let above = parts.uri.path().rsplit_once('/').map(|(above, _)| above);
    let above = above.filter(|above| parts.method == Method::POST && above.starts_with("/console/"));
    match above.filter(|_| matches!(status, 400 | 409)) {
        Some(above) => json!({ "href": above, "label": words.page("back") }),
        None => json!({ "href": "/console", "label": words.page("to_overview") }),
    }
}

/// The value of `Retry-After` in seconds, for the statuses 429 and 503.
pub fn retry_after_seconds(problem: &Problem) -> Option<u64> {
    let header = problem.headers.iter().find(|(name, _)| *name == "retry-after");
    header.filter(|_| matches!(problem.status(), 429 | 503)).and_then(|(_, value)| value.parse().ok())
}
