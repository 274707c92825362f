//! Turns the due step into a response to the browser.

use std::sync::Arc;

use chancery_flow::{Failure, Flow, NotAdmitted, Step};
use chancery_oauth::{AuthorizationRequest, ErrorCode, ProtocolError};
use chancery_record::Timestamp;
use chancery_resource::{AppContext, Context, Problem, Scope, Tx};
use chancery_store::Mode;
use uuid::Uuid;

use super::{
    authorization_response::{error_response, success_response},
    context::{Evaluated, FlowContext},
    page_name::{CONTINUE, DEVICE, RECOVERY, page_of_step},
    pending_flow::PendingFlow,
    response::{BrowserResponse, PageError},
};
use crate::{
    grant::authorization_code::{self, CodeRequest},
    person::consent,
    provider::{Provider, Visit},
    session::{self, SessionCookie},
};

impl Provider<'_> {
    /// Responds with the due step: the page's address, or the response to the client app.
    pub(crate) async fn respond_with_step(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        flow_context: FlowContext,
        evaluated: Evaluated,
    ) -> Result<BrowserResponse, Problem> {
        pending.locale = evaluated.locale().cloned();
        if !pending.recovery_codes.is_empty() {
            return Ok(BrowserResponse::ToPage(pending.into(), RECOVERY, None));
        }
        match evaluated.due.step() {
            // another party, e.g. an administrator, has done the last due action: one click ends the flow
            Step::Done(_) if evaluated.lacks_session && !pending.has_signed_in => {
                Ok(BrowserResponse::ToPage(pending.into(), CONTINUE, None))
            }
            Step::Done(_) if pending.device.is_some() => {
                Ok(BrowserResponse::ToPage(pending.into(), DEVICE, None))
            }
            Step::Done(_) => self.answer(visit, pending, flow_context).await,
            step => Ok(self.respond_to(pending, step)),
        }
    }

    /// Redirects to the page of a step, or reports to the client app why there is no sign-in.
    fn respond_to(self, pending: PendingFlow, step: &Step) -> BrowserResponse {
        let Some((addressing, _)) = pending.request() else {
            return BrowserResponse::Error(PageError::NO_FLOW);
        };
        if let (Some(_), Step::Fail(failure)) = (&pending.device, step)
            && *failure != Failure::Over
        {
            return pending.device_decided("rejected");
        }
        // a form without any usable store would look like a wrong password
        if let Step::FirstFactor(due) = step
            && due.offered.is_empty()
        {
            return BrowserResponse::Error(PageError::NOT_SET_UP);
        }
        if let Some(page) = page_of_step(step) {
            return BrowserResponse::ToPage(pending.into(), page, None);
        }
        let refusal = match step {
            // the session has ended since, so there is no one to answer for
            Step::Done(_) | Step::Fail(Failure::Over) => return BrowserResponse::Error(PageError::NO_FLOW),
            Step::Fail(failure) => refusal_of(*failure),
            _ => {
                let detail = "This server cannot ask the person for what is due here.";
                ProtocolError::new(ErrorCode::InteractionRequired, detail)
            }
        };
        error_response(&self.issuer_url(pending.issuing), &addressing, refusal)
    }

    /// The issuer's URL.
    pub(crate) fn issuer_url(self, issuing: Option<Uuid>) -> String {
        chancery_auth::issuer_url(&self.tokens.public_url, issuing)
    }

    pub(crate) async fn evaluate(
        self,
        visit: &Visit,
        pending: &PendingFlow,
        flow_context: &FlowContext,
    ) -> Result<Evaluated, Problem> {
        let (flow, now, flow_context) = (pending.flow.clone(), visit.now, flow_context.clone());
        let cookie = visit.session_cookie(&self.context.master);
        let evaluating = move |tx: &mut Tx<'_>| {
            let sessions = session::load(tx, cookie.as_ref(), now)?;
            flow_context.evaluate(tx, flow.clone(), &sessions, now)
        };
        self.store.run("ExamineSignIn", Mode::Quick, None, evaluating).await
    }

    /// Ends a flow whose sign-in an existing session already completes, with a code; redirects to the due page
    /// otherwise.
    pub(crate) async fn answer(
        self,
        visit: &Visit,
        pending: PendingFlow,
        flow_context: FlowContext,
    ) -> Result<BrowserResponse, Problem> {
        let Some((addressing, request)) = pending.request() else {
            return Ok(BrowserResponse::Error(PageError::NO_FLOW));
        };
        // nothing is written without a code
        let mode = if request.response_type.code { Mode::Write } else { Mode::Quick };
        let answering = AnswerTransaction {
            app: Arc::clone(self.context),
            flow: pending.flow.clone(),
            flow_context,
            cookie: visit.session_cookie(&self.context.master),
            request,
            now: visit.now,
        };
        let answered = self.store.run("AnswerSignIn", mode, None, move |tx| answering.answer(tx)).await?;
        Ok(match answered {
            AnswerResult::Due(evaluated) => self.respond_to(pending, evaluated.due.step()),
            AnswerResult::Code(code) => {
                success_response(&self.issuer_url(pending.issuing), &addressing, code.as_deref())
            }
        })
    }
}

/// Input of the transaction that ends a flow.
struct AnswerTransaction {
    app: Arc<AppContext>,
    flow: Flow,
    flow_context: FlowContext,
    cookie: Option<SessionCookie>,
    request: AuthorizationRequest,
    now: Timestamp,
}

/// Result of the transaction that ends a flow.
enum AnswerResult {
    /// The flow ends, with a code if one was requested.
    Code(Option<String>),
    /// Another step is due.
    Due(Box<Evaluated>),
}

impl AnswerTransaction {
    /// Evaluates the flow again: the facts of this transaction count, not those of the page.
    fn answer(&self, tx: &mut Tx<'_>) -> Result<AnswerResult, Problem> {
        let sessions = session::load(tx, self.cookie.as_ref(), self.now)?;
        let evaluated = self.flow_context.evaluate(tx, self.flow.clone(), &sessions, self.now)?;
        let Step::Done(signed_in) = evaluated.due.step() else {
            return Ok(AnswerResult::Due(evaluated.into()));
        };
        let Some(used) = sessions.iter().find(|one| Some(one.id) == signed_in.session) else {
            return Ok(AnswerResult::Due(evaluated.into()));
        };
        if !self.request.response_type.code {
            return Ok(AnswerResult::Code(None));
        }
        let mut context = Context::of_server(&self.app, Scope::Everything, self.now);
        context.actor = Some(signed_in.person);
        let application = &self.flow_context.application;
        if let Some(tenant) = application.tenant(signed_in.tenant) {
            session::note_use(tx, used, &tenant.options, self.now)?;
        }
        consent::store(&context, tx, application.id, signed_in, &self.request.resources)?;
        let request = CodeRequest { application, issuing: self.flow_context.issuing, request: &self.request };
        authorization_code::issue(&context, tx, request, signed_in, used.id).map(AnswerResult::Code)
    }
}

fn refusal_of(failure: Failure) -> ProtocolError {
    let (code, detail) = match failure {
        Failure::LoginRequired => (ErrorCode::LoginRequired, "The person has to sign in."),
        Failure::AccountSelectionRequired => {
            (ErrorCode::AccountSelectionRequired, "An account has to be chosen.")
        }
        Failure::InteractionRequired => (ErrorCode::InteractionRequired, "A page has to be shown."),
        Failure::ConsentRequired => (ErrorCode::ConsentRequired, "Consent is missing."),
        Failure::UnmetAuthenticationRequirements => {
            (ErrorCode::UnmetAuthenticationRequirements, "The person cannot reach what acr_values demands.")
        }
        Failure::NotAdmitted(NotAdmitted::Restricted) => {
            (ErrorCode::AccessDenied, "The client app is for some people only.")
        }
        _ => (ErrorCode::AccessDenied, "The person did not sign in."),
    };
    ProtocolError::new(code, detail)
}
