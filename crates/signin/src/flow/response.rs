//! The response to a browser.

use chancery_oauth::ProtocolError;
use uuid::Uuid;

use super::pending_flow::PendingFlow;
use crate::{appearance::Owners, client_app::Application};

/// The response to a browser.
pub enum BrowserResponse {
    /// Redirects to the client app, at this address.
    ToClient(String),
    /// Posts these fields to the client app (`form_post`).
    Post {
        /// The address.
        action: String,
        /// The fields.
        fields: Vec<(String, String)>,
        /// The session's new cookie, if the person has just signed in.
        session: Option<NewSession>,
    },
    /// Redirects to an external identity provider, at this address; the flow continues when the browser returns.
    ToProvider(Box<PendingFlow>, String),
    /// Redirects to a page of this flow; with the session's new cookie if the person has just signed in.
    ToPage(Box<PendingFlow>, &'static str, Option<NewSession>),
    /// Shows a page of this flow.
    Page(Box<PendingFlow>, Page),
    /// The client app's request is refused for this reason; the inner response reports it to the client app.
    Refused(ProtocolError, Box<BrowserResponse>),
    /// An error page: there is no flow, or none that may be answered by redirect.
    Error(PageError),
}

/// The result of the proof in a post, for the limit of failed attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptResult {
    /// The proof is correct.
    Succeeded,
    /// The proof is wrong.
    Failed,
    /// No proof was verified: it counts as neither.
    NotCounted,
}

/// A session's new cookie.
pub struct NewSession {
    /// Its value.
    pub value: String,
    /// Its lifetime in the browser, in seconds; `None`: until the browser is closed.
    pub max_age: Option<i64>,
    /// The cookie of a remembered browser: the value, and its lifetime in seconds.
    pub device: Option<(String, i64)>,
}

/// A page: its view and the view's context.
pub struct Page {
    /// The name of the view.
    pub view: &'static str,
    /// The step of the page's form.
    pub step: &'static str,
    /// The status.
    pub status: u16,
    /// The context, besides that of all pages.
    pub context: serde_json::Value,
    /// The owners of the page, as far as they are known without the browser's flow.
    pub owners: Owners,
    /// The security epoch, where this request has read it.
    pub epoch: Option<i64>,
    /// The language of the person, once it is known who that is.
    pub locale: Option<String>,
}

impl Page {
    /// A page.
    pub fn new(view: &'static str, step: &'static str, context: serde_json::Value) -> Self {
        Self { view, step, status: 200, context, owners: Owners::default(), epoch: None, locale: None }
    }

    /// The page of a client app in a tenant.
    #[must_use]
    pub fn of(self, application: &Application, tenant: Option<Uuid>) -> Self {
        let owners = Owners { tenant, client_app: Some(application.id), subscription: None };
        Self { owners, epoch: Some(application.epoch), ..self }
    }

    /// The page for a person with this language.
    #[must_use]
    pub fn in_language(self, locale: Option<String>) -> Self {
        Self { locale, ..self }
    }
}

/// An error that is shown on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageError {
    /// The status.
    pub status: u16,
    /// The code of the displayed text.
    pub code: &'static str,
    /// The reason, for developers.
    pub detail: &'static str,
    /// After how many seconds to try again.
    pub retry_after: Option<i64>,
}

impl PageError {
    /// The client app is unknown or does not serve here.
    pub const UNKNOWN_CLIENT: Self =
        Self::new(400, "unknown_client", "client_id names no client app that serves here.");
    /// The redirect URI is not the client app's.
    pub const UNKNOWN_REDIRECT: Self =
        Self::new(400, "unknown_redirect", "redirect_uri is none of the client app's.");
    /// Sign-ins are impossible: the client app and the tenant have no usable user store in common.
    pub const NOT_SET_UP: Self = Self::new(
        400,
        "not_set_up",
        "No active instance without a configuration error belongs to the tenant and the client app, or the tenant is closed by its settings.",
    );
    /// The request exceeds the maximum length.
    pub const TOO_LONG: Self = Self::new(400, "too_long", "The query is longer than 8 KiB.");
    /// The flow has expired.
    pub const NO_FLOW: Self = Self::new(400, "expired", "The time of the sign-in is over.");
    /// The flow has ended: the client app has its response.
    pub const FINISHED: Self = Self::new(400, "finished", "The sign-in has come to its end.");
    /// This browser has no such flow: it has signed out, or has started others since.
    pub const GONE: Self = Self::new(400, "gone", "There is no such sign-in under way in this browser.");
    /// The browser sends no cookie, so it can have no flow.
    pub const NO_COOKIES: Self = Self::new(400, "no_cookies", "The browser sends no cookies.");
    /// A form that was not sent by a page of ours.
    pub const FOREIGN_FORM: Self =
        Self::new(403, "session", "The form was not sent by a page of this server.");

    /// There is no such page here.
    pub const NOT_FOUND: Self = Self::new(404, "not_found", "There is no such page here.");
    /// The server is overloaded.
    pub const BUSY: Self = Self {
        retry_after: Some(1),
        ..Self::new(503, "temporarily_unavailable", "Too much waits to be worked on.")
    };

    /// The error page of a status.
    pub const fn of_status(status: u16, retry_after: Option<i64>) -> Self {
        let (code, detail) = match status {
            404 | 405 => ("not_found", "There is no such page here."),
            413 => ("too_large", "The form is too large."),
            429 => ("too_many", "Too many requests came."),
            503 => ("temporarily_unavailable", "The request cannot be worked on now."),
            400..500 => ("invalid_request", "The request cannot be understood."),
            _ => ("server_error", "The request failed."),
        };
        Self { retry_after, ..Self::new(status, code, detail) }
    }

    const fn new(status: u16, code: &'static str, detail: &'static str) -> Self {
        Self { status, code, detail, retry_after: None }
    }

    /// A malformed request.
    pub const fn request(detail: &'static str) -> Self {
        Self::new(400, "invalid_request", detail)
    }

    /// A request without a valid `client_id` or `redirect_uri`.
    pub(crate) fn addressing(parameters: &[(String, String)], refusal: ProtocolError) -> Self {
        let is_missing = |name| !parameters.iter().any(|(key, value)| key == name && !value.is_empty());
        let code = match () {
            () if is_missing("client_id") => "missing_client",
            () if is_missing("redirect_uri") => "missing_redirect",
            () => "invalid_request",
        };
        Self::new(400, code, refusal.detail)
    }

    /// Too many attempts; retry after these seconds.
    pub const fn too_many(seconds: i64) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(429, "too_many", "Too many wrong attempts came.") }
    }
}
