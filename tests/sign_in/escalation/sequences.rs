//! Random operations of lower administrators: in no order does one of them act on a user or group with a role that
//! they do not hold. A small model knows the roles.
//!
//! `CHANCERY_SEQUENCES` is the number of sequences, `PROPTEST_RNG_SEED` their seed.

mod model;

use std::collections::BTreeSet;

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value as Json, json};

use self::model::Model;
use super::{PASSWORD, default_store, group, person, store_admin};
use crate::{Random, id, resources::one};

/// The number of users, and of groups.
const SIZE: usize = 4;
/// The number of operations in a sequence.
const OPERATIONS: usize = 12;
const ROLES: [&str; 3] = ["SystemAdmin", "SubscriptionAdmin", "UserStoreAdmin"];
const ASSIGNMENTS: &str = "/api/management/v2/RoleAssignment";

/// The users and groups of the sequences.
struct Fixtures {
    persons: Vec<Json>,
    groups: Vec<Json>,
    platform_persons: Vec<Json>,
    platform_groups: Vec<Json>,
    /// The target of each role, as members of an assignment's body.
    targets: [Json; 3],
    /// The address of the store's option PasswordMinLength.
    option: String,
}

/// An assignment: its id, whether a group has the role, the index of the person or group, and that of the role.
struct Assignment {
    id: String,
    is_group: bool,
    principal: usize,
    role: usize,
}

/// A caller, and the lowest index of a role that it holds.
struct Actor {
    client: Client,
    name: &'static str,
    lowest: usize,
}

impl Actor {
    fn covers(&self, roles: &BTreeSet<usize>) -> bool {
        roles.iter().all(|role| *role >= self.lowest)
    }
}

async fn fixtures(world: &World) -> Fixtures {
    let (mut persons, mut groups) = (Vec::new(), Vec::new());
    for number in 0..SIZE {
        persons.push(person(world, &format!("p{number}"), None).await);
        groups.push(group(world, &format!("g{number}"), None).await);
    }
    let of = async |kind: &str, member: &str, name: String| {
        world.all(&format!("{kind}?filter={member}%20eq%20%22{name}%22")).await[0].clone()
    };
    let (mut platform_persons, mut platform_groups) = (Vec::new(), Vec::new());
    for number in 0..SIZE {
        platform_persons
            .push(of("ApplicationUser", "emailAddress", format!("p{number}%40example.com")).await);
        platform_groups.push(of("ApplicationGroup", "name", format!("g{number}")).await);
    }
    let store = default_store(world).await;
    let targets = [
        json!({}),
        json!({ "applyToSubscriptionId": store["subscriptionId"] }),
        json!({ "applyToIdpInstanceId": store["id"] }),
    ];
    let filter = format!(
        "Option?filter=name%20eq%20%22PasswordMinLength%22%20and%20applyToIdpInstanceId%20eq%20%22{}%22",
        id(&store)
    );
    let option = one("Option", &world.all(&filter).await[0]);
    Fixtures { persons, groups, platform_persons, platform_groups, targets, option }
}

/// Removes all memberships, nestings and assignments.
async fn clear(world: &World, fixtures: &Fixtures, assignments: &mut Vec<Assignment>) {
    for group in &fixtures.groups {
        for relation in ["users", "parentgroups"] {
            let path = world.path(&format!("/Group/{}/{relation}", id(group)));
            world.admin.put(&path, json!({ "relatedIds": [] })).await.expect(202);
        }
    }
    for one in assignments.drain(..) {
        world.admin.delete(&format!("{ASSIGNMENTS}/{}", one.id)).await.expect(204);
    }
}

/// Adds or removes a link, and compares the answer with the roles of both sides.
async fn change_link(
    (world, actor): (&World, &Actor),
    (path, other): (String, &Json),
    (links, pair, adds): (&mut BTreeSet<(usize, usize)>, (usize, usize), bool),
    roles: &BTreeSet<usize>,
) {
    let body = json!({ "relatedIds": [other["id"]] });
    let path = world.path(&path);
    let answer =
        if adds { actor.client.post(&path, body).await } else { actor.client.delete_with(&path, body).await };
    let changes = links.contains(&pair) != adds;
    match answer.status.as_u16() {
        202 => {
            assert!(!changes || actor.covers(roles), "{} changed {path}, which gives {roles:?}", actor.name);
            if adds {
                links.insert(pair)
            } else {
                links.remove(&pair)
            };
        }
        403 => assert!(
            changes && !actor.covers(roles),
            "{} was refused {path}, which gives {roles:?}",
            actor.name
        ),
        // a cycle of groups
        409 => assert!(adds && path.ends_with("/parentgroups"), "{path}"),
        other => panic!("{path}: {other}"),
    }
}

/// The number of kinds of [`change_user`].
const USER_CHANGES: usize = 5;

/// Changes something of a user. A first name is not protected.
async fn change_user(world: &World, actor: &Actor, user: &Json, kind: usize, roles: &BTreeSet<usize>) {
    let path = world.path(&format!("/User/{}", id(user)));
    let set = async |member: &str, end: &str| {
        let token = world.admin.get(&path).await.is(200).json()["concurrencyToken"].clone();
        let value = format!("n{}{end}", token.as_str().unwrap());
        actor.client.patch(&path, json!({ member: value, "concurrencyToken": token })).await
    };
    let post = async |path: &str, body: Json| actor.client.post(path, body).await;
    let (answer, success) = match kind {
        0 => (post(&format!("{path}/password/reset"), json!({ "newPassword": PASSWORD })).await, 200),
        1 => (post(&format!("{path}/state"), json!({ "isUserActive": true })).await, 200),
        2 => {
            let passes = world.path("/passkey-security/temporary-access-passes");
            (post(&passes, json!({ "userId": user["id"] })).await, 201)
        }
        3 => (set("emailAddress", "@example.org").await, 202),
        _ => (set("firstName", "").await, 202),
    };
    let expected = if kind == USER_CHANGES - 1 || actor.covers(roles) { success } else { 403 };
    assert_eq!(answer.status, expected, "{}, change {kind} of {path}, who has {roles:?}", actor.name);
}

/// Changes an option that decides who can sign in at the store. Those below a SubscriptionAdmin may not change options of the store.
async fn change_option(world: &World, actor: &Actor, option: &str, roles: &BTreeSet<usize>) {
    let mut body = world.admin.get(option).await.is(200).json();
    body["value"] = json!(if body["value"] == "8" { "9" } else { "8" });
    let status = actor.client.put(option, body).await.status.as_u16();
    let is_allowed = actor.covers(roles) && (status == 202 || actor.lowest == 2);
    let is_refused = !actor.covers(roles) || actor.lowest == 2;
    assert!(
        if status == 202 { is_allowed } else { is_refused && [403, 404].contains(&status) },
        "{} at an option of people who have {roles:?}: {status}",
        actor.name
    );
}

/// Assigns a role; adds the assignment to the list.
async fn assign_role(
    (fixtures, model): (&Fixtures, &mut Model),
    actor: &Actor,
    (is_group, principal, role): (bool, usize, usize),
    assignments: &mut Vec<Assignment>,
) {
    let (kind, to) = if is_group {
        ("PlatformGroup", &fixtures.platform_groups)
    } else {
        ("PlatformUser", &fixtures.platform_persons)
    };
    let mut body =
        json!({ "principalType": kind, "principalId": to[principal]["id"], "roleType": ROLES[role] });
    body.as_object_mut().unwrap().extend(fixtures.targets[role].as_object().unwrap().clone());
    let answer = actor.client.post(ASSIGNMENTS, body).await;
    let assigned = model.assigned(is_group);
    if answer.status == 201 {
        assert!(role >= actor.lowest, "{} assigned {}", actor.name, ROLES[role]);
        assignments.push(Assignment { id: id(&answer.json()).to_owned(), is_group, principal, role });
        assigned.insert((principal, role));
    } else {
        // a UserStoreAdmin assigns no roles
        let is_expected = match answer.status.as_u16() {
            403 => role < actor.lowest || actor.lowest == 2,
            409 => assigned.contains(&(principal, role)),
            _ => false,
        };
        assert!(is_expected, "{} was refused {}: {}", actor.name, ROLES[role], answer.status);
    }
}

/// Deletes an assignment, and removes it from the list.
async fn delete_assignment(
    model: &mut Model,
    actor: &Actor,
    index: usize,
    assignments: &mut Vec<Assignment>,
) {
    let Assignment { is_group, principal, role, .. } = assignments[index];
    let answer = actor.client.delete(&format!("{ASSIGNMENTS}/{}", assignments[index].id)).await;
    if answer.status == 204 {
        assert!(role >= actor.lowest, "{} removed {}", actor.name, ROLES[role]);
        model.assigned(is_group).remove(&(principal, role));
        assignments.remove(index);
    } else {
        let is_refused = [403, 404].contains(&answer.status.as_u16()) && actor.lowest > 0;
        assert!(is_refused, "{} did not remove {}: {}", actor.name, ROLES[role], answer.status);
    }
}

/// Executes one random operation.
async fn execute_random_operation(
    world: &World,
    (fixtures, model): (&Fixtures, &mut Model),
    actor: &Actor,
    random: &mut Random,
    assignments: &mut Vec<Assignment>,
) {
    let (person, of) = (random.below(SIZE), random.below(SIZE));
    let group_path = |one: usize, relation: &str| format!("/Group/{}/{relation}", id(&fixtures.groups[one]));
    match random.below(14) {
        kind @ ..USER_CHANGES => {
            change_user(world, actor, &fixtures.persons[person], kind, &model.user_roles(person)).await;
        }
        5 => change_option(world, actor, &fixtures.option, &model.all_roles()).await,
        kind @ 6..=8 => {
            let roles = model.group_roles(of);
            let change = (&mut model.members, (person, of), kind != 8);
            change_link((world, actor), (group_path(of, "users"), &fixtures.persons[person]), change, &roles)
                .await;
        }
        kind @ (9 | 10) => {
            let inner = (of + 1 + random.below(SIZE - 1)) % SIZE;
            let roles = model.group_roles(inner).union(&model.group_roles(of)).copied().collect();
            let change = (&mut model.nested, (inner, of), kind == 9);
            change_link(
                (world, actor),
                (group_path(inner, "parentgroups"), &fixtures.groups[of]),
                change,
                &roles,
            )
            .await;
        }
        11 if !assignments.is_empty() => {
            let index = random.below(assignments.len());
            delete_assignment(model, actor, index, assignments).await;
        }
        _ => {
            let assignment = (random.below(2) == 0, person, random.below(ROLES.len()));
            assign_role((fixtures, model), actor, assignment, assignments).await;
        }
    }
}

on_both_engines! {
    /// Every answer agrees with the model: nobody gains a right that no higher administrator granted.
    async fn no_sequence_of_operations_escalates_privileges(world: World) {
        let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
        let mut random = Random(number("PROPTEST_RNG_SEED", 20_261_127).max(1));
        let fixtures = fixtures(&world).await;
        let tenant = id(&world.all("Tenant").await[0]).parse().unwrap();
        let store = id(&default_store(&world).await).parse().unwrap();
        let actors = [
            Actor { client: world.admin.clone(), name: "the SystemAdmin", lowest: 0 },
            Actor { client: world.client("subscription", &[("SubscriptionAdmin", None, None)]).await, name: "the SubscriptionAdmin", lowest: 1 },
            Actor { client: store_admin(&world).await, name: "the UserStoreAdmin", lowest: 2 },
            Actor { client: world.client("tenant", &[("TenantAdmin", Some(tenant), None), ("UserStoreAdmin", None, Some(store))]).await, name: "the TenantAdmin", lowest: 2 },
        ];
        let mut assignments = Vec::new();
        for _ in 0..number("CHANCERY_SEQUENCES", 20) {
            clear(&world, &fixtures, &mut assignments).await;
            let mut model = Model::default();
            for _ in 0..OPERATIONS {
                let actor = &actors[random.below(actors.len())];
                execute_random_operation(&world, (&fixtures, &mut model), actor, &mut random, &mut assignments).await;
            }
        }
    }
}
