//! Ownership of resources.

use chancery_management::client_app::resource_key;
use chancery_record::Value as Bound;
use chancery_store::Mode;
use chancery_testkit::{World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use super::{app, read, request_token, secret, token};
use crate::id;

const PATH: &str = "/api/management/v2/ClientAppResource";
const ORDERS: &str = "https://orders.example.com";

fn body(app: &Value, key: &str) -> Value {
    json!({ "clientAppId": app["id"], "key": key })
}

/// Client apps in two subscriptions: two in the first, one in the other.
async fn apps(world: &World) -> [Value; 3] {
    let far = world.other_subscription("far").await;
    let one = app(world, "one", json!({})).await;
    [one, app(world, "two", json!({})).await, app(world, "far", json!({ "subscriptionId": far })).await]
}

on_both_engines! {
    /// A5 and section 15: a resource key belongs to the subscription whose app registered it first, as long as one of its
    /// apps has it; another subscription gets 409.
    ///
    /// - Effect of `ClientAppResource.clientAppId`: The resource belongs to this app, and to the subscription of the first app that named
    ///   it.
    async fn a_resource_belongs_to_the_first_subscription(world: World) {
        let [one, two, far] = apps(&world).await;
        let first = world.make("ClientAppResource", body(&one, ORDERS)).await;
        let second = world.make("ClientAppResource", body(&two, ORDERS)).await;
        let problem = world.admin.post(PATH, body(&far, ORDERS)).await.problem(409, "conflict");
        assert_eq!(problem["errors"][0]["pointer"], "/key");
        // by a change, in a batch, in version 1
        let other = world.make("ClientAppResource", body(&far, "urn:far")).await;
        let path = format!("{PATH}/{}", id(&other));
        let patch = json!({ "key": ORDERS, "concurrencyToken": other["concurrencyToken"] });
        world.admin.patch(&path, patch.clone()).await.problem(409, "conflict");
        world.admin.put(&path, patch).await.problem(409, "conflict");
        let batch = json!([body(&far, "urn:free"), body(&far, ORDERS)]);
        let problem = world.admin.post(&format!("{PATH}/batch"), batch).await.problem(409, "conflict");
        assert_eq!(problem["errors"][0]["pointer"], "/1/key");
        let key = secret(&world, &far).await;
        assert_eq!(request_token(&world, &far, &key, &[("resource", ORDERS)]).await.status, 400);
        // one of two remains, then none
        world.admin.delete(&format!("{PATH}/{}", id(&first))).await.expect(204);
        world.admin.post(PATH, body(&far, ORDERS)).await.problem(409, "conflict");
        let move_on = json!({ "key": "urn:moved", "concurrencyToken": second["concurrencyToken"] });
        world.admin.patch(&format!("{PATH}/{}", id(&second)), move_on).await.expect(202);
        world.make("ClientAppResource", body(&far, ORDERS)).await;
        request_token(&world, &far, &key, &[("resource", ORDERS)]).await.expect(200);
        world.admin.post(PATH, body(&one, ORDERS)).await.problem(409, "conflict");
        // a resource is deleted with its client app
        world.admin.delete(&format!("/api/management/v2/ClientApp/{}", id(&far))).await.expect(204);
        world.make("ClientAppResource", body(&one, ORDERS)).await;
    }

    /// Addresses are compared as in RFC 3986, sections 6.2.2 and 6.2.3, and `aud` is the registered one.
    async fn resources_match_in_normalized_form(world: World) {
        let [one, two, far] = apps(&world).await;
        let registered = "https://mcp.example.com";
        let resource_row = world.make("ClientAppResource", body(&one, registered)).await;
        world.make("ClientAppResource", body(&two, "https://api.example.com/~v1/Orders?x=1")).await;
        world.make("ClientAppResource", body(&two, "urn:orders")).await;
        let (key, far_key) = (secret(&world, &one).await, secret(&world, &far).await);
        let aud = async |resource: &str| {
            let answer = request_token(&world, &one, &key, &[("resource", resource)]).await;
            (answer.status == 200).then(|| read(&token(&answer)).1["aud"].clone())
        };
        for spelled in ["https://mcp.example.com/", "HTTPS://MCP.example.com:443", "https://mcp.example.com/a/.."] {
            assert_eq!(aud(spelled).await, Some(json!([registered])), "{spelled}");
        }
        let spelled = "https://API.example.com:443/%7ev1/./Orders?x=1";
        assert_eq!(aud(spelled).await, Some(json!(["https://api.example.com/~v1/Orders?x=1"])));
        for other in [
            "https://mcp.example.com/mcp",
            "http://mcp.example.com/",
            "https://api.example.com/~v1/orders?x=1",
            "https://api.example.com/~v1/Orders",
            "URN:orders",
        ] {
            assert_eq!(aud(other).await, None, "{other}");
        }
        // the same resource twice is one
        let both = [("resource", registered), ("resource", "https://mcp.example.com/")];
        let answer = request_token(&world, &one, &key, &both).await.is(200);
        assert_eq!(read(&token(&answer)).1["aud"], json!([registered]));
        // other spellings of it cannot be registered, by its subscription or another
        for app in [&one, &two, &far] {
            let problem = world.admin.post(PATH, body(app, "https://MCP.example.com/")).await.problem(409, "conflict");
            assert_eq!(problem["errors"][0]["pointer"], "/key");
        }
        let batch = json!([body(&one, "https://new.example.com"), body(&two, "https://new.example.com/")]);
        let problem = world.admin.post(&format!("{PATH}/batch"), batch).await.problem(409, "conflict");
        assert_eq!(problem["errors"][0]["pointer"], "/1/key");
        world.make("ClientAppResource", body(&two, registered)).await;
        assert_eq!(request_token(&world, &far, &far_key, &[("resource", "https://mcp.example.com/")]).await.status, 400);
        // keys stored earlier in two spellings remain, and each is found by its spelling
        world.sql(vec![
            (
                "UPDATE client_app_resource SET key = 'https://mcp.example.com/' WHERE id = ?1",
                vec![Bound::Id(id(&resource_row).parse().unwrap())],
            ),
            ("UPDATE resource_owner SET normal_key = NULL", vec![]),
        ]).await;
        assert_eq!(aud("https://mcp.example.com:443").await, None, "a release before notes no normal form");
        world.app.store.run("Adopt", Mode::Write, None, resource_key::claim_unowned).await.unwrap();
        assert_eq!(aud("https://mcp.example.com/").await, Some(json!(["https://mcp.example.com/"])));
        assert_eq!(aud(registered).await, Some(json!([registered])));
        assert!(aud("https://mcp.example.com:443").await.is_some());
        let patch = json!({ "name": "still here", "key": "https://mcp.example.com/" });
        let now = world.admin.get(&format!("{PATH}/{}", id(&resource_row))).await.is(200).json();
        let mut patch = patch;
        patch["concurrencyToken"] = now["concurrencyToken"].clone();
        world.admin.patch(&format!("{PATH}/{}", id(&resource_row)), patch).await.expect(202);
    }

    /// A5: of two concurrent registrations of a resource one succeeds.
    async fn of_concurrent_registrations_one_succeeds(world: World) {
        let [one, _, far] = apps(&world).await;
        for round in 0..8 {
            let key = format!("urn:round:{round}");
            let (left, right) = tokio::join!(
                world.admin.post(PATH, body(&one, &key)),
                world.admin.post(PATH, body(&far, &key)),
            );
            let mut statuses = [left.status.as_u16(), right.status.as_u16()];
            statuses.sort_unstable();
            assert_eq!(statuses, [201, 409], "{round}");
        }
    }

    /// A5: an app with a resource that belongs to another subscription gets no tokens for it.
    async fn a_resource_registered_twice_belongs_to_the_first(world: World) {
        let [one, _, far] = apps(&world).await;
        world.make("ClientAppResource", body(&one, ORDERS)).await;
        world.make("ClientAppResource", body(&far, "urn:far")).await;
        world.sql(vec![("UPDATE client_app_resource SET key = 'https://orders.example.com'", vec![])]).await;
        let keys = [secret(&world, &one).await, secret(&world, &far).await];
        request_token(&world, &one, &keys[0], &[("resource", ORDERS)]).await.expect(200);
        assert_eq!(request_token(&world, &far, &keys[1], &[("resource", ORDERS)]).await.status, 400);
    }

    /// A process of the previous release creates resources without owners: the next start assigns them.
    async fn resources_without_an_owner_are_adopted(world: World) {
        let [one, _, far] = apps(&world).await;
        world.make("ClientAppResource", body(&one, ORDERS)).await;
        world.make("ClientAppResource", body(&far, "urn:far")).await;
        world.sql(vec![
            ("UPDATE client_app_resource SET key = 'https://orders.example.com'", vec![]),
            ("DELETE FROM resource_owner", vec![]),
        ]).await;
        let keys = [secret(&world, &one).await, secret(&world, &far).await];
        assert_eq!(request_token(&world, &one, &keys[0], &[("resource", ORDERS)]).await.status, 400);
        for _ in 0..2 {
            world.app.store.run("Adopt", Mode::Write, None, resource_key::claim_unowned).await.unwrap();
        }
        request_token(&world, &one, &keys[0], &[("resource", ORDERS)]).await.expect(200);
        assert_eq!(request_token(&world, &far, &keys[1], &[("resource", ORDERS)]).await.status, 400);
    }

    /// Only a SystemAdmin may register the two resources of the platform, in any
    /// subscription.
    async fn the_platforms_resources_are_reserved_for_system_admins(world: World) {
        let [one, other, far] = apps(&world).await;
        let caller = world.client("admin", &[("SubscriptionAdmin", None, None)]).await;
        for name in ["PlatformManagementService", "PlatformUserStoreService"] {
            caller.post(PATH, body(&one, name)).await.problem(403, "forbidden");
            caller.post(&format!("{PATH}/batch"), json!([body(&one, name)])).await.problem(403, "forbidden");
            world.make("ClientAppResource", body(&one, name)).await;
            world.make("ClientAppResource", body(&far, name)).await;
        }
        let own = caller.post(PATH, body(&other, "urn:own")).await.is(201).json();
        let patch = json!({ "key": "PlatformManagementService", "concurrencyToken": own["concurrencyToken"] });
        let headers = [("content-type", "application/merge-patch+json")];
        let path = format!("{PATH}/{}", id(&own));
        let answer = caller.send(Method::PATCH, &path, &headers, patch.to_string().into_bytes()).await;
        answer.problem(403, "forbidden");
    }

    /// A7 and section 15: only `root`, the installation's own app, has a name at the token endpoint; the name, folded, is
    /// reserved everywhere. Every other app is identified by its id.
    async fn only_root_has_a_name_as_client_id(world: World) {
        let far = world.other_subscription("far").await;
        let own_subscription = app(&world, "one", json!({})).await["subscriptionId"].clone();
        for name in ["root", "ROOT", "Root", "ｒｏｏｔ"] {
            for subscription in [&far, &own_subscription] {
                let named = json!({ "name": name, "subscriptionId": subscription });
                let path = "/api/management/v2/ClientApp";
                world.admin.post(path, named.clone()).await.problem(409, "conflict");
                world.admin.post(&format!("{path}/batch"), json!([named])).await.problem(409, "conflict");
            }
        }
        let other = app(&world, "other", json!({ "subscriptionId": far })).await;
        let path = format!("/api/management/v2/ClientApp/{}", id(&other));
        let patch = json!({ "name": "rOOt", "concurrencyToken": other["concurrencyToken"] });
        world.admin.patch(&path, patch).await.problem(409, "conflict");
        // an app that has the name already does not take it over
        world.sql(vec![("UPDATE client_app SET name = 'root', name_key = 'root' WHERE name = 'other'", vec![])]).await;
        let form = |client: &str, secret: &str| format!("grant_type=client_credentials&client_id={client}&client_secret={secret}");
        let secret_of_root = "the+root+secret+of+the+tests";
        for name in ["root", "ROOT", "%EF%BD%92%EF%BD%8F%EF%BD%8F%EF%BD%94"] {
            world.anonymous.ask_for_token(&form(name, secret_of_root)).await.expect(200);
        }
        let value = secret(&world, &other).await;
        world.anonymous.ask_for_token(&form("root", &value)).await.expect(401);
        request_token(&world, &other, &value, &[]).await.expect(200);
        let named = app(&world, "named", json!({})).await;
        let value = secret(&world, &named).await;
        world.anonymous.ask_for_token(&form("named", &value)).await.expect(401);
    }
}
