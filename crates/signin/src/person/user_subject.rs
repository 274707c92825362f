//! The subject of an identity at a user store.

use chancery_record::Cell;
use chancery_resource::{StoreError, Tx};
use chancery_store::{FromCell, selectable};
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

selectable! {
    /// The identity of a person at an instance.
    pub struct StoreIdentity from "FROM application_user a \
        JOIN application_identity i ON i.application_user_rid = a.rid JOIN idp_instance o ON o.id = i.idp_instance_id \
        WHERE a.id = ?1 AND i.idp_instance_id = ?2" {
        /// The user, if the instance is a user store.
        pub subject: UserSubject = "i.subject",
        /// The number of the instance.
        pub store: i64 = "o.rid",
        /// The name of the instance.
        pub store_name: String = "o.name",
    }
}

/// The identity of a person at an instance.
pub fn store_identity(
    tx: &mut Tx<'_>,
    person: Uuid,
    instance: Uuid,
) -> Result<Option<StoreIdentity>, StoreError> {
    tx.one(StoreIdentity::SELECT, &[person.into(), instance.into()], StoreIdentity::read)
}
