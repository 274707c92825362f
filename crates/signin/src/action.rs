//! What is to be done before a sign-in ends, besides a new password and answers: an address confirmed, terms accepted, a
//! passkey offered.

use chancery_flow::{Action, DueAction, Event, Step};
use chancery_resource::settings::TenantOption;
use chancery_resource::{AuditAction, Problem, StateTable, Tx};
use chancery_userstore::user::user_of;

use crate::{
    advance::{Doing, Done},
    confirm::note_person,
    facts::PASSKEY_OFFER,
    kept_flow::KeptFlow,
    outcome::{Judged, Outcome},
    page::{CONFIRM, PASSKEY, QUESTIONNAIRE, TERMS},
    provider::{Examined, Provider, Visit},
    questionnaire::leave_unanswered,
    second_factor::{Purpose, Typed, verify_sent},
};

/// How long an offer rests that was put off, in ms: 30 days.
const REST_MS: i64 = 30 * 24 * 3_600_000;

/// What a person did on a page of something that is due.
pub enum Act {
    /// The code was typed that was sent to the e-mail address.
    EmailCode(String),
    /// Another code is to be sent there.
    AnotherCode,
    /// The terms of this version were accepted.
    TermsAccepted(String),
    /// The questions are left unanswered.
    NoAnswers,
    /// The passkey is put off.
    NoPasskey,
    /// A password is made in place of a passkey.
    PasswordInstead,
    /// The person goes back to the client app.
    Cancelled,
}

/// Whether this is to be done now.
pub fn is_due(examined: &Examined, action: Action) -> Option<DueAction> {
    match examined.due.step() {
        Step::Action(due) if due.action == action => Some(*due),
        _ => None,
    }
}

impl Provider<'_> {
    /// Does what a person wants; and what was judged.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn act(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        act: Act,
    ) -> Result<(Outcome, Judged), Problem> {
        match act {
            Act::EmailCode(code) if code.trim().is_empty() => {
                Ok((kept.again(CONFIRM, "missing_code", "code"), Judged::Not))
            }
            Act::EmailCode(code) => {
                self.advance(visit, (kept, CONFIRM), move |doing, tx| confirm_email(doing, tx, &code)).await
            }
            Act::AnotherCode => Ok((self.send_again(visit, kept, CONFIRM).await?, Judged::Not)),
            Act::TermsAccepted(version) => {
                self.advance(visit, (kept, TERMS), move |doing, tx| accept_terms(doing, tx, &version)).await
            }
            Act::NoAnswers => self.advance(visit, (kept, QUESTIONNAIRE), leave_unanswered).await,
            Act::NoPasskey => self.advance(visit, (kept, PASSKEY), put_off_passkey).await,
            Act::PasswordInstead => {
                kept.prefers_password = true;
                self.advance(visit, (kept, PASSKEY), |_, _| Ok(Done::Nothing)).await
            }
            Act::Cancelled => Ok((self.apply(visit, kept, |_| Event::Cancelled).await?, Judged::Not)),
        }
    }
}

fn confirm_email(doing: &Doing<'_>, tx: &mut Tx<'_>, typed: &str) -> Result<Done, Problem> {
    let (Some(_), Some(identified), Some(admitted), Some(user)) = (
        is_due(doing.examined, Action::Email),
        doing.examined.due.identified(),
        &doing.examined.admitted,
        doing.examined.user(),
    ) else {
        return Ok(Done::Nothing);
    };
    let Some(address) = admitted.contact.email.clone() else { return Ok(Done::Nothing) };
    match verify_sent(doing.context, tx, &Purpose::Email(address), identified.person, typed)? {
        Typed::Right => {}
        Typed::Wrong => return Ok(Done::Wrong("code_wrong", "code")),
        Typed::Over => return Ok(Done::Wrong("code_expired", "code")),
    }
    let Some(mut found) = user_of(doing.context, tx, user.user)? else { return Ok(Done::Nothing) };
    found.user.email_address_confirmed = true;
    found.user.renew_token(doing.context)?;
    found.save(doing.context, tx, AuditAction::As("Modified", "email-confirmed"))?;
    Ok(Done::Event(Event::ActionDone(Action::Email)))
}

fn accept_terms(doing: &Doing<'_>, tx: &mut Tx<'_>, shown: &str) -> Result<Done, Problem> {
    let (Some(_), Some(identified)) =
        (is_due(doing.examined, Action::Terms), doing.examined.due.identified())
    else {
        return Ok(Done::Nothing);
    };
    let Some(tenant) = doing.completion.circumstances.application.tenant(identified.tenant) else {
        return Ok(Done::Nothing);
    };
    let version = tenant.options.get(TenantOption::TERMS_VERSION);
    if version != shown {
        return Ok(Done::Wrong("terms_changed", ""));
    }
    let text = StateTable::TermsAcceptance.insert(
        "(person_id, tenant_id, version, accepted_on) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (person_id, tenant_id) DO UPDATE SET version = ?3, accepted_on = ?4",
    );
    let now = doing.context.now.0.into();
    tx.queue(&text, vec![identified.person.into(), identified.tenant.into(), version.into(), now])?;
    note_person(doing.context, tx, identified.person, "terms-accepted")?;
    Ok(Done::Event(Event::ActionDone(Action::Terms)))
}

fn put_off_passkey(doing: &Doing<'_>, tx: &mut Tx<'_>) -> Result<Done, Problem> {
    let (Some(_), Some(identified)) =
        (is_due(doing.examined, Action::Passkey), doing.examined.due.identified())
    else {
        return Ok(Done::Nothing);
    };
    let text = StateTable::OfferRest.insert(
        "(person_id, offer, expires_on) VALUES (?1, ?2, ?3) \
         ON CONFLICT (person_id, offer) DO UPDATE SET expires_on = ?3",
    );
    let until = doing.context.now.plus(REST_MS).0.into();
    tx.queue(&text, vec![identified.person.into(), PASSKEY_OFFER.into(), until])?;
    Ok(Done::Event(Event::PutOff(Action::Passkey)))
}
