//! Subscriptions of customers to the platform. Each tenant, instance and client app belongs to one.

use chancery_record::{DefaultValue, FIXED, KEY, Name, OPEN, SHOWN, Token, choice_types, id_types, record};
use chancery_resource::{Child, Op, Parent, Reach, Shape, Unique, added, standard};

use chancery_webhook::EventSubscription;

use crate::{
    cert_store::{CERT_STORE, CertStore},
    claim_rule::{CLAIM_RULE, ClaimRule},
    client_app::{CLIENT_APP, ClientApp, administrator::require_system_admin},
    custom_asset::{CUSTOM_ASSET, CustomAsset},
    custom_view::{CUSTOM_VIEW, CustomView},
    customer::{CUSTOMER, CustomerId},
    event_subscription::EVENT_SUBSCRIPTION,
    idp_instance::{IDP_INSTANCE, IdpInstance},
    mfa_instance::{MFA_INSTANCE, MfaInstance},
    role_assignment::{ROLE_ASSIGNMENT, RoleAssignment},
    tenant::{TENANT, Tenant},
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
    #[de("Abonnement", "Abonnements", "Das Abonnement eines Kunden.")]
    pub struct Subscription {
        /// The subscription.
        id: SubscriptionId = KEY,
        /// Its name, unique for the customer without regard to case.
        #[de(_, "Der Name, eindeutig für den Kunden; Groß- und Kleinschreibung zählt nicht.")]
        name: Name = OPEN.folded(),
        /// Whether the subscription is in use.
        #[de(_, "Ob das Abonnement in Gebrauch ist.")]
        status: SubscriptionStatus = OPEN.or(DefaultValue::Text("Active")),
        /// The customer.
        #[de("Kunde")]
        customer_id: CustomerId = FIXED,
        /// Concurrency token. It changes with every write to the subscription.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of subscriptions.
pub static SUBSCRIPTION: Shape =
    Shape::of::<Subscription>("Subscription", "subscription", Reach::Subscription(Subscription::ID.field()))
        .belonging(&[Parent::new(Subscription::CUSTOMER_ID, &CUSTOMER)])
        .held_by(&[
            Child::new("tenant", &TENANT, Tenant::SUBSCRIPTION_ID, Tenant::NAME),
            Child::new("instance", &IDP_INSTANCE, IdpInstance::SUBSCRIPTION_ID, IdpInstance::NAME),
            Child::new("MFA instance", &MFA_INSTANCE, MfaInstance::SUBSCRIPTION_ID, MfaInstance::NAME),
            Child::new("client app", &CLIENT_APP, ClientApp::SUBSCRIPTION_ID, ClientApp::NAME),
            Child::new("cert store", &CERT_STORE, CertStore::SUBSCRIPTION_ID, CertStore::NAME),
            Child::new("claim rule", &CLAIM_RULE, ClaimRule::SUBSCRIPTION_ID, ClaimRule::NAME),
            Child::new("asset", &CUSTOM_ASSET, CustomAsset::SUBSCRIPTION_ID, CustomAsset::LOCATION),
            Child::new("view", &CUSTOM_VIEW, CustomView::SUBSCRIPTION_ID, CustomView::LOCATION),
            Child::new(
                "event subscription",
                &EVENT_SUBSCRIPTION,
                EventSubscription::SUBSCRIPTION_ID,
                EventSubscription::NAME,
            ),
            Child::new(
                "role assignment",
                &ROLE_ASSIGNMENT,
                RoleAssignment::APPLY_TO_SUBSCRIPTION_ID,
                RoleAssignment::ROLE_TYPE,
            ),
        ])
        .unique(&[
            Unique::new("subscription__id", &[Subscription::ID.field()]),
            Unique::new(
                "subscription__customer_id__name_key",
                &[Subscription::CUSTOMER_ID.field(), Subscription::NAME.field()],
            ),
        ])
        .postcondition(require_system_admin)
        .bumps_epoch();

/// The operations on subscriptions.
pub static OPERATIONS: [Op; 9] =
    added(standard!("Subscription", "/Subscription", SubscriptionAdmin, CustomerAdmin, &SUBSCRIPTION));
