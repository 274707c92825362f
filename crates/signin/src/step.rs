//! From the step that is due to what the browser is answered.

use chancery_flow::{Event, Failure, NotAdmitted, Step};
use chancery_oauth::{Addressing, Code, Delivery, Refusal};
use chancery_resource::{Context, Problem, Scope, Tx};
use chancery_store::Mode;
use serde_json::json;
use uuid::Uuid;

use crate::{
    authorize::refuse,
    code::{self, Issued},
    kept_flow::KeptFlow,
    outcome::{Outcome, Page, PageError},
    provider::{Circumstances, Examined, Provider, Visit},
    session,
};

/// The page of each step, by its name in addresses.
pub const PASSWORD: &str = "password";
/// The page where a tenant or an account is chosen.
pub const CHOOSE: &str = "choose";
/// The page of a person who is not admitted.
pub const REFUSED: &str = "refused";
/// The page that leads on to the client app.
pub const CONTINUE: &str = "continue";

/// The step's page; `None` for a step that has no page yet.
const fn page_of(step: &Step) -> Option<&'static str> {
    Some(match step {
        Step::FirstFactor(_) => PASSWORD,
        Step::Tenant(_) | Step::Account { .. } => CHOOSE,
        Step::Refuse(_) => REFUSED,
        Step::Touch => CONTINUE,
        _ => return None,
    })
}

impl Provider<'_> {
    /// Answers with the step that is due: the page's address, or the answer to the client app.
    pub(crate) async fn step(
        self,
        visit: &Visit,
        kept: KeptFlow,
        circumstances: Circumstances,
        examined: Examined,
    ) -> Result<Outcome, Problem> {
        let Some((addressing, _)) = kept.request() else { return Ok(Outcome::Error(PageError::NO_FLOW)) };
        let issuer = self.issuer_url(kept.issuing);
        match examined.due.step() {
            Step::Done(_) => self.answer(visit, kept, circumstances).await,
            Step::Fail(Failure::Over) => Ok(Outcome::Error(PageError::NO_FLOW)),
            Step::Fail(failure) => Ok(refuse(&issuer, &addressing, refusal_of(*failure))),
            step => {
                if let Some(page) = page_of(step) {
                    return Ok(Outcome::GoTo(kept.into(), page));
                }
                let detail = "This server cannot ask the person for what is due here.";
                Ok(refuse(&issuer, &addressing, Refusal::new(Code::InteractionRequired, detail)))
            }
        }
    }

    /// The issuer's URL.
    pub(crate) fn issuer_url(self, issuing: Option<Uuid>) -> String {
        chancery_auth::issuer_url(&self.tokens.public_url, issuing)
    }

    /// Shows the page of a step, or goes to the one that is due.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn show(self, visit: &Visit, kept: KeptFlow, page: &str) -> Result<Outcome, Problem> {
        if let (Some(address), CONTINUE) = (kept.answer.clone(), page) {
            let name = self.application_of(&kept).await?.map(|application| application.name.clone());
            let context = json!({ "application": { "name": name }, "continue_url": address });
            return Ok(Outcome::Page(
                kept.into(),
                Page { view: "Continue", step: CONTINUE, status: 200, context },
            ));
        }
        let Some(application) = self.application_of(&kept).await? else {
            return Ok(Outcome::Error(PageError::UNKNOWN_CLIENT));
        };
        let circumstances = Circumstances::new(application, kept.issuing);
        let examined = self.examine(visit, &kept, &circumstances).await?;
        let step = examined.due.step();
        if page_of(step) != Some(page) {
            return self.step(visit, kept, circumstances, examined).await;
        }
        let shown = self.page(&circumstances, &kept, step, &examined).await?;
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
        let examining = move |tx: &mut Tx<'_>| circumstances.examine(tx, flow.clone(), cookie.as_ref(), now);
        self.store.run("ExamineSignIn", Mode::Quick, None, examining).await
    }

    async fn page(
        self,
        circumstances: &Circumstances,
        kept: &KeptFlow,
        step: &Step,
        examined: &Examined,
    ) -> Result<Page, Problem> {
        let application = &circumstances.application;
        let about = json!({ "name": application.name });
        let hint = kept.request().and_then(|(_, request)| request.login_hint);
        Ok(match step {
            Step::Tenant(tenants) => {
                let choices: Vec<_> = tenants
                    .iter()
                    .filter_map(|id| application.tenant(*id))
                    .map(|tenant| json!({ "value": format!("tenant:{}", tenant.facts.id), "name": tenant.name }))
                    .collect();
                let context = json!({ "application": about, "kind": "tenant", "choices": choices });
                Page { view: "Choose", step: CHOOSE, status: 200, context }
            }
            Step::Account { sessions, .. } => {
                let names = self.names_of(sessions, examined).await?;
                let choices: Vec<_> = names
                    .into_iter()
                    .map(|(id, name)| json!({ "value": format!("session:{id}"), "name": name }))
                    .collect();
                let context = json!({ "application": about, "kind": "account", "choices": choices });
                Page { view: "Choose", step: CHOOSE, status: 200, context }
            }
            Step::Refuse(_) => {
                let context = json!({ "application": about });
                Page { view: "Refused", step: REFUSED, status: 200, context }
            }
            Step::Touch => {
                let context = json!({ "application": about });
                Page { view: "Continue", step: CONTINUE, status: 200, context }
            }
            _ => {
                let context = json!({ "application": about, "username": hint, "remember": false });
                Page { view: "SignIn", step: PASSWORD, status: 200, context }
            }
        })
    }

    /// What the people of these sessions are called.
    async fn names_of(self, ids: &[Uuid], examined: &Examined) -> Result<Vec<(Uuid, String)>, Problem> {
        let sessions = examined.sessions.iter().filter(|session| ids.contains(&session.id));
        let persons: Vec<(Uuid, Uuid)> = sessions.map(|session| (session.id, session.person)).collect();
        let names = self.store.run("NamesOfSessions", Mode::Quick, None, move |tx| {
            let text = "SELECT first_name, last_name, email_address FROM application_user WHERE id = ?1";
            let mut named = Vec::new();
            for (session, person) in &persons {
                let found = tx.one(text, &[(*person).into()], |row| {
                    let part = |at| {
                        if row.is_null(at)? {
                            Ok(None)
                        } else {
                            row.text(at).map(|text| Some(text.to_owned()))
                        }
                    };
                    let (first, last, email) = (part(0)?, part(1)?, part(2)?);
                    let name = [first, last].into_iter().flatten().collect::<Vec<_>>().join(" ");
                    Ok(if name.is_empty() { email.unwrap_or_default() } else { name })
                })?;
                named.extend(found.map(|name| (*session, name)));
            }
            Ok::<_, Problem>(named)
        });
        names.await
    }

    /// Ends a flow whose sign-in a session has completed before: with a code.
    async fn answer(
        self,
        visit: &Visit,
        kept: KeptFlow,
        circumstances: Circumstances,
    ) -> Result<Outcome, Problem> {
        let Some((addressing, request)) = kept.request() else {
            return Ok(Outcome::Error(PageError::NO_FLOW));
        };
        let (master, now) = (self.context.master.clone(), visit.now);
        let cookie = visit.session_cookie(&master);
        let (flow, app) = (kept.flow.clone(), std::sync::Arc::clone(self.context));
        let answering = self.store.run("AnswerSignIn", Mode::Write, None, move |tx| {
            // the facts of this transaction decide, not those of the page
            let examined = circumstances.examine(tx, flow.clone(), cookie.as_ref(), now)?;
            let Step::Done(signed_in) = examined.due.step() else { return Ok(None) };
            let Some(used) = examined.sessions.iter().find(|one| Some(one.id) == signed_in.session) else {
                return Ok(None);
            };
            let context = Context::of_server(&app, Scope::Everything, now);
            if let Some(tenant) = circumstances.application.tenant(signed_in.tenant) {
                session::note_use(tx, used, &tenant.options, now)?;
            }
            code::issue(&context, tx, (&circumstances.application, &request), signed_in, used.id).map(Some)
        });
        let given: Option<Issued> = answering.await?;
        let issuer = self.issuer_url(kept.issuing);
        Ok(match given {
            Some(given) => leave(&issuer, &addressing, &given),
            None => Outcome::Error(PageError::NO_FLOW),
        })
    }

    /// Applies what a person did on a page, and goes on.
    pub(crate) async fn apply(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        event: Event,
    ) -> Result<Outcome, Problem> {
        let Some(application) = self.application_of(&kept).await? else {
            return Ok(Outcome::Error(PageError::UNKNOWN_CLIENT));
        };
        let circumstances = Circumstances::new(application, kept.issuing);
        let examined = self.examine(visit, &kept, &circumstances).await?;
        // what does not belong to the step that is due changes nothing: the page that is due is shown
        if let Ok(flow) = examined.due.apply(event) {
            kept.flow = flow;
        }
        let examined = self.examine(visit, &kept, &circumstances).await?;
        match self.step(visit, kept.clone(), circumstances, examined).await? {
            // after a post the answer goes by a page of our own
            Outcome::Leave(address) => {
                kept.answer = Some(address);
                Ok(Outcome::GoTo(kept.into(), CONTINUE))
            }
            other => Ok(other),
        }
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
        self.apply(visit, kept, event).await
    }
}

/// The answer with a code.
pub(crate) fn leave(issuer: &str, addressing: &Addressing, given: &Issued) -> Outcome {
    let answer = addressing.reply.answer(issuer);
    let answer = match &given.code {
        Some(code) => answer.with("code", code),
        None => answer,
    };
    let mode = addressing.reply.mode;
    match answer.deliver(&addressing.redirect_uri, mode, |_| Ok::<_, std::convert::Infallible>(String::new()))
    {
        Ok(Delivery::Redirect(address)) => Outcome::Leave(address),
        Ok(Delivery::Form { action, fields }) => Outcome::Post { action, fields, session: None },
        Err(never) => match never {},
    }
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
