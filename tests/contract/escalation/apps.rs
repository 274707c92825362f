//! Client apps for the platform, and the console's, are a SystemAdmin's to change, with all that belongs to them.

use chancery_testkit::{Answer, Client, World, on_both_engines};
use serde_json::{Value, json};

use super::refused;
use crate::{
    id,
    management::{instance::make, type_id},
    pointers,
};

const BASE: &str = "/api/management/v2";
const CONSOLE: &str = "636f6e73-6f6c-8000-8000-000000000001";

async fn lower(world: &World) -> Client {
    world.client("lower", &[("SubscriptionAdmin", None, None)]).await
}

async fn new_app(world: &World, name: &str) -> Value {
    let all = world.all("Subscription").await;
    let home = all.as_array().unwrap().iter().find(|one| one["name"] == "Default").unwrap()["id"].clone();
    world.make("ClientApp", json!({ "name": name, "subscriptionId": home })).await
}

/// A client app that has a resource of the platform, a secret, a key set and a redirect URI.
pub async fn for_the_platform(world: &World, name: &str, key: &str) -> Value {
    let app = new_app(world, name).await;
    for (resource, body) in parts(&app) {
        if ["ClientAppSecret", "ClientAppRedirectUri", "ClientAppKeySet", "ClientAppScope"]
            .contains(&resource)
        {
            world.make(resource, body).await;
        }
    }
    world.make("ClientAppResource", json!({ "clientAppId": app["id"], "key": key })).await;
    app
}

/// What may belong to a client app.
pub fn parts(app: &Value) -> Vec<(&'static str, Value)> {
    let of = |mut body: Value| {
        body["clientAppId"] = app["id"].clone();
        body
    };
    let federated = json!({ "name": "ci", "issuer": "https://ci.example.com", "subject": "build" });
    vec![
        (
            "ClientAppRedirectUri",
            of(json!({ "uri": "https://app.example.com/back", "redirectUriType": "Login" })),
        ),
        ("ClientAppRequestUri", of(json!({ "uri": "https://app.example.com/request" }))),
        ("ClientAppSecret", of(json!({ "name": "another" }))),
        ("ClientAppKeySet", of(json!({ "use": "Signing", "jwksUri": "https://app.example.com/keys" }))),
        ("ClientAppResource", of(json!({ "key": "https://api.example.com" }))),
        ("ClientAppScope", of(json!({ "key": "ledger.read" }))),
        ("ClientAppFederatedIdentity", of(federated)),
        ("ClientAppRole", of(json!({ "roleType": "SubscriptionAdmin" }))),
        (
            "ClientAppAuthenticationConfiguration",
            of(json!({ "tokenEndpointAuthMethod": "client_secret_post" })),
        ),
    ]
}

async fn now(world: &World, path: &str) -> Value {
    world.admin.get(path).await.is(200).json()
}

async fn patch(client: &Client, world: &World, path: &str, mut change: Value) -> Answer {
    change["concurrencyToken"] = now(world, path).await["concurrencyToken"].clone();
    client.patch(path, change).await
}

fn only(app: &Value) -> Value {
    json!({ "relatedIds": [app["id"]] })
}

/// Instances, tenants, second factors, claim rules and client apps that a lower administrator may link.
async fn links(world: &World, client: &Client, app: &Value) -> Vec<(String, Answer)> {
    let one = format!("{BASE}/ClientApp/{}", id(app));
    let mut answers = Vec::new();
    let nothing = json!({ "relatedIds": [] });
    let other = new_app(world, &format!("other of {}", id(app))).await;
    let mut from = vec![(format!("{one}/allowedtokenexchangeclientapps"), only(&other))];
    from.push((format!("{BASE}/ClientApp/{}/allowedtokenexchangeclientapps", id(&other)), only(app)));
    let subscription = now(world, &one).await["subscriptionId"].clone();
    let name = format!("of {}", id(app));
    let tenant = world.make("Tenant", json!({ "name": name, "subscriptionId": subscription })).await;
    let instance = make(world, &name, "OpenIdConnect").await;
    for (resource, target, own) in [("Tenant", tenant, "tenants"), ("IdpInstance", instance, "idpinstances")]
    {
        from.push((format!("{one}/{own}"), only(&target)));
        from.push((format!("{BASE}/{resource}/{}/clientapps", id(&target)), only(app)));
    }
    for (path, body) in from {
        answers.push((path.clone(), client.post(&path, body).await));
    }
    let factor =
        json!({ "name": name, "idpTypeId": type_id(world, "totp").await, "subscriptionId": subscription });
    let factor = world.make("MfaInstance", factor).await;
    world.admin.put(&format!("{one}/mfainstances"), only(&factor)).await.expect(202);
    for path in [format!("{one}/mfainstances"), format!("{BASE}/MfaInstance/{}/clientapps", id(&factor))] {
        answers.push((path.clone(), client.put(&path, nothing.clone()).await));
    }
    answers
}

on_both_engines! {
    /// Who says where the answers of a client app for the platform go could have the rights of everybody who signs in to it.
    async fn an_app_for_the_platform_is_changed_by_a_system_admin_alone(world: World) {
        let lower = lower(&world).await;
        for (name, key) in [("admin page", "PlatformManagementService"), ("store page", "PlatformUserStoreService")] {
            let app = for_the_platform(&world, name, key).await;
            let one = format!("{BASE}/ClientApp/{}", id(&app));
            for change in [json!({ "allowDeviceAuthorizationGrant": true }), json!({ "name": "mine" }), json!({ "enabled": false, "isPublic": true })] {
                refused(patch(&lower, &world, &one, change).await, "SystemAdmin", &app);
            }
            let mut whole = now(&world, &one).await;
            whole["accessGrantConsent"] = json!("Systematic");
            whole.as_object_mut().unwrap().retain(|_, value| !value.is_array());
            refused(lower.put(&one, whole).await, "SystemAdmin", &app);
            refused(lower.delete(&one).await, "SystemAdmin", &app);
            for (resource, body) in parts(&app) {
                refused(lower.post(&format!("{BASE}/{resource}"), body.clone()).await, "SystemAdmin", &app);
                let dry = format!("{BASE}/{resource}/batch?dryRun=true");
                let batch = lower.post(&dry, json!([body])).await;
                if batch.status != 404 && batch.status != 405 {
                    refused(batch, "SystemAdmin", &app);
                }
            }
            for (resource, change) in [("ClientAppSecret", json!({ "name": "x" })), ("ClientAppRedirectUri", json!({ "uri": "https://eve.example.com" }))] {
                let row = now(&world, &format!("{BASE}/{resource}?filter=clientAppId%20eq%20%22{}%22", id(&app))).await[0].clone();
                refused(patch(&lower, &world, &format!("{BASE}/{resource}/{}", id(&row)), change).await, "SystemAdmin", &app);
            }
            let scope = now(&world, &format!("{BASE}/ClientAppScope?filter=clientAppId%20eq%20%22{}%22", id(&app))).await[0].clone();
            refused(lower.delete(&format!("{BASE}/ClientAppScope/{}", id(&scope))).await, "SystemAdmin", &app);
            let resource = now(&world, &format!("{BASE}/ClientAppResource?filter=clientAppId%20eq%20%22{}%22", id(&app))).await[0].clone();
            refused(lower.delete(&format!("{BASE}/ClientAppResource/{}", id(&resource))).await, "SystemAdmin", &app);
            refused(lower.post(&format!("{one}/ClientAppMetadata"), json!({ "key": "a", "value": "b" })).await, "SystemAdmin", &app);
            for (path, answer) in links(&world, &lower, &app).await {
                assert_eq!(answer.status, 403, "{path}");
                refused(answer, "SystemAdmin", &app);
            }
            // a SystemAdmin does all of it
            patch(&world.admin, &world, &one, json!({ "allowDeviceAuthorizationGrant": true })).await.expect(202);
        }
    }

    /// What closes a client app is no way in, and an ordinary one is its administrator's.
    async fn to_disable_an_app_or_to_take_its_secrets_away_stays_allowed(world: World) {
        let lower = lower(&world).await;
        let app = for_the_platform(&world, "admin page", "PlatformManagementService").await;
        let one = format!("{BASE}/ClientApp/{}", id(&app));
        patch(&lower, &world, &one, json!({ "enabled": false })).await.expect(202);
        refused(patch(&lower, &world, &one, json!({ "enabled": true })).await, "SystemAdmin", &app);
        for resource in ["ClientAppSecret", "ClientAppKeySet", "ClientAppRedirectUri"] {
            let rows = now(&world, &format!("{BASE}/{resource}?filter=clientAppId%20eq%20%22{}%22", id(&app))).await;
            lower.delete(&format!("{BASE}/{resource}/{}", id(&rows[0]))).await.expect(204);
        }
        let ordinary = new_app(&world, "ledger").await;
        for (resource, body) in parts(&ordinary) {
            lower.post(&format!("{BASE}/{resource}"), body).await.expect(201);
        }
        let one = format!("{BASE}/ClientApp/{}", id(&ordinary));
        patch(&lower, &world, &one, json!({ "allowDeviceAuthorizationGrant": true })).await.expect(202);
        for (path, answer) in links(&world, &lower, &ordinary).await {
            assert!(answer.status.is_success(), "{path}: {}", answer.status);
        }
        let metadata = json!({ "key": "a", "value": "b" });
        lower.post(&format!("{one}/ClientAppMetadata"), metadata).await.expect(201);
        lower.delete(&one).await.expect(204);
    }

    async fn the_console_s_app_is_changed_by_a_system_admin_alone(world: World) {
        let lower = lower(&world).await;
        let console = json!({ "id": CONSOLE });
        let one = format!("{BASE}/ClientApp/{CONSOLE}");
        refused(patch(&lower, &world, &one, json!({ "allowDeviceAuthorizationGrant": true })).await, "SystemAdmin", &console);
        for (resource, body) in parts(&console) {
            refused(lower.post(&format!("{BASE}/{resource}"), body).await, "SystemAdmin", &console);
        }
        for (_, answer) in links(&world, &lower, &console).await {
            refused(answer, "SystemAdmin", &console);
        }
        // whether it changes anything or not
        world.admin.put(&format!("{one}/mfainstances"), json!({ "relatedIds": [] })).await.expect(202);
        let none = lower.put(&format!("{one}/mfainstances"), json!({ "relatedIds": [] })).await;
        refused(none, "SystemAdmin", &console);
    }

    /// Of a batch each element is named that may not be changed, and none is.
    async fn a_batch_names_each_app_for_the_platform(world: World) {
        let lower = lower(&world).await;
        let (mine, theirs) = (new_app(&world, "ledger").await, for_the_platform(&world, "page", "PlatformManagementService").await);
        let mut bodies = Vec::new();
        for app in [&mine, &theirs] {
            let mut body = now(&world, &format!("{BASE}/ClientApp/{}", id(app))).await;
            body.as_object_mut().unwrap().retain(|_, value| !value.is_array());
            body["isRestricted"] = json!(true);
            bodies.push(body);
        }
        let problem = refused(lower.put(&format!("{BASE}/ClientApp/batch"), json!(bodies)).await, "SystemAdmin", &theirs);
        assert_eq!(pointers(&problem), ["/1"]);
        assert_eq!(now(&world, &format!("{BASE}/ClientApp/{}", id(&mine))).await["isRestricted"], json!(false));
    }
}
