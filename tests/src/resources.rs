//! Resources of the management service: their paths and bodies.

use chancery_testkit::World;
use serde_json::Value;

/// The base of the service.
pub const BASE: &str = "/api/management/v2";

/// The id of a seeded type.
pub async fn type_id(world: &World, name: &str) -> Value {
    let all = world.all("IdpType").await;
    all.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()["id"].clone()
}

/// The path of one of a resource.
pub fn one(resource: &str, item: &Value) -> String {
    format!("{BASE}/{resource}/{}", item["id"].as_str().unwrap())
}

/// An id of a relation's answer as a body.
pub fn related(items: &[&Value]) -> Value {
    serde_json::json!({ "relatedIds": items.iter().map(|item| &item["id"]).collect::<Vec<_>>() })
}
