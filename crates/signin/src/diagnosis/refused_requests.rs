//! Refused requests of client apps, for their administrators. A refused request writes nothing: it is noted in
//! memory, once an hour for each kind, and a job writes the notes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use chancery_record::Timestamp;
use chancery_resource::{AppContext, Context, Scope};
use chancery_store::{Error, StateTable, Tx, selectable};
use uuid::Uuid;

/// How often a kind of refused requests is recorded, in ms.
const HOUR: i64 = 3_600_000;
/// How long a kind is listed after it was last recorded, in ms.
const LISTED: i64 = 30 * 24 * HOUR;
/// The maximum of remembered kinds; when it is reached all are forgotten, and noted again.
const REMEMBERED: usize = 10_000;
/// The maximum of unwritten notes: further ones are dropped.
const WAITING: usize = 500;
/// The maximum of rows of a client app.
const MAX_OF_APP: i64 = 50;
/// The maximum of rows of the installation.
const MAX_ROWS: i64 = 10_000;
/// The maximum length of a text in a row, in bytes.
const LONGEST: usize = 4_000;

/// A kind of refused requests: the client app, the endpoint and the code of the error.
pub type RefusedKind = (Uuid, &'static str, &'static str);

/// A refused request of a client app that exists.
#[derive(Clone, Debug)]
pub struct RefusedRequest {
    /// The kind of request.
    pub kind: RefusedKind,
    /// The reason, for developers.
    pub reason: String,
    /// The sent parameters, without secrets.
    pub sent: String,
    /// The client app's registered settings, without secrets.
    pub registered: String,
    /// The date and time.
    pub last_on: Timestamp,
}

/// The refused requests that this process has seen.
#[derive(Debug, Default)]
pub struct RefusedRequests(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    noted: HashMap<RefusedKind, i64>,
    /// Those whose id names no client app. They have a map of their own, because anonymous callers can invent them.
    unknown: HashMap<RefusedKind, i64>,
    unwritten: Vec<RefusedRequest>,
}

impl RefusedRequests {
    /// Whether to look up the client app of a request of this kind: not within an hour of the last one. The result
    /// does not depend on whether the client app exists, so that the response time does not disclose it.
    pub fn is_due(&self, kind: RefusedKind, now: Timestamp) -> bool {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        [&seen.noted, &seen.unknown]
            .into_iter()
            .all(|known| known.get(&kind).is_none_or(|noted| now.0 - noted >= HOUR))
    }

    /// Remembers that the client app of this kind does not exist.
    pub fn note_unknown(&self, kind: RefusedKind, now: Timestamp) {
        remember(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).unknown, kind, now);
    }

    /// Notes a request of an existing client app, unless one of its kind was noted within the last hour or too many
    /// notes are unwritten.
    pub fn note(&self, request: RefusedRequest) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_noted = seen.noted.get(&request.kind).is_some_and(|noted| request.last_on.0 - noted < HOUR);
        if is_noted || seen.unwritten.len() >= WAITING {
            return;
        }
        remember(&mut seen.noted, request.kind, request.last_on);
        seen.unwritten.push(request);
    }

    /// Takes the unwritten notes.
    pub fn take(&self) -> Vec<RefusedRequest> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).unwritten)
    }
}

fn remember(known: &mut HashMap<RefusedKind, i64>, kind: RefusedKind, now: Timestamp) {
    if known.len() >= REMEMBERED {
        known.clear();
    }
    known.insert(kind, now.0);
}

selectable! {
    /// The numbers of stored refusals of a client app.
    struct KnownKinds from "FROM client_app a WHERE a.id = ?1" {
        of_app: i64 = "(SELECT count(*) FROM client_app_refusal r WHERE r.client_app_id = a.id)",
        of_kind: i64 = "(SELECT count(*) FROM client_app_refusal r WHERE r.client_app_id = a.id AND r.endpoint = ?2 \
            AND r.error = ?3)",
    }
}

/// Writes notes. Those of deleted client apps are left out, and so are new kinds beyond the limits of the client app
/// and of the installation.
pub fn write_refused(
    tx: &mut Tx<'_>,
    app_context: &Arc<AppContext>,
    requests: &[RefusedRequest],
) -> Result<(), Error> {
    let all = format!("SELECT count(*) FROM (SELECT 1 FROM client_app_refusal LIMIT {MAX_ROWS}) listed");
    let mut all = tx.one(&all, &[], |row| row.int(0))?.unwrap_or_default();
    let write = StateTable::ClientAppRefusal.insert(
        "(id, client_app_id, endpoint, error, reason, sent, registered, first_on, last_on, expires_on) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9) ON CONFLICT (client_app_id, endpoint, error) DO UPDATE \
         SET reason = excluded.reason, sent = excluded.sent, registered = excluded.registered, \
         last_on = excluded.last_on, expires_on = excluded.expires_on WHERE client_app_refusal.last_on <= ?10",
    );
    for one in requests {
        let (app, endpoint, error) = one.kind;
        let kind = [app.into(), endpoint.into(), error.into()];
        let Some(known) = tx.one(KnownKinds::SELECT, &kind, KnownKinds::read)? else { continue };
        let is_listed = known.of_kind > 0;
        if !is_listed && (known.of_app >= MAX_OF_APP || all >= MAX_ROWS) {
            continue;
        }
        let now = one.last_on.0;
        let parameters = vec![
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
        tx.queue(&write, parameters)?;
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

    fn request(app: usize, error: &'static str, minute: i64) -> RefusedRequest {
        RefusedRequest {
            kind: (Uuid::from_u128(u128::try_from(app).unwrap()), "/connect/token", error),
            reason: String::new(),
            sent: String::new(),
            registered: String::new(),
            last_on: Timestamp(minute * 60_000),
        }
    }

    #[test]
    fn refused_requests_of_a_kind_are_noted_once_an_hour() {
        let requests = RefusedRequests::default();
        let due = |error, minute: i64| {
            let request = request(1, error, minute);
            let is_due = requests.is_due(request.kind, request.last_on);
            requests.note(request);
            is_due
        };
        assert_eq!(
            [0, 1, 59, 60, 61].map(|minute| due("invalid_client", minute)),
            [true, false, false, true, false]
        );
        assert!(due("invalid_grant", 1), "another kind");
        assert_eq!(requests.take().len(), 3);
        let unknown = request(2, "invalid_client", 0);
        requests.note_unknown(unknown.kind, unknown.last_on);
        assert!(!requests.is_due(unknown.kind, Timestamp(1)) && requests.take().is_empty());
    }

    #[test]
    fn a_dropped_note_is_due_again() {
        let requests = RefusedRequests::default();
        for app in 0..=WAITING {
            requests.note(request(app, "invalid_client", 0));
        }
        assert_eq!(requests.take().len(), WAITING);
        let is_due = |app| requests.is_due(request(app, "invalid_client", 0).kind, Timestamp(0));
        assert!(!is_due(0) && is_due(WAITING));
        assert!(requests.take().is_empty());
    }
}
