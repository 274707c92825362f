//! The pages that authorize a device.

use chancery_flow::Step;
use serde_json::json;

use crate::flow::{
    context::{Evaluated, FlowContext},
    page_name::DEVICE,
    pending_flow::PendingFlow,
    response::Page,
};

/// The page that confirms that the device is the person's own.
pub fn confirm_page(flow_context: &FlowContext, pending: &PendingFlow, evaluated: &Evaluated) -> Page {
    let session = match evaluated.due.step() {
        Step::Done(signed_in) => signed_in.session,
        _ => None,
    };
    let names = session.and_then(|session| evaluated.names.get(&session));
    let context = json!({
        "step": "confirm",
        "application": { "name": flow_context.application.name },
        "user": names.map(|names| names.detail().unwrap_or(names.display_name())),
        "user_code": pending.device.as_ref().map(|device| &device.user_code),
    });
    let page = Page::new("DeviceCode", DEVICE, context);
    let page = page.of(&flow_context.application, flow_context.tenant_of(evaluated));
    page.in_language(evaluated.locale().cloned())
}

/// The page that prompts for a user code: the input, and whether no device waits with it.
pub fn enter_page(typed: &str, is_wrong: bool) -> Page {
    let errors: Vec<_> =
        is_wrong.then(|| json!({ "code": "code_wrong", "field": "user_code" })).into_iter().collect();
    let context = json!({ "step": "enter", "user_code": typed, "errors": errors });
    Page::new("DeviceCode", DEVICE, context)
}

/// The page after the decision.
pub fn decided_page(step: &str, locale: Option<String>) -> Page {
    Page::new("DeviceCode", DEVICE, json!({ "step": step })).in_language(locale)
}
