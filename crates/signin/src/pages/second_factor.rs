//! The page of a second factor, and the page that enrols an authenticator.

use chancery_flow::{Choice, CodeKind, Event, Method, Proven, Step};
use chancery_resource::{Problem, Tx};
use chancery_userstore::{attempt::begin_attempt, user::user_of};

use super::second_factor_view::choice_of;
use crate::{
    flow::{
        page_action::{ActionContext, ActionResult},
        page_name::{ENROL, SECOND_FACTOR},
        pending_flow::PendingFlow,
        response::{AttemptResult, BrowserResponse},
    },
    person::audit_entry::audit_person,
    provider::{Provider, Visit},
    second_factor::{
        CodeCheck, Enrolling, Purpose, enrol, make_recovery_codes, rate_guard, use_code,
        verify_authenticator, verify_sent,
    },
    session::sign_in_record::SignInOutcome,
};

/// The maximum length of a typed code, in bytes.
const LONGEST: usize = 64;

/// The input of the page.
pub struct Confirmation {
    /// The typed code.
    pub code: String,
    /// Whether this browser skips the second factor next time.
    pub remembers_device: bool,
}

impl Provider<'_> {
    /// Handles a choice on a page of second factors: another factor, another code, or back to the app.
    pub async fn choose_factor(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        choice: &str,
    ) -> Result<BrowserResponse, Problem> {
        pending.form_errors = None;
        match (choice, choice_of(choice)) {
            (_, Some(choice)) => self.apply(visit, pending, move |_| Event::OtherFactor(choice)).await,
            ("cancel", None) => self.apply(visit, pending, |_| Event::Cancelled).await,
            (_, None) => self.send_again(visit, pending, SECOND_FACTOR).await,
        }
    }

    /// Handles a post of the page of a second factor. Returns the response and the result of the attempt.
    pub async fn confirm(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        typed: Confirmation,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        if typed.code.trim().is_empty() {
            return Ok((
                pending.with_error(SECOND_FACTOR, "missing_code", "code"),
                AttemptResult::NotCounted,
            ));
        }
        pending.remembers_device = typed.remembers_device;
        let code = typed.code;
        self.advance(visit, (pending, SECOND_FACTOR), move |action, tx| prove(action, tx, &code)).await
    }

    /// Handles a post of the page that enrols an authenticator. Returns the response and the result of the attempt.
    pub async fn enrol(
        self,
        visit: &Visit,
        pending: PendingFlow,
        code: String,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        if code.trim().is_empty() {
            return Ok((pending.with_error(ENROL, "missing_code", "code"), AttemptResult::NotCounted));
        }
        let enrolling = pending.enrolling.clone();
        let act = move |action: &ActionContext<'_>, tx: &mut Tx<'_>| {
            store_authenticator(action, tx, enrolling.as_ref(), &code)
        };
        self.advance(visit, (pending, ENROL), act).await
    }

    /// Handles a post of the page of recovery codes: they were seen.
    pub async fn recovery_codes_seen(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
    ) -> Result<BrowserResponse, Problem> {
        pending.recovery_codes.clear();
        pending.enrolling = None;
        Ok(self.advance(visit, (pending, ENROL), |_, _| Ok(ActionResult::Nothing)).await?.0)
    }
}

/// Verifies a code, which counts as an attempt to sign in.
fn prove(action: &ActionContext<'_>, tx: &mut Tx<'_>, typed: &str) -> Result<ActionResult, Problem> {
    let (Step::SecondFactor(choices) | Step::StepUp { choices, .. }) = action.evaluated.due.step() else {
        return Ok(ActionResult::Nothing);
    };
    let (Some(identified), Some(admitted)) = (action.evaluated.due.identified(), &action.evaluated.admitted)
    else {
        return Ok(ActionResult::Nothing);
    };
    let (context, person) = (action.context, identified.person);
    let store = action.transaction.flow_context.store_of(action.evaluated);
    if rate_guard::is_locked(tx, person, context.now)? {
        return Ok(ActionResult::Wrong("locked", "code"));
    }
    // for external users there is only the guard
    let attempt = match &admitted.user {
        None => None,
        Some(user) => {
            let Some(user) = user_of(context, tx, user.user)? else { return Ok(ActionResult::Nothing) };
            let Some(attempt) = begin_attempt(context, tx, Some(user))? else {
                return Ok(ActionResult::Wrong("too_many", "code"));
            };
            Some(attempt)
        }
    };
    let typed = if typed.len() <= LONGEST { typed } else { "" };
    let proven = |instance, method, credential| Proven { person, instance, method, credential };
    let verified = match choices.chosen {
        Choice::Passkey => return Ok(ActionResult::Nothing),
        Choice::RecoveryCode { instance } => {
            let id = use_code(context, tx, (person, instance), typed)?;
            id.map(|id| proven(instance, Method::RecoveryCode, Some(id)))
        }
        Choice::Code { instance, kind } => {
            let Some(factor) = action.transaction.flow_context.factor(action.evaluated, instance) else {
                return Ok(ActionResult::Nothing);
            };
            if kind == CodeKind::Totp {
                let id = verify_authenticator(context, tx, factor, person, typed)?;
                id.map(|id| proven(instance, Method::Totp, Some(id)))
            } else {
                match verify_sent(context, tx, &Purpose::Factor(factor.clone()), person, typed)? {
                    CodeCheck::Correct => Some(proven(instance, kind.method(), None)),
                    CodeCheck::Wrong => None,
                    // no code was valid, so this is no wrong proof
                    CodeCheck::NoValidCode => return Ok(ActionResult::Wrong("code_expired", "code")),
                }
            }
        }
    };
    let Some(proven) = verified else {
        if let Some(attempt) = attempt {
            attempt.fail(context, tx)?;
        }
        rate_guard::note_wrong(context, tx, store, person)?;
        let person_at_tenant = (person, identified.tenant);
        action
            .transaction
            .record(SignInOutcome::WrongFactor, identified.instance, person_at_tenant)
            .write(context, tx)?;
        return Ok(ActionResult::Wrong("code_wrong", "code"));
    };
    rate_guard::clear(tx, person)?;
    Ok(ActionResult::Event(Event::FactorProven(proven)))
}

/// Stores an authenticator whose first code is correct.
fn store_authenticator(
    action: &ActionContext<'_>,
    tx: &mut Tx<'_>,
    enrolling: Option<&Enrolling>,
    typed: &str,
) -> Result<ActionResult, Problem> {
    let (Step::EnrolFactor(choices), Some(identified), Some(enrolling)) =
        (action.evaluated.due.step(), action.evaluated.due.identified(), enrolling)
    else {
        return Ok(ActionResult::Nothing);
    };
    let instance = enrolling.instance;
    let is_chosen = choices.chosen == Choice::Code { instance, kind: CodeKind::Totp };
    let Some(factor) =
        action.transaction.flow_context.factor(action.evaluated, instance).filter(|_| is_chosen)
    else {
        return Ok(ActionResult::Nothing);
    };
    let (context, person) = (action.context, identified.person);
    let typed = if typed.len() <= LONGEST { typed } else { "" };
    let Some(id) = enrol(context, tx, factor, person, (enrolling, typed))? else {
        return Ok(ActionResult::Wrong("code_wrong", "code"));
    };
    let codes = make_recovery_codes(context, tx, (person, id))?;
    audit_person(context, tx, person, "factor-enrolled")?;
    let proven = Proven { person, instance, method: Method::Totp, credential: Some(id) };
    Ok(ActionResult::Enrolled(Event::FactorEnrolled(proven), codes))
}
