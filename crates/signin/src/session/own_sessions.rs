//! A person's own sessions.

use std::sync::Arc;

use chancery_application::{SignOutScope, sign_out};
use chancery_record::Timestamp;
use chancery_resource::{AppContext, Problem, StoreError, Tx};
use chancery_store::selectable;
use uuid::Uuid;

use crate::person::context::context_of_person;

selectable! {
    /// A session of a person.
    #[derive(Clone, Debug)]
    pub struct OwnSession from "FROM sign_in_session s JOIN tenant t ON t.id = s.tenant_id \
        WHERE s.person_id = ?1 AND s.ended_on IS NULL AND s.expires_on > ?2 ORDER BY s.used_on DESC, s.id" {
        /// The session.
        pub id: Uuid = "s.id",
        /// The name of its tenant.
        pub tenant: String = "t.name",
        /// When it began.
        pub started_on: Timestamp = "s.started_on",
        /// The last use that was written.
        pub used_on: Timestamp = "s.used_on",
    }
}

/// A person's active sessions, the last used first.
pub fn own_sessions(tx: &mut Tx<'_>, person: Uuid, now: Timestamp) -> Result<Vec<OwnSession>, StoreError> {
    let mut sessions = Vec::new();
    tx.query(OwnSession::SELECT, &[person.into(), now.0.into()], |row| {
        sessions.push(OwnSession::read(row)?);
        Ok(())
    })?;
    Ok(sessions)
}

/// Which of a person's sessions to end.
#[derive(Clone, Copy, Debug)]
pub enum SessionsToEnd {
    /// This one.
    One(Uuid),
    /// All but this one.
    AllBut(Uuid),
}

/// Ends sessions of a person. Returns their number.
pub fn end_own_sessions(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    person: Uuid,
    which: SessionsToEnd,
    now: Timestamp,
) -> Result<usize, Problem> {
    let context = context_of_person(app, person, now);
    let mut sessions = own_sessions(tx, person, now)?;
    sessions.retain(|session| match which {
        SessionsToEnd::One(id) => session.id == id,
        SessionsToEnd::AllBut(id) => session.id != id,
    });
    for session in &sessions {
        sign_out(&context, tx, SignOutScope::Session(session.id))?;
    }
    Ok(sessions.len())
}
