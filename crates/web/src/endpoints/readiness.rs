//! The readiness of this server.

use chancery_resource::{Problem, ProblemKind};
use http::{Response, request::Parts};
use serde_json::json;

use crate::{
    app::App,
    message::answer::{self, AnswerBody, respond},
};

/// Whether requests can be sent here.
pub(super) fn ready(app: &App, parts: &Parts) -> Response<AnswerBody> {
    let Some((reason, detail)) = app.unready() else {
        let warnings: Vec<String> = app.warnings().into_values().collect();
        let answer = match warnings.as_slice() {
            [] => json!({ "status": "ready" }),
            warnings => json!({ "status": "ready", "warnings": warnings }),
        };
        return respond(200, "application/json", answer.to_string());
    };
    let problem = Problem::new(ProblemKind::Unavailable, detail).with_member("reason", reason);
    answer::problem(problem.with_header("retry-after", "1"), parts)
}
