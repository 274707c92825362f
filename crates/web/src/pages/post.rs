//! The posts from the pages of a sign-in.

use chancery_resource::Problem;
use chancery_signin::{
    Attempt, AttemptResult, BrowserResponse, CONTINUE, Form, PageError, PendingFlow, Posted, SignInPage,
};
use tokio::time::{Instant, sleep_until};

use super::Browser;
use crate::{limits::proof_limiter::About, message::peer::address_of};

impl Browser<'_> {
    /// Processes a verified post from a page of a flow.
    pub(super) async fn do_step(
        &self,
        page: &SignInPage,
        flow: PendingFlow,
        form: Form<'_>,
    ) -> Result<BrowserResponse, Problem> {
        let attempt = (page.attempt)(form, &flow);
        let posted = (page.post)(self.provider(), &self.visit, flow, form);
        match attempt {
            Some(attempt) => self.attempt(attempt, posted).await,
            None => Ok(posted.await?.0),
        }
    }

    /// Admits an attempt within the limits of its address and of its subject, and reports to them whether it was
    /// right.
    async fn attempt(
        &self,
        Attempt { method, subject }: Attempt,
        posted: Posted<'_>,
    ) -> Result<BrowserResponse, Problem> {
        let (address, now) = (address_of(self.parts), self.visit.now);
        let attempt = match self.app.sign_in_limiter.admit(address, About::Person(&subject), now).await {
            Ok(attempt) => attempt,
            Err(seconds) => {
                self.app.metrics.note_sign_in(method, "limited");
                return Ok(BrowserResponse::Error(PageError::too_many(seconds)));
            }
        };
        let began = Instant::now();
        let proven = posted.await;
        match proven.as_ref().map_or(AttemptResult::NotCounted, |(_, result)| *result) {
            AttemptResult::Succeeded => {
                self.app.metrics.note_sign_in(method, "right");
                attempt.was_right();
            }
            AttemptResult::Failed => {
                self.app.metrics.note_sign_in(method, "wrong");
                attempt.was_wrong();
                sleep_until(began + self.app.limits.failed_sign_in_time).await;
            }
            AttemptResult::NotCounted => attempt.was_inconclusive(),
        }
        proven.map(|(outcome, _)| outcome)
    }
}

/// The label of a post's result in the metrics.
pub(super) fn result_label(outcome: &BrowserResponse) -> &'static str {
    match outcome {
        BrowserResponse::ToPage(flow, ..) if flow.form_errors.is_some() => "again",
        BrowserResponse::ToPage(_, CONTINUE, _)
        | BrowserResponse::ToClient(_)
        | BrowserResponse::Post { .. } => "complete",
        BrowserResponse::ToPage(..) | BrowserResponse::Page(..) | BrowserResponse::ToProvider(..) => "next",
        BrowserResponse::Refused(_, answer) => result_label(answer),
        BrowserResponse::Error(_) => "error",
    }
}
