//! Applies an event of a page that needs no proof, and continues.

use chancery_flow::{Due, Event, Step};
use chancery_resource::Problem;
use chancery_store::Mode;

use super::{
    context::{Evaluated, FlowContext},
    page_action::ActionResult,
    page_name::CONTINUE,
    page_redirect::redirect_after_post,
    pending_flow::PendingFlow,
    response::{BrowserResponse, PageError},
};
use crate::{
    provider::{Provider, Visit},
    session,
};

impl Provider<'_> {
    /// Applies an event of a page and continues.
    pub(crate) async fn apply_event(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        event: impl Fn(&Due) -> Event + Send + Sync + 'static,
    ) -> Result<BrowserResponse, Problem> {
        let Some(application) = self.application_of(&pending).await? else {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_CLIENT));
        };
        let flow_context = FlowContext::new(self, application, visit, &pending);
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
                self.run_page_action(visit, pending, CONTINUE, |_, _| Ok(ActionResult::Nothing)).await?;
            return Ok(response);
        }
        let response = self.respond_with_step(visit, pending.clone(), flow_context, evaluated).await?;
        Ok(redirect_after_post(pending, response))
    }
}
