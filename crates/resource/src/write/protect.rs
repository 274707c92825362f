//! Refuses writes to rows that carry roles which the caller does not hold: see [`Protection`].

use chancery_record::{Field, FieldError, FieldErrors, Value};
use chancery_store::Tx;
use uuid::Uuid;

use crate::{
    CarriedBy, CarriedRole, Context, LIST, OwnerRow, Personal, Problem, ProblemKind, Protection, Reach,
    Shape, StoredRow, declare::event_name::EventName, write::change::UPDATED,
};

/// A row to be written, by the id of the row whose roles count, and its position in the body.
pub struct Target {
    /// The JSON Pointer of its element.
    pub base: String,
    /// The id: its own, or that of its person or setting.
    pub id: Uuid,
}

/// The protection of a row, and the id by which roles are found.
pub type Protector = (&'static Protection, Uuid);

impl Shape {
    /// The protection of a custom operation: that of its rows, or of the people who own them.
    pub(super) fn protection(&self) -> Option<&'static Protection> {
        self.base().carrier()?.writes.protection
    }

    /// The protectors of a row besides its own: those of its person, or of the row that limits its reach, of
    /// its parents, and of its store.
    fn protectors(&self, context: &Context, values: &[Value], owner: Option<&OwnerRow>) -> Vec<Protector> {
        let of_person = match (self.personal, &self.owner, owner) {
            (Personal::Of(person, field), ..) => person.writes.protection.zip(field.id(values)),
            (_, Some(of), Some(owner)) => of.shape.writes.protection.map(|protection| (protection, owner.id)),
            _ => None,
        };
        let reached = match self.reach {
            Reach::Of(field, of) if !self.parents.iter().any(|parent| parent.field.is(field)) => {
                of.base().writes.protection.zip(field.id(values))
            }
            _ => None,
        };
        let parents = self.parents.iter().filter(|parent| !parent.is_open);
        let parents =
            parents.filter_map(|parent| parent.shape.base().writes.protection.zip(parent.field.id(values)));
        let store = self.writes.store_protection.zip(context.scope.store_id());
        of_person.or(reached).into_iter().chain(parents).chain(store).collect()
    }

    /// The same, and its own protection.
    fn all_protectors(&self, context: &Context, row: &StoredRow) -> Vec<Protector> {
        let own = self.writes.protection.zip(self.id_in(&row.values));
        let others = self.protectors(context, &row.values, row.owner.as_ref());
        own.into_iter().chain(others).collect()
    }

    /// The id in the values of a row, where its key is one.
    pub(super) fn id_in(&self, values: &[Value]) -> Option<Uuid> {
        self.key()?.id(values)
    }
}

/// Refuses a new row whose owner carries a counting role. A new person carries none, and no one signs in yet by
/// a new setting.
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
    if shape.writes.open.holds(values) {
        return Ok(());
    }
    let is_new_setting = |own: &&Protection| own.carried_by == CarriedBy::WhoSignsIn;
    if let (Some(own), Some(id)) = (shape.writes.protection.filter(is_new_setting), shape.id_in(values)) {
        context.cleared.borrow_mut().insert((address_of(own), id));
    }
    check_one(context, tx, shape.protectors(context, values, owner))
}

/// Refuses to change protected fields of a row.
///
/// # Errors
/// 403 with the role and the id.
pub fn check_change(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    values: &[Value],
    event: EventName,
) -> Result<(), Problem> {
    check_one(context, tx, protectors_of_change(context, shape, was, values, event))
}

/// Refuses an action on a row as a whole, such as its deletion.
///
/// # Errors
/// 403 with the role and the id.
pub fn check_act(context: &Context, tx: &mut Tx<'_>, shape: &Shape, was: &StoredRow) -> Result<(), Problem> {
    if shape.writes.open.holds(&was.values) {
        return Ok(());
    }
    check_one(context, tx, shape.all_protectors(context, was))
}

/// Refuses an audited action without a change of fields (`note`) on a row that belongs to a protected one.
///
/// # Errors
/// 403 with the role and the id.
pub fn check_part(context: &Context, tx: &mut Tx<'_>, shape: &Shape, was: &StoredRow) -> Result<(), Problem> {
    if shape.writes.protection.is_some() || shape.writes.open.holds(&was.values) {
        return Ok(());
    }
    check_one(context, tx, shape.protectors(context, &was.values, was.owner.as_ref()))
}

/// The protectors of the fields that a change writes; none without a change. A change with another event than
/// an update is an action of its own on the row, such as a password reset, whichever fields it writes. A row
/// that moves to another owner is protected by both.
fn protectors_of_change(
    context: &Context,
    shape: &Shape,
    was: &StoredRow,
    values: &[Value],
    event: EventName,
) -> Vec<Protector> {
    let open = shape.writes.open;
    let is_changed = event != UPDATED || differs(shape, was, values);
    if !is_changed || (open.holds(&was.values) && open.holds(values)) {
        return Vec::new();
    }
    let mut protectors = shape.all_protectors(context, was);
    for (protection, id) in shape.protectors(context, values, was.owner.as_ref()) {
        let is_same = |(known, of): &Protector| std::ptr::eq(*known, protection) && *of == id;
        if !protectors.iter().any(is_same) {
            protectors.push((protection, id));
        }
    }
    protectors
}

/// Whether values differ beyond the concurrency token, the unprotected fields, and options switched off.
fn differs(shape: &Shape, was: &StoredRow, values: &[Value]) -> bool {
    let token = shape.plan().token;
    let protection = shape.writes.protection;
    let is_among = |fields: Option<&[&'static Field]>, field: &Field| {
        fields.unwrap_or_default().iter().any(|one| one.is(field))
    };
    let is_open = |index: usize, field: &Field, now: &Value| {
        Some(index) == token
            || is_among(protection.map(|protection| protection.open), field)
            || (*now == Value::Bool(false)
                && is_among(protection.map(|protection| protection.may_be_switched_off), field))
    };
    let mut fields = shape.fields.iter().zip(&was.values).zip(values).enumerate();
    fields.any(|(index, ((field, before), now))| before != now && !is_open(index, field, now))
}

/// Refuses to change rows of a batch that carry counting roles, each with its position in the body.
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
    let protectors =
        rows.map(|(base, was, values)| (base, protectors_of_change(context, shape, was, values, UPDATED)));
    check_all(context, tx, protectors)
}

/// Refuses new rows of a batch whose owners carry counting roles, each with its position in the body.
///
/// # Errors
/// 403 with each such element.
pub fn check_many_new<'a>(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    rows: impl Iterator<Item = (String, &'a [Value])>,
) -> Result<(), Problem> {
    let shape = shape.base();
    let guarded = rows.filter(|(_, values)| !shape.writes.open.holds(values));
    check_all(context, tx, guarded.map(|(base, values)| (base, shape.protectors(context, values, owner))))
}

/// Refuses to delete rows of a batch that carry counting roles, each with its position in the body.
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
    if shape.writes.is_removable {
        return Ok(());
    }
    let guarded = rows.filter(|(_, row)| !shape.writes.open.holds(&row.values));
    check_all(context, tx, guarded.map(|(base, row)| (base, shape.all_protectors(context, row))))
}

fn check_one(context: &Context, tx: &mut Tx<'_>, protectors: Vec<Protector>) -> Result<(), Problem> {
    check_all(context, tx, std::iter::once((String::new(), protectors)))
}

/// Refuses to write rows whose protectors have a counting role, each with its position in the body. Queries
/// once for all rows of the same protection.
///
/// # Errors
/// 403 with each such row.
pub fn check_all(
    context: &Context,
    tx: &mut Tx<'_>,
    rows: impl Iterator<Item = (String, Vec<Protector>)>,
) -> Result<(), Problem> {
    if context.authority.is_below_none() {
        return Ok(());
    }
    let mut by_protection: Vec<(&'static Protection, Vec<Target>)> = Vec::new();
    for (base, protectors) in rows {
        for (protection, id) in protectors {
            let target = Target { base: base.clone(), id };
            match by_protection.iter_mut().find(|(known, _)| std::ptr::eq(*known, protection)) {
                Some((_, targets)) => targets.push(target),
                None => by_protection.push((protection, vec![target])),
            }
        }
    }
    by_protection.into_iter().try_for_each(|(protection, targets)| check(context, tx, protection, targets))
}

/// Refuses to write rows that carry counting roles. A row checked before in this transaction is not checked
/// again.
///
/// # Errors
/// 403 with each such row.
pub fn check(
    context: &Context,
    tx: &mut Tx<'_>,
    protection: &Protection,
    mut targets: Vec<Target>,
) -> Result<(), Problem> {
    if context.authority.is_below_none() {
        return Ok(());
    }
    // a client app and a user may have the same id
    let by = address_of(protection);
    targets.retain(|target| !context.cleared.borrow().contains(&(by, target.id)));
    let ids: Vec<Uuid> = targets.iter().map(|target| target.id).collect();
    let mut counting: Vec<CarriedRole> = Vec::new();
    for chunk in ids.chunks(LIST) {
        let roles = (protection.find)(context, tx, chunk)?;
        counting.extend(roles.into_iter().filter(|carried| context.authority.is_below(carried)));
    }
    let position = |carried: &CarriedRole| ids.iter().position(|id| *id == carried.row);
    counting.sort_by_key(|carried| (carried.role, position(carried)));
    let Some(highest) = counting.first() else {
        context.cleared.borrow_mut().extend(ids.into_iter().map(|id| (by, id)));
        return Ok(());
    };
    let role_of =
        |id: Uuid| counting.iter().filter(|carried| carried.row == id).map(|carried| carried.role).min();
    let mut errors = FieldErrors::default();
    for Target { base, id } in targets.into_iter().filter(|target| !target.base.is_empty()) {
        if let Some(role) = role_of(id) {
            errors.note(|| FieldError::new(base, protection.carried_by.element_detail(id, role.name())));
        }
    }
    Err(refusal(protection.carried_by, highest, errors))
}

/// The identity of a protection.
fn address_of(protection: &Protection) -> usize {
    std::ptr::from_ref(protection).addr()
}

impl CarriedBy {
    /// The detail for a refused element of a batch.
    fn element_detail(self, id: Uuid, role: &str) -> String {
        match self {
            Self::Itself => format!("{id} carries the role {role}"),
            Self::WhoSignsIn => format!("a person who signs in by {id} has the role {role}"),
            Self::WhoLendsThem => format!(
                "client app {id} can obtain tokens for the platform's APIs, so changing it needs the role {role}"
            ),
        }
    }

    /// The detail for a refused write, with the remaining options.
    fn detail(self, id: Uuid, role: &str) -> String {
        match self {
            Self::Itself => format!(
                "{id} carries the role {role}, directly or through a group, and your roles do not cover that. An administrator who holds it can do this."
            ),
            Self::WhoSignsIn => format!(
                "This decides how people sign in by {id}. One of them has the role {role}, and your roles do not cover that. An administrator who holds it can do this, or give those whom you administer a user store of their own."
            ),
            Self::WhoLendsThem => format!(
                "Client app {id} can obtain tokens for the platform's APIs (it is the console's, or has one of the platform's resources), so changing it needs the role {role}. An administrator who holds it can do this."
            ),
        }
    }
}

fn refusal(carried_by: CarriedBy, highest: &CarriedRole, errors: FieldErrors) -> Problem {
    let (id, role) = (highest.row, highest.role.name());
    let problem = Problem::new(ProblemKind::Forbidden, carried_by.detail(id, role));
    let problem = problem.with_member("role", role).with_member("id", id.to_string());
    Problem { errors, ..problem }
}
