//! Pages as answers: filled, in the browser's language, with the headers that keep others out.

use chancery_presentation::{language::Language, view};
use chancery_resource::random;
use chancery_signin::{Page, PageError};
use http::{HeaderValue, Response, header};
use serde_json::{Map, Value, json};

use super::{Browser, cookies};
use crate::{
    answer::{AnswerBody, respond},
    trace::TraceId,
};

/// A page with what its form needs.
pub struct Shown {
    /// The page.
    pub page: Page,
    /// Where its form is posted.
    pub action: String,
    /// What its form sends along.
    pub csrf: String,
    /// Where the browser goes by itself.
    pub refresh: Option<String>,
}

/// Answers with a page.
pub fn page(browser: &Browser<'_>, shown: Shown, step: &str) -> Response<AnswerBody> {
    let Shown { page, action, csrf, refresh } = shown;
    let nonce = cookies::value(&random::<16>());
    let language = language(browser);
    let mut context = match page.context {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    context.insert("nonce".to_owned(), json!(nonce));
    context.insert("csrf".to_owned(), json!(csrf));
    context.insert("action".to_owned(), json!(action));
    if browser.parts.method == http::Method::GET {
        context.insert("languages".to_owned(), languages(browser));
    }
    let rendered = view::render(page.view, &Value::Object(context), language, &|_| None);
    let html = rendered.unwrap_or_else(|failure| {
        tracing::error!(%failure, view = page.view, "a shipped page cannot be rendered");
        String::new()
    });
    let mut response = respond(page.status, "text/html; charset=utf-8", html);
    // a form that goes to the client app cannot be held to this server
    let form_action = if step == "post" { "" } else { "form-action 'self'; " };
    let policy = format!(
        "default-src 'none'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self'; \
         {form_action}frame-ancestors 'none'; base-uri 'none'"
    );
    let headers = response.headers_mut();
    let mut set =
        |name, value: &str| HeaderValue::try_from(value).ok().map(|value| headers.insert(name, value));
    set(header::CONTENT_SECURITY_POLICY, &policy);
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(header::CONTENT_LANGUAGE, language.tag());
    if let Some(address) = refresh {
        set(header::REFRESH, &format!("0; url={address}"));
    }
    browser.cookies.write(&mut response);
    response
}

/// Answers with an error page, which names the trace id.
pub fn error_page(browser: &Browser<'_>, error: PageError) -> Response<AnswerBody> {
    tracing::debug!(code = error.code, detail = error.detail, "refused on a page");
    let reference = TraceId::of(browser.parts).to_string();
    let context = json!({ "code": error.code, "reference": reference });
    let page_of = Page { view: "Error", step: "error", status: error.status, context };
    page(browser, Shown { page: page_of, action: String::new(), csrf: String::new(), refresh: None }, "error")
}

/// The language: of the request, else of the browser.
fn language(browser: &Browser<'_>) -> Language {
    let asked = browser.parameter("ui_locales").map(|tags| tags.split(' ').next().unwrap_or_default());
    let flow = browser.flow();
    let of_flow = flow.as_ref().and_then(|kept| {
        kept.parameters.iter().find(|(name, _)| name == "ui_locales").map(|(_, tags)| tags.as_str())
    });
    let of_flow = of_flow.and_then(|tags| tags.split(' ').next());
    Language::of(asked.or(of_flow).or(browser.visit.languages.first().map(String::as_str)))
}

/// The same page in each language.
fn languages(browser: &Browser<'_>) -> Value {
    let others = browser.query.iter().filter(|(name, _)| name != "ui_locales");
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish();
    let path = browser.parts.uri.path();
    let named = [("English", "en"), ("Deutsch", "de")];
    let listed = named.map(|(name, tag)| {
        let joint = if query.is_empty() { "" } else { "&" };
        json!({ "name": name, "tag": tag, "url": format!("{path}?{query}{joint}ui_locales={tag}") })
    });
    json!(listed)
}
