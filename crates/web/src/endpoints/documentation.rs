//! The documentation of the interfaces: the page, the OpenAPI documents, kinds of problems, schemas of events.

use std::sync::LazyLock;

use chancery_resource::{Problem, ProblemKind};
use http::{HeaderValue, Response, header, request::Parts};
use serde_json::json;

use crate::{
    app::App,
    message::{
        answer::{AnswerBody, respond},
        compressed_text::CompressedText,
    },
    openapi::event_types,
};

static PAGE: LazyLock<CompressedText> = LazyLock::new(|| {
    CompressedText::new("text/html; charset=utf-8", include_str!("../openapi/page.html").into())
});
/// The page's files besides the documents, by name.
static PAGE_FILES: LazyLock<[(&str, CompressedText); 2]> = LazyLock::new(|| {
    let file = |content_type, text: &'static str| CompressedText::new(content_type, text.into());
    [
        ("page.css", file("text/css; charset=utf-8", include_str!("../openapi/page.css"))),
        ("page.js", file("text/javascript; charset=utf-8", include_str!("../openapi/page.js"))),
    ]
});

/// The page that shows the interfaces.
pub fn page(parts: &Parts) -> Response<AnswerBody> {
    let mut response = PAGE.answer(&parts.headers);
    let policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

/// A description of an interface, or a file of the page.
///
/// # Errors
/// There is no document of this name.
pub fn document(app: &App, parts: &Parts, name: &str) -> Result<Response<AnswerBody>, Problem> {
    if let Some((_, file)) = PAGE_FILES.iter().find(|(file, _)| *file == name) {
        return Ok(file.answer(&parts.headers));
    }
    let found = app.documents.iter().find(|document| document.name == name);
    let document = found.ok_or_else(|| {
        let known: Vec<&str> = app.documents.iter().map(|document| document.name.as_str()).collect();
        Problem::not_found("document").with_detail(format!("There are the documents {}.", known.join(", ")))
    })?;
    Ok(document.text(&app.base).answer(&parts.headers))
}

/// The description of a kind of problem.
///
/// # Errors
/// There is no kind of problem of this name.
pub fn problem_page(kind: &str) -> Result<Response<AnswerBody>, Problem> {
    let found = ProblemKind::ALL.iter().find(|known| known.facts().1 == kind);
    let (status, slug, title) = found.ok_or_else(|| Problem::not_found("kind of problem"))?.facts();
    let body = json!({ "type": format!("/problems/{slug}"), "title": title, "status": status });
    Ok(respond(200, "application/json", body.to_string()))
}

/// The schema of the events of a type.
///
/// # Errors
/// There is no type of this name.
pub fn event_schema(app: &App, kind: &str) -> Result<Response<AnswerBody>, Problem> {
    let schema = event_types::schema(kind, &app.context.public_url);
    let schema = schema.ok_or_else(|| Problem::not_found("type of events"))?;
    let mut answer = respond(200, "application/schema+json", schema.to_string());
    // a new version has another address
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    Ok(answer)
}
