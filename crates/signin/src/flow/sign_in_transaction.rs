//! After a proof or an action: signs the person in, or continues with the next step.

use std::sync::Arc;

use chancery_flow::{Acr, Event, Flow, Identified, Method, Proven, Step, acr_of, amr_of};
use chancery_management::identity_replacement::prove_replaced;
use chancery_oauth::AuthorizationRequest;
use chancery_record::Timestamp;
use chancery_resource::settings::{Options, TenantOption};
use chancery_resource::{AppContext, Context, Problem, Scope, Tx};
use chancery_userstore::attempt::clear_attempts;
use uuid::Uuid;

use super::{
    authorization_response::success_response,
    context::{Evaluated, FlowContext},
    page_name::{CONSENT, CONTINUE, DEVICE},
    page_redirect::redirect_after_post,
    pending_flow::PendingFlow,
    response::{BrowserResponse, NewSession},
};
use crate::{
    grant::authorization_code::{self, CodeRequest},
    person::{self, external_claims::ExternalClaims},
    provider::{Provider, Visit},
    second_factor::remember,
    session::{
        self, BrowserSessions, Session, SessionCookie,
        sign_in_record::{Origin, SignInOutcome, SignInRecord},
    },
};

/// Result of a committed proof.
pub enum ProofResult {
    /// Another step is due before the person is signed in.
    Continue(Box<Flow>),
    /// The person is signed in, and consent is due in this flow.
    SignedIn(Box<Flow>, NewSession),
    /// The sign-in is complete, with the code if one was requested, and the person's language.
    Complete(Option<String>, NewSession, Option<String>),
}

/// Input of the transaction that completes a sign-in.
#[derive(Clone)]
pub struct SignInTransaction {
    /// The context of the process.
    pub app: Arc<AppContext>,
    /// The time of the request.
    pub now: Timestamp,
    /// The client app and the other inputs of the evaluation.
    pub flow_context: FlowContext,
    flow: Flow,
    is_persistent: bool,
    remembers_device: bool,
    cookie: Option<SessionCookie>,
    origin: Origin,
    request: AuthorizationRequest,
}

impl Provider<'_> {
    /// The transaction of a flow; `None` if its request can no longer be parsed.
    pub(crate) fn sign_in_transaction(
        self,
        visit: &Visit,
        pending: &PendingFlow,
        flow_context: &FlowContext,
    ) -> Option<SignInTransaction> {
        let (_, request) = pending.request()?;
        Some(SignInTransaction {
            app: Arc::clone(self.context),
            now: visit.now,
            flow: pending.flow.clone(),
            flow_context: flow_context.clone(),
            is_persistent: pending.is_persistent,
            remembers_device: pending.remembers_device,
            cookie: visit.session_cookie(&self.context.master),
            origin: visit.origin.clone(),
            request,
        })
    }

    /// The response to the post with the proof.
    pub(crate) async fn respond_to_proof(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        flow_context: FlowContext,
        decided: ProofResult,
    ) -> Result<BrowserResponse, Problem> {
        Ok(match decided {
            ProofResult::Continue(flow) => {
                pending.flow = *flow;
                let evaluated = self.evaluate(visit, &pending, &flow_context).await?;
                pending.locale = evaluated.locale().cloned();
                redirect_after_post(
                    pending.clone(),
                    self.respond_with_step(visit, pending, flow_context, evaluated).await?,
                )
            }
            ProofResult::SignedIn(flow, session) => {
                pending.flow = *flow;
                pending.has_signed_in = true;
                BrowserResponse::ToPage(pending.into(), CONSENT, Some(session))
            }
            ProofResult::Complete(_, session, locale) if pending.device.is_some() => {
                pending.locale = locale;
                // the new session of this browser completes the flow
                BrowserResponse::ToPage(pending.into(), DEVICE, Some(session))
            }
            ProofResult::Complete(code, session, locale) => {
                pending.locale = locale;
                let Some((addressing, _)) = pending.request() else {
                    return Ok(BrowserResponse::ToPage(pending.into(), CONTINUE, Some(session)));
                };
                match success_response(&self.issuer_url(pending.issuing), &addressing, code.as_deref()) {
                    BrowserResponse::ToClient(address) => {
                        pending.answer = Some(address);
                        BrowserResponse::ToPage(pending.into(), CONTINUE, Some(session))
                    }
                    BrowserResponse::Post { action, fields, .. } => {
                        BrowserResponse::Post { action, fields, session: Some(session) }
                    }
                    other => other,
                }
            }
        })
    }
}

impl SignInTransaction {
    /// Adds the claims of an external provider.
    #[must_use]
    pub fn with_external_claims(mut self, external_claims: ExternalClaims) -> Self {
        self.flow_context.external_claims = Some(Arc::new(external_claims));
        self
    }

    /// The browser's sessions.
    pub fn sessions(&self, tx: &mut Tx<'_>) -> Result<Vec<Session>, Problem> {
        Ok(session::load(tx, self.cookie.as_ref(), self.now)?)
    }

    /// The due step.
    pub fn evaluate(&self, tx: &mut Tx<'_>, sessions: &[Session]) -> Result<Evaluated, Problem> {
        self.flow_context.evaluate(tx, self.flow.clone(), sessions, self.now)
    }

    /// The due step after an event. An event that does not belong to the due step changes nothing.
    pub fn apply(
        &self,
        tx: &mut Tx<'_>,
        sessions: &[Session],
        before: Evaluated,
        event: Event,
    ) -> Result<Evaluated, Problem> {
        match before.due.apply(event) {
            Ok(flow) => self.flow_context.evaluate(tx, flow, sessions, self.now),
            Err(_) => Ok(before),
        }
    }

    /// The due step after this first factor.
    pub fn prove(&self, tx: &mut Tx<'_>, sessions: &[Session], proven: Proven) -> Result<Evaluated, Problem> {
        let before = self.evaluate(tx, sessions)?;
        self.apply(tx, sessions, before, Event::FirstFactorProven(proven))
    }

    /// Signs the person in if nothing but consent is due, and issues the code if nothing at all is. Clears the
    /// counter of failed attempts. `None`: another step is due.
    pub fn sign_in(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        sessions: &[Session],
        evaluated: &Evaluated,
        attempt: Option<Uuid>,
    ) -> Result<Option<ProofResult>, Problem> {
        let due = &evaluated.due;
        let (Step::Done(_) | Step::Consent, Some(identified), Some(admitted), true) =
            (due.step(), due.identified(), &evaluated.admitted, evaluated.lacks_session)
        else {
            return Ok(None);
        };
        let application = &self.flow_context.application;
        let tenant = application.tenant(identified.tenant).ok_or_else(|| Problem::not_found("tenant"))?;
        let (new, options) = (SessionCookie::new(&self.app.master), &tenant.options);
        let browser = BrowserSessions { former: self.cookie.as_ref(), new: &new, known: sessions };
        let external_claims = self.flow_context.external_claims_of(identified);
        let id = session::establish(
            context,
            tx,
            browser,
            identified,
            external_claims,
            self.is_persistent,
            tenant,
        )?;
        self.record_sign_in(context, tx, evaluated, id)?;
        let by_passkey = identified.proofs.iter().any(|proof| matches!(proof.method, Method::Passkey { .. }));
        if let Some(user) = &admitted.user {
            clear_attempts(context, tx, user.user, attempt, by_passkey)?;
        } else {
            let context = Context::of_server(&self.app, Scope::Everything, self.now);
            prove_replaced(&context, tx, identified.person, identified.instance)?;
        }
        let is_persistent = self.is_persistent || sessions.iter().any(|session| session.is_persistent);
        let max_age = is_persistent.then(|| options.get(TenantOption::SESSION_ABSOLUTE_LIFETIME) / 1000);
        let device = self.remember(context, tx, identified, options)?;
        let session = NewSession { value: new.value, max_age, device };
        let Step::Done(signed_in) = due.step() else {
            return Ok(Some(ProofResult::SignedIn(due.flow().clone().into(), session)));
        };
        let request = CodeRequest { application, issuing: self.flow_context.issuing, request: &self.request };
        let code = authorization_code::issue(context, tx, request, signed_in, id)?;
        Ok(Some(ProofResult::Complete(code, session, admitted.contact.locale.clone())))
    }

    /// Remembers this browser if the person selected this with a second factor and the tenant permits it.
    fn remember(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        identified: &Identified,
        options: &Options<TenantOption>,
    ) -> Result<Option<(String, i64)>, Problem> {
        let lifetime = options.get(TenantOption::REMEMBER_DEVICE_LIFETIME);
        let has_second = identified.proofs.iter().any(|proof| !proof.method.is_first());
        if !self.remembers_device || !has_second || lifetime == 0 {
            return Ok(None);
        }
        let device = remember(context, tx, identified, lifetime)?;
        Ok(Some((device.value, lifetime / 1000)))
    }

    fn record_sign_in(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        evaluated: &Evaluated,
        session: Uuid,
    ) -> Result<(), Problem> {
        let Some(identified) = evaluated.due.identified() else { return Ok(()) };
        let methods = || identified.proofs.iter().map(|proof| proof.method);
        let amr = amr_of(methods());
        // a session that continues without a new first factor was stepped up
        let is_first = evaluated.due.flow().proofs().iter().any(|proof| proof.method.is_first());
        let outcome = if is_first || identified.session.is_none() {
            SignInOutcome::SignedIn
        } else {
            SignInOutcome::SteppedUp
        };
        let record = self.record(outcome, identified.instance, identified.person, identified.tenant);
        let acr = acr_of(methods()).map(Acr::name);
        SignInRecord { methods: &amr, acr, session: Some(session), ..record }.write(context, tx)
    }

    /// Records that a person is not admitted, if that is the due step.
    pub fn record_refusal(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        evaluated: &Evaluated,
    ) -> Result<(), Problem> {
        let (Step::Refuse(why), Some(identified)) = (evaluated.due.step(), evaluated.due.identified()) else {
            return Ok(());
        };
        let amr = amr_of(identified.proofs.iter().map(|proof| proof.method));
        let record = self.record(
            SignInOutcome::Refused(*why),
            identified.instance,
            identified.person,
            identified.tenant,
        );
        SignInRecord { methods: &amr, ..record }.write(context, tx)
    }

    /// Records a wrong first factor of a store's user. A person who has never signed in has no record; then as much
    /// is read and written, so that the time of the response is the same.
    pub fn record_wrong(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        store: Uuid,
        user: Option<Uuid>,
        tenant: Uuid,
    ) -> Result<(), Problem> {
        let person = person::active_person(tx, store, user.unwrap_or_default())?;
        let record = self.record(SignInOutcome::WrongCredentials, store, person.unwrap_or_default(), tenant);
        if person.is_some() { record.write(context, tx) } else { record.write_dummy(context, tx) }
    }

    /// A record of this sign-in.
    pub fn record(
        &self,
        outcome: SignInOutcome,
        instance: Uuid,
        person: Uuid,
        tenant: Uuid,
    ) -> SignInRecord<'_> {
        SignInRecord {
            outcome,
            tenant,
            application: Some(self.flow_context.application.id),
            instance: Some(instance),
            person,
            methods: &[],
            acr: None,
            session: None,
            origin: Some(&self.origin),
        }
    }
}
