//! What a page says where something failed, and how long to wait where that mends it.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::{HeaderValue, Method, Response, request::Parts};
use serde_json::{Value, json};

use super::{render::page, words::Words};

/// What a page says where something failed, with the trace id that the log has, too.
pub struct Failure {
    status: u16,
    /// What the page is called.
    pub heading: &'static str,
    /// What it says.
    pub content: Value,
}

impl Failure {
    /// What a problem comes to on a page. What is the server's fault is logged.
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
        let facts = problem.errors.as_slice().iter().map(|error| words.refusal(&error.detail));
        let facts: Vec<_> = facts.collect();
        let wait = seconds_to_wait(problem);
        let wait = wait.map(|seconds| json!({ "seconds": seconds, "again": parts.method != Method::POST }));
        let content = json!({
            "heading": heading, "text": words.refusal(&problem.detail), "facts": facts,
            "trace": chancery_web::trace::TraceId::of(parts).to_string(), "wait": wait, "link": way_on(parts, words, status),
        });
        Self { status, heading, content }
    }

    /// The same where a form only has to wait: it is kept in the page, and sent by who wants it sent.
    pub fn of_form(self, words: &Words) -> (u16, Value) {
        let mut content = self.content;
        if let Some(members) = content.as_object_mut() {
            members.insert("hint".to_owned(), json!(words.page("wait_hint")));
            members.insert("link".to_owned(), Value::Null);
        }
        (self.status, content)
    }

    /// The page, with the headers of the problem.
    ///
    /// # Errors
    /// The template asks for what the context does not have.
    pub fn answered(&self, problem: &Problem, context: &Value) -> Result<Response<AnswerBody>, Problem> {
        let mut response = page(self.status, "message.html", context)?;
        for (name, value) in &problem.headers {
            if let Ok(value) = HeaderValue::try_from(value) {
                response.headers_mut().insert(*name, value);
            }
        }
        Ok(response)
    }
}

/// Where a page that failed leads: what was refused goes back to what it was asked of, the list or the item.
fn way_on(parts: &Parts, words: &Words, status: u16) -> Value {
    let above = parts.uri.path().rsplit_once('/').map(|(above, _)| above);
    let above = above.filter(|above| parts.method == Method::POST && above.starts_with("/console/"));
    match above.filter(|_| matches!(status, 400 | 409)) {
        Some(above) => json!({ "href": above, "label": words.page("back") }),
        None => json!({ "href": "/console", "label": words.page("to_overview") }),
    }
}

/// After how many seconds the same can be asked again, where that is told.
pub fn seconds_to_wait(problem: &Problem) -> Option<u64> {
    let told = problem.headers.iter().find(|(name, _)| *name == "retry-after");
    told.filter(|_| matches!(problem.status(), 429 | 503)).and_then(|(_, value)| value.parse().ok())
}
