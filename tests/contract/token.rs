//! The OAuth endpoints: client authentication, and the content of tokens.

mod assertion;
mod certificate;
mod client_cache;
mod dpop;
mod exchange;
mod issuer;
mod many;
mod reference;
mod resource;
mod round_trips;
mod target;
mod tls;
mod uses;

use chancery_testkit::{Answer, World};
use http::Method;
use serde_json::{Map, Value, json};

use crate::id;

/// The media type of forms.
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
/// The path of users.
const USERS: &str = "/api/userstore/v2/default/administration/User";

/// A client app of the default subscription that may get tokens.
async fn app(world: &World, name: &str, members: Value) -> Value {
    let all = world.all("Subscription").await;
    let subscription =
        all.as_array().unwrap().iter().find(|one| one["name"] == "Default").unwrap()["id"].clone();
    let mut body =
        json!({ "name": name, "allowClientCredentialLogin": true, "subscriptionId": subscription });
    body.as_object_mut().unwrap().extend(members.as_object().cloned().unwrap_or_default());
    world.make("ClientApp", body).await
}

/// Configures its authentication method.
async fn configure(world: &World, app: &Value, method: &str, members: Value) -> Value {
    let mut body = json!({ "clientAppId": app["id"], "tokenEndpointAuthMethod": method });
    body.as_object_mut().unwrap().extend(members.as_object().cloned().unwrap_or_default());
    world.make("ClientAppAuthenticationConfiguration", body).await
}

/// A new secret of it.
async fn secret(world: &World, app: &Value) -> String {
    let created = world.make("ClientAppSecret", json!({ "clientAppId": app["id"] })).await;
    created["secret"].as_str().unwrap().to_owned()
}

/// Makes it an administrator of everything.
async fn make_system_admin(world: &World, app: &Value) {
    world.make("ClientAppRole", json!({ "clientAppId": app["id"], "roleType": "SystemAdmin" })).await;
}

/// A form.
fn form(parameters: &[(&str, &str)]) -> Vec<u8> {
    let encode = |text: &str| crate::encode(text);
    let pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    pairs.join("&").into_bytes()
}

/// Sends a form to an endpoint.
async fn post(world: &World, path: &str, headers: &[(&str, &str)], parameters: &[(&str, &str)]) -> Answer {
    let headers: Vec<(&str, &str)> = [FORM].into_iter().chain(headers.iter().copied()).collect();
    world.anonymous.send(Method::POST, path, &headers, form(parameters)).await
}

/// Requests a token with the secret in the body.
async fn request_token(world: &World, app: &Value, secret: &str, more: &[(&str, &str)]) -> Answer {
    let own = [("grant_type", "client_credentials"), ("client_id", id(app)), ("client_secret", secret)];
    let all: Vec<(&str, &str)> = own.into_iter().chain(more.iter().copied()).collect();
    post(world, "/connect/token", &[], &all).await
}

/// The token of an answer.
fn token(answer: &Answer) -> String {
    answer.json()["access_token"].as_str().unwrap().to_owned()
}

/// The header and the claims of a signed token.
fn read(token: &str) -> (Map<String, Value>, Map<String, Value>) {
    use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
    let part = |index: usize| {
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(index).unwrap()).unwrap())
            .unwrap()
    };
    (part(0), part(1))
}

/// Asserts a refusal of an endpoint.
#[track_caller]
fn assert_oauth_error(answer: Answer, status: u16, error: &str) {
    let answer = answer.is(status);
    assert_eq!(answer.json()["error"], error, "{}", answer.json());
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}
