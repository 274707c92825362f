//! The facts about a person that decide what comes next in a sign-in.

use chancery_flow::{
    Acr, Action, DueAction, Enrolment, Flow, Identified, Method, NotAdmitted, PasskeyFacts, PersonFacts,
    SecondFactors, Urgency, acr_of,
};
use chancery_management::user_questionnaire_item::Item;
use chancery_record::{Email, Timestamp};
use chancery_resource::settings::{TenantOption, UserStoreOption};
use chancery_resource::{CONSOLE, PLATFORM, Problem, StoreError, Tx};
use chancery_userstore::answers::is_contact;
use chancery_userstore::passkey::sign_in::{Held, held, relying_party};
use chancery_userstore::user::PasswordDue;

use crate::{
    application::{OfferedStore, ServingTenant},
    consent::consent_of,
    kept_flow::ToldElsewhere,
    open_questions,
    person::{self, Admitted, Contact},
    provider::{Circumstances, context_of_store},
    second_factor::{Asked, asked_for, facts_of},
    session,
};

/// The name by which the offer of a passkey rests.
pub const PASSKEY_OFFER: &str = "passkey";

/// What is known of a person who is admitted, besides the facts that decide what comes next.
pub struct KnownPerson {
    /// The person.
    pub admitted: Admitted,
    /// The questionnaire items that the person has still to answer, where they can be asked now.
    pub questions: Vec<Item>,
}

impl Circumstances {
    /// The facts about the person who is signing in, and what else is known of one who is admitted.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn person(
        &self,
        tx: &mut Tx<'_>,
        flow: &Flow,
        identified: &Identified,
        now: Timestamp,
    ) -> Result<(PersonFacts, Option<KnownPerson>), Problem> {
        let application = &self.application;
        let admitted =
            person::admit(tx, application, (identified.person, identified.instance), identified.tenant, now)?;
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
        if store.is_none() && self.is_for_platform(flow) {
            // their roles count for nothing there, so that a token would only be refused, and the console would ask for ever
            return Ok((refused(NotAdmitted::NoIdentity), None));
        }
        if store.is_none() && asked_for(application, tenant, offered).sends_codes() {
            self.take_told_contact(tx, identified, &mut admitted.contact)?;
        }
        let looking = Looking { circumstances: self, identified, tenant, store, admitted: &admitted, now };
        let asked = asked_for(application, tenant, offered);
        let is_demanded = flow.request().demanded.iter().min() >= Some(&Acr::Mfa);
        let wanted = looking.passkey_enrolment();
        let mut questions = looking.questions(tx)?;
        let asks_contact = store.is_some() && questions.iter().any(|item| is_contact(&item.key));
        let is_needed = asked.is_any || is_demanded || wanted.is_some() || asks_contact;
        let held = looking.passkeys(tx, is_needed)?;
        let mut second_factors = looking.second_factors(tx, &asked, is_needed)?;
        let wanted = wanted.filter(|_| looking.lacks_passkeys(held.unwrap_or_default()));
        let may_make = looking.may_make_passkey(&second_factors, held.unwrap_or_default());
        if wanted == Some(Urgency::Required) && !may_make {
            // a passkey is required, and would stand for what the person has not shown: that is asked for first
            second_factors.are_asked_for = true;
        }
        let wanted = wanted.filter(|_| may_make);
        if asks_contact && !(may_make && identified.is_proven_here) {
            // who sets an address can get codes and links there: that takes what a new factor takes
            questions.retain(|item| !is_contact(&item.key));
        }
        let facts = PersonFacts {
            refused: looking.refused(tx)?,
            second_factors,
            passkey: held.filter(|held| held.usable > 0).map(|held| PasskeyFacts {
                verifies_user: held.verifies_user,
                is_hardware: held.is_hardware,
            }),
            due: looking.due(tx, held.unwrap_or_default(), wanted, &questions)?,
            consent: consent_of(tx, application, identified.person, &flow.request().asked)?,
        };
        Ok((facts, Some(KnownPerson { admitted, questions })))
    }
}

impl Circumstances {
    /// Whether somebody signs in to administer: to the console, or for a token of one of the platform's services.
    fn is_for_platform(&self, flow: &Flow) -> bool {
        let asked = &flow.request().asked;
        self.application.id == CONSOLE || asked.iter().any(|word| PLATFORM.contains(&word.as_str()))
    }

    /// What an external identity provider told of a person in this flow.
    pub(crate) fn told_of(&self, identified: &Identified) -> Option<&ToldElsewhere> {
        let is_it =
            |told: &&ToldElsewhere| (told.person, told.instance) == (identified.person, identified.instance);
        self.told.as_deref().filter(is_it)
    }

    /// Takes the address and the number of a person from elsewhere from what the provider told in this flow, else in the session.
    fn take_told_contact(
        &self,
        tx: &mut Tx<'_>,
        identified: &Identified,
        contact: &mut Contact,
    ) -> Result<(), StoreError> {
        let of_session =
            |session| session::provider_claims(tx, &self.app.master, (session, identified.instance));
        let claims = match self.told_of(identified) {
            Some(told) => told.claims.clone(),
            None => identified.session.map(of_session).transpose()?.unwrap_or_default(),
        };
        let value =
            |name: &str| claims.iter().find(|(claim, _)| claim == name).map(|(_, value)| value.as_str());
        // what the provider itself denies is no proof
        let told = |name: &str, verified: &str| value(name).filter(|_| value(verified) != Some("false"));
        let email = told("email", "email_verified").and_then(|email| Email::new(email.to_owned()).ok());
        contact.email = email.map(|email| email.as_str().to_owned());
        contact.phone = told("phone_number", "phone_number_verified").and_then(dialled);
        Ok(())
    }
}

/// A telephone number in the form of E.164; `None` for a text that is none. People write them with blanks and the like.
fn dialled(text: &str) -> Option<String> {
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
            are_asked_for: false,
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

/// What the facts are found by.
struct Looking<'a> {
    circumstances: &'a Circumstances,
    identified: &'a Identified,
    tenant: &'a ServingTenant,
    /// The user store; `None` for people from elsewhere.
    store: Option<&'a OfferedStore>,
    admitted: &'a Admitted,
    now: Timestamp,
}

impl Looking<'_> {
    fn has_proof(&self, is_such: impl Fn(Method) -> bool) -> bool {
        self.identified.proofs.iter().any(|proof| is_such(proof.method))
    }

    /// Whether the person is not admitted although the user of the store is, and why. A temporary lock ends what is under way
    /// here, but no session, and it does not keep out who has a passkey, which cannot be guessed.
    fn refused(&self, tx: &mut Tx<'_>) -> Result<Option<NotAdmitted>, StoreError> {
        if self.identified.is_proven_here && self.is_cut_off(tx)? {
            return Ok(Some(NotAdmitted::Account));
        }
        Ok(self.refused_now())
    }

    /// Whether a password was set, or the person was shut out, since the first factor was proven.
    fn is_cut_off(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let text = "SELECT proven_until FROM sign_in_cutoff WHERE person_id = ?1";
        let until = tx.one(text, &[self.identified.person.into()], |row| row.int(0))?;
        Ok(until.is_some_and(|until| self.identified.proven_at.0 < until))
    }

    fn refused_now(&self) -> Option<NotAdmitted> {
        let user = self.admitted.user.as_ref()?;
        let by_password = self.has_proof(|method| method == Method::Password);
        if by_password && user.password == PasswordDue::Over {
            return Some(NotAdmitted::PasswordExpired);
        }
        let by_passkey = self.has_proof(|method| matches!(method, Method::Passkey { .. }));
        let is_shut = user.is_locked_for_now && self.identified.is_proven_here && !by_passkey;
        is_shut.then_some(NotAdmitted::Account)
    }

    fn second_factors(
        &self,
        tx: &mut Tx<'_>,
        asked: &Asked<'_>,
        is_needed: bool,
    ) -> Result<SecondFactors, StoreError> {
        let whose = (self.identified.person, self.admitted);
        let device = self.circumstances.device.as_ref();
        facts_of(tx, asked, self.tenant, whose, (is_needed, device), self.now)
    }

    /// Whether pages of this server can ask for passkeys of the store.
    fn can_use_passkeys(&self) -> bool {
        let public_url = &self.circumstances.app.public_url;
        self.store.is_some_and(|store| relying_party(&store.options, public_url).is_some())
    }

    /// Whether new passkeys of the store are wished for in this sign-in: `PasskeyEnrolment`. An offer is made right after
    /// a proof alone.
    fn passkey_enrolment(&self) -> Option<Urgency> {
        let store = self.store.filter(|_| self.can_use_passkeys() && !self.is_read_only())?;
        match store.options.get(UserStoreOption::PASSKEY_ENROLMENT).to_ascii_lowercase().as_str() {
            "require" => Some(Urgency::Required),
            "offer" if self.identified.is_proven_here => Some(Urgency::Offered),
            _ => None,
        }
    }

    /// Whether the person has fewer passkeys than the store wishes for.
    fn lacks_passkeys(&self, held: Held) -> bool {
        self.store.is_some_and(|store| {
            held.usable < store.options.get(UserStoreOption::PASSKEY_REQUIRED_CREDENTIAL_COUNT)
        })
    }

    /// Whether a passkey may be made now. It counts for all that a person can prove, so that who has shown a password
    /// alone makes one only where the person has nothing more, and might enrol it here.
    fn may_make_passkey(&self, factors: &SecondFactors, held: Held) -> bool {
        let methods = || self.identified.proofs.iter().map(|proof| proof.method);
        if methods().any(|method| method == Method::AccessPass) || acr_of(methods()) >= Some(Acr::Mfa) {
            return true;
        }
        let has_more = held.usable > 0 || factors.usable.iter().any(|factor| factor.is_enrolled);
        !has_more && factors.enrolment == Enrolment::AtSignIn && self.identified.is_proven_here
    }

    /// Whether nothing about the person can be written: the store takes no writes, or there is none.
    fn is_read_only(&self) -> bool {
        self.store.is_none_or(|store| store.options.get(UserStoreOption::IS_DATABASE_READ_ONLY_MODE))
    }

    /// The person's passkeys, where they count for anything.
    fn passkeys(&self, tx: &mut Tx<'_>, is_needed: bool) -> Result<Option<Held>, Problem> {
        let counts = (is_needed && self.can_use_passkeys())
            || self.passkey_enrolment().is_some()
            || self.has_proof(|method| method == Method::AccessPass);
        let (Some(store), Some(user), true) = (self.store, &self.admitted.user, counts) else {
            return Ok(None);
        };
        let context = context_of_store(&self.circumstances.app, tx, store.id, self.now)?;
        held(&context, tx, user.user).map(Some)
    }

    fn due(
        &self,
        tx: &mut Tx<'_>,
        held: Held,
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
        if let Some(action) = self.lacks_all(tx, held)? {
            due.push(required(action));
        } else if let Some(urgency) = enrolment
            && (urgency == Urgency::Required || !self.rests(tx)?)
        {
            due.push(DueAction { action: Action::Passkey, urgency });
        }
        Ok(due)
    }

    /// What who came by an access pass must make, having neither passkey nor password.
    fn lacks_all(&self, tx: &mut Tx<'_>, held: Held) -> Result<Option<Action>, StoreError> {
        let by_pass = self.has_proof(|method| method == Method::AccessPass);
        let user = self.admitted.user.as_ref();
        let Some(user) = user.filter(|_| by_pass && held.usable == 0 && !self.is_read_only()) else {
            return Ok(None);
        };
        let text = "SELECT EXISTS (SELECT 1 FROM user_password WHERE user_rid = ?1)";
        if tx.one(text, &[user.user.into()], |row| row.bool(0))? == Some(true) {
            return Ok(None);
        }
        let by_passkey = self.can_use_passkeys() && !self.circumstances.prefers_password;
        Ok(Some(if by_passkey { Action::Passkey } else { Action::Password }))
    }

    /// The questionnaire items that the person has still to answer. A store that takes no writes keeps no answers.
    fn questions(&self, tx: &mut Tx<'_>) -> Result<Vec<Item>, StoreError> {
        if !self.tenant.asks || (self.store.is_some() && self.is_read_only()) {
            return Ok(Vec::new());
        }
        open_questions::read(tx, (self.tenant.facts.id, self.identified.person), self.admitted)
    }

    /// Whether the questions may wait. At the platform itself they may: nobody keeps its administrators out by a question.
    fn urgency_of(&self, questions: &[Item]) -> Option<Urgency> {
        let is_required = questions.iter().any(|item| item.is_required);
        let urgency = if is_required && !self.circumstances.application.is_platform() {
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

    /// Whether the offer of a passkey was put off.
    fn rests(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let text = "SELECT expires_on FROM offer_rest WHERE person_id = ?1 AND offer = ?2";
        let until = tx.one(text, &[self.identified.person.into(), PASSKEY_OFFER.into()], |row| row.int(0))?;
        Ok(until.is_some_and(|until| until > self.now.0))
    }
}

#[cfg(test)]
mod tests {
    use super::dialled;

    #[test]
    fn numbers_are_dialled_in_one_form() {
        assert_eq!(dialled("+49 (40) 123-456").as_deref(), Some("+4940123456"));
        for odd in
            ["040 123456", "+49", "+049 123456", "+49 40 123456;ext=1", "+1234567890123456", "+49 40 12345x"]
        {
            assert_eq!(dialled(odd), None, "{odd}");
        }
    }
}
