//! Rows as resources in SCIM's form.

use std::collections::BTreeMap;

use chancery_record::{Json, Timestamp, format_timestamp, read_json};
use chancery_resource::{Answer, Call, Context, Problem, StoredRow, Tx, etag, shown_members};
use chancery_scim::{Fields, Home, Kept, Resource, Selection, fields_of, read_resource, show};
use chancery_userstore::user::User;
use serde_json::{Value as Serde, json};
use uuid::Uuid;

use crate::{
    beside::{self, Beside, Entries},
    form::Form,
};

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

/// What is beside some rows, so that each can be told in its turn.
pub struct Seen {
    form: Form,
    base: String,
    beside: Beside,
}

impl Seen {
    /// Reads what is beside rows.
    ///
    /// # Errors
    /// The store's.
    pub fn of(
        call: &Call,
        tx: &mut Tx<'_>,
        form: Form,
        rows: &[StoredRow],
        selection: Option<&Selection>,
    ) -> Result<Self, Problem> {
        let has_groups = selection.is_some_and(|selection| wants_groups(form, selection));
        let beside = Beside::of(call, tx, form, rows, has_groups)?;
        Ok(Self { form, base: base_of(call), beside })
    }

    /// The resource that one of the rows is, without members of a group.
    pub fn tell(&self, context: &Context, row: &StoredRow) -> Resource {
        one(context, (self.form, &self.base), row, &self.beside)
    }
}

/// The resource that a row is, without members of a group.
///
/// # Errors
/// The store's.
pub fn resource_of(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    selection: Option<&Selection>,
) -> Result<Resource, Problem> {
    Ok(Seen::of(call, tx, form, std::slice::from_ref(row), selection)?.tell(&call.context, row))
}

/// Whether an answer tells in which groups users are.
fn wants_groups(form: Form, selection: &Selection) -> bool {
    let groups = form.of.find(form.of.core, form.home, "groups");
    groups.is_some_and(|groups| selection.wants(form.of.core, groups))
}

fn one(context: &Context, (form, base): (Form, &str), row: &StoredRow, beside: &Beside) -> Resource {
    let kept = shown_members(context, form.shape, &row.values);
    let entries = beside.entries.get(&row.rid);
    let field = |name: &str| match name {
        // the number of an entry is its time in microseconds
        "lastEntry" if row.last_entry > 0 => time(Timestamp(row.last_entry / 1000)),
        "createdOn" | "lastEntry" => created(&kept).map_or(Serde::Null, time),
        _ => kept.get(name).cloned().unwrap_or_default(),
    };
    let entry =
        |key: &str| entries.and_then(|all| all.get(key)).map_or(Serde::Null, |value| value.as_str().into());
    let extra = extra_of(&kept);
    let token = kept.get("concurrencyToken").and_then(Serde::as_str).unwrap_or_default();
    let kept = Kept { field: &field, entry: &entry, extra: &extra };
    let version = version(token, entries);
    let mut resource = show(form.of, form.home, base, &version, &kept);
    refer_to_manager(&mut resource, form, base);
    if let Some(groups) = beside.groups.get(&row.rid) {
        let groups: Vec<Serde> = groups.iter().map(|(id, name)| {
            json!({ "value": id.to_string(), "$ref": format!("{base}/Groups/{id}"), "display": name, "type": "direct" })
        }).collect();
        resource.insert("groups".into(), groups.into());
    }
    resource
}

/// The version of a user: the row's token, which its own fields alone change, and a digest of the entries beside it.
fn version(token: &str, entries: Option<&Entries>) -> String {
    let Some(entries) = entries.filter(|entries| !entries.is_empty()) else { return token.to_owned() };
    let ordered: BTreeMap<&String, &String> = entries.iter().collect();
    let digest = etag(json!(ordered).to_string().as_bytes());
    format!("{token}.{}", digest.trim_matches('"'))
}

/// Checks `If-Match`, which names the version of the whole user.
///
/// # Errors
/// It names another one.
pub fn check_version(call: &Call, resource: &Resource) -> Result<(), Problem> {
    let version = version_of(resource).unwrap_or_default();
    call.request.preconditions.judge(version.trim_start_matches("W/"), None).map(|_| ())
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
fn extra_of(kept: &Resource) -> Resource {
    let text = kept.get(User::SCIM_EXTRA.field().wire()).and_then(Serde::as_str);
    match text.and_then(|text| read_json(text.as_bytes()).ok()).map(|json| json.to_serde()) {
        Some(Serde::Object(extra)) => extra,
        _ => Resource::new(),
    }
}

/// The time in an id of version 7 (RFC 9562); other ids tell none.
fn created(kept: &Resource) -> Option<Timestamp> {
    let id = Uuid::try_parse(kept.get("id")?.as_str()?).ok()?;
    let (seconds, nanoseconds) = (id.get_version_num() == 7).then(|| id.get_timestamp()).flatten()?.to_unix();
    i64::try_from(seconds).ok().map(|seconds| Timestamp(seconds * 1000 + i64::from(nanoseconds / 1_000_000)))
}

fn time(moment: Timestamp) -> Serde {
    let mut text = Vec::new();
    format_timestamp(moment, &mut text);
    String::from_utf8(text).unwrap_or_default().into()
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
    let shown = resource_of(call, tx, form, row, Some(&selection))?;
    Ok(tell(call, form, shown, &selection, status))
}

/// Answers with the user whom the path names.
///
/// # Errors
/// There is none that the directory sees.
pub fn answer_named(call: &mut Call, tx: &mut Tx<'_>, form: Form, id: Uuid) -> Result<Answer, Problem> {
    let selection = selection_of(call, form)?;
    let (row, beside) = beside::find(&call.context, tx, (form, id), wants_groups(form, &selection))?;
    let shown = one(&call.context, (form, &base_of(call)), &row, &beside);
    Ok(tell(call, form, shown, &selection, 200))
}

/// Answers with a user who was created just now: in no group, and with these profile entries. Nothing is read for it.
///
/// # Errors
/// The parameters are wrong.
pub fn answer_new(call: &mut Call, form: Form, row: &StoredRow, entries: Entries) -> Result<Answer, Problem> {
    let selection = selection_of(call, form)?;
    let mut beside = Beside::default();
    beside.entries.insert(row.rid, entries);
    let shown = one(&call.context, (form, &base_of(call)), row, &beside);
    Ok(tell(call, form, shown, &selection, 201))
}

fn tell(call: &mut Call, form: Form, mut resource: Resource, selection: &Selection, status: u16) -> Answer {
    let answer = begin(call, form, &resource, status);
    selection.apply(&mut resource);
    write(&resource, &mut call.answer.bytes);
    answer
}

/// Writes a resource as JSON.
pub fn write(resource: &Resource, out: &mut Vec<u8>) {
    // memory takes whatever is written to it
    let _ = serde_json::to_writer(out, resource);
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
