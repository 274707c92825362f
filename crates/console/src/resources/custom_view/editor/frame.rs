//! What is shown in the editor's frame: the page, which can do nothing, or why there is none.

use chancery_resource::settings::TenantOption;
use chancery_resource::{Op, Problem, settings::CATALOGUE};
use chancery_web::{AnswerBody, Input, respond};
use http::{HeaderValue, Response, header};
use serde_json::{Value, json};

use super::{USUAL, draft::Draft, operation, views};
use crate::{
    pages::form::at,
    shell::{
        fields::plain,
        render::{self, with_frame_of_ours},
        setting::sent,
        visit::{Visit, one},
    },
};

/// What a page that is tried may do: no script, no form, no way out of its frame.
const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data: https:; \
    font-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox";
/// How many lines are shown around the one that fails.
const AROUND: usize = 3;

/// Shows the view of the form, or the one that is kept, in the state that is asked for.
///
/// # Errors
/// The person may not try views; there is none.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let op = operation(visit)?;
    let draft = Draft::of(visit, views()?).await?;
    let asked = |name: &str| one(&visit.form, name).or_else(|| visit.parameter(name));
    let (page, state) = asked("state").and_then(|asked| asked.split_once('|')).unzip();
    let body = json!({
        "location": draft.location, "content": draft.content, "language": asked("language").unwrap_or("En"),
        "page": page, "sample": state,
    });
    shown(visit, op, body, Some(&draft)).await
}

/// Shows what a preview comes to. Where it fails and the draft is what fails, its lines are told.
async fn shown(
    visit: &Visit<'_>,
    op: &'static Op,
    body: Value,
    draft: Option<&Draft>,
) -> Result<Response<AnswerBody>, Problem> {
    let mut input = Input::of(op, Vec::new());
    input.body = Some(body);
    let told = match visit.perform(input).await {
        Ok(output) => output.json(),
        Err(problem) if problem.status() == 400 => return refused(visit, &problem),
        Err(problem) => return Err(problem),
    };
    let Some(html) = at(&told, "html").as_str() else { return failed(visit, draft, at(&told, "failure")) };
    let mut response = respond(200, "text/html; charset=utf-8", html.to_owned());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Shows the page of a sign-in in a tenant, with the options of its form in place of those that are kept.
///
/// # Errors
/// The person may not try views; there is no such tenant.
pub async fn of_tenant(visit: &Visit<'_>, key: &str) -> Result<Response<AnswerBody>, Problem> {
    let op = operation(visit)?;
    let typed = |name: &str| {
        let entry = CATALOGUE.iter().find(|entry| entry.name == name);
        sent(name, entry, &visit.form)
    };
    let body = json!({
        "location": format!("/views/tenant/{key}/{USUAL}"), "page": USUAL,
        "language": if visit.words.tag == "de" { "De" } else { "En" }, "brandName": typed(TenantOption::BRAND_NAME.name()),
        "brandLogo": typed(TenantOption::BRAND_LOGO.name()), "brandColour": typed(TenantOption::BRAND_COLOUR.name()), "pageLinks": typed(TenantOption::PAGE_LINKS.name()),
    });
    shown(visit, op, body, None).await
}

/// What cannot be tried at all, such as a location that no page looks at.
fn refused(visit: &Visit<'_>, problem: &Problem) -> Result<Response<AnswerBody>, Problem> {
    let errors = problem.errors.as_slice().iter();
    let texts: Vec<String> = errors
        .map(|error| format!("{} {}", visit.words.field(error.pointer.trim_start_matches('/')), error.detail))
        .collect();
    let text = if texts.is_empty() { problem.detail.clone() } else { texts.join(" ") };
    told(visit, &json!({ "text": text, "place": null, "lines": [] }))
}

/// The view that fails, with its place; where it is the draft, the lines around it.
fn failed(
    visit: &Visit<'_>,
    draft: Option<&Draft>,
    failure: &Value,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let (line, column) = (failure["line"].as_u64().unwrap_or(1), failure["column"].as_u64().unwrap_or(1));
    let draft = draft.filter(|draft| draft.name() == failure["view"].as_str());
    let place = words
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
    let place = json!({ "label": place, "line": line, "column": column, "is_draft": draft.is_some() });
    told(visit, &json!({ "text": text, "place": place, "lines": lines }))
}

fn told(visit: &Visit<'_>, content: &Value) -> Result<Response<AnswerBody>, Problem> {
    let title = visit.words.page("editor_failed");
    Ok(with_frame_of_ours(render::page(200, "editor-failed.html", &visit.plain(title, content))?))
}
