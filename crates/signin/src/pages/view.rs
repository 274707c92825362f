//! Renders a page: the context of its view, and what all views get.

use chancery_flow::Step;
use serde_json::{Map, Value, json};

use super::{SignInPage, reset::reset_url};
use crate::{
    client_app::Offered,
    flow::{
        context::{Evaluated, FlowContext},
        pending_flow::PendingFlow,
        response::Page,
    },
};

/// The page with the prepared context.
pub fn render_page(
    page: &SignInPage,
    added: Map<String, Value>,
    flow_context: &FlowContext,
    pending: &PendingFlow,
    evaluated: &Evaluated,
) -> Page {
    let application = &flow_context.application;
    let (view, context) = (page.view)(flow_context, pending, evaluated);
    let mut members = match context {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let about = json!({
        "name": application.name, "url": application.client_uri, "logo": application.logo_uri,
        "metadata": application.metadata,
    });
    members.insert("application".to_owned(), about);
    if let Some(about) = provider_of(flow_context, evaluated).map(Offered::about) {
        members.insert("provider".to_owned(), about.to_view().into());
    }
    if let (false, Some(form_errors)) = (members.contains_key("errors"), pending.form_errors_on(page.name)) {
        members.insert("errors".to_owned(), form_errors.to_json());
    }
    if let Step::FirstFactor(due) = evaluated.due.step() {
        let url = reset_url(application, due, &flow_context.app, pending);
        members.insert("reset_url".to_owned(), json!(url));
    }
    members.extend(added);
    let tenant = flow_context.tenant_of(evaluated);
    let rendered = Page::new(view, page.name, Value::Object(members)).of(application, tenant);
    rendered.in_language(evaluated.locale().cloned())
}

/// The identity provider instance of a page: the person's, or the only one that is offered; `None` if several are.
fn provider_of<'a>(flow_context: &'a FlowContext, evaluated: &Evaluated) -> Option<Offered<'a>> {
    let of = |tenant, instance| flow_context.application.tenant(tenant)?.offered(instance);
    match (evaluated.due.identified(), evaluated.due.step()) {
        (Some(identified), _) => of(identified.tenant, identified.instance),
        (None, Step::FirstFactor(due)) => match due.offered[..] {
            [only] => of(due.tenant, only.id),
            _ => None,
        },
        _ => None,
    }
}
