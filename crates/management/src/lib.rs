//! The management service, version 2: one folder for each resource.

pub mod appearance;
pub mod application;
pub mod audit_trail;
pub mod cert_store;
pub mod claim_rule;
pub mod client_app;
pub mod credential_set_by_other;
pub mod custom_asset;
pub mod custom_view;
pub mod customer;
pub mod directory_refusal;
pub mod effective_permissions;
pub mod event;
pub mod event_subscription;
mod grant;
pub mod identity_replacement;
pub mod idp_instance;
pub mod idp_type;
pub mod ip_address_range;
mod link;
mod location;
pub mod mfa_instance;
pub mod option;
mod owning_subscription;
pub mod passkey_trust;
pub mod role_assignment;
pub mod sign_in;
mod slow_validation;
pub mod subscription;
pub mod tenant;
pub mod upgrade;
pub mod user_questionnaire_item;
mod violation;

use chancery_resource::Figure;
use chancery_resource::{Op, Service};

/// All operations, one list for each resource.
static OPERATIONS: &[&[Op]] = &[
    &customer::OPERATIONS,
    &subscription::OPERATIONS,
    &tenant::OPERATIONS,
    &tenant::IDP_INSTANCES,
    &tenant::MFA_INSTANCES,
    &tenant::CLIENT_APPS,
    &idp_type::OPERATIONS,
    idp_type::LOOK_UPS,
    &idp_instance::OPERATIONS,
    &idp_instance::TENANTS,
    &idp_instance::CERT_STORES,
    &idp_instance::CLIENT_APPS,
    &idp_instance::MFA_INSTANCES,
    idp_instance::CONFIRM,
    idp_instance::LOOK_UPS,
    idp_instance::METADATA,
    idp_instance::SCIM,
    idp_instance::TRIAL,
    &mfa_instance::OPERATIONS,
    &mfa_instance::TENANTS,
    &mfa_instance::IDP_INSTANCES,
    &mfa_instance::CLIENT_APPS,
    &option::OPERATIONS,
    option::LOOK_UPS,
    &client_app::OPERATIONS,
    &client_app::TENANTS,
    &client_app::IDP_INSTANCES,
    &client_app::MFA_INSTANCES,
    &client_app::CLAIM_RULES,
    &client_app::TOKEN_EXCHANGE,
    &client_app::AUTHORIZED_USERS,
    &client_app::AUTHORIZED_GROUPS,
    &client_app::configuration::OPERATIONS,
    &client_app::federated_identity::OPERATIONS,
    &client_app::key_set::OPERATIONS,
    client_app::metadata::OPERATIONS,
    &client_app::scope_and_resource::RESOURCES,
    client_app::scope_and_resource::RESOURCES_OF,
    &client_app::scope_and_resource::SCOPES,
    client_app::scope_and_resource::SCOPES_OF,
    client_app::refusal::OPERATIONS,
    &client_app::role::OPERATIONS,
    client_app::role::OF_CLIENT_APP,
    &client_app::secret::OPERATIONS,
    client_app::secret::OF_CLIENT_APP,
    client_app::token_preview::OPERATIONS,
    &client_app::uri::REQUEST_URIS,
    &client_app::uri::REDIRECT_URIS,
    &cert_store::OPERATIONS,
    &cert_store::IDP_INSTANCES,
    cert_store::LOOK_UPS,
    &claim_rule::OPERATIONS,
    &claim_rule::CLIENT_APPS,
    claim_rule::EVALUATE,
    &custom_asset::OPERATIONS,
    custom_asset::MORE,
    &custom_view::OPERATIONS,
    custom_view::MORE,
    custom_view::preview::OPERATIONS,
    &ip_address_range::OPERATIONS,
    ip_address_range::LOOK_UPS,
    &user_questionnaire_item::OPERATIONS,
    &role_assignment::OPERATIONS,
    effective_permissions::OPERATIONS,
    application::OPERATIONS,
    application::PROFILES,
    identity_replacement::OPERATIONS,
    passkey_trust::OPERATIONS,
    sign_in::session::OPERATIONS,
    sign_in::grant::OPERATIONS,
    sign_in::factor::OPERATIONS,
    sign_in::consent::OPERATIONS,
    sign_in::record::OPERATIONS,
    directory_refusal::OPERATIONS,
    credential_set_by_other::OPERATIONS,
    &audit_trail::OPERATIONS,
    event::OPERATIONS,
    &event_subscription::OPERATIONS,
    &event_subscription::MORE,
];

/// The management service, version 2.
pub static SERVICE: Service = Service {
    name: "management",
    version: "v2",
    title: "Chancery Management Service",
    base: "/api/management/v2",
    operations: OPERATIONS,
    is_deprecated: false,
};

/// The figures of the configuration, for operators, one list for each resource.
pub static FIGURES: &[&[Figure]] =
    &[&identity_replacement::FIGURES, &passkey_trust::FIGURES, &cert_store::FIGURES, &sign_in::FIGURES];
