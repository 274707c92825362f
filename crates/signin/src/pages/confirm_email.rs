//! The page that confirms an e-mail address by a code.

use chancery_flow::{Action, Event};
use chancery_resource::{AuditAction, Problem, Tx, event_name};
use chancery_userstore::user::user_of;
use serde_json::json;

use super::{Attempt, Form, Posted, SignInPage, cancel, not_counted};
use crate::{
    flow::{
        page_action::{ActionContext, ActionResult},
        page_name::CONFIRM,
        pending_flow::PendingFlow,
    },
    provider::{Provider, Visit},
    second_factor::{CodeCheck, Purpose, verify_sent},
};

pub(super) static PAGE: SignInPage = SignInPage {
    name: CONFIRM,
    prepare: Some(|provider, visit, _, flow_context, evaluated| {
        Box::pin(provider.code_page(visit, flow_context, evaluated))
    }),
    view: |_, _, _| ("Confirm", json!({})),
    attempt: |_, pending| Some(Attempt::of_person(CONFIRM, pending)),
    post,
};

fn post<'a>(provider: Provider<'a>, visit: &'a Visit, pending: PendingFlow, form: Form<'a>) -> Posted<'a> {
    if form.field("choice").is_some() {
        return cancel(provider, visit, pending);
    }
    if form.field("resend").is_some() {
        return not_counted(provider.send_again(visit, pending, CONFIRM));
    }
    let code = form.text("code");
    if code.trim().is_empty() {
        let missing = pending.with_error(CONFIRM, "missing_code", "code");
        return not_counted(async { Ok(missing) });
    }
    Box::pin(
        provider.run_page_action(visit, pending, CONFIRM, move |action, tx| confirm_email(action, tx, &code)),
    )
}

fn confirm_email(action: &ActionContext<'_>, tx: &mut Tx<'_>, typed: &str) -> Result<ActionResult, Problem> {
    let (Some(_), Some(identified), Some(admitted), Some(user)) = (
        action.evaluated.due_action(Action::Email),
        action.evaluated.due.identified(),
        &action.evaluated.admitted,
        action.evaluated.user(),
    ) else {
        return Ok(ActionResult::Nothing);
    };
    let Some(address) = admitted.contact.email.clone() else { return Ok(ActionResult::Nothing) };
    match verify_sent(action.context, tx, &Purpose::Email(address), identified.person, typed)? {
        CodeCheck::Correct => {}
        CodeCheck::Wrong => return Ok(ActionResult::Wrong("code_wrong", "code")),
        CodeCheck::NoValidCode => return Ok(ActionResult::Wrong("code_expired", "code")),
    }
    let Some(mut stored_user) = user_of(action.context, tx, user.user)? else {
        return Ok(ActionResult::Nothing);
    };
    stored_user.user.email_address_confirmed = true;
    stored_user.user.renew_token(action.context)?;
    stored_user.save(action.context, tx, AuditAction::Modified(event_name!("email-confirmed")))?;
    Ok(ActionResult::Event(Event::ActionDone(Action::Email)))
}
