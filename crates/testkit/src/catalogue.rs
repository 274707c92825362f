//! The events of writes: the successful writes of every test are compared with `spec/events.tsv`.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use chancery::services;
use chancery_resource::{Action, Op, read_text};
use chancery_store::{Error, Mode, selectable};
use chancery_web::{App, EventRow, event_rows, event_schema};
use http::Method;
use serde_json::Value;

/// Writes that succeeded, by the traces of their callers.
pub type Calls = Arc<Mutex<Vec<Call>>>;

/// A write that succeeded.
pub struct Call {
    /// Its trace id.
    pub trace: String,
    /// Its method.
    pub method: Method,
    /// Its path, with the query.
    pub path: String,
}

/// The operations of both services' version 2 and of SCIM, with their names in rows, and their paths.
pub fn operations() -> impl Iterator<Item = (String, String, &'static Op)> {
    let of_directories = chancery_provisioning::paths().map(|(path, op)| {
        let name = op.name.trim_start_matches("Scim");
        (format!("scim:{name}"), format!("/api/scim/v2/{{instance}}{path}"), op)
    });
    let of_services = services().iter().filter(|service| service.version == "v2").flat_map(|service| {
        service.all().map(move |op| {
            (format!("{}:{}", service.name, op.name), format!("{}{}", service.base, op.path), op)
        })
    });
    of_services.chain(of_directories)
}

/// The operations by the segments of their paths, computed once for a process.
static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let route = |(name, path, op): (String, String, &'static Op)| Route {
        name,
        segments: path.split('/').map(str::to_owned).collect(),
        op,
    };
    operations().map(route).collect()
});

/// An operation with its name in rows of `spec/events.tsv`, and its path.
struct Route {
    name: String,
    segments: Vec<String>,
    op: &'static Op,
}

impl Route {
    fn matches(&self, method: &Method, path: &[&str]) -> bool {
        let fits = |(segment, given): (&String, &&str)| segment.starts_with('{') || segment == given;
        self.op.method.name() == method.as_str()
            && self.segments.len() == path.len()
            && self.segments.iter().zip(path).all(fits)
    }

    fn parameters(&self) -> usize {
        self.segments.iter().filter(|segment| segment.starts_with('{')).count()
    }
}

/// The operation behind a request: of those that match, the one with the fewest parameters in its path.
fn operation_of(method: &Method, path: &str) -> Option<&'static Route> {
    let path: Vec<&str> = path.split('?').next().unwrap_or_default().split('/').collect();
    ROUTES.iter().filter(|route| route.matches(method, &path)).min_by_key(|route| route.parameters())
}

/// The schema of the members of an event of this type, computed once for a process.
fn data_schema(kind: &str) -> Arc<Value> {
    static SCHEMAS: LazyLock<Mutex<HashMap<String, Arc<Value>>>> = LazyLock::new(Mutex::default);
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    let make = || Arc::new(event_schema(kind, "").unwrap_or_default()["properties"]["data"].take());
    Arc::clone(schemas.entry(kind.to_owned()).or_insert_with(make))
}

/// The events of a trace: types, each with whether it is audited.
type Left = HashMap<String, BTreeSet<(String, bool)>>;

/// Asserts that the members of an event are those of its schema. Its scope is added when it is read.
fn check_members(kind: &str, data: &Value) {
    let schema = data_schema(kind);
    let has = |name: &str| !data[name].is_null() || name == "actor" || name == "scope";
    let missing =
        schema["required"].as_array().into_iter().flatten().filter(|name| !name.as_str().is_some_and(has));
    let unknown =
        data.as_object().into_iter().flatten().filter(|(name, _)| schema["properties"][name].is_null());
    assert!(missing.count() + unknown.count() == 0, "{kind} is not as its schema says: {data}");
}

selectable! {
    /// An event that waits for readers.
    struct WaitingEvent from "FROM outbox_event o WHERE o.traceparent IS NOT NULL" {
        envelope: String = "o.envelope",
        traceparent: String = "o.traceparent",
        is_audited: bool = "EXISTS (SELECT 1 FROM audit_entry e WHERE e.rid = o.id)",
    }
}

/// The events that wait for readers, by trace; nothing where a test broke the store.
#[expect(clippy::expect_used, reason = "a test whose events nobody reads proves nothing of them")]
async fn left(app: &App) -> Option<Left> {
    let read = app.store.run("Test", Mode::Long, None, |tx| {
        let mut rows = Vec::new();
        tx.query(WaitingEvent::SELECT, &[], |row| {
            rows.push(WaitingEvent::read(row)?);
            Ok(())
        })?;
        Ok::<_, Error>(rows)
    });
    let mut left = Left::new();
    // checked outside of the transaction, which would turn a failed assertion into an error of the store
    let rows = match read.await {
        Err(Error::Unavailable(why)) if why.contains("broke down") => return None,
        rows => rows.expect("the events of a test can be read"),
    };
    for WaitingEvent { envelope, traceparent, is_audited } in rows {
        let envelope: Value =
            read_text(&envelope).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let trace = traceparent.get(3..35).unwrap_or_default().to_owned();
        let kind = envelope["type"].as_str().unwrap_or_default().to_owned();
        check_members(&kind, &envelope["data"]);
        left.entry(trace).or_default().insert((kind, is_audited));
    }
    Some(left)
}

/// Whether an operation must emit an event. A call of the standard pattern may change nothing, and its
/// events follow from its declaration; tests prune it, too.
const fn must_emit(op: &Op) -> bool {
    matches!(op.action, Action::Custom(_))
}

/// Asserts that the writes of a test emitted the events of `spec/events.tsv`, and no others.
///
/// # Panics
/// When one emitted another, or none.
pub async fn check(app: &App, calls: &Calls) {
    let calls = std::mem::take(&mut *calls.lock().unwrap_or_else(PoisonError::into_inner));
    let Some(left) = left(app).await else { return };
    let rows = event_rows();
    for call in calls {
        let Some(Route { name, op, .. }) = operation_of(&call.method, &call.path) else { continue };
        let kinds = left.get(&call.trace).cloned().unwrap_or_default();
        let is_named =
            |row: &EventRow| row.operations.iter().any(|known| known.trim_end_matches('?') == name.as_str());
        for (kind, is_audited) in &kinds {
            let row = rows.iter().find(|row| row.kind == kind && is_named(row));
            assert!(row.is_some(), "{name} left {kind}, which spec/events.tsv does not say");
            assert!(!is_audited || row.is_some_and(|row| row.audited != "no"), "{kind} is audited");
        }
        let may_be_silent = rows.iter().any(|row| row.kind.is_empty() && is_named(row));
        let has_event = !kinds.is_empty() || may_be_silent || !op.writes() || !must_emit(op);
        assert!(has_event, "{name} left no event: {} {}", call.method, call.path);
    }
}
