//! Signing out, asked for by a client app (OpenID Connect RP-Initiated Logout 1.0) or by the person.

use chancery_oauth::EndSession;
use chancery_resource::{Context, Problem, Scope};
use chancery_store::Mode;
use serde_json::json;
use uuid::Uuid;

use crate::{
    application::{Application, default_retention},
    outcome::{Page, PageError},
    provider::{Provider, Visit},
    record::{Outcome as Recorded, SignInRecord},
    session,
};

/// The step that the form of the page belongs to.
pub const SIGN_OUT: &str = "signout";

/// What a request to sign out comes to.
pub enum SigningOut {
    /// The person is asked first.
    Ask(Page),
    /// The person is signed out; back to this address of the client app, if it named one of its own.
    Done {
        /// The address.
        back: Option<String>,
        /// The page, where there is no address to go to.
        page: Page,
    },
    /// The request cannot be understood.
    Error(PageError),
}

impl Provider<'_> {
    /// Answers a request to sign out. Nobody is signed out by an address alone: the page asks, and its form says so. An
    /// ID token of the person who is signed in here spares the page, where the client app's `logoutConsent` lets it.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn end_session(
        self,
        visit: &Visit,
        parameters: &[(String, String)],
        is_confirmed: bool,
    ) -> Result<SigningOut, Problem> {
        let request = match EndSession::read(parameters) {
            Ok(request) => request,
            Err(refusal) => return Ok(SigningOut::Error(PageError::request(refusal.detail))),
        };
        let named = request.client_id.as_deref().map(|id| Uuid::try_parse(id).unwrap_or_default());
        let hint = match &request.id_token_hint {
            Some(hint) => self.tokens.open_id_token(self.store, hint, &visit.issuer, visit.now).await?,
            None => None,
        };
        if let (Some(named), Some(hint)) = (named, &hint)
            && named != hint.aud
        {
            return Ok(SigningOut::Error(PageError::request(
                "id_token_hint is another client app's than client_id.",
            )));
        }
        let client = named.or(hint.as_ref().map(|hint| hint.aud));
        let application = match client {
            Some(id) => self.applications.find(self.store, id).await?,
            None => None,
        };
        let fits = |application: &Application| {
            request.post_logout_redirect_uri.as_ref().is_some_and(|uri| application.logout_uris.contains(uri))
        };
        let back = application.as_deref().filter(|one| fits(one)).and_then(|_| request.return_address());
        let about = application.as_ref().map(|one| json!({ "name": one.name }));
        let page = |step: &'static str, status| {
            let context = json!({ "application": about, "step": step, "return_url": back });
            Page { view: "Logout", step: SIGN_OUT, status, context }
        };
        let is_silent = match (&hint, &application) {
            (Some(hint), Some(application)) if application.signs_out_silently => {
                self.is_signed_in(visit, hint.sub).await?
            }
            _ => false,
        };
        if !is_confirmed && !is_silent {
            return Ok(SigningOut::Ask(page("confirm", 200)));
        }
        self.sign_out(visit, application.as_ref().map(|one| one.id)).await?;
        Ok(SigningOut::Done { page: page("done", 200), back })
    }

    /// Whether this browser has a session of this person.
    async fn is_signed_in(self, visit: &Visit, person: Uuid) -> Result<bool, Problem> {
        let (cookie, now) = (visit.session_cookie(&self.context.master), visit.now);
        let looking = self.store.run("SessionsOfBrowser", Mode::Quick, None, move |tx| {
            Ok::<_, Problem>(session::load(tx, cookie.as_ref(), now)?.iter().any(|one| one.person == person))
        });
        looking.await
    }

    /// Ends the sessions of a browser, and the grants that they made.
    async fn sign_out(self, visit: &Visit, application: Option<Uuid>) -> Result<(), Problem> {
        let (cookie, now) = (visit.session_cookie(&self.context.master), visit.now);
        let (app, origin) = (std::sync::Arc::clone(self.context), visit.origin.clone());
        let ending = self.store.run("SignOut", Mode::Write, None, move |tx| {
            let context = Context::of_server(&app, Scope::Everything, now);
            for session in session::load(tx, cookie.as_ref(), now)? {
                session::end(tx, session.id, now)?;
                let record = SignInRecord {
                    outcome: Recorded::SignedOut,
                    tenant: session.tenant,
                    application,
                    instance: None,
                    person: session.person,
                    methods: &[],
                    acr: None,
                    session: Some(session.id),
                    origin: &origin,
                    retention: default_retention(),
                };
                record.write(&context, tx)?;
            }
            Ok::<_, Problem>(())
        });
        ending.await
    }
}
