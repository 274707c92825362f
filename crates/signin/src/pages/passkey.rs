//! Passkeys on the pages: for signing in, as a second factor, and registration.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_auth::ReplayId;
use chancery_flow::{Action, Choice, Event, Method, Proven, Step, Urgency};
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{Problem, Purpose, StateTable, StoreError, Tx, Work};
use chancery_store::Mode;
use chancery_userstore::passkey::sign_in::{
    RegistrationResult, Started, VerifiedAssertion, note_use, recognize, registration_verifier,
    relying_party, start_registration, store_passkey,
};
use serde_json::{Map, Value, json};

use super::{Attempt, Form, Posted, Prepared, SignInPage};
use crate::{
    client_app::OfferedStore,
    flow::{
        context::{Evaluated, FlowContext},
        page_action::{ActionContext, ActionResult},
        page_name::{PASSKEY, PASSWORD, SECOND_FACTOR},
        pending_flow::PendingFlow,
        person_facts::PASSKEY_OFFER,
        response::{AttemptResult, BrowserResponse, PageError},
        sign_in_transaction::{ProofResult, SignInTransaction},
    },
    person::{self, context::context_of_store},
    provider::{Provider, Visit},
};

/// The maximum length of an authenticator's response, in bytes.
const LONGEST: usize = 64 << 10;
/// How long a used challenge is remembered, in ms: as long as a flow lasts.
const SPENT_MS: i64 = 30 * 60_000;

/// How long a deferred offer is not repeated, in ms: 30 days.
const OFFER_PAUSE_MS: i64 = 30 * 24 * 3_600_000;

pub(super) static PAGE: SignInPage = SignInPage {
    name: PASSKEY,
    prepare: Some(prepare),
    view,
    attempt: |form, pending| match form.credential() {
        Some(_) => Some(attempt(pending)),
        None => Some(Attempt::of_person(PASSKEY, pending)),
    },
    post,
};

/// The attempt of a post with a passkey, on any page.
pub(super) fn attempt(pending: &PendingFlow) -> Attempt {
    Attempt::of_flow(PASSKEY, pending)
}

fn prepare<'a>(
    provider: Provider<'a>,
    visit: &'a Visit,
    pending: &'a mut PendingFlow,
    flow_context: &'a FlowContext,
    evaluated: &'a Evaluated,
) -> Prepared<'a> {
    Box::pin(async move {
        let mut added = Map::new();
        let started = provider.registration(visit, flow_context, evaluated).await?;
        add_challenge(pending, &mut added, started);
        Ok(added)
    })
}

/// Adds the WebAuthn options to the page, and the state of the ceremony to the flow.
pub(super) fn add_challenge(
    pending: &mut PendingFlow,
    added: &mut Map<String, Value>,
    started: Option<Started>,
) {
    let Some((options, state)) = started else { return };
    pending.ceremony = Some(BASE64_URL_SAFE_NO_PAD.encode(state));
    pending.is_changed = true;
    added.insert("passkey".to_owned(), json!(options.to_string()));
}

fn view(flow_context: &FlowContext, _: &PendingFlow, evaluated: &Evaluated) -> (&'static str, Value) {
    let due = evaluated.due_action(Action::Passkey);
    let may_wait = due.is_some_and(|due| due.urgency == Urgency::Offered);
    // a person with an access pass and neither passkey nor password may create a password instead, unless a
    // passkey is required
    let store = flow_context.store_of(evaluated);
    let is_required = store.is_some_and(|store| {
        store.options.get(UserStoreOption::PASSKEY_ENROLMENT).eq_ignore_ascii_case("Require")
    });
    let by_pass = !may_wait && !is_required && evaluated.is_by_access_pass();
    let context = json!({
        "kind": "make", "may_wait": may_wait, "password_instead": by_pass,
        "another": evaluated.is_by_passkey(),
    });
    ("Passkey", context)
}

fn post<'a>(
    provider: Provider<'a>,
    visit: &'a Visit,
    mut pending: PendingFlow,
    form: Form<'a>,
) -> Posted<'a> {
    if let Some(answer) = form.credential() {
        return Box::pin(provider.verify_passkey(visit, pending, PASSKEY, answer));
    }
    if form.field("choice") == Some("password") {
        pending.prefers_password = true;
        return Box::pin(provider.run_page_action(visit, pending, PASSKEY, |_, _| Ok(ActionResult::Nothing)));
    }
    Box::pin(provider.run_page_action(visit, pending, PASSKEY, defer))
}

/// The verification of an authenticator's response.
enum PendingVerification {
    /// A registration.
    Registration(Work<RegistrationResult>),
    /// An assertion.
    Assertion(Work<VerifiedAssertion>),
}

/// The page again, with an error.
fn refused(pending: PendingFlow, page: &'static str) -> (BrowserResponse, AttemptResult) {
    (pending.with_error(page, "passkey_wrong", ""), AttemptResult::Failed)
}

impl Provider<'_> {
    /// Verifies an authenticator's response outside of transactions and applies it: on the page of the password, of a
    /// second factor, or of a new passkey.
    ///
    /// # Errors
    /// The database fails, or the queue for passkeys is full.
    pub(super) async fn verify_passkey(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        page: &'static str,
        answer: &str,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        let Some((flow_context, evaluated)) = self.resume(visit, &pending).await? else {
            return Ok((BrowserResponse::Error(PageError::UNKNOWN_CLIENT), AttemptResult::NotCounted));
        };
        let stores = self.stores_for(page, &flow_context, &evaluated);
        if stores.is_empty() {
            return self.respond_after_post(visit, pending, flow_context, evaluated).await;
        }
        let answer = Some(answer).filter(|answer| answer.len() <= LONGEST);
        let answer: Option<Value> = answer.and_then(|answer| serde_json::from_str(answer).ok());
        let state = pending.ceremony.take().and_then(|state| BASE64_URL_SAFE_NO_PAD.decode(state).ok());
        let (Some(answer), Some(state)) = (answer, state) else { return Ok(refused(pending, page)) };
        let (app, now, challenge) = (Arc::clone(self.context), visit.now, state.clone());
        let is_registration = page == PASSKEY;
        let finding = self.store.run("FindPasskey", Mode::Quick, None, move |tx: &mut Tx<'_>| {
            for store in &stores {
                let context = context_of_store(&app, tx, store.id, now)?;
                let (state, answer) = (challenge.clone(), answer.clone());
                if is_registration {
                    let verifier = registration_verifier(&context, tx)?;
                    let work = Work::new(Purpose::Passkey, move || verifier.verify(&state, &answer));
                    return Ok(Some((store.clone(), PendingVerification::Registration(work))));
                }
                if let Ok(Some(shown)) = recognize(&context, tx, answer)? {
                    let work = Work::new(Purpose::Passkey, move || shown.verify(&state));
                    return Ok(Some((store.clone(), PendingVerification::Assertion(work))));
                }
            }
            Ok::<_, Problem>(None)
        });
        let Some((store, work)) = finding.await? else { return Ok(refused(pending, page)) };
        let work = match work {
            PendingVerification::Assertion(work) => work,
            PendingVerification::Registration(work) => {
                let registered = self.pool.run(None, work).await?;
                let storing = move |action: &ActionContext<'_>, tx: &mut Tx<'_>| {
                    register_passkey(action, tx, &registered, &state)
                };
                return self.run_page_action(visit, pending, PASSKEY, storing).await;
            }
        };
        let asserted = self.pool.run(None, work).await?;
        pending.form_errors = None;
        let Some(transaction) = self.sign_in_transaction(visit, &pending, &flow_context) else {
            return Ok((BrowserResponse::Error(PageError::NO_FLOW), AttemptResult::NotCounted));
        };
        let deciding = move |tx: &mut Tx<'_>| decide(&transaction, tx, &store, page, &asserted, &state);
        match self.store.run("DecidePasskey", Mode::Write, None, deciding).await? {
            Some(decided) => Ok((
                self.respond_to_proof(visit, pending, flow_context, decided).await?,
                AttemptResult::Succeeded,
            )),
            None => Ok(refused(pending, page)),
        }
    }

    /// The WebAuthn options for registering a passkey of this person.
    async fn registration(
        self,
        visit: &Visit,
        flow_context: &FlowContext,
        evaluated: &Evaluated,
    ) -> Result<Option<Started>, Problem> {
        let (Some(store), Some(user)) = (flow_context.store_of(evaluated), evaluated.user()) else {
            return Ok(None);
        };
        let (app, now, store, user) = (Arc::clone(self.context), visit.now, store.id, user.user);
        let starting = self.store.run("BeginPasskey", Mode::Quick, None, move |tx| {
            let context = context_of_store(&app, tx, store, now)?;
            start_registration(&context, tx, user)
        });
        starting.await
    }

    /// The stores whose passkeys are accepted on a page.
    fn stores_for(self, page: &str, flow_context: &FlowContext, evaluated: &Evaluated) -> Vec<OfferedStore> {
        let party = |store: &OfferedStore| relying_party(&store.options, &self.context.public_url);
        match (page, evaluated.due.step()) {
            (PASSWORD, Step::FirstFactor(_)) => {
                let offered = flow_context.offered(evaluated);
                let Some(first) = offered.iter().find_map(|store| party(store)) else { return Vec::new() };
                offered.into_iter().filter(|store| party(store).as_ref() == Some(&first)).cloned().collect()
            }
            (SECOND_FACTOR, Step::SecondFactor(choices) | Step::StepUp { choices, .. })
                if choices.chosen == Choice::Passkey =>
            {
                flow_context.store_of(evaluated).cloned().into_iter().collect()
            }
            (PASSKEY, _) if evaluated.due_action(Action::Passkey).is_some() => {
                flow_context.store_of(evaluated).cloned().into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Marks a challenge as used. `false`: it was used before.
fn spend(tx: &mut Tx<'_>, transaction: &SignInTransaction, state: &[u8]) -> Result<bool, StoreError> {
    let state = BASE64_URL_SAFE_NO_PAD.encode(state);
    ReplayId::new("sign-in-passkey", "", &state, transaction.now.plus(SPENT_MS)).claim(tx)
}

/// Applies a verified assertion. `None`: it is refused.
fn decide(
    transaction: &SignInTransaction,
    tx: &mut Tx<'_>,
    store: &OfferedStore,
    page: &'static str,
    asserted: &VerifiedAssertion,
    state: &[u8],
) -> Result<Option<ProofResult>, Problem> {
    let mut context = context_of_store(&transaction.app, tx, store.id, transaction.now)?;
    context.actor = Some(asserted.user());
    if !spend(tx, transaction, state)? {
        return Ok(None);
    }
    let Ok(used) = note_use(&context, tx, asserted, true)? else { return Ok(None) };
    let Some(person) = person::of_store_user(&mut context, tx, store, asserted.user())? else {
        return Ok(None);
    };
    let method = Method::Passkey { user_verified: used.user_verified, hardware: used.is_hardware };
    let by = Proven { person, instance: store.id, method, credential: Some(used.passkey) };
    let event = if page == PASSWORD { Event::FirstFactorProven(by) } else { Event::FactorProven(by) };
    let sessions = transaction.sessions(tx)?;
    let before = transaction.evaluate(tx, &sessions)?;
    // another person's passkey is no proof
    if before.due.apply(event.clone()).is_err() {
        return Ok(None);
    }
    let evaluated = transaction.apply(tx, &sessions, before, event)?;
    if let Some(decided) = transaction.sign_in(&context, tx, &sessions, &evaluated, None)? {
        return Ok(Some(decided));
    }
    transaction.record_refusal(&context, tx, &evaluated)?;
    Ok(Some(ProofResult::Continue(evaluated.due.flow().clone().into())))
}

/// Stores a registered passkey.
fn register_passkey(
    action: &ActionContext<'_>,
    tx: &mut Tx<'_>,
    registered: &RegistrationResult,
    state: &[u8],
) -> Result<ActionResult, Problem> {
    let (Some(_), Some(user)) = (action.evaluated.due_action(Action::Passkey), action.evaluated.user())
    else {
        return Ok(ActionResult::Nothing);
    };
    let Ok(credential) = registered else { return Ok(ActionResult::Wrong("passkey_not_made", "")) };
    if !spend(tx, action.transaction, state)? || is_known(action, tx, &credential.id)? {
        return Ok(ActionResult::Wrong("passkey_not_made", ""));
    }
    if store_passkey(action.context, tx, user.user_id, credential)?.is_none() {
        return Ok(ActionResult::Wrong("passkey_not_made", ""));
    }
    // after a registration no further passkey is offered at once
    Ok(ActionResult::Events([Event::ActionDone(Action::Passkey), Event::Deferred(Action::Passkey)]))
}

fn is_known(action: &ActionContext<'_>, tx: &mut Tx<'_>, credential: &[u8]) -> Result<bool, StoreError> {
    let text = "SELECT EXISTS (SELECT 1 FROM passkey_credential WHERE store = ?1 AND credential_id = ?2)";
    let parameters = [action.context.scope.store().into(), credential.to_vec().into()];
    Ok(tx.one(text, &parameters, |row| row.bool(0))? == Some(true))
}

/// Defers the offer of a passkey.
fn defer(action: &ActionContext<'_>, tx: &mut Tx<'_>) -> Result<ActionResult, Problem> {
    let (Some(_), Some(identified)) =
        (action.evaluated.due_action(Action::Passkey), action.evaluated.due.identified())
    else {
        return Ok(ActionResult::Nothing);
    };
    let text = StateTable::OfferRest.insert(
        "(person_id, offer, expires_on) VALUES (?1, ?2, ?3) \
         ON CONFLICT (person_id, offer) DO UPDATE SET expires_on = ?3",
    );
    let until = action.context.now.plus(OFFER_PAUSE_MS).0.into();
    tx.queue(&text, vec![identified.person.into(), PASSKEY_OFFER.into(), until])?;
    Ok(ActionResult::Event(Event::Deferred(Action::Passkey)))
}
