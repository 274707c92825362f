//! Refuses writes to rows that carry roles which the caller does not hold: see [`Protection`].

use chancery_record::{Field, FieldError, FieldErrors, Value};
use chancery_store::Tx;
use uuid::Uuid;

use crate::{
    CarriedRole, Context, LIST, OwnerRow, Personal, Problem, ProblemKind, Protection, Reach, Shape,
    declare::protection::Authority, read::emit::StoredRow,
};

/// A row that is about to be written, by the id of the row whose roles count, and its place in the body.
pub struct Target {
    /// The JSON Pointer of its element.
    pub base: String,
    /// The id: its own, or that of the person whom it belongs to.
    pub id: Uuid,
}

impl Shape {
    /// The protection of what an operation of its own is about: that of its rows, or of the people whom they belong to.
    pub(super) fn protection(&self) -> Option<&'static Protection> {
        let shape = self.base();
        if shape.writes.is_open {
            return None;
        }
        let person = match (shape.personal, &shape.owner) {
            (Personal::Of(person, _), _) => person.writes.protection,
            (_, Some(owner)) => owner.shape.writes.protection,
            _ => None,
        };
        shape.writes.protection.or(person)
    }

    /// The protection of its rows, its own or that of the person or client app which a row belongs to, and the id by which
    /// roles are found.
    fn protected(&self, values: &[Value], owner: Option<&OwnerRow>) -> Option<(&'static Protection, Uuid)> {
        if self.writes.is_open {
            return None;
        }
        if let Some(protection) = self.writes.protection {
            return Some((protection, id_of(self, values)?));
        }
        if let Reach::Of(field, of) = self.reach
            && let Some(protection) = of.base().writes.protection
        {
            return Some((protection, field.id(values)?));
        }
        match (self.personal, &self.owner, owner) {
            (Personal::Of(person, field), ..) => Some((person.writes.protection?, field.id(values)?)),
            (_, Some(of), Some(owner)) => Some((of.shape.writes.protection?, owner.id)),
            _ => None,
        }
    }
}

fn id_of(shape: &Shape, values: &[Value]) -> Option<Uuid> {
    match values.get(shape.plan().key) {
        Some(Value::Id(id)) => Some(*id),
        _ => None,
    }
}

/// Refuses a new row that belongs to a person with a role that counts. A new person carries none.
///
/// # Errors
/// 403 with the role and the id.
pub fn check_new(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    values: &[Value],
) -> Result<(), Problem> {
    if shape.writes.protection.is_some() {
        return Ok(());
    }
    check_one(context, tx, shape.protected(values, owner))
}

/// Refuses to change what is protected of a row.
///
/// # Errors
/// 403 with the role and the id.
pub fn check_change(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    values: &[Value],
    event: &str,
) -> Result<(), Problem> {
    if !changes_protected(shape, was, values, event) {
        return Ok(());
    }
    check_one(context, tx, shape.protected(&was.values, was.owner.as_ref()))
}

/// Refuses to delete a row.
///
/// # Errors
/// 403 with the role and the id.
pub fn check_deletion(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
) -> Result<(), Problem> {
    if shape.writes.is_removable {
        return Ok(());
    }
    check_one(context, tx, shape.protected(&was.values, was.owner.as_ref()))
}

/// Refuses what is done to a row that belongs to one with a role that counts, and that is written beside this.
///
/// # Errors
/// 403 with the role and the id.
pub fn check_part(context: &Context, tx: &mut Tx<'_>, shape: &Shape, was: &StoredRow) -> Result<(), Problem> {
    if shape.writes.protection.is_some() {
        return Ok(());
    }
    check_one(context, tx, shape.protected(&was.values, was.owner.as_ref()))
}

/// Whether a change writes what is protected. A change that is announced as another event than an update is an act of its own
/// on the row, such as a reset password, whichever fields it writes.
fn changes_protected(shape: &Shape, was: &StoredRow, values: &[Value], event: &str) -> bool {
    let Some(protection) = shape.writes.protection else { return true };
    let token = shape.plan().token;
    let is_open = |index: usize, field: &Field, now: &Value| {
        let is_among = |fields: &[&'static Field]| fields.iter().any(|one| one.is(field));
        Some(index) == token
            || is_among(protection.open)
            || (*now == Value::Bool(false) && is_among(protection.may_be_switched_off))
    };
    let mut fields = shape.fields.iter().zip(&was.values).zip(values).enumerate();
    event != "updated"
        || fields.any(|(index, ((field, before), now))| before != now && !is_open(index, field, now))
}

/// Refuses to change rows of a batch that carry roles which count, each with its place in the body.
///
/// # Errors
/// 403 with each such element.
pub fn check_changes<'a>(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: impl Iterator<Item = (String, &'a StoredRow, &'a [Value])>,
) -> Result<(), Problem> {
    let shape = shape.base();
    let written = rows.filter(|(_, was, values)| changes_protected(shape, was, values, "updated"));
    check_rows(context, tx, shape, written.map(|(base, was, _)| (base, was)))
}

/// Refuses to delete rows of a batch that carry roles which count, each with its place in the body.
///
/// # Errors
/// 403 with each such element.
pub fn check_deletions<'a>(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: impl Iterator<Item = (String, &'a StoredRow)>,
) -> Result<(), Problem> {
    let shape = shape.base();
    if shape.writes.is_removable { Ok(()) } else { check_rows(context, tx, shape, rows) }
}

fn check_rows<'a>(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: impl Iterator<Item = (String, &'a StoredRow)>,
) -> Result<(), Problem> {
    let (mut protection, mut targets) = (None, Vec::new());
    for (base, row) in rows {
        if let Some((found, id)) = shape.protected(&row.values, row.owner.as_ref()) {
            protection = Some(found);
            targets.push(Target { base, id });
        }
    }
    protection.map_or(Ok(()), |protection| check(context, tx, protection, targets))
}

fn check_one(
    context: &Context,
    tx: &mut Tx<'_>,
    protected: Option<(&'static Protection, Uuid)>,
) -> Result<(), Problem> {
    let Some((protection, id)) = protected else { return Ok(()) };
    check(context, tx, protection, vec![Target { base: String::new(), id }])
}

/// Refuses to write rows that carry roles which count. Whoever was looked at before in this transaction is not looked at again.
///
/// # Errors
/// 403 with each such row.
pub fn check(
    context: &Context,
    tx: &mut Tx<'_>,
    protection: &Protection,
    mut targets: Vec<Target>,
) -> Result<(), Problem> {
    if context.authority == Authority::Own {
        return Ok(());
    }
    // a client app and a user may have the same id
    let by = std::ptr::from_ref(protection).addr();
    targets.retain(|target| !context.cleared.borrow().contains(&(by, target.id)));
    let ids: Vec<Uuid> = targets.iter().map(|target| target.id).collect();
    let mut counting: Vec<CarriedRole> = Vec::new();
    for chunk in ids.chunks(LIST) {
        let found = (protection.find)(context, tx, chunk)?;
        counting.extend(found.into_iter().filter(|carried| context.authority.is_below(carried)));
    }
    if counting.is_empty() {
        context.cleared.borrow_mut().extend(ids.into_iter().map(|id| (by, id)));
        return Ok(());
    }
    let role_of =
        |id: Uuid| counting.iter().filter(|carried| carried.row == id).map(|carried| carried.role).min();
    let mut errors = FieldErrors::default();
    for Target { base, id } in targets.into_iter().filter(|target| !target.base.is_empty()) {
        if let Some(role) = role_of(id) {
            errors.note(|| FieldError::new(base, format!("{id} carries the role {}", role.name())));
        }
    }
    Err(refusal(protection.through, &counting, errors))
}

fn refusal(through: &str, counting: &[CarriedRole], errors: FieldErrors) -> Problem {
    let highest = counting.iter().min_by_key(|carried| carried.role);
    let detail = highest.map_or_else(String::new, |carried| {
        let role = carried.role.name();
        format!(
            "{} carries the role {role}, {through}, and your roles do not cover that. Somebody who holds it can do this.",
            carried.row
        )
    });
    let problem = Problem::new(ProblemKind::Forbidden, detail);
    let problem = match highest {
        Some(carried) => {
            problem.with_member("role", carried.role.name()).with_member("id", carried.row.to_string())
        }
        None => problem,
    };
    Problem { errors, ..problem }
}
