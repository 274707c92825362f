//! Webhooks: subscriptions, deliveries, tries.

mod attack;
mod delivering;
mod subscription;

use std::path::Path;

use chancery_testkit::{Receiver, World};
use serde_json::{Value as Json, json};

use crate::id;

/// The server may send events to this machine.
pub fn to_this_machine(_: &Path) -> Vec<String> {
    ["--event-networks", "127.0.0.0/8"].map(str::to_owned).to_vec()
}

/// The subscriptions of the default store.
fn subscriptions(world: &World) -> String {
    world.path("/EventSubscription")
}

/// A subscription of the default store to a receiver, tested and active.
pub async fn subscribed(world: &World, receiver: &Receiver, more: Json) -> (String, Json) {
    let mut body = json!({ "name": "r", "url": receiver.url });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let created = world.admin.post(&subscriptions(world), body).await.is(201).json();
    let path = format!("{}/{}", subscriptions(world), id(&created));
    let tested = world.admin.post(&format!("{path}/test"), json!({})).await.is(200).json();
    assert_eq!(tested["delivered"], true, "{tested}");
    (path.clone(), activate(world, &path).await)
}

async fn activate(world: &World, path: &str) -> Json {
    let row = world.admin.get(path).await.is(200).json();
    let body = json!({ "isActive": true, "concurrencyToken": row["concurrencyToken"] });
    world.admin.patch(path, body).await.is(202).json()
}

/// Reads a subscription until this holds: records come after deliveries.
pub async fn until(world: &World, path: &str, holds: impl Fn(&Json) -> bool) -> Json {
    for _ in 0..300 {
        let row = world.admin.get(path).await.is(200).json();
        if holds(&row) {
            return row;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{}", world.admin.get(path).await.is(200).json())
}
