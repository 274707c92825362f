//! The page that shows recovery codes.

use serde_json::json;

use super::{Form, Posted, SignInPage, not_counted};
use crate::{
    flow::{
        page_action::ActionResult,
        page_name::{ENROL, RECOVERY},
        pending_flow::PendingFlow,
    },
    provider::{Provider, Visit},
};

pub(super) static PAGE: SignInPage = SignInPage {
    name: RECOVERY,
    prepare: None,
    view: |_, pending, _| ("Enrol", json!({ "codes": pending.recovery_codes })),
    attempt: |_, _| None,
    post,
};

/// The codes were seen.
fn post<'a>(provider: Provider<'a>, visit: &'a Visit, mut pending: PendingFlow, _: Form<'a>) -> Posted<'a> {
    pending.recovery_codes.clear();
    pending.enrolling = None;
    not_counted(async move {
        Ok(provider.run_page_action(visit, pending, ENROL, |_, _| Ok(ActionResult::Nothing)).await?.0)
    })
}
