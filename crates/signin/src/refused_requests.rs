//! Refused requests of client apps, as their administrators see them. A refused request writes nothing: it is noted in memory, once
//! an hour for each kind, and a job writes the notes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use chancery_record::Timestamp;
use chancery_resource::{AppContext, Context, Scope};
use chancery_store::{Error, StateTable, Tx};
use uuid::Uuid;

/// How often a kind of refused requests is recorded, in ms.
const HOUR: i64 = 3_600_000;
/// How long a kind is listed after it was last recorded, in ms.
const LISTED: i64 = 30 * 24 * HOUR;
/// The most kinds that are remembered: beyond it all are forgotten, and noted again.
const REMEMBERED: usize = 10_000;
/// The most notes that wait to be written: further ones are dropped.
const WAITING: usize = 500;
/// The most rows of a client app.
const MOST_OF_APP: i64 = 50;
/// The most rows of the installation.
const MOST: i64 = 10_000;
/// The longest text of a row, in bytes.
const LONGEST: usize = 4_000;

/// A kind of refused requests: the client app, the endpoint and the code of the error.
pub type RefusedKind = (Uuid, &'static str, &'static str);

/// A refused request of a client app that exists.
#[derive(Clone, Debug)]
pub struct RefusedRequest {
    /// What kind of request it is.
    pub kind: RefusedKind,
    /// What is wrong, for developers.
    pub reason: String,
    /// The parameters that were sent, without secrets.
    pub sent: String,
    /// What is registered of the client app, without secrets.
    pub registered: String,
    /// When.
    pub last_on: Timestamp,
}

/// The refused requests that this process has seen.
#[derive(Debug, Default)]
pub struct RefusedRequests(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    noted: HashMap<RefusedKind, i64>,
    unwritten: Vec<RefusedRequest>,
}

impl RefusedRequests {
    /// Whether a request of this kind is to be noted. It is not due again within an hour.
    pub fn is_due(&self, kind: RefusedKind, now: Timestamp) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.noted.get(&kind).is_some_and(|noted| now.0 - noted < HOUR) {
            return false;
        }
        if seen.noted.len() >= REMEMBERED {
            seen.noted.clear();
        }
        seen.noted.insert(kind, now.0);
        true
    }

    /// Notes a request. While too many wait to be written it is dropped, and the next one of its kind is due.
    pub fn note(&self, request: RefusedRequest) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.unwritten.len() < WAITING {
            seen.unwritten.push(request);
        } else {
            seen.noted.remove(&request.kind);
        }
    }

    /// The notes that are to be written.
    pub fn take(&self) -> Vec<RefusedRequest> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).unwritten)
    }
}

/// Writes notes. Those of client apps that are gone are left out, and so are new kinds beyond the bounds of the client app and of
/// the installation.
///
/// # Errors
/// Errors of the store.
pub fn write_refused(
    tx: &mut Tx<'_>,
    app_context: &Arc<AppContext>,
    requests: &[RefusedRequest],
) -> Result<(), Error> {
    let all = format!("SELECT count(*) FROM (SELECT 1 FROM client_app_refusal LIMIT {MOST}) listed");
    let mut all = tx.one(&all, &[], |row| row.int(0))?.unwrap_or_default();
    let known = "SELECT (SELECT count(*) FROM client_app_refusal r WHERE r.client_app_id = a.id), \
        (SELECT count(*) FROM client_app_refusal r WHERE r.client_app_id = a.id AND r.endpoint = ?2 AND r.error = ?3) \
        FROM client_app a WHERE a.id = ?1";
    let write = StateTable::ClientAppRefusal.insert(
        "(id, client_app_id, endpoint, error, reason, sent, registered, first_on, last_on, expires_on) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9) ON CONFLICT (client_app_id, endpoint, error) DO UPDATE \
         SET reason = excluded.reason, sent = excluded.sent, registered = excluded.registered, \
         last_on = excluded.last_on, expires_on = excluded.expires_on WHERE client_app_refusal.last_on <= ?10",
    );
    for one in requests {
        let (app, endpoint, error) = one.kind;
        let found = tx.one(known, &[app.into(), endpoint.into(), error.into()], |row| {
            Ok((row.int(0)?, row.int(1)? > 0))
        })?;
        let Some((of_app, is_listed)) = found else { continue };
        if !is_listed && (of_app >= MOST_OF_APP || all >= MOST) {
            continue;
        }
        let now = one.last_on.0;
        let parameters = [
            Context::of_server(app_context, Scope::Everything, one.last_on).new_id().into(),
            app.into(),
            endpoint.into(),
            error.into(),
            cut(&one.reason).into(),
            cut(&one.sent).into(),
            cut(&one.registered).into(),
            now.into(),
            (now + LISTED).into(),
            (now - HOUR).into(),
        ];
        tx.execute(&write, &parameters)?;
        all += i64::from(!is_listed);
    }
    Ok(())
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LONGEST)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;
    use uuid::Uuid;

    use super::{RefusedRequest, RefusedRequests, WAITING};

    #[test]
    fn a_kind_of_refused_requests_is_due_once_an_hour() {
        let (requests, app) = (RefusedRequests::default(), Uuid::from_u128(1));
        let due =
            |error, minute: i64| requests.is_due((app, "/connect/token", error), Timestamp(minute * 60_000));
        assert_eq!(
            [0, 1, 59, 60, 61].map(|minute| due("invalid_client", minute)),
            [true, false, false, true, false]
        );
        assert!(due("invalid_grant", 1), "another kind");
    }

    #[test]
    fn a_note_that_is_dropped_is_due_again() {
        let (requests, now) = (RefusedRequests::default(), Timestamp(0));
        let kind =
            |app: usize| (Uuid::from_u128(u128::try_from(app).unwrap()), "/connect/token", "invalid_client");
        for app in 0..=WAITING {
            assert!(requests.is_due(kind(app), now));
            requests.note(RefusedRequest {
                kind: kind(app),
                reason: String::new(),
                sent: String::new(),
                registered: String::new(),
                last_on: now,
            });
        }
        assert_eq!(requests.take().len(), WAITING);
        assert!(!requests.is_due(kind(0), now) && requests.is_due(kind(WAITING), now));
        assert!(requests.take().is_empty());
    }
}
