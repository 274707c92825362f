//! Rendering of rows as SCIM resources.

use std::collections::BTreeMap;

use chancery_record::{Json, Timestamp, format_timestamp, read_json};
use chancery_resource::{Answer, Call, Context, Problem, StoredRow, Tx, etag, shown_members};
use chancery_scim::{Fields, Resource, Selection, StoredResource, fields_of, read_resource, show};
use chancery_userstore::user::User;
use serde_json::{Value as Serde, json};
use uuid::Uuid;

use crate::{
    form::Form,
    related::{self, Entries, RelatedData},
};

/// How many path segments the base address of an instance has: `/api/scim/v2/{instance}`.
const BASE: usize = 5;

/// The base address, as the caller named the instance.
pub fn base_of(call: &Call) -> String {
    let path = call.request.address.split('?').next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').take(BASE).collect();
    format!("{}{}", call.context.app.public_url, segments.join("/"))
}

/// The attributes selected by a call's parameters.
///
/// # Errors
/// Both parameters, or too many names.
pub fn selection_of(call: &Call, form: Form) -> Result<Selection, Problem> {
    let query = |name| call.request.query(name);
    Ok(Selection::read(form.of, form.target, query("attributes"), query("excludedAttributes"))?)
}

/// Renders rows, with their related data.
pub struct Renderer {
    form: Form,
    base: String,
    related: RelatedData,
}

impl Renderer {
    /// Reads the related data of rows.
    pub fn of(
        call: &Call,
        tx: &mut Tx<'_>,
        form: Form,
        rows: &[StoredRow],
        selection: Option<&Selection>,
    ) -> Result<Self, Problem> {
        let has_groups = selection.is_some_and(|selection| includes_groups(form, selection));
        let related = RelatedData::of(call, tx, form, rows, has_groups)?;
        Ok(Self { form, base: base_of(call), related })
    }

    /// Renders one of the rows, without members of a group.
    pub fn render(&self, context: &Context, row: &StoredRow) -> Resource {
        render_row(context, self.form, &self.base, row, &self.related)
    }
}

/// Renders a row, without members of a group.
pub fn resource_of(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    selection: Option<&Selection>,
) -> Result<Resource, Problem> {
    Ok(Renderer::of(call, tx, form, std::slice::from_ref(row), selection)?.render(&call.context, row))
}

/// Whether the response includes the groups of users.
fn includes_groups(form: Form, selection: &Selection) -> bool {
    let groups = form.of.find(form.of.core, form.target, "groups");
    groups.is_some_and(|groups| selection.includes(form.of.core, groups))
}

fn render_row(context: &Context, form: Form, base: &str, row: &StoredRow, related: &RelatedData) -> Resource {
    let members = shown_members(context, form.shape, &row.values);
    let entries = related.entries.get(&row.rid);
    let field = |name: &str| match name {
        // the number of an entry is its time in microseconds
        "lastEntry" if row.last_entry > 0 => time(Timestamp(row.last_entry / 1000)),
        "createdOn" | "lastEntry" => created(&members).map_or(Serde::Null, time),
        _ => members.get(name).cloned().unwrap_or_default(),
    };
    let entry =
        |key: &str| entries.and_then(|all| all.get(key)).map_or(Serde::Null, |value| value.as_str().into());
    let extra = extra_of(&members);
    let token = members.get("concurrencyToken").and_then(Serde::as_str).unwrap_or_default();
    let stored = StoredResource { field: &field, entry: &entry, extra: &extra };
    let version = version(token, entries);
    let mut resource = show(form.of, form.target, base, &version, &stored);
    add_manager_ref(&mut resource, form, base);
    if let Some(groups) = related.groups.get(&row.rid) {
        let groups: Vec<Serde> = groups.iter().map(|(id, name)| {
            json!({ "value": id.to_string(), "$ref": format!("{base}/Groups/{id}"), "display": name, "type": "direct" })
        }).collect();
        resource.insert("groups".into(), groups.into());
    }
    resource
}

/// The version of a user: the row's token, which only its own fields change, and a digest of the profile
/// entries.
fn version(token: &str, entries: Option<&Entries>) -> String {
    let Some(entries) = entries.filter(|entries| !entries.is_empty()) else { return token.to_owned() };
    let ordered: BTreeMap<&String, &String> = entries.iter().collect();
    let digest = etag(json!(ordered).to_string().as_bytes());
    format!("{token}.{}", digest.trim_matches('"'))
}

/// Checks `If-Match`, which has the version of the whole user.
///
/// # Errors
/// Another version.
pub fn check_version(call: &Call, resource: &Resource) -> Result<(), Problem> {
    let version = version_of(resource).unwrap_or_default();
    call.request.preconditions.evaluate(version.trim_start_matches("W/"), None).map(|_| ())
}

/// Adds the `$ref` of a manager.
fn add_manager_ref(resource: &mut Resource, form: Form, base: &str) {
    for schema in form.of.extensions {
        let manager = resource.get_mut(schema.urn).and_then(|own| own.get_mut("manager"));
        let Some(Serde::Object(manager)) = manager else { continue };
        if let Some(id) = manager.get("value").and_then(Serde::as_str) {
            let address = format!("{base}/Users/{id}");
            manager.insert("$ref".into(), address.into());
        }
    }
}

/// The attributes that are stored as they were sent.
fn extra_of(members: &Resource) -> Resource {
    let text = members.get(User::SCIM_EXTRA.field().wire()).and_then(Serde::as_str);
    match text.and_then(|text| read_json(text.as_bytes()).ok()).map(|json| json.to_serde()) {
        Some(Serde::Object(extra)) => extra,
        _ => Resource::new(),
    }
}

/// The time in an id of version 7 (RFC 9562); `None` for other ids.
fn created(members: &Resource) -> Option<Timestamp> {
    let id = Uuid::try_parse(members.get("id")?.as_str()?).ok()?;
    let (seconds, nanoseconds) = (id.get_version_num() == 7).then(|| id.get_timestamp()).flatten()?.to_unix();
    i64::try_from(seconds).ok().map(|seconds| Timestamp(seconds * 1000 + i64::from(nanoseconds / 1_000_000)))
}

fn time(moment: Timestamp) -> Serde {
    let mut text = Vec::new();
    format_timestamp(moment, &mut text);
    String::from_utf8(text).unwrap_or_default().into()
}

/// The fields of a rendered row, for comparison with a request.
///
/// # Errors
/// The row holds an invalid value.
pub fn fields_in(form: Form, resource: &Resource) -> Result<Fields, Problem> {
    Ok(fields_of(form.of, form.target, resource)?)
}

/// Reads the resource in a request's body.
///
/// # Errors
/// All invalid members.
pub fn body_of(call: &Call, form: Form) -> Result<Resource, Problem> {
    Ok(read_resource(form.of, form.target, call.request.body().unwrap_or(&Json::Null))?)
}

/// Retains the `externalId` if the body of a PUT omits it: not all directories repeat it, and people are
/// identified by it.
pub fn with_external_id(mut body: Resource, before: &Resource) -> Resource {
    if let (None, Some(current)) = (body.get("externalId"), before.get("externalId")) {
        body.insert("externalId".into(), current.clone());
    }
    body
}

/// The version of a resource, as a weak entity tag.
pub fn version_of(resource: &Resource) -> Option<String> {
    Some(resource.get("meta")?.get("version")?.as_str()?.to_owned())
}

/// Answers with one resource.
pub fn answer(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    status: u16,
) -> Result<Answer, Problem> {
    let selection = selection_of(call, form)?;
    let resource = resource_of(call, tx, form, row, Some(&selection))?;
    Ok(answer_with(call, form, resource, &selection, status))
}

/// Answers with the user of this id.
///
/// # Errors
/// Not found within the directory's reach.
pub fn answer_named(call: &mut Call, tx: &mut Tx<'_>, form: Form, id: Uuid) -> Result<Answer, Problem> {
    let selection = selection_of(call, form)?;
    let (row, related) = related::find(&call.context, tx, form, id, includes_groups(form, &selection))?;
    let resource = render_row(&call.context, form, &base_of(call), &row, &related);
    Ok(answer_with(call, form, resource, &selection, 200))
}

/// Answers with a user who was just created: in no group, and with these profile entries. Nothing is read for
/// it.
///
/// # Errors
/// Invalid parameters.
pub fn answer_new(call: &mut Call, form: Form, row: &StoredRow, entries: Entries) -> Result<Answer, Problem> {
    let selection = selection_of(call, form)?;
    let mut related = RelatedData::default();
    related.entries.insert(row.rid, entries);
    let resource = render_row(&call.context, form, &base_of(call), row, &related);
    Ok(answer_with(call, form, resource, &selection, 201))
}

fn answer_with(
    call: &mut Call,
    form: Form,
    mut resource: Resource,
    selection: &Selection,
    status: u16,
) -> Answer {
    let answer = begin(call, form, &resource, status);
    selection.apply(&mut resource);
    write(&resource, &mut call.answer.bytes);
    answer
}

/// Writes a resource as JSON.
pub fn write(resource: &Resource, out: &mut Vec<u8>) {
    // writing to memory does not fail
    let _ = serde_json::to_writer(out, resource);
}

/// The response for a resource, with its version, and its location if it is new.
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
