//! The posts from the pages of a sign-in.

use std::pin::Pin;

use chancery_record::Secret;
use chancery_resource::Problem;
use chancery_signin::{
    ACCESS_PASS, AccessPassForm, AttemptResult, BrowserResponse, CHOOSE, CONFIRM, CONSENT, CONTINUE,
    Confirmation, Credentials, DEVICE, ENROL, EXTERNAL, GivenConsent, NEW_PASSWORD, NewPassword, PASSKEY,
    PASSWORD, PageAction, PageError, PendingFlow, QUESTIONNAIRE, RECOVERY, REFUSED, SECOND_FACTOR, TERMS,
    item_of,
};

use tokio::time::{Instant, sleep_until};

use super::{Browser, Parameters};
use crate::{limits::proof_limiter::About, message::peer::address_of};

/// The outcome of an attempt, and whether it was right. It is boxed: the future of every request is as large as the
/// largest.
type Proving<'a> =
    Pin<Box<dyn Future<Output = Result<(BrowserResponse, AttemptResult), Problem>> + Send + 'a>>;

/// The fields of a form.
pub struct Form<'a>(pub &'a Parameters);

impl Form<'_> {
    /// A field, if it is there.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A field's text; empty if it is missing.
    fn text(&self, name: &str) -> String {
        self.field(name).unwrap_or_default().to_owned()
    }

    /// A name, without blanks around it.
    fn name(&self, name: &str) -> String {
        self.field(name).unwrap_or_default().trim().to_owned()
    }

    /// A secret field.
    fn secret(&self, name: &str) -> Secret {
        Secret::new(self.field(name).unwrap_or_default())
    }

    /// The alternative that was chosen on a page of second factors.
    fn alternative(&self) -> Option<&str> {
        self.field("choice").or_else(|| self.field("resend"))
    }

    /// The answer of an authenticator, if there is one.
    fn credential(&self) -> Option<&str> {
        self.field("credential").filter(|text| !text.is_empty())
    }
}

impl Browser<'_> {
    /// Processes a verified post from a page of a flow.
    pub(super) async fn do_step(
        &self,
        step: &str,
        flow: PendingFlow,
        form: Form<'_>,
    ) -> Result<BrowserResponse, Problem> {
        let (provider, visit) = (self.provider(), &self.visit);
        // a flow whose person is known counts by person: a new sign-in gives no new attempts
        let about = flow.person().map_or_else(|| flow.id.clone(), |person| person.to_string());
        match step {
            PASSWORD => match form.credential() {
                Some(answer) => self.passkey(flow, (PASSWORD, answer)).await,
                None => self.password(flow, &form).await,
            },
            ACCESS_PASS => {
                let typed = AccessPassForm { username: form.name("username"), pass: form.secret("pass") };
                let name = typed.username.clone();
                self.attempt((ACCESS_PASS, &name), Box::pin(provider.use_access_pass(visit, flow, typed)))
                    .await
            }
            SECOND_FACTOR | ENROL if form.alternative().is_some() => {
                Box::pin(provider.choose_factor(visit, flow, form.alternative().unwrap_or_default())).await
            }
            SECOND_FACTOR => match form.credential() {
                Some(answer) => self.passkey(flow, (SECOND_FACTOR, answer)).await,
                None => self.attempt((SECOND_FACTOR, &about), Box::pin(self.confirm(flow, &form))).await,
            },
            ENROL => {
                let enrolling = Box::pin(provider.enrol(visit, flow, form.text("code")));
                self.attempt((ENROL, &about), enrolling).await
            }
            RECOVERY => provider.recovery_codes_seen(visit, flow).await,
            PASSKEY => match form.credential() {
                Some(answer) => self.passkey(flow, (PASSKEY, answer)).await,
                None => {
                    self.attempt(
                        (PASSKEY, &about),
                        Box::pin(provider.perform(visit, flow, act_of(step, &form))),
                    )
                    .await
                }
            },
            QUESTIONNAIRE if form.field("choice").is_none() => {
                self.attempt((QUESTIONNAIRE, &about), Box::pin(self.answers(flow, &form))).await
            }
            CONFIRM | QUESTIONNAIRE | TERMS => {
                self.attempt((CONFIRM, &about), Box::pin(provider.perform(visit, flow, act_of(step, &form))))
                    .await
            }
            DEVICE => {
                let is_allowed = form.field("decision") == Some("allow");
                provider.decide_device(visit, flow, is_allowed).await
            }
            NEW_PASSWORD => self.change_password(flow, &form).await,
            CONSENT => {
                let ticked = form.0.iter().filter(|(name, _)| name == "scope").map(|(_, word)| word.clone());
                let is_remembered = form.field("remember").is_some();
                let given = GivenConsent { words: ticked.collect(), is_remembered };
                let given = (form.field("decision") == Some("allow")).then_some(given);
                Box::pin(provider.consent(visit, flow, given)).await
            }
            _ => Box::pin(provider.choose(visit, flow, form.field("choice").unwrap_or_default())).await,
        }
    }

    /// Admits an attempt within the limits of its address and of its subject, and reports to them whether it was
    /// right.
    async fn attempt(
        &self,
        (method, about): (&'static str, &str),
        proving: Proving<'_>,
    ) -> Result<BrowserResponse, Problem> {
        let (address, now) = (address_of(self.parts), self.visit.now);
        let attempt = match self.app.sign_in_limiter.admit(address, About::Person(about), now).await {
            Ok(attempt) => attempt,
            Err(seconds) => {
                self.app.metrics.note_sign_in(method, "limited");
                return Ok(BrowserResponse::Error(PageError::too_many(seconds)));
            }
        };
        let began = Instant::now();
        let proven = proving.await;
        match proven.as_ref().map_or(AttemptResult::NotCounted, |(_, result)| *result) {
            AttemptResult::Succeeded => {
                self.app.metrics.note_sign_in(method, "right");
                attempt.was_right();
            }
            AttemptResult::Failed => {
                self.app.metrics.note_sign_in(method, "wrong");
                attempt.was_wrong();
                sleep_until(began + self.app.limits.failed_sign_in_time).await;
            }
            AttemptResult::NotCounted => attempt.was_inconclusive(),
        }
        proven.map(|(outcome, _)| outcome)
    }

    async fn confirm(
        &self,
        flow: PendingFlow,
        form: &Form<'_>,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        let typed =
            Confirmation { code: form.text("code"), remembers_device: form.field("remember").is_some() };
        self.provider().confirm(&self.visit, flow, typed).await
    }

    async fn answers(
        &self,
        flow: PendingFlow,
        form: &Form<'_>,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        let typed = form.0.iter().filter_map(|(name, text)| Some((item_of(name)?, text.clone())));
        self.provider().answer_questionnaire(&self.visit, flow, typed.collect()).await
    }

    async fn password(&self, flow: PendingFlow, form: &Form<'_>) -> Result<BrowserResponse, Problem> {
        let typed = Credentials {
            username: form.name("username"),
            password: form.secret("password"),
            is_persistent: form.field("remember").is_some(),
        };
        let name = typed.username.clone();
        let proving = Box::pin(self.provider().sign_in_by_password(&self.visit, flow, typed));
        self.attempt((PASSWORD, &name), proving).await
    }

    async fn change_password(&self, flow: PendingFlow, form: &Form<'_>) -> Result<BrowserResponse, Problem> {
        let typed = NewPassword {
            current: form.secret("current_password"),
            new: form.secret("new_password"),
            repeated: form.secret("repeated_password"),
        };
        let about = flow.id.clone();
        let proving = Box::pin(self.provider().change_password(&self.visit, flow, typed));
        self.attempt((NEW_PASSWORD, &about), proving).await
    }

    async fn passkey(
        &self,
        flow: PendingFlow,
        shown: (&'static str, &str),
    ) -> Result<BrowserResponse, Problem> {
        let about = flow.id.clone();
        let proving = Box::pin(self.provider().verify_passkey(&self.visit, flow, shown));
        self.attempt((PASSKEY, &about), proving).await
    }
}

/// The pages that metrics count by name.
const PAGES: [&str; 15] = [
    PASSWORD,
    EXTERNAL,
    ACCESS_PASS,
    CHOOSE,
    REFUSED,
    CONTINUE,
    CONSENT,
    NEW_PASSWORD,
    SECOND_FACTOR,
    ENROL,
    RECOVERY,
    CONFIRM,
    QUESTIONNAIRE,
    TERMS,
    PASSKEY,
];

/// The label of a page in the metrics.
pub(super) fn page_label(step: &str) -> &'static str {
    PAGES.into_iter().find(|page| *page == step).unwrap_or("other")
}

/// The label of a post's result in the metrics.
pub(super) fn result_label(outcome: &BrowserResponse) -> &'static str {
    match outcome {
        BrowserResponse::ToPage(flow, ..) if flow.form_errors.is_some() => "again",
        BrowserResponse::ToPage(_, CONTINUE, _)
        | BrowserResponse::ToClient(_)
        | BrowserResponse::Post { .. } => "complete",
        BrowserResponse::ToPage(..) | BrowserResponse::Page(..) | BrowserResponse::ToProvider(..) => "next",
        BrowserResponse::Refused(_, answer) => result_label(answer),
        BrowserResponse::Error(_) => "error",
    }
}

/// The act that a person posted on a page of a required action.
fn act_of(step: &str, form: &Form<'_>) -> PageAction {
    match (step, form.field("choice")) {
        (PASSKEY, Some("password")) => PageAction::PasswordInstead,
        (PASSKEY, _) => PageAction::SkipPasskey,
        (QUESTIONNAIRE, Some("later")) => PageAction::SkipQuestions,
        (_, Some(_)) => PageAction::Cancelled,
        (TERMS, _) if form.field("decision") == Some("accept") => {
            PageAction::TermsAccepted(form.text("version"))
        }
        (TERMS, _) => PageAction::Cancelled,
        _ if form.field("resend").is_some() => PageAction::ResendCode,
        _ => PageAction::EmailCode(form.text("code")),
    }
}
