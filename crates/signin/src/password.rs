//! The password page: an attempt is counted, the password verified outside of transactions, and the sign-in
//! completed where nothing else is due.

use std::sync::Arc;

use chancery_auth::load_store_context;
use chancery_flow::{Acr, Due, Event, Flow, Identified, Method, NotAdmitted, Proven, Step, acr_of, amr_of};
use chancery_record::Secret;
use chancery_resource::{AppContext, Context, Problem, Purpose, Scope, StoreError, Tx, Work};
use chancery_store::Mode;
use chancery_userstore::password::{
    by_login,
    sign_in::{self, PendingSignIn, VerifiedSignIn},
};
use uuid::Uuid;

use crate::{
    application::OfferedStore,
    authorize::leave,
    code,
    kept_flow::{KeptFlow, Mistake},
    outcome::{NewSession, Outcome, PageError},
    person,
    provider::{Circumstances, Provider, Visit},
    record::{Origin, Outcome as Recorded, SignInRecord},
    session::{self, Session, SessionCookie},
    step::{CONSENT, CONTINUE, PASSWORD, after_post},
};

/// The longest name or password that is looked at, in bytes.
const LONGEST: usize = 1024;
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

/// What a post to the password page comes to at first.
pub enum Begun {
    /// It is answered.
    Answered(Outcome),
    /// The password is to be verified.
    Verify(Box<Attempt>, Work),
}

/// An attempt whose password is being verified.
pub struct Attempt {
    kept: KeptFlow,
    circumstances: Circumstances,
    store: OfferedStore,
    username: String,
    keeps: bool,
}

/// What came of an attempt, once its transaction is committed.
enum Decided {
    /// It is refused, without telling why.
    Refused,
    /// The password was right, and something else is due in this flow.
    GoOn(Box<Flow>),
    /// The person is signed in, and something else is due in this flow.
    SignedIn(Box<Flow>, NewSession),
    /// The sign-in is complete, with the code if one was asked for.
    Complete(Option<String>, NewSession),
}

impl Provider<'_> {
    /// Counts an attempt.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn begin_password(
        self,
        visit: &Visit,
        kept: KeptFlow,
        typed: Credentials,
    ) -> Result<Begun, Problem> {
        let Some(application) = self.application_of(&kept).await? else {
            return Ok(Begun::Answered(Outcome::Error(PageError::UNKNOWN_CLIENT)));
        };
        let circumstances = Circumstances::new(application, &kept);
        let examined = self.examine(visit, &kept, &circumstances).await?;
        let Step::FirstFactor(due) = examined.due.step() else {
            // e.g. another tab has signed in
            let outcome = self.step(visit, kept.clone(), circumstances, examined).await?;
            return Ok(Begun::Answered(after_post(kept, outcome)));
        };
        let offered: Vec<Uuid> = due.offered.iter().map(|instance| instance.id).collect();
        let stores: Vec<OfferedStore> = circumstances
            .application
            .tenant(due.tenant)
            .map(|tenant| tenant.stores.iter().filter(|store| offered.contains(&store.id)).cloned().collect())
            .unwrap_or_default();
        let typed_fields =
            [("username", typed.username.is_empty()), ("password", typed.password.expose().is_empty())];
        let missing = typed_fields.iter().filter(|(_, is_empty)| *is_empty);
        let mut errors: Vec<_> =
            missing.map(|(field, _)| (format!("missing_{field}"), (*field).to_owned())).collect();
        if stores.is_empty() {
            errors.push(("not_allowed".to_owned(), String::new()));
        }
        if !errors.is_empty() {
            return Ok(Begun::Answered(again(kept, typed.username, typed.keeps, errors)));
        }
        let Credentials { username, password, keeps } = typed;
        let (app, name, now) = (Arc::clone(self.context), username.clone(), visit.now);
        let is_readable = username.len() <= LONGEST && password.expose().len() <= LONGEST;
        let counted = self.store.run("CountSignIn", Mode::Write, None, move |tx| {
            count(&app, tx, &stores, if is_readable { &name } else { "" }, now)
        });
        let (store, pending) = counted.await?;
        let work = Work::new(Purpose::Password, move || pending.verify(&password));
        Ok(Begun::Verify(Box::new(Attempt { kept, circumstances, store, username, keeps }), work))
    }

    /// Decides an attempt whose password was verified; and whether it was right.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn end_password(
        self,
        visit: &Visit,
        attempt: Box<Attempt>,
        verified: Arc<dyn std::any::Any + Send + Sync>,
    ) -> Result<(Outcome, bool), Problem> {
        let verified: Arc<VerifiedSignIn> = verified.downcast().map_err(|_| {
            StoreError::Internal("the result of verifying a password is of another kind".into())
        })?;
        let Attempt { mut kept, circumstances, store, username, keeps } = *attempt;
        let Some((addressing, request)) = kept.request() else {
            return Ok((Outcome::Error(PageError::NO_FLOW), true));
        };
        kept.mistake = None;
        let deciding = Deciding {
            app: Arc::clone(self.context),
            flow: kept.flow.clone(),
            circumstances: circumstances.clone(),
            store,
            keeps,
            cookie: visit.session.clone(),
            origin: visit.origin.clone(),
            request,
            verified,
            now: visit.now,
        };
        let decided =
            self.store.run("DecideSignIn", Mode::Write, None, move |tx| deciding.decide(tx)).await?;
        let issuer = self.issuer_url(kept.issuing);
        let outcome = match decided {
            Decided::Refused => {
                // the one at fault is not told apart: the password is to be typed again
                let wrong = vec![("credentials".to_owned(), "password".to_owned())];
                return Ok((again(kept, username, keeps, wrong), false));
            }
            Decided::GoOn(flow) => {
                kept.flow = *flow;
                let examined = self.examine(visit, &kept, &circumstances).await?;
                after_post(kept.clone(), self.step(visit, kept, circumstances, examined).await?)
            }
            Decided::SignedIn(flow, session) => {
                kept.flow = *flow;
                // the page is that of consent: who is signed in needs no other
                Outcome::GoTo(kept.into(), CONSENT, Some(session))
            }
            Decided::Complete(code, session) => match leave(&issuer, &addressing, code.as_deref()) {
                Outcome::Leave(address) => {
                    kept.answer = Some(address);
                    Outcome::GoTo(kept.into(), CONTINUE, Some(session))
                }
                Outcome::Post { action, fields, .. } => {
                    Outcome::Post { action, fields, session: Some(session) }
                }
                other => other,
            },
        };
        Ok((outcome, true))
    }
}

/// The password page once more, with what is wrong.
fn again(mut kept: KeptFlow, username: String, keeps: bool, errors: Vec<(String, String)>) -> Outcome {
    // a name that is longer than any is not worth a cookie
    let username = if username.len() <= LONGEST_SHOWN { username } else { String::new() };
    kept.mistake = Some(Mistake { username, keeps, errors });
    Outcome::GoTo(kept.into(), PASSWORD, None)
}

/// The context of a store's own acting.
fn context_of(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    store: &OfferedStore,
    now: chancery_record::Timestamp,
) -> Result<Context, Problem> {
    let found = load_store_context(tx, &store.id.to_string())?.filter(|found| found.is_active);
    let found = found.ok_or_else(|| Problem::not_found("user store"))?;
    Ok(Context::of_server(app, Scope::Store(found.scope), now))
}

/// Counts the attempt at the first store, in order, that knows the name; at the first one as nobody where none does.
fn count(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    stores: &[OfferedStore],
    name: &str,
    now: chancery_record::Timestamp,
) -> Result<(OfferedStore, PendingSignIn), Problem> {
    let mut nobody = None;
    for store in stores {
        let context = context_of(app, tx, store, now)?;
        let found = if name.is_empty() { None } else { by_login(&context, tx, name)? };
        if found.is_some() {
            return Ok((store.clone(), sign_in::begin(&context, tx, found)?));
        }
        nobody = nobody.or(Some((store, context)));
    }
    let (store, context) = nobody.ok_or_else(|| Problem::not_found("user store"))?;
    Ok((store.clone(), sign_in::begin(&context, tx, None)?))
}

/// All that the transaction needs that decides an attempt.
struct Deciding {
    app: Arc<AppContext>,
    flow: Flow,
    circumstances: Circumstances,
    store: OfferedStore,
    keeps: bool,
    cookie: Option<String>,
    origin: Origin,
    request: chancery_oauth::AuthorizationRequest,
    verified: Arc<VerifiedSignIn>,
    now: chancery_record::Timestamp,
}

impl Deciding {
    fn decide(&self, tx: &mut Tx<'_>) -> Result<Decided, Problem> {
        let mut context = context_of(&self.app, tx, &self.store, self.now)?;
        let Some(known) = sign_in::decide(&context, tx, &self.verified)? else { return Ok(Decided::Refused) };
        context.actor = Some(known.user.id.0);
        let person = person::of_store_user(&mut context, tx, &self.store, known.user.id.0)?;
        let Some(person) = person else {
            sign_in::withdraw(&context, tx, &self.verified)?;
            return Ok(Decided::Refused);
        };
        let cookie = self.cookie.clone().map(|value| SessionCookie::of(&self.app.master, value));
        let sessions = session::load(tx, cookie.as_ref(), self.now)?;
        let before = self.circumstances.examine(tx, self.flow.clone(), &sessions, self.now)?.due;
        let proven = Proven { person, instance: self.store.id, method: Method::Password, credential: None };
        let Ok(flow) = before.apply(Event::FirstFactorProven(proven)) else {
            sign_in::withdraw(&context, tx, &self.verified)?;
            return Ok(Decided::GoOn(self.flow.clone().into()));
        };
        let must_change_password = known.must_change || known.is_expired_for_good;
        let circumstances = Circumstances { must_change_password, ..self.circumstances.clone() };
        let due = circumstances.examine(tx, flow, &sessions, self.now)?.due;
        if let (Step::Done(_) | Step::Consent, Some(identified)) = (due.step(), due.identified()) {
            sign_in::clear(&context, tx, &self.verified)?;
            return self.sign_in(&context, tx, (cookie.as_ref(), &sessions), (&due, identified));
        }
        sign_in::withdraw(&context, tx, &self.verified)?;
        if let Step::Refuse(why) = due.step() {
            let tenant = due.identified().map(|identified| identified.tenant).unwrap_or_default();
            self.record(Recorded::Refused(*why), (person, tenant)).write(&context, tx)?;
            if *why == NotAdmitted::PasswordExpired {
                return Ok(Decided::Refused);
            }
        }
        Ok(Decided::GoOn(due.flow().clone().into()))
    }

    /// Signs the person in, and issues the code where nothing else is due.
    fn sign_in(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        (cookie, sessions): (Option<&SessionCookie>, &[Session]),
        (due, identified): (&Due, &Identified),
    ) -> Result<Decided, Problem> {
        let application = &self.circumstances.application;
        let tenant = application.tenant(identified.tenant).ok_or_else(|| Problem::not_found("tenant"))?;
        let new = SessionCookie::new(&self.app.master);
        let options = &tenant.options;
        let former = (cookie, &new, sessions);
        let id = session::establish(context, tx, former, identified, (self.keeps, options))?;
        let methods = || identified.proofs.iter().map(|proof| proof.method);
        let amr = amr_of(methods());
        let record = self.record(Recorded::SignedIn, (identified.person, identified.tenant));
        let acr = acr_of(methods()).map(Acr::name);
        SignInRecord { methods: &amr, acr, session: Some(id), ..record }.write(context, tx)?;
        let is_kept = self.keeps || sessions.iter().any(|session| session.is_kept);
        let max_age = is_kept.then(|| options.span("SessionAbsoluteLifetime") / 1000);
        let session = NewSession { value: new.value, max_age };
        let Step::Done(signed_in) = due.step() else {
            return Ok(Decided::SignedIn(due.flow().clone().into(), session));
        };
        let code = code::issue(context, tx, (&self.circumstances, &self.request), signed_in, id)?;
        Ok(Decided::Complete(code, session))
    }

    fn record(&self, outcome: Recorded, (person, tenant): (Uuid, Uuid)) -> SignInRecord<'_> {
        SignInRecord {
            outcome,
            tenant,
            application: Some(self.circumstances.application.id),
            instance: Some(self.store.id),
            person,
            methods: &["pwd"],
            acr: None,
            session: None,
            origin: Some(&self.origin),
        }
    }
}
