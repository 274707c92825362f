//! The subject of an identity at a user store.

use chancery_record::Cell;
use chancery_store::FromCell;
use uuid::Uuid;

/// The id of the user at the store; `None` where the subject is none, as at an external identity provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserSubject(pub Option<Uuid>);

impl<'r> FromCell<'r> for UserSubject {
    const EXPECTED: &'static str = <&str>::EXPECTED;

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        <&str>::from_cell(cell).map(|subject| Self(Uuid::try_parse(subject).ok()))
    }
}
