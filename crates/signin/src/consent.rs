//! Consent: whether a client app needs one, and what a person gave.
//!
//! A token for the platform carries the person's own rights here. That a client app gets one the person says, on a page, once
//! for each client app: neither its mode of consent nor an administrator can say it instead.

use std::collections::BTreeSet;

use chancery_application::ApplicationUserId;
use chancery_flow::{Consent, Granted, SignedIn};
use chancery_management::{
    client_app::ClientAppId,
    sign_in::consent::{ConsentSource, SIGN_IN_CONSENT, SignInConsent},
};
use chancery_record::{FieldType as _, Record as _, ShortText, Value};
use chancery_resource::{Context, PLATFORM, Problem, StoreError, Tx, advance, insert, load, new_row};
use uuid::Uuid;

use crate::application::{Application, ConsentMode};

/// Whether a client app needs the consent of a person to what it asks for.
///
/// # Errors
/// Those of the store.
pub fn consent_of(
    tx: &mut Tx<'_>,
    application: &Application,
    person: Uuid,
    asked: &[String],
) -> Result<Consent, StoreError> {
    let consent = match application.consent {
        ConsentMode::Implicit => Consent::Implicit,
        ConsentMode::Systematic => Consent::Systematic,
        ConsentMode::Explicit => {
            Consent::Explicit { is_covered: is_covered(tx, application, person, asked, false)? }
        }
        ConsentMode::External => {
            Consent::External { is_covered: is_covered(tx, application, person, asked, true)? }
        }
    };
    if !is_for_platform(asked) {
        return Ok(consent);
    }
    Ok(match consent {
        Consent::Implicit
        | Consent::External { is_covered: true }
        | Consent::Explicit { is_covered: true } => {
            Consent::Explicit { is_covered: has_said(tx, application, person)? }
        }
        other => other,
    })
}

/// Whether something of the platform is among what is asked for.
fn is_for_platform(asked: &[String]) -> bool {
    asked.iter().any(|word| PLATFORM.contains(&word.as_str()))
}

/// Whether the person has let the client app have the person's rights at the platform.
fn has_said(tx: &mut Tx<'_>, application: &Application, person: Uuid) -> Result<bool, StoreError> {
    let text = "SELECT 1 FROM sign_in_consent WHERE client_app_id = ?1 AND person_id = ?2 AND platform_given_on IS NOT NULL";
    Ok(tx.one(text, &[application.id.into(), person.into()], |_| Ok(()))?.is_some())
}

/// Whether a kept consent covers all of this; `by_administrator`: one that an administrator gave.
fn is_covered(
    tx: &mut Tx<'_>,
    application: &Application,
    person: Uuid,
    asked: &[String],
    by_administrator: bool,
) -> Result<bool, StoreError> {
    let text =
        "SELECT scope, resources, source FROM sign_in_consent WHERE client_app_id = ?1 AND person_id = ?2";
    let found = tx.one(text, &[application.id.into(), person.into()], |row| {
        let words = [row.text(0)?, row.text(1)?];
        let has = |word: &String| words.iter().flat_map(|text| text.split(' ')).any(|one| one == word);
        let counts = !by_administrator || row.text(2)? == ConsentSource::Administrator.name();
        Ok(counts && asked.iter().all(has))
    })?;
    Ok(found.unwrap_or_default())
}

/// Keeps what a person consented to, with what was consented to before, where the choice is to be remembered. What was said
/// of the platform is remembered in any case.
///
/// # Errors
/// Those of the store.
pub fn keep(
    context: &Context,
    tx: &mut Tx<'_>,
    (application, signed_in): (Uuid, &SignedIn),
    resources: &[String],
) -> Result<(), Problem> {
    let person = signed_in.person;
    let is_of_platform = is_for_platform(resources);
    let is_said = |granted: &&Granted| granted.is_kept || is_of_platform;
    let Some(granted) = signed_in.granted.as_ref().filter(is_said) else { return Ok(()) };
    let text = "SELECT id FROM sign_in_consent WHERE client_app_id = ?1 AND person_id = ?2";
    let before = tx.one(text, &[application.into(), person.into()], |row| row.id(0))?;
    let before = before.map(|id| load(context, tx, &SIGN_IN_CONSENT, None, id.into())).transpose()?;
    let mut values = match &before {
        Some(was) => was.values.clone(),
        None => vec![Value::Null; SignInConsent::FIELDS.len()],
    };
    let words = granted.words.iter().filter(|word| granted.is_kept || resources.contains(word));
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
        return advance(context, tx, &SIGN_IN_CONSENT, was, values, ("Modified", "updated"));
    }
    SignInConsent::CLIENT_APP_ID.set(&mut values, ClientAppId(application))?;
    SignInConsent::PLATFORM_USER_ID.set(&mut values, ApplicationUserId(person))?;
    SignInConsent::SOURCE.set(&mut values, ConsentSource::Person)?;
    let values = new_row(context, &SIGN_IN_CONSENT, None, values)?;
    insert(context, tx, &SIGN_IN_CONSENT, None, &values)
}
