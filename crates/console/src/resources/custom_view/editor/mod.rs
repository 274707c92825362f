//! The editor of views, with a preview. Nothing is visible to users before it is published.

mod draft;
mod frame;

use chancery_management::custom_view::CUSTOM_VIEW;
use chancery_presentation::shipped;
use chancery_resource::{Op, Problem};
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use self::draft::Draft;
use crate::shell::{
    directory::{self, Resource, encoded, operation},
    fields::{control_field, with},
    navigation::label,
    render::with_frames,
    visit::Visit,
    words::Words,
};

pub use self::{
    draft::version,
    frame::{of_tenant, show as frame},
};

/// The page that shows a view that is only a part of pages.
const DEFAULT_PAGE: &str = "SignIn";

fn views() -> Result<&'static Resource, Problem> {
    directory::of_shape(&CUSTOM_VIEW).ok_or_else(|| Problem::not_found("list of this"))
}

fn operation(visit: &Visit<'_>) -> Result<&'static Op, Problem> {
    visit.require(operation!("PreviewView"))
}

/// Shows the editor: with an existing view, a previous version, or a built-in one as a template.
///
/// # Errors
/// The user may not preview views, or the view is unknown.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    operation(visit)?;
    let (views, words) = (views()?, visit.words);
    let draft = Draft::of(visit, views).await?;
    let address = visit.address(views);
    let here = draft.key.as_ref().map(|key| format!("{address}/{}", encoded(key)));
    let of = draft.key.as_ref().map_or_else(String::new, |key| format!("?of={}", encoded(key)));
    let heading = draft.name().unwrap_or_else(|| words.page("editor_new"));
    let (publish, op) = match &here {
        Some(here) => (here.clone(), views.patch),
        None => (format!("{address}/new"), views.create),
    };
    let begin = here.is_none().then(|| {
        let pages = shipped::names().iter();
        let current = draft.name().unwrap_or(DEFAULT_PAGE);
        let choices =
            pages.map(|name| json!({ "value": name, "label": name, "is_current": *name == current }));
        with(
            Value::Object(control_field("template", words.page("editor_template"), "choice")),
            json!({ "choices": choices.collect::<Vec<_>>(), "is_wide": false }),
        )
    });
    let content = json!({
        "back": { "href": here.clone().unwrap_or_else(|| address.clone()), "label": here.as_ref().map_or_else(|| label(visit, views), |_| words.page("to_item").to_owned()) },
        "heading": heading, "about": words.page("editor_about"), "begin": begin,
        "begin_at": format!("{address}/try"), "fields": fields(visit, &draft), "hidden": draft.hidden,
        "shown": [samples(words, &draft), languages(words)], "frame": format!("{address}/preview{of}"),
        "is_typed": draft.is_typed,
        "publish": visit.may(op).map(|_| json!({ "href": publish, "label": words.page("publish"), "review": here.is_some() })),
        "cancel": { "href": here.unwrap_or(address), "label": words.page("discard") },
    });
    Ok(with_frames(visit.page(200, "editor.html", heading, &content)?))
}

/// The location of a new view, and the text.
fn fields(visit: &Visit<'_>, draft: &Draft) -> Vec<Value> {
    let words = visit.words;
    let text = |name: &str, control: &str, value: &str| {
        with(Value::Object(control_field(name, &words.field(name), control)), json!({ "value": value }))
    };
    let location = draft.key.is_none().then(|| {
        let hint = json!({ "hint": words.page("editor_location"), "required": true });
        with(text("location", "text", &draft.location), hint)
    });
    location.into_iter().chain([text("content", "code", &draft.content)]).collect()
}

/// The states in which the view can be shown: each a page, and a state of it.
fn samples(words: &Words, draft: &Draft) -> Value {
    let own = shipped::names().iter().copied().find(|name| draft.name() == Some(*name));
    // a part of pages can be shown in any of them
    let pages: Vec<&str> = own.map_or_else(default_page_first, |name| vec![name]);
    let choices: Vec<Value> = pages
        .into_iter()
        .flat_map(|page| shipped::samples(page).into_iter().map(move |(state, _)| (page, state)))
        .map(|(page, state)| {
            let value = format!("{page}|{state}");
            json!({ "value": value, "label": format!("{page}: {state}"), "is_current": false })
        })
        .collect();
    let field = Value::Object(control_field("state", words.page("editor_state"), "choice"));
    with(field, json!({ "choices": choices, "is_wide": false }))
}

fn default_page_first() -> Vec<&'static str> {
    let others = shipped::names().iter().copied().filter(|name| *name != DEFAULT_PAGE);
    std::iter::once(DEFAULT_PAGE).chain(others).collect()
}

fn languages(words: &Words) -> Value {
    let named = [("En", "English", "en"), ("De", "Deutsch", "de")];
    let choices = named
        .map(|(value, label, tag)| json!({ "value": value, "label": label, "is_current": tag == words.tag }));
    let field = Value::Object(control_field("language", words.page("editor_language"), "choice"));
    with(field, json!({ "choices": choices, "is_wide": false }))
}
