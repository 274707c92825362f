//! Groups: read, created, replaced, changed and deleted by a directory.

mod members;

use chancery_application::ApplicationGroup;
use chancery_resource::{Answer, Call, Problem, StoredRow, Tx, check_if_match, delete_one};
use chancery_scim::{Members, Patch, Selection, Target, members_of};
use chancery_userstore::group::Group;

use crate::{
    form::Form,
    reach::{self, directory, forbid_role_group},
    render::{self, begin, body_of, fields_in, resource_of, selection_of, version_of, with_external_id},
    write::{self, Body, changes, new_body},
};

/// The most members of a group that is returned after a change.
const MAX_RETURNED: usize = 1000;

/// Reads a group.
///
/// # Errors
/// Not found.
pub fn read(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let row = reach::find_in_path(call, tx, form)?;
    answer(call, tx, form, &row, 200)
}

/// Creates a group.
///
/// # Errors
/// What is wrong with the body.
pub fn create(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let resource = body_of(call, form)?;
    let mut body = new_body(&fields_in(form, &resource)?);
    match form.target {
        Target::Store => {
            let owner = directory(&call.context).owner.map(|owner| owner.to_string());
            body.insert(Group::SCIM_OWNER.field().wire().into(), owner.into());
        }
        Target::Provider => {
            let instance = directory(&call.context).owner.unwrap_or_default();
            let text = "SELECT subscription_id FROM idp_instance WHERE id = ?1";
            let subscription = tx.one(text, &[instance.into()], |row| row.id(0))?.unwrap_or_default();
            let fields =
                (ApplicationGroup::SUBSCRIPTION_ID.field(), ApplicationGroup::IDP_INSTANCE_ID.field());
            body.insert(fields.0.wire().into(), subscription.to_string().into());
            body.insert(fields.1.wire().into(), instance.to_string().into());
            set_provisioned_name(&mut body);
        }
    }
    let row = write::create(call, tx, body)?;
    let row = write::read_back(call, tx, form, &row)?;
    members::change(call, tx, form, &row, &members_of(&resource))?;
    answer(call, tx, form, &row, 201)
}

/// Sets the name that is unique among the groups provisioned at the instance.
fn set_provisioned_name(body: &mut Body) {
    if let Some(name) = body.get(ApplicationGroup::NAME.field().wire()).cloned() {
        body.insert(ApplicationGroup::PROVISIONED_NAME.field().wire().into(), name);
    }
}

/// Replaces a group, with its members.
///
/// # Errors
/// Not found; an invalid body.
pub fn replace(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let was = reach::find_in_path(call, tx, form)?;
    let resource = body_of(call, form)?;
    let members = members_of(&resource);
    let before = resource_of(call, tx, form, &was, None)?;
    let resource = with_external_id(resource, &before);
    let body = changes(&fields_in(form, &before)?, &fields_in(form, &resource)?);
    rewrite(call, tx, form, was, body, &members)
}

/// Changes a group (RFC 7644, section 3.5.2).
///
/// # Errors
/// Not found; the first operation that fails.
pub fn patch(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let patch = Patch::read(form.of, form.target, call.request.body()?)?;
    let was = reach::find_in_path(call, tx, form)?;
    let before = resource_of(call, tx, form, &was, None)?;
    let patched = patch.apply(&before)?;
    let body = changes(&fields_in(form, &before)?, &fields_in(form, &patched.resource)?);
    rewrite(call, tx, form, was, body, &patched.members)
}

fn rewrite(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    was: StoredRow,
    mut body: Body,
    members: &Members,
) -> Result<Answer, Problem> {
    check_if_match(call, tx, form.shape, &was)?;
    let id = was.as_owner(form.shape)?.id;
    if !members.is_empty() {
        members::guard_emptying(call, tx, form, &was, members)?;
    }
    let mut row = was;
    if !body.is_empty() {
        if form.target == Target::Provider {
            set_provisioned_name(&mut body);
        }
        row = write::change(call, tx, form, &row, body)?;
    }
    if !members.is_empty() && members::change(call, tx, form, &row, members)? {
        forbid_role_group(&call.context, tx, form, id)?;
    }
    if call.request.dry_run {
        return answer_changed(call, tx, form, &row);
    }
    version(call, tx, form, &row)
}

/// Returns a group after the commit of its change, see [`answer_changed`]: reading all members while changing some blocks
/// concurrent changes.
///
/// # Errors
/// The group was deleted meanwhile.
pub fn changed(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let row = reach::find_in_path(call, tx, form)?;
    answer_changed(call, tx, form, &row)
}

/// Deletes a group.
///
/// # Errors
/// Not found; the group gives a role.
pub fn delete(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let row = reach::find_in_path(call, tx, form)?;
    check_if_match(call, tx, form.shape, &row)?;
    forbid_role_group(&call.context, tx, form, row.as_owner(form.shape)?.id)?;
    delete_one(&mut call.context, tx, form.shape, row)?;
    Ok(Answer::new(call.request.op.status))
}

/// Answers with a group, its members in chunks.
fn answer(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    status: u16,
) -> Result<Answer, Problem> {
    let selection = selection_of(call, form)?;
    let resource = resource_of(call, tx, form, row, None)?;
    let answer = begin(call, form, &resource, status);
    // the headers of a streamed response come first
    let tag = call.answer.tag.clone().map(|tag| ("etag", tag));
    call.answer.begin(status, answer.headers.iter().cloned().chain(tag).collect());
    write(call, tx, form, row, resource, &selection)?;
    Ok(answer)
}

/// Answers a change: with the group, unless it has many members and no attributes were requested.
fn answer_changed(call: &mut Call, tx: &mut Tx<'_>, form: Form, row: &StoredRow) -> Result<Answer, Problem> {
    let has_selection =
        ["attributes", "excludedAttributes"].iter().any(|name| call.request.query(name).is_some());
    if has_selection || members::count(tx, form, row, MAX_RETURNED + 1)? <= MAX_RETURNED {
        return answer(call, tx, form, row, 200);
    }
    version(call, tx, form, row)
}

/// Answers with the version alone.
fn version(call: &Call, tx: &mut Tx<'_>, form: Form, row: &StoredRow) -> Result<Answer, Problem> {
    let resource = resource_of(call, tx, form, row, None)?;
    let mut answer = Answer::new(204);
    answer.headers.extend(version_of(&resource).map(|version| ("etag", version)));
    Ok(answer)
}

/// Writes a group as JSON.
pub fn write(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    mut resource: chancery_scim::Resource,
    selection: &Selection,
) -> Result<(), Problem> {
    selection.apply(&mut resource);
    let out = &mut call.answer.bytes;
    render::write(&resource, out);
    let attribute = form.of.find(form.of.core, form.target, "members");
    let includes = attribute.is_some_and(|members| selection.includes(form.of.core, members));
    if includes {
        out.pop();
        members::write(call, tx, form, row, selection)?;
        call.answer.bytes.push(b'}');
    }
    Ok(())
}
