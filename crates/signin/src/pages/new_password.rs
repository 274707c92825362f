//! The page of a required password change: verifies the current password and replaces it.

use std::sync::Arc;

use chancery_flow::{Action, DueAction, Event, Identified, Method, Proven, Step};
use chancery_record::Secret;
use chancery_resource::{Problem, Purpose, Tx, Work};
use chancery_store::Mode;
use chancery_userstore::password::{
    change_at_sign_in::{NewPasswordFault, PasswordState, VerifiedChange, begin_change, change},
    sign_in::{self, Decision},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Attempt, Form, Posted, SignInPage, password::LONGEST};
use crate::{
    flow::{
        context::{Evaluated, FlowContext},
        page_name::NEW_PASSWORD,
        pending_flow::{FormErrors, PendingFlow},
        response::{AttemptResult, BrowserResponse, PageError},
        sign_in_transaction::{ProofResult, SignInTransaction},
    },
    person::context::context_of_store,
    provider::{Provider, Visit},
    session::sign_in_record::SignInOutcome,
};

pub(super) static PAGE: SignInPage = SignInPage {
    name: NEW_PASSWORD,
    prepare: None,
    view,
    attempt: |_, pending| Some(Attempt::of_flow(NEW_PASSWORD, pending)),
    post,
};

/// The input of the page.
struct NewPassword {
    /// The current password.
    current: Secret,
    /// The new one.
    new: Secret,
    /// The new one, repeated.
    repeated: Secret,
}

fn view(_: &FlowContext, pending: &PendingFlow, evaluated: &Evaluated) -> (&'static str, Value) {
    let errors = pending.form_errors_on(NEW_PASSWORD).map(FormErrors::to_json);
    let Some(password) = &evaluated.password else {
        return ("PasswordChange", json!({ "errors": errors.unwrap_or_default() }));
    };
    let context = json!({
        "reason": match (password.is_missing, password.is_expired) {
            (true, _) => "missing",
            (false, true) => "expired",
            (false, false) => "initial",
        },
        "username": password.login_name,
        "rules": rules_of(password),
        "errors": errors.unwrap_or_else(|| json!([])),
    });
    ("PasswordChange", context)
}

fn post<'a>(provider: Provider<'a>, visit: &'a Visit, pending: PendingFlow, form: Form<'a>) -> Posted<'a> {
    let typed = NewPassword {
        current: form.secret("current_password"),
        new: form.secret("new_password"),
        repeated: form.secret("repeated_password"),
    };
    Box::pin(provider.change_password(visit, pending, typed))
}

impl Provider<'_> {
    /// Counts an attempt with the current password, verifies it and hashes the new one outside of transactions, and
    /// sets the new one if the current one is correct.
    ///
    /// # Errors
    /// The database fails, or the queue for hashing passwords is full: then the attempt stays counted.
    async fn change_password(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        typed: NewPassword,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        let Some((flow_context, evaluated)) = self.resume(visit, &pending).await? else {
            return Ok((BrowserResponse::Error(PageError::UNKNOWN_CLIENT), AttemptResult::NotCounted));
        };
        let due =
            evaluated.due.identified().filter(|_| is_due(&evaluated)).map(|identified| identified.instance);
        let (Some(store), Some(user)) = (due, evaluated.user().map(|user| user.user)) else {
            return self.respond_after_post(visit, pending, flow_context, evaluated).await;
        };
        let has_none = evaluated.password.as_ref().is_some_and(|password| password.is_missing);
        let faults = faults_of(&typed, has_none);
        if !faults.is_empty() {
            return Ok((show_errors(pending, faults), AttemptResult::NotCounted));
        }
        let (app, now, new) = (Arc::clone(self.context), visit.now, typed.new);
        let counting = self.store.run("CountPasswordChange", Mode::Write, None, move |tx| {
            let context = context_of_store(&app, tx, store, now)?;
            begin_change(&context, tx, user, new.clone(), has_none)
        });
        let Some(attempt) = counting.await? else {
            return Ok((BrowserResponse::Error(PageError::NO_FLOW), AttemptResult::NotCounted));
        };
        let work = Work::new(Purpose::Password, move || attempt.verify(&typed.current));
        let verified = self.pool.run(None, work).await?;
        pending.form_errors = None;
        let Some(transaction) = self.sign_in_transaction(visit, &pending, &flow_context) else {
            return Ok((BrowserResponse::Error(PageError::NO_FLOW), AttemptResult::NotCounted));
        };
        let deciding = move |tx: &mut Tx<'_>| decide(&transaction, tx, store, &verified);
        Ok(match self.store.run("ChangePassword", Mode::Write, None, deciding).await? {
            ChangeResult::Refused => (
                show_errors(pending, vec![fault("password_current", "current_password")]),
                AttemptResult::Failed,
            ),
            ChangeResult::Invalid(code) => {
                (show_errors(pending, vec![fault(code, "new_password")]), AttemptResult::NotCounted)
            }
            ChangeResult::Done(decided) => (
                self.respond_to_proof(visit, pending, flow_context, decided).await?,
                AttemptResult::Succeeded,
            ),
        })
    }
}

/// The result of a change.
enum ChangeResult {
    /// The current password is wrong, or the user may not sign in now.
    Refused,
    /// The new password is rejected: the error code.
    Invalid(&'static str),
    /// It is changed.
    Done(ProofResult),
}

fn decide(
    transaction: &SignInTransaction,
    tx: &mut Tx<'_>,
    store: Uuid,
    verified: &VerifiedChange,
) -> Result<ChangeResult, Problem> {
    let mut context = context_of_store(&transaction.app, tx, store, transaction.now)?;
    let sessions = transaction.sessions(tx)?;
    let before = transaction.evaluate(tx, &sessions)?;
    if let Some(present) = &verified.sign_in {
        match sign_in::decide(&context, tx, present)? {
            Decision::Right(user) => context.actor = Some(user.id.0),
            Decision::Wrong(_) => {
                if let Some(identified) = before.due.identified() {
                    let wrong = transaction.record(
                        SignInOutcome::WrongCredentials,
                        identified.instance,
                        identified.person,
                        identified.tenant,
                    );
                    wrong.write(&context, tx)?;
                }
                return Ok(ChangeResult::Refused);
            }
            Decision::Refused => return Ok(ChangeResult::Refused),
        }
    } else {
        // there is no current password: the proofs of this flow must still require a new one
        if !is_due(&before) || !before.password.as_ref().is_some_and(|password| password.is_missing) {
            return Ok(ChangeResult::Done(ProofResult::Continue(before.due.flow().clone().into())));
        }
        context.actor = before.user().map(|user| user.user_id);
    }
    if let Err(fault) = change(&context, tx, verified)? {
        if let Some(present) = &verified.sign_in {
            sign_in::withdraw(&context, tx, present)?;
        }
        return Ok(ChangeResult::Invalid(code_of(fault)));
    }
    // the change ended all sessions, and earlier proofs are invalid
    let sessions = transaction.sessions(tx)?;
    let evaluated = match before.due.identified() {
        Some(identified) => {
            let Identified { person, instance, .. } = *identified;
            let made = Proven { person, instance, method: Method::Password, credential: None };
            transaction.apply(tx, &sessions, before, Event::PasswordSet(made))?
        }
        None => transaction.evaluate(tx, &sessions)?,
    };
    let decided = transaction.sign_in(&context, tx, &sessions, &evaluated, None)?;
    Ok(ChangeResult::Done(
        decided.unwrap_or_else(|| ProofResult::Continue(evaluated.due.flow().clone().into())),
    ))
}

fn is_due(evaluated: &Evaluated) -> bool {
    matches!(evaluated.due.step(), Step::Action(DueAction { action: Action::Password, .. }))
}

/// The error code of a rejected password.
pub(super) const fn code_of(fault: NewPasswordFault) -> &'static str {
    match fault {
        NewPasswordFault::Rules => "password_rules",
        NewPasswordFault::Common => "password_common",
        NewPasswordFault::Used => "password_history",
    }
}

fn fault(code: &str, field: &str) -> (String, String) {
    (code.to_owned(), field.to_owned())
}

fn faults_of(typed: &NewPassword, has_none: bool) -> Vec<(String, String)> {
    let fields = [
        ("current_password", &typed.current),
        ("new_password", &typed.new),
        ("repeated_password", &typed.repeated),
    ];
    let mut faults: Vec<_> = fields
        .iter()
        .filter(|(field, text)| text.expose().is_empty() && !(has_none && *field == "current_password"))
        .map(|(field, _)| fault("missing_password", field))
        .collect();
    if faults.is_empty() && typed.new.expose() != typed.repeated.expose() {
        faults.push(fault("password_different", "repeated_password"));
    }
    if faults.is_empty() && typed.current.expose().len().max(typed.new.expose().len()) > LONGEST {
        faults.push(fault("password_rules", "new_password"));
    }
    faults
}

/// The page again, with the errors.
fn show_errors(pending: PendingFlow, errors: Vec<(String, String)>) -> BrowserResponse {
    pending.with_errors(NEW_PASSWORD, errors)
}

/// The rules of a new password, in the form that views expect.
pub(super) fn rules_of(password: &PasswordState) -> Vec<Value> {
    let policy = &password.policy;
    let mut rules = vec![json!({ "code": "length", "value": policy.min_length })];
    let counted = [
        (policy.require_digit, "digits"),
        (policy.require_lowercase, "lower"),
        (policy.require_uppercase, "upper"),
        (policy.require_non_alphanumeric, "special"),
    ];
    rules.extend(
        counted.into_iter().filter(|(is_on, _)| *is_on).map(|(_, code)| json!({ "code": code, "value": 1 })),
    );
    if password.history > 0 {
        rules.push(json!({ "code": "history", "value": password.history }));
    }
    let plain = [(policy.not_login_name, "username"), (policy.blocklist_enabled, "common")];
    rules.extend(plain.into_iter().filter(|(is_on, _)| *is_on).map(|(_, code)| json!({ "code": code })));
    rules
}
