//! A client app with the most secrets, scopes and key sets: all of them are used.

use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{
    app,
    assertion::{key_set, present},
    configure, request_token,
};
use crate::{
    each,
    signer::{Signer, claims},
};

on_both_engines! {
    /// No entry is ignored silently: more than the token endpoint would read cannot be created.
    async fn the_limit_can_be_reached_and_all_entries_are_used(world: World) {
        let own = app(&world, "own", json!({})).await;
        let (last, others) = (Signer::new("last"), Signer::new("other").jwks());
        let value = |number: usize| format!("the secret of the number {number:05}");
        for (resource, most) in [("ClientAppSecret", 1000), ("ClientAppScope", 1000), ("ClientAppKeySet", 100)] {
            let one = |number: usize| match resource {
                "ClientAppSecret" => json!({ "clientAppId": own["id"], "secret": value(number) }),
                "ClientAppScope" => json!({ "clientAppId": own["id"], "key": format!("scope:{number:05}") }),
                _ => json!({ "clientAppId": own["id"], "name": format!("{number:05}"), "use": "Signing", "status": "Active", "jwks": others }),
            };
            let path = format!("/api/management/v2/{resource}");
            let batch = |numbers: std::ops::Range<usize>| Value::from(numbers.map(one).collect::<Vec<_>>());
            let problem = world.admin.post(&format!("{path}/batch"), batch(0..most + 1)).await.problem(400, "invalid-request");
            assert_eq!(each(&problem["errors"], "pointer"), [format!("/{most}/clientAppId")]);
            world.admin.post(&format!("{path}/batch"), batch(0..most - 1)).await.expect(200);
            if resource == "ClientAppKeySet" {
                key_set(&world, &own, "last", json!({ "jwks": last.jwks() })).await;
            } else {
                world.admin.post(&path, one(most - 1)).await.expect(201);
            }
            let problem = world.admin.post(&path, one(most)).await.problem(400, "invalid-request");
            let detail = problem["errors"][0]["detail"].as_str().unwrap();
            assert_eq!(each(&problem["errors"], "pointer"), ["/clientAppId"]);
            assert!(detail.contains(&format!("has {most} of these")), "{detail}");
        }
        let granted = request_token(&world, &own, &value(999), &[("scope", "scope:00999")]).await.is(200).json();
        assert_eq!(granted["scope"], "scope:00999");
        configure(&world, &own, "private_key_jwt", json!({})).await;
        present(&world, &last.assert(&claims(&world, &own, json!({})))).await.expect(200);
        // another client app has limits of its own, and a deletion makes room
        let other = app(&world, "other", json!({})).await;
        world.make("ClientAppSecret", json!({ "clientAppId": other["id"] })).await;
        let all = world.all(&format!("ClientAppSecret/clientapp/{}", own["id"].as_str().unwrap())).await;
        let path = "/api/management/v2/ClientAppSecret";
        world.admin.delete(&format!("{path}/{}", all[0]["id"].as_str().unwrap())).await.expect(204);
        world.admin.post(path, json!({ "clientAppId": own["id"] })).await.expect(201);
    }
}
