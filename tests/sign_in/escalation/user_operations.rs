//! Calls every operation that writes users and groups, as each lower role: refused where the user or the
//! group has a role that is not covered, and answered as to a SystemAdmin where all roles are covered.
//!
//! The requests follow from the declarations, so new operations and fields are covered without changes here. One that changes nothing
//! that is protected must be named in [`OPEN`].

use std::collections::BTreeMap;

use chancery::services;
use chancery_record::Field;
use chancery_resource::{Action, Body, Custom, Op, Permit, RelationChange, RoleType};
use chancery_testkit::{Client, World, on_both_engines};
use http::Method;
use serde_json::{Value as Json, json};

use super::{
    PASSWORD,
    attempt::{Attempt, RequestContext, check_attempts},
    default_store, group, lower_roles,
    people::delete_controllers,
    person, store_admin,
};
use crate::{
    authenticator::{Authenticator, allow},
    id,
    picture::png,
    signing::set_mail_server,
};

/// The members of users that are not protected, as named by version 2, version 1 and SCIM.
const OPEN_OF_USERS: &[&str] = &[
    "firstName",
    "lastName",
    "middleName",
    "nickname",
    "profile",
    "picture",
    "website",
    "gender",
    "birthdate",
    "zoneinfo",
    "locale",
    "name.givenName",
    "title",
];

/// The same of groups.
const OPEN_OF_GROUPS: &[&str] = &["name", "displayName"];

/// Tables of child rows of users and groups that are not protected.
const OPEN_TABLES: [&str; 3] = ["user_profile", "group_metadata", "user_image"];

/// Tables of rows that belong to no user and no group.
const WITHOUT_OWNER: [&str; 2] = ["event_subscription", "scim_token"];

/// The operations that change no existing user or group.
const OPEN_OPERATIONS: &[&str] = &[
    "v2:SynchronizeAllUsers",
    "v2:SynchronizeAllGroups",
    "v1:SynchronizeAllUsers",
    "v1:SynchronizeAllGroups",
    // it requires a proof that only the user has
    "v2:StartPasskeyAuthentication",
    "ScimCreateUser",
    "ScimCreateGroup",
];

/// Operations that fail even for a SystemAdmin, since they need more setup, and the reason.
const NEVER_ANSWERED: &[(&str, &str)] = &[
    ("v2:CompleteRecovery", "the recovery is not approved"),
    ("v2:FinishPasskeyAuthentication", "the answer of the person's authenticator is the proof"),
    ("v2:RedeemTemporaryAccessPass", "the value of the pass is the proof"),
];

const UNKNOWN_ID: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
const USERS: &str = "administration/User";
const GROUPS: &str = "administration/Group";

/// A user and a group, and their child rows.
struct Target {
    user: Json,
    group: Json,
    /// Another group with the role, in which the user is not.
    extra: Json,
    /// A member user, a member group and a parent group of the group.
    linked: [Json; 3],
    /// A user and a group without links to the group.
    other: Json,
    other_group: Json,
    /// What parameters of paths and members of bodies stand for.
    parameters: BTreeMap<&'static str, String>,
}

/// Whether an operation on this member changes nothing that is protected.
fn is_open(operation: &str, op: &Op, member: &str) -> bool {
    let open = if op.shape.table.ends_with("group") { OPEN_OF_GROUPS } else { OPEN_OF_USERS };
    open.contains(&member)
        || OPEN_TABLES.contains(&op.shape.table)
        || OPEN_OPERATIONS.contains(&operation)
        || matches!(op.action, Action::Create | Action::CreateBatch)
}

impl Target {
    /// What parameters of paths stand for.
    fn parameters(user: &Json, group: &Json) -> BTreeMap<&'static str, String> {
        let parameters = [
            ("user_group", id(group)),
            ("userstore", "default"),
            ("instance", "default"),
            ("userId", id(user)),
            ("parentId", id(user)),
            ("groupId", id(group)),
            ("key", "desk"),
            ("loginName", user["loginName"].as_str().unwrap()),
            ("loginname", user["loginName"].as_str().unwrap()),
        ];
        parameters.into_iter().map(|(name, text)| (name, text.to_owned())).collect()
    }

    /// The address of an operation on the target.
    fn address(&self, path: &str, op: &Op) -> String {
        let own = self.parameters.get(op.shape.table).map_or(id(&self.user), String::as_str);
        let path = path.replace("{id}", own);
        let path = self
            .parameters
            .iter()
            .fold(path, |path, (name, text)| path.replace(&format!("{{{name}}}"), text));
        // unknown parameters
        path.split('/')
            .map(|segment| if segment.starts_with('{') { UNKNOWN_ID } else { segment })
            .collect::<Vec<_>>()
            .join("/")
    }

    /// An existing link for a removal, a new one for other changes.
    fn related(&self, op: &Op, name: &str, change: RelationChange) -> Json {
        let is_removed = change == RelationChange::Remove;
        let related = match (op.shape.table, name) {
            ("user_account", _) if is_removed => &self.group,
            ("user_account", _) => &self.extra,
            (_, "memberUsers") if is_removed => &self.linked[0],
            (_, "memberUsers") => &self.other,
            (_, "memberGroups") if is_removed => &self.linked[1],
            _ if is_removed => &self.linked[2],
            _ => &self.other_group,
        };
        json!({ "relatedIds": [related["id"]] })
    }

    /// The row of an operation, as the service returns it.
    async fn row(&self, admin: &Client, base: &str, op: &Op) -> Json {
        let one = match op.shape.table {
            "user_account" => format!("{base}/{USERS}/{}", id(&self.user)),
            "user_group" => format!("{base}/{GROUPS}/{}", id(&self.group)),
            "user_profile" => format!("{base}/administration/user/{}/UserProfile/desk", id(&self.user)),
            "group_metadata" => format!("{base}/{GROUPS}/{}/GroupMetadata/desk", id(&self.group)),
            _ => return json!({}),
        };
        let response = admin.get(&one).await;
        if response.status == 200 { response.json() } else { json!({}) }
    }
}

/// The bodies for an operation, each with the changed member.
async fn bodies(admin: &Client, base: &str, op: &Op, target: &Target) -> Vec<(String, Option<Json>)> {
    let value = |field: &Field| match field.wire() {
        "userId" => Some(target.user["id"].clone()),
        "groupId" => Some(target.group["id"].clone()),
        name if name.to_lowercase().ends_with("password") => Some(json!(PASSWORD)),
        "value" => Some(json!("walked@example.com")),
        "concurrencyToken" => target.user.get("concurrencyToken").cloned(),
        _ => None,
    };
    let context = RequestContext { row: target.row(admin, base, op).await, value: &value };
    context.bodies(op).unwrap_or_else(|| {
        let bodies = match op.action {
            Action::Relate(relation, change) => {
                vec![(String::new(), target.related(op, relation.name, change))]
            }
            _ => by_schema(op, target),
        };
        bodies.into_iter().map(|(name, body)| (name, Some(body))).collect()
    })
}

/// Bodies that only a schema describes.
fn by_schema(op: &Op, target: &Target) -> Vec<(String, Json)> {
    let one = |member: &str, body: Json| (member.to_owned(), body);
    let operation = |path: &str, value: Json| {
        one(path, json!({ "Operations": [{ "op": "replace", "path": path, "value": value }] }))
    };
    match op.name {
        "ScimReplaceUser" => vec![one("userName", json!({ "userName": "walked" }))],
        "ScimReplaceGroup" => vec![one(
            "members",
            json!({
                "displayName": target.group["name"], "members": [{ "value": target.other["id"] }]
            }),
        )],
        "ScimPatchUser" => vec![
            operation("userName", json!("walked")),
            operation("externalId", json!("walked")),
            operation("active", json!(false)),
            operation("emails", json!([{ "value": "walked@example.com" }])),
            operation("phoneNumbers", json!([{ "value": "+49 30 90817263" }])),
            operation("password", json!(PASSWORD)),
            operation("name.givenName", json!("Augusta")),
            operation("title", json!("Countess")),
        ],
        "ScimPatchGroup" => vec![
            operation("displayName", json!("walked")),
            operation("externalId", json!("walked")),
            operation("members", json!([{ "value": target.other["id"] }])),
        ],
        "ScimCreateUser" => vec![one("", json!({ "userName": "walked" }))],
        "ScimCreateGroup" => vec![one("", json!({ "displayName": "walked" }))],
        "SetUserStateBatch" => vec![one("", json!([{ "id": target.user["id"], "isUserActive": false }]))],
        "RemovePasswordBatch" | "RestorePasswordBatch" => vec![one("", json!([target.user["id"]]))],
        _ => vec![one("", json!({}))],
    }
}

/// The writing operations of both versions of the user store service that administrators may call.
fn operations() -> Vec<(String, String, &'static Op)> {
    let of_services = services().iter().filter(|service| service.name == "userstore").flat_map(|service| {
        service.all().map(|op| (format!("{}:{}", service.version, op.name), service.base.to_owned(), op))
    });
    let is_callable = |op: &Op| {
        op.writes()
            && !matches!(op.permit, Permit::Public | Permit::Person)
            && !WITHOUT_OWNER.contains(&op.shape.table)
    };
    of_services.filter(|(.., op)| is_callable(op)).collect()
}

/// All attempts on a target.
async fn attempts(world: &World, target: &Target) -> Vec<Attempt> {
    let mut all = Vec::new();
    let of_directories = chancery_provisioning::paths().filter(|(_, op)| {
        op.writes() && op.permit != Permit::Person && ["user_account", "user_group"].contains(&op.shape.table)
    });
    let of_directories =
        of_directories.map(|(path, op)| (op.name.to_owned(), "/api/scim/v2/{instance}".to_owned(), path, op));
    let of_services = operations().into_iter().map(|(name, base, op)| (name, base, op.path.to_owned(), op));
    for (operation, base, path, op) in of_services.chain(of_directories) {
        let base = target.address(&base, op);
        let method: Method = op.method.name().parse().unwrap();
        let path = target.address(&format!("{base}{path}"), op);
        for (member, body) in bodies(&world.admin, &base, op, target).await {
            let is_image = matches!(op.action, Action::Custom(Custom { body: Body::Bytes(..), .. }));
            let (media_type, body) = match body {
                None if is_image => ("image/png", png()),
                None => ("application/json", Vec::new()),
                Some(body) => ("application/json", body.to_string().into_bytes()),
            };
            let (operation, method, path) = (operation.clone(), method.clone(), path.clone());
            let is_open = is_open(&operation, op, &member);
            let resource = op.shape.name;
            all.push(Attempt { operation, member, resource, method, path, media_type, body, is_open });
        }
    }
    all
}

/// Child rows of a user: the table, and the path and body that create one. The recovery is of another user, since a user has one at a time.
fn child_rows(user: &Json, other_user: &Json) -> [(&'static str, String, Json); 3] {
    let security = "/passkey-security";
    let contact = json!({ "kind": "Email", "value": "contact@example.com" });
    [
        ("security_contact", format!("/User/{}/security-contact", id(user)), contact),
        (
            "temporary_access_pass",
            format!("{security}/temporary-access-passes"),
            json!({ "userId": user["id"] }),
        ),
        (
            "recovery_transaction",
            format!("{security}/recovery-transactions"),
            json!({ "userId": other_user["id"], "method": "IdentityDocument", "reason": "the telephone is lost" }),
        ),
    ]
}

/// Creates a user and a group with this role, or with none.
async fn target(world: &World, name: &str, number: u8, role: Option<(&str, Json)>) -> Target {
    let user = person(world, name, role.clone()).await;
    let phone = json!({ "phoneNumber": "+49 30 12345678", "concurrencyToken": user["concurrencyToken"] });
    world.admin.patch(&world.path(&format!("/User/{}", id(&user))), phone).await.expect(202);
    let other_user = person(world, &format!("{name}-second"), role.clone()).await;
    let group = group(world, &format!("{name}-group"), role.clone()).await;
    let extra = super::group(world, &format!("{name}-extra"), role).await;
    let entry = json!({ "key": "desk", "value": "4" });
    world
        .admin
        .post(&world.path(&format!("/user/{}/UserProfile", id(&user))), entry.clone())
        .await
        .expect(202);
    world.admin.post(&world.path(&format!("/Group/{}/GroupMetadata", id(&group))), entry).await.expect(200);
    let named = |what: &str| format!("{name}-{what}");
    let linked = [
        world.user(&named("member")).await,
        world.group(&named("inner")).await,
        world.group(&named("outer")).await,
    ];
    let members =
        [("users", &user), ("users", &linked[0]), ("membergroups", &linked[1]), ("parentgroups", &linked[2])];
    for (relation, related) in members {
        let links = world.path(&format!("/Group/{}/{relation}", id(&group)));
        world.admin.post(&links, json!({ "relatedIds": [related["id"]] })).await.expect(202);
    }
    let (other, other_group) = (world.user(&named("other")).await, world.group(&named("others")).await);
    let one = world.path(&format!("/User/{}", id(&user)));
    world
        .admin
        .send(Method::PUT, &format!("{one}/image"), &[("content-type", "image/png")], png())
        .await
        .expect(200);
    let password = json!({ "password": PASSWORD });
    world.admin.post(&format!("{one}/password/initial"), password).await.expect(200);
    let user = world.admin.get(&one).await.is(200).json();
    let mut parameters = Target::parameters(&user, &group);
    for (table, path, body) in child_rows(&user, &other_user) {
        let created = world.admin.post(&world.path(&path), body).await.is(201).json();
        parameters.insert(table, id(&created).to_owned());
    }
    let passkey = Authenticator::new(number).register(world, &user).await.is(201).json();
    parameters.insert("passkeyId", id(&passkey).to_owned());
    Target { user, group, extra, linked, other, other_group, parameters }
}

on_both_engines! {
    /// A lower administrator is refused exactly the protected operations, whether the higher role is the highest or one in the middle.
    async fn every_protected_operation_on_a_higher_privileged_user_is_refused(world: World) {
        set_mail_server(&world.admin).await;
        allow(&world).await;
        let system_admin = world.client("above", &[("SystemAdmin", None, None)]).await;
        let subscription = json!({ "applyToSubscriptionId": default_store(&world).await["subscriptionId"] });
        let boss = target(&world, "boss", 1, Some(("SystemAdmin", json!({})))).await;
        let manager = target(&world, "manager", 2, Some(("SubscriptionAdmin", subscription))).await;
        let lower = lower_roles(&world).await;
        // so that the apps are independent of the requester of the recovery
        delete_controllers(&world).await;
        for (above, target) in [(RoleType::SystemAdmin, boss), (RoleType::SubscriptionAdmin, manager)] {
            let attempts = attempts(&world, &target).await;
            let never_answered = check_attempts(&attempts, &system_admin, &lower, above).await;
            assert_eq!(never_answered, NEVER_ANSWERED.iter().map(|(name, _)| (*name).to_owned()).collect());
        }
    }

    /// Where all roles are covered, a lower administrator gets the same answers as a SystemAdmin.
    async fn every_operation_on_a_covered_user_is_answered_as_to_a_system_admin(world: World) {
        let store_admin = store_admin(&world).await;
        let system_admin = world.client("above", &[("SystemAdmin", None, None)]).await;
        let store = default_store(&world).await;
        set_mail_server(&world.admin).await;
        allow(&world).await;
        for (number, name, role) in [
            (1, "ordinary", None),
            (2, "peer", Some(("UserStoreAdmin", json!({ "applyToIdpInstanceId": store["id"] })))),
        ] {
            let target = target(&world, name, number, role).await;
            let mut wrong = Vec::new();
            for attempt in attempts(&world, &target).await {
                let (expected, _) = attempt.by(&system_admin).await;
                let (status, answer) = attempt.by(&store_admin).await;
                if status != expected {
                    wrong.push(format!("{name} {} {}: {status} instead of {expected}: {answer}", attempt.operation, attempt.member));
                }
            }
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
    }
}
