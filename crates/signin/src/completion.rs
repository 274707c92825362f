//! Where a first factor was proven: the person is signed in, or goes on to what is due.

use std::sync::Arc;

use chancery_flow::{Acr, Due, Event, Flow, Method, Proven, Step, acr_of, amr_of};
use chancery_oauth::AuthorizationRequest;
use chancery_record::Timestamp;
use chancery_resource::{AppContext, Context, Problem, Tx};
use uuid::Uuid;

use crate::{
    application::OfferedStore,
    authorize::leave,
    code,
    device::DEVICE,
    kept_flow::KeptFlow,
    outcome::{NewSession, Outcome},
    provider::{Circumstances, Provider, Visit},
    record::{Origin, Outcome as Recorded, SignInRecord},
    session::{self, Session, SessionCookie},
    step::{CONSENT, CONTINUE, after_post},
};

/// What came of a proof, once its transaction is committed.
pub enum Decided {
    /// Something else is due in this flow, before the person is signed in.
    GoOn(Box<Flow>),
    /// The person is signed in, and consent is due in this flow.
    SignedIn(Box<Flow>, NewSession),
    /// The sign-in is complete, with the code if one was asked for.
    Complete(Option<String>, NewSession),
}

/// All that the transaction needs that completes a sign-in at a user store.
pub struct Completion {
    /// What all operations share.
    pub app: Arc<AppContext>,
    /// The store.
    pub store: OfferedStore,
    /// The time of the request.
    pub now: Timestamp,
    flow: Flow,
    circumstances: Circumstances,
    keeps: bool,
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
        store: OfferedStore,
    ) -> Option<Completion> {
        let (_, request) = kept.request()?;
        Some(Completion {
            app: Arc::clone(self.context),
            store,
            now: visit.now,
            flow: kept.flow.clone(),
            circumstances: circumstances.clone(),
            keeps: kept.keeps,
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
                after_post(kept.clone(), self.step(visit, kept, circumstances, examined).await?)
            }
            Decided::SignedIn(flow, session) => {
                kept.flow = *flow;
                Outcome::GoTo(kept.into(), CONSENT, Some(session))
            }
            Decided::Complete(_, session) if kept.device.is_some() => {
                // by this browser's session the flow is complete now
                Outcome::GoTo(kept.into(), DEVICE, Some(session))
            }
            Decided::Complete(code, session) => {
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
    /// The browser's sessions.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sessions(&self, tx: &mut Tx<'_>) -> Result<Vec<Session>, Problem> {
        Ok(session::load(tx, self.cookie.as_ref(), self.now)?)
    }

    /// What is due once this person has proven a password; where none was due: what is due anyway.
    ///
    /// # Errors
    /// Those of the store.
    pub fn prove(&self, tx: &mut Tx<'_>, sessions: &[Session], person: Uuid) -> Result<Due, Problem> {
        let before = self.circumstances.examine(tx, self.flow.clone(), sessions, self.now)?.due;
        let proven = Proven { person, instance: self.store.id, method: Method::Password, credential: None };
        match before.apply(Event::FirstFactorProven(proven)) {
            Ok(flow) => Ok(self.circumstances.examine(tx, flow, sessions, self.now)?.due),
            Err(_) => Ok(before),
        }
    }

    /// Signs the person in where nothing but consent is due, and issues the code where nothing at all is. `None`:
    /// something else is due.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sign_in(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        sessions: &[Session],
        due: &Due,
    ) -> Result<Option<Decided>, Problem> {
        let (Step::Done(_) | Step::Consent, Some(identified)) = (due.step(), due.identified()) else {
            return Ok(None);
        };
        let application = &self.circumstances.application;
        let tenant = application.tenant(identified.tenant).ok_or_else(|| Problem::not_found("tenant"))?;
        let (new, options) = (SessionCookie::new(&self.app.master), &tenant.options);
        let former = (self.cookie.as_ref(), &new, sessions);
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
            return Ok(Some(Decided::SignedIn(due.flow().clone().into(), session)));
        };
        let code = code::issue(context, tx, (&self.circumstances, &self.request), signed_in, id)?;
        Ok(Some(Decided::Complete(code, session)))
    }

    /// A record of this sign-in.
    pub fn record(&self, outcome: Recorded, (person, tenant): (Uuid, Uuid)) -> SignInRecord<'_> {
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
