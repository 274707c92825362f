//! Random operations of lower administrators: in no order does one of them act on a user or group with a role that
//! they do not hold. A small model knows the roles.
//!
//! `CHANCERY_SEQUENCES` is the number of sequences, `PROPTEST_RNG_SEED` their seed.

use std::collections::BTreeSet;

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value as Json, json};

use super::{PASSWORD, default_store, group, person, store_admin};
use crate::{Random, id};

/// The number of users, and of groups.
const SIZE: usize = 4;
/// The number of operations in a sequence.
const OPERATIONS: usize = 12;
const ROLES: [&str; 3] = ["SystemAdmin", "SubscriptionAdmin", "UserStoreAdmin"];
const ASSIGNMENTS: &str = "/api/management/v2/RoleAssignment";

/// Memberships, nesting of groups, and assigned roles, by index.
#[derive(Default)]
struct Model {
    members: BTreeSet<(usize, usize)>,
    nested: BTreeSet<(usize, usize)>,
    user_roles: BTreeSet<(usize, usize)>,
    group_roles: BTreeSet<(usize, usize)>,
}

impl Model {
    /// The roles of these groups and of all groups above them.
    fn roles_of_groups(&self, groups: impl Iterator<Item = usize>) -> BTreeSet<usize> {
        let mut all: BTreeSet<usize> = groups.collect();
        loop {
            let above = self.nested.iter().filter(|(inner, _)| all.contains(inner)).map(|(_, outer)| *outer);
            let reached: BTreeSet<usize> = above.chain(all.iter().copied()).collect();
            if reached == all {
                break;
            }
            all = reached;
        }
        self.group_roles.iter().filter(|(one, _)| all.contains(one)).map(|(_, role)| *role).collect()
    }

    fn group_roles(&self, one: usize) -> BTreeSet<usize> {
        self.roles_of_groups(std::iter::once(one))
    }

    fn user_roles(&self, one: usize) -> BTreeSet<usize> {
        let own = self.user_roles.iter().filter(|(person, _)| *person == one).map(|(_, role)| *role);
        let given =
            self.roles_of_groups(self.members.iter().filter(|(person, _)| *person == one).map(|(_, of)| *of));
        own.chain(given).collect()
    }
}

/// The users and groups of the sequences.
struct Fixtures {
    persons: Vec<Json>,
    groups: Vec<Json>,
    platform_persons: Vec<Json>,
    platform_groups: Vec<Json>,
    /// The target of each role, as members of an assignment's body.
    targets: [Json; 3],
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
    Fixtures { persons, groups, platform_persons, platform_groups, targets }
}

/// Removes all memberships, nestings and assignments.
async fn clear(world: &World, fixtures: &Fixtures, assignments: &mut Vec<Json>) {
    for group in &fixtures.groups {
        for relation in ["users", "parentgroups"] {
            let path = world.path(&format!("/Group/{}/{relation}", id(group)));
            world.admin.put(&path, json!({ "relatedIds": [] })).await.expect(202);
        }
    }
    for one in assignments.drain(..) {
        world.admin.delete(&format!("{ASSIGNMENTS}/{}", id(&one))).await.expect(204);
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

/// Executes one random operation; adds new assignments to the list.
async fn execute_random_operation(
    world: &World,
    (fixtures, model): (&Fixtures, &mut Model),
    actor: &Actor,
    random: &mut Random,
    assignments: &mut Vec<Json>,
) {
    let (person, of) = (random.below(SIZE), random.below(SIZE));
    let group_path = |one: usize, relation: &str| format!("/Group/{}/{relation}", id(&fixtures.groups[one]));
    match random.below(8) {
        kind @ (0 | 1) => {
            let (end, body) = [
                ("password/reset", json!({ "newPassword": PASSWORD })),
                ("state", json!({ "isUserActive": true })),
            ][kind]
                .clone();
            let path = world.path(&format!("/User/{}/{end}", id(&fixtures.persons[person])));
            let (answer, roles) = (actor.client.post(&path, body).await, model.user_roles(person));
            let expected = if actor.covers(&roles) { 200 } else { 403 };
            assert_eq!(answer.status, expected, "{} at {path}, who carries {roles:?}", actor.name);
        }
        kind @ 2..=4 => {
            let roles = model.group_roles(of);
            let change = (&mut model.members, (person, of), kind != 4);
            change_link((world, actor), (group_path(of, "users"), &fixtures.persons[person]), change, &roles)
                .await;
        }
        kind @ (5 | 6) => {
            let inner = (of + 1 + random.below(SIZE - 1)) % SIZE;
            let roles = model.group_roles(inner).union(&model.group_roles(of)).copied().collect();
            let change = (&mut model.nested, (inner, of), kind == 5);
            change_link(
                (world, actor),
                (group_path(inner, "parentgroups"), &fixtures.groups[of]),
                change,
                &roles,
            )
            .await;
        }
        _ => {
            let (role, is_group) = (random.below(ROLES.len()), random.below(2) == 0);
            let (kind, to) = if is_group {
                ("PlatformGroup", &fixtures.platform_groups)
            } else {
                ("PlatformUser", &fixtures.platform_persons)
            };
            let mut body =
                json!({ "principalType": kind, "principalId": to[person]["id"], "roleType": ROLES[role] });
            body.as_object_mut().unwrap().extend(fixtures.targets[role].as_object().unwrap().clone());
            let answer = actor.client.post(ASSIGNMENTS, body).await;
            if answer.status == 201 {
                assert!(role >= actor.lowest, "{} assigned {}", actor.name, ROLES[role]);
                assignments.push(answer.json());
                let roles = if is_group { &mut model.group_roles } else { &mut model.user_roles };
                roles.insert((person, role));
            } else {
                let roles = if is_group { &model.group_roles } else { &model.user_roles };
                // a UserStoreAdmin assigns no roles
                let is_expected = match answer.status.as_u16() {
                    403 => role < actor.lowest || actor.lowest == 2,
                    409 => roles.contains(&(person, role)),
                    _ => false,
                };
                assert!(is_expected, "{} was refused {}: {}", actor.name, ROLES[role], answer.status);
            }
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
