//! The reach of a directory: resources that tokens of its line created, or all, except administrators.

use chancery_application::{roles_of_groups, roles_of_people, roles_of_users};
use chancery_record::Value;
use chancery_resource::{
    Call, CarriedRole, Context, Problem, ProblemKind, Provisioner, Relation, Sql, StoreError, StoredRow, Tx,
    load_by, other_role_condition, select_key,
};
use chancery_scim::Target;
use uuid::Uuid;

use crate::form::Form;

/// The calling directory.
pub fn directory(context: &Context) -> Provisioner {
    context.provisioner.as_deref().cloned().unwrap_or_default()
}

/// Adds the condition on rows that the directory sees; `alias` is the table.
pub fn add_reach(sql: &mut Sql, form: Form, context: &Context, alias: &str) {
    match (form.target, directory(context).only()) {
        (Target::Store, Some(owner)) => {
            sql.add(&format!(" AND {alias}.scim_owner = "));
            sql.add_bound(owner);
        }
        (Target::Store, None) => {}
        // persons that no directory provisioned are out of reach
        (Target::Provider, _) => {
            let name = if form.is_of_users() { "user_name_key" } else { "provisioned_name_key" };
            sql.add(&format!(" AND {alias}.{name} IS NOT NULL"));
        }
    }
}

/// Adds the condition on rows of a relation that a filter names, in which `o` is their table: the holders of a group or
/// user outside of the reach are not revealed. Profile entries are the user's own.
pub fn add_linked_reach(sql: &mut Sql, form: Form, context: &Context, relation: &Relation) {
    let Some(linked) =
        Form::at(form.target).into_iter().find(|form| form.shape.table == relation.target.table)
    else {
        return;
    };
    if form.target == Target::Provider {
        sql.add(" AND o.idp_instance_id = ");
        sql.add_bound(directory(context).owner.unwrap_or_default());
    }
    add_reach(sql, linked, context, "o");
}

/// The id that the path names.
///
/// # Errors
/// Not an id.
pub fn id_in_path(call: &Call, form: Form) -> Result<Uuid, Problem> {
    Uuid::try_parse(call.request.parameter(0)).map_err(|_| Problem::not_found(form.of.name))
}

/// The row with this id.
///
/// # Errors
/// Not found within the directory's reach.
pub fn find(context: &Context, tx: &mut Tx<'_>, form: Form, id: Uuid) -> Result<StoredRow, Problem> {
    let loaded = load_by(context, tx, form.shape, None, &select(context, form, id));
    loaded.map_err(|problem| with_type(form, problem))
}

/// The row that the path names.
///
/// # Errors
/// Not found within the directory's reach.
pub fn find_in_path(call: &Call, tx: &mut Tx<'_>, form: Form) -> Result<StoredRow, Problem> {
    find(&call.context, tx, form, id_in_path(call, form)?)
}

/// The statement that selects the row with this id.
pub fn select(context: &Context, form: Form, id: Uuid) -> Sql {
    let mut sql = select_key(context, form.shape, None, Value::Id(id));
    add_reach(&mut sql, form, context, "t");
    sql
}

/// Names the resource type in a problem of 404.
pub fn with_type(form: Form, problem: Problem) -> Problem {
    if problem.status() == 404 { Problem::not_found(form.of.name) } else { problem }
}

/// The ids that are rows within the directory's reach.
pub fn visible(
    context: &Context,
    tx: &mut Tx<'_>,
    form: Form,
    ids: &[Uuid],
) -> Result<Vec<Uuid>, StoreError> {
    let mut visible = Vec::new();
    for chunk in ids.chunks(chancery_resource::LIST) {
        let table = form.shape.table;
        let mut sql = Sql::new(format!("SELECT t.id FROM {table} t WHERE "));
        match form.target {
            Target::Store => {
                sql.add("t.store = ");
                sql.add_bound(context.scope.store());
                if form.is_of_users() {
                    sql.add(" AND t.quarantined_on IS NULL");
                }
            }
            Target::Provider => {
                sql.add("t.idp_instance_id = ");
                sql.add_bound(directory(context).owner.unwrap_or_default());
                if form.is_of_users() {
                    sql.add(" AND t.hidden_on IS NULL");
                }
            }
        }
        add_reach(&mut sql, form, context, "t");
        sql.add(" AND t.id IN ");
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            visible.push(row.id(0)?);
            Ok(())
        })?;
    }
    Ok(visible)
}

/// An operation that would give the directory an administrator's rights.
fn administrators_only(what: &str) -> Problem {
    let detail = format!("{what} An administrator does that, not a directory.");
    Problem::new(ProblemKind::Forbidden, detail)
}

/// Rejects writing the name, the address, the password or the state of an administrator, or deleting one.
///
/// # Errors
/// The user holds an administrator's role, or is in a group that has one.
pub fn forbid_administrator(context: &Context, tx: &mut Tx<'_>, form: Form, id: Uuid) -> Result<(), Problem> {
    let roles = match form.target {
        Target::Store => roles_of_users(context, tx, &[id])?,
        Target::Provider => roles_of_people(tx, &[id])?,
    };
    if permits_anything(&roles) { Err(administrators_only("The user holds a role here.")) } else { Ok(()) }
}

/// Rejects writing the members of a group that has an administrator's role, itself or by a group above it.
///
/// # Errors
/// The group has one.
pub fn forbid_role_group(context: &Context, tx: &mut Tx<'_>, form: Form, id: Uuid) -> Result<(), Problem> {
    let administers = match form.target {
        Target::Store => permits_anything(&roles_of_groups(context, tx, &[id])?),
        Target::Provider => is_assigned(tx, id)?,
    };
    if administers { Err(administrators_only("The group gives its members a role here.")) } else { Ok(()) }
}

/// Whether one of these roles permits anything.
fn permits_anything(carried: &[CarriedRole]) -> bool {
    carried.iter().any(|carried| !carried.role.line().permits.is_empty())
}

fn is_assigned(tx: &mut Tx<'_>, principal: Uuid) -> Result<bool, StoreError> {
    let administers = other_role_condition("r.role_type", |role| role.permits.is_empty());
    let text = format!("SELECT 1 FROM role_assignment r WHERE r.principal_id = ?1 AND {administers} LIMIT 1");
    Ok(tx.one(&text, &[principal.into()], |_| Ok(()))?.is_some())
}
