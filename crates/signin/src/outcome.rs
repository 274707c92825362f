//! What a browser is answered.

use chancery_oauth::Refusal;
use uuid::Uuid;

use crate::{appearance::Owners, application::Application, kept_flow::KeptFlow};

/// What a browser is answered.
pub enum Outcome {
    /// It goes back to the client app, to this address.
    Leave(String),
    /// It posts these fields to the client app.
    Post {
        /// The address.
        action: String,
        /// The fields.
        fields: Vec<(String, String)>,
        /// The session's new cookie, where the person has just signed in.
        session: Option<NewSession>,
    },
    /// It goes to an external identity provider, at this address, and comes back to this flow.
    Elsewhere(Box<KeptFlow>, String),
    /// It goes to a page of this flow. Where the person has just signed in, with the session's new cookie.
    GoTo(Box<KeptFlow>, &'static str, Option<NewSession>),
    /// It is shown a page of this flow.
    Page(Box<KeptFlow>, Page),
    /// The client app's request is refused for this reason, which the client app is told by this answer.
    Refused(Refusal, Box<Outcome>),
    /// There is no flow any more, or none that may be answered by redirect.
    Error(PageError),
}

/// What a post says of what was shown in it, for who counts wrong proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It is right.
    Right,
    /// It is wrong.
    Wrong,
    /// Nothing was judged: it counts as neither.
    Not,
}

/// A session's new cookie.
pub struct NewSession {
    /// Its value.
    pub value: String,
    /// How long the browser keeps it, in seconds; `None`: until it is closed.
    pub max_age: Option<i64>,
    /// The value of the cookie of a browser that is remembered, and how long the browser keeps it, in seconds.
    pub device: Option<(String, i64)>,
}

/// A page: its view and what the view is filled with.
pub struct Page {
    /// The name of the view.
    pub view: &'static str,
    /// The step that the page's form is for.
    pub step: &'static str,
    /// The status.
    pub status: u16,
    /// The context, beside what all pages have.
    pub context: serde_json::Value,
    /// Whose page it is, as far as it is known beside the browser's flow.
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

    /// The page, as that of a client app in a tenant.
    #[must_use]
    pub fn of(self, application: &Application, tenant: Option<Uuid>) -> Self {
        let owners = Owners { tenant, client_app: Some(application.id), subscription: None };
        Self { owners, epoch: Some(application.epoch), ..self }
    }

    /// The page, for a person with this language.
    #[must_use]
    pub fn in_language(self, locale: Option<String>) -> Self {
        Self { locale, ..self }
    }
}

/// An error that is told on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageError {
    /// The status.
    pub status: u16,
    /// The code of the text that people read.
    pub code: &'static str,
    /// What is wrong, for developers.
    pub detail: &'static str,
    /// After how many seconds to try again.
    pub retry_after: Option<i64>,
}

impl PageError {
    /// The client app is not known here.
    pub const UNKNOWN_CLIENT: Self =
        Self::new(400, "unknown_client", "client_id names no client app that serves here.");
    /// The redirect URI is not the client app's.
    pub const UNKNOWN_REDIRECT: Self =
        Self::new(400, "unknown_redirect", "redirect_uri is none of the client app's.");
    /// Nobody can sign in: the client app and the tenant have no user store in common that can be used.
    pub const NOT_SET_UP: Self = Self::new(
        400,
        "not_set_up",
        "No active instance without a configuration error belongs to the tenant and the client app, or the tenant is closed by its settings.",
    );
    /// The request is longer than any that is read.
    pub const TOO_LONG: Self = Self::new(400, "too_long", "The query is longer than 8 KiB.");
    /// The flow's time is over.
    pub const NO_FLOW: Self = Self::new(400, "expired", "The time of the sign-in is over.");
    /// The flow came to its end: the client app was answered.
    pub const FINISHED: Self = Self::new(400, "finished", "The sign-in has come to its end.");
    /// This browser has no such flow, or no longer: it signed out, or has begun others since.
    pub const GONE: Self = Self::new(400, "gone", "There is no such sign-in under way in this browser.");
    /// The browser sends no cookie, so that nothing can be under way in it.
    pub const NO_COOKIES: Self = Self::new(400, "no_cookies", "The browser sends no cookies.");
    /// A form that was not sent by a page of ours.
    pub const FOREIGN_FORM: Self =
        Self::new(403, "session", "The form was not sent by a page of this server.");

    /// There is no such page here.
    pub const NOT_FOUND: Self = Self::new(404, "not_found", "There is no such page here.");
    /// Too much waits to be worked on.
    pub const BUSY: Self = Self {
        retry_after: Some(1),
        ..Self::new(503, "temporarily_unavailable", "Too much waits to be worked on.")
    };

    /// What is told on a page where a request cannot be answered with this status.
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

    /// A request that cannot be understood.
    pub const fn request(detail: &'static str) -> Self {
        Self::new(400, "invalid_request", detail)
    }

    /// A request that does not say who asks, or where the answer is to go.
    pub(crate) fn addressing(parameters: &[(String, String)], refusal: Refusal) -> Self {
        let is_missing = |name| !parameters.iter().any(|(key, value)| key == name && !value.is_empty());
        let code = match () {
            () if is_missing("client_id") => "missing_client",
            () if is_missing("redirect_uri") => "missing_redirect",
            () => "invalid_request",
        };
        Self::new(400, code, refusal.detail)
    }

    /// Too many attempts: to be tried again after so many seconds.
    pub const fn too_many(seconds: i64) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(429, "too_many", "Too many wrong attempts came.") }
    }
}
