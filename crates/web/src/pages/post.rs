//! What people post from the pages of a sign-in.

use std::pin::Pin;

use chancery_record::Secret;
use chancery_resource::Problem;
use chancery_signin::{
    ACCESS_PASS, Act, CHOOSE, CONFIRM, CONSENT, CONTINUE, Confirmation, Credentials, DEVICE, ENROL, EXTERNAL,
    GivenConsent, Judged, KeptFlow, NEW_PASSWORD, NewPassword, Outcome, PASSKEY, PASSWORD, PageError,
    PassTyped, QUESTIONNAIRE, RECOVERY, REFUSED, SECOND_FACTOR, TERMS, item_of,
};

use tokio::time::{Instant, sleep_until};

use super::{Browser, Parameters};
use crate::{app::address_of, proof_limiter::About};

/// What an attempt comes to, and whether it was right. It is boxed: the future of every request is as large as the
/// largest.
type Proving<'a> = Pin<Box<dyn Future<Output = Result<(Outcome, Judged), Problem>> + Send + 'a>>;

/// The fields of a form.
pub struct Form<'a>(pub &'a Parameters);

impl Form<'_> {
    /// A field, if it is there.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A field's text; none is empty.
    fn text(&self, name: &str) -> String {
        self.field(name).unwrap_or_default().to_owned()
    }

    /// A name, without blanks around it.
    fn name(&self, name: &str) -> String {
        self.field(name).unwrap_or_default().trim().to_owned()
    }

    /// A field that nobody else may read.
    fn secret(&self, name: &str) -> Secret {
        Secret::new(self.field(name).unwrap_or_default())
    }

    /// The other way that was chosen on a page of second factors.
    fn way(&self) -> Option<&str> {
        self.field("choice").or_else(|| self.field("resend"))
    }

    /// What an authenticator answered, if it did.
    fn credential(&self) -> Option<&str> {
        self.field("credential").filter(|text| !text.is_empty())
    }
}

impl Browser<'_> {
    /// Does what a person posted from a page of a flow, which was found to be ours.
    pub(super) async fn do_step(
        &self,
        step: &str,
        kept: KeptFlow,
        form: Form<'_>,
    ) -> Result<Outcome, Problem> {
        let (provider, visit) = (self.provider(), &self.visit);
        // whose proofs came before is known: a new sign-in gives no new tries
        let about = kept.person().map_or_else(|| kept.id.clone(), |person| person.to_string());
        match step {
            PASSWORD => match form.credential() {
                Some(answer) => self.passkey(kept, (PASSWORD, answer)).await,
                None => self.password(kept, &form).await,
            },
            ACCESS_PASS => {
                let typed = PassTyped { username: form.name("username"), pass: form.secret("pass") };
                let name = typed.username.clone();
                self.attempt((ACCESS_PASS, &name), Box::pin(provider.use_access_pass(visit, kept, typed)))
                    .await
            }
            SECOND_FACTOR | ENROL if form.way().is_some() => {
                Box::pin(provider.go_other_way(visit, kept, form.way().unwrap_or_default())).await
            }
            SECOND_FACTOR => match form.credential() {
                Some(answer) => self.passkey(kept, (SECOND_FACTOR, answer)).await,
                None => self.attempt((SECOND_FACTOR, &about), Box::pin(self.confirm(kept, &form))).await,
            },
            ENROL => {
                let enrolling = Box::pin(provider.enrol(visit, kept, form.text("code")));
                self.attempt((ENROL, &about), enrolling).await
            }
            RECOVERY => provider.recovery_codes_seen(visit, kept).await,
            PASSKEY => match form.credential() {
                Some(answer) => self.passkey(kept, (PASSKEY, answer)).await,
                None => {
                    self.attempt((PASSKEY, &about), Box::pin(provider.act(visit, kept, act_of(step, &form))))
                        .await
                }
            },
            QUESTIONNAIRE if form.field("choice").is_none() => {
                self.attempt((QUESTIONNAIRE, &about), Box::pin(self.answers(kept, &form))).await
            }
            CONFIRM | QUESTIONNAIRE | TERMS => {
                self.attempt((CONFIRM, &about), Box::pin(provider.act(visit, kept, act_of(step, &form))))
                    .await
            }
            DEVICE => {
                let is_allowed = form.field("decision") == Some("allow");
                provider.decide_device(visit, kept, is_allowed).await
            }
            NEW_PASSWORD => self.change_password(kept, &form).await,
            CONSENT => {
                let ticked = form.0.iter().filter(|(name, _)| name == "scope").map(|(_, word)| word.clone());
                let is_kept = form.field("remember").is_some();
                let given = GivenConsent { words: ticked.collect(), is_kept };
                let given = (form.field("decision") == Some("allow")).then_some(given);
                Box::pin(provider.consent(visit, kept, given)).await
            }
            _ => Box::pin(provider.choose(visit, kept, form.field("choice").unwrap_or_default())).await,
        }
    }

    /// Lets an attempt through within the limits of its address and of what it is about, and tells them whether it was
    /// right.
    async fn attempt(
        &self,
        (method, about): (&'static str, &str),
        proving: Proving<'_>,
    ) -> Result<Outcome, Problem> {
        let (address, now) = (address_of(self.parts), self.visit.now);
        let attempt = match self.app.sign_in_limiter.admit(address, About::Person(about), now).await {
            Ok(attempt) => attempt,
            Err(seconds) => {
                self.app.metrics.note_sign_in(method, "limited");
                return Ok(Outcome::Error(PageError::too_many(seconds)));
            }
        };
        let began = Instant::now();
        let proven = proving.await;
        match proven.as_ref().map_or(Judged::Not, |(_, judged)| *judged) {
            Judged::Right => {
                self.app.metrics.note_sign_in(method, "right");
                attempt.was_right();
            }
            Judged::Wrong => {
                self.app.metrics.note_sign_in(method, "wrong");
                attempt.was_wrong();
                sleep_until(began + self.app.limits.failed_sign_in_time).await;
            }
            Judged::Not => attempt.came_to_nothing(),
        }
        proven.map(|(outcome, _)| outcome)
    }

    async fn confirm(&self, kept: KeptFlow, form: &Form<'_>) -> Result<(Outcome, Judged), Problem> {
        let typed = Confirmation { code: form.text("code"), remembers: form.field("remember").is_some() };
        self.provider().confirm(&self.visit, kept, typed).await
    }

    async fn answers(&self, kept: KeptFlow, form: &Form<'_>) -> Result<(Outcome, Judged), Problem> {
        let typed = form.0.iter().filter_map(|(name, text)| Some((item_of(name)?, text.clone())));
        self.provider().answer_questionnaire(&self.visit, kept, typed.collect()).await
    }

    async fn password(&self, kept: KeptFlow, form: &Form<'_>) -> Result<Outcome, Problem> {
        let typed = Credentials {
            username: form.name("username"),
            password: form.secret("password"),
            keeps: form.field("remember").is_some(),
        };
        let name = typed.username.clone();
        let proving = Box::pin(self.provider().sign_in_by_password(&self.visit, kept, typed));
        self.attempt((PASSWORD, &name), proving).await
    }

    async fn change_password(&self, kept: KeptFlow, form: &Form<'_>) -> Result<Outcome, Problem> {
        let typed = NewPassword {
            current: form.secret("current_password"),
            new: form.secret("new_password"),
            repeated: form.secret("repeated_password"),
        };
        let about = kept.id.clone();
        let proving = Box::pin(self.provider().change_password(&self.visit, kept, typed));
        self.attempt((NEW_PASSWORD, &about), proving).await
    }

    async fn passkey(&self, kept: KeptFlow, shown: (&'static str, &str)) -> Result<Outcome, Problem> {
        let about = kept.id.clone();
        let proving = Box::pin(self.provider().verify_passkey(&self.visit, kept, shown));
        self.attempt((PASSKEY, &about), proving).await
    }
}

/// The pages that are counted by their names.
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

/// The page as metrics know it.
pub(super) fn known(step: &str) -> &'static str {
    PAGES.into_iter().find(|page| *page == step).unwrap_or("other")
}

/// Where a post led, as metrics know it.
pub(super) fn led_to(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::GoTo(kept, ..) if kept.mistake.is_some() => "again",
        Outcome::GoTo(_, CONTINUE, _) | Outcome::Leave(_) | Outcome::Post { .. } => "complete",
        Outcome::GoTo(..) | Outcome::Page(..) | Outcome::Elsewhere(..) => "next",
        Outcome::Refused(_, answer) => led_to(answer),
        Outcome::Error(_) => "error",
    }
}

/// What a person did on a page of something that is due.
fn act_of(step: &str, form: &Form<'_>) -> Act {
    match (step, form.field("choice")) {
        (PASSKEY, Some("password")) => Act::PasswordInstead,
        (PASSKEY, _) => Act::NoPasskey,
        (QUESTIONNAIRE, Some("later")) => Act::NoAnswers,
        (_, Some(_)) => Act::Cancelled,
        (TERMS, _) if form.field("decision") == Some("accept") => Act::TermsAccepted(form.text("version")),
        (TERMS, _) => Act::Cancelled,
        _ if form.field("resend").is_some() => Act::AnotherCode,
        _ => Act::EmailCode(form.text("code")),
    }
}
