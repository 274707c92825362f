//! The page of the terms.

use chancery_flow::{Action, Event};
use chancery_resource::settings::TenantOption;
use chancery_resource::{Problem, StateTable, Tx, event_name};
use serde_json::{Value, json};

use super::{Attempt, Form, Posted, SignInPage, cancel};
use crate::{
    flow::{
        context::{Evaluated, FlowContext},
        page_action::{ActionContext, ActionResult},
        page_name::{CONFIRM, TERMS},
        pending_flow::PendingFlow,
    },
    person::audit_entry::audit_person,
    provider::{Provider, Visit},
};

pub(super) static PAGE: SignInPage = SignInPage {
    name: TERMS,
    prepare: None,
    view,
    attempt: |_, pending| Some(Attempt::of_person(CONFIRM, pending)),
    post,
};

fn view(flow_context: &FlowContext, _: &PendingFlow, evaluated: &Evaluated) -> (&'static str, Value) {
    let tenant = flow_context.serving_tenant(evaluated);
    let text = |setting| tenant.map(|tenant| tenant.options.get(setting));
    let (url, version) = (text(TenantOption::TERMS_URL), text(TenantOption::TERMS_VERSION));
    ("Terms", json!({ "url": url, "version": version }))
}

fn post<'a>(provider: Provider<'a>, visit: &'a Visit, pending: PendingFlow, form: Form<'a>) -> Posted<'a> {
    if form.field("choice").is_some() || form.field("decision") != Some("accept") {
        return cancel(provider, visit, pending);
    }
    let version = form.text("version");
    Box::pin(
        provider.run_page_action(visit, pending, TERMS, move |action, tx| accept_terms(action, tx, &version)),
    )
}

fn accept_terms(action: &ActionContext<'_>, tx: &mut Tx<'_>, shown: &str) -> Result<ActionResult, Problem> {
    let (Some(_), Some(identified)) =
        (action.evaluated.due_action(Action::Terms), action.evaluated.due.identified())
    else {
        return Ok(ActionResult::Nothing);
    };
    let Some(tenant) = action.transaction.flow_context.application.tenant(identified.tenant) else {
        return Ok(ActionResult::Nothing);
    };
    let version = tenant.options.get(TenantOption::TERMS_VERSION);
    if version != shown {
        return Ok(ActionResult::Wrong("terms_changed", ""));
    }
    let text = StateTable::TermsAcceptance.insert(
        "(person_id, tenant_id, version, accepted_on) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (person_id, tenant_id) DO UPDATE SET version = ?3, accepted_on = ?4",
    );
    let now = action.context.now.0.into();
    tx.queue(&text, vec![identified.person.into(), identified.tenant.into(), version.into(), now])?;
    audit_person(action.context, tx, identified.person, event_name!("terms-accepted"))?;
    Ok(ActionResult::Event(Event::ActionDone(Action::Terms)))
}
