//! Required actions of a sign-in besides a new password and the questionnaire: confirming an address, accepting
//! terms, registering an offered passkey.

use chancery_flow::{Action, Event};
use chancery_resource::settings::TenantOption;
use chancery_resource::{AuditAction, Problem, StateTable, Tx};
use chancery_userstore::user::user_of;

use super::questionnaire::leave_unanswered;
use crate::{
    flow::{
        page_action::{ActionContext, ActionResult},
        page_name::{CONFIRM, PASSKEY, QUESTIONNAIRE, TERMS},
        pending_flow::PendingFlow,
        person_facts::PASSKEY_OFFER,
        response::{AttemptResult, BrowserResponse},
    },
    person::audit_entry::audit_person,
    provider::{Provider, Visit},
    second_factor::{CodeCheck, Purpose, verify_sent},
};

/// How long a deferred offer is not repeated, in ms: 30 days.
const OFFER_PAUSE_MS: i64 = 30 * 24 * 3_600_000;

/// An action of a person on the page of a required action.
pub enum PageAction {
    /// The code from the e-mail.
    EmailCode(String),
    /// Another code is requested.
    ResendCode,
    /// The terms of this version were accepted.
    TermsAccepted(String),
    /// The questionnaire is skipped.
    SkipQuestions,
    /// The passkey is deferred.
    SkipPasskey,
    /// A password is created instead of a passkey.
    PasswordInstead,
    /// The person returns to the client app.
    Cancelled,
}

impl Provider<'_> {
    /// Performs an action. Returns the response and the result of the attempt.
    pub async fn perform(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        page_action: PageAction,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        match page_action {
            PageAction::EmailCode(code) if code.trim().is_empty() => {
                Ok((pending.with_error(CONFIRM, "missing_code", "code"), AttemptResult::NotCounted))
            }
            PageAction::EmailCode(code) => {
                self.advance(visit, (pending, CONFIRM), move |action, tx| confirm_email(action, tx, &code))
                    .await
            }
            PageAction::ResendCode => {
                Ok((self.send_again(visit, pending, CONFIRM).await?, AttemptResult::NotCounted))
            }
            PageAction::TermsAccepted(version) => {
                self.advance(visit, (pending, TERMS), move |action, tx| accept_terms(action, tx, &version))
                    .await
            }
            PageAction::SkipQuestions => {
                self.advance(visit, (pending, QUESTIONNAIRE), leave_unanswered).await
            }
            PageAction::SkipPasskey => self.advance(visit, (pending, PASSKEY), defer_passkey).await,
            PageAction::PasswordInstead => {
                pending.prefers_password = true;
                self.advance(visit, (pending, PASSKEY), |_, _| Ok(ActionResult::Nothing)).await
            }
            PageAction::Cancelled => {
                Ok((self.apply(visit, pending, |_| Event::Cancelled).await?, AttemptResult::NotCounted))
            }
        }
    }
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
    stored_user.save(action.context, tx, AuditAction::As("Modified", "email-confirmed"))?;
    Ok(ActionResult::Event(Event::ActionDone(Action::Email)))
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
    audit_person(action.context, tx, identified.person, "terms-accepted")?;
    Ok(ActionResult::Event(Event::ActionDone(Action::Terms)))
}

fn defer_passkey(action: &ActionContext<'_>, tx: &mut Tx<'_>) -> Result<ActionResult, Problem> {
    let (Some(_), Some(identified)) =
        (action.evaluated.due_action(Action::Passkey), action.evaluated.due.identified())
    else {
        return Ok(ActionResult::Nothing);
    };
    let text = StateTable::OfferRest.insert(
        "(person_id, offer, expires_on) VALUES (?1, ?2, ?3) \
         ON CONFLICT (person_id, offer) DO UPDATE SET expires_on = ?3",
    );
    let until = action.context.now.plus(OFFER_PAUSE_MS).0.into();
    tx.queue(&text, vec![identified.person.into(), PASSKEY_OFFER.into(), until])?;
    Ok(ActionResult::Event(Event::Deferred(Action::Passkey)))
}
