//! Only a SystemAdmin changes client apps of the platform and of the console, and their child resources.

use chancery_testkit::{Answer, Client, World, on_both_engines};
use serde_json::{Value, json};

use super::assert_refused;
use crate::{id, instance::create_instance, pointers, resources::type_id};

const BASE: &str = "/api/management/v2";
const CONSOLE: &str = "636f6e73-6f6c-8000-8000-000000000001";

async fn lower_admin(world: &World) -> Client {
    world.client("lower", &[("SubscriptionAdmin", None, None)]).await
}

async fn new_app(world: &World, name: &str) -> Value {
    let all = world.all("Subscription").await;
    let subscription_id =
        all.as_array().unwrap().iter().find(|one| one["name"] == "Default").unwrap()["id"].clone();
    world.make("ClientApp", json!({ "name": name, "subscriptionId": subscription_id })).await
}

/// Creates a client app with a resource of the platform, a secret, a key set and a redirect URI.
pub async fn platform_client_app(world: &World, name: &str, key: &str) -> Value {
    let app = new_app(world, name).await;
    for (resource, body) in child_resources(&app) {
        if ["ClientAppSecret", "ClientAppRedirectUri", "ClientAppKeySet", "ClientAppScope"]
            .contains(&resource)
        {
            world.make(resource, body).await;
        }
    }
    world.make("ClientAppResource", json!({ "clientAppId": app["id"], "key": key })).await;
    app
}

/// Bodies of all child resources of a client app.
pub fn child_resources(app: &Value) -> Vec<(&'static str, Value)> {
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

async fn current(world: &World, path: &str) -> Value {
    world.admin.get(path).await.is(200).json()
}

async fn patch(client: &Client, world: &World, path: &str, mut change: Value) -> Answer {
    change["concurrencyToken"] = current(world, path).await["concurrencyToken"].clone();
    client.patch(path, change).await
}

fn related_ids_of(app: &Value) -> Value {
    json!({ "relatedIds": [app["id"]] })
}

/// Attempts to link instances, tenants, second factors and client apps; the paths and answers.
async fn link_attempts(world: &World, client: &Client, app: &Value) -> Vec<(String, Answer)> {
    let one = format!("{BASE}/ClientApp/{}", id(app));
    let mut answers = Vec::new();
    let nothing = json!({ "relatedIds": [] });
    let other = new_app(world, &format!("other of {}", id(app))).await;
    let mut requests = vec![(format!("{one}/allowedtokenexchangeclientapps"), related_ids_of(&other))];
    requests.push((
        format!("{BASE}/ClientApp/{}/allowedtokenexchangeclientapps", id(&other)),
        related_ids_of(app),
    ));
    let subscription = current(world, &one).await["subscriptionId"].clone();
    let name = format!("of {}", id(app));
    let tenant = world.make("Tenant", json!({ "name": name, "subscriptionId": subscription })).await;
    let instance = create_instance(world, &name, "OpenIdConnect").await;
    for (resource, target, own) in [("Tenant", tenant, "tenants"), ("IdpInstance", instance, "idpinstances")]
    {
        requests.push((format!("{one}/{own}"), related_ids_of(&target)));
        requests.push((format!("{BASE}/{resource}/{}/clientapps", id(&target)), related_ids_of(app)));
    }
    for (path, body) in requests {
        answers.push((path.clone(), client.post(&path, body).await));
    }
    let factor =
        json!({ "name": name, "idpTypeId": type_id(world, "totp").await, "subscriptionId": subscription });
    let factor = world.make("MfaInstance", factor).await;
    world.admin.put(&format!("{one}/mfainstances"), related_ids_of(&factor)).await.expect(202);
    for path in [format!("{one}/mfainstances"), format!("{BASE}/MfaInstance/{}/clientapps", id(&factor))] {
        answers.push((path.clone(), client.put(&path, nothing.clone()).await));
    }
    answers
}

on_both_engines! {
    /// Control of a platform app's redirect URIs would give the rights of everybody who signs in to it.
    async fn only_a_system_admin_changes_a_platform_client_app(world: World) {
        let lower_admin = lower_admin(&world).await;
        for (name, key) in [("admin page", "PlatformManagementService"), ("store page", "PlatformUserStoreService")] {
            let app = platform_client_app(&world, name, key).await;
            let one = format!("{BASE}/ClientApp/{}", id(&app));
            for change in [json!({ "allowDeviceAuthorizationGrant": true }), json!({ "name": "mine" }), json!({ "enabled": false, "isPublic": true })] {
                assert_refused(patch(&lower_admin, &world, &one, change).await, "SystemAdmin", &app);
            }
            let mut put_body = current(&world, &one).await;
            put_body["accessGrantConsent"] = json!("Systematic");
            put_body.as_object_mut().unwrap().retain(|_, value| !value.is_array());
            assert_refused(lower_admin.put(&one, put_body).await, "SystemAdmin", &app);
            assert_refused(lower_admin.delete(&one).await, "SystemAdmin", &app);
            for (resource, body) in child_resources(&app) {
                assert_refused(lower_admin.post(&format!("{BASE}/{resource}"), body.clone()).await, "SystemAdmin", &app);
                let dry = format!("{BASE}/{resource}/batch?dryRun=true");
                let batch = lower_admin.post(&dry, json!([body])).await;
                if batch.status != 404 && batch.status != 405 {
                    assert_refused(batch, "SystemAdmin", &app);
                }
            }
            for (resource, change) in [("ClientAppSecret", json!({ "name": "x" })), ("ClientAppRedirectUri", json!({ "uri": "https://eve.example.com" }))] {
                let row = current(&world, &format!("{BASE}/{resource}?filter=clientAppId%20eq%20%22{}%22", id(&app))).await[0].clone();
                assert_refused(patch(&lower_admin, &world, &format!("{BASE}/{resource}/{}", id(&row)), change).await, "SystemAdmin", &app);
            }
            let scope = current(&world, &format!("{BASE}/ClientAppScope?filter=clientAppId%20eq%20%22{}%22", id(&app))).await[0].clone();
            assert_refused(lower_admin.delete(&format!("{BASE}/ClientAppScope/{}", id(&scope))).await, "SystemAdmin", &app);
            let resource = current(&world, &format!("{BASE}/ClientAppResource?filter=clientAppId%20eq%20%22{}%22", id(&app))).await[0].clone();
            assert_refused(lower_admin.delete(&format!("{BASE}/ClientAppResource/{}", id(&resource))).await, "SystemAdmin", &app);
            assert_refused(lower_admin.post(&format!("{one}/ClientAppMetadata"), json!({ "key": "a", "value": "b" })).await, "SystemAdmin", &app);
            for (path, answer) in link_attempts(&world, &lower_admin, &app).await {
                assert_eq!(answer.status, 403, "{path}");
                assert_refused(answer, "SystemAdmin", &app);
            }
            // a SystemAdmin may do all of it
            patch(&world.admin, &world, &one, json!({ "allowDeviceAuthorizationGrant": true })).await.expect(202);
        }
    }

    /// Disabling a client app gives no access, and an ordinary app belongs to its administrator.
    async fn disabling_an_app_and_deleting_its_secrets_stays_allowed(world: World) {
        let lower_admin = lower_admin(&world).await;
        let app = platform_client_app(&world, "admin page", "PlatformManagementService").await;
        let one = format!("{BASE}/ClientApp/{}", id(&app));
        patch(&lower_admin, &world, &one, json!({ "enabled": false })).await.expect(202);
        assert_refused(patch(&lower_admin, &world, &one, json!({ "enabled": true })).await, "SystemAdmin", &app);
        for resource in ["ClientAppSecret", "ClientAppKeySet", "ClientAppRedirectUri"] {
            let rows = current(&world, &format!("{BASE}/{resource}?filter=clientAppId%20eq%20%22{}%22", id(&app))).await;
            lower_admin.delete(&format!("{BASE}/{resource}/{}", id(&rows[0]))).await.expect(204);
        }
        let ordinary = new_app(&world, "ledger").await;
        for (resource, body) in child_resources(&ordinary) {
            lower_admin.post(&format!("{BASE}/{resource}"), body).await.expect(201);
        }
        let one = format!("{BASE}/ClientApp/{}", id(&ordinary));
        patch(&lower_admin, &world, &one, json!({ "allowDeviceAuthorizationGrant": true })).await.expect(202);
        for (path, answer) in link_attempts(&world, &lower_admin, &ordinary).await {
            assert!(answer.status.is_success(), "{path}: {}", answer.status);
        }
        let metadata = json!({ "key": "a", "value": "b" });
        lower_admin.post(&format!("{one}/ClientAppMetadata"), metadata).await.expect(201);
        lower_admin.delete(&one).await.expect(204);
    }

    async fn only_a_system_admin_changes_the_console_s_client_app(world: World) {
        let lower_admin = lower_admin(&world).await;
        let console = json!({ "id": CONSOLE });
        let one = format!("{BASE}/ClientApp/{CONSOLE}");
        assert_refused(patch(&lower_admin, &world, &one, json!({ "allowDeviceAuthorizationGrant": true })).await, "SystemAdmin", &console);
        for (resource, body) in child_resources(&console) {
            assert_refused(lower_admin.post(&format!("{BASE}/{resource}"), body).await, "SystemAdmin", &console);
        }
        for (_, answer) in link_attempts(&world, &lower_admin, &console).await {
            assert_refused(answer, "SystemAdmin", &console);
        }
        // whether it changes anything or not
        world.admin.put(&format!("{one}/mfainstances"), json!({ "relatedIds": [] })).await.expect(202);
        let none = lower_admin.put(&format!("{one}/mfainstances"), json!({ "relatedIds": [] })).await;
        assert_refused(none, "SystemAdmin", &console);
    }

    /// A batch is refused as a whole, with a pointer to each protected element.
    async fn a_batch_refusal_points_to_each_platform_client_app(world: World) {
        let lower_admin = lower_admin(&world).await;
        let (ordinary_app, platform_app) = (new_app(&world, "ledger").await, platform_client_app(&world, "page", "PlatformManagementService").await);
        let mut bodies = Vec::new();
        for app in [&ordinary_app, &platform_app] {
            let mut body = current(&world, &format!("{BASE}/ClientApp/{}", id(app))).await;
            body.as_object_mut().unwrap().retain(|_, value| !value.is_array());
            body["isRestricted"] = json!(true);
            bodies.push(body);
        }
        let problem = assert_refused(lower_admin.put(&format!("{BASE}/ClientApp/batch"), json!(bodies)).await, "SystemAdmin", &platform_app);
        assert_eq!(pointers(&problem), ["/1"]);
        assert_eq!(current(&world, &format!("{BASE}/ClientApp/{}", id(&ordinary_app))).await["isRestricted"], json!(false));
    }
}
