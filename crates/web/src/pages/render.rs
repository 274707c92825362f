//! Pages as answers: rendered, in the browser's language, with the security headers.

use std::sync::Arc;

use chancery_presentation::{
    language::Language,
    view::{self, Failure, Reduced},
};
use chancery_record::origin_of;
use chancery_resource::random;
use chancery_signin::{Appearance, Owners, Page, PageError, PendingFlow};
use http::{HeaderValue, Response, header};
use serde_json::{Map, Value, json};

use super::{
    Browser, cookies,
    language::{choices, language},
    script::{PASSKEY_SCRIPT, POST_SCRIPT},
};
use crate::{
    app::App,
    message::{
        answer::{AnswerBody, respond},
        peer::trace_of,
    },
    routes::system_route::SystemRoute,
};

/// The most bytes of hosts of frames in a policy.
const LONGEST_FRAMES: usize = 1_000;
/// The views with secrets: a link's token, an authenticator's secret, a client app's code. Those of a
/// customer load no external picture, whose request could leak it.
const HOLD_SECRETS: [&str; 3] = ["Continue", "Enrol", "PasswordReset"];

/// How long a page with frames waits for them before it redirects, in seconds.
const FRAMES_SECONDS: u8 = 3;

/// A page with the values of its form.
pub struct Shown {
    /// The page.
    pub page: Page,
    /// The address of its form.
    pub action: String,
    /// The CSRF token of its form.
    pub csrf: String,
    /// The address of its redirect.
    pub refresh: Option<String>,
    /// The addresses of its frames.
    pub frames: Vec<String>,
}

impl Shown {
    /// A page without a form.
    pub fn of_page() -> Self {
        let page = Page::new("", "", Value::Null);
        Self { page, action: String::new(), csrf: String::new(), refresh: None, frames: Vec::new() }
    }
}

/// Answers with a page.
pub async fn page(browser: &Browser<'_>, shown: Shown, step: &str) -> Response<AnswerBody> {
    let appearance = appearance_of(browser, &shown.page).await;
    let Shown { page, action, csrf, refresh, frames } = shown;
    let nonce = cookies::value(&random::<16>());
    let language = language(browser, page.locale.as_deref());
    let mut context = match page.context {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    context.insert("nonce".to_owned(), json!(nonce));
    context.insert("csrf".to_owned(), json!(csrf));
    context.insert("action".to_owned(), json!(action));
    if browser.parts.method == http::Method::GET {
        context.insert("languages".to_owned(), choices(browser));
    }
    let mut context = Value::Object(context);
    appearance.fill(&mut context);
    let may_load_images = !appearance.has_own() || !HOLD_SECRETS.contains(&page.view);
    let images = if may_load_images { images(&context) } else { String::new() };
    let rendered = fill(browser.app, &appearance, page.view, language, &context);
    let (status, html) = match rendered {
        Ok(html) => (page.status, html),
        Err(failure) => {
            tracing::error!(%failure, view = page.view, "a shipped page cannot be rendered");
            (500, "<!DOCTYPE html><title>Error</title><h1>This did not work</h1>".to_owned())
        }
    };
    let mut response = respond(status, "text/html; charset=utf-8", html);
    // a form of the client app cannot be restricted to this server
    let form_action = if step == "post" { "" } else { "form-action 'self'; " };
    let frames: Vec<String> = frames.iter().map(|address| origin_of(address)).collect();
    let hosts = frames.join(" ");
    let frame_src = match hosts.len() {
        0 => String::new(),
        1..=LONGEST_FRAMES => format!("frame-src {hosts}; "),
        // a policy that names each of many does not fit a head
        _ => "frame-src https:; ".to_owned(),
    };
    let script = if step == "post" { POST_SCRIPT } else { PASSKEY_SCRIPT };
    let script = format!("{}/signin/{script}", browser.app.token_service.public_url);
    let policy = format!(
        "default-src 'none'; style-src 'self' 'nonce-{nonce}'; script-src {script}; img-src 'self' data:{images}; \
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
        let seconds = if frames.is_empty() { 0 } else { FRAMES_SECONDS };
        set(header::REFRESH, &format!("{seconds}; url={address}"));
    }
    browser.cookies.write(&mut response);
    response
}

/// The presentation of a page for its owners. If it cannot be read, or the server is overloaded: as shipped.
async fn appearance_of(browser: &Browser<'_>, page: &Page) -> Arc<Appearance> {
    let app = browser.app;
    let owners = Owners {
        tenant: page.owners.tenant.or(browser.visit.issuer.tenant_id()),
        client_app: page.owners.client_app.or(browser.flow.as_ref().map(|flow| flow.application)),
        subscription: None,
    };
    if matches!(page.status, 429 | 503) {
        return Arc::new(Appearance::shipped());
    }
    app.appearances.find(&app.store, owners, page.epoch).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "how a page looks cannot be read");
        Arc::new(Appearance::shipped())
    })
}

/// Renders the customer's view, and the shipped one where that fails.
fn fill(
    app: &App,
    appearance: &Appearance,
    view: &str,
    language: Language,
    context: &Value,
) -> Result<String, Failure> {
    let shipped = || view::shipped_in(language).render(view, context).map(|shown| shown.html);
    if !appearance.has_own() {
        return shipped();
    }
    let failed = |failure: &Failure| {
        app.metrics.note_failed_view();
        tracing::warn!(%failure, view, "a custom view fails: the shipped one is shown");
    };
    match appearance.views(language, failed).render(view, context) {
        Ok(Reduced { html, removed }) => {
            if !removed.is_empty() {
                tracing::warn!(lost = ?removed, view, "custom views have what pages do not have: it is left out");
            }
            Ok(html)
        }
        Err(failure) => {
            failed(&failure);
            shipped()
        }
    }
}

/// The origins of the images of the page, as a policy names them.
fn images(context: &Value) -> String {
    let logo = |owner: &str| context.get(owner)?.get("logo")?.as_str();
    let origins = ["brand", "application"].into_iter().filter_map(logo).map(origin_of);
    // only a host is accepted: the policy must not be extended
    let is_host = |origin: &String| {
        let host = origin.strip_prefix("https://").unwrap_or_default();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        !host.is_empty() && host.bytes().all(fits)
    };
    origins.filter(is_host).flat_map(|origin| [" ".to_owned(), origin]).collect()
}

/// The language of the person, if the browser's person is known. Under overload nothing is read for it.
async fn locale_of(browser: &Browser<'_>, status: u16) -> Option<String> {
    let of_flow = browser.flow.as_ref().and_then(|flow| flow.locale.clone());
    if of_flow.is_some() || status == 429 || status >= 500 {
        return of_flow;
    }
    browser.provider().locale(&browser.visit).await.unwrap_or_else(|problem| {
        tracing::debug!(status = problem.status(), "the language of a person cannot be read");
        None
    })
}

/// Answers with an error page, which names the trace id, and leads back to the client app where that is known.
pub async fn error_page(browser: &Browser<'_>, error: PageError) -> Response<AnswerBody> {
    error_page_leading_to(browser, error, browser.flow.as_ref().and_then(PendingFlow::home)).await
}

/// The same, with this link back.
pub async fn error_page_leading_to(
    browser: &Browser<'_>,
    error: PageError,
    back: Option<String>,
) -> Response<AnswerBody> {
    tracing::debug!(code = error.code, detail = error.detail, "refused on a page");
    let is_of_app = matches!(browser.route, SystemRoute::Authorize | SystemRoute::EndSession);
    // requests to an unknown tenant were logged at its look-up
    let needs_log = error.status < 500 && error.status != 404;
    if needs_log && (is_of_app || error == PageError::UNKNOWN_CLIENT) {
        browser.log_refusal(error.code, error.detail).await;
    }
    let reference = trace_of(browser.parts).to_string();
    let context = json!({ "code": error.code, "reference": reference, "return_url": back });
    let page_of = Page { status: error.status, ..Page::new("Error", "error", context) };
    let page_of = page_of.in_language(locale_of(browser, error.status).await);
    let mut response = page(browser, Shown { page: page_of, ..Shown::of_page() }, "error").await;
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
