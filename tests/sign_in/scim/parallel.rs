//! Many clients of one directory at one group: no request fails, and no member is lost.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{at, group, one, operations, own, user};
use crate::id;

/// The number of concurrent clients.
const CLIENTS: usize = 32;
/// How often each adds and removes its own user.
const TIMES: usize = 4;

on_both_engines! {
    async fn concurrent_changes_of_one_group_succeed(world: World) {
        world.set_option("ScimRateLimit", "100000").await;
        let client = own(&world).await;
        let team = group(&client, "team", &[]).await;
        let path = one("Groups", &team);
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..CLIENTS {
            let (client, path) = (client.clone(), path.clone());
            tasks.spawn(async move {
                let created = user(&client, &format!("u{number}")).await;
                let add = operations(&json!([{ "op": "add", "path": "members", "value": [{ "value": created["id"] }] }]));
                let remove = operations(&json!([{ "op": "remove", "path": format!("members[value eq \"{}\"]", id(&created)) }]));
                for _ in 0..TIMES {
                    client.patch(&path, add.clone()).await.expect(200);
                    client.patch(&path, remove.clone()).await.expect(200);
                }
                client.patch(&path, add).await.expect(200);
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        let read = client.get(&path).await.is(200).json();
        assert_eq!(read["members"].as_array().unwrap().len(), CLIENTS);
        let entries = world.admin.get(&world.path("/Event?count=1000&wait=5&type=platform.userstore.group.related")).await.is(200).json();
        assert!(!entries["items"].as_array().unwrap().is_empty());
        let list = client.get(&at("/Users?count=0")).await.is(200).json();
        assert_eq!(list["totalResults"], CLIENTS);
    }
}
