//! The contents of the editor's frame: the page without scripts and forms, or the error.

use chancery_resource::settings::TenantOption;
use chancery_resource::{Op, Problem, settings::CATALOGUE};
use chancery_web::{AnswerBody, Input, respond};
use http::{HeaderValue, Response, header};
use serde_json::{Value, json};

use super::{DEFAULT_PAGE, draft::Draft, operation, views};
use crate::{
    pages::form::at,
    shell::{
        fields::plain,
        render::{self, with_frame_of_ours},
        setting::sent,
        visit::{Visit, one},
    },
};

/// The policy of a previewed page: no script, no form, no navigation out of its frame.
const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data: https:; \
    font-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox";
/// Number of lines around the failing one.
const AROUND: usize = 3;

/// Shows the submitted or stored view in the requested state.
///
/// # Errors
/// The user may not preview views, or the view is unknown.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let op = operation(visit)?;
    let draft = Draft::of(visit, views()?).await?;
    let parameter = |name: &str| one(&visit.form, name).or_else(|| visit.parameter(name));
    let (page, state) = parameter("state").and_then(|parameter| parameter.split_once('|')).unzip();
    let body = json!({
        "location": draft.location, "content": draft.content, "language": parameter("language").unwrap_or("En"),
        "page": page, "sample": state,
    });
    preview(visit, op, body, Some(&draft)).await
}

/// Shows the result of a preview; if the draft fails, with the lines around the error.
async fn preview(
    visit: &Visit<'_>,
    op: &'static Op,
    body: Value,
    draft: Option<&Draft>,
) -> Result<Response<AnswerBody>, Problem> {
    let mut input = Input::of(op, Vec::new());
    input.body = Some(body);
    let rendered = match visit.perform(input).await {
        Ok(output) => output.json(),
        Err(problem) if problem.status() == 400 => return refused(visit, &problem),
        Err(problem) => return Err(problem),
    };
    let Some(html) = at(&rendered, "html").as_str() else {
        return failed(visit, draft, at(&rendered, "failure"));
    };
    let mut response = respond(200, "text/html; charset=utf-8", html.to_owned());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Shows the sign-in page of a tenant, with the submitted options in place of the stored ones.
///
/// # Errors
/// The user may not preview views, or the tenant is unknown.
pub async fn of_tenant(visit: &Visit<'_>, key: &str) -> Result<Response<AnswerBody>, Problem> {
    let op = operation(visit)?;
    let typed = |name: &str| {
        let entry = CATALOGUE.iter().find(|entry| entry.name == name);
        sent(name, entry, &visit.form)
    };
    let body = json!({
        "location": format!("/views/tenant/{key}/{DEFAULT_PAGE}"), "page": DEFAULT_PAGE,
        "language": if visit.words.tag == "de" { "De" } else { "En" }, "brandName": typed(TenantOption::BRAND_NAME.name()),
        "brandLogo": typed(TenantOption::BRAND_LOGO.name()), "brandColour": typed(TenantOption::BRAND_COLOUR.name()), "pageLinks": typed(TenantOption::PAGE_LINKS.name()),
    });
    preview(visit, op, body, None).await
}

/// A draft that cannot be previewed, for example at a location that no page reads.
fn refused(visit: &Visit<'_>, problem: &Problem) -> Result<Response<AnswerBody>, Problem> {
    let errors = problem.errors.as_slice().iter();
    let texts: Vec<String> = errors
        .map(|error| format!("{} {}", visit.words.field(error.pointer.trim_start_matches('/')), error.detail))
        .collect();
    let text = if texts.is_empty() { problem.detail.clone() } else { texts.join(" ") };
    message_page(visit, &json!({ "text": text, "place": null, "lines": [] }))
}

/// The failing view with the location of the error; for the draft, with the lines around it.
fn failed(
    visit: &Visit<'_>,
    draft: Option<&Draft>,
    failure: &Value,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let (line, column) = (failure["line"].as_u64().unwrap_or(1), failure["column"].as_u64().unwrap_or(1));
    let draft = draft.filter(|draft| draft.name() == failure["view"].as_str());
    let location = words
        .page("editor_place")
        .replace("{line}", &line.to_string())
        .replace("{column}", &column.to_string());
    let wrong = usize::try_from(line).unwrap_or(1);
    let lines = draft.map_or("", |draft| draft.content.as_str()).lines();
    let numbered = lines.enumerate().map(|(index, text)| (index + 1, text));
    let near = numbered.filter(|(number, _)| number.abs_diff(wrong) <= AROUND);
    let lines: Vec<Value> = near
        .map(|(number, text)| json!({ "number": number, "text": text, "is_wrong": number == wrong }))
        .collect();
    let text = format!("{}: {}", plain(&failure["view"]), plain(&failure["detail"]));
    let location = json!({ "label": location, "line": line, "column": column, "is_draft": draft.is_some() });
    message_page(visit, &json!({ "text": text, "place": location, "lines": lines }))
}

fn message_page(visit: &Visit<'_>, content: &Value) -> Result<Response<AnswerBody>, Problem> {
    let title = visit.words.page("editor_failed");
    Ok(with_frame_of_ours(render::page(200, "editor-failed.html", &visit.plain(title, content))?))
}
