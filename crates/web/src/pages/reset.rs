//! The pages of a forgotten password: the request, the confirmation, and the page of the link.

use std::sync::Arc;

use chancery_record::Secret;
use chancery_resource::Problem;
use chancery_signin::{LONGEST_SECRET, PASSWORD, PageError, RESET, ResetLink, ResetScope, reset_page};
use http::Response;
use serde_json::{Value, json};
use tracing::Instrument as _;

use super::{
    Browser, CSRF, Parameters, Shown, error_page, page, redirect::encoded_query, seconds_of, see_other,
};
use crate::{
    limits::proof_limiter::About,
    message::{answer::AnswerBody, peer::address_of},
};

/// The mistakes of these pages, by the code in addresses, and their fields.
const MISTAKES: [(&str, &str); 7] = [
    ("missing_username", "username"),
    ("link_over", ""),
    ("missing_password", "new_password"),
    ("password_different", "repeated_password"),
    ("password_rules", "new_password"),
    ("password_common", "new_password"),
    ("password_history", "new_password"),
];

/// A field of a form.
fn field<'a>(form: &'a [(String, String)], name: &str) -> &'a str {
    form.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
}

impl Browser<'_> {
    /// The pages of a forgotten password, by the parameters of the address.
    pub async fn reset(self, form: Option<Parameters>) -> Result<Response<AnswerBody>, Problem> {
        let flow = self.flow_under_way();
        let Some(scope) = self.provider().reset_scope(&self.visit, flow.as_ref()).await? else {
            return Ok(error_page(&self, PageError::NOT_FOUND).await);
        };
        let token = self.parameter("token").map(str::to_owned);
        match (form, token) {
            (None, None) => Ok(self.reset_step().await),
            (None, Some(token)) => self.reset_by_link(&token).await,
            (Some(form), _) if !self.is_of_reset(&form) => {
                Ok(error_page(&self, PageError::FOREIGN_FORM).await)
            }
            (Some(form), None) => Ok(self.request_reset(scope, &form).await),
            (Some(form), Some(token)) => self.set_forgotten(&token, &form).await,
        }
    }

    fn reset_csrf(&self) -> String {
        self.csrf_of("password-reset-csrf")
    }

    fn is_of_reset(&self, form: &Parameters) -> bool {
        Secret::new(self.reset_csrf()).matches(field(form, CSRF).as_bytes()) && self.is_same_origin()
    }

    /// The address of another of these pages, with this parameter besides flow and language.
    fn reset_address(&self, more: Option<(&str, &str)>) -> String {
        let retained = self.query.iter().filter(|(name, _)| matches!(name.as_str(), "flow" | "ui_locales"));
        let more = more.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let query: Vec<_> = retained.cloned().chain(more).collect();
        format!("{}?{}", self.parts.uri.path(), encoded_query(query.iter()))
    }

    /// Shows one of the pages: with the mistake in the address, and with the way back to the sign-in.
    async fn show_reset(&self, mut context: Value, action: String) -> Response<AnswerBody> {
        let wrong = self.parameter("wrong").unwrap_or_default();
        let mistake = MISTAKES.iter().find(|(code, _)| *code == wrong);
        let errors: Vec<_> =
            mistake.iter().map(|(code, field)| json!({ "code": code, "field": field })).collect();
        if let Some(members) = context.as_object_mut() {
            members.insert("errors".to_owned(), errors.into());
            let sign_in = self.flow_under_way().map(|flow| self.address(&flow, PASSWORD));
            members.insert("sign_in_url".to_owned(), json!(sign_in));
        }
        let csrf = self.reset_csrf();
        page(self, Shown { page: reset_page(context), action, csrf, ..Shown::of_page() }, RESET).await
    }

    /// The pages without a link: the request, the confirmation, and the end.
    async fn reset_step(&self) -> Response<AnswerBody> {
        let named = self.parameter("step").filter(|step| matches!(*step, "sent" | "done"));
        self.show_reset(json!({ "step": named.unwrap_or("request") }), self.reset_address(None)).await
    }

    /// Answers before the look-up, so that neither text nor time reveals which names are known.
    async fn request_reset(self, scope: ResetScope, form: &Parameters) -> Response<AnswerBody> {
        let name = field(form, "username").trim().to_owned();
        if name.is_empty() {
            return see_other(&self.reset_address(Some(("wrong", "missing_username"))));
        }
        let app = self.app;
        if let Err(problem) = app.admit_address(self.parts, self.visit.now) {
            return error_page(&self, PageError::too_many(seconds_of(&problem))).await;
        }
        let Ok(permit) = Arc::clone(&app.resets).try_acquire_owned() else {
            return error_page(&self, PageError::BUSY).await;
        };
        let flow = self.flow_under_way().map(|flow| format!("flow={}&", flow.id)).unwrap_or_default();
        let link = format!("{}?{flow}", self.visit.issuer.endpoint(chancery_signin::RESET_PATH));
        let request = self.provider().request_reset(&self.visit, scope, link, name);
        let working = async move {
            if let Err(problem) = request.work().await {
                tracing::warn!(detail = problem.detail, "a forgotten password's link could not be made");
            }
            drop(permit);
        };
        tokio::spawn(working.in_current_span());
        see_other(&self.reset_address(Some(("step", "sent"))))
    }

    /// The page of a link.
    async fn reset_by_link(self, sealed: &str) -> Result<Response<AnswerBody>, Problem> {
        let now = self.visit.now;
        let attempt =
            match self.app.sign_in_limiter.admit(address_of(self.parts), About::Bearer(RESET), now).await {
                Ok(attempt) => attempt,
                Err(seconds) => return Ok(error_page(&self, PageError::too_many(seconds)).await),
            };
        let shown = match self.link(sealed) {
            Some(link) => self.provider().show_reset(&self.visit, link).await,
            None => Ok(None),
        };
        attempt.settle(shown.as_ref().ok().map(Option::is_some));
        let Some(shown) = shown? else { return Ok(self.link_over()) };
        Ok(self.show_reset(shown.context, self.reset_address(Some(("token", sealed)))).await)
    }

    fn link(&self, sealed: &str) -> Option<ResetLink> {
        ResetLink::open(&self.app.context.master, self.visit.issuer.tenant_id()?, sealed)
    }

    /// Redirects from an invalid link to the page that mails another.
    fn link_over(&self) -> Response<AnswerBody> {
        see_other(&self.reset_address(Some(("wrong", "link_over"))))
    }

    /// Sets a new password.
    async fn set_forgotten(self, sealed: &str, form: &Parameters) -> Result<Response<AnswerBody>, Problem> {
        let again = |code: &str| {
            let address = self.reset_address(Some(("token", sealed)));
            Ok(see_other(&format!("{address}&wrong={code}")))
        };
        let (new, repeated) = (field(form, "new_password"), field(form, "repeated_password"));
        let mistake = match () {
            () if new.is_empty() => Some("missing_password"),
            () if new != repeated => Some("password_different"),
            () if new.len() > LONGEST_SECRET => Some("password_rules"),
            () => None,
        };
        if let Some(code) = mistake {
            return again(code);
        }
        let now = self.visit.now;
        let attempt =
            match self.app.sign_in_limiter.admit(address_of(self.parts), About::Bearer(RESET), now).await {
                Ok(attempt) => attempt,
                Err(seconds) => return Ok(error_page(&self, PageError::too_many(seconds)).await),
            };
        let worked = self.work_on_link(sealed, Secret::new(new)).await;
        attempt.settle(worked.as_ref().ok().map(Option::is_some));
        match worked? {
            None => Ok(self.link_over()),
            Some(Err(code)) => again(code),
            Some(Ok(())) => Ok(see_other(&self.reset_address(Some(("step", "done"))))),
        }
    }

    async fn work_on_link(
        &self,
        sealed: &str,
        password: Secret,
    ) -> Result<Option<Result<(), &'static str>>, Problem> {
        let Some(link) = self.link(sealed) else { return Ok(None) };
        self.provider().reset_password(&self.visit, link, password).await
    }
}
