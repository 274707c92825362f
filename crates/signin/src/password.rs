//! The password page: an attempt is counted, the password verified outside of transactions, and the sign-in
//! completed where nothing else is due.

use std::sync::Arc;

use chancery_auth::load_store_context;
use chancery_flow::{Event, Flow, Method, NotAdmitted, Proven, SignedIn, Step};
use chancery_record::Secret;
use chancery_resource::{AppContext, Context, Problem, Purpose, Scope, StoreError, Tx, Work};
use chancery_store::Mode;
use chancery_userstore::password::{
    by_login,
    sign_in::{self, PendingSignIn, VerifiedSignIn},
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    application::OfferedStore,
    code::{self, Issued},
    kept_flow::KeptFlow,
    outcome::{NewSession, Outcome, Page, PageError},
    person,
    provider::{Circumstances, Provider, Visit},
    record::{Origin, Outcome as Recorded, SignInRecord},
    session::{self, SessionCookie},
    step::{PASSWORD, leave},
};

/// The longest name or password that is looked at, in bytes.
const LONGEST: usize = 1024;

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
    /// The sign-in is complete.
    Complete(Issued, NewSession),
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
        let circumstances = Circumstances::new(application, kept.issuing);
        let examined = self.examine(visit, &kept, &circumstances).await?;
        let Step::FirstFactor(due) = examined.due.step() else {
            return self.step(visit, kept, circumstances, examined).await.map(Begun::Answered);
        };
        let offered: Vec<Uuid> = due.offered.iter().map(|instance| instance.id).collect();
        let stores: Vec<OfferedStore> = circumstances
            .application
            .tenant(due.tenant)
            .map(|tenant| tenant.stores.iter().filter(|store| offered.contains(&store.id)).cloned().collect())
            .unwrap_or_default();
        let missing =
            [("username", typed.username.is_empty()), ("password", typed.password.expose().is_empty())];
        let missing: Vec<&str> = missing.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect();
        if !missing.is_empty() || stores.is_empty() {
            let errors: Vec<_> = missing
                .iter()
                .map(|field| json!({ "code": format!("missing_{field}"), "field": field }))
                .collect();
            let errors = if errors.is_empty() { vec![json!({ "code": "not_allowed" })] } else { errors };
            return Ok(Begun::Answered(page(kept, &circumstances, &typed.username, typed.keeps, &errors)));
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

    /// Decides an attempt whose password was verified.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn end_password(
        self,
        visit: &Visit,
        attempt: Box<Attempt>,
        verified: Arc<dyn std::any::Any + Send + Sync>,
    ) -> Result<Outcome, Problem> {
        let verified: Arc<VerifiedSignIn> = verified.downcast().map_err(|_| {
            StoreError::Internal("the result of verifying a password is of another kind".into())
        })?;
        let Attempt { mut kept, circumstances, store, username, keeps } = *attempt;
        let Some((addressing, request)) = kept.request() else {
            return Ok(Outcome::Error(PageError::NO_FLOW));
        };
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
        Ok(match decided {
            Decided::Refused => {
                page(kept, &circumstances, &username, keeps, &[json!({ "code": "credentials" })])
            }
            Decided::GoOn(flow) => {
                kept.flow = *flow;
                let examined = self.examine(visit, &kept, &circumstances).await?;
                self.step(visit, kept, circumstances, examined).await?
            }
            Decided::Complete(given, session) => match leave(&issuer, &addressing, &given) {
                Outcome::Leave(address) => {
                    kept.answer = Some(address);
                    Outcome::SignedIn(kept.into(), session)
                }
                Outcome::Post { action, fields, .. } => {
                    Outcome::Post { action, fields, session: Some(session) }
                }
                other => other,
            },
        })
    }
}

/// The password page once more, with what is wrong.
fn page(
    kept: KeptFlow,
    circumstances: &Circumstances,
    username: &str,
    keeps: bool,
    errors: &[serde_json::Value],
) -> Outcome {
    let context = json!({
        "application": { "name": circumstances.application.name },
        "username": username,
        "remember": keeps,
        "errors": errors,
    });
    Outcome::Page(kept.into(), Page { view: "SignIn", step: PASSWORD, status: 200, context })
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
        let master = &self.app.master;
        let cookie = self.cookie.clone().map(|value| SessionCookie::of(master, value));
        let examined = self.circumstances.examine(tx, self.flow.clone(), cookie.as_ref(), self.now)?;
        let proven = Proven { person, instance: self.store.id, method: Method::Password, credential: None };
        let Ok(flow) = examined.due.apply(Event::FirstFactorProven(proven)) else {
            sign_in::withdraw(&context, tx, &self.verified)?;
            return Ok(Decided::GoOn(self.flow.clone().into()));
        };
        let must_change_password = known.must_change || known.is_expired_for_good;
        let circumstances = Circumstances { must_change_password, ..self.circumstances.clone() };
        let examined = circumstances.examine(tx, flow.clone(), cookie.as_ref(), self.now)?;
        match examined.due.step() {
            Step::Done(signed_in) => {
                sign_in::clear(&context, tx, &self.verified)?;
                self.complete(&context, tx, cookie.as_ref(), signed_in)
            }
            Step::Refuse(why) => {
                sign_in::withdraw(&context, tx, &self.verified)?;
                let tenant =
                    examined.due.identified().map(|identified| identified.tenant).unwrap_or_default();
                self.record(Recorded::Refused(*why), (person, tenant), None).write(&context, tx)?;
                if *why == NotAdmitted::PasswordExpired {
                    Ok(Decided::Refused)
                } else {
                    Ok(Decided::GoOn(flow.into()))
                }
            }
            _ => {
                sign_in::withdraw(&context, tx, &self.verified)?;
                Ok(Decided::GoOn(flow.into()))
            }
        }
    }

    fn complete(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        cookie: Option<&SessionCookie>,
        signed_in: &SignedIn,
    ) -> Result<Decided, Problem> {
        let application = &self.circumstances.application;
        let tenant = application.tenant(signed_in.tenant).ok_or_else(|| Problem::not_found("tenant"))?;
        let new = SessionCookie::new(&self.app.master);
        let id = signed_in.session.unwrap_or_else(|| context.new_id());
        session::establish(tx, (cookie, &new), signed_in, (id, self.keeps, &tenant.options), self.now)?;
        let issued = code::issue(context, tx, (application, &self.request), signed_in, id)?;
        let record = self.record(Recorded::SignedIn, (signed_in.person, signed_in.tenant), Some(id));
        let record = SignInRecord { methods: &signed_in.amr, acr: Some(signed_in.acr.name()), ..record };
        record.write(context, tx)?;
        let max_age = self.keeps.then(|| tenant.options.span("SessionAbsoluteLifetime") / 1000);
        Ok(Decided::Complete(issued, NewSession { value: new.value, max_age }))
    }

    fn record(
        &self,
        outcome: Recorded,
        (person, tenant): (Uuid, Uuid),
        session: Option<Uuid>,
    ) -> SignInRecord<'_> {
        SignInRecord {
            outcome,
            tenant,
            application: Some(self.circumstances.application.id),
            instance: Some(self.store.id),
            person,
            methods: &["pwd"],
            acr: None,
            session,
            origin: &self.origin,
            retention: self.circumstances.application.retention(tenant),
        }
    }
}
