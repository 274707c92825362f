//! What people have of their own here: the browsers they are signed in at, and their passkeys.

use std::sync::Arc;

use chancery_application::{EndOf, sign_out};
use chancery_record::Timestamp;
use chancery_resource::{AppContext, Problem, StoreError, Tx};
use uuid::Uuid;

use crate::provider::context_of_person;

/// A browser that a person is signed in at.
#[derive(Clone, Debug)]
pub struct OwnSession {
    /// The session.
    pub id: Uuid,
    /// The name of its tenant.
    pub tenant: String,
    /// When it began.
    pub started_on: Timestamp,
    /// When it was last used, as far as that is written.
    pub used_on: Timestamp,
}

/// Where a person is signed in, what was used last first.
///
/// # Errors
/// Errors of the store.
pub fn own_sessions(tx: &mut Tx<'_>, person: Uuid, now: Timestamp) -> Result<Vec<OwnSession>, StoreError> {
    let text = "SELECT s.id, t.name, s.started_on, s.used_on FROM sign_in_session s JOIN tenant t ON t.id = s.tenant_id \
        WHERE s.person_id = ?1 AND s.ended_on IS NULL AND s.expires_on > ?2 ORDER BY s.used_on DESC, s.id";
    let mut sessions = Vec::new();
    tx.query(text, &[person.into(), now.0.into()], |row| {
        sessions.push(OwnSession {
            id: row.id(0)?,
            tenant: row.text(1)?.to_owned(),
            started_on: Timestamp(row.int(2)?),
            used_on: Timestamp(row.int(3)?),
        });
        Ok(())
    })?;
    Ok(sessions)
}

/// Which of a person's own sessions end.
#[derive(Clone, Copy, Debug)]
pub enum OwnEnd {
    /// This one.
    One(Uuid),
    /// All but this one.
    AllBut(Uuid),
}

/// Ends sessions of a person's own; the number of them.
///
/// # Errors
/// Errors of the store.
pub fn end_own_sessions(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    (person, which): (Uuid, OwnEnd),
    now: Timestamp,
) -> Result<usize, Problem> {
    let context = context_of_person(app, person, now);
    let mut sessions = own_sessions(tx, person, now)?;
    sessions.retain(|session| match which {
        OwnEnd::One(id) => session.id == id,
        OwnEnd::AllBut(id) => session.id != id,
    });
    for session in &sessions {
        sign_out(&context, tx, EndOf::Session(session.id))?;
    }
    Ok(sessions.len())
}

/// The person as a user of the store that a sign-in came by, and the user's passkeys.
#[derive(Clone, Debug, Default)]
pub struct OwnUser {
    /// The name of the user store.
    pub store: String,
    /// The user.
    pub id: Uuid,
    /// The passkeys: the name of each, when it was made, and when it was last used.
    pub passkeys: Vec<(String, Timestamp, Option<Timestamp>)>,
}

/// Whom a person is in a user store; `None` where the instance is none.
///
/// # Errors
/// Errors of the store.
pub fn own_user(tx: &mut Tx<'_>, person: Uuid, instance: Uuid) -> Result<Option<OwnUser>, StoreError> {
    let text = "SELECT i.subject, o.rid, o.name FROM application_user a \
        JOIN application_identity i ON i.application_user_rid = a.rid JOIN idp_instance o ON o.id = i.idp_instance_id \
        WHERE a.id = ?1 AND i.idp_instance_id = ?2";
    let found = tx.one(text, &[person.into(), instance.into()], |row| {
        Ok((Uuid::try_parse(row.text(0)?).ok(), row.int(1)?, row.text(2)?.to_owned()))
    })?;
    let Some((Some(id), rid, store)) = found else { return Ok(None) };
    let text =
        "SELECT u.rid FROM user_account u WHERE u.store = ?1 AND u.id = ?2 AND u.quarantined_on IS NULL";
    let Some(user) = tx.one(text, &[rid.into(), id.into()], |row| row.int(0))? else { return Ok(None) };
    let text =
        "SELECT name, created_on, last_used_on FROM passkey_credential WHERE user_rid = ?1 ORDER BY rid";
    let mut passkeys = Vec::new();
    tx.query(text, &[user.into()], |row| {
        let last_used = if row.is_null(2)? { None } else { Some(Timestamp(row.int(2)?)) };
        passkeys.push((row.text(0)?.to_owned(), Timestamp(row.int(1)?), last_used));
        Ok(())
    })?;
    Ok(Some(OwnUser { store, id, passkeys }))
}

/// The platform user whom a user of a store is; `None` where the user has not been synchronized yet.
///
/// # Errors
/// Errors of the store.
pub fn platform_user(tx: &mut Tx<'_>, store: Uuid, user: Uuid) -> Result<Option<Uuid>, StoreError> {
    let text = "SELECT a.id FROM application_identity i JOIN application_user a ON a.rid = i.application_user_rid \
        WHERE i.idp_instance_id = ?1 AND i.subject = ?2";
    tx.one(text, &[store.into(), user.to_string().into()], |row| row.id(0))
}
