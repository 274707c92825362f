//! Customers: the owners of subscriptions.

use chancery_record::{Description, KEY, Name, OPEN, SHOWN, Token, id_types, record};
use chancery_resource::{Child, Op, Reach, Shape, Unique, standard};

use crate::{
    role_assignment::{ROLE_ASSIGNMENT, RoleAssignment},
    subscription::{SUBSCRIPTION, Subscription},
};

id_types! {
    /// The id of a customer.
    CustomerId
}

record! {
    /// A customer of the platform.
    #[de("Kunde", "Kunden", "Ein Kunde der Plattform.")]
    pub struct Customer {
        /// The customer.
        id: CustomerId = KEY,
        /// Its name.
        name: Name = OPEN.folded(),
        /// Its postal address.
        address: Option<Description> = OPEN,
        /// Concurrency token. It changes with every write to the customer.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of customers.
pub static CUSTOMER: Shape =
    Shape::of::<Customer>("Customer", "customer", Reach::Customer(Customer::ID.field()))
        .unique(&[Unique::new("customer__id", &[Customer::ID.field()])])
        .held_by(&[
            Child::new("subscription", &SUBSCRIPTION, Subscription::CUSTOMER_ID, Subscription::NAME),
            Child::new(
                "role assignment",
                &ROLE_ASSIGNMENT,
                RoleAssignment::APPLY_TO_CUSTOMER_ID,
                RoleAssignment::ROLE_TYPE,
            ),
        ]);

/// The operations on customers.
pub static OPERATIONS: [Op; 9] = standard!("Customer", "/Customer", CustomerAdmin, SystemAdmin, &CUSTOMER);
