//! Sends the code of a page: of a second factor, or of the confirmation of an address.

use std::sync::Arc;

use chancery_flow::{Action, Choice, Step};
use chancery_resource::{Problem, TextMessage, Tx};
use chancery_store::Mode;
use serde_json::{Map, Value, json};

use crate::{
    flow::{
        context::{Evaluated, FlowContext},
        page_name::may_show,
        pending_flow::PendingFlow,
        response::{BrowserResponse, PageError},
    },
    person::context::context_of,
    provider::{Provider, Visit},
    second_factor::{CodeRecipient, Destination, Purpose, SendResult, destination, send, take_back},
};

impl Provider<'_> {
    /// Sends another code, and shows the page again.
    pub(super) async fn send_again(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        page: &'static str,
    ) -> Result<BrowserResponse, Problem> {
        let Some(application) = self.application_of(&pending).await? else {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_CLIENT));
        };
        pending.form_errors = None;
        let flow_context = FlowContext::new(self, application, visit, &pending);
        let evaluated = self.evaluate(visit, &pending, &flow_context).await?;
        if may_show(page, &pending, &flow_context, &evaluated)
            && let Some(problem) = self.send_code(visit, &flow_context, &evaluated, true).await?.1
        {
            return Ok(pending.with_error(page, problem, ""));
        }
        Ok(BrowserResponse::ToPage(pending.into(), page, None))
    }

    /// Sends a code if none is valid. Returns the context of the page.
    pub(super) async fn code_page(
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
            let context = context_of(&app, tx, &admitted, &identified, now)?;
            let to = match &purpose {
                Purpose::Factor(factor) => destination(tx, factor.kind, &admitted)?,
                Purpose::Email(address) => {
                    Some(Destination { value: address.clone(), locale: admitted.contact.locale.clone() })
                }
            };
            let Some(to) = to else { return Ok(None) };
            let recipient = CodeRecipient { person, user, to: &to };
            let sending = send(&context, tx, &purpose, store.as_ref(), recipient, resend)?;
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

/// The purpose of a code on the due page.
fn purpose_of(flow_context: &FlowContext, evaluated: &Evaluated) -> Option<Purpose> {
    if let Step::SecondFactor(choices) | Step::StepUp { choices, .. } = evaluated.due.step() {
        let Choice::Code { instance, .. } = choices.chosen else { return None };
        return flow_context.factor(evaluated, instance).cloned().map(Purpose::Factor);
    }
    evaluated.due_action(Action::Email)?;
    evaluated.admitted.as_ref()?.contact.email.clone().map(Purpose::Email)
}
