//! Authenticators: apps and devices with time-based codes (RFC 6238).

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_credential::totp::SECRET_LENGTH;
use chancery_record::Secret;
use chancery_resource::{Context, StateTable, StoreError, Tx, random};
use chancery_store::selectable;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::client_app::OfferedFactor;

/// An authenticator during enrolment: its secret is in the sealed flow until a code proves that the person has stored
/// it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Enrolling {
    /// The MFA instance.
    pub instance: Uuid,
    secret: String,
}

impl Enrolling {
    /// A new one.
    pub fn new(instance: Uuid) -> Self {
        Self { instance, secret: BASE64_URL_SAFE_NO_PAD.encode(random::<SECRET_LENGTH>()) }
    }

    /// Its secret.
    pub fn secret(&self) -> Secret {
        Secret::new(BASE64_URL_SAFE_NO_PAD.decode(&self.secret).unwrap_or_default())
    }
}

fn associated_data(person: Uuid, instance: Uuid) -> String {
    format!("second_factor/{person}/{instance}")
}

selectable! {
    /// An authenticator as it is stored.
    struct AuthenticatorRow from "FROM second_factor WHERE person_id = ?1 AND mfa_instance_id = ?2" {
        id: Uuid = "id",
        sealed: Vec<u8> = "sealed",
        last_step: i64 = "last_step",
    }
}

/// Verifies a code of the person's authenticator; each counts once. Returns the id of the authenticator.
pub fn verify(
    context: &Context,
    tx: &mut Tx<'_>,
    factor: &OfferedFactor,
    person: Uuid,
    typed: &str,
) -> Result<Option<Uuid>, StoreError> {
    let key = [person.into(), factor.id.into()];
    let row = tx.one(AuthenticatorRow::SELECT, &key, AuthenticatorRow::read)?;
    let Some(AuthenticatorRow { id, sealed, last_step }) = row else { return Ok(None) };
    let Some(secret) = context.app.master.open(&associated_data(person, factor.id), &sealed) else {
        return Err(StoreError::Internal("an authenticator's secret cannot be opened".into()));
    };
    let Some(step) = factor.totp().verify(secret.expose(), typed, last_step, context.now) else {
        return Ok(None);
    };
    let text =
        StateTable::SecondFactor.update("SET last_step = ?2, used_on = ?3 WHERE id = ?1 AND last_step < ?2");
    let changed = tx.execute(&text, &[id.into(), step.into(), context.now.0.into()])?;
    Ok((changed == 1).then_some(id))
}

/// Stores an authenticator whose first code is correct. Returns its id.
pub fn enrol(
    context: &Context,
    tx: &mut Tx<'_>,
    factor: &OfferedFactor,
    person: Uuid,
    enrolling: &Enrolling,
    typed: &str,
) -> Result<Option<Uuid>, StoreError> {
    let secret = enrolling.secret();
    let Some(step) = factor.totp().verify(secret.expose(), typed, i64::MIN, context.now) else {
        return Ok(None);
    };
    let id = context.new_id();
    let sealed = context.app.master.seal(&associated_data(person, factor.id), secret.expose());
    let text = StateTable::SecondFactor.insert(
        "(id, person_id, mfa_instance_id, sealed, last_step, enrolled_on, used_on) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)",
    );
    let now = context.now.0.into();
    tx.queue(&text, vec![id.into(), person.into(), factor.id.into(), sealed.into(), step.into(), now])?;
    Ok(Some(id))
}
