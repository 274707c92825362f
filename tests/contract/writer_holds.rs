//! The statements of the operations that hold SQLite's writer longest: each element costs a bounded number, so that the time of a
//! hold follows from the bounds on elements.

use chancery_testkit::{Client, Engine, World, no_arguments, run_with};
use serde_json::{Value, json};

use crate::{cost::cost, each, id};

/// A SCIM client of the default store.
async fn directory(world: &World) -> Client {
    let created = world
        .admin
        .post(&world.path("/ScimToken"), json!({ "name": "a directory", "reach": "All" }))
        .await
        .is(201)
        .json();
    world.admin.with_token(created["token"].as_str().unwrap())
}

/// A bulk request that creates this many groups, each with these members; `prefix` begins their names.
fn new_groups(prefix: usize, count: usize, members: &[&str]) -> Value {
    let members: Vec<Value> = members.iter().map(|id| json!({ "value": id })).collect();
    let group = |number: usize| {
        let data = json!({ "displayName": format!("group {prefix}-{number}"), "members": members });
        json!({ "method": "POST", "path": "/Groups", "bulkId": format!("g{number}"), "data": data })
    };
    json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],
        "Operations": (0..count).map(group).collect::<Vec<_>>(),
    })
}

/// The statements of the cheapest of three operations, each with another number.
async fn statements(world: &World, operation: impl AsyncFn(usize)) -> u64 {
    cost(world, 3, async |number| number, operation).await.0
}

async fn check_holds(world: World) {
    let users = world.path("/User");
    let new_users = |number: usize, count: usize| {
        json!((0..count).map(|user| json!({ "loginName": format!("u{number}-{user}") })).collect::<Vec<_>>())
    };
    let batch = statements(&world, async |number| {
        world.admin.post(&format!("{users}/batch"), new_users(number, 1_000)).await.expect(200);
    })
    .await;

    let created = world.admin.post(&format!("{users}/batch"), new_users(3, 1_000)).await.is(200).json();
    let ids = each(&created, "id");
    let groups = [world.group("one").await, world.group("two").await, world.group("three").await];
    let set = statements(&world, async |number| {
        let members = world.path(&format!("/Group/{}/users", id(&groups[number])));
        world.admin.put(&members, json!({ "relatedIds": ids })).await.expect(202);
    })
    .await;

    let directory = directory(&world).await;
    let bulk = statements(&world, async |number| {
        let body = new_groups(number, 50, &ids[..20]);
        let answer = directory.post("/api/scim/v2/default/Bulk", body).await.is(200).json();
        assert!(each(&answer["Operations"], "status").iter().all(|status| *status == "201"), "{answer}");
    })
    .await;

    let erasure = statements(&world, async |number| {
        world.admin.delete(&format!("{users}/{}", ids[number])).await.expect(204);
    })
    .await;

    for (operation, statements, elements, for_each, at_most_once) in [
        ("users of a batch", batch, 1_000, 4, 100),
        ("members of a set", set, 1_000, 0, 100),
        ("groups of a bulk request", bulk, 50, 15, 100),
        ("an erasure", erasure, 1, 0, 100),
    ] {
        let bound = elements * for_each + at_most_once;
        assert!(
            statements <= bound,
            "{operation}: {statements} statements, and at most {bound} are expected"
        );
    }
}

/// PostgreSQL has no single writer.
#[test]
fn statements_of_long_holds_are_bounded_by_the_elements() {
    run_with(Engine::Sqlite, no_arguments, |world| Box::pin(check_holds(world)));
}
