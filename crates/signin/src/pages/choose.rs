//! The page that chooses a tenant or an account.

use chancery_flow::{Event, Step};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Form, Posted, SignInPage, not_counted};
use crate::{
    flow::{
        context::{Evaluated, FlowContext},
        page_name::CHOOSE,
        pending_flow::PendingFlow,
    },
    provider::{Provider, Visit},
};

pub(super) static PAGE: SignInPage =
    SignInPage { name: CHOOSE, prepare: None, view, attempt: |_, _| None, post };

fn view(flow_context: &FlowContext, _: &PendingFlow, evaluated: &Evaluated) -> (&'static str, Value) {
    let context = match evaluated.due.step() {
        Step::Tenant(tenants) => {
            let application = &flow_context.application;
            let choices: Vec<_> = tenants
                .iter()
                .filter_map(|id| application.tenant(*id))
                .map(|tenant| json!({ "value": format!("tenant:{}", tenant.facts.id), "name": tenant.name }))
                .collect();
            json!({ "kind": "tenant", "choices": choices })
        }
        Step::Account { sessions, .. } => {
            let named = sessions.iter().filter_map(|id| Some((id, evaluated.names.get(id)?)));
            let choices: Vec<_> = named
                .map(|(id, names)| {
                    json!({ "value": format!("session:{id}"), "name": names.display_name(), "detail": names.detail() })
                })
                .collect();
            json!({ "kind": "account", "choices": choices })
        }
        _ => json!({}),
    };
    ("Choose", context)
}

/// Handles a choice, also of the pages that offer nothing but to continue or to return.
pub(super) fn post<'a>(
    provider: Provider<'a>,
    visit: &'a Visit,
    pending: PendingFlow,
    form: Form<'a>,
) -> Posted<'a> {
    let event = event_of(form.field("choice").unwrap_or_default());
    not_counted(provider.apply_event(visit, pending, move |_| event.clone()))
}

fn event_of(choice: &str) -> Event {
    let id = |text: &str| Uuid::try_parse(text).unwrap_or_default();
    match choice.split_once(':') {
        Some(("tenant", text)) => Event::TenantChosen(id(text)),
        Some(("session", text)) => Event::SessionChosen(id(text)),
        _ => match choice {
            "other" => Event::OtherAccount,
            "back" => Event::Back,
            "continue" => Event::Continued,
            _ => Event::Cancelled,
        },
    }
}
