//! Pages as answers: filled, in the browser's language, with the headers that keep others out.

use chancery_presentation::{language::Language, view};
use chancery_resource::random;
use chancery_signin::{KeptFlow, Page, PageError};
use http::{HeaderValue, Response, header};
use serde_json::{Map, Value, json};

use super::{Browser, PASSKEY_SCRIPT, cookies, origin_of, written};
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
    /// What it shows in frames.
    pub frames: Vec<String>,
}

impl Shown {
    /// A page without a form.
    pub fn of_page() -> Self {
        let page = Page { view: "", step: "", status: 200, context: Value::Null };
        Self { page, action: String::new(), csrf: String::new(), refresh: None, frames: Vec::new() }
    }
}

/// Answers with a page.
pub fn page(browser: &Browser<'_>, shown: Shown, step: &str) -> Response<AnswerBody> {
    let Shown { page, action, csrf, refresh, frames } = shown;
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
    let rendered = view::render_shipped(page.view, &Value::Object(context), language);
    let (status, html) = match rendered {
        Ok(html) => (page.status, html),
        Err(failure) => {
            tracing::error!(%failure, view = page.view, "a shipped page cannot be rendered");
            (500, "<!DOCTYPE html><title>Error</title><h1>This did not work</h1>".to_owned())
        }
    };
    let mut response = respond(status, "text/html; charset=utf-8", html);
    // a form that goes to the client app cannot be held to this server
    let form_action = if step == "post" { "" } else { "form-action 'self'; " };
    let frames: Vec<&str> = frames.iter().map(|address| origin_of(address)).collect();
    let frame_src =
        if frames.is_empty() { String::new() } else { format!("frame-src {}; ", frames.join(" ")) };
    let script = script_address(&browser.app.token_service.public_url);
    let policy = format!(
        "default-src 'none'; style-src 'self' 'nonce-{nonce}'; script-src {script}; img-src 'self' data:; \
         font-src 'self'; {form_action}{frame_src}frame-ancestors 'none'; base-uri 'none'"
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

/// The one script that pages run, as a policy names it.
fn script_address(public_url: &str) -> String {
    format!("{}/signin/{PASSKEY_SCRIPT}", origin_of(public_url))
}

/// Answers with an error page, which names the trace id, and leads back to the client app where that is known.
pub fn error_page(browser: &Browser<'_>, error: PageError) -> Response<AnswerBody> {
    tracing::debug!(code = error.code, detail = error.detail, "refused on a page");
    let reference = TraceId::of(browser.parts).to_string();
    let back = browser.kept.as_ref().and_then(KeptFlow::home);
    let context = json!({ "code": error.code, "reference": reference, "return_url": back });
    let page_of = Page { view: "Error", step: "error", status: error.status, context };
    let mut response = page(browser, Shown { page: page_of, ..Shown::of_page() }, "error");
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The language: chosen on a page, else asked for by the client app, else preferred by the browser.
fn language(browser: &Browser<'_>) -> Language {
    let asked =
        browser.kept.as_ref().and_then(|kept| kept.parameters.iter().find(|(name, _)| name == "ui_locales"));
    let chosen = browser.parameter("ui_locales").into_iter().chain(asked.map(|(_, tags)| tags.as_str()));
    let preferred = browser.languages.iter().map(String::as_str);
    Language::of(chosen.flat_map(|tags| tags.split(' ')).chain(preferred))
}

/// The same page in each language.
fn languages(browser: &Browser<'_>) -> Value {
    let others = browser.query.iter().filter(|(name, _)| name != "ui_locales");
    let query = written(others);
    let path = browser.parts.uri.path();
    let named = [("English", "en"), ("Deutsch", "de")];
    let listed = named.map(|(name, tag)| {
        let joint = if query.is_empty() { "" } else { "&" };
        json!({ "name": name, "tag": tag, "url": format!("{path}?{query}{joint}ui_locales={tag}") })
    });
    json!(listed)
}
