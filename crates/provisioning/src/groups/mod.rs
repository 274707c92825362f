//! Groups: read, created, replaced, changed and deleted by a directory.

mod members;

use chancery_application::ApplicationGroup;
use chancery_resource::{Answer, Call, Problem, StoredRow, Tx, check_if_match, delete_one};
use chancery_scim::{Home, Members, Patch, Selection, members_of};
use chancery_userstore::group::Group;

use crate::{
    form::Form,
    reach::{self, directory, spare_role_group},
    shown::{self, begin, body_of, fields_in, resource_of, selection_of, version_of, with_external_id},
    write::{self, Body, changes, new_body},
};

/// How many members a group has at most that an answer to a change shows.
const SHOWN: usize = 1000;

/// Reads a group.
///
/// # Errors
/// There is none.
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
    match form.home {
        Home::Store => {
            let owner = directory(&call.context).owner.map(|owner| owner.to_string());
            body.insert(Group::SCIM_OWNER.field().wire().into(), owner.into());
        }
        Home::Provider => {
            let instance = directory(&call.context).owner.unwrap_or_default();
            let text = "SELECT subscription_id FROM idp_instance WHERE id = ?1";
            let subscription = tx.one(text, &[instance.into()], |row| row.id(0))?.unwrap_or_default();
            let fields =
                (ApplicationGroup::SUBSCRIPTION_ID.field(), ApplicationGroup::IDP_INSTANCE_ID.field());
            body.insert(fields.0.wire().into(), subscription.to_string().into());
            body.insert(fields.1.wire().into(), instance.to_string().into());
            name_it(&mut body);
        }
    }
    let row = write::create(call, tx, body)?;
    let row = write::read_back(call, tx, form, &row)?;
    members::change(call, tx, form, &row, &members_of(&resource))?;
    answer(call, tx, form, &row, 201)
}

/// A group that a directory provisions has its name unique at the instance.
fn name_it(body: &mut Body) {
    if let Some(name) = body.get(ApplicationGroup::NAME.field().wire()).cloned() {
        body.insert(ApplicationGroup::PROVISIONED_NAME.field().wire().into(), name);
    }
}

/// Replaces a group, with its members.
///
/// # Errors
/// There is none; what is wrong with the body.
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
/// There is none; the first operation that cannot be done.
pub fn patch(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let patch = Patch::read(form.of, form.home, call.request.body()?)?;
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
        if form.home == Home::Provider {
            name_it(&mut body);
        }
        row = write::change(call, tx, form, &row, body)?;
    }
    if !members.is_empty() && members::change(call, tx, form, &row, members)? {
        spare_role_group(&call.context, tx, form, id)?;
    }
    if call.request.dry_run {
        return answer_changed(call, tx, form, &row);
    }
    version(call, tx, form, &row)
}

/// Answers a change after its commit, see [`answer_changed`]: whoever reads all members while changing some is in the
/// way of everybody else who does.
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
/// There is none; it gives a role.
pub fn delete(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let row = reach::find_in_path(call, tx, form)?;
    check_if_match(call, tx, form.shape, &row)?;
    spare_role_group(&call.context, tx, form, row.as_owner(form.shape)?.id)?;
    delete_one(&mut call.context, tx, form.shape, row)?;
    Ok(Answer::new(call.request.op.status))
}

/// Answers with a group, its members in pieces.
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
    // what is streamed has its headers first
    let tag = call.answer.tag.clone().map(|tag| ("etag", tag));
    call.answer.begin(status, answer.headers.iter().cloned().chain(tag).collect());
    write(call, tx, form, (row, resource), &selection)?;
    Ok(answer)
}

/// Answers a change: with the group, unless it has many members and nobody chose attributes.
fn answer_changed(call: &mut Call, tx: &mut Tx<'_>, form: Form, row: &StoredRow) -> Result<Answer, Problem> {
    let chooses = ["attributes", "excludedAttributes"].iter().any(|name| call.request.query(name).is_some());
    if chooses || members::count(tx, form, row, SHOWN + 1)? <= SHOWN {
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
///
/// # Errors
/// The store's.
pub fn write(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    (row, mut resource): (&StoredRow, chancery_scim::Resource),
    selection: &Selection,
) -> Result<(), Problem> {
    selection.apply(&mut resource);
    let out = &mut call.answer.bytes;
    shown::write(&resource, out);
    let attribute = form.of.find(form.of.core, form.home, "members");
    let wants = attribute.is_some_and(|members| selection.wants(form.of.core, members));
    if wants {
        out.pop();
        members::write(call, tx, form, row, selection)?;
        call.answer.bytes.push(b'}');
    }
    Ok(())
}
