//! The page of a temporary access pass: a first factor for who has no other, or not any more.

use std::sync::Arc;

use chancery_flow::{Method, Proven, Step};
use chancery_record::Secret;
use chancery_resource::{Problem, Tx};
use chancery_store::Mode;
use chancery_userstore::{
    passkey::{find_access_pass, note_access_pass},
    user::begin_attempt,
};
use uuid::Uuid;

use crate::{
    application::OfferedStore,
    completion::{Completion, Decided},
    kept_flow::{KeptFlow, Mistake},
    outcome::{Judged, Outcome, PageError},
    page::ACCESS_PASS,
    password::{LONGEST, knowing, shown_name},
    person,
    provider::{Circumstances, Provider, Visit},
    step::after_post,
};

/// What was typed on the page.
pub struct PassTyped {
    /// The login name.
    pub username: String,
    /// The pass.
    pub pass: Secret,
}

impl Provider<'_> {
    /// Answers a post to the page; and what was judged.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn use_access_pass(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        typed: PassTyped,
    ) -> Result<(Outcome, Judged), Problem> {
        let Some(application) = self.application_of(&kept).await? else {
            return Ok((Outcome::Error(PageError::UNKNOWN_CLIENT), Judged::Not));
        };
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        let examined = self.examine(visit, &kept, &circumstances).await?;
        let Step::FirstFactor(due) = examined.due.step() else {
            let outcome = self.step(visit, kept.clone(), circumstances, examined).await?;
            return Ok((after_post(kept, outcome), Judged::Not));
        };
        let tenant = due.tenant;
        let fields = [("username", typed.username.is_empty()), ("pass", typed.pass.expose().is_empty())];
        let missing = fields.iter().filter(|(_, is_empty)| *is_empty);
        let errors: Vec<_> =
            missing.map(|(field, _)| (format!("missing_{field}"), (*field).to_owned())).collect();
        if !errors.is_empty() {
            return Ok((again(kept, &typed.username, errors), Judged::Not));
        }
        let stores: Vec<OfferedStore> = circumstances.offered(&examined).into_iter().cloned().collect();
        kept.mistake = None;
        let Some(completion) = self.completion(visit, &kept, &circumstances) else {
            return Ok((Outcome::Error(PageError::NO_FLOW), Judged::Not));
        };
        let (username, typed) = (typed.username.clone(), Arc::new(typed));
        let deciding = move |tx: &mut Tx<'_>| decide(&completion, tx, (&stores, tenant), &typed);
        if let Some(decided) = self.store.run("UseAccessPass", Mode::Write, None, deciding).await? {
            return Ok((self.conclude(visit, kept, circumstances, decided).await?, Judged::Right));
        }
        let wrong = vec![("pass_wrong".to_owned(), "pass".to_owned())];
        Ok((again(kept, &username, wrong), Judged::Wrong))
    }
}

fn again(mut kept: KeptFlow, username: &str, errors: Vec<(String, String)>) -> Outcome {
    kept.mistake = Some(Mistake {
        page: ACCESS_PASS.to_owned(),
        username: shown_name(username),
        errors,
        ..Mistake::default()
    });
    Outcome::GoTo(kept.into(), ACCESS_PASS, None)
}

/// Uses the pass of the first store, in order, that knows the name. `None`: it is refused, without telling why.
fn decide(
    completion: &Completion,
    tx: &mut Tx<'_>,
    (stores, tenant): (&[OfferedStore], Uuid),
    typed: &PassTyped,
) -> Result<Option<Decided>, Problem> {
    let is_readable = typed.username.len().max(typed.pass.expose().len()) <= LONGEST;
    let name = if is_readable { typed.username.as_str() } else { "" };
    let known = knowing(&completion.app, tx, stores, name, completion.now)?;
    let Some((store, mut context, found)) = known else { return Ok(None) };
    let Some(attempt) = begin_attempt(&context, tx, found)? else {
        find_access_pass(&context, tx, Uuid::nil(), &typed.pass)?;
        completion.record_wrong(&context, tx, store.id, (None, tenant))?;
        return Ok(None);
    };
    let user = attempt.found.user.id;
    let Some(pass) = find_access_pass(&context, tx, user.0, &typed.pass)? else {
        attempt.fail(&context, tx)?;
        completion.record_wrong(&context, tx, store.id, (Some(user.0), tenant))?;
        return Ok(None);
    };
    context.actor = Some(user.0);
    let Some(person) = person::of_store_user(&mut context, tx, store, user.0)? else { return Ok(None) };
    note_access_pass(&context, tx, user, pass)?;
    let sessions = completion.sessions(tx)?;
    let proven = Proven { person, instance: store.id, method: Method::AccessPass, credential: None };
    let examined = completion.prove(tx, &sessions, proven)?;
    if let Some(decided) = completion.sign_in(&context, tx, &sessions, &examined, None)? {
        return Ok(Some(decided));
    }
    completion.record_refusal(&context, tx, &examined)?;
    Ok(Some(Decided::GoOn(examined.due.flow().clone().into())))
}
