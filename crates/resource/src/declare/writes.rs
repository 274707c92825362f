//! Checks and effects of a resource's writes.

use chancery_record::{Field, FieldOf, FieldType, Record, Value};
use chancery_store::Tx;

use crate::{
    Context, Personal, Problem, Protection, Shape, ValidateRows,
    declare::event_name::{EventName, EventType},
    declare::require,
    declare::rules::{Apply, Rules, apply_rules},
};

/// The most elements of a batch.
pub const MAX_BATCH: usize = 10_000;
/// The most rows that a batch creates where each element creates several. Each with its audit entry and event
/// takes some 60 microseconds, and others may wait a quarter of a second for few elements.
const MAX_CREATED_ROWS: usize = 4_000;

/// Creates the rows that come with a new row: gets the row's values.
pub type AfterInsert = fn(&Context, &mut Tx<'_>, &[Value]) -> Result<(), Problem>;

/// Records the writer of a row, or who removed it, beyond the audit trail: gets the row's values.
pub type AfterWrite = fn(&Context, &mut Tx<'_>, &[Value]) -> Result<(), Problem>;

/// Names a change after its effect on a state: gets the values before and after; `updated` where it returns
/// none.
pub type NameChange = fn(&[Value], &[Value]) -> Option<EventName>;

/// A postcondition: checks an invariant after every write.
pub type Postcondition = fn(&Context, &mut Tx<'_>) -> Result<(), Problem>;

/// The rows that anyone with access may write, whatever roles their owner carries.
#[derive(Clone, Copy)]
pub enum Open {
    /// None.
    Never,
    /// All.
    Always,
    /// Those whose values match.
    Where(fn(&[Value]) -> bool),
}

impl Open {
    /// Whether a row with these values is one.
    pub fn holds(self, values: &[Value]) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Where(is_open) => is_open(values),
        }
    }
}

/// The field that records who last set certain fields of a row, unless the person of the row did.
#[derive(Clone, Copy)]
pub struct Setter {
    /// The field with the id of the setter; null: the person, the server itself, or unknown.
    pub field: &'static Field,
    /// The field with the time, where it is recorded.
    pub on: Option<&'static Field>,
    /// The fields whose setter it records.
    pub of: &'static [&'static Field],
}

/// Checks and effects of a resource's writes.
#[derive(Clone, Copy)]
pub struct Writes {
    /// The rules of its record; none where it has none of its own.
    pub(crate) apply: Option<Apply>,
    /// The rule that reads other rows.
    pub validate_rows: Option<ValidateRows>,
    /// Whether a row with these values holds a secret in its sealed fields.
    pub secret: fn(&[Value]) -> bool,
    /// Creates the rows that come with a new row.
    pub after_insert: Option<AfterInsert>,
    /// The most audited rows that are created with a new row.
    pub created_rows: fn() -> usize,
    /// Records the writer of a row, or who removed it, beyond the audit trail.
    pub after_write: Option<AfterWrite>,
    /// The name of a change in its event.
    pub name_change: Option<NameChange>,
    /// The postcondition of every write.
    pub postcondition: Option<Postcondition>,
    /// The protection of a row while it carries roles that the caller does not hold.
    pub protection: Option<&'static Protection>,
    /// The field that records who last set certain fields of a row.
    pub setter: Option<Setter>,
    /// The protection of the store of the rows, where they decide who signs in there.
    pub store_protection: Option<&'static Protection>,
    /// The rows that anyone with access may write, whatever roles their owner carries.
    pub open: Open,
    /// Whether a write grants rights, or decides who or what gets in.
    pub is_sensitive: bool,
    /// Whether anyone with access may delete the rows that belong to a row that carries roles.
    pub is_removable: bool,
    /// Whether a change of a row advances the security epoch, so that every process drops its cache.
    pub bumps_epoch: bool,
    /// The events whose types do not follow from the resource: the name of each, and its type.
    pub event_types: &'static [(EventName, EventType)],
}

impl Writes {
    pub(super) const fn new() -> Self {
        Self {
            apply: None,
            validate_rows: None,
            secret: |_| true,
            after_insert: None,
            created_rows: || 0,
            after_write: None,
            name_change: None,
            postcondition: None,
            protection: None,
            setter: None,
            store_protection: None,
            open: Open::Never,
            is_sensitive: false,
            is_removable: false,
            bumps_epoch: false,
            event_types: &[],
        }
    }
}

impl Shape {
    /// The same, where a row may carry roles: the protection of it and of the rows that belong to it.
    #[must_use]
    pub const fn protected_by(mut self, protection: &'static Protection) -> Self {
        self.writes.protection = Some(protection);
        self
    }

    /// The same; a hidden field records who last set these fields, unless the person of the row did.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
    pub const fn noting_setter<R: Record, T: FieldType>(
        mut self,
        field: FieldOf<R, T>,
        of: &'static [&'static Field],
    ) -> Self {
        let mut at = 0;
        while at < of.len() {
            require(of[at].is_of(R::TYPE_NAME), "who set it is noted of a field of another record");
            at += 1;
        }
        self.writes.setter = Some(Setter { field: self.declared(field), on: None, of });
        self
    }

    /// The same, which has a setter; a hidden field records when these fields were last set.
    #[must_use]
    pub const fn noting_when<R: Record, T: FieldType>(mut self, field: FieldOf<R, T>) -> Self {
        if let Some(setter) = self.writes.setter {
            self.writes.setter = Some(Setter { on: Some(self.declared(field)), ..setter });
        }
        self
    }

    /// The same, where rows belong to their store, as its settings do, and decide who signs in there.
    #[must_use]
    pub const fn protected_with_store(mut self, protection: &'static Protection) -> Self {
        self.writes.store_protection = Some(protection);
        self
    }

    /// The same, where anyone with access may write the rows of a person, whatever roles the person carries:
    /// they give no way to a role.
    #[must_use]
    pub const fn open(mut self) -> Self {
        self.writes.open = Open::Always;
        self
    }

    /// The same, where anyone with access may write rows whose values match.
    #[must_use]
    pub const fn open_where(mut self, is_open: fn(&[Value]) -> bool) -> Self {
        self.writes.open = Open::Where(is_open);
        self
    }

    /// The same, where a write grants rights, or decides who or what gets in: a page requires a recent proof of
    /// identity. The rows of a person who may carry roles are so without a declaration, unless they are open.
    #[must_use]
    pub const fn sensitive(mut self) -> Self {
        self.writes.is_sensitive = true;
        self
    }

    /// Whether a write grants rights, or decides who or what gets in.
    pub fn is_sensitive(&self) -> bool {
        let base = self.base();
        base.writes.is_sensitive || base.carrier().is_some_and(|carrier| !std::ptr::eq(carrier, base))
    }

    /// The resource whose rows' roles count where its rows are written: itself, or its owner.
    pub fn carrier(&self) -> Option<&Self> {
        if matches!(self.writes.open, Open::Always) {
            return None;
        }
        if self.writes.protection.is_some() {
            return Some(self);
        }
        let owner = match (self.personal, &self.owner) {
            (Personal::Of(person, _), _) => person,
            (_, Some(owner)) => owner.shape,
            _ => return None,
        };
        owner.writes.protection.is_some().then_some(owner)
    }

    /// The same, where anyone with access may delete the rows that belong to a row that carries roles: a
    /// deletion is no way in.
    #[must_use]
    pub const fn removable(mut self) -> Self {
        self.writes.is_removable = true;
        self
    }

    /// The same, with the rules of its record.
    #[must_use]
    pub const fn ruled<R: Rules>(mut self) -> Self {
        require(self.is_of(R::TYPE_NAME), "the rules are of another record");
        self.writes.apply = Some(apply_rules::<R>);
        self
    }

    /// The same, with a rule that reads other rows.
    #[must_use]
    pub const fn validate_rows(mut self, rule: ValidateRows) -> Self {
        self.writes.validate_rows = Some(rule);
        self
    }

    /// The same, with the condition for a row to hold a secret in its sealed fields.
    #[must_use]
    pub const fn secret_when(mut self, secret: fn(&[Value]) -> bool) -> Self {
        self.writes.secret = secret;
        self
    }

    /// The same, with a function that creates the rows that come with a new row.
    #[must_use]
    pub const fn after_insert(mut self, after_insert: AfterInsert) -> Self {
        self.writes.after_insert = Some(after_insert);
        self
    }

    /// The same, with the most audited rows that are created with a new row: they count in a batch.
    #[must_use]
    pub const fn created_rows(mut self, created_rows: fn() -> usize) -> Self {
        self.writes.created_rows = created_rows;
        self
    }

    /// The most elements of a batch of these rows. The rows that come with each count, too.
    pub fn max_batch(&self) -> usize {
        match self.rows_each() {
            1 => MAX_BATCH,
            each => MAX_CREATED_ROWS / each,
        }
    }

    /// The most audited rows of a new row, with those that come with it.
    pub fn rows_each(&self) -> usize {
        1 + (self.base().writes.created_rows)()
    }

    /// The same, recording the writer of a row, or who removed it, beyond the audit trail.
    #[must_use]
    pub const fn after_write(mut self, after_write: AfterWrite) -> Self {
        self.writes.after_write = Some(after_write);
        self
    }

    /// The same, with a postcondition of every write.
    #[must_use]
    pub const fn postcondition(mut self, check: Postcondition) -> Self {
        self.writes.postcondition = Some(check);
        self
    }

    /// The same, with events whose types do not follow from the resource: the name of each, and its type. Those below
    /// `platform.signin` are sign-in activity of people.
    #[must_use]
    pub const fn event_types(mut self, types: &'static [(EventName, EventType)]) -> Self {
        self.writes.event_types = types;
        self
    }

    /// The same, with changes named after their effect on a state.
    #[must_use]
    pub const fn name_change(mut self, name: NameChange) -> Self {
        self.writes.name_change = Some(name);
        self
    }

    /// The same, where a change advances the security epoch, so that every process drops its cache.
    #[must_use]
    pub const fn bumps_epoch(mut self) -> Self {
        self.writes.bumps_epoch = true;
        self
    }
}
