//! The end session endpoint: the request, the confirmation form, and the page after the sign-out.

use chancery_record::Timestamp;
use chancery_resource::Problem;
use chancery_signin::{Form, Page, PageError, SIGN_OUT, SIGNED_OUT, SignOutResponse, SignedOut};
use chancery_store::Error;
use http::{Response, request::Parts};

use super::{
    Browser, Cookies, Parameters, Shown, error_page,
    language::languages,
    page,
    redirect::{LONGEST_LOCATION, encoded_query, redirect_to_client, see_other},
    visit,
};
use crate::{app::App, message::answer::AnswerBody, routes::system_route::SystemRoute};

/// The longest address of a redirect by a header, beside the other headers.
const LONGEST_REFRESH: usize = 2_000;

/// Signs out the person of this browser, by a verified form of another page of this server.
pub async fn sign_out(app: &App, parts: &Parts, now: Timestamp) -> Result<Response<AnswerBody>, Problem> {
    let mut cookies = Cookies::read(&parts.headers, &app.token_service.public_url);
    let visit = visit(&mut cookies, &app.token_service.installation(), parts, true, now);
    let languages = languages(parts);
    let route = SystemRoute::EndSession;
    let browser = Browser { app, route, parts, cookies, visit, query: Vec::new(), languages, flow: None };
    browser.end_confirmed().await
}

impl Browser<'_> {
    pub(super) async fn end_session(self, form: Option<Parameters>) -> Result<Response<AnswerBody>, Problem> {
        let is_post = form.is_some();
        let shown = form.unwrap_or_default();
        let shown = Form(&shown);
        let expected = self.csrf_of("sign-out-csrf");
        let is_confirmed = self.is_ours(shown, expected.clone());
        if is_confirmed && shown.field("decision") == Some("deny") {
            let context = serde_json::json!({ "step": "stayed" });
            let locale = self.provider().locale(&self.visit).await?;
            let stayed = Page::new("Logout", SIGN_OUT, context).in_language(locale);
            return Ok(page(&self, Shown { page: stayed, ..Shown::of_page() }, SIGN_OUT).await);
        }
        let answer = self.provider().end_session(&self.visit, &self.query, is_confirmed).await?;
        // a confirmed request was logged when it was first shown
        if let Some(refusal) = answer.refusal.filter(|_| !is_confirmed) {
            self.log_refusal(refusal.code.name(), refusal.detail).await;
        }
        match answer.response {
            SignOutResponse::Confirm(confirmation) => {
                let action = format!("{}?{}", self.parts.uri.path(), encoded_query(self.query.iter()));
                Ok(page(
                    &self,
                    Shown { page: confirmation, action, csrf: expected, ..Shown::of_page() },
                    SIGN_OUT,
                )
                .await)
            }
            SignOutResponse::Done(done) => self.leave_signed_out(done, is_post).await,
            SignOutResponse::Error(error) => Ok(error_page(&self, error).await),
        }
    }

    async fn end_confirmed(self) -> Result<Response<AnswerBody>, Problem> {
        match self.provider().end_session(&self.visit, &self.query, true).await?.response {
            SignOutResponse::Done(done) => self.leave_signed_out(done, true).await,
            SignOutResponse::Error(error) => Ok(error_page(&self, error).await),
            SignOutResponse::Confirm(_) => {
                Err(Error::Internal("a sign-out asks what was asked".into()).into())
            }
        }
    }

    /// Answers after a sign-out: at once by a redirect to the client app where nothing else is to be done, else by
    /// the page that says so. Browsers apply `form-action` to redirects that follow a post, so that a post is
    /// answered by the page, which redirects.
    async fn leave_signed_out(
        mut self,
        done: SignedOut,
        is_post: bool,
    ) -> Result<Response<AnswerBody>, Problem> {
        // a cross-site request has no cookies, and must not end a session either
        if done.is_last && self.visit.session.is_some() {
            self.cookies.forget_session();
        }
        if done.is_intended {
            self.cookies.set_signed_out();
        }
        // proofs of a sign-in in progress would sign in the next person at this browser
        self.cookies.forget_flows();
        let done = done.via_provider(&self.app.context.master, &self.visit)?;
        let mut response = match done.next() {
            Some(next) if !is_post && done.frames.is_empty() => redirect_to_client(next),
            _ => {
                let sealed = done.seal(&self.app.context.master, &self.visit)?;
                if sealed.len() > LONGEST_LOCATION {
                    // long context does not fit an address: it is shown at once
                    return Ok(self.show_signed_out(done).await);
                }
                let issuer = chancery_auth::issuer_url("", self.visit.issuer.tenant_id());
                see_other(&self.in_language(format!("{issuer}/signin/{SIGNED_OUT}?done={sealed}")))
            }
        };
        self.cookies.write(&mut response);
        Ok(response)
    }

    /// The page after the sign-out.
    pub(super) async fn signed_out(self) -> Response<AnswerBody> {
        // an external identity provider that leads back sends it as the state
        let sealed = self.parameter("done").or_else(|| self.parameter("state")).unwrap_or_default();
        let Some(done) = SignedOut::open(&self.app.context.master, &self.visit, sealed) else {
            return error_page(&self, PageError::GONE).await;
        };
        self.show_signed_out(done).await
    }

    async fn show_signed_out(self, done: SignedOut) -> Response<AnswerBody> {
        // a long address is a link on the page, not a header
        let leads_on = done.frames.is_empty() || done.upstream.is_some();
        let refresh = done.next().filter(|next| leads_on && next.len() <= LONGEST_REFRESH).map(str::to_owned);
        let shown = Shown { page: done.page(), refresh, frames: done.frames, ..Shown::of_page() };
        page(&self, shown, SIGN_OUT).await
    }
}
