//! What a directory reaches: what tokens of its line made, or all; and nobody who administers.

use std::sync::LazyLock;

use chancery_application::roles_of_people;
use chancery_record::Value;
use chancery_resource::{
    Call, Context, Problem, ProblemKind, Provisioner, Relation, Sql, StoreError, StoredRow, Tx, load_by,
    role_condition, select_key,
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

/// The row that the path names.
///
/// # Errors
/// There is none that the directory sees.
pub fn find(call: &Call, tx: &mut Tx<'_>, form: Form) -> Result<StoredRow, Problem> {
    let found = load_by(&call.context, tx, form.shape, None, &select(call, form)?);
    found.map_err(|problem| named(form, problem))
}

/// The statement that selects the row that the path names.
///
/// # Errors
/// The path names none.
pub fn select(call: &Call, form: Form) -> Result<Sql, Problem> {
    let id = Uuid::try_parse(call.request.parameter(0)).map_err(|_| Problem::not_found(form.of.name))?;
    let mut sql = select_key(&call.context, form.shape, None, Value::Id(id));
    add_reach(&mut sql, form, &call.context, "t");
    Ok(sql)
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
    let administers = match form.home {
        Home::Store => {
            let store = context.scope.of_store()?;
            let groups = groups_above(tx, store.number, id)?;
            has_role(tx, store.id, id)? || groups_have_role(tx, store.id, &groups)?
        }
        Home::Provider => {
            let carried = roles_of_people(tx, &[id])?;
            carried.iter().any(|carried| !carried.role.line().permits.is_empty())
        }
    };
    if administers { Err(refused("The user holds a role here.")) } else { Ok(()) }
}

/// Refuses to write the members of a group that has an administrator's role, itself or by a group above it.
///
/// # Errors
/// It has one.
pub fn spare_role_group(context: &Context, tx: &mut Tx<'_>, form: Form, id: Uuid) -> Result<(), Problem> {
    let administers = match form.home {
        Home::Store => {
            let store = context.scope.of_store()?;
            let groups = above(tx, store.number, id)?;
            groups_have_role(tx, store.id, &groups)?
        }
        Home::Provider => is_assigned(tx, id)?,
    };
    if administers { Err(refused("The group gives its members a role here.")) } else { Ok(()) }
}

/// The condition that a role lets its holder do something.
static ADMINISTERS: LazyLock<String> =
    LazyLock::new(|| role_condition("r.role_type", |role| !role.permits.is_empty()));

fn is_assigned(tx: &mut Tx<'_>, principal: Uuid) -> Result<bool, StoreError> {
    let text =
        format!("SELECT 1 FROM role_assignment r WHERE r.principal_id = ?1 AND {} LIMIT 1", *ADMINISTERS);
    Ok(tx.one(&text, &[principal.into()], |_| Ok(()))?.is_some())
}

fn has_role(tx: &mut Tx<'_>, instance: Uuid, user: Uuid) -> Result<bool, StoreError> {
    let text = format!(
        "SELECT 1 FROM application_identity i JOIN application_user u ON u.rid = i.application_user_rid \
         JOIN role_assignment r ON r.principal_id = u.id WHERE i.idp_instance_id = ?1 AND i.subject = ?2 AND {} LIMIT 1",
        *ADMINISTERS
    );
    Ok(tx.one(&text, &[instance.into(), user.to_string().into()], |_| Ok(()))?.is_some())
}

/// The groups that a user is in, at any depth.
fn groups_above(tx: &mut Tx<'_>, store: i64, user: Uuid) -> Result<Vec<Uuid>, StoreError> {
    let text = "WITH RECURSIVE above (rid) AS (SELECT m.group_rid FROM user_account s JOIN group_member m ON m.user_rid = s.rid \
        WHERE s.store = ?1 AND s.id = ?2 UNION SELECT e.parent_rid FROM group_edge e JOIN above a ON a.rid = e.child_rid) \
        SELECT g.id FROM user_group g JOIN above a ON a.rid = g.rid";
    ids(tx, text, &[store.into(), user.into()])
}

/// A group and those above it.
fn above(tx: &mut Tx<'_>, store: i64, group: Uuid) -> Result<Vec<Uuid>, StoreError> {
    let text = "WITH RECURSIVE above (rid) AS (SELECT g.rid FROM user_group g WHERE g.store = ?1 AND g.id = ?2 \
        UNION SELECT e.parent_rid FROM group_edge e JOIN above a ON a.rid = e.child_rid) \
        SELECT g.id FROM user_group g JOIN above a ON a.rid = g.rid";
    ids(tx, text, &[store.into(), group.into()])
}

fn ids(tx: &mut Tx<'_>, text: &str, parameters: &[Value]) -> Result<Vec<Uuid>, StoreError> {
    let mut found = Vec::new();
    tx.query(text, parameters, |row| {
        found.push(row.id(0)?);
        Ok(())
    })?;
    Ok(found)
}

fn groups_have_role(tx: &mut Tx<'_>, instance: Uuid, groups: &[Uuid]) -> Result<bool, StoreError> {
    for chunk in groups.chunks(chancery_resource::LIST) {
        let text = "SELECT 1 FROM application_group_identity i JOIN application_group p ON p.rid = i.application_group_rid \
            JOIN role_assignment r ON r.principal_id = p.id WHERE i.idp_instance_id = ";
        let mut sql = Sql::new(text).bind(instance).push(" AND i.subject IN ");
        sql.add_list(chunk.iter().map(|group| group.to_string().into()));
        sql.add(&format!(" AND {} LIMIT 1", *ADMINISTERS));
        if tx.one(&sql.text, &sql.parameters, |_| Ok(()))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
