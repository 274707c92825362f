//! Privilege escalation: nobody takes over roles that their own do not cover, and help desk operations on covered users work.
//!
//! `docs/decisions/0007-who-may-act-on-whom.md` explains the rule.

mod approvers;
mod apps;
mod attempt;
mod issued_before_promotion;
mod linked_identities;
mod management_operations;
mod people;
mod provider_setters;
mod role_carriers;
mod role_costs;
mod sequences;
mod set_by_others;
mod settings;
mod user_operations;

use std::collections::BTreeSet;

use chancery_record::format_timestamp;
use chancery_resource::{Action, Op, ROLES, RoleType, ScopeKind};
use chancery_testkit::{Answer, Client, World, catalogue::operations, on_both_engines};
use serde_json::{Value, json};

use crate::{id, pointers, roles::assign_role};

const PASSWORD: &str = "four lively grey herons";

/// The body that confirms the settings of an instance as they are now.
pub fn reviewed_now() -> Value {
    let mut now = Vec::new();
    // a change in the same millisecond would not count as reviewed
    format_timestamp(chancery_web::now().plus(1), &mut now);
    json!({ "reviewedOn": String::from_utf8(now).unwrap() })
}

/// The user store of the world.
async fn default_store(world: &World) -> Value {
    let instances = world.all("IdpInstance").await;
    instances.as_array().unwrap().iter().find(|one| one["name"] == "default").unwrap().clone()
}

/// The platform user of a user of the store.
async fn platform_user(world: &World, user: &Value) -> Value {
    world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
    world.all(&format!("ApplicationUser?filter=identities.subject%20eq%20%22{}%22", id(user))).await[0]
        .clone()
}

/// A client with the role UserStoreAdmin of the world's store only.
async fn store_admin(world: &World) -> Client {
    let store = default_store(world).await;
    world.client("helper", &[("UserStoreAdmin", None, Some(id(&store).parse().unwrap()))]).await
}

/// A client app for each role but SystemAdmin, at the world's store or tenant where the role has a target.
async fn lower_roles(world: &World) -> Vec<(RoleType, Client)> {
    let store = id(&default_store(world).await).parse().unwrap();
    let tenant = id(&world.all("Tenant").await[0]).parse().unwrap();
    let mut lower = Vec::new();
    for line in ROLES.iter().filter(|line| line.role != RoleType::SystemAdmin) {
        let at = |kind| line.given_at.contains(&kind);
        let of_tenant = at(ScopeKind::Tenant).then_some(tenant);
        let of_store = (of_tenant.is_none() && at(ScopeKind::UserStore)).then_some(store);
        let role = line.role.name();
        lower.push((line.role, world.client(role, &[(role, of_tenant, of_store)]).await));
    }
    lower
}

/// A user of the store, with this role and its target, or with none.
async fn person(world: &World, name: &str, role: Option<(&str, Value)>) -> Value {
    let body =
        json!({ "loginName": name, "emailAddress": format!("{name}@example.com"), "firstName": "Ada" });
    let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
    world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
    if let Some((role, target)) = role {
        let filter = format!("emailAddress%20eq%20%22{name}%40example.com%22");
        let platform = world.all(&format!("ApplicationUser?filter={filter}")).await[0].clone();
        assign_role(world, "PlatformUser", &platform, role, target).await;
    }
    user
}

/// A group of the store, with this role or with none.
async fn group(world: &World, name: &str, role: Option<(&str, Value)>) -> Value {
    let group = world.group(name).await;
    world.admin.post(&world.path("/Group/synchronize"), json!(null)).await.expect(200);
    if let Some((role, target)) = role {
        let platform =
            world.all(&format!("ApplicationGroup?filter=name%20eq%20%22{name}%22")).await[0].clone();
        assign_role(world, "PlatformGroup", &platform, role, target).await;
    }
    group
}

fn assert_refused(answer: Answer, role: &str, about: &Value) -> Value {
    let problem = answer.problem(403, "forbidden");
    assert_eq!((&problem["role"], &problem["id"]), (&json!(role), &about["id"]), "{problem}");
    problem
}

/// Operations on a user: the name, whether it changes protected attributes, and the answer.
async fn user_operations_by(
    client: &Client,
    world: &World,
    user: &Value,
) -> Vec<(&'static str, bool, Answer)> {
    let one = world.path(&format!("/User/{}", id(user)));
    let now = async || world.admin.get(&one).await.is(200).json();
    let put_body = async |change: Value| {
        let mut user = now().await;
        let members = user.as_object_mut().unwrap();
        members.extend(change.as_object().unwrap().clone());
        members.retain(|_, value| !value.is_array());
        user
    };
    let patch = async |change: Value| {
        let mut change = change;
        change["concurrencyToken"] = now().await["concurrencyToken"].clone();
        change
    };
    let batch = world.path("/User/batch");
    let profile = world.path(&format!("/user/{}/UserProfile", id(user)));
    let pass = json!({ "userId": user["id"] });
    vec![
        (
            "PatchUser",
            true,
            client.patch(&one, patch(json!({ "emailAddress": "eve@example.com" })).await).await,
        ),
        ("UpdateUser", true, client.put(&one, put_body(json!({ "isUserActive": false })).await).await),
        (
            "UpdateUsers",
            true,
            client.put(&batch, json!([put_body(json!({ "loginName": "eve" })).await])).await,
        ),
        (
            "UpdateUserEmailAddress",
            true,
            client
                .put(
                    &format!("{one}/emailaddress"),
                    patch(json!({ "emailAddress": "eve@example.com" })).await,
                )
                .await,
        ),
        (
            "SetInitialPassword",
            true,
            client.post(&format!("{one}/password/initial"), json!({ "password": PASSWORD })).await,
        ),
        (
            "ResetPassword",
            true,
            client.post(&format!("{one}/password/reset"), json!({ "newPassword": PASSWORD })).await,
        ),
        (
            "ResetPasswordTokenRequest",
            true,
            client.post(&format!("{one}/password/reset/request"), json!(null)).await,
        ),
        ("ResetAccessFailedCount", true, client.post(&format!("{one}/lockout/reset"), json!(null)).await),
        ("SetUserState", true, client.post(&format!("{one}/state"), json!({ "isUserLocked": true })).await),
        (
            "CreateAccessPass",
            true,
            client.post(&world.path("/passkey-security/temporary-access-passes"), pass).await,
        ),
        (
            "CreateSecurityContact",
            true,
            client
                .post(
                    &format!("{one}/security-contact"),
                    json!({ "kind": "Email", "value": "eve@example.com" }),
                )
                .await,
        ),
        ("PatchUser", false, client.patch(&one, patch(json!({ "firstName": "Augusta" })).await).await),
        ("CreateUserProfile", false, client.post(&profile, json!({ "key": "desk", "value": "4" })).await),
        (
            "SetUserStateBatch",
            true,
            client
                .post(&world.path("/User/state/batch"), json!([{ "id": user["id"], "isUserActive": false }]))
                .await,
        ),
        (
            "RemovePasswordBatch",
            true,
            client.post(&world.path("/User/password/remove/batch"), json!([user["id"]])).await,
        ),
        (
            "RestorePasswordBatch",
            true,
            client.post(&world.path("/User/password/restore/batch"), json!([user["id"]])).await,
        ),
        ("DeleteBatch", true, client.delete_with(&batch, json!([user["id"]])).await),
    ]
}

on_both_engines! {
    /// A UserStoreAdmin changes no attribute that decides who signs in as a user with a higher role.
    async fn a_lower_administrator_cannot_take_over_a_user(world: World) {
        let store_admin = store_admin(&world).await;
        let boss = person(&world, "boss", Some(("SystemAdmin", json!({})))).await;
        let before = world.admin.get(&world.path(&format!("/User/{}", id(&boss)))).await.is(200).json();
        for (operation, is_protected, answer) in user_operations_by(&store_admin, &world, &boss).await {
            if is_protected {
                let problem = assert_refused(answer, "SystemAdmin", &boss);
                let is_batch = operation == "UpdateUsers" || operation.ends_with("Batch");
                assert_eq!(if is_batch { pointers(&problem) } else { vec![] }, if is_batch { vec!["/0"] } else { vec![] });
            } else {
                assert!(answer.status.is_success(), "{operation}: {}", answer.status);
            }
        }
        store_admin.delete(&world.path(&format!("/User/{}", id(&boss)))).await.expect(403);
        let after = world.admin.get(&world.path(&format!("/User/{}", id(&boss)))).await.is(200).json();
        assert_eq!((&after["emailAddress"], &after["isUserActive"]), (&before["emailAddress"], &before["isUserActive"]));
        // a caller with the role may do all of it
        for (operation, _, answer) in user_operations_by(&world.admin, &world, &boss).await {
            assert!(answer.status != 403 && answer.status.as_u16() < 500, "{operation}: {}", answer.status);
        }
    }

    /// Ordinary users and peers can be managed: only roles that are not covered restrict the caller.
    async fn the_help_desk_manages_users_with_covered_roles(world: World) {
        let store_admin = store_admin(&world).await;
        let store = default_store(&world).await;
        let of_store = json!({ "applyToIdpInstanceId": store["id"] });
        let everybody = group(&world, "everybody", Some(("ApplicationDataReader", json!({})))).await;
        for (name, role) in [
            ("ordinary", None),
            ("peer", Some(("UserStoreAdmin", of_store))),
            ("reader", Some(("ApplicationDataReader", json!({})))),
            ("clerk", Some(("UserAdmin", json!({})))),
        ] {
            let user = person(&world, name, role).await;
            let add = json!({ "relatedIds": [everybody["id"]] });
            store_admin.post(&world.path(&format!("/User/{}/groups", id(&user))), add).await.expect(202);
            for (operation, _, answer) in user_operations_by(&store_admin, &world, &user).await {
                // some need more setup, such as enabled contacts
                assert!(answer.status != 403 && answer.status.as_u16() < 500, "{name}: {operation}: {}", answer.status);
                let must_succeed = ["PatchUser", "ResetPassword", "SetUserState", "CreateAccessPass"].contains(&operation);
                assert!(answer.status.is_success() || !must_succeed, "{name}: {operation}: {}", answer.status);
            }
        }
    }

    /// A group that gives a role, itself or by a parent group, cannot be joined, left, nested or deleted without the role.
    async fn a_lower_administrator_cannot_change_a_group_with_a_higher_role(world: World) {
        let store_admin = store_admin(&world).await;
        let outer = group(&world, "outer", Some(("SystemAdmin", json!({})))).await;
        let (inner, other) = (group(&world, "inner", None).await, group(&world, "other", None).await);
        let nest = world.path(&format!("/Group/{}/membergroups", id(&outer)));
        world.admin.post(&nest, json!({ "relatedIds": [inner["id"]] })).await.expect(202);
        let (eve, boss) = (person(&world, "eve", None).await, person(&world, "boss", None).await);
        let join = world.path(&format!("/Group/{}/users", id(&inner)));
        world.admin.post(&join, json!({ "relatedIds": [boss["id"]] })).await.expect(202);

        let related = |one: &Value| json!({ "relatedIds": [one["id"]] });
        let of_group = |group: &Value, rest: &str| world.path(&format!("/Group/{}{rest}", id(group)));
        for (group_with_role, at) in [(&outer, of_group(&outer, "/users")), (&inner, of_group(&inner, "/users"))] {
            assert_refused(store_admin.post(&at, related(&eve)).await, "SystemAdmin", group_with_role);
            assert_refused(store_admin.put(&at, related(&eve)).await, "SystemAdmin", group_with_role);
        }
        assert_refused(store_admin.delete_with(&join, related(&boss)).await, "SystemAdmin", &inner);
        let own = world.path(&format!("/User/{}/groups", id(&eve)));
        assert_refused(store_admin.post(&own, related(&inner)).await, "SystemAdmin", &inner);
        assert_refused(store_admin.put(&own, related(&inner)).await, "SystemAdmin", &inner);
        // nesting inherits roles
        assert_refused(store_admin.post(&of_group(&outer, "/membergroups"), related(&other)).await, "SystemAdmin", &outer);
        assert_refused(store_admin.post(&of_group(&other, "/parentgroups"), related(&outer)).await, "SystemAdmin", &outer);
        assert_refused(store_admin.delete_with(&of_group(&inner, "/parentgroups"), related(&outer)).await, "SystemAdmin", &inner);
        assert_refused(store_admin.delete(&of_group(&inner, "")).await, "SystemAdmin", &inner);
        let created = json!({ "name": "new", "parentGroups": [outer["id"]] });
        let created = store_admin.post(&world.path("/Group"), created).await.is(201).json();
        assert_eq!(created["parentGroups"], json!([]), "a new group does not begin inside of it");
        // an indirect member has the role, too
        let reset = world.path(&format!("/User/{}/password/reset", id(&boss)));
        assert_refused(store_admin.post(&reset, json!({ "newPassword": PASSWORD })).await, "SystemAdmin", &boss);
        store_admin.post(&world.path(&format!("/User/{}/password/reset", id(&eve))), json!({ "newPassword": PASSWORD })).await.expect(200);
        store_admin.post(&of_group(&other, "/users"), related(&eve)).await.expect(202);
    }

    /// A dry run is refused as the write would be.
    async fn a_dry_run_is_refused_too(world: World) {
        let store_admin = store_admin(&world).await;
        let boss = person(&world, "boss", Some(("SystemAdmin", json!({})))).await;
        let path = world.path(&format!("/User/{}/password/reset?dryRun=true", id(&boss)));
        assert_refused(store_admin.post(&path, json!({ "newPassword": PASSWORD })).await, "SystemAdmin", &boss);
    }
}

/// Each operation that changes a user, or its child rows, is checked by the engine: by the row that it writes, or by the
/// path. One that identifies the user by neither would not be checked.
#[test]
fn every_custom_operation_on_a_user_has_the_user_in_its_path() {
    let is_custom =
        |op: &Op| op.writes() && matches!(op.action, Action::Custom(_)) && op.shape.name == "User";
    let unseen = operations().filter(|(name, path, op)| {
        name.starts_with("userstore:")
            && is_custom(op)
            && !path.contains("{userId}")
            && !path.contains("{id}")
    });
    let unseen: BTreeSet<String> = unseen.map(|(name, ..)| name).collect();
    // batches, whose elements are checked; operations that prove the user; and operations that write no user
    let expected = CHECKED_OTHERWISE.iter().map(|name| format!("userstore:{name}")).collect();
    assert_eq!(unseen, expected);
}

const CHECKED_OTHERWISE: [&str; 6] = [
    "ChangePasswordPublic",
    "RemovePasswordBatch",
    "ResetPasswordTokenResponsePublic",
    "RestorePasswordBatch",
    "SetUserStateBatch",
    "SynchronizeAllUsers",
];
