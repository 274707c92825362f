//! Operation lists that many resources share: the standard pattern, the three of a relation.

use crate::Op;

/// The nine operations of the standard resource pattern of document 2. Parameters: the resource's name, its
/// path, the permit to read, the permit to write, and its shape.
///
/// `standard!("Customer", "/Customer", CustomerRead, CustomerWrite, &CUSTOMER)` is an array of
/// `GetCustomers`, `CreateCustomer`, `UpdateCustomer`, `PatchCustomer`, `GetCustomer`,
/// `DeleteCustomer` and the batches `CreateCustomerBatch`, `UpdateCustomerBatch` and
/// `DeleteCustomerBatch`.
#[macro_export]
macro_rules! standard {
    ($name:literal, $path:literal, $read:ident, $write:ident, $shape:expr) => {{
        use $crate::{Action as A, Method as M, Op, Permit};
        const ONE: &str = concat!($path, "/{id}");
        const BATCH: &str = concat!($path, "/batch");
        const READ: Permit = Permit::$read;
        const WRITE: Permit = Permit::$write;
        [
            Op::new(
                concat!("Get", $name, "s"),
                M::Get,
                $path,
                READ,
                $shape,
                A::List,
                concat!("Lists ", $name, "s."),
            ),
            Op::new(
                concat!("Create", $name),
                M::Post,
                $path,
                WRITE,
                $shape,
                A::Create,
                $crate::constcat::concat!("Creates ", $crate::article($name), " ", $name, "."),
            ),
            Op::new(
                concat!("Update", $name),
                M::Put,
                ONE,
                WRITE,
                $shape,
                A::Replace,
                $crate::constcat::concat!("Replaces ", $crate::article($name), " ", $name, "."),
            ),
            Op::new(
                concat!("Patch", $name),
                M::Patch,
                ONE,
                WRITE,
                $shape,
                A::Patch,
                $crate::constcat::concat!("Changes ", $crate::article($name), " ", $name, "."),
            ),
            Op::new(
                concat!("Get", $name),
                M::Get,
                ONE,
                READ,
                $shape,
                A::Read,
                $crate::constcat::concat!("Reads ", $crate::article($name), " ", $name, "."),
            ),
            Op::new(
                concat!("Delete", $name),
                M::Delete,
                ONE,
                WRITE,
                $shape,
                A::Delete,
                $crate::constcat::concat!("Deletes ", $crate::article($name), " ", $name, "."),
            ),
            Op::new(
                concat!("Create", $name, "Batch"),
                M::Post,
                BATCH,
                WRITE,
                $shape,
                A::CreateBatch,
                concat!("Creates many ", $name, "s, all or none."),
            ),
            Op::new(
                concat!("Update", $name, "Batch"),
                M::Put,
                BATCH,
                WRITE,
                $shape,
                A::ReplaceBatch,
                concat!("Replaces many ", $name, "s, all or none."),
            ),
            Op::new(
                concat!("Delete", $name, "Batch"),
                M::Delete,
                BATCH,
                WRITE,
                $shape,
                A::DeleteBatch,
                concat!("Deletes many ", $name, "s, all or none."),
            ),
        ]
    }};
}

/// The indefinite article of the name of a resource.
#[must_use]
pub const fn article(name: &str) -> &'static str {
    match name.as_bytes() {
        [b'A' | b'E' | b'I' | b'O', ..] => "an",
        // the names that begin with U, such as `User`, begin with a consonant in speech
        _ => "a",
    }
}

/// The three operations of a relation. Parameters: their name, their path, the permit to write, the shape and
/// the relation.
///
/// `relation!("IdpInstanceTenants", "/IdpInstance/{id}/tenants", SubscriptionAdmin, &IDP_INSTANCE,
/// IdpInstance::TENANTS)` is an array of `SetIdpInstanceTenants`, `AddIdpInstanceTenants` and
/// `RemoveIdpInstanceTenants`.
#[macro_export]
macro_rules! relation {
    ($name:literal, $path:literal, $write:ident, $shape:expr, $relation:expr) => {{
        use $crate::{Action as A, Method as M, Op, Permit, RelationChange as R};
        const WRITE: Permit = Permit::$write;
        const RELATION: $crate::Relation = $relation;
        [
            Op::new(
                concat!("Set", $name),
                M::Put,
                $path,
                WRITE,
                $shape,
                A::Relate(&RELATION, R::Set),
                $crate::constcat::concat!("Replaces the items of `", RELATION.name, "`."),
            ),
            Op::new(
                concat!("Add", $name),
                M::Post,
                $path,
                WRITE,
                $shape,
                A::Relate(&RELATION, R::Add),
                $crate::constcat::concat!("Adds items to `", RELATION.name, "`."),
            ),
            Op::new(
                concat!("Remove", $name),
                M::Delete,
                $path,
                WRITE,
                $shape,
                A::Relate(&RELATION, R::Remove),
                $crate::constcat::concat!("Removes items from `", RELATION.name, "`."),
            ),
        ]
    }};
}

/// Marks operations as mentioned by the documents without being listed there.
#[must_use]
#[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
pub const fn added<const COUNT: usize>(mut operations: [Op; COUNT]) -> [Op; COUNT] {
    let mut at = 0;
    while at < COUNT {
        operations[at].addition = true;
        at += 1;
    }
    operations
}

/// Marks the operations of [`standard!`] at these indexes as not listed in the documents.
#[must_use]
#[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
pub const fn added_at<const COUNT: usize, const SOME: usize>(
    mut operations: [Op; COUNT],
    indices: [usize; SOME],
) -> [Op; COUNT] {
    let mut at = 0;
    while at < SOME {
        operations[indices[at]].addition = true;
        at += 1;
    }
    operations
}
