//! Performs an action of a page and evaluates the next step, in one transaction.

use chancery_flow::Event;
use chancery_resource::{Context, Problem, Tx};
use chancery_store::Mode;

use super::{
    context::{Evaluated, FlowContext},
    pending_flow::PendingFlow,
    response::{AttemptResult, BrowserResponse, PageError},
    sign_in_transaction::{ProofResult, SignInTransaction},
};
use crate::{
    person::context::context_of,
    provider::{Provider, Visit},
};

/// The result of an action.
pub enum ActionResult {
    /// An event of the state machine.
    Event(Event),
    /// Two events in order, each applied only if it belongs to the due step.
    Events([Event; 2]),
    /// An authenticator was enrolled; these recovery codes are shown before the flow continues.
    Enrolled(Event, Vec<String>),
    /// A wrong proof: the error code and the field.
    Wrong(&'static str, &'static str),
    /// Invalid input: error codes, each with its field.
    Invalid(Vec<(&'static str, String)>),
    /// Invalid input whose error discloses data of others, so that it counts as a wrong proof.
    Taken(&'static str, String),
    /// The action does not belong to the due step, or there is nothing to do.
    Nothing,
}

/// The result of the transaction.
pub enum AdvanceResult {
    Wrong(&'static str, &'static str),
    Invalid(Vec<(&'static str, String)>, AttemptResult),
    Decided(ProofResult, Vec<String>, AttemptResult),
}

/// The context of an action in its transaction.
pub struct ActionContext<'a> {
    /// The sign-in transaction of the flow.
    pub transaction: &'a SignInTransaction,
    /// The context of the person's user store, with the person as actor; for external users that of the person.
    pub context: &'a Context,
    /// The evaluation before the action.
    pub evaluated: &'a Evaluated,
}

impl Provider<'_> {
    /// Performs an action and continues. Returns the response and the result of the attempt.
    pub(crate) async fn run_page_action(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        page: &'static str,
        perform: impl Fn(&ActionContext<'_>, &mut Tx<'_>) -> Result<ActionResult, Problem> + Send + Sync + 'static,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        let Some(application) = self.application_of(&pending).await? else {
            return Ok((BrowserResponse::Error(PageError::UNKNOWN_CLIENT), AttemptResult::NotCounted));
        };
        let flow_context = FlowContext::new(self, application, visit, &pending);
        let Some(transaction) = self.sign_in_transaction(visit, &pending, &flow_context) else {
            return Ok((BrowserResponse::Error(PageError::NO_FLOW), AttemptResult::NotCounted));
        };
        pending.form_errors = None;
        let advancing = move |tx: &mut Tx<'_>| run(&transaction, tx, &perform);
        match self.store.run("AdvanceSignIn", Mode::Write, None, advancing).await? {
            AdvanceResult::Wrong(code, field) => {
                Ok((pending.with_error(page, code, field), AttemptResult::Failed))
            }
            AdvanceResult::Invalid(faults, attempt_result) => {
                let faults = faults.into_iter().map(|(code, field)| (code.to_owned(), field));
                Ok((pending.with_errors(page, faults.collect()), attempt_result))
            }
            AdvanceResult::Decided(decided, codes, attempt_result) => {
                if !codes.is_empty() {
                    pending.enrolling = None;
                }
                pending.recovery_codes = codes;
                Ok((self.respond_to_proof(visit, pending, flow_context, decided).await?, attempt_result))
            }
        }
    }
}

fn run(
    transaction: &SignInTransaction,
    tx: &mut Tx<'_>,
    perform: &dyn Fn(&ActionContext<'_>, &mut Tx<'_>) -> Result<ActionResult, Problem>,
) -> Result<AdvanceResult, Problem> {
    let sessions = transaction.sessions(tx)?;
    let before = transaction.evaluate(tx, &sessions)?;
    let continue_flow = |evaluated: &Evaluated| ProofResult::Continue(evaluated.due.flow().clone().into());
    let (Some(identified), Some(admitted)) = (before.due.identified(), &before.admitted) else {
        return Ok(AdvanceResult::Decided(continue_flow(&before), Vec::new(), AttemptResult::NotCounted));
    };
    let context = context_of(&transaction.app, tx, admitted, identified, transaction.now)?;
    let action = ActionContext { transaction, context: &context, evaluated: &before };
    let (events, codes) = match perform(&action, tx)? {
        ActionResult::Wrong(code, field) => return Ok(AdvanceResult::Wrong(code, field)),
        ActionResult::Invalid(faults) => {
            return Ok(AdvanceResult::Invalid(faults, AttemptResult::NotCounted));
        }
        ActionResult::Taken(code, field) => {
            return Ok(AdvanceResult::Invalid(vec![(code, field)], AttemptResult::Failed));
        }
        ActionResult::Event(event) => (vec![event], Vec::new()),
        ActionResult::Events(events) => (events.to_vec(), Vec::new()),
        ActionResult::Enrolled(event, codes) => (vec![event], codes),
        ActionResult::Nothing => (Vec::new(), Vec::new()),
    };
    let is_changed = !events.is_empty();
    let mut after = before;
    for event in events {
        after = transaction.apply(tx, &sessions, after, event)?;
    }
    // recovery codes are shown before the sign-in completes, because they are shown only once
    let decided =
        if codes.is_empty() { transaction.sign_in(&context, tx, &sessions, &after, None)? } else { None };
    if is_changed && decided.is_none() {
        transaction.record_refusal(&context, tx, &after)?;
    }
    let attempt_result = if is_changed { AttemptResult::Succeeded } else { AttemptResult::NotCounted };
    Ok(AdvanceResult::Decided(decided.unwrap_or_else(|| continue_flow(&after)), codes, attempt_result))
}
