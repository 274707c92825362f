//! The audit entry and the event of a change.

use std::borrow::Cow;

use chancery_ledger::Stamp;
use chancery_record::{Column, Field, Sealing, Value, canonical_json};
use chancery_store::{Error, Tx, raw};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    Context, PersonKey, Problem, Shape,
    audit::{
        event::{Event, SIGN_INS},
        placement::Placement,
    },
    declare::event_name::EventName,
    event_name,
    seal::{
        sealed::entry_associated_data,
        signer::{AuditSigner, DigestedContent},
    },
};

const CATEGORY: &str = "DatabaseRecordChange";

/// What was done with a row: the action of an audit entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowAction {
    /// It is new.
    Added,
    /// It was changed, or something was done with it.
    Modified,
    /// It was deleted, or hidden in the quarantine.
    Deleted,
}

impl RowAction {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Modified => "Modified",
            Self::Deleted => "Deleted",
        }
    }
}

/// The content of the entry and the event of a change.
pub struct Entry<'a> {
    /// The entry's number: greater than that of the row's own last change. Changes of links do not count.
    pub number: i64,
    pub person: Option<PersonKey>,
    pub shape: &'a Shape,
    /// The values that identify the row and its scope.
    pub values: &'a [Value],
    pub action: RowAction,
    pub event: EventName,
    pub original: Option<String>,
    pub current: Option<String>,
    pub details: Details<'a>,
}

/// The details of an event besides the key: names of members and ids, never values.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Details<'a> {
    /// No details.
    None {},
    /// The changed members.
    Members { changed: Vec<&'a str> },
    /// The changed links.
    Links {
        relation: &'a str,
        #[serde(flatten)]
        links: Links<'a>,
        #[serde(flatten)]
        whole: Option<LinkCounts>,
    },
}

/// Added and removed links, by the ids of the linked rows.
#[derive(Clone, Copy, Serialize)]
pub struct Links<'a> {
    pub added: &'a [Uuid],
    pub removed: &'a [Uuid],
}

/// The number of changed links, where an event does not list them all. The audit entry does.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkCounts {
    added_count: usize,
    removed_count: usize,
    complete: bool,
}

/// The most ids of added and of removed links in an event, so that it stays under 64 KiB.
const MAX_LISTED: usize = 500;

impl<'a> Details<'a> {
    /// The details of changed links.
    pub fn of_links(relation: &'a str, links: Links<'a>) -> Self {
        let listed = |ids: &'a [Uuid]| ids.get(..MAX_LISTED).unwrap_or(ids);
        let (added_count, removed_count) = (links.added.len(), links.removed.len());
        let is_truncated = added_count.max(removed_count) > MAX_LISTED;
        Self::Links {
            relation,
            links: Links { added: listed(links.added), removed: listed(links.removed) },
            whole: is_truncated.then_some(LinkCounts { added_count, removed_count, complete: false }),
        }
    }
}

#[derive(Serialize)]
struct EventData<'a> {
    id: &'a str,
    actor: Option<Uuid>,
    #[serde(flatten)]
    details: &'a Details<'a>,
}

const ENTRY: &str = "INSERT INTO audit_entry (rid, store, timestamp, actor, area, primary_key, \
    category, action, data_source, original_content, current_content, original_salt, \
    current_salt, original_digest, current_digest, signature, signature_public_key_info, person) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";

/// Writes the audit entry and the event of a change.
pub fn record(context: &Context, tx: &mut Tx<'_>, mut entry: Entry<'_>) -> Result<(), Problem> {
    if let Some(person) = &entry.person {
        context.persons.borrow_mut().add(person);
    }
    let signer = &context.app.audit_signer;
    let id = entry.number;
    let key = key_text(entry.shape, entry.values);
    let user = context.actor.map(|actor| match context.acting {
        Some(acting) => format!("{actor}|{acting}"),
        None => actor.to_string(),
    });
    let original = entry.original.take().map(AuditSigner::digest);
    let current = entry.current.take().map(AuditSigner::digest);
    let person = entry.person.as_ref().map(|person| person.id);
    let stamp = Stamp {
        id,
        timestamp: context.now,
        user: user.as_deref(),
        area: entry.shape.name,
        primary_key: &key,
        category: CATEGORY,
        action: entry.action.as_str(),
        data_source: context.scope.source(),
        person,
    };
    let digest =
        |digested: &Option<DigestedContent>| digested.as_ref().map(|digested| digested.digest.clone());
    let (original_digest, current_digest) = (digest(&original), digest(&current));
    let signature = signer.sign(&stamp, original_digest.as_deref(), current_digest.as_deref());
    let signature = signature.ok_or_else(|| Error::Internal("an audit entry cannot be signed".into()))?;
    // two processes may choose the same number, but no two entries have the same signature
    let proof = "SELECT 1 FROM audit_entry WHERE rid = ?1 AND signature = ?2";
    tx.set_commit_proof(proof, vec![Value::Int(id), signature.bytes.clone().into()]);
    let (original, original_salt) = seal_content(id, original, entry.person.as_ref(), ORIGINAL);
    let (current, current_salt) = seal_content(id, current, entry.person.as_ref(), CURRENT);
    raw::queue(
        tx,
        ENTRY,
        vec![
            Value::Int(id),
            Value::Int(context.scope.store()),
            Value::Int(context.now.0),
            user.into(),
            entry.shape.name.into(),
            key.as_str().into(),
            CATEGORY.into(),
            entry.action.as_str().into(),
            context.scope.source().into(),
            original.into(),
            current.into(),
            original_salt.into(),
            current_salt.into(),
            original_digest.into(),
            current_digest.into(),
            signature.bytes.into(),
            signature.public_key_info.into(),
            person.into(),
        ],
    )?;
    let event = ChangeEvent {
        number: id,
        tree: Some(context.scope.store()),
        shape: entry.shape,
        values: entry.values,
        name: entry.event,
        details: &entry.details,
    };
    event.emit(context, tx)
}

/// Emits `moved` to the new scope, for its readers. The event of the change itself is in the old scope.
pub fn record_move(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    values: &[Value],
    number: i64,
) -> Result<(), Problem> {
    let details = &Details::None {};
    ChangeEvent { number, tree: None, shape, values, name: event_name!("moved"), details }.emit(context, tx)
}

/// The event of a change of a row.
struct ChangeEvent<'a> {
    number: i64,
    /// The store in whose tree its audit entry is; none where it has no entry of its own.
    tree: Option<i64>,
    shape: &'a Shape,
    /// The values that identify the row and its scope.
    values: &'a [Value],
    name: EventName,
    details: &'a Details<'a>,
}

impl ChangeEvent<'_> {
    fn emit(self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let Self { number, tree, shape, values, name, details } = self;
        let (trail, kind) = trail_and_type(context, shape, name);
        let key = key_text(shape, values);
        let event = Event {
            number,
            trail,
            tree,
            kind,
            subject: &key,
            placement: Placement::of(context, shape, values),
            data: EventData { id: &key, actor: context.actor, details },
        };
        event.queue(context, tx)
    }
}

/// The trail of an event, and its type.
fn trail_and_type(context: &Context, shape: &Shape, event: EventName) -> (i64, Cow<'static, str>) {
    let store = context.scope.store();
    if let Some((_, own)) = shape.writes.event_types.iter().find(|(name, _)| *name == event) {
        return (if own.is_of_sign_ins() { SIGN_INS } else { store }, own.as_str().into());
    }
    let service = if store == 0 { "management" } else { "userstore" };
    (store, format!("platform.{service}.{}.{}", shape.name.to_lowercase(), event.as_str()).into())
}

type SealedColumns = (&'static str, &'static str);
const ORIGINAL: SealedColumns = ("original_content", "original_salt");
const CURRENT: SealedColumns = ("current_content", "current_salt");

/// Content and salt for storage: encrypted under the person's key where they belong to a person.
fn seal_content(
    entry: i64,
    digested: Option<DigestedContent>,
    person: Option<&PersonKey>,
    columns: SealedColumns,
) -> (Option<String>, Option<Vec<u8>>) {
    let (content, salt) = columns;
    match (digested, person) {
        (None, _) => (None, None),
        (Some(digested), None) => (Some(digested.content), Some(digested.salt.to_vec())),
        (Some(digested), Some(person)) => (
            Some(person.seal_text(&entry_associated_data(entry, content), &digested.content)),
            Some(person.seal_bytes(&entry_associated_data(entry, salt), &digested.salt)),
        ),
    }
}

/// Serialises a value that always has a JSON form.
pub fn to_json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Internal(format!("it cannot be written: {error}")))
}

const fn is_audited(field: &Field) -> bool {
    field.access.shown || field.access.audited
}

pub fn changed_members<'a>(fields: impl Iterator<Item = &'a Field>) -> Details<'a> {
    let audited = fields.filter(|field| is_audited(field) && !field.is_token());
    Details::Members { changed: audited.map(Field::wire).collect() }
}

pub fn fields_with<'a>(
    shape: &'a Shape,
    values: &'a [Value],
) -> impl Iterator<Item = (&'a Field, &'a Value)> {
    shape.fields.iter().zip(values)
}

/// The audit form: the resource's own fields as canonical JSON, without secrets.
pub fn content(shape: &Shape, values: &[Value]) -> String {
    let is_secret = |field: &Field| field.access.sealing == Sealing::Secret && (shape.writes.secret)(values);
    let is_stored = |field: &Field| !matches!(field.access.column, Column::Unstored | Column::Derived);
    let shown = fields_with(shape, values).filter(|(field, _)| is_audited(field) && is_stored(field));
    canonical_json(
        shown.map(|(field, value)| if is_secret(field) { (field, &Value::Null) } else { (field, value) }),
    )
}

/// The key in the audit trail: an id stands alone, any other key is joined to the owner's by `|`.
pub fn key_text(shape: &Shape, values: &[Value]) -> String {
    let is_owner = |field: &Field| field.access.column == Column::Owner;
    let key = || fields_with(shape, values).filter(|(field, _)| field.access.key && !is_owner(field));
    let is_id = key().any(|(_, value)| matches!(value, Value::Id(_)));
    let owner = fields_with(shape, values).filter(|(field, _)| is_owner(field) && !is_id);
    let texts = owner.chain(key()).map(|(_, value)| match value {
        Value::Id(id) => id.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        _ => String::new(),
    });
    texts.collect::<Vec<_>>().join("|")
}
