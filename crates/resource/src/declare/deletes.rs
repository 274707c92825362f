//! Deletion of a resource's rows, and the rows that prevent it.

use chancery_record::{Field, FieldOf, FieldType, Record};
use chancery_store::Tx;
use uuid::Uuid;

use crate::settings::{Flag, Setting, UserStoreOption};
use crate::{Child, Context, Problem, Shape};

/// The effect of a DELETE.
#[derive(Clone, Copy, Debug)]
pub enum Deletion {
    /// The row is deleted.
    Permanent,
    /// While the store's option is on, the row stays in quarantine: hidden, with the time in the field.
    Quarantine {
        /// The field with the time.
        field: &'static Field,
        /// The option that turns quarantine on.
        option: Setting<UserStoreOption, Flag>,
    },
}

impl Deletion {
    /// The field that hides a row when it is not null.
    pub const fn hiding(self) -> Option<&'static Field> {
        match self {
            Self::Permanent => None,
            Self::Quarantine { field, .. } => Some(field),
        }
    }
}

/// Deletes or checks the dependents of purged rows: gets the rows' ids, at most `LIST`.
pub type OnPurge = fn(&mut Context, &mut Tx<'_>, &[Uuid]) -> Result<(), Problem>;

/// Deletion of a resource's rows, and the rows that prevent it.
#[derive(Clone, Copy)]
pub struct Deletes {
    /// The effect of a DELETE.
    pub deletion: Deletion,
    /// The rows that must be deleted before a row can be.
    pub children: &'static [Child],
    /// Deletes or checks the dependents of purged rows.
    pub on_purge: Option<OnPurge>,
}

impl Deletes {
    pub(super) const fn new() -> Self {
        Self { deletion: Deletion::Permanent, children: &[], on_purge: None }
    }
}

impl Shape {
    /// The same, where a DELETE hides the row instead of removing it while this option of the store is on.
    #[must_use]
    pub const fn quarantined<R: Record, T: FieldType>(
        mut self,
        field: FieldOf<R, T>,
        option: Setting<UserStoreOption, Flag>,
    ) -> Self {
        self.deletes.deletion = Deletion::Quarantine { field: self.declared(field), option };
        self
    }

    /// The same, where a row cannot be deleted while it has these children.
    #[must_use]
    pub const fn held_by(mut self, children: &'static [Child]) -> Self {
        self.deletes.children = children;
        self
    }

    /// The same, with a function that deletes or checks the dependents of purged rows.
    #[must_use]
    pub const fn on_purge(mut self, on_purge: OnPurge) -> Self {
        self.deletes.on_purge = Some(on_purge);
        self
    }
}
