//! Lower administrators, together and at random: whatever they do in whatever order, none of them acts on who carries a role that
//! they do not hold. A small model says who carries what.
//!
//! `CHANCERY_SEQUENCES` says how many sequences there are, `PROPTEST_RNG_SEED` what they grow from.

use std::collections::BTreeSet;

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value as Json, json};

use super::{PASSWORD, default_store, group, helper, person};
use crate::{Random, id};

/// How many persons there are, and groups.
const SIZE: usize = 4;
/// What is done in a sequence.
const ACTS: usize = 12;
const ROLES: [&str; 3] = ["SystemAdmin", "SubscriptionAdmin", "UserStoreAdmin"];
const ASSIGNMENTS: &str = "/api/management/v2/RoleAssignment";

/// Who is in which group, which group is in which, and which role was assigned to whom.
#[derive(Default)]
struct Model {
    members: BTreeSet<(usize, usize)>,
    nested: BTreeSet<(usize, usize)>,
    of_person: BTreeSet<(usize, usize)>,
    of_group: BTreeSet<(usize, usize)>,
}

impl Model {
    /// The roles that groups give, with those that they are in.
    fn given_by(&self, groups: impl Iterator<Item = usize>) -> BTreeSet<usize> {
        let mut all: BTreeSet<usize> = groups.collect();
        loop {
            let above = self.nested.iter().filter(|(inner, _)| all.contains(inner)).map(|(_, outer)| *outer);
            let found: BTreeSet<usize> = above.chain(all.iter().copied()).collect();
            if found == all {
                break;
            }
            all = found;
        }
        self.of_group.iter().filter(|(one, _)| all.contains(one)).map(|(_, role)| *role).collect()
    }

    fn of_group(&self, one: usize) -> BTreeSet<usize> {
        self.given_by(std::iter::once(one))
    }

    fn of_person(&self, one: usize) -> BTreeSet<usize> {
        let own = self.of_person.iter().filter(|(person, _)| *person == one).map(|(_, role)| *role);
        let given =
            self.given_by(self.members.iter().filter(|(person, _)| *person == one).map(|(_, of)| *of));
        own.chain(given).collect()
    }
}

/// What the sequences are about.
struct Ground {
    persons: Vec<Json>,
    groups: Vec<Json>,
    platform_persons: Vec<Json>,
    platform_groups: Vec<Json>,
    /// Where roles are assigned, as bodies say it.
    places: [Json; 3],
}

/// Who acts, and the lowest number of a role that they hold.
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

async fn ground(world: &World) -> Ground {
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
    let places = [
        json!({}),
        json!({ "applyToSubscriptionId": store["subscriptionId"] }),
        json!({ "applyToIdpInstanceId": store["id"] }),
    ];
    Ground { persons, groups, platform_persons, platform_groups, places }
}

/// Takes everybody out of all groups, and all roles away.
async fn clear(world: &World, ground: &Ground, made: &mut Vec<Json>) {
    for group in &ground.groups {
        for links in ["users", "parentgroups"] {
            let path = world.path(&format!("/Group/{}/{links}", id(group)));
            world.admin.put(&path, json!({ "relatedIds": [] })).await.expect(202);
        }
    }
    for one in made.drain(..) {
        world.admin.delete(&format!("{ASSIGNMENTS}/{}", id(&one))).await.expect(204);
    }
}

/// Adds a link to a set, or removes it, and compares the answer with what the roles of both sides say.
async fn link(
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
        // groups in a circle
        409 => assert!(adds && path.ends_with("/parentgroups"), "{path}"),
        other => panic!("{path}: {other}"),
    }
}

/// One act of one of them; what was assigned is added to what is there.
async fn act(
    world: &World,
    (ground, model): (&Ground, &mut Model),
    actor: &Actor,
    random: &mut Random,
    made: &mut Vec<Json>,
) {
    let (person, of) = (random.below(SIZE), random.below(SIZE));
    let group_path = |one: usize, links: &str| format!("/Group/{}/{links}", id(&ground.groups[one]));
    match random.below(8) {
        kind @ (0 | 1) => {
            let (end, body) = [
                ("password/reset", json!({ "newPassword": PASSWORD })),
                ("state", json!({ "isUserActive": true })),
            ][kind]
                .clone();
            let path = world.path(&format!("/User/{}/{end}", id(&ground.persons[person])));
            let (answer, roles) = (actor.client.post(&path, body).await, model.of_person(person));
            let expected = if actor.covers(&roles) { 200 } else { 403 };
            assert_eq!(answer.status, expected, "{} at {path}, who carries {roles:?}", actor.name);
        }
        kind @ 2..=4 => {
            let roles = model.of_group(of);
            let about = (&mut model.members, (person, of), kind != 4);
            link((world, actor), (group_path(of, "users"), &ground.persons[person]), about, &roles).await;
        }
        kind @ (5 | 6) => {
            let inner = (of + 1 + random.below(SIZE - 1)) % SIZE;
            let roles = model.of_group(inner).union(&model.of_group(of)).copied().collect();
            let about = (&mut model.nested, (inner, of), kind == 5);
            link((world, actor), (group_path(inner, "parentgroups"), &ground.groups[of]), about, &roles)
                .await;
        }
        _ => {
            let (role, is_group) = (random.below(ROLES.len()), random.below(2) == 0);
            let (kind, to) = if is_group {
                ("PlatformGroup", &ground.platform_groups)
            } else {
                ("PlatformUser", &ground.platform_persons)
            };
            let mut body =
                json!({ "principalType": kind, "principalId": to[person]["id"], "roleType": ROLES[role] });
            body.as_object_mut().unwrap().extend(ground.places[role].as_object().unwrap().clone());
            let answer = actor.client.post(ASSIGNMENTS, body).await;
            if answer.status == 201 {
                assert!(role >= actor.lowest, "{} assigned {}", actor.name, ROLES[role]);
                made.push(answer.json());
                let roles = if is_group { &mut model.of_group } else { &mut model.of_person };
                roles.insert((person, role));
            } else {
                let roles = if is_group { &model.of_group } else { &model.of_person };
                // who administers a store assigns no roles
                let is_right = match answer.status.as_u16() {
                    403 => role < actor.lowest || actor.lowest == 2,
                    409 => roles.contains(&(person, role)),
                    _ => false,
                };
                assert!(is_right, "{} was refused {}: {}", actor.name, ROLES[role], answer.status);
            }
        }
    }
}

on_both_engines! {
    /// Whoever is asked for what they may do answers as the model says: nobody gains a right that nobody above gave.
    async fn no_sequence_of_acts_gains_a_right_that_nobody_above_gave(world: World) {
        let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
        let mut random = Random(number("PROPTEST_RNG_SEED", 20_261_127).max(1));
        let ground = ground(&world).await;
        let tenant = id(&world.all("Tenant").await[0]).parse().unwrap();
        let store = id(&default_store(&world).await).parse().unwrap();
        let actors = [
            Actor { client: world.admin.clone(), name: "the SystemAdmin", lowest: 0 },
            Actor { client: world.client("subscription", &[("SubscriptionAdmin", None, None)]).await, name: "the SubscriptionAdmin", lowest: 1 },
            Actor { client: helper(&world).await, name: "the UserStoreAdmin", lowest: 2 },
            Actor { client: world.client("tenant", &[("TenantAdmin", Some(tenant), None), ("UserStoreAdmin", None, Some(store))]).await, name: "the TenantAdmin", lowest: 2 },
        ];
        let mut made = Vec::new();
        for _ in 0..number("CHANCERY_SEQUENCES", 20) {
            clear(&world, &ground, &mut made).await;
            let mut model = Model::default();
            for _ in 0..ACTS {
                let actor = &actors[random.below(actors.len())];
                act(&world, (&ground, &mut model), actor, &mut random, &mut made).await;
            }
        }
    }
}
