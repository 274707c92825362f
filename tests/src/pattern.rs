//! The standard operations of the management service, and bodies of all resources for them.

use chancery::services;
use chancery_resource::{Action, Op};
use chancery_testkit::{Answer, Client, World};
use serde_json::Value;

use crate::fixtures::Fixtures;

/// Resource, body that creates one, members that a change sets. `%` is a number, so that no two are the
/// same; names in braces are fixtures of [`crate::fixtures`]. A role assignment cannot be changed.
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
