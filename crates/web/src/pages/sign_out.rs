//! The end session endpoint: the request, the confirmation form, and the page after the sign-out.

use chancery_record::Timestamp;
use chancery_resource::Problem;
use chancery_signin::{Page, PageError, SIGN_OUT, SIGNED_OUT, SignedOut, SigningOut};
use chancery_store::Error;
use http::{Response, request::Parts};

use super::{
    Browser, Cookies, Form, Parameters, Shown, error_page,
    language::languages,
    lead::{LONGEST_LOCATION, leave, see_other, written},
    page, visit,
};
use crate::{answer::AnswerBody, app::App, system::SystemRoute};

/// The longest address that a page leads to by a header, beside its other headers.
const LONGEST_REFRESH: usize = 2_000;

/// Signs out whoever uses this browser, by a form of another page of this server's, which has proven itself and asked.
///
/// # Errors
/// Those of the store.
pub async fn sign_out(app: &App, parts: &Parts, now: Timestamp) -> Result<Response<AnswerBody>, Problem> {
    let mut cookies = Cookies::read(&parts.headers, &app.token_service.public_url);
    let visit = visit(&mut cookies, &app.token_service.installation(), parts, (true, now));
    let languages = languages(parts);
    let route = SystemRoute::EndSession;
    let browser = Browser { app, route, parts, cookies, visit, query: Vec::new(), languages, kept: None };
    browser.end_confirmed().await
}

impl Browser<'_> {
    pub(super) async fn end_session(self, form: Option<Parameters>) -> Result<Response<AnswerBody>, Problem> {
        let is_post = form.is_some();
        let shown = form.unwrap_or_default();
        let shown = Form(&shown);
        let expected = self.csrf_of("sign-out-csrf");
        let is_confirmed = self.is_ours(&shown, expected.clone());
        if is_confirmed && shown.field("decision") == Some("deny") {
            let context = serde_json::json!({ "step": "stayed" });
            let locale = self.provider().locale(&self.visit).await?;
            let stayed = Page::new("Logout", SIGN_OUT, context).in_language(locale);
            return Ok(page(&self, Shown { page: stayed, ..Shown::of_page() }, SIGN_OUT).await);
        }
        let answer = self.provider().end_session(&self.visit, &self.query, is_confirmed).await?;
        // what is confirmed was told of when it was asked
        if let Some(refusal) = answer.refusal.filter(|_| !is_confirmed) {
            self.tell(refusal.code.name(), refusal.detail).await;
        }
        match answer.what {
            SigningOut::Ask(asked) => {
                let action = format!("{}?{}", self.parts.uri.path(), written(self.query.iter()));
                Ok(page(&self, Shown { page: asked, action, csrf: expected, ..Shown::of_page() }, SIGN_OUT)
                    .await)
            }
            SigningOut::Done(done) => self.leave_signed_out(done, is_post).await,
            SigningOut::Error(error) => Ok(error_page(&self, error).await),
        }
    }

    async fn end_confirmed(self) -> Result<Response<AnswerBody>, Problem> {
        match self.provider().end_session(&self.visit, &self.query, true).await?.what {
            SigningOut::Done(done) => self.leave_signed_out(done, true).await,
            SigningOut::Error(error) => Ok(error_page(&self, error).await),
            SigningOut::Ask(_) => Err(Error::Internal("a sign-out asks what was asked".into()).into()),
        }
    }

    /// Answers who is signed out: at once by a redirect to the client app where nothing else is to be done, else by
    /// the page that says so. Browsers hold `form-action` against redirects that follow a post, so that a post is
    /// answered by the page, which leads on.
    async fn leave_signed_out(
        mut self,
        done: SignedOut,
        is_post: bool,
    ) -> Result<Response<AnswerBody>, Problem> {
        // a cross-site request has no cookies, and must not end a session either
        if done.is_last && self.visit.session.is_some() {
            self.cookies.forget_session();
        }
        // proofs of a sign-in in progress would sign in whoever continues it
        self.cookies.forget_flows();
        let done = done.by_way_of_the_provider(&self.app.context.master, &self.visit)?;
        let mut response = match done.next() {
            Some(next) if !is_post && done.frames.is_empty() => leave(next),
            _ => {
                let sealed = done.seal(&self.app.context.master, &self.visit)?;
                if sealed.len() > LONGEST_LOCATION {
                    // what does not fit an address is shown at once
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
        // an external identity provider that leads back tells it as the state
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
