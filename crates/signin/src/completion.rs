//! Where something was proven or done: the person is signed in, or goes on to what is due.

use std::sync::Arc;

use chancery_flow::{Acr, Event, Flow, Identified, Method, Proven, Step, acr_of, amr_of};
use chancery_management::identity_replacement::prove_replaced;
use chancery_oauth::AuthorizationRequest;
use chancery_record::Timestamp;
use chancery_resource::settings::{Options, TenantOption};
use chancery_resource::{AppContext, Context, Problem, Scope, Tx};
use chancery_userstore::user::clear_attempts;
use uuid::Uuid;

use crate::{
    authorize::leave,
    code,
    device::DEVICE,
    kept_flow::{KeptFlow, ToldElsewhere},
    outcome::{NewSession, Outcome},
    page::{CONSENT, CONTINUE},
    person,
    provider::{Circumstances, Examined, Provider, Visit},
    record::{Origin, Outcome as Recorded, SignInRecord},
    second_factor::remember,
    session::{self, Session, SessionCookie},
    step::after_post,
};

/// What came of a proof, once its transaction is committed.
pub enum Decided {
    /// Something else is due in this flow, before the person is signed in.
    GoOn(Box<Flow>),
    /// The person is signed in, and consent is due in this flow.
    SignedIn(Box<Flow>, NewSession),
    /// The sign-in is complete, with the code if one was asked for, and the person's language.
    Complete(Option<String>, NewSession, Option<String>),
}

/// All that the transaction needs that completes a sign-in.
#[derive(Clone)]
pub struct Completion {
    /// What all operations share.
    pub app: Arc<AppContext>,
    /// The time of the request.
    pub now: Timestamp,
    /// The client app, and what else a flow is judged by.
    pub circumstances: Circumstances,
    flow: Flow,
    keeps: bool,
    remembers: bool,
    cookie: Option<SessionCookie>,
    origin: Origin,
    request: AuthorizationRequest,
}

impl Provider<'_> {
    /// What completes a flow; `None` where its request cannot be read any more.
    pub(crate) fn completion(
        self,
        visit: &Visit,
        kept: &KeptFlow,
        circumstances: &Circumstances,
    ) -> Option<Completion> {
        let (_, request) = kept.request()?;
        Some(Completion {
            app: Arc::clone(self.context),
            now: visit.now,
            flow: kept.flow.clone(),
            circumstances: circumstances.clone(),
            keeps: kept.keeps,
            remembers: kept.remembers,
            cookie: visit.session_cookie(&self.context.master),
            origin: visit.origin.clone(),
            request,
        })
    }

    /// The answer to the post that proved something.
    pub(crate) async fn conclude(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        circumstances: Circumstances,
        decided: Decided,
    ) -> Result<Outcome, Problem> {
        Ok(match decided {
            Decided::GoOn(flow) => {
                kept.flow = *flow;
                let examined = self.examine(visit, &kept, &circumstances).await?;
                kept.locale = examined.locale().cloned();
                after_post(kept.clone(), self.step(visit, kept, circumstances, examined).await?)
            }
            Decided::SignedIn(flow, session) => {
                kept.flow = *flow;
                kept.has_signed_in = true;
                Outcome::GoTo(kept.into(), CONSENT, Some(session))
            }
            Decided::Complete(_, session, locale) if kept.device.is_some() => {
                kept.locale = locale;
                // by this browser's session the flow is complete now
                Outcome::GoTo(kept.into(), DEVICE, Some(session))
            }
            Decided::Complete(code, session, locale) => {
                kept.locale = locale;
                let Some((addressing, _)) = kept.request() else {
                    return Ok(Outcome::GoTo(kept.into(), CONTINUE, Some(session)));
                };
                match leave(&self.issuer_url(kept.issuing), &addressing, code.as_deref()) {
                    Outcome::Leave(address) => {
                        kept.answer = Some(address);
                        Outcome::GoTo(kept.into(), CONTINUE, Some(session))
                    }
                    Outcome::Post { action, fields, .. } => {
                        Outcome::Post { action, fields, session: Some(session) }
                    }
                    other => other,
                }
            }
        })
    }
}

impl Completion {
    /// The same, where an external provider told this.
    #[must_use]
    pub fn with_told(mut self, told: ToldElsewhere) -> Self {
        self.circumstances.told = Some(Arc::new(told));
        self
    }

    /// The browser's sessions.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sessions(&self, tx: &mut Tx<'_>) -> Result<Vec<Session>, Problem> {
        Ok(session::load(tx, self.cookie.as_ref(), self.now)?)
    }

    /// What is due.
    ///
    /// # Errors
    /// Those of the store.
    pub fn examine(&self, tx: &mut Tx<'_>, sessions: &[Session]) -> Result<Examined, Problem> {
        self.circumstances.examine(tx, self.flow.clone(), sessions, self.now)
    }

    /// What is due once this has happened; what is due anyway, where it does not belong to the step that is due.
    ///
    /// # Errors
    /// Those of the store.
    pub fn apply(
        &self,
        tx: &mut Tx<'_>,
        sessions: &[Session],
        before: Examined,
        event: Event,
    ) -> Result<Examined, Problem> {
        match before.due.apply(event) {
            Ok(flow) => self.circumstances.examine(tx, flow, sessions, self.now),
            Err(_) => Ok(before),
        }
    }

    /// What is due once this was proven first.
    ///
    /// # Errors
    /// Those of the store.
    pub fn prove(&self, tx: &mut Tx<'_>, sessions: &[Session], proven: Proven) -> Result<Examined, Problem> {
        let before = self.examine(tx, sessions)?;
        self.apply(tx, sessions, before, Event::FirstFactorProven(proven))
    }

    /// Signs the person in where nothing but consent is due, and issues the code where nothing at all is. What was
    /// counted of failed attempts is forgotten. `None`: something else is due.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sign_in(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        sessions: &[Session],
        examined: &Examined,
        attempt: Option<Uuid>,
    ) -> Result<Option<Decided>, Problem> {
        let due = &examined.due;
        let (Step::Done(_) | Step::Consent, Some(identified), Some(admitted), true) =
            (due.step(), due.identified(), &examined.admitted, examined.lacks_session)
        else {
            return Ok(None);
        };
        let application = &self.circumstances.application;
        let tenant = application.tenant(identified.tenant).ok_or_else(|| Problem::not_found("tenant"))?;
        let (new, options) = (SessionCookie::new(&self.app.master), &tenant.options);
        let former = (self.cookie.as_ref(), &new, sessions);
        let told = self.circumstances.told_of(identified);
        let id = session::establish(context, tx, former, (identified, told), (self.keeps, tenant))?;
        self.record_sign_in(context, tx, examined, id)?;
        let by_passkey = identified.proofs.iter().any(|proof| matches!(proof.method, Method::Passkey { .. }));
        if let Some(user) = &admitted.user {
            clear_attempts(context, tx, user.user, (attempt, by_passkey))?;
        } else {
            let context = Context::of_server(&self.app, Scope::Everything, self.now);
            prove_replaced(&context, tx, (identified.person, identified.instance))?;
        }
        let is_kept = self.keeps || sessions.iter().any(|session| session.is_kept);
        let max_age = is_kept.then(|| options.get(TenantOption::SESSION_ABSOLUTE_LIFETIME) / 1000);
        let device = self.remember(context, tx, identified, options)?;
        let session = NewSession { value: new.value, max_age, device };
        let Step::Done(signed_in) = due.step() else {
            return Ok(Some(Decided::SignedIn(due.flow().clone().into(), session)));
        };
        let code = code::issue(context, tx, (&self.circumstances, &self.request), signed_in, id)?;
        Ok(Some(Decided::Complete(code, session, admitted.contact.locale.clone())))
    }

    /// Remembers this browser where that was ticked beside a second factor, and the tenant lets it.
    fn remember(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        identified: &Identified,
        options: &Options<TenantOption>,
    ) -> Result<Option<(String, i64)>, Problem> {
        let lifetime = options.get(TenantOption::REMEMBER_DEVICE_LIFETIME);
        let has_second = identified.proofs.iter().any(|proof| !proof.method.is_first());
        if !self.remembers || !has_second || lifetime == 0 {
            return Ok(None);
        }
        let device = remember(context, tx, (identified.person, identified.tenant), lifetime)?;
        Ok(Some((device.value, lifetime / 1000)))
    }

    fn record_sign_in(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        examined: &Examined,
        session: Uuid,
    ) -> Result<(), Problem> {
        let Some(identified) = examined.due.identified() else { return Ok(()) };
        let methods = || identified.proofs.iter().map(|proof| proof.method);
        let amr = amr_of(methods());
        // a session that goes on without a new first factor was made stronger
        let is_first = examined.due.flow().proofs().iter().any(|proof| proof.method.is_first());
        let outcome =
            if is_first || identified.session.is_none() { Recorded::SignedIn } else { Recorded::SteppedUp };
        let record = self.record(outcome, identified.instance, (identified.person, identified.tenant));
        let acr = acr_of(methods()).map(Acr::name);
        SignInRecord { methods: &amr, acr, session: Some(session), ..record }.write(context, tx)
    }

    /// Records that a person is not admitted, where that is so.
    ///
    /// # Errors
    /// Those of the store.
    pub fn record_refusal(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        examined: &Examined,
    ) -> Result<(), Problem> {
        let (Step::Refuse(why), Some(identified)) = (examined.due.step(), examined.due.identified()) else {
            return Ok(());
        };
        let amr = amr_of(identified.proofs.iter().map(|proof| proof.method));
        let whose = (identified.person, identified.tenant);
        let record = self.record(Recorded::Refused(*why), identified.instance, whose);
        SignInRecord { methods: &amr, ..record }.write(context, tx)
    }

    /// Records that a first factor of this user of a store was wrong. Who has never signed in is nobody's record; for nobody
    /// as much is read and written.
    ///
    /// # Errors
    /// Those of the store.
    pub fn record_wrong(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        store: Uuid,
        (user, tenant): (Option<Uuid>, Uuid),
    ) -> Result<(), Problem> {
        let person = person::known(tx, store, user.unwrap_or_default())?;
        let record = self.record(Recorded::WrongCredentials, store, (person.unwrap_or_default(), tenant));
        if person.is_some() { record.write(context, tx) } else { record.feign(context, tx) }
    }

    /// A record of this sign-in.
    pub fn record(
        &self,
        outcome: Recorded,
        instance: Uuid,
        (person, tenant): (Uuid, Uuid),
    ) -> SignInRecord<'_> {
        SignInRecord {
            outcome,
            tenant,
            application: Some(self.circumstances.application.id),
            instance: Some(instance),
            person,
            methods: &[],
            acr: None,
            session: None,
            origin: Some(&self.origin),
        }
    }
}
