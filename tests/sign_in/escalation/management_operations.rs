//! Calls every operation of the management service that writes sign-in settings, rights of apps, or roles: as each lower role on
//! objects that a SystemAdmin signs in by, and as a SubscriptionAdmin on objects that a TenantAdmin signs in by.
//!
//! The requests follow from the declarations, so new operations and fields are covered without changes here. One that changes nothing
//! that is protected must be named in [`OPEN`]. Links are tried from either side in `settings` and `apps`.

use std::collections::{BTreeMap, BTreeSet};

use chancery::services;
use chancery_record::{Field, Value as Bound};
use chancery_resource::{Action, Op, RoleType};
use chancery_testkit::{Client, World, on_both_engines};
use http::Method;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::{
    apps::{child_resources, platform_client_app},
    assign_role,
    attempt::{Attempt, RequestContext, check_attempts},
    lower_roles,
    people::delete_controllers,
    person,
    settings::{certificate, identify, link, make, platform_user, store_and_tenant},
};
use crate::{id, instance::option, pattern::UNPROTECTED, resources::one, scim::directory_of};

/// The members that are not protected, by resource.
const OPEN: &[(&str, &[&str])] = &[
    ("IdpInstance", &["name", "storeNameKey", "position", "icon"]),
    ("MfaInstance", &["name", "position"]),
    ("Tenant", &["name", "description"]),
    ("CertStore", &["name", "description"]),
    // disabling an app gives no access
    ("ClientApp", &["enabled"]),
    // they describe an uploaded certificate, and have no effect without one
    ("CertStore", &["password", "certificateStorageFormat", "certificatePasswordProtection"]),
];

/// The child resources of a client app that a lower administrator may delete: a deletion gives no access.
const REMOVABLE: [&str; 3] = ["ClientAppKeySet", "ClientAppRedirectUri", "ClientAppSecret"];

/// Resources that a lower administrator may create: nobody signs in by a new one yet.
const OPEN_WHEN_NEW: [&str; 5] = ["IdpInstance", "MfaInstance", "Tenant", "CertStore", "ClientApp"];

/// Operations and members that fail even for a SystemAdmin, since they need more setup, and the reason.
const NEVER_ANSWERED: &[(&str, &str)] = &[
    ("CertStore certType", "a certificate stays one's own, or everybody's"),
    ("ClientApp idTokenEncryptedResponseEnc", "the algorithm beside it is needed"),
    ("ClientApp introspectionEncryptedResponseEnc", "the algorithm beside it is needed"),
    ("ClientApp isPublic", "the app authenticates by a secret"),
    ("ClientApp requestObjectEncryptionEnc", "the algorithm beside it is needed"),
    ("ClientApp securityProfile", "other members must follow it"),
    ("ClientApp userinfoEncryptedResponseEnc", "the algorithm beside it is needed"),
    ("ClientAppAuthenticationConfiguration requireDpopNonce", "tokens must be bound to keys first"),
    ("ClientAppAuthenticationConfiguration tlsClientAuthSanDns", "the app authenticates by a secret"),
    ("ClientAppAuthenticationConfiguration tlsClientAuthSanEmail", "the app authenticates by a secret"),
    ("ClientAppAuthenticationConfiguration tlsClientAuthSanIp", "the app authenticates by a secret"),
    ("ClientAppAuthenticationConfiguration tlsClientAuthSanUri", "the app authenticates by a secret"),
    ("ClientAppAuthenticationConfiguration tlsClientAuthSubjectDn", "the app authenticates by a secret"),
    ("ClientAppKeySet jwks", "the keys are at an address"),
    ("v1:CreateCertStore", "a certificate has another form there"),
    ("v1:CreateCertStoreBatch", "a certificate has another form there"),
    ("v1:DeleteIdpInstance", "people are in the store"),
    ("v1:DeleteIdpInstanceBatch", "people are in the store"),
    ("v2:CompleteIdpInstanceTrial", "no trial is under way"),
    ("v2:DeleteIdpInstance", "people are in the store"),
    ("v2:DeleteIdpInstanceBatch", "people are in the store"),
    ("v2:DeleteTenant", "roles are granted for the tenant"),
    ("v2:DeleteTenantBatch", "roles are granted for the tenant"),
    ("v2:Execute", "the replacement is not approved"),
    ("v2:ImportPasskeyTrust", "nobody but a SystemAdmin may"),
    ("v2:Request", "one is under way; people are tried without one in `people`"),
    ("v2:StartIdpInstanceTrial", "a store, or a provider without settings, is not tried out"),
];

/// Operations that only a SystemAdmin may call, on any object, and the reason.
const SYSTEM_ADMIN_ALONE: &[(&str, &str)] = &[
    ("v2:Cancel", "a SystemAdmin alone handles identity replacements"),
    ("v2:Execute", "a SystemAdmin alone handles identity replacements"),
    ("v2:ImportPasskeyTrust", "authenticators are trusted in the whole installation"),
    ("v2:ProveReplacementIdentity", "a SystemAdmin alone handles identity replacements"),
    ("v2:RefreshPasskeyTrust", "authenticators are trusted in the whole installation"),
];

/// By resource: the ids of the objects by which a person with a role signs in, and the bodies of new ones.
struct Targets {
    ids: BTreeMap<&'static str, String>,
    new: BTreeMap<&'static str, Json>,
}

impl Targets {
    /// The id of the row of a resource.
    fn id(&self, resource: &str) -> &str {
        self.ids.get(resource).map_or("", String::as_str)
    }

    /// The address of an operation.
    fn address(&self, base: &str, op: &Op) -> String {
        let parameters = [
            ("{id}", self.id(op.shape.name)),
            ("{idpInstance}", self.id("IdpInstance")),
            ("{clientAppId}", self.id("ClientApp")),
            ("{key}", "desk"),
        ];
        parameters.iter().fold(format!("{base}{}", op.path), |path, (name, value)| path.replace(name, value))
    }
}

/// Creates a client app, of the platform or not, with all child resources; new apps get the role.
async fn app_with_children(
    world: &World,
    (role, target): (&str, &Json),
    is_platform: bool,
    targets: &mut Targets,
) {
    let key = if is_platform { "PlatformManagementService" } else { "https://api.example.com" };
    let app = platform_client_app(world, "admin page", key).await;
    targets.ids.insert("ClientApp", id(&app).to_owned());
    targets.new.insert(
        "ClientApp",
        json!({
            "name": "walked", "subscriptionId": app["subscriptionId"], "allowedResponseTypes": "code,none",
            "sectorIdentifierUri": "https://walked.example/sector",
        }),
    );
    let metadata = format!("{}/ClientAppMetadata", one("ClientApp", &app));
    world.admin.post(&metadata, json!({ "key": "desk", "value": "4" })).await.expect(201);
    for (resource, body) in child_resources(&app) {
        let existing = world.all(resource).await;
        let existing =
            existing.as_array().unwrap().iter().find(|row| row["clientAppId"] == app["id"]).cloned();
        let row = match existing {
            Some(row) => row,
            None => world.make(resource, body.clone()).await,
        };
        let key = row.get("id").unwrap_or(&app["id"]).as_str().unwrap().to_owned();
        targets.ids.insert(resource, key);
        targets.new.insert(resource, second_row(body));
    }
    targets.new.get_mut("ClientAppKeySet").unwrap()["algorithm"] = json!("ES256");
    let plain = world.make("ClientApp", json!({ "name": "plain" })).await;
    let role = json!({ "clientAppId": plain["id"], "roleType": role });
    targets.new.insert("ClientAppRole", with_target(role, target));
}

/// The body of an assignment, with the target of its role.
fn with_target(mut body: Json, target: &Json) -> Json {
    body.as_object_mut().unwrap().extend(target.as_object().unwrap().clone());
    body
}

/// The body with other unique members, for a second row.
fn second_row(mut body: Json) -> Json {
    for (member, value) in [
        ("uri", "https://app.example.com/second"),
        ("jwksUri", "https://app.example.com/second"),
        ("key", "https://second.example.com"),
        ("issuer", "https://second.example.com"),
    ] {
        if body.get(member).is_some() {
            body[member] = json!(value);
        }
    }
    body
}

/// Creates the objects by which a person with a role signs in, and a client app, which is for the platform if `is_platform`.
async fn targets(world: &World, role: (&str, Json), is_platform: bool) -> Targets {
    let (store, tenant) = store_and_tenant(world).await;
    person(world, "boss", Some(role.clone())).await;
    let boss = platform_user(world, "boss").await;
    let provider = make(world, "IdpInstance", "Partner", "OpenIdConnect").await;
    identify(world, &boss, &provider, 1).await;
    let factor = make(world, "MfaInstance", "Codes", "totp").await;
    link(world, ("MfaInstance", &factor), "tenants", &tenant).await;
    let certificate = certificate(world, "linked").await;
    link(world, ("CertStore", &certificate), "idpinstances", &provider).await;
    let options = world.all("Option").await;
    let of_store = |name: &str| {
        let is_one = |row: &&Json| row["applyToIdpInstanceId"] == store["id"] && row["name"] == name;
        options.as_array().unwrap().iter().find(is_one).unwrap().clone()
    };
    world.admin.delete(&one("Option", &of_store("PasswordMaxLength"))).await.expect(204);
    let assignments = world.all("RoleAssignment").await;
    let is_boss = |row: &&Json| row["principalId"] == boss["id"];
    let assignment = assignments.as_array().unwrap().iter().find(is_boss).unwrap().clone();
    let other_instance = make(world, "IdpInstance", "work", "OpenIdConnect").await;
    let replacement = json!({
        "platformUserId": boss["id"], "replacementIdpInstanceId": other_instance["id"],
        "replacementUniqueUserId": "boss-at-work", "reason": "Lost her telephone",
    });
    let requested = world.admin.post("/api/management/v2/identity-replacements", replacement.clone()).await;
    let second = Uuid::from_u128(2);
    let sql = "INSERT INTO second_factor (id, person_id, mfa_instance_id, sealed, last_step, enrolled_on) \
        VALUES (?1, ?2, ?3, ?4, 0, 0)";
    let uuid = |row: &Json| Bound::Id(id(row).parse().unwrap());
    let sealed = Bound::from(b"sealed".to_vec());
    world.sql(vec![(sql, vec![Bound::Id(second), uuid(&boss), uuid(&factor), sealed])]).await;
    let rows = [
        ("IdpInstance", &store),
        ("Tenant", &tenant),
        ("MfaInstance", &factor),
        ("CertStore", &certificate),
        ("Option", &of_store("PasswordMinLength")),
        ("RoleAssignment", &assignment),
        ("ApplicationUser", &boss),
    ];
    let mut ids: BTreeMap<_, _> = rows.map(|(resource, row)| (resource, id(row).to_owned())).into();
    ids.insert("IdentityReplacement", id(&requested.is(201).json()).to_owned());
    ids.insert("SignInFactor", second.to_string());
    let option = json!({ "name": "PasswordMaxLength", "value": "99", "applyToIdpInstanceId": store["id"] });
    let assignment_body = json!({ "principalType": "PlatformUser", "principalId": boss["id"], "roleType": "ApplicationDataReader" });
    let pem = rcgen::generate_simple_self_signed(vec!["walked.example.com".to_owned()]).unwrap().cert.pem();
    let input = json!({ "format": "Pem", "data": pem });
    let body_of_type = |row: &Json| json!({ "name": "walked", "idpTypeId": row["idpTypeId"] });
    let new = BTreeMap::from([
        ("IdpInstance", body_of_type(&provider)),
        ("MfaInstance", body_of_type(&factor)),
        ("Tenant", json!({ "name": "walked", "subscriptionId": tenant["subscriptionId"] })),
        (
            "CertStore",
            json!({ "name": "walked", "certType": "OidcTokenEncryption", "certificateInput": input }),
        ),
        ("Option", option),
        ("RoleAssignment", with_target(assignment_body, &role.1)),
        ("IdentityReplacement", replacement),
    ]);
    let mut targets = Targets { ids, new };
    app_with_children(world, (role.0, &role.1), is_platform, &mut targets).await;
    targets
}

/// All attempts.
async fn attempts(world: &World, targets: &Targets) -> Vec<Attempt> {
    let mut all = Vec::new();
    for service in services().iter().filter(|service| service.name == "management") {
        let is_covered = |op: &&Op| {
            op.writes() && !UNPROTECTED.contains(&op.shape.name) && !matches!(op.action, Action::Relate(..))
        };
        for op in service.all().filter(is_covered) {
            let resource = op.shape.name;
            let row = current_row(&world.admin, service.base, service.all(), op, targets).await;
            let value = |field: &Field| targets.new.get(resource)?.get(field.wire()).cloned();
            let context = RequestContext { row, value: &value };
            let operation = format!("{}:{}", service.version, op.name);
            let bodies = context.bodies(op).unwrap_or_else(|| vec![(String::new(), Some(json!({})))]);
            for (member, body) in bodies {
                all.push(Attempt {
                    operation: operation.clone(),
                    is_open: is_open(op, resource, &member),
                    member,
                    resource,
                    method: op.method.name().parse::<Method>().unwrap(),
                    path: targets.address(service.base, op),
                    media_type: "application/json",
                    body: body.map(|body| body.to_string().into_bytes()).unwrap_or_default(),
                });
            }
        }
    }
    all
}

/// Whether an operation on this member changes nothing that is protected.
fn is_open(op: &Op, resource: &str, member: &str) -> bool {
    let is_new = matches!(op.action, Action::Create | Action::CreateBatch);
    let is_deleted = matches!(op.action, Action::Delete | Action::DeleteBatch);
    // a sign-out gives no access
    op.name == "SignOutApplicationUser"
        || (is_new && OPEN_WHEN_NEW.contains(&resource))
        || (is_deleted && REMOVABLE.contains(&resource))
        || OPEN.iter().any(|(of, members)| *of == resource && members.contains(&member))
}

/// The row of an operation, as the service returns it.
async fn current_row(
    admin: &Client,
    base: &str,
    mut all: impl Iterator<Item = &'static Op>,
    op: &Op,
    targets: &Targets,
) -> Json {
    let is_read_op = |other: &&Op| matches!(other.action, Action::Read) && other.shape.name == op.shape.name;
    let Some(read_op) = all.find(is_read_op) else { return json!({}) };
    let current_row = admin.get(&targets.address(base, read_op)).await;
    if current_row.status == 200 { current_row.json() } else { json!({}) }
}

on_both_engines! {
    /// A lower administrator is refused exactly the protected operations.
    async fn every_protected_operation_on_sign_in_objects_is_refused(world: World) {
        let targets = targets(&world, ("SystemAdmin", json!({})), true).await;
        let system_admin = world.client("above", &[("SystemAdmin", None, None)]).await;
        let lower = lower_roles(&world).await;
        // so that the apps are independent of the requester of the replacement
        delete_controllers(&world).await;
        let attempts = attempts(&world, &targets).await;
        let never_answered = check_attempts(&attempts, &system_admin, &lower, RoleType::SystemAdmin).await;
        let expected: BTreeSet<String> = NEVER_ANSWERED.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(never_answered, expected);
    }

    /// So are those on a provider and a person from elsewhere.
    async fn every_protected_operation_on_an_external_provider_and_its_people_is_refused(world: World) {
        let system = ("SystemAdmin", json!({}));
        let mut targets = targets(&world, system.clone(), false).await;
        let provider = world.all("IdpInstance?filter=name%20eq%20%22Partner%22").await[0].clone();
        let (directory, base) = directory_of(&world, &provider).await;
        let chief = directory.post(&format!("{base}/Users"), json!({ "userName": "chief", "externalId": "s-chief" })).await;
        let chief = chief.is(201).json();
        assign_role(&world, "PlatformUser", &chief, system.0, system.1).await;
        world.admin.delete(&one("Option", &option(&world, &provider, "CallbackPath").await)).await.expect(204);
        for (resource, row) in [
            ("IdpInstance", &provider), ("Option", &option(&world, &provider, "ClientId").await), ("ApplicationUser", &chief),
        ] {
            targets.ids.insert(resource, id(row).to_owned());
        }
        let body = json!({ "name": "CallbackPath", "value": "/walked", "applyToIdpInstanceId": provider["id"] });
        targets.new.insert("Option", body);
        let system_admin = world.client("above", &[("SystemAdmin", None, None)]).await;
        let lower = lower_roles(&world).await;
        let mut attempts = attempts(&world, &targets).await;
        attempts.retain(|attempt| ["IdpInstance", "Option", "ApplicationUser"].contains(&attempt.resource));
        let never_answered = check_attempts(&attempts, &system_admin, &lower, RoleType::SystemAdmin).await;
        let of_provider = NEVER_ANSWERED.iter().filter(|(name, _)| name.contains("IdpInstance"));
        assert_eq!(never_answered, of_provider.map(|(name, _)| (*name).to_owned()).collect());
    }

    /// Where all roles are covered, a SubscriptionAdmin gets the same answers as a SystemAdmin.
    async fn every_operation_on_covered_sign_in_objects_is_answered_as_to_a_system_admin(world: World) {
        let tenant = world.all("Tenant").await[0]["id"].clone();
        let targets = targets(&world, ("TenantAdmin", json!({ "applyToTenantId": tenant })), false).await;
        let system_admin = world.client("above", &[("SystemAdmin", None, None)]).await;
        let subscription_admin = world.client("middle", &[("SubscriptionAdmin", None, None)]).await;
        delete_controllers(&world).await;
        let (mut wrong, mut exceptions) = (Vec::new(), BTreeSet::new());
        for attempt in attempts(&world, &targets).await {
            let (expected, _) = attempt.by(&system_admin).await;
            let (status, answer) = attempt.by(&subscription_admin).await;
            let operation = attempt.operation.as_str();
            if status != expected && SYSTEM_ADMIN_ALONE.iter().any(|(name, _)| *name == operation) {
                exceptions.insert(operation.to_owned());
            } else if status != expected {
                wrong.push(format!("{operation} {}: {status} instead of {expected}: {answer}", attempt.member));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(exceptions, SYSTEM_ADMIN_ALONE.iter().map(|(name, _)| (*name).to_owned()).collect());
    }
}
