//! Prepares pages: sends a code, creates a secret to enrol, creates a WebAuthn challenge.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_flow::{Action, Choice, CodeKind, Step};
use chancery_resource::{Problem, TextMessage, Tx};
use chancery_store::Mode;
use chancery_userstore::passkey::sign_in::{Started, relying_party, start, start_registration};
use serde_json::{Map, Value, json};

use crate::{
    flow::{
        context::{Evaluated, FlowContext},
        page_name::{CONFIRM, ENROL, PASSKEY, PASSWORD, SECOND_FACTOR, is_page_of},
        pending_flow::PendingFlow,
        response::{BrowserResponse, PageError},
    },
    person::context::{context_of, context_of_store},
    provider::{Provider, Visit},
    second_factor::{Destination, Enrolling, Purpose, SendResult, destination, send, take_back},
};

impl Provider<'_> {
    /// Prepares a page. Returns additional context for its view, and updates the flow.
    pub(crate) async fn prepare(
        self,
        visit: &Visit,
        (pending, page): (&mut PendingFlow, &str),
        flow_context: &FlowContext,
        evaluated: &Evaluated,
    ) -> Result<Map<String, Value>, Problem> {
        let mut added = Map::new();
        match (page, evaluated.due.step()) {
            (PASSWORD, _) => {
                let offered = flow_context.offered(evaluated);
                let public_url = &self.context.public_url;
                let store =
                    offered.into_iter().find(|store| relying_party(&store.options, public_url).is_some());
                if let Some(store) = store {
                    add_passkey_challenge(pending, &mut added, Some(start(&store.options, public_url)?));
                }
            }
            (SECOND_FACTOR, Step::SecondFactor(choices) | Step::StepUp { choices, .. }) => {
                match choices.chosen {
                    Choice::Passkey => {
                        let store = flow_context.store_of(evaluated);
                        let started = store.map(|store| start(&store.options, &self.context.public_url));
                        add_passkey_challenge(pending, &mut added, started.transpose()?);
                    }
                    Choice::Code { kind: CodeKind::Email | CodeKind::Sms, .. } => {
                        added = self.code_page(visit, flow_context, evaluated).await?;
                    }
                    _ => {}
                }
            }
            (ENROL, Step::EnrolFactor(choices)) => {
                if let Choice::Code { instance, .. } = choices.chosen
                    && pending.enrolling.as_ref().is_none_or(|enrolling| enrolling.instance != instance)
                {
                    pending.enrolling = Some(Enrolling::new(instance));
                    pending.is_changed = true;
                }
            }
            (CONFIRM, _) => added = self.code_page(visit, flow_context, evaluated).await?,
            (PASSKEY, _) => {
                let started = self.registration(visit, flow_context, evaluated).await?;
                add_passkey_challenge(pending, &mut added, started);
            }
            _ => {}
        }
        Ok(added)
    }

    /// The WebAuthn options for registering a passkey of this person.
    async fn registration(
        self,
        visit: &Visit,
        flow_context: &FlowContext,
        evaluated: &Evaluated,
    ) -> Result<Option<Started>, Problem> {
        let (Some(store), Some(user)) = (flow_context.store_of(evaluated), evaluated.user()) else {
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
        mut pending: PendingFlow,
        page: &'static str,
    ) -> Result<BrowserResponse, Problem> {
        let Some(application) = self.application_of(&pending).await? else {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_CLIENT));
        };
        pending.form_errors = None;
        let flow_context = FlowContext::new(self, application, (visit, &pending));
        let evaluated = self.evaluate(visit, &pending, &flow_context).await?;
        if is_page_of(page, &pending, &flow_context, &evaluated)
            && let Some(problem) = self.send_code(visit, &flow_context, &evaluated, true).await?.1
        {
            return Ok(pending.with_error(page, problem, ""));
        }
        Ok(BrowserResponse::ToPage(pending.into(), page, None))
    }

    /// Sends a code if none is valid. Returns the context of the page.
    async fn code_page(
        self,
        visit: &Visit,
        flow_context: &FlowContext,
        evaluated: &Evaluated,
    ) -> Result<Map<String, Value>, Problem> {
        let (sent, problem) = self.send_code(visit, flow_context, evaluated, false).await?;
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

    /// Sends a code. Returns its destination and length, and the error code if it was not sent.
    async fn send_code(
        self,
        visit: &Visit,
        flow_context: &FlowContext,
        evaluated: &Evaluated,
        resend: bool,
    ) -> Result<(Option<(Destination, i64)>, Option<&'static str>), Problem> {
        let not_sent = Ok((None, Some("code_not_sent")));
        let (Some(admitted), Some(identified)) =
            (evaluated.admitted.clone(), evaluated.due.identified().cloned())
        else {
            return not_sent;
        };
        let tenant = flow_context.application.tenant(identified.tenant);
        let offered = tenant.and_then(|tenant| tenant.offered(identified.instance));
        let purpose = purpose_of(flow_context, evaluated);
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
            let sending = send(&context, tx, (&purpose, store.as_ref()), (person, user), &to, resend)?;
            Ok::<_, Problem>(Some((to, sending)))
        });
        let Some((to, sending)) = sending.await? else { return not_sent };
        let problem = match sending {
            SendResult::StillValid => None,
            SendResult::Mailed => {
                self.counts.mailed.add();
                None
            }
            SendResult::TooMany => Some("too_many_codes"),
            SendResult::Text(text) if self.text(text.clone()).await => {
                self.counts.texted.add();
                None
            }
            SendResult::Text(_) => {
                let taking_back = move |tx: &mut Tx<'_>| take_back(tx, person, &sent);
                self.store.run("TakeCodeBack", Mode::Write, None, taking_back).await?;
                Some("code_not_sent")
            }
        };
        Ok((Some((to, digits)), problem))
    }

    /// Sends a text message by its gateway. Returns whether it was accepted.
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

/// Adds the WebAuthn options to the page, and the state of the ceremony to the flow.
fn add_passkey_challenge(
    pending: &mut PendingFlow,
    added: &mut Map<String, Value>,
    started: Option<Started>,
) {
    let Some((options, state)) = started else { return };
    pending.ceremony = Some(BASE64_URL_SAFE_NO_PAD.encode(state));
    pending.is_changed = true;
    added.insert("passkey".to_owned(), json!(options.to_string()));
}

/// The purpose of a code on the due page.
fn purpose_of(flow_context: &FlowContext, evaluated: &Evaluated) -> Option<Purpose> {
    if let Step::SecondFactor(choices) | Step::StepUp { choices, .. } = evaluated.due.step() {
        let Choice::Code { instance, .. } = choices.chosen else { return None };
        return flow_context.factor(evaluated, instance).cloned().map(Purpose::Factor);
    }
    evaluated.due_action(Action::Email)?;
    evaluated.admitted.as_ref()?.contact.email.clone().map(Purpose::Email)
}
