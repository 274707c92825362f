//! Rows as resources in SCIM's form.

use std::collections::HashMap;

use chancery_record::{Json, Timestamp, Value, format_timestamp, read_json};
use chancery_resource::{Answer, Call, LIST, Problem, Sql, StoreError, StoredRow, Tx, represent};
use chancery_scim::{Fields, Home, Kept, Resource, Selection, entry_keys, fields_of, read_resource, show};
use chancery_userstore::user::User;
use serde_json::{Value as Serde, json};
use uuid::Uuid;

use crate::{form::Form, reach::directory};

/// How many path segments the base address of an instance has: `/api/scim/v2/{instance}`.
const BASE: usize = 5;

/// The base address, as the caller named the instance.
pub fn base_of(call: &Call) -> String {
    let path = call.request.address.split('?').next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').take(BASE).collect();
    format!("{}{}", call.context.app.public_url, segments.join("/"))
}

/// Which attributes the answer to a call has.
///
/// # Errors
/// Both parameters, or too many names.
pub fn selection_of(call: &Call, form: Form) -> Result<Selection, Problem> {
    let query = |name| call.request.query(name);
    Ok(Selection::read(form.of, form.home, query("attributes"), query("excludedAttributes"))?)
}

/// Profile entries of users by their row numbers.
type Entries = HashMap<i64, HashMap<String, String>>;

fn entries_of(tx: &mut Tx<'_>, form: Form, rows: &[StoredRow]) -> Result<Entries, StoreError> {
    let (mut entries, keys) = (Entries::new(), entry_keys(form.of, form.home));
    if keys.is_empty() {
        return Ok(entries);
    }
    for chunk in rows.chunks(LIST) {
        let mut sql = Sql::new("SELECT user_rid, key, value FROM user_profile WHERE user_rid IN ");
        sql.add_list(chunk.iter().map(|row| Value::Int(row.rid)));
        sql.add(" AND key IN ");
        sql.add_list(keys.iter().map(|key| Value::from(*key)));
        tx.query(&sql.text, &sql.parameters, |row| {
            if !row.is_null(2)? {
                let of_user = entries.entry(row.int(0)?).or_default();
                of_user.insert(row.text(1)?.to_owned(), row.text(2)?.to_owned());
            }
            Ok(())
        })?;
    }
    Ok(entries)
}

/// The resources that rows are, without members of groups.
///
/// # Errors
/// The store's.
pub fn resources(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    rows: &[StoredRow],
    selection: Option<&Selection>,
) -> Result<Vec<Resource>, Problem> {
    let base = base_of(call);
    let groups = form.of.find(form.of.core, form.home, "groups");
    let has_groups =
        groups.is_some_and(|groups| selection.is_some_and(|selection| selection.wants(form.of.core, groups)));
    let wanted: &[&str] = if has_groups { &["memberOfGroups"] } else { &[] };
    let wholes = represent(&mut call.context, tx, form.shape, rows, wanted)?;
    let entries = entries_of(tx, form, rows)?;
    let only = directory(&call.context).only();
    let nothing = HashMap::new();
    let shown = rows.iter().zip(wholes).map(|(row, whole)| {
        let own = entries.get(&row.rid).unwrap_or(&nothing);
        let mut resource = one(form, &base, row, &whole, own);
        refer_to_manager(&mut resource, form, &base);
        if has_groups {
            let groups = groups_in(&whole, &base, only);
            if !groups.is_empty() {
                resource.insert("groups".into(), groups.into());
            }
        }
        resource
    });
    Ok(shown.collect())
}

fn one(
    form: Form,
    base: &str,
    row: &StoredRow,
    whole: &Serde,
    entries: &HashMap<String, String>,
) -> Resource {
    let field = |name: &str| match name {
        // the number of an entry is its time in microseconds
        "lastEntry" if row.last_entry > 0 => time(Timestamp(row.last_entry / 1000)),
        "createdOn" | "lastEntry" => created(whole).map_or(Serde::Null, time),
        _ => whole.get(name).cloned().unwrap_or_default(),
    };
    let entry = |key: &str| entries.get(key).map_or(Serde::Null, |value| value.as_str().into());
    let extra = extra_of(whole);
    let token = whole.get("concurrencyToken").and_then(Serde::as_str).unwrap_or_default();
    show(form.of, form.home, base, token, &Kept { field: &field, entry: &entry, extra: &extra })
}

/// Adds the address of a manager.
fn refer_to_manager(resource: &mut Resource, form: Form, base: &str) {
    for schema in form.of.extensions {
        let manager = resource.get_mut(schema.urn).and_then(|own| own.get_mut("manager"));
        let Some(Serde::Object(manager)) = manager else { continue };
        if let Some(id) = manager.get("value").and_then(Serde::as_str) {
            let address = format!("{base}/Users/{id}");
            manager.insert("$ref".into(), address.into());
        }
    }
}

/// What was kept as it came.
fn extra_of(whole: &Serde) -> Resource {
    let text = whole.get(User::SCIM_EXTRA.field().wire()).and_then(Serde::as_str);
    match text.and_then(|text| read_json(text.as_bytes()).ok()).map(|json| json.to_serde()) {
        Some(Serde::Object(extra)) => extra,
        _ => Resource::new(),
    }
}

/// The time in an id of version 7 (RFC 9562); other ids tell none.
fn created(whole: &Serde) -> Option<Timestamp> {
    let id = Uuid::try_parse(whole.get("id")?.as_str()?).ok()?;
    let (seconds, nanoseconds) = (id.get_version_num() == 7).then(|| id.get_timestamp()).flatten()?.to_unix();
    i64::try_from(seconds).ok().map(|seconds| Timestamp(seconds * 1000 + i64::from(nanoseconds / 1_000_000)))
}

fn time(moment: Timestamp) -> Serde {
    let mut text = Vec::new();
    format_timestamp(moment, &mut text);
    String::from_utf8(text).unwrap_or_default().into()
}

fn groups_in(whole: &Serde, base: &str, only: Option<Uuid>) -> Vec<Serde> {
    let groups = whole.get("memberOfGroups").and_then(Serde::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_seen = |group: &&Serde| {
        only.is_none_or(|owner| match group.get("scimOwner") {
            Some(Serde::String(text)) => *text == owner.to_string(),
            // a provider's groups are all the directory's
            None => true,
            Some(_) => false,
        })
    };
    let shown = groups.iter().filter(is_seen).map(|group| {
        let id = group.get("id").and_then(Serde::as_str).unwrap_or_default();
        json!({ "value": id, "$ref": format!("{base}/Groups/{id}"), "display": group["name"], "type": "direct" })
    });
    shown.collect()
}

/// The fields of a row, as a resource that is like it would write them.
///
/// # Errors
/// The row holds what cannot be read.
pub fn fields_in(form: Form, resource: &Resource) -> Result<Fields, Problem> {
    Ok(fields_of(form.of, form.home, resource)?)
}

/// The fields that a body writes.
///
/// # Errors
/// Every place that is wrong.
pub fn body_of(call: &Call, form: Form) -> Result<Resource, Problem> {
    Ok(read_resource(form.of, form.home, call.request.body().unwrap_or(&Json::Null))?)
}

/// A body of PUT that does not say by which id the directory knows the resource leaves that as it is: not all directories
/// repeat it, and people are known by it.
pub fn with_external_id(mut body: Resource, before: &Resource) -> Resource {
    if let (None, Some(known)) = (body.get("externalId"), before.get("externalId")) {
        body.insert("externalId".into(), known.clone());
    }
    body
}

/// The version of a row, as a weak tag.
pub fn version_of(resource: &Resource) -> Option<String> {
    Some(resource.get("meta")?.get("version")?.as_str()?.to_owned())
}

/// Answers with one resource.
///
/// # Errors
/// The store's.
pub fn answer(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    status: u16,
) -> Result<Answer, Problem> {
    let selection = selection_of(call, form)?;
    let shown = resources(call, tx, form, std::slice::from_ref(row), Some(&selection))?.pop();
    Ok(tell(call, form, shown.unwrap_or_default(), &selection, status))
}

/// Answers with a user who was created just now: in no group, and with these profile entries. Nothing is read for it.
///
/// # Errors
/// The store's.
pub fn answer_new(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    entries: &HashMap<String, String>,
) -> Result<Answer, Problem> {
    let (selection, base) = (selection_of(call, form)?, base_of(call));
    let whole = represent(&mut call.context, tx, form.shape, std::slice::from_ref(row), &[])?.pop();
    let mut resource = one(form, &base, row, &whole.unwrap_or_default(), entries);
    refer_to_manager(&mut resource, form, &base);
    Ok(tell(call, form, resource, &selection, 201))
}

fn tell(call: &mut Call, form: Form, mut resource: Resource, selection: &Selection, status: u16) -> Answer {
    let answer = begin(call, form, &resource, status);
    selection.apply(&mut resource);
    call.answer.bytes.extend_from_slice(Serde::Object(resource).to_string().as_bytes());
    answer
}

/// The answer about a resource, with its version, and its address where it is new.
pub fn begin(call: &mut Call, form: Form, resource: &Resource, status: u16) -> Answer {
    let mut answer = Answer::new(status);
    if let Some(version) = version_of(resource) {
        if call.request.op.writes() {
            answer.headers.push(("etag", version));
        } else {
            call.answer.tag = Some(version);
        }
    }
    if status == 201 {
        let id = resource.get("id").and_then(Serde::as_str).unwrap_or_default();
        answer.headers.push(("location", format!("{}{}/{id}", base_of(call), form.of.endpoint)));
    }
    answer
}

/// Whether a home keeps more than the fields of the row.
pub fn keeps_entries(form: Form) -> bool {
    form.home == Home::Store && form.is_of_users()
}
