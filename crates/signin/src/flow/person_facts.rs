//! The facts about a person that decide what comes next in a sign-in.

use chancery_flow::{
    Acr, Action, DueAction, Enrolment, Flow, Identified, Method, NotAdmitted, PasskeyFacts, PersonFacts,
    SecondFactors, Urgency, acr_of,
};
use chancery_management::user_questionnaire_item::Item;
use chancery_record::{Email, Timestamp};
use chancery_resource::settings::{TenantOption, UserStoreOption};
use chancery_resource::{Problem, StoreError, Tx};
use chancery_userstore::answers::is_contact;
use chancery_userstore::passkey::sign_in::{PasskeySummary, relying_party, summary_of};
use chancery_userstore::user::PasswordDue;

use super::context::FlowContext;
use crate::{
    client_app::{OfferedStore, ServingTenant},
    person::{
        self, Admitted, Contact, IdentityKey, consent::consent_of, context::context_of_store, due_questions,
        external_claims::ExternalClaims,
    },
    second_factor::{RequestedFactors, enrolled_factors, facts_of, requested_factors},
    session,
};

/// The name of the passkey offer, by which it is deferred.
pub const PASSKEY_OFFER: &str = "passkey";

/// The data of an admitted person besides the facts of the state machine.
pub struct AdmittedPerson {
    /// The person.
    pub admitted: Admitted,
    /// The open questionnaire items, if they can be shown now.
    pub questions: Vec<Item>,
}

impl FlowContext {
    /// The facts about the person who is signing in, and the data of an admitted one.
    pub(crate) fn person(
        &self,
        tx: &mut Tx<'_>,
        flow: &Flow,
        identified: &Identified,
        now: Timestamp,
    ) -> Result<(PersonFacts, Option<AdmittedPerson>), Problem> {
        let application = &self.application;
        let identity = IdentityKey { person: identified.person, instance: identified.instance };
        let admitted = person::admit(tx, application, identity, identified.tenant, now)?;
        let tenant = application.tenant(identified.tenant);
        let offered = tenant.and_then(|tenant| tenant.offered(identified.instance));
        let (Some(tenant), Some(offered)) = (tenant, offered) else {
            return Ok((refused(NotAdmitted::NoIdentity), None));
        };
        let mut admitted = match admitted {
            Ok(admitted) => admitted,
            Err(why) => return Ok((refused(why), None)),
        };
        let store = offered.store();
        if store.is_none() && requested_factors(application, tenant, offered).sends_codes() {
            self.take_provider_contact(tx, identified, &mut admitted.contact)?;
        }
        let reader =
            PersonFactsReader { flow_context: self, identified, tenant, store, admitted: &admitted, now };
        let requested = requested_factors(application, tenant, offered);
        let is_demanded = flow.request().demanded.iter().min() >= Some(&Acr::Mfa);
        let enrolment = reader.passkey_enrolment();
        let mut questions = reader.questions(tx)?;
        let requests_contact = store.is_some() && questions.iter().any(|item| is_contact(&item.key));
        let is_needed = requested.is_any || is_demanded || enrolment.is_some() || requests_contact;
        let held = reader.passkeys(tx, is_needed)?;
        let mut second_factors = reader.second_factors(tx, &requested, is_needed)?;
        let enrolment = enrolment.filter(|_| reader.lacks_passkeys(held.unwrap_or_default()));
        let may_make = reader.may_make_passkey(&second_factors, held.unwrap_or_default());
        if enrolment == Some(Urgency::Required) && !may_make {
            // a passkey is required and counts as a second factor: one that the person has not proven is required
            // first
            second_factors.are_required = true;
        }
        let enrolment = enrolment.filter(|_| may_make);
        if requests_contact && !(may_make && identified.is_proven_here) {
            // an address receives codes and links, so setting it requires the same proofs as a new factor
            questions.retain(|item| !is_contact(&item.key));
        }
        let facts = PersonFacts {
            refused: reader.refused(tx)?,
            second_factors,
            passkey: held.filter(|held| held.usable > 0).map(|held| PasskeyFacts {
                verifies_user: held.verifies_user,
                is_hardware: held.is_hardware,
            }),
            due: reader.due(tx, held.unwrap_or_default(), enrolment, &questions)?,
            consent: consent_of(tx, application, identified.person, &flow.request().requested)?,
        };
        Ok((facts, Some(AdmittedPerson { admitted, questions })))
    }
}

impl FlowContext {
    /// The claims of the external identity provider about this person in this flow.
    pub(crate) fn external_claims_of(&self, identified: &Identified) -> Option<&ExternalClaims> {
        let is_it = |claims: &&ExternalClaims| {
            (claims.person, claims.instance) == (identified.person, identified.instance)
        };
        self.external_claims.as_deref().filter(is_it)
    }

    /// Sets the address and the number of an external user from the provider's claims in this flow, else in the
    /// session.
    fn take_provider_contact(
        &self,
        tx: &mut Tx<'_>,
        identified: &Identified,
        contact: &mut Contact,
    ) -> Result<(), StoreError> {
        let of_session =
            |session| session::provider_claims(tx, &self.app.master, session, identified.instance);
        let claims = match self.external_claims_of(identified) {
            Some(external) => external.claims.clone(),
            None => identified.session.map(of_session).transpose()?.unwrap_or_default(),
        };
        let value =
            |name: &str| claims.iter().find(|(claim, _)| claim == name).map(|(_, value)| value.as_str());
        // claims that the provider itself marks as unverified are no proof
        let confirmed = |name: &str, verified: &str| value(name).filter(|_| value(verified) != Some("false"));
        let email = confirmed("email", "email_verified").and_then(|email| Email::new(email.to_owned()).ok());
        contact.email = email.map(|email| email.as_str().to_owned());
        contact.phone = confirmed("phone_number", "phone_number_verified").and_then(e164_number);
        Ok(())
    }
}

/// A telephone number in E.164 form; `None` for other texts. Spaces and separators are removed.
fn e164_number(text: &str) -> Option<String> {
    let digits = text.strip_prefix('+')?;
    let number: String = digits.chars().filter(|letter| !" -./()".contains(*letter)).collect();
    let is_number = (7..=15).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && !number.starts_with('0');
    is_number.then(|| format!("+{number}"))
}

fn refused(why: NotAdmitted) -> PersonFacts {
    PersonFacts {
        refused: Some(why),
        second_factors: SecondFactors {
            are_required: false,
            usable: Vec::new(),
            has_recovery_code: false,
            enrolment: Enrolment::Closed,
            is_remembered: false,
            does_passkey_satisfy: false,
        },
        passkey: None,
        due: Vec::new(),
        consent: chancery_flow::Consent::Implicit,
    }
}

/// Reads the facts about a person.
struct PersonFactsReader<'a> {
    flow_context: &'a FlowContext,
    identified: &'a Identified,
    tenant: &'a ServingTenant,
    /// The user store; `None` for external users.
    store: Option<&'a OfferedStore>,
    admitted: &'a Admitted,
    now: Timestamp,
}

impl PersonFactsReader<'_> {
    fn has_proof(&self, is_such: impl Fn(Method) -> bool) -> bool {
        self.identified.proofs.iter().any(|proof| is_such(proof.method))
    }

    /// Why the person is not admitted although the store's user is. A temporary lock ends flows in progress here, but
    /// no session, and it does not block a person with a passkey, which cannot be guessed.
    fn refused(&self, tx: &mut Tx<'_>) -> Result<Option<NotAdmitted>, StoreError> {
        if self.identified.is_proven_here && self.is_cut_off(tx)? {
            return Ok(Some(NotAdmitted::Account));
        }
        Ok(self.refused_now())
    }

    /// Whether a password was set or the person was locked since the first factor was proven.
    fn is_cut_off(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let text = "SELECT proven_until FROM sign_in_cutoff WHERE person_id = ?1";
        let until = tx.one(text, &[self.identified.person.into()], |row| row.int(0))?;
        Ok(until.is_some_and(|until| self.identified.proven_at.0 < until))
    }

    fn refused_now(&self) -> Option<NotAdmitted> {
        let user = self.admitted.user.as_ref()?;
        let by_password = self.has_proof(|method| method == Method::Password);
        if by_password && user.password == PasswordDue::Expired {
            return Some(NotAdmitted::PasswordExpired);
        }
        let by_passkey = self.has_proof(|method| matches!(method, Method::Passkey { .. }));
        let is_locked = user.is_locked_for_now && self.identified.is_proven_here && !by_passkey;
        is_locked.then_some(NotAdmitted::Account)
    }

    fn second_factors(
        &self,
        tx: &mut Tx<'_>,
        requested: &RequestedFactors<'_>,
        is_needed: bool,
    ) -> Result<SecondFactors, StoreError> {
        let (person, tenant) = (self.identified.person, self.tenant.facts.id);
        let device = self.flow_context.device.as_ref();
        let enrolled = is_needed.then(|| enrolled_factors(tx, person, tenant, device, self.now));
        facts_of(tx, requested, self.tenant, self.admitted, enrolled.transpose()?)
    }

    /// Whether this server is a relying party for passkeys of the store.
    fn can_use_passkeys(&self) -> bool {
        let public_url = &self.flow_context.app.public_url;
        self.store.is_some_and(|store| relying_party(&store.options, public_url).is_some())
    }

    /// Whether `PasskeyEnrolment` of the store offers or requires a new passkey in this sign-in. It is offered only
    /// right after a proof.
    fn passkey_enrolment(&self) -> Option<Urgency> {
        let store = self.store.filter(|_| self.can_use_passkeys() && !self.is_read_only())?;
        match store.options.get(UserStoreOption::PASSKEY_ENROLMENT).to_ascii_lowercase().as_str() {
            "require" => Some(Urgency::Required),
            "offer" if self.identified.is_proven_here => Some(Urgency::Offered),
            _ => None,
        }
    }

    /// Whether the person has fewer passkeys than the store requires.
    fn lacks_passkeys(&self, held: PasskeySummary) -> bool {
        self.store.is_some_and(|store| {
            held.usable < store.options.get(UserStoreOption::PASSKEY_REQUIRED_CREDENTIAL_COUNT)
        })
    }

    /// Whether a passkey may be registered now. It counts as all factors of a person, so after a password alone it is
    /// permitted only if the person has no other factor and might enrol one here.
    fn may_make_passkey(&self, factors: &SecondFactors, held: PasskeySummary) -> bool {
        let methods = || self.identified.proofs.iter().map(|proof| proof.method);
        if methods().any(|method| method == Method::AccessPass) || acr_of(methods()) >= Some(Acr::Mfa) {
            return true;
        }
        let has_more = held.usable > 0 || factors.usable.iter().any(|factor| factor.is_enrolled);
        !has_more && factors.enrolment == Enrolment::AtSignIn && self.identified.is_proven_here
    }

    /// Whether the person's data is read-only: the store takes no writes, or there is none.
    fn is_read_only(&self) -> bool {
        self.store.is_none_or(|store| store.options.get(UserStoreOption::IS_DATABASE_READ_ONLY_MODE))
    }

    /// The person's passkeys, if they are relevant.
    fn passkeys(&self, tx: &mut Tx<'_>, is_needed: bool) -> Result<Option<PasskeySummary>, Problem> {
        let counts = (is_needed && self.can_use_passkeys())
            || self.passkey_enrolment().is_some()
            || self.has_proof(|method| method == Method::AccessPass);
        let (Some(store), Some(user), true) = (self.store, &self.admitted.user, counts) else {
            return Ok(None);
        };
        let context = context_of_store(&self.flow_context.app, tx, store.id, self.now)?;
        summary_of(&context, tx, user.user).map(Some)
    }

    fn due(
        &self,
        tx: &mut Tx<'_>,
        held: PasskeySummary,
        enrolment: Option<Urgency>,
        questions: &[Item],
    ) -> Result<Vec<DueAction>, StoreError> {
        let required = |action| DueAction { action, urgency: Urgency::Required };
        let mut due = Vec::new();
        let by_password = self.has_proof(|method| method == Method::Password);
        let password = self.admitted.user.as_ref().map(|user| user.password);
        if by_password && password == Some(PasswordDue::Change) && !self.is_read_only() {
            due.push(required(Action::Password));
        }
        let contact = &self.admitted.contact;
        let is_unconfirmed = contact.email.is_some() && !contact.is_email_confirmed;
        if is_unconfirmed
            && self.tenant.options.get(TenantOption::EMAIL_CONFIRMATION_REQUIRED)
            && !self.is_read_only()
        {
            due.push(required(Action::Email));
        }
        if let Some(urgency) = self.urgency_of(questions) {
            due.push(DueAction { action: Action::Questionnaire, urgency });
        }
        if self.are_terms_due(tx)? {
            due.push(required(Action::Terms));
        }
        if let Some(action) = self.required_credential(tx, held)? {
            due.push(required(action));
        } else if let Some(urgency) = enrolment
            && (urgency == Urgency::Required || !self.is_offer_deferred(tx)?)
        {
            due.push(DueAction { action: Action::Passkey, urgency });
        }
        Ok(due)
    }

    /// The credential to create for a person with an access pass and neither passkey nor password.
    fn required_credential(
        &self,
        tx: &mut Tx<'_>,
        held: PasskeySummary,
    ) -> Result<Option<Action>, StoreError> {
        let by_pass = self.has_proof(|method| method == Method::AccessPass);
        let user = self.admitted.user.as_ref();
        let Some(user) = user.filter(|_| by_pass && held.usable == 0 && !self.is_read_only()) else {
            return Ok(None);
        };
        let text = "SELECT EXISTS (SELECT 1 FROM user_password WHERE user_rid = ?1)";
        if tx.one(text, &[user.user.into()], |row| row.bool(0))? == Some(true) {
            return Ok(None);
        }
        let by_passkey = self.can_use_passkeys() && !self.flow_context.prefers_password;
        Ok(Some(if by_passkey { Action::Passkey } else { Action::Password }))
    }

    /// The open questionnaire items. A read-only store takes no answers.
    fn questions(&self, tx: &mut Tx<'_>) -> Result<Vec<Item>, StoreError> {
        if !self.tenant.has_questionnaire || (self.store.is_some() && self.is_read_only()) {
            return Ok(Vec::new());
        }
        due_questions::read(tx, self.identified, self.admitted)
    }

    /// The urgency of the questionnaire. At the platform itself it is optional: no question locks out administrators.
    fn urgency_of(&self, questions: &[Item]) -> Option<Urgency> {
        let is_required = questions.iter().any(|item| item.is_required);
        let urgency = if is_required && !self.flow_context.application.is_platform() {
            Urgency::Required
        } else {
            Urgency::Offered
        };
        (!questions.is_empty()).then_some(urgency)
    }

    fn are_terms_due(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let version = self.tenant.options.get(TenantOption::TERMS_VERSION);
        if version.is_empty() {
            return Ok(false);
        }
        let text = "SELECT version FROM terms_acceptance WHERE person_id = ?1 AND tenant_id = ?2";
        let of = [self.identified.person.into(), self.tenant.facts.id.into()];
        let accepted = tx.one(text, &of, |row| Ok(row.text(0)? == version))?;
        Ok(accepted != Some(true))
    }

    /// Whether the offer of a passkey was deferred.
    fn is_offer_deferred(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let text = "SELECT expires_on FROM offer_rest WHERE person_id = ?1 AND offer = ?2";
        let until = tx.one(text, &[self.identified.person.into(), PASSKEY_OFFER.into()], |row| row.int(0))?;
        Ok(until.is_some_and(|until| until > self.now.0))
    }
}

#[cfg(test)]
mod tests {
    use super::e164_number;

    #[test]
    fn telephone_numbers_are_normalized_to_e164() {
        assert_eq!(e164_number("+49 (40) 123-456").as_deref(), Some("+4940123456"));
        for invalid in
            ["040 123456", "+49", "+049 123456", "+49 40 123456;ext=1", "+1234567890123456", "+49 40 12345x"]
        {
            assert_eq!(e164_number(invalid), None, "{invalid}");
        }
    }
}
