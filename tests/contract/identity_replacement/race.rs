//! Many at once: whatever the order, an identity is replaced once or not at all, and nobody's
//! approval counts twice.

use std::{collections::BTreeSet, time::Duration};

use chancery_testkit::{Client, World, on_both_engines};
use futures_util::future::join_all;
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};

use super::{body, client_id, events, new_instance, new_person, path, person, read, request, statuses, with};

/// How often a race is run on each engine.
const RACES: usize = 16;
const ACTORS: usize = 4;
const STEPS: [&str; 3] = ["/approvals", "/execute", "/cancel"];

/// What one of the actors does: who, which step, after how many tenths of a millisecond.
type Act = (usize, usize, u64);

/// A race: how many must approve, and what is done at once. Few cancel, so that much comes to an end.
fn races() -> impl Strategy<Value = (i64, Vec<Act>)> {
    let act = (0..ACTORS, prop_oneof![6 => Just(0_usize), 6 => Just(1), 1 => Just(2)], 0..150_u64);
    (1..=3_i64, prop::collection::vec(act, 8..24))
}

/// Takes a step, as often as the database has too much to do; the answer's status.
async fn act(client: &Client, path: &str, wait: u64) -> u16 {
    tokio::time::sleep(Duration::from_micros(100 * wait)).await;
    loop {
        let status = client.post(path, json!(null)).await.status.as_u16();
        if status != 503 {
            return status;
        }
    }
}

async fn race(world: &World, actors: &[(Client, Value)], user: &Value, made: &Value, acts: &[Act]) {
    let runs = acts.iter().map(|(actor, step, wait)| {
        let (client, path) = (actors[*actor].0.clone(), path(made, STEPS[*step]));
        let wait = *wait;
        tokio::spawn(async move { act(&client, &path, wait).await })
    });
    let statuses_of: Vec<u16> = join_all(runs).await.into_iter().map(Result::unwrap).collect();
    let good: Vec<&Act> =
        acts.iter().zip(&statuses_of).filter(|(_, status)| **status == 200).map(|(act, _)| act).collect();
    assert!(statuses_of.iter().all(|status| [200, 409].contains(status)), "{acts:?}: {statuses_of:?}");

    let end = read(world, made).await;
    let status = end["status"].as_str().unwrap();
    let of = |step: usize| good.iter().filter(move |act| act.1 == step);
    // each approval that was answered well counts, once, and no more than are needed
    let approved: Vec<&Value> = end["approvedByActorIds"].as_array().unwrap().iter().collect();
    let unique: BTreeSet<String> = approved.iter().map(ToString::to_string).collect();
    let told: BTreeSet<String> = of(0).map(|act| actors[act.0].1.to_string()).collect();
    assert_eq!((unique.len(), of(0).count(), &unique), (approved.len(), approved.len(), &told), "{end}");
    let needed = usize::try_from(end["requiredApprovals"].as_i64().unwrap()).unwrap();
    assert!(approved.len() <= needed, "{end}");
    assert_eq!(end["approvalSatisfiedOn"].is_string(), approved.len() == needed, "{end}");

    let events = events(world, made).await;
    let count = |kind: &str| events.iter().filter(|event| *event == kind).count();
    assert_eq!(count("approved"), approved.len(), "{events:?}");
    assert_eq!(
        (of(2).count(), status == "Cancelled"),
        (count("cancelled"), count("cancelled") == 1),
        "{events:?}"
    );
    let executed = ["Executed", "Completed"].contains(&status);
    assert_eq!((count("executed"), of(1).count() > 0), (usize::from(executed), executed), "{events:?} {end}");
    assert!(!executed || approved.len() == needed);
    let now = person(world, user).await;
    let expected = match status {
        "Cancelled" => &["Active"][..],
        "Executed" | "Completed" => &["Replaced", "Active"],
        _ => &["Active", "Pending"],
    };
    assert_eq!(statuses(&now), expected, "{end}");
}

on_both_engines! {
    async fn exactly_once_whatever_the_order(world: World) {
        let instance = new_instance(&world, "work").await;
        let mut actors = Vec::new();
        for number in 0..ACTORS {
            let name = format!("actor{number}");
            let client = crate::identity_replacement::admin(&world, &name).await;
            actors.push((client, client_id(&world, &name).await));
        }
        let seed = chancery_resource::random::<32>();
        // shown when the test fails: put it in the place of the random one to see the same races
        eprintln!("seed: {seed:?}");
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(Config::default(), random);
        let mut ends = BTreeSet::new();
        for number in 0..RACES {
            let (needed, acts) = races().new_tree(&mut runner).unwrap().current();
            let name = format!("user{number}");
            let user = new_person(&world, &name).await;
            let asked = with(body(&user, &instance, &name), &json!({ "requiredApprovals": needed }));
            let made = request(&world.admin, asked).await;
            race(&world, &actors, &user, &made, &acts).await;
            ends.insert(read(&world, &made).await["status"].as_str().unwrap().to_owned());
        }
        assert!(ends.len() > 1, "races come to different ends: {ends:?}");
    }

    /// Of two who ask at once for the same, one is heard: for the same person, or the same identity.
    async fn one_of_two_requests_is_heard(world: World) {
        let instance = new_instance(&world, "work").await;
        for number in 0..4 {
            let (ada, bob) = (new_person(&world, &format!("ada{number}")).await, new_person(&world, &format!("bob{number}")).await);
            let (one, other) = (format!("one{number}"), format!("other{number}"));
            for (first, second) in [
                (body(&ada, &instance, &one), body(&ada, &instance, &other)),
                (body(&bob, &instance, &format!("same{number}")), body(&ada, &instance, &format!("same{number}"))),
            ] {
                let (first, second) = tokio::join!(world.admin.post(crate::identity_replacement::ALL, first), world.admin.post(crate::identity_replacement::ALL, second));
                let mut statuses = [first.status.as_u16(), second.status.as_u16()];
                statuses.sort_unstable();
                assert_eq!(statuses, [201, 409]);
                let queue = world.admin.get(&format!("{}/queue", crate::identity_replacement::ALL)).await.is(200).json();
                for open in queue["items"].as_array().unwrap() {
                    crate::identity_replacement::step(&world.admin, open, "/cancel").await.expect(200);
                }
            }
        }
    }
}
