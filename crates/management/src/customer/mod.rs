//! Customers: who the subscriptions belong to.

use chancery_record::{Description, KEY, Name, OPEN, SHOWN, Token, id_types, record};
use chancery_resource::{Child, Op, Reach, Shape, Unique, standard};

id_types! {
    /// The id of a customer.
    CustomerId
}

record! {
    /// A customer of the platform.
    pub struct Customer {
        /// The customer.
        id: CustomerId = KEY,
        /// Its name.
        name: Name = OPEN.folded(),
        /// Its postal address.
        address: Option<Description> = OPEN,
        /// Changes with every write to the customer.
        concurrency_token: Token = SHOWN,
    }
}

/// The resource.
pub static CUSTOMER: Shape = Shape::of::<Customer>("Customer", "customer", Reach::Customer("id"))
    .unique(&[Unique { index: "customer__id", column: "id" }])
    .held_by(&[
        Child::new("subscription", "subscription", "customer_id"),
        Child::new("role assignment", "role_assignment", "apply_to_customer_id").named_by("role_type"),
    ]);

/// Its operations.
pub static OPERATIONS: [Op; 9] = standard!("Customer", "/Customer", CustomerAdmin, SystemAdmin, &CUSTOMER);
