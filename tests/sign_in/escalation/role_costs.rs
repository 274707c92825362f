//! What the rule costs: statements of ordinary writes, before and after others have roles.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value as Json, json};

use super::{group, person, store_admin};
use crate::id;

/// Repetitions of a write. The cheapest one counts, since jobs of the server execute statements, too.
const TIMES: usize = 9;

/// The statements of three writes: a new user, a change of a name, and of an e-mail address, which is protected.
async fn statements(world: &World, client: &Client, user: &Json) -> [u64; 3] {
    let path = world.path(&format!("/User/{}", id(user)));
    let mut cheapest = [u64::MAX; 3];
    for round in 0..TIMES {
        for (write, cheapest) in cheapest.iter_mut().enumerate() {
            let token = world.admin.get(&path).await.is(200).json()["concurrencyToken"].clone();
            let name = format!("n{round}-{}", token.as_str().unwrap());
            let before = world.app.store.figures().statements;
            let change = |member: &str, value: String| json!({ member: value, "concurrencyToken": token });
            let answer = match write {
                0 => client.post(&world.path("/User"), json!({ "loginName": name })).await,
                1 => client.patch(&path, change("firstName", name)).await,
                _ => client.patch(&path, change("emailAddress", format!("{name}@example.com"))).await,
            };
            assert!(answer.status.is_success(), "{}", answer.status);
            *cheapest = (*cheapest).min(world.app.store.figures().statements - before);
        }
    }
    cheapest
}

on_both_engines! {
    /// New users and names cost the same whoever has roles. A protected change reads the user's identities where persons have roles
    /// that count, and the user's groups where groups have; a SystemAdmin's does not.
    async fn ordinary_writes_take_no_statement_for_roles(world: World) {
        let store_admin = store_admin(&world).await;
        let ada = person(&world, "ada", None).await;
        let costs = async || {
            (statements(&world, &store_admin, &ada).await, statements(&world, &world.admin, &ada).await)
        };
        let (lower, highest) = costs().await;
        for number in 0..20 {
            person(&world, &format!("boss{number}"), Some(("SystemAdmin", json!({})))).await;
        }
        let [new, name, address] = lower;
        assert_eq!(costs().await, ([new, name, address + 1], highest), "persons have roles");
        group(&world, "top", Some(("SystemAdmin", json!({})))).await;
        assert_eq!(costs().await, ([new, name, address + 2], highest), "a group has a role, too");
    }
}
