//! From the step that is due to what the browser is answered.

use std::sync::Arc;

use chancery_flow::{Due, Event, Failure, Flow, Granted, NotAdmitted, Step};
use chancery_oauth::{AuthorizationRequest, Code, OPENID, Refusal};
use chancery_record::Timestamp;
use chancery_resource::{AppContext, Context, Problem, Scope, Tx};
use chancery_store::Mode;
use serde_json::json;
use uuid::Uuid;

use crate::{
    advance::Done,
    authorize::{leave, refuse},
    code, consent,
    device::{self, DEVICE},
    external::EXTERNAL,
    kept_flow::KeptFlow,
    outcome::{Outcome, Page, PageError},
    page::{CONTINUE, PASSWORD, RECOVERY, is_page_of, page_for, page_of},
    provider::{Circumstances, Examined, Provider, Visit},
    session::{self, SessionCookie},
};

impl Provider<'_> {
    /// Answers with the step that is due: the page's address, or the answer to the client app.
    pub(crate) async fn step(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        circumstances: Circumstances,
        examined: Examined,
    ) -> Result<Outcome, Problem> {
        kept.locale = examined.locale().cloned();
        if !kept.recovery_codes.is_empty() {
            return Ok(Outcome::GoTo(kept.into(), RECOVERY, None));
        }
        match examined.due.step() {
            // what would have ended the flow was done elsewhere, e.g. by an administrator: one click ends it
            Step::Done(_) if examined.lacks_session && !kept.has_signed_in => {
                Ok(Outcome::GoTo(kept.into(), CONTINUE, None))
            }
            Step::Done(_) if kept.device.is_some() => Ok(Outcome::GoTo(kept.into(), DEVICE, None)),
            Step::Done(_) => self.answer(visit, kept, circumstances).await,
            step => Ok(self.lead(kept, step)),
        }
    }

    /// Leads to the page of a step, or tells the client app why there is no sign-in.
    fn lead(self, kept: KeptFlow, step: &Step) -> Outcome {
        let Some((addressing, _)) = kept.request() else { return Outcome::Error(PageError::NO_FLOW) };
        if let (Some(_), Step::Fail(failure)) = (&kept.device, step)
            && *failure != Failure::Over
        {
            return device::rejected(kept);
        }
        // a form that nobody can be signed in by would look like a wrong password
        if let Step::FirstFactor(due) = step
            && due.offered.is_empty()
        {
            return Outcome::Error(PageError::NOT_SET_UP);
        }
        if let Some(page) = page_of(step) {
            return Outcome::GoTo(kept.into(), page, None);
        }
        let refusal = match step {
            // a session that ended since leaves nothing to answer with
            Step::Done(_) | Step::Fail(Failure::Over) => return Outcome::Error(PageError::NO_FLOW),
            Step::Fail(failure) => refusal_of(*failure),
            _ => {
                let detail = "This server cannot ask the person for what is due here.";
                Refusal::new(Code::InteractionRequired, detail)
            }
        };
        refuse(&self.issuer_url(kept.issuing), &addressing, refusal)
    }

    /// The issuer's URL.
    pub(crate) fn issuer_url(self, issuing: Option<Uuid>) -> String {
        chancery_auth::issuer_url(&self.tokens.public_url, issuing)
    }

    /// Shows the page of a step, or goes to the one that is due.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn show(self, visit: &Visit, mut kept: KeptFlow, page: &str) -> Result<Outcome, Problem> {
        if let (Some(address), CONTINUE) = (kept.answer.clone(), page) {
            let name = self.application_of(&kept).await?.map(|application| application.name.clone());
            let context = json!({ "application": { "name": name }, "continue_url": address });
            let shown = Page::new("Continue", CONTINUE, context).in_language(kept.locale.clone());
            return Ok(Outcome::Page(kept.into(), shown));
        }
        if let Some(step) = kept.device.as_ref().and_then(|device| device.decided.clone()) {
            let shown = device::decided_page(&step, kept.locale.clone());
            return Ok(Outcome::Page(kept.into(), shown));
        }
        let Some(application) = self.application_of(&kept).await? else {
            return Ok(Outcome::Error(PageError::UNKNOWN_CLIENT));
        };
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        let examined = self.examine(visit, &kept, &circumstances).await?;
        if page == EXTERNAL {
            let at_once = match examined.due.step() {
                Step::FirstFactor(due) => due.at_once,
                _ => None,
            };
            return Box::pin(self.go_from(visit, kept, (circumstances, examined), at_once)).await;
        }
        if let (DEVICE, Step::Done(_), Some(_)) = (page, examined.due.step(), &kept.device) {
            let shown = device::confirm_page(&circumstances, &kept, &examined);
            return Ok(Outcome::Page(kept.into(), shown));
        }
        if !is_page_of(page, &kept, &circumstances, &examined) {
            return self.step(visit, kept, circumstances, examined).await;
        }
        let added = self.prepare(visit, (&mut kept, page), &circumstances, &examined).await?;
        let shown = page_for((page, added), &circumstances, &kept, &examined);
        Ok(Outcome::Page(kept.into(), shown))
    }

    pub(crate) async fn examine(
        self,
        visit: &Visit,
        kept: &KeptFlow,
        circumstances: &Circumstances,
    ) -> Result<Examined, Problem> {
        let (flow, now, circumstances) = (kept.flow.clone(), visit.now, circumstances.clone());
        let cookie = visit.session_cookie(&self.context.master);
        let examining = move |tx: &mut Tx<'_>| {
            let sessions = session::load(tx, cookie.as_ref(), now)?;
            circumstances.examine(tx, flow.clone(), &sessions, now)
        };
        self.store.run("ExamineSignIn", Mode::Quick, None, examining).await
    }

    /// Ends a flow whose sign-in a session has completed before, with a code; goes to the page that is due where that is
    /// not so.
    pub(crate) async fn answer(
        self,
        visit: &Visit,
        kept: KeptFlow,
        circumstances: Circumstances,
    ) -> Result<Outcome, Problem> {
        let Some((addressing, request)) = kept.request() else {
            return Ok(Outcome::Error(PageError::NO_FLOW));
        };
        // without a code nothing is written
        let mode = if request.response_type.code { Mode::Write } else { Mode::Quick };
        let answering = Answering {
            app: Arc::clone(self.context),
            flow: kept.flow.clone(),
            circumstances,
            cookie: visit.session_cookie(&self.context.master),
            request,
            now: visit.now,
        };
        let answered = self.store.run("AnswerSignIn", mode, None, move |tx| answering.answer(tx)).await?;
        Ok(match answered {
            Answered::Due(examined) => self.lead(kept, examined.due.step()),
            Answered::Code(code) => leave(&self.issuer_url(kept.issuing), &addressing, code.as_deref()),
        })
    }

    /// Applies what a person did on a page, and goes on.
    pub(crate) async fn apply(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        event: impl Fn(&Due) -> Event + Send + Sync + 'static,
    ) -> Result<Outcome, Problem> {
        let Some(application) = self.application_of(&kept).await? else {
            return Ok(Outcome::Error(PageError::UNKNOWN_CLIENT));
        };
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        let (flow, now, looked) = (kept.flow.clone(), visit.now, circumstances.clone());
        let cookie = visit.session_cookie(&self.context.master);
        let examined = self.store.run("ApplyToSignIn", Mode::Quick, None, move |tx| {
            let sessions = session::load(tx, cookie.as_ref(), now)?;
            let before = looked.examine(tx, flow.clone(), &sessions, now)?;
            // what does not belong to the step that is due changes nothing: the page that is due is shown
            match before.due.apply(event(&before.due)) {
                Ok(flow) => looked.examine(tx, flow, &sessions, now),
                Err(_) => Ok(before),
            }
        });
        let examined: Examined = examined.await?;
        kept.flow = examined.due.flow().clone();
        kept.locale = examined.locale().cloned();
        let is_complete = matches!(examined.due.step(), Step::Done(_) | Step::Consent);
        if examined.lacks_session && is_complete && !kept.has_signed_in {
            let (outcome, _) = self.advance(visit, (kept, CONTINUE), |_, _| Ok(Done::Nothing)).await?;
            return Ok(outcome);
        }
        let outcome = self.step(visit, kept.clone(), circumstances, examined).await?;
        Ok(after_post(kept, outcome))
    }

    /// Answers a post to the page where a tenant or an account is chosen, or to that of a person who is not
    /// admitted.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn choose(self, visit: &Visit, kept: KeptFlow, choice: &str) -> Result<Outcome, Problem> {
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
        self.apply(visit, kept, move |_| event.clone()).await
    }

    /// Answers a post to the page that asks for consent. `None`: it is denied. What cannot be left out is granted
    /// whether it is ticked or not: `openid`, and resources.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn consent(
        self,
        visit: &Visit,
        kept: KeptFlow,
        given: Option<GivenConsent>,
    ) -> Result<Outcome, Problem> {
        let Some(given) = given else { return self.apply(visit, kept, |_| Event::ConsentDenied).await };
        let resources = kept.request().map(|(_, request)| request.resources).unwrap_or_default();
        self.apply(visit, kept, move |due| {
            let is_given = |word: &&String| {
                given.words.contains(word) || word.as_str() == OPENID || resources.contains(word)
            };
            let words = due.flow().request().asked.iter().filter(is_given).cloned().collect();
            Event::ConsentGiven(Granted { words, is_kept: given.is_kept })
        })
        .await
    }
}

/// All that the transaction needs that ends a flow.
struct Answering {
    app: Arc<AppContext>,
    flow: Flow,
    circumstances: Circumstances,
    cookie: Option<SessionCookie>,
    request: AuthorizationRequest,
    now: Timestamp,
}

/// What a flow comes to.
enum Answered {
    /// It ends, with a code if one was asked for.
    Code(Option<String>),
    /// Something else is due.
    Due(Box<Examined>),
}

impl Answering {
    /// The facts of this transaction decide, not those of the page.
    fn answer(&self, tx: &mut Tx<'_>) -> Result<Answered, Problem> {
        let sessions = session::load(tx, self.cookie.as_ref(), self.now)?;
        let examined = self.circumstances.examine(tx, self.flow.clone(), &sessions, self.now)?;
        let Step::Done(signed_in) = examined.due.step() else { return Ok(Answered::Due(examined.into())) };
        let Some(used) = sessions.iter().find(|one| Some(one.id) == signed_in.session) else {
            return Ok(Answered::Due(examined.into()));
        };
        if !self.request.response_type.code {
            return Ok(Answered::Code(None));
        }
        let mut context = Context::of_server(&self.app, Scope::Everything, self.now);
        context.actor = Some(signed_in.person);
        let application = &self.circumstances.application;
        if let Some(tenant) = application.tenant(signed_in.tenant) {
            session::note_use(tx, used, &tenant.options, self.now)?;
        }
        consent::keep(&context, tx, (application.id, signed_in), &self.request.resources)?;
        let asked = (&self.circumstances, &self.request);
        code::issue(&context, tx, asked, signed_in, used.id).map(Answered::Code)
    }
}

/// After a post the answer goes by a page of our own: browsers hold a page's `form-action` against whole chains of
/// redirects.
pub(crate) fn after_post(mut kept: KeptFlow, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Leave(address) => {
            kept.answer = Some(address);
            Outcome::GoTo(kept.into(), CONTINUE, None)
        }
        // nor can they be led on to a provider: the page of the first factor has a link there
        Outcome::GoTo(kept, EXTERNAL, session) => Outcome::GoTo(kept, PASSWORD, session),
        Outcome::Refused(refusal, answer) => Outcome::Refused(refusal, after_post(kept, *answer).into()),
        other => other,
    }
}

/// What a person ticked on the page that asks for consent.
pub struct GivenConsent {
    /// The words of scope.
    pub words: Vec<String>,
    /// Whether the choice is remembered.
    pub is_kept: bool,
}

fn refusal_of(failure: Failure) -> Refusal {
    let (code, detail) = match failure {
        Failure::LoginRequired => (Code::LoginRequired, "The person has to sign in."),
        Failure::AccountSelectionRequired => (Code::AccountSelectionRequired, "An account has to be chosen."),
        Failure::InteractionRequired => (Code::InteractionRequired, "A page has to be shown."),
        Failure::ConsentRequired => (Code::ConsentRequired, "Consent is missing."),
        Failure::UnmetAuthenticationRequirements => {
            (Code::UnmetAuthenticationRequirements, "The person cannot reach what acr_values demands.")
        }
        Failure::NotAdmitted(NotAdmitted::Restricted) => {
            (Code::AccessDenied, "The client app is for some people only.")
        }
        _ => (Code::AccessDenied, "The person did not sign in."),
    };
    Refusal::new(code, detail)
}
