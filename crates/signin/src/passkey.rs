//! Passkeys on the pages: to sign in, to confirm who one is, and to make one.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_auth::ReplayId;
use chancery_flow::{Action, Choice, Event, Method, Proven, Step};
use chancery_resource::{Problem, Purpose, StoreError, Tx, Work};
use chancery_store::Mode;
use chancery_userstore::passkey::sign_in::{
    Made, Proved, keep, note_use, recognize, registering, relying_party,
};
use serde_json::Value;

use crate::{
    action::is_due,
    advance::{Doing, Done},
    application::OfferedStore,
    completion::{Completion, Decided},
    kept_flow::KeptFlow,
    outcome::{Judged, Outcome, PageError},
    page::{PASSKEY, PASSWORD, SECOND_FACTOR},
    person,
    prepare::store_of,
    provider::{Circumstances, Examined, Provider, Visit, context_of_store},
    step::after_post,
};

/// The longest answer of an authenticator, in bytes.
const LONGEST: usize = 64 << 10;
/// How long what an authenticator was asked is remembered once it was answered, in ms: as long as a flow lasts.
const SPENT_MS: i64 = 30 * 60_000;

/// The verification of an authenticator's response.
enum Verifying {
    /// A registration.
    Made(Work<Made>),
    /// An assertion.
    Proved(Work<Proved>),
}

/// The page again, with an error.
fn refused(kept: KeptFlow, page: &'static str) -> (Outcome, Judged) {
    (kept.again(page, "passkey_wrong", ""), Judged::Wrong)
}

impl Provider<'_> {
    /// Verifies an authenticator's response outside of transactions, and decides: on the page for a password, for a second factor, or
    /// for a new passkey.
    ///
    /// # Errors
    /// The database fails, or the queue for passkeys is full.
    pub async fn verify_passkey(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        (page, answer): (&'static str, &str),
    ) -> Result<(Outcome, Judged), Problem> {
        let Some(application) = self.application_of(&kept).await? else {
            return Ok((Outcome::Error(PageError::UNKNOWN_CLIENT), Judged::Not));
        };
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        let examined = self.examine(visit, &kept, &circumstances).await?;
        let stores = self.stores_for(page, &circumstances, &examined);
        if stores.is_empty() {
            let outcome = self.step(visit, kept.clone(), circumstances, examined).await?;
            return Ok((after_post(kept, outcome), Judged::Not));
        }
        let answer = Some(answer).filter(|answer| answer.len() <= LONGEST);
        let answer: Option<Value> = answer.and_then(|answer| serde_json::from_str(answer).ok());
        let state = kept.ceremony.take().and_then(|state| BASE64_URL_SAFE_NO_PAD.decode(state).ok());
        let (Some(answer), Some(state)) = (answer, state) else { return Ok(refused(kept, page)) };
        let (app, now, judged) = (Arc::clone(self.context), visit.now, state.clone());
        let is_made = page == PASSKEY;
        let finding = self.store.run("FindPasskey", Mode::Quick, None, move |tx: &mut Tx<'_>| {
            for store in &stores {
                let context = context_of_store(&app, tx, store.id, now)?;
                let (state, answer) = (judged.clone(), answer.clone());
                if is_made {
                    let registering = registering(&context, tx)?;
                    let work = Work::new(Purpose::Passkey, move || registering.verify(&state, &answer));
                    return Ok(Some((store.clone(), Verifying::Made(work))));
                }
                if let Ok(Some(shown)) = recognize(&context, tx, answer)? {
                    let work = Work::new(Purpose::Passkey, move || shown.verify(&state));
                    return Ok(Some((store.clone(), Verifying::Proved(work))));
                }
            }
            Ok::<_, Problem>(None)
        });
        let Some((store, work)) = finding.await? else { return Ok(refused(kept, page)) };
        let work = match work {
            Verifying::Proved(work) => work,
            Verifying::Made(work) => {
                let made = self.pool.run(None, work).await?;
                let making = move |doing: &Doing<'_>, tx: &mut Tx<'_>| make(doing, tx, &made, &state);
                return self.advance(visit, (kept, PASSKEY), making).await;
            }
        };
        let proved = self.pool.run(None, work).await?;
        kept.mistake = None;
        let Some(completion) = self.completion(visit, &kept, &circumstances) else {
            return Ok((Outcome::Error(PageError::NO_FLOW), Judged::Not));
        };
        let deciding = move |tx: &mut Tx<'_>| decide(&completion, tx, (&store, page), &proved, &state);
        match self.store.run("DecidePasskey", Mode::Write, None, deciding).await? {
            Some(decided) => Ok((self.conclude(visit, kept, circumstances, decided).await?, Judged::Right)),
            None => Ok(refused(kept, page)),
        }
    }

    /// The stores whose passkeys may answer on a page.
    fn stores_for(self, page: &str, circumstances: &Circumstances, examined: &Examined) -> Vec<OfferedStore> {
        let party = |store: &OfferedStore| relying_party(&store.options, &self.context.public_url);
        match (page, examined.due.step()) {
            (PASSWORD, Step::FirstFactor(_)) => {
                let offered = circumstances.offered(examined);
                let Some(first) = offered.iter().find_map(|store| party(store)) else { return Vec::new() };
                offered.into_iter().filter(|store| party(store).as_ref() == Some(&first)).cloned().collect()
            }
            (SECOND_FACTOR, Step::SecondFactor(choices) | Step::StepUp { choices, .. })
                if choices.chosen == Choice::Passkey =>
            {
                store_of(circumstances, examined).cloned().into_iter().collect()
            }
            (PASSKEY, _) if is_due(examined, Action::Passkey).is_some() => {
                store_of(circumstances, examined).cloned().into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What an authenticator was asked counts once.
fn spend(tx: &mut Tx<'_>, completion: &Completion, state: &[u8]) -> Result<bool, StoreError> {
    let state = BASE64_URL_SAFE_NO_PAD.encode(state);
    ReplayId::new("sign-in-passkey", "", &state, completion.now.plus(SPENT_MS)).claim(tx)
}

/// Decides by a passkey that was shown. `None`: it is refused.
fn decide(
    completion: &Completion,
    tx: &mut Tx<'_>,
    (store, page): (&OfferedStore, &'static str),
    proved: &Proved,
    state: &[u8],
) -> Result<Option<Decided>, Problem> {
    let mut context = context_of_store(&completion.app, tx, store.id, completion.now)?;
    context.actor = Some(proved.user());
    if !spend(tx, completion, state)? {
        return Ok(None);
    }
    let Ok(used) = note_use(&context, tx, proved, true)? else { return Ok(None) };
    let Some(person) = person::of_store_user(&mut context, tx, store, proved.user())? else {
        return Ok(None);
    };
    let method = Method::Passkey { user_verified: used.user_verified, hardware: used.is_hardware };
    let by = Proven { person, instance: store.id, method, credential: Some(used.passkey) };
    let event = if page == PASSWORD { Event::FirstFactorProven(by) } else { Event::FactorProven(by) };
    let sessions = completion.sessions(tx)?;
    let before = completion.examine(tx, &sessions)?;
    // a passkey of somebody else confirms nothing
    if before.due.apply(event.clone()).is_err() {
        return Ok(None);
    }
    let examined = completion.apply(tx, &sessions, before, event)?;
    if let Some(decided) = completion.sign_in(&context, tx, &sessions, &examined, None)? {
        return Ok(Some(decided));
    }
    completion.record_refusal(&context, tx, &examined)?;
    Ok(Some(Decided::GoOn(examined.due.flow().clone().into())))
}

/// Keeps a passkey that was made.
fn make(doing: &Doing<'_>, tx: &mut Tx<'_>, made: &Made, state: &[u8]) -> Result<Done, Problem> {
    let (Some(_), Some(user)) = (is_due(doing.examined, Action::Passkey), doing.examined.user()) else {
        return Ok(Done::Nothing);
    };
    let Ok(credential) = made else { return Ok(Done::Wrong("passkey_not_made", "")) };
    if !spend(tx, doing.completion, state)? || is_known(doing, tx, &credential.id)? {
        return Ok(Done::Wrong("passkey_not_made", ""));
    }
    if keep(doing.context, tx, user.user_id, credential)?.is_none() {
        return Ok(Done::Wrong("passkey_not_made", ""));
    }
    // who has made one is not offered the next one at once
    Ok(Done::Events([Event::ActionDone(Action::Passkey), Event::PutOff(Action::Passkey)]))
}

fn is_known(doing: &Doing<'_>, tx: &mut Tx<'_>, credential: &[u8]) -> Result<bool, StoreError> {
    let text = "SELECT EXISTS (SELECT 1 FROM passkey_credential WHERE store = ?1 AND credential_id = ?2)";
    let parameters = [doing.context.scope.store().into(), credential.to_vec().into()];
    Ok(tx.one(text, &parameters, |row| row.bool(0))? == Some(true))
}
