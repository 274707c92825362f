//! A write of a directory has the same effects as the same write in version 2: the row, its audit entry and its event.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value as Json, json};

use super::{at, directory, one, operations};
use crate::{each, id};

/// The newest audit entries, the newest first, without the members that differ between entries.
async fn entries(world: &World, count: usize) -> Vec<Json> {
    let mut rows = world.audit(count).await;
    for row in &mut rows {
        for name in ["id", "date", "primaryKey", "user", "signature"] {
            row.as_object_mut().unwrap().remove(name);
        }
    }
    rows
}

on_both_engines! {
    async fn a_change_has_one_entry_and_one_event(world: World) {
        let (client, token) = directory(&world, json!({})).await;
        let created = client.post(&at("/Users"), json!({ "userName": "ada" })).await.is(201).json();
        let patch = operations(&json!([
            { "op": "replace", "path": "nickName", "value": "A" }, { "op": "replace", "path": "name.givenName", "value": "Ada" },
        ]));
        let before = world.audit(1000).await.len();
        client.patch(&one("Users", &created), patch.clone()).await.expect(200);
        let after = world.audit(1000).await;
        assert_eq!(after.len(), before + 1);
        assert_eq!(after[0]["user"], token["id"], "the token is who did it: {}", after[0]);
        client.patch(&one("Users", &created), patch).await.expect(200);
        assert_eq!(world.audit(1000).await.len(), before + 1, "nothing changed");
        let events = world.admin.get(&world.path("/Event?count=1000&wait=5&type=platform.userstore.user.*")).await.is(200).json();
        let kinds = each(&events["items"], "type");
        assert!(kinds.contains(&"platform.userstore.user.created"), "{kinds:?}");
        let team = client.post(&at("/Groups"), json!({ "displayName": "g" })).await.is(201).json();
        let before = world.audit(1000).await.len();
        let add = operations(&json!([{ "op": "add", "path": "members", "value": [{ "value": created["id"] }] }]));
        client.patch(&one("Groups", &team), add.clone()).await.expect(200);
        client.patch(&one("Groups", &team), add).await.expect(200);
        assert_eq!(world.audit(1000).await.len(), before + 1, "a membership is one entry");
    }

    async fn rows_are_the_same_as_by_version_2(world: World) {
        let (client, _) = directory(&world, json!({})).await;
        let created = client.post(&at("/Users"), json!({ "userName": "ada", "name": { "givenName": "Ada" }, "nickName": "A" })).await.is(201).json();
        let by_scim = entries(&world, 1).await;
        let body = json!({ "loginName": "bob", "firstName": "Ada", "nickname": "A" });
        let other = world.admin.post(&world.path("/User"), body).await.is(201).json();
        let by_v2 = entries(&world, 1).await;
        assert_eq!((&by_scim[0]["action"], &by_scim[0]["tableName"]), (&by_v2[0]["action"], &by_v2[0]["tableName"]), "{by_scim:?} {by_v2:?}");
        let mut rows = Vec::new();
        for user in [&created, &other] {
            let mut row = world.admin.get(&world.path(&format!("/User/{}", id(user)))).await.is(200).json();
            for name in ["id", "loginName", "concurrencyToken"] {
                row.as_object_mut().unwrap().remove(name);
            }
            rows.push(row);
        }
        assert_eq!(rows[0], rows[1]);
    }
}
