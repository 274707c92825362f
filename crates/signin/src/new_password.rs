//! The page of a password that must be changed: the present one is verified once more, and another one takes its
//! place.

use std::sync::Arc;

use chancery_flow::{Action, DueAction, Event, Identified, Method, Proven, Step};
use chancery_record::Secret;
use chancery_resource::{Problem, Purpose, Tx, Work};
use chancery_store::Mode;
use chancery_userstore::password::{
    own_change::{NewPasswordFault, PasswordState, VerifiedChange, begin_change, change},
    sign_in::{self, Decision},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    completion::{Completion, Decided},
    kept_flow::{KeptFlow, Mistake},
    outcome::{Judged, Outcome, PageError},
    page::NEW_PASSWORD,
    password::LONGEST,
    provider::{Circumstances, Examined, Provider, Visit, context_of_store},
    record::Outcome as Recorded,
    step::after_post,
};

/// What was typed on the page.
pub struct NewPassword {
    /// The present password.
    pub current: Secret,
    /// The new one.
    pub new: Secret,
    /// The new one once more.
    pub repeated: Secret,
}

impl Provider<'_> {
    /// Counts an attempt at the present password, verifies it and hashes the new one outside of transactions, and sets the new one
    /// where the present one was right.
    ///
    /// # Errors
    /// The database fails, or the queue for hashing passwords is full: then the attempt stays counted.
    pub async fn change_password(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        typed: NewPassword,
    ) -> Result<(Outcome, Judged), Problem> {
        let Some(application) = self.application_of(&kept).await? else {
            return Ok((Outcome::Error(PageError::UNKNOWN_CLIENT), Judged::Not));
        };
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        let examined = self.examine(visit, &kept, &circumstances).await?;
        let due =
            examined.due.identified().filter(|_| is_due(&examined)).map(|identified| identified.instance);
        let (Some(store), Some(user)) = (due, examined.user().map(|user| user.user)) else {
            let outcome = self.step(visit, kept.clone(), circumstances, examined).await?;
            return Ok((after_post(kept, outcome), Judged::Not));
        };
        let has_none = examined.password.as_ref().is_some_and(|password| password.is_missing);
        let faults = faults_of(&typed, has_none);
        if !faults.is_empty() {
            return Ok((again(kept, faults), Judged::Not));
        }
        let (app, now, new) = (Arc::clone(self.context), visit.now, typed.new);
        let counting = self.store.run("CountPasswordChange", Mode::Write, None, move |tx| {
            let context = context_of_store(&app, tx, store, now)?;
            begin_change(&context, tx, user, (new.clone(), has_none))
        });
        let Some(pending) = counting.await? else {
            return Ok((Outcome::Error(PageError::NO_FLOW), Judged::Not));
        };
        let work = Work::new(Purpose::Password, move || pending.verify(&typed.current));
        let verified = self.pool.run(None, work).await?;
        kept.mistake = None;
        let Some(completion) = self.completion(visit, &kept, &circumstances) else {
            return Ok((Outcome::Error(PageError::NO_FLOW), Judged::Not));
        };
        let deciding = move |tx: &mut Tx<'_>| decide(&completion, tx, store, &verified);
        Ok(match self.store.run("ChangePassword", Mode::Write, None, deciding).await? {
            Changed::Refused => {
                (again(kept, vec![fault("password_current", "current_password")]), Judged::Wrong)
            }
            Changed::Faulty(code) => (again(kept, vec![fault(code, "new_password")]), Judged::Not),
            Changed::Done(decided) => {
                (self.conclude(visit, kept, circumstances, decided).await?, Judged::Right)
            }
        })
    }
}

/// What came of a change.
enum Changed {
    /// The present password is not right, or the user may not sign in now.
    Refused,
    /// The new password is not good enough: the code of the text that says why.
    Faulty(&'static str),
    /// It is changed.
    Done(Decided),
}

fn decide(
    completion: &Completion,
    tx: &mut Tx<'_>,
    store: Uuid,
    verified: &VerifiedChange,
) -> Result<Changed, Problem> {
    let mut context = context_of_store(&completion.app, tx, store, completion.now)?;
    let sessions = completion.sessions(tx)?;
    let before = completion.examine(tx, &sessions)?;
    if let Some(present) = &verified.sign_in {
        match sign_in::decide(&context, tx, present)? {
            Decision::Right(user) => context.actor = Some(user.id.0),
            Decision::Wrong(_) => {
                if let Some(identified) = before.due.identified() {
                    let whose = (identified.person, identified.tenant);
                    let wrong = completion.record(Recorded::WrongCredentials, identified.instance, whose);
                    wrong.write(&context, tx)?;
                }
                return Ok(Changed::Refused);
            }
            Decision::Refused => return Ok(Changed::Refused),
        }
    } else {
        // there is no password to be proven: what was proven in this flow must still make one due
        if !is_due(&before) || !before.password.as_ref().is_some_and(|password| password.is_missing) {
            return Ok(Changed::Done(Decided::GoOn(before.due.flow().clone().into())));
        }
        context.actor = before.user().map(|user| user.user_id);
    }
    if let Err(fault) = change(&context, tx, verified)? {
        if let Some(present) = &verified.sign_in {
            sign_in::withdraw(&context, tx, present)?;
        }
        return Ok(Changed::Faulty(code_of(fault)));
    }
    // the change ended all sessions, and what was proven before it counts no longer
    let sessions = completion.sessions(tx)?;
    let examined = match before.due.identified() {
        Some(identified) => {
            let Identified { person, instance, .. } = *identified;
            let made = Proven { person, instance, method: Method::Password, credential: None };
            completion.apply(tx, &sessions, before, Event::PasswordMade(made))?
        }
        None => completion.examine(tx, &sessions)?,
    };
    let decided = completion.sign_in(&context, tx, &sessions, &examined, None)?;
    Ok(Changed::Done(decided.unwrap_or_else(|| Decided::GoOn(examined.due.flow().clone().into()))))
}

fn is_due(examined: &Examined) -> bool {
    matches!(examined.due.step(), Step::Action(DueAction { action: Action::Password, .. }))
}

/// The code of the text that says what is wrong with a new password.
pub const fn code_of(fault: NewPasswordFault) -> &'static str {
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

/// The page once more, with what is wrong.
fn again(kept: KeptFlow, errors: Vec<(String, String)>) -> Outcome {
    kept.again_with(NEW_PASSWORD, errors)
}

/// What the page shows.
pub fn context_of(kept: &KeptFlow, examined: &Examined) -> Value {
    let errors = kept.mistake_on(NEW_PASSWORD).map(Mistake::told);
    let Some(password) = &examined.password else { return json!({ "errors": errors.unwrap_or_default() }) };
    json!({
        "reason": match (password.is_missing, password.is_expired) {
            (true, _) => "missing",
            (false, true) => "expired",
            (false, false) => "initial",
        },
        "username": password.login_name,
        "rules": rules_of(password),
        "errors": errors.unwrap_or_else(|| json!([])),
    })
}

/// What a new password needs, as pages take it.
pub fn rules_of(password: &PasswordState) -> Vec<Value> {
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
