//! The return from an external identity provider.

use chancery_auth::Issuer;
use chancery_record::Timestamp;
use chancery_resource::Problem;
use chancery_signin::{AttemptResult, EXTERNAL, PageError};
use http::{Response, request::Parts};

use super::{Browser, Cookies, error_page, language::languages, seconds_of, visit};
use crate::{
    app::App,
    message::{answer::AnswerBody, peer::address_of, request::read_form},
    routes::system_route::SystemRoute,
};

/// Processes the answer that a browser brings to this path of an instance, for the flow of this id.
pub async fn returned(
    app: &App,
    parts: &Parts,
    flow: &str,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let mut cookies = Cookies::read(&parts.headers, &app.token_service.public_url);
    let mut visit = visit(&mut cookies, &app.token_service.installation(), parts, true, now);
    let query = read_form(parts.uri.query().unwrap_or_default())?;
    let stored = match cookies.flow(flow) {
        Some(cookie) => app.provider(&app.store).flow_of(&visit, flow, &cookie).await?,
        None => None,
    };
    // the browser was sent to this instance: the answer of another one is none
    let is_sent = |path: &str| path == parts.uri.path();
    let stored =
        stored.filter(|stored| stored.provider_redirect.as_ref().is_some_and(|sent| is_sent(&sent.path)));
    if let Some(issuer) = issuer_of(app, stored.as_ref().and_then(|stored| stored.issuing)).await? {
        visit.issuer = issuer;
    }
    let (route, languages) = (SystemRoute::External, languages(parts));
    let browser = Browser { app, route, parts, cookies, visit, query, languages, flow: stored };
    // a session spares no address: an answer makes this server request tokens of the provider
    if let Err(problem) = app.page_limiter.admit_address(address_of(parts), now) {
        return Ok(error_page(&browser, PageError::too_many(seconds_of(&problem))).await);
    }
    browser.end_external().await
}

/// The issuer of a flow: that of this tenant, while it serves.
async fn issuer_of(app: &App, tenant: Option<uuid::Uuid>) -> Result<Option<Issuer>, Problem> {
    match tenant {
        Some(tenant) => Ok(app.token_service.issuer_of(&app.store, &tenant.to_string()).await?),
        None => Ok(None),
    }
}

impl Browser<'_> {
    async fn end_external(self) -> Result<Response<AnswerBody>, Problem> {
        let Some(flow) = self.flow_under_way() else { return self.without_flow().await };
        // no guess is possible, so that no other attempt waits for a slow provider: without the state of this browser nothing is requested
        let ending = self.provider().return_from_provider(&self.visit, flow, self.query.clone());
        let (outcome, result) = Box::pin(ending).await?;
        let known = if result == AttemptResult::Succeeded { "right" } else { "wrong" };
        self.app.metrics.note_sign_in(EXTERNAL, known);
        self.answer(outcome).await
    }
}
