//! What the rule costs: statements of ordinary writes, before and after others have roles.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value as Json, json};

use super::{group, person, store_admin};
use crate::{cost::cost, id};

/// Repetitions of a write.
const TIMES: usize = 9;

/// The statements of three writes: a new user, a change of a name, and of an e-mail address, which is protected.
async fn statements(world: &World, client: &Client, user: &Json) -> [u64; 3] {
    let (users, path) = (world.path("/User"), world.path(&format!("/User/{}", id(user))));
    // a value that no user has, and the token of the user
    let prepare = async |_| world.admin.get(&path).await.is(200).json()["concurrencyToken"].clone();
    let change = async |member: &str, value: String, token: Json| {
        client.patch(&path, json!({ member: value, "concurrencyToken": token })).await.expect(202);
    };
    let create = async |token: Json| {
        client
            .post(&users, json!({ "loginName": format!("n{}", token.as_str().unwrap()) }))
            .await
            .expect(201);
    };
    let rename = async |token: Json| change("firstName", token.as_str().unwrap().to_owned(), token).await;
    let readdress = async |token: Json| {
        change("emailAddress", format!("{}@example.com", token.as_str().unwrap()), token).await;
    };
    [
        cost(world, TIMES, async |number| json!(format!("{number}-{}", prepare(number).await)), create)
            .await
            .0,
        cost(world, TIMES, prepare, rename).await.0,
        cost(world, TIMES, prepare, readdress).await.0,
    ]
}

on_both_engines! {
    /// The creation of a user and a change of the name take no statement more where people have roles. A change of a protected
    /// field reads the user's identities if persons have roles above the caller's, and the user's groups if groups have; that of a
    /// SystemAdmin reads neither.
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
