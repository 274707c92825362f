//! Many clients of one directory at one group: none is turned away, and nobody is lost.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{at, group, one, operations, own, user};
use crate::id;

/// How many write at once.
const CLIENTS: usize = 32;
/// How often each adds and removes its own user.
const TIMES: usize = 4;

on_both_engines! {
    async fn nobody_is_turned_away_at_one_group(world: World) {
        world.set_option("ScimRateLimit", "100000").await;
        let client = own(&world).await;
        let team = group(&client, "team", &[]).await;
        let path = one("Groups", &team);
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..CLIENTS {
            let (client, path) = (client.clone(), path.clone());
            tasks.spawn(async move {
                let made = user(&client, &format!("u{number}")).await;
                let add = operations(&json!([{ "op": "add", "path": "members", "value": [{ "value": made["id"] }] }]));
                let remove = operations(&json!([{ "op": "remove", "path": format!("members[value eq \"{}\"]", id(&made)) }]));
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
