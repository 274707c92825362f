//! Choices of a person that need no proof: a tenant, an account, consent.

use chancery_flow::{Due, Event, Granted, Step};
use chancery_oauth::OPENID;
use chancery_resource::Problem;
use chancery_store::Mode;
use uuid::Uuid;

use crate::{
    flow::{
        context::{Evaluated, FlowContext},
        page_action::ActionResult,
        page_name::CONTINUE,
        page_redirect::after_post,
        pending_flow::PendingFlow,
        response::{BrowserResponse, PageError},
    },
    provider::{Provider, Visit},
    session,
};

/// The selection on the consent page.
pub struct GivenConsent {
    /// The selected scopes and resources.
    pub words: Vec<String>,
    /// Whether the consent is stored.
    pub is_remembered: bool,
}

impl Provider<'_> {
    /// Applies an event of a page and continues.
    pub(crate) async fn apply(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        event: impl Fn(&Due) -> Event + Send + Sync + 'static,
    ) -> Result<BrowserResponse, Problem> {
        let Some(application) = self.application_of(&pending).await? else {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_CLIENT));
        };
        let flow_context = FlowContext::new(self, application, (visit, &pending));
        let (flow, now, evaluator) = (pending.flow.clone(), visit.now, flow_context.clone());
        let cookie = visit.session_cookie(&self.context.master);
        let evaluated = self.store.run("ApplyToSignIn", Mode::Quick, None, move |tx| {
            let sessions = session::load(tx, cookie.as_ref(), now)?;
            let before = evaluator.evaluate(tx, flow.clone(), &sessions, now)?;
            // an event that does not belong to the due step changes nothing: the due page is shown
            match before.due.apply(event(&before.due)) {
                Ok(flow) => evaluator.evaluate(tx, flow, &sessions, now),
                Err(_) => Ok(before),
            }
        });
        let evaluated: Evaluated = evaluated.await?;
        pending.flow = evaluated.due.flow().clone();
        pending.locale = evaluated.locale().cloned();
        let is_complete = matches!(evaluated.due.step(), Step::Done(_) | Step::Consent);
        if evaluated.lacks_session && is_complete && !pending.has_signed_in {
            let (response, _) =
                self.advance(visit, (pending, CONTINUE), |_, _| Ok(ActionResult::Nothing)).await?;
            return Ok(response);
        }
        let response = self.step(visit, pending.clone(), flow_context, evaluated).await?;
        Ok(after_post(pending, response))
    }

    /// Handles a post of the page that chooses a tenant or an account, or of the page of a person who is not
    /// admitted.
    pub async fn choose(
        self,
        visit: &Visit,
        pending: PendingFlow,
        choice: &str,
    ) -> Result<BrowserResponse, Problem> {
        let id = |text: &str| Uuid::try_parse(text).unwrap_or_default();
        let event = match choice.split_once(':') {
            Some(("tenant", text)) => Event::TenantChosen(id(text)),
            Some(("session", text)) => Event::SessionChosen(id(text)),
            _ => match choice {
                "other" => Event::OtherAccount,
                "back" => Event::Back,
                "continue" => Event::Continued,
                _ => Event::Cancelled,
            },
        };
        self.apply(visit, pending, move |_| event.clone()).await
    }

    /// Handles a post of the consent page. `None`: denied. `openid` and resources cannot be deselected: they are
    /// granted even if they are not ticked.
    pub async fn consent(
        self,
        visit: &Visit,
        pending: PendingFlow,
        given: Option<GivenConsent>,
    ) -> Result<BrowserResponse, Problem> {
        let Some(given) = given else { return self.apply(visit, pending, |_| Event::ConsentDenied).await };
        let resources = pending.request().map(|(_, request)| request.resources).unwrap_or_default();
        self.apply(visit, pending, move |due| {
            let is_given = |word: &&String| {
                given.words.contains(word) || word.as_str() == OPENID || resources.contains(word)
            };
            let words = due.flow().request().requested.iter().filter(is_given).cloned().collect();
            Event::ConsentGiven(Granted { words, is_remembered: given.is_remembered })
        })
        .await
    }
}
