//! Subscriptions: what a customer has of the platform; tenants, instances and client apps are in one.

pub mod resolve;

use chancery_record::{FIXED, KEY, Name, OPEN, Preset, SHOWN, Token, choice_types, id_types, record};
use chancery_resource::{Child, Op, Parent, Reach, Shape, Unique, added, standard};

use crate::{
    client_app::administrator::keep_one,
    customer::{CUSTOMER, CustomerId},
};

id_types! {
    /// The id of a subscription.
    SubscriptionId
}

choice_types! {
    /// Whether a subscription is in use.
    SubscriptionStatus {
        /// It is.
        Active,
        /// It is not: its client apps get no tokens, its tenants do not serve.
        Inactive,
    }
}

record! {
    /// A customer's subscription to the platform.
    pub struct Subscription {
        /// The subscription.
        id: SubscriptionId = KEY,
        /// Its name, unique for the customer without regard to case.
        name: Name = OPEN.folded(),
        /// Whether it is in use.
        status: SubscriptionStatus = OPEN.or(Preset::Text("Active")),
        /// The customer.
        customer_id: CustomerId = FIXED,
        /// Changes with every write to the subscription.
        concurrency_token: Token = SHOWN,
    }
}

/// The resource.
pub static SUBSCRIPTION: Shape =
    Shape::of::<Subscription>("Subscription", "subscription", Reach::Subscription("id"))
        .belonging(&[Parent::new("customer_id", &CUSTOMER)])
        .held_by(&[
            Child::new("tenant", "tenant", "subscription_id"),
            Child::new("instance", "idp_instance", "subscription_id"),
            Child::new("MFA instance", "mfa_instance", "subscription_id"),
            Child::new("client app", "client_app", "subscription_id"),
            Child::new("cert store", "cert_store", "subscription_id"),
            Child::new("claim rule", "claim_rule", "subscription_id"),
            Child::new("asset", "custom_asset", "subscription_id").named_by("location"),
            Child::new("view", "custom_view", "subscription_id").named_by("location"),
            Child::new("role assignment", "role_assignment", "apply_to_subscription_id")
                .named_by("role_type"),
        ])
        .unique(&[
            Unique { index: "subscription__id", column: "id" },
            Unique { index: "subscription__customer_id__name_key", column: "name" },
        ])
        .postcondition(keep_one)
        .bumps_epoch();

/// Its operations.
pub static OPERATIONS: [Op; 9] =
    added(standard!("Subscription", "/Subscription", SubscriptionAdmin, CustomerAdmin, &SUBSCRIPTION));
