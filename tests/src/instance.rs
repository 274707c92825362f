//! Identity provider instances and their options.

use chancery_testkit::World;
use serde_json::{Value, json};

use crate::{
    id,
    resources::{one, type_id},
};

/// Creates an instance of a type.
pub async fn create_instance(world: &World, name: &str, kind: &str) -> Value {
    let kind = type_id(world, kind).await;
    world.make("IdpInstance", json!({ "name": name, "idpTypeId": kind })).await
}

/// Sets an option of an instance.
pub async fn set_option(world: &World, instance: &Value, name: &str, value: &str) {
    let option = option(world, instance, name).await;
    let body = json!({ "value": value, "concurrencyToken": option["concurrencyToken"] });
    world.admin.patch(&one("Option", &option), body).await.expect(202);
}

/// An option of an instance.
pub async fn option(world: &World, instance: &Value, name: &str) -> Value {
    let filter =
        format!("applyToIdpInstanceId%20eq%20%22{}%22%20and%20name%20eq%20%22{name}%22", id(instance));
    world.all(&format!("Option?filter={filter}")).await[0].clone()
}
