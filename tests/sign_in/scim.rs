//! SCIM (RFC 7643, RFC 7644): provisioning of the users and groups of a store, and of an identity provider instance.

mod access;
mod bulk;
mod group;
mod killed;
mod list;
mod me;
mod parallel;
mod removal;
mod user;
mod version_two;

use chancery_testkit::{Client, World};
use serde_json::{Value as Json, json};

use crate::instance::{create_instance, option, set_option};

const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

/// An address of the default store.
fn at(rest: &str) -> String {
    format!("/api/scim/v2/default{rest}")
}

/// A directory of the default store, by a token with these members.
async fn directory(world: &World, more: Json) -> (Client, Json) {
    let mut body = json!({ "name": "a directory" });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let created = world.admin.post(&world.path("/ScimToken"), body).await.is(201).json();
    (world.admin.with_token(created["token"].as_str().unwrap()), created)
}

/// A directory that reaches only its own resources.
async fn own(world: &World) -> Client {
    directory(world, json!({})).await.0
}

/// The directory of a new identity provider instance, and the instance's address.
async fn of_provider(world: &World, name: &str) -> (Client, String) {
    let instance = create_instance(world, name, "OpenIdConnect").await;
    directory_of(world, &instance).await
}

/// The directory of an identity provider instance, and the instance's address.
pub async fn directory_of(world: &World, instance: &Json) -> (Client, String) {
    set_option(world, instance, "ScimEnabled", "true").await;
    let name = instance["name"].as_str().unwrap();
    let path = format!("/api/management/v2/IdpInstance/{name}/scim/token");
    world.admin.send(http::Method::POST, &path, &[], Vec::new()).await.expect(204);
    let token = option(world, instance, "ScimToken").await["value"].as_str().unwrap().to_owned();
    (world.admin.with_token(&token), format!("/api/scim/v2/{name}"))
}

async fn user(client: &Client, name: &str) -> Json {
    client.post(&at("/Users"), json!({ "userName": name })).await.is(201).json()
}

async fn group(client: &Client, name: &str, members: &[&Json]) -> Json {
    let members: Vec<Json> = members.iter().map(|member| json!({ "value": member["id"] })).collect();
    client.post(&at("/Groups"), json!({ "displayName": name, "members": members })).await.is(201).json()
}

fn one(of: &str, resource: &Json) -> String {
    at(&format!("/{of}/{}", resource["id"].as_str().unwrap()))
}

/// A patch with these operations.
pub fn operations(operations: &Json) -> Json {
    json!({ "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": operations })
}

/// The word and the sentence of an error.
#[track_caller]
fn error(answer: &chancery_testkit::Answer, status: u16) -> (String, String) {
    assert_eq!(answer.status.as_u16(), status, "{}", String::from_utf8_lossy(&answer.bytes));
    let body = answer.json();
    assert_eq!(body["schemas"], json!(["urn:ietf:params:scim:api:messages:2.0:Error"]));
    assert_eq!(body["status"], json!(status.to_string()));
    assert_eq!(answer.header("content-type"), Some("application/scim+json"));
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    (text("scimType"), text("detail"))
}

/// The ids of a list's resources.
fn ids(list: &Json) -> Vec<String> {
    list["Resources"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}
