//! Consent: whether a client app needs it, and the scopes that a person granted.
//!
//! A token for the platform carries the person's own rights here. The person grants it to each client app once, on a
//! page; neither the app's mode of consent nor an administrator can grant it instead.

use std::collections::BTreeSet;

use chancery_application::ApplicationUserId;
use chancery_flow::{Consent, Granted, SignedIn};
use chancery_management::{
    client_app::ClientAppId,
    sign_in::consent::{ConsentSource, SIGN_IN_CONSENT, SignInConsent},
};
use chancery_record::{FieldType as _, Record as _, ShortText, Value};
use chancery_resource::{
    Context, PLATFORM, Problem, StoreError, Tx, advance, event_name, insert, load, new_row,
};
use chancery_store::selectable;
use uuid::Uuid;

use crate::client_app::{Application, ConsentMode};

/// Whether a client app needs a person's consent to these scopes and resources.
pub fn consent_of(
    tx: &mut Tx<'_>,
    application: &Application,
    person: Uuid,
    requested: &[String],
) -> Result<Consent, StoreError> {
    let consent = match application.consent {
        ConsentMode::Implicit => Consent::Implicit,
        ConsentMode::Systematic => Consent::Systematic,
        ConsentMode::Explicit => {
            Consent::Explicit { is_covered: is_covered(tx, application, person, requested, false)? }
        }
        ConsentMode::External => {
            Consent::External { is_covered: is_covered(tx, application, person, requested, true)? }
        }
    };
    if !is_for_platform(requested) {
        return Ok(consent);
    }
    Ok(match consent {
        Consent::Implicit
        | Consent::External { is_covered: true }
        | Consent::Explicit { is_covered: true } => {
            Consent::Explicit { is_covered: has_platform_consent(tx, application, person)? }
        }
        other => other,
    })
}

/// Whether a resource of the platform is requested.
pub fn is_for_platform(requested: &[String]) -> bool {
    requested.iter().any(|word| PLATFORM.contains(&word.as_str()))
}

/// Whether the person has granted the client app the person's rights at the platform, after the last review of each external instance
/// of the person: the actor who configured a provider may have signed in as the person before.
fn has_platform_consent(
    tx: &mut Tx<'_>,
    application: &Application,
    person: Uuid,
) -> Result<bool, StoreError> {
    let text = "SELECT 1 FROM sign_in_consent c WHERE c.client_app_id = ?1 AND c.person_id = ?2 \
        AND c.platform_given_on IS NOT NULL AND NOT EXISTS (SELECT 1 FROM application_user u \
        JOIN application_identity a ON a.application_user_rid = u.rid JOIN idp_instance i ON i.id = a.idp_instance_id \
        WHERE u.id = c.person_id AND i.settings_confirmed_on > c.platform_given_on)";
    Ok(tx.one(text, &[application.id.into(), person.into()], |_| Ok(()))?.is_some())
}

selectable! {
    /// What a stored consent covers, and who gave it.
    struct StoredConsent<'r> from "FROM sign_in_consent WHERE client_app_id = ?1 AND person_id = ?2" {
        scope: &'r str = "scope",
        resources: &'r str = "resources",
        source: &'r str = "source",
    }
}

/// Whether a stored consent covers all of this. `by_administrator`: only one that an administrator gave.
fn is_covered(
    tx: &mut Tx<'_>,
    application: &Application,
    person: Uuid,
    requested: &[String],
    by_administrator: bool,
) -> Result<bool, StoreError> {
    let covers = tx.one(StoredConsent::SELECT, &[application.id.into(), person.into()], |row| {
        let StoredConsent { scope, resources, source } = StoredConsent::read(row)?;
        let has = |word: &String| scope.split(' ').chain(resources.split(' ')).any(|one| one == word);
        let counts = !by_administrator || source == ConsentSource::Administrator.name();
        Ok(counts && requested.iter().all(has))
    })?;
    Ok(covers.unwrap_or_default())
}

/// Stores a person's consent, merged with the earlier one, if the choice is to be remembered. Consent to the platform
/// is always stored.
pub fn store(
    context: &Context,
    tx: &mut Tx<'_>,
    application: Uuid,
    signed_in: &SignedIn,
    resources: &[String],
) -> Result<(), Problem> {
    let person = signed_in.person;
    let is_of_platform = is_for_platform(resources);
    let is_stored = |granted: &&Granted| granted.is_remembered || is_of_platform;
    let Some(granted) = signed_in.granted.as_ref().filter(is_stored) else { return Ok(()) };
    let text = "SELECT id FROM sign_in_consent WHERE client_app_id = ?1 AND person_id = ?2";
    let before = tx.one(text, &[application.into(), person.into()], |row| row.id(0))?;
    let before = before.map(|id| load(context, tx, &SIGN_IN_CONSENT, None, id.into())).transpose()?;
    let mut values = match &before {
        Some(was) => was.values.clone(),
        None => vec![Value::Null; SignInConsent::FIELDS.len()],
    };
    let words = granted.words.iter().filter(|word| granted.is_remembered || resources.contains(word));
    let (resources, scope): (Vec<&String>, Vec<&String>) = words.partition(|word| resources.contains(word));
    for (field, words) in [(SignInConsent::SCOPE, scope), (SignInConsent::RESOURCES, resources)] {
        let known = before.as_ref().map(|was| field.get(&was.values)).transpose()?;
        let known = known.as_ref().map_or("", ShortText::as_str);
        let all: BTreeSet<&str> =
            known.split_whitespace().chain(words.iter().map(|word| word.as_str())).collect();
        let text = all.into_iter().collect::<Vec<_>>().join(" ");
        field.set(&mut values, ShortText::from_value(text.into())?)?;
    }
    SignInConsent::GIVEN_ON.set(&mut values, Some(context.now))?;
    if is_of_platform {
        SignInConsent::PLATFORM_GIVEN_ON.set(&mut values, Some(context.now))?;
    }
    if let Some(was) = &before {
        return advance(context, tx, &SIGN_IN_CONSENT, was, values, event_name!("updated"));
    }
    SignInConsent::CLIENT_APP_ID.set(&mut values, ClientAppId(application))?;
    SignInConsent::PLATFORM_USER_ID.set(&mut values, ApplicationUserId(person))?;
    SignInConsent::SOURCE.set(&mut values, ConsentSource::Person)?;
    let values = new_row(context, &SIGN_IN_CONSENT, None, values)?;
    insert(context, tx, &SIGN_IN_CONSENT, None, &values)
}
