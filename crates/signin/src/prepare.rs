//! What pages need before they are shown: a code that is sent, a secret to be enrolled, what an authenticator is asked.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_flow::{Action, Choice, CodeKind, Step};
use chancery_resource::{Problem, TextMessage, Tx};
use chancery_store::Mode;
use chancery_userstore::passkey::sign_in::{Started, relying_party, start, start_registration};
use serde_json::{Map, Value, json};

use crate::{
    action::is_due,
    application::OfferedStore,
    kept_flow::KeptFlow,
    outcome::{Outcome, PageError},
    page::{CONFIRM, ENROL, PASSKEY, PASSWORD, SECOND_FACTOR, is_page_of},
    provider::{Circumstances, Examined, Provider, Visit, context_of, context_of_store},
    second_factor::{Destination, Enrolling, Purpose, Sending, destination, send, take_back},
};

impl Provider<'_> {
    /// Prepares a page: what its view is filled with besides. The flow is changed where it must know of it.
    pub(crate) async fn prepare(
        self,
        visit: &Visit,
        (kept, page): (&mut KeptFlow, &str),
        circumstances: &Circumstances,
        examined: &Examined,
    ) -> Result<Map<String, Value>, Problem> {
        let mut added = Map::new();
        match (page, examined.due.step()) {
            (PASSWORD, _) => {
                let offered = circumstances.offered(examined);
                let public_url = &self.context.public_url;
                let store =
                    offered.into_iter().find(|store| relying_party(&store.options, public_url).is_some());
                if let Some(store) = store {
                    ask(kept, &mut added, Some(start(&store.options, public_url)?));
                }
            }
            (SECOND_FACTOR, Step::SecondFactor(choices) | Step::StepUp { choices, .. }) => {
                match choices.chosen {
                    Choice::Passkey => {
                        let store = store_of(circumstances, examined);
                        let started = store.map(|store| start(&store.options, &self.context.public_url));
                        ask(kept, &mut added, started.transpose()?);
                    }
                    Choice::Code { kind: CodeKind::Email | CodeKind::Sms, .. } => {
                        added = self.code_page(visit, circumstances, examined).await?;
                    }
                    _ => {}
                }
            }
            (ENROL, Step::EnrolFactor(choices)) => {
                if let Choice::Code { instance, .. } = choices.chosen
                    && kept.enrolling.as_ref().is_none_or(|enrolling| enrolling.instance != instance)
                {
                    kept.enrolling = Some(Enrolling::new(instance));
                    kept.is_changed = true;
                }
            }
            (CONFIRM, _) => added = self.code_page(visit, circumstances, examined).await?,
            (PASSKEY, _) => {
                let started = self.registration(visit, circumstances, examined).await?;
                ask(kept, &mut added, started);
            }
            _ => {}
        }
        Ok(added)
    }

    /// What an authenticator is asked to make a passkey of this person.
    async fn registration(
        self,
        visit: &Visit,
        circumstances: &Circumstances,
        examined: &Examined,
    ) -> Result<Option<Started>, Problem> {
        let (Some(store), Some(user)) = (store_of(circumstances, examined), examined.user()) else {
            return Ok(None);
        };
        let (app, now, store, user) = (Arc::clone(self.context), visit.now, store.id, user.user);
        let starting = self.store.run("BeginPasskey", Mode::Quick, None, move |tx| {
            let context = context_of_store(&app, tx, store, now)?;
            start_registration(&context, tx, user)
        });
        starting.await
    }

    /// Sends another code, and shows the page again.
    pub(crate) async fn send_again(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        page: &'static str,
    ) -> Result<Outcome, Problem> {
        let Some(application) = self.application_of(&kept).await? else {
            return Ok(Outcome::Error(PageError::UNKNOWN_CLIENT));
        };
        kept.mistake = None;
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        let examined = self.examine(visit, &kept, &circumstances).await?;
        if is_page_of(page, &kept, &circumstances, &examined)
            && let Some(problem) = self.send_code(visit, &circumstances, &examined, true).await?.1
        {
            return Ok(kept.again(page, problem, ""));
        }
        Ok(Outcome::GoTo(kept.into(), page, None))
    }

    /// Sends a code if none is good still; what the page says of it.
    async fn code_page(
        self,
        visit: &Visit,
        circumstances: &Circumstances,
        examined: &Examined,
    ) -> Result<Map<String, Value>, Problem> {
        let (sent, problem) = self.send_code(visit, circumstances, examined, false).await?;
        let mut added = Map::new();
        if let Some((to, digits)) = sent {
            added.insert("destination".to_owned(), json!(to.masked()));
            added.insert("digits".to_owned(), json!(digits));
        }
        added.insert("can_resend".to_owned(), json!(true));
        if let Some(problem) = problem {
            added.insert("errors".to_owned(), json!([{ "code": problem }]));
        }
        Ok(added)
    }

    /// Sends a code: where it goes and how long it is, and the code of the text that says why it was not sent.
    async fn send_code(
        self,
        visit: &Visit,
        circumstances: &Circumstances,
        examined: &Examined,
        again: bool,
    ) -> Result<(Option<(Destination, i64)>, Option<&'static str>), Problem> {
        let not_sent = Ok((None, Some("code_not_sent")));
        let (Some(admitted), Some(identified)) =
            (examined.admitted.clone(), examined.due.identified().cloned())
        else {
            return not_sent;
        };
        let tenant = circumstances.application.tenant(identified.tenant);
        let offered = tenant.and_then(|tenant| tenant.offered(identified.instance));
        let purpose = purpose_of(circumstances, examined);
        let Some((purpose, offered)) = purpose.zip(offered).filter(|(one, of)| one.can_be_sent(*of)) else {
            return not_sent;
        };
        let store = offered.store().cloned();
        let (app, now, person) = (Arc::clone(self.context), visit.now, identified.person);
        let user = admitted.user.as_ref().map_or(person, |user| user.user_id);
        let (digits, sent) = (purpose.digits(), purpose.clone());
        let sending = self.store.run("SendCode", Mode::Write, None, move |tx: &mut Tx<'_>| {
            let context = context_of(&app, tx, (&admitted, &identified), now)?;
            let to = match &purpose {
                Purpose::Factor(factor) => destination(tx, factor.kind, &admitted)?,
                Purpose::Email(address) => {
                    Some(Destination { value: address.clone(), locale: admitted.contact.locale.clone() })
                }
            };
            let Some(to) = to else { return Ok(None) };
            let sending = send(&context, tx, (&purpose, store.as_ref()), (person, user), &to, again)?;
            Ok::<_, Problem>(Some((to, sending)))
        });
        let Some((to, sending)) = sending.await? else { return not_sent };
        let problem = match sending {
            Sending::Good => None,
            Sending::Mailed => {
                self.counts.mailed.add();
                None
            }
            Sending::TooMany => Some("too_many_codes"),
            Sending::Text(text) if self.text(text.clone()).await => {
                self.counts.texted.add();
                None
            }
            Sending::Text(_) => {
                let taking_back = move |tx: &mut Tx<'_>| take_back(tx, person, &sent);
                self.store.run("TakeCodeBack", Mode::Write, None, taking_back).await?;
                Some("code_not_sent")
            }
        };
        Ok((Some((to, digits)), problem))
    }

    /// Hands a text to its gateway; whether it was taken.
    async fn text(self, text: TextMessage) -> bool {
        match self.context.outbound.permission() {
            Ok(permission) => (self.context.send_text)(permission, text).await,
            Err(quiet) => {
                tracing::warn!(%quiet, "a text is not sent");
                false
            }
        }
    }
}

/// Puts what an authenticator is asked into the page, and what its answer is judged by into the flow.
fn ask(kept: &mut KeptFlow, added: &mut Map<String, Value>, started: Option<Started>) {
    let Some((asked, state)) = started else { return };
    kept.ceremony = Some(BASE64_URL_SAFE_NO_PAD.encode(state));
    kept.is_changed = true;
    added.insert("passkey".to_owned(), json!(asked.to_string()));
}

/// The store by which the person signs in.
pub fn store_of<'a>(circumstances: &'a Circumstances, examined: &Examined) -> Option<&'a OfferedStore> {
    let identified = examined.due.identified()?;
    let tenant = circumstances.application.tenant(identified.tenant)?;
    tenant.stores.iter().find(|store| store.id == identified.instance)
}

/// What a code is for on the page that is due.
fn purpose_of(circumstances: &Circumstances, examined: &Examined) -> Option<Purpose> {
    if let Step::SecondFactor(choices) | Step::StepUp { choices, .. } = examined.due.step() {
        let Choice::Code { instance, .. } = choices.chosen else { return None };
        return circumstances.factor(examined, instance).cloned().map(Purpose::Factor);
    }
    is_due(examined, Action::Email)?;
    examined.admitted.as_ref()?.contact.email.clone().map(Purpose::Email)
}
