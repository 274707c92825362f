//! Turns the due step into a response to the browser.

use std::sync::Arc;

use chancery_flow::{Due, Event, Failure, Flow, Granted, NotAdmitted, Step};
use chancery_oauth::{AuthorizationRequest, ErrorCode, OPENID, ProtocolError};
use chancery_record::Timestamp;
use chancery_resource::{AppContext, Context, Problem, Scope, Tx};
use chancery_store::Mode;
use serde_json::json;
use uuid::Uuid;

use crate::{
    advance::ActionResult,
    authorize::{answer_client, refuse},
    code, consent,
    device::{self, DEVICE},
    external::EXTERNAL,
    page::{CONTINUE, PASSWORD, RECOVERY, is_page_of, page_for, page_of},
    pending_flow::PendingFlow,
    provider::{Evaluated, FlowContext, Provider, Visit},
    response::{BrowserResponse, Page, PageError},
    session::{self, SessionCookie},
};

impl Provider<'_> {
    /// Responds with the due step: the page's address, or the response to the client app.
    pub(crate) async fn step(
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
            return device::rejected(pending);
        }
        // a form without any usable store would look like a wrong password
        if let Step::FirstFactor(due) = step
            && due.offered.is_empty()
        {
            return BrowserResponse::Error(PageError::NOT_SET_UP);
        }
        if let Some(page) = page_of(step) {
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
        refuse(&self.issuer_url(pending.issuing), &addressing, refusal)
    }

    /// The issuer's URL.
    pub(crate) fn issuer_url(self, issuing: Option<Uuid>) -> String {
        chancery_auth::issuer_url(&self.tokens.public_url, issuing)
    }

    /// Shows the page of a step, or redirects to the due one.
    pub async fn show(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        page: &str,
    ) -> Result<BrowserResponse, Problem> {
        if let (Some(address), CONTINUE) = (pending.answer.clone(), page) {
            let name = self.application_of(&pending).await?.map(|application| application.name.clone());
            let context = json!({ "application": { "name": name }, "continue_url": address });
            let rendered = Page::new("Continue", CONTINUE, context).in_language(pending.locale.clone());
            return Ok(BrowserResponse::Page(pending.into(), rendered));
        }
        if let Some(step) = pending.device.as_ref().and_then(|device| device.decided.clone()) {
            let rendered = device::decided_page(&step, pending.locale.clone());
            return Ok(BrowserResponse::Page(pending.into(), rendered));
        }
        let Some(application) = self.application_of(&pending).await? else {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_CLIENT));
        };
        let flow_context = FlowContext::new(self, application, (visit, &pending));
        let evaluated = self.evaluate(visit, &pending, &flow_context).await?;
        if page == EXTERNAL {
            let at_once = match evaluated.due.step() {
                Step::FirstFactor(due) => due.at_once,
                _ => None,
            };
            return Box::pin(self.redirect_or_step(visit, pending, (flow_context, evaluated), at_once)).await;
        }
        if let (DEVICE, Step::Done(_), Some(_)) = (page, evaluated.due.step(), &pending.device) {
            let rendered = device::confirm_page(&flow_context, &pending, &evaluated);
            return Ok(BrowserResponse::Page(pending.into(), rendered));
        }
        if !is_page_of(page, &pending, &flow_context, &evaluated) {
            return self.step(visit, pending, flow_context, evaluated).await;
        }
        let added = self.prepare(visit, (&mut pending, page), &flow_context, &evaluated).await?;
        let rendered = page_for((page, added), &flow_context, &pending, &evaluated);
        Ok(BrowserResponse::Page(pending.into(), rendered))
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
                answer_client(&self.issuer_url(pending.issuing), &addressing, code.as_deref())
            }
        })
    }

    /// Applies an event of a page and continues.
    pub(crate) async fn apply(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        event: impl Fn(&Due) -> Event + Send + Sync + 'static,
    ) -> Result<BrowserResponse, Problem> {
        let Some(application) = self.application_of(&pending).await? else {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_CLIENT));
        };
        let flow_context = FlowContext::new(self, application, (visit, &pending));
        let (flow, now, evaluator) = (pending.flow.clone(), visit.now, flow_context.clone());
        let cookie = visit.session_cookie(&self.context.master);
        let evaluated = self.store.run("ApplyToSignIn", Mode::Quick, None, move |tx| {
            let sessions = session::load(tx, cookie.as_ref(), now)?;
            let before = evaluator.evaluate(tx, flow.clone(), &sessions, now)?;
            // an event that does not belong to the due step changes nothing: the due page is shown
            match before.due.apply(event(&before.due)) {
                Ok(flow) => evaluator.evaluate(tx, flow, &sessions, now),
                Err(_) => Ok(before),
            }
        });
        let evaluated: Evaluated = evaluated.await?;
        pending.flow = evaluated.due.flow().clone();
        pending.locale = evaluated.locale().cloned();
        let is_complete = matches!(evaluated.due.step(), Step::Done(_) | Step::Consent);
        if evaluated.lacks_session && is_complete && !pending.has_signed_in {
            let (response, _) =
                self.advance(visit, (pending, CONTINUE), |_, _| Ok(ActionResult::Nothing)).await?;
            return Ok(response);
        }
        let response = self.step(visit, pending.clone(), flow_context, evaluated).await?;
        Ok(after_post(pending, response))
    }

    /// Handles a post of the page that chooses a tenant or an account, or of the page of a person who is not
    /// admitted.
    pub async fn choose(
        self,
        visit: &Visit,
        pending: PendingFlow,
        choice: &str,
    ) -> Result<BrowserResponse, Problem> {
        let id = |text: &str| Uuid::try_parse(text).unwrap_or_default();
        let event = match choice.split_once(':') {
            Some(("tenant", text)) => Event::TenantChosen(id(text)),
            Some(("session", text)) => Event::SessionChosen(id(text)),
            _ => match choice {
                "other" => Event::OtherAccount,
                "back" => Event::Back,
                "continue" => Event::Continued,
                _ => Event::Cancelled,
            },
        };
        self.apply(visit, pending, move |_| event.clone()).await
    }

    /// Handles a post of the consent page. `None`: denied. `openid` and resources cannot be deselected: they are
    /// granted even if they are not ticked.
    pub async fn consent(
        self,
        visit: &Visit,
        pending: PendingFlow,
        given: Option<GivenConsent>,
    ) -> Result<BrowserResponse, Problem> {
        let Some(given) = given else { return self.apply(visit, pending, |_| Event::ConsentDenied).await };
        let resources = pending.request().map(|(_, request)| request.resources).unwrap_or_default();
        self.apply(visit, pending, move |due| {
            let is_given = |word: &&String| {
                given.words.contains(word) || word.as_str() == OPENID || resources.contains(word)
            };
            let words = due.flow().request().requested.iter().filter(is_given).cloned().collect();
            Event::ConsentGiven(Granted { words, is_remembered: given.is_remembered })
        })
        .await
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
        consent::store(&context, tx, (application.id, signed_in), &self.request.resources)?;
        let request = (&self.flow_context, &self.request);
        code::issue(&context, tx, request, signed_in, used.id).map(AnswerResult::Code)
    }
}

/// After a post, redirects out of the server go through a page of ours: browsers apply a page's `form-action` to
/// whole redirect chains.
pub(crate) fn after_post(mut pending: PendingFlow, response: BrowserResponse) -> BrowserResponse {
    match response {
        BrowserResponse::ToClient(address) => {
            pending.answer = Some(address);
            BrowserResponse::ToPage(pending.into(), CONTINUE, None)
        }
        // the same holds for redirects to a provider: the page of the first factor has a link there
        BrowserResponse::ToPage(pending, EXTERNAL, session) => {
            BrowserResponse::ToPage(pending, PASSWORD, session)
        }
        BrowserResponse::Refused(refusal, answer) => {
            BrowserResponse::Refused(refusal, after_post(pending, *answer).into())
        }
        other => other,
    }
}

/// The selection on the consent page.
pub struct GivenConsent {
    /// The selected scopes and resources.
    pub words: Vec<String>,
    /// Whether the consent is stored.
    pub is_remembered: bool,
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
