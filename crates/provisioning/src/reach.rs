//! What a directory reaches: what tokens of its line made, or all; and nobody who administers.

use chancery_application::{roles_of_groups, roles_of_people, roles_of_users};
use chancery_record::Value;
use chancery_resource::{
    Call, CarriedRole, Context, Problem, ProblemKind, Provisioner, Relation, Sql, StoreError, StoredRow, Tx,
    load_by, role_condition, select_key,
};
use chancery_scim::Home;
use uuid::Uuid;

use crate::form::{Form, Operations};

/// The directory that calls.
pub fn directory(context: &Context) -> Provisioner {
    context.provisioner.as_deref().cloned().unwrap_or_default()
}

/// The condition on rows that the directory sees; `t` is the table.
pub fn add_reach(sql: &mut Sql, form: Form, context: &Context, alias: &str) {
    match (form.home, directory(context).only()) {
        (Home::Store, Some(owner)) => {
            sql.add(&format!(" AND {alias}.scim_owner = "));
            sql.add_bound(owner);
        }
        (Home::Store, None) => {}
        // whom nobody provisioned is not the directory's
        (Home::Provider, _) => {
            let name = if form.is_of_users() { "user_name_key" } else { "provisioned_name_key" };
            sql.add(&format!(" AND {alias}.{name} IS NOT NULL"));
        }
    }
}

/// Adds the condition on the rows of a set that a filter names, in which `o` is their table: of a group or user that the
/// directory does not see it is not told who has it. Profile entries are the user's own.
pub fn add_linked_reach(sql: &mut Sql, form: Form, context: &Context, relation: &Relation) {
    let mut forms = Operations::at(form.home).iter().map(|all| all.form);
    let Some(linked) = forms.find(|form| form.shape.table == relation.target.table) else { return };
    if form.home == Home::Provider {
        sql.add(" AND o.idp_instance_id = ");
        sql.add_bound(directory(context).owner.unwrap_or_default());
    }
    add_reach(sql, linked, context, "o");
}

/// The id that the path names.
///
/// # Errors
/// It is none.
pub fn id_in_path(call: &Call, form: Form) -> Result<Uuid, Problem> {
    Uuid::try_parse(call.request.parameter(0)).map_err(|_| Problem::not_found(form.of.name))
}

/// The row with this id.
///
/// # Errors
/// There is none that the directory sees.
pub fn find(context: &Context, tx: &mut Tx<'_>, form: Form, id: Uuid) -> Result<StoredRow, Problem> {
    let found = load_by(context, tx, form.shape, None, &select(context, form, id));
    found.map_err(|problem| named(form, problem))
}

/// The row that the path names.
///
/// # Errors
/// There is none that the directory sees.
pub fn find_in_path(call: &Call, tx: &mut Tx<'_>, form: Form) -> Result<StoredRow, Problem> {
    find(&call.context, tx, form, id_in_path(call, form)?)
}

/// The statement that selects the row with this id.
pub fn select(context: &Context, form: Form, id: Uuid) -> Sql {
    let mut sql = select_key(context, form.shape, None, Value::Id(id));
    add_reach(&mut sql, form, context, "t");
    sql
}

/// A problem that says of what type there is none.
pub fn named(form: Form, problem: Problem) -> Problem {
    if problem.status() == 404 { Problem::not_found(form.of.name) } else { problem }
}

/// Which of these ids are rows that the directory sees.
///
/// # Errors
/// The store's.
pub fn visible(
    context: &Context,
    tx: &mut Tx<'_>,
    form: Form,
    ids: &[Uuid],
) -> Result<Vec<Uuid>, StoreError> {
    let mut seen = Vec::new();
    for chunk in ids.chunks(chancery_resource::LIST) {
        let table = form.shape.table;
        let mut sql = Sql::new(format!("SELECT t.id FROM {table} t WHERE "));
        match form.home {
            Home::Store => {
                sql.add("t.store = ");
                sql.add_bound(context.scope.store());
                if form.is_of_users() {
                    sql.add(" AND t.quarantined_on IS NULL");
                }
            }
            Home::Provider => {
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
            seen.push(row.id(0)?);
            Ok(())
        })?;
    }
    Ok(seen)
}

/// What a directory never writes: it would administer by it.
fn refused(what: &str) -> Problem {
    let detail = format!("{what} An administrator does that, not a directory.");
    Problem::new(ProblemKind::Forbidden, detail)
}

/// Refuses to write the name, the address, the password or the state of a user who administers, or to delete the user.
///
/// # Errors
/// The user holds an administrator's role, or is in a group that has one.
pub fn spare_administrator(context: &Context, tx: &mut Tx<'_>, form: Form, id: Uuid) -> Result<(), Problem> {
    let carried = match form.home {
        Home::Store => roles_of_users(context, tx, &[id])?,
        Home::Provider => roles_of_people(tx, &[id])?,
    };
    if administers(&carried) { Err(refused("The user holds a role here.")) } else { Ok(()) }
}

/// Refuses to write the members of a group that has an administrator's role, itself or by a group above it.
///
/// # Errors
/// It has one.
pub fn spare_role_group(context: &Context, tx: &mut Tx<'_>, form: Form, id: Uuid) -> Result<(), Problem> {
    let administers = match form.home {
        Home::Store => administers(&roles_of_groups(context, tx, &[id])?),
        Home::Provider => is_assigned(tx, id)?,
    };
    if administers { Err(refused("The group gives its members a role here.")) } else { Ok(()) }
}

/// Whether one of these roles lets its holder do something.
fn administers(carried: &[CarriedRole]) -> bool {
    carried.iter().any(|carried| !carried.role.line().permits.is_empty())
}

fn is_assigned(tx: &mut Tx<'_>, principal: Uuid) -> Result<bool, StoreError> {
    let administers = role_condition("r.role_type", |role| !role.permits.is_empty());
    let text = format!("SELECT 1 FROM role_assignment r WHERE r.principal_id = ?1 AND {administers} LIMIT 1");
    Ok(tx.one(&text, &[principal.into()], |_| Ok(()))?.is_some())
}
