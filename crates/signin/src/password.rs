//! The password page: an attempt is counted, the password verified outside of transactions, and the sign-in
//! completed where nothing else is due.

use std::sync::Arc;

use crate::{
    application::OfferedStore,
    completion::{Completion, Decided},
    kept_flow::{KeptFlow, Mistake},
    outcome::{Judged, Outcome, PageError},
    page::PASSWORD,
    person,
    provider::{Circumstances, Provider, Visit, context_of_store},
    step::after_post,
};
use chancery_flow::{Method, NotAdmitted, Proven, Step};
use chancery_record::{Secret, Timestamp};
use chancery_resource::{AppContext, Context, Problem, Purpose, Tx, Work};
use chancery_store::Mode;
use chancery_userstore::{
    password::{
        by_login,
        sign_in::{self, Decision, PendingSignIn, VerifiedSignIn},
    },
    user::UserForUpdate,
};
use uuid::Uuid;

/// The longest name or password that is looked at, in bytes.
pub const LONGEST: usize = 1024;
/// The longest name that is shown again, in bytes.
const LONGEST_SHOWN: usize = 320;

/// What was typed on the password page.
pub struct Credentials {
    /// The name.
    pub username: String,
    /// The password.
    pub password: Secret,
    /// Whether the session outlives the browser's own.
    pub keeps: bool,
}

impl Provider<'_> {
    /// Counts an attempt, verifies the password outside of transactions, and decides.
    ///
    /// # Errors
    /// The database fails, or the queue for hashing passwords is full: then the attempt stays counted.
    pub async fn sign_in_by_password(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        typed: Credentials,
    ) -> Result<(Outcome, Judged), Problem> {
        kept.keeps = typed.keeps;
        let Some(application) = self.application_of(&kept).await? else {
            return Ok((Outcome::Error(PageError::UNKNOWN_CLIENT), Judged::Not));
        };
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        let examined = self.examine(visit, &kept, &circumstances).await?;
        let Step::FirstFactor(due) = examined.due.step() else {
            // e.g. another tab has signed in
            let outcome = self.step(visit, kept.clone(), circumstances, examined).await?;
            return Ok((after_post(kept, outcome), Judged::Not));
        };
        let tenant = due.tenant;
        let stores: Vec<OfferedStore> = circumstances.offered(&examined).into_iter().cloned().collect();
        let typed_fields =
            [("username", typed.username.is_empty()), ("password", typed.password.expose().is_empty())];
        let missing = typed_fields.iter().filter(|(_, is_empty)| *is_empty);
        let mut errors: Vec<_> =
            missing.map(|(field, _)| (format!("missing_{field}"), (*field).to_owned())).collect();
        if stores.is_empty() {
            errors.push(("not_allowed".to_owned(), String::new()));
        }
        if !errors.is_empty() {
            return Ok((again(kept, &typed.username, errors), Judged::Not));
        }
        let Credentials { username, password, .. } = typed;
        let (app, name, now) = (Arc::clone(self.context), username.clone(), visit.now);
        let is_readable = username.len() <= LONGEST && password.expose().len() <= LONGEST;
        let counted = self.store.run("CountSignIn", Mode::Write, None, move |tx| {
            count(&app, tx, &stores, if is_readable { &name } else { "" }, now)
        });
        let (store, pending) = counted.await?;
        let work = Work::new(Purpose::Password, move || pending.verify(&password));
        let verified = self.pool.run(None, work).await?;
        kept.mistake = None;
        let Some(completion) = self.completion(visit, &kept, &circumstances) else {
            return Ok((Outcome::Error(PageError::NO_FLOW), Judged::Not));
        };
        let deciding = move |tx: &mut Tx<'_>| decide(&completion, tx, (&store, tenant), &verified);
        if let Some(decided) = self.store.run("DecideSignIn", Mode::Write, None, deciding).await? {
            return Ok((self.conclude(visit, kept, circumstances, decided).await?, Judged::Right));
        }
        // the one at fault is not told apart: the password is to be typed again
        let wrong = vec![("credentials".to_owned(), "password".to_owned())];
        Ok((again(kept, &username, wrong), Judged::Wrong))
    }
}

/// A name as it is shown again: one that is longer than any is not worth a cookie.
pub(crate) fn shown_name(typed: &str) -> String {
    if typed.len() <= LONGEST_SHOWN { typed.to_owned() } else { String::new() }
}

/// The password page once more, with what is wrong.
fn again(mut kept: KeptFlow, username: &str, errors: Vec<(String, String)>) -> Outcome {
    kept.mistake = Some(Mistake {
        page: PASSWORD.to_owned(),
        username: shown_name(username),
        errors,
        ..Mistake::default()
    });
    Outcome::GoTo(kept.into(), PASSWORD, None)
}

/// Counts the attempt at the store that knows the name.
fn count(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    stores: &[OfferedStore],
    name: &str,
    now: Timestamp,
) -> Result<(OfferedStore, PendingSignIn), Problem> {
    let known = knowing(app, tx, stores, name, now)?;
    let (store, context, found) = known.ok_or_else(|| Problem::not_found("user store"))?;
    Ok((store.clone(), sign_in::begin(&context, tx, found)?))
}

/// A store, and its user of a name; `None` where it has no such user.
type Knowing<'a> = (&'a OfferedStore, Context, Option<UserForUpdate>);

/// The first store, in order, that knows the name, with its user; the first one with nobody where none does. All are asked,
/// whichever knows it, so that nobody costs as much.
pub(crate) fn knowing<'a>(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    stores: &'a [OfferedStore],
    name: &str,
    now: Timestamp,
) -> Result<Option<Knowing<'a>>, Problem> {
    let (mut known, mut nobody) = (None, None);
    for store in stores {
        let context = context_of_store(app, tx, store.id, now)?;
        match by_login(&context, tx, name)?.filter(|_| !name.is_empty()) {
            Some(found) if known.is_none() => known = Some((store, context, Some(found))),
            _ => nobody = nobody.or(Some((store, context, None))),
        }
    }
    Ok(known.or(nobody))
}

/// Decides an attempt. `None`: it is refused, without telling why.
fn decide(
    completion: &Completion,
    tx: &mut Tx<'_>,
    (store, tenant): (&OfferedStore, Uuid),
    verified: &VerifiedSignIn,
) -> Result<Option<Decided>, Problem> {
    let mut context = context_of_store(&completion.app, tx, store.id, completion.now)?;
    let user = match sign_in::decide(&context, tx, verified)? {
        Decision::Right(user) => user,
        Decision::Wrong(user) => {
            completion.record_wrong(&context, tx, store.id, (Some(user), tenant))?;
            return Ok(None);
        }
        Decision::Refused => {
            completion.record_wrong(&context, tx, store.id, (None, tenant))?;
            return Ok(None);
        }
    };
    context.actor = Some(user.id.0);
    let person = person::of_store_user(&mut context, tx, store, user.id.0)?;
    let Some(person) = person else {
        sign_in::withdraw(&context, tx, verified)?;
        return Ok(None);
    };
    let sessions = completion.sessions(tx)?;
    let proven = Proven { person, instance: store.id, method: Method::Password, credential: None };
    let examined = completion.prove(tx, &sessions, proven)?;
    let attempt = verified.attempt();
    if let Some(decided) = completion.sign_in(&context, tx, &sessions, &examined, attempt)? {
        return Ok(Some(decided));
    }
    sign_in::withdraw(&context, tx, verified)?;
    completion.record_refusal(&context, tx, &examined)?;
    if *examined.due.step() == Step::Refuse(NotAdmitted::PasswordExpired) {
        return Ok(None);
    }
    Ok(Some(Decided::GoOn(examined.due.flow().clone().into())))
}
