//! What tests know of each resource of the management service: bodies for its standard operations, who may call it, and whether
//! its rows are protected.

use chancery::services;
use chancery_resource::{Action, Op};
use chancery_testkit::{Answer, Client, World};
use serde_json::Value;

use crate::fixtures::Fixtures;

/// Resource, body that creates one, members that a change sets. `%` is a number, so that no two are the
/// same; names in braces are fixtures of [`crate::fixtures`]. A role assignment cannot be changed.
///
/// The walk through the rows shows these effects:
/// - Effect of `CertStore.description`: The description is kept and shown to administrators.
/// - Effect of `CertStore.name`: Lists show the certificate under this name.
/// - Effect of `ClientAppFederatedIdentity.description`: The description is kept and shown to administrators.
/// - Effect of `ClientAppFederatedIdentity.name`: Lists show the federated identity under this name.
/// - Effect of `ClientAppKeySet.name`: Lists show the key set under this name.
/// - Effect of `EventSubscription.name`: Lists show the subscription under this name.
/// - Effect of `IdpType.name`: Lists show the type under this name.
/// - Effect of `Tenant.description`: The description is kept and shown to administrators.
pub const ROWS: &[(&str, &str, &str)] = &[
    ("Customer", r#"{"name": "Customer %", "address": "Street %"}"#, r#"{"address": "Avenue %"}"#),
    (
        "Subscription",
        r#"{"name": "Subscription %", "customerId": "{customerId}"}"#,
        r#"{"name": "Changed subscription %"}"#,
    ),
    (
        "Tenant",
        r#"{"name": "Tenant %", "subscriptionId": "{subscriptionId}"}"#,
        r#"{"description": "Changed %"}"#,
    ),
    (
        "IdpType",
        r#"{"name": "Type %", "providerType": "IdentityProvider", "factoryType": "OpenIdConnect"}"#,
        r#"{"name": "Changed type %"}"#,
    ),
    (
        "IdpInstance",
        r#"{"name": "Instance %", "idpTypeId": "{Google}", "subscriptionId": "{subscriptionId}"}"#,
        r#"{"name": "Changed instance %"}"#,
    ),
    ("IdpInstanceMetadata", r#"{"key": "instance-entry-%", "value": "x"}"#, r#"{"value": "changed %"}"#),
    (
        "MfaInstance",
        r#"{"name": "Factor %", "idpTypeId": "{totp}", "subscriptionId": "{subscriptionId}"}"#,
        r#"{"name": "Changed factor %"}"#,
    ),
    (
        "Option",
        r#"{"name": "BrandName", "value": "as it was", "applyToTenantId": "{Tenant %}"}"#,
        r#"{"value": "changed %"}"#,
    ),
    (
        "ClientApp",
        r#"{"name": "App %", "subscriptionId": "{subscriptionId}"}"#,
        r#"{"name": "Changed app %"}"#,
    ),
    (
        "ClientAppAuthenticationConfiguration",
        r#"{"clientAppId": "{ClientApp %}", "tokenEndpointAuthMethod": "tls_client_auth",
            "tlsClientAuthSanDns": "app-%.example"}"#,
        r#"{"tlsClientAuthSanDns": "changed-%.example"}"#,
    ),
    (
        "ClientAppFederatedIdentity",
        r#"{"clientAppId": "{ClientApp 1}", "name": "pipeline %", "issuer": "https://ci.example",
            "subject": "repo:%"}"#,
        r#"{"name": "changed pipeline %", "description": "Changed %", "subject": "repo:changed-%"}"#,
    ),
    (
        "ClientAppKeySet",
        r#"{"clientAppId": "{ClientApp 1}", "name": "keys %", "use": "Signing", "jwks": "{jwks}"}"#,
        r#"{"name": "changed keys %"}"#,
    ),
    ("ClientAppMetadata", r#"{"key": "app-entry-%", "value": "x"}"#, r#"{"value": "changed %"}"#),
    (
        "ClientAppRedirectUri",
        r#"{"clientAppId": "{ClientApp 1}", "uri": "https://app.example/%"}"#,
        r#"{"uri": "https://app.example/changed/%"}"#,
    ),
    (
        "ClientAppRequestUri",
        r#"{"clientAppId": "{ClientApp 1}", "uri": "https://app.example/%"}"#,
        r#"{"uri": "https://app.example/changed/%"}"#,
    ),
    (
        "ClientAppResource",
        r#"{"clientAppId": "{ClientApp 1}", "key": "resource-%"}"#,
        r#"{"description": "Changed %"}"#,
    ),
    (
        "ClientAppRole",
        r#"{"clientAppId": "{ClientApp 1}", "roleType": "TenantAdmin", "applyToTenantId": "{Tenant %}"}"#,
        r#"{"applyToTenantId": "{Tenant %}"}"#,
    ),
    (
        "ClientAppScope",
        r#"{"clientAppId": "{ClientApp 1}", "key": "scope-%"}"#,
        r#"{"description": "Changed %"}"#,
    ),
    (
        "ClientAppSecret",
        r#"{"clientAppId": "{ClientApp 1}", "name": "secret %"}"#,
        r#"{"name": "changed secret %"}"#,
    ),
    (
        "CertStore",
        r#"{"name": "certificate %", "certType": "OidcTokenSigning", "applyToTenantId": "{Tenant 1}",
            "certificateInput": {"format": "Pem", "data": "{certificate}", "privateKey": "{private key}"}}"#,
        r#"{"name": "changed certificate %", "description": "Changed %"}"#,
    ),
    (
        "ClaimRule",
        r#"{"name": "rule %", "ruleType": "Filter", "ruleLevel": "ClientApp",
            "subscriptionId": "{subscriptionId}"}"#,
        r#"{"typeEvaluationRule": "^changed%$"}"#,
    ),
    // four letters of base64 are three of text
    (
        "CustomAsset",
        r#"{"location": "/assets/tenant/{Tenant 1}/file-%.txt", "mimetype": "text/plain", "data": "YWF%"}"#,
        r#"{"data": "YWJ%"}"#,
    ),
    (
        "CustomView",
        r#"{"location": "/views/tenant/{Tenant 1}/View%", "content": "<p>%</p>"}"#,
        r#"{"content": "<p>changed %</p>"}"#,
    ),
    (
        "EventSubscription",
        r#"{"name": "receiver %", "url": "https://receiver.example/%", "subscriptionId": "{subscriptionId}"}"#,
        r#"{"name": "changed receiver %"}"#,
    ),
    (
        "IpAddressRange",
        r#"{"lower": "10.0.0.%", "upper": "10.0.0.200", "tenantId": "{Tenant 1}"}"#,
        r#"{"upper": "10.0.1.%"}"#,
    ),
    (
        "UserQuestionnaireItem",
        r#"{"tenantId": "{Tenant 1}", "key": "item-%", "label": "Item %"}"#,
        r#"{"label": "Changed item %"}"#,
    ),
    (
        "RoleAssignment",
        r#"{"principalType": "PlatformUser", "principalId": "{ApplicationUser 1}",
            "roleType": "TenantAdmin", "applyToTenantId": "{Tenant %}"}"#,
        "{}",
    ),
];

/// The resources that are not protected: presentation, claims, customers, and the end of sign-ins.
pub const UNPROTECTED: &[&str] = &[
    "ApplicationUserProfile",
    "ClaimRule",
    "CustomAsset",
    "CustomView",
    "Customer",
    "EventSubscription",
    "IdpInstanceMetadata",
    "IdpType",
    "IpAddressRange",
    "SignInConsent",
    "SignInGrant",
    "SignInSession",
    "Subscription",
    "UserQuestionnaireItem",
];

/// Permitted roles, from the narrowest up.
pub type Roles = &'static [&'static str];

const NO_ROLE: Roles = &[];
const SYSTEM: Roles = &["SystemAdmin"];
const CUSTOMER: Roles = &["CustomerAdmin", "SystemAdmin"];
const SUBSCRIPTION: Roles = &["SubscriptionAdmin", "CustomerAdmin", "SystemAdmin"];
const TENANT: Roles = &["TenantAdmin", "SubscriptionAdmin", "CustomerAdmin", "SystemAdmin"];
/// Administrators of any kind: a store has one, too.
const ADMINISTRATORS: Roles =
    &["UserStoreAdmin", "TenantAdmin", "SubscriptionAdmin", "CustomerAdmin", "SystemAdmin"];
const DATA: Roles = &[
    "ApplicationDataReader",
    "UserStoreAdmin",
    "TenantAdmin",
    "SubscriptionAdmin",
    "CustomerAdmin",
    "SystemAdmin",
];
const TRAILS: Roles = &["AuditTrailReader", "SystemAdmin"];
const RECORDS: Roles =
    &["AuditTrailReader", "TenantAdmin", "SubscriptionAdmin", "CustomerAdmin", "SystemAdmin"];
/// The names of all roles.
pub const ROLE_NAMES: Roles = &[
    "UserAdmin",
    "AuditTrailReader",
    "ApplicationDataReader",
    "UserStoreAdmin",
    "TenantAdmin",
    "SubscriptionAdmin",
    "CustomerAdmin",
    "SystemAdmin",
];

/// A path prefix, the roles that may write, the roles that may read. The longest prefix wins. Where
/// it depends on the owner of a row, the narrowest role is listed: for others the row is out of scope.
pub const PERMITTED: &[(&str, Roles, Roles)] = &[
    ("/Customer", SYSTEM, CUSTOMER),
    ("/Subscription", CUSTOMER, SUBSCRIPTION),
    ("/Tenant", SUBSCRIPTION, TENANT),
    ("/IdpInstance", SUBSCRIPTION, TENANT),
    ("/MfaInstance", SUBSCRIPTION, TENANT),
    ("/IdpType", SYSTEM, TENANT),
    ("/IpAddressRange", SUBSCRIPTION, TENANT),
    ("/ClientApp", SUBSCRIPTION, TENANT),
    ("/ClientApp/{id}/tenants", TENANT, TENANT),
    ("/ClientApp/{id}/authorizedusers", TENANT, TENANT),
    ("/ClientApp/{id}/authorizedgroups", TENANT, TENANT),
    // requires read access to the client app; access to the user's store is checked in addition
    ("/ClientApp/{clientAppId}/tokens/preview", TENANT, NO_ROLE),
    ("/ClientAppAuthenticationConfiguration", SUBSCRIPTION, TENANT),
    ("/ClientAppFederatedIdentity", SUBSCRIPTION, TENANT),
    ("/ClientAppKeySet", SUBSCRIPTION, TENANT),
    ("/ClientAppRedirectUri", SUBSCRIPTION, TENANT),
    ("/ClientAppRequestUri", SUBSCRIPTION, TENANT),
    ("/ClientAppResource", SUBSCRIPTION, TENANT),
    ("/ClientAppRole", SUBSCRIPTION, TENANT),
    ("/ClientAppScope", SUBSCRIPTION, TENANT),
    ("/ClientAppSecret", SUBSCRIPTION, TENANT),
    // options of a tenant; those of an instance follow the instance
    ("/Option", TENANT, TENANT),
    ("/UserQuestionnaireItem", TENANT, TENANT),
    ("/ClaimRule", TENANT, TENANT),
    ("/CustomAsset", TENANT, TENANT),
    ("/CustomView", TENANT, TENANT),
    ("/CustomView/viewtemplate/names", NO_ROLE, ADMINISTRATORS),
    ("/CustomView/viewtemplate/content", NO_ROLE, ADMINISTRATORS),
    ("/CertStore", TENANT, TENANT),
    // a relation of the instance, seen from its other side
    ("/CertStore/{id}/idpinstances", SUBSCRIPTION, TENANT),
    ("/CustomAuditTrail", NO_ROLE, TRAILS),
    ("/ApplicationUser", NO_ROLE, DATA),
    ("/ApplicationUser/{applicationUserId}/ApplicationUserProfile", SUBSCRIPTION, DATA),
    ("/ApplicationGroup", NO_ROLE, DATA),
    ("/ApplicationUser/{id}/signout", ADMINISTRATORS, DATA),
    ("/SignInSession", ADMINISTRATORS, ADMINISTRATORS),
    ("/SignInGrant", ADMINISTRATORS, ADMINISTRATORS),
    ("/SignInFactor", ADMINISTRATORS, ADMINISTRATORS),
    ("/SignInConsent", TENANT, TENANT),
    ("/ClientAppRefusal", NO_ROLE, TENANT),
    ("/DirectoryRefusal", NO_ROLE, ADMINISTRATORS),
    ("/CredentialSetByOther", NO_ROLE, ADMINISTRATORS),
    ("/SignInRecord", NO_ROLE, RECORDS),
    // readable with read access to the subjects of the events; auditors have the trail
    ("/Event", NO_ROLE, TENANT),
    ("/EventSubscription", TENANT, TENANT),
    ("/SignInEvent", NO_ROLE, TENANT),
    ("/RoleAssignment", TENANT, TENANT),
    // any principal may read its own
    ("/EffectivePermissions", NO_ROLE, ROLE_NAMES),
    ("/passkey-trust", SYSTEM, SYSTEM),
    ("/identity-replacements", SUBSCRIPTION, SUBSCRIPTION),
    ("/identity-replacements/{id}/approvals", SUBSCRIPTION, SUBSCRIPTION),
    ("/identity-replacements/{id}/proofs", SYSTEM, SYSTEM),
    ("/identity-replacements/{id}/execute", SYSTEM, SYSTEM),
    ("/identity-replacements/{id}/cancel", SYSTEM, SYSTEM),
];

/// A row, read.
pub struct Row {
    /// The resource.
    pub resource: &'static str,
    /// The body that creates one.
    pub create: Value,
    /// The members that a change sets.
    pub change: Value,
}

/// The rows.
pub fn rows() -> Vec<Row> {
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    ROWS.iter()
        .map(|&(resource, create, change)| Row { resource, create: read(create), change: read(change) })
        .collect()
}

/// The operations of the service.
pub fn operations() -> impl Iterator<Item = &'static Op> {
    services()
        .iter()
        .filter(|service| service.name == "management" && service.version == "v2")
        .flat_map(|service| service.all())
}

/// The member that is a resource's key.
pub fn key_of<'a>(resource: &str, item: &'a Value) -> &'a str {
    let member = match resource {
        "ClientAppAuthenticationConfiguration" => "clientAppId",
        "ClientAppMetadata" | "GroupMetadata" | "IdpInstanceMetadata" => "key",
        "CustomAsset" | "CustomView" => "location",
        _ => "id",
    };
    item[member].as_str().unwrap()
}

/// The name of the standard operation; empty for any other operation.
pub fn kind_of(op: &Op) -> &'static str {
    match op.action {
        Action::List => "list",
        Action::Create => "create",
        Action::Read => "read",
        Action::Replace => "replace",
        Action::Patch => "patch",
        Action::Delete => "delete",
        Action::CreateBatch => "create many",
        Action::ReplaceBatch => "replace many",
        Action::DeleteBatch => "delete many",
        Action::ReplaceMembers(_) | Action::Relate(..) | Action::Custom(_) => "",
    }
}

/// The standard operations of a resource.
pub fn pattern_of(resource: &'static str) -> impl Iterator<Item = &'static Op> {
    operations().filter(move |op| op.shape.name == resource && !kind_of(op).is_empty())
}

/// Calls an operation at an address.
pub async fn send(client: &Client, op: &Op, address: &str, body: &Value) -> Answer {
    let method = http::Method::from_bytes(op.method.name().as_bytes()).unwrap();
    let bytes = if op.takes_body() { body.to_string().into_bytes() } else { Vec::new() };
    client.send(method, address, &[("content-type", "application/json")], bytes).await
}

/// Creates the one with this number of a row's resource.
pub async fn create(world: &World, fixtures: &Fixtures, row: &Row, number: usize) -> Value {
    let op = pattern_of(row.resource).find(|op| kind_of(op) == "create").unwrap();
    let body = fixtures.fill(&row.create, number);
    send(&world.admin, op, &fixtures.address(op.path, ""), &body).await.is(op.status).json()
}
