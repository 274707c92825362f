//! Assets and views of every level: their locations, and who may read and write them.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::BASE;
use crate::{each, id, pointers};

const UNKNOWN_ID: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";

/// The resource, the path that creates one by level, the prefix of its locations.
const KINDS: [(&str, &str, &str); 2] = [
    ("CustomAsset", "CustomAsset/create", "assets"),
    ("CustomView", "CustomView/viewtemplate/view", "views"),
];

/// A level: its applyToType, its segment of locations, and the member with the id of its owner.
struct Level {
    name: &'static str,
    segment: String,
    owner: Value,
}

async fn levels(world: &World) -> [Level; 4] {
    let tenant = world.all("Tenant").await[0].clone();
    let subscription = tenant["subscriptionId"].as_str().unwrap();
    let app = world.make("ClientApp", json!({ "name": "shop" })).await;
    [
        Level { name: "Global", segment: "global".to_owned(), owner: json!({}) },
        Level {
            name: "Subscription",
            segment: format!("subscription/{subscription}"),
            owner: json!({ "subscriptionId": subscription }),
        },
        Level {
            name: "ClientApp",
            segment: format!("clientapp/{}", id(&app)),
            owner: json!({ "clientAppId": app["id"] }),
        },
        Level {
            name: "Tenant",
            segment: format!("tenant/{}", id(&tenant)),
            owner: json!({ "tenantId": tenant["id"] }),
        },
    ]
}

/// A body that creates an asset or a view at a level. The name is that of a shipped view.
fn body_at_level(resource: &str, level: &Level, name: &str) -> Value {
    let mut body = if resource == "CustomAsset" {
        json!({ "assetFileName": name, "mimetype": "text/plain", "data": "YQ==" })
    } else {
        json!({ "viewName": name })
    };
    body["applyToType"] = json!(level.name);
    body.as_object_mut().unwrap().extend(level.owner.as_object().unwrap().clone());
    body
}

/// A body that creates one at a location.
fn body_at_location(resource: &str, location: &str) -> Value {
    if resource == "CustomAsset" {
        json!({ "location": location, "mimetype": "text/plain", "data": "YQ==" })
    } else {
        json!({ "location": location, "content": "<p>hello</p>" })
    }
}

/// A change of the current version.
async fn patch(world: &World, resource: &str, path: &str) -> Value {
    let now = world.admin.get(path).await.is(200).json();
    let (member, value) =
        if resource == "CustomAsset" { ("data", "Yg==") } else { ("content", "<p>goodbye</p>") };
    json!({ member: value, "concurrencyToken": now["concurrencyToken"] })
}

on_both_engines! {
    async fn the_level_determines_the_location(world: World) {
        let levels = levels(&world).await;
        for (resource, create_path, prefix) in KINDS {
            let create_path = format!("{BASE}/{create_path}");
            for level in &levels {
                let location = format!("/{prefix}/{}/SignIn", level.segment);
                let created = world.admin.post(&create_path, body_at_level(resource, level, "SignIn")).await.is(201).json();
                assert_eq!(created["location"], location);
                assert_eq!(
                    world.admin.get(&format!("{BASE}/{resource}{location}")).await.is(200).json(),
                    created
                );
                // the location is taken, on each way to create it
                let mut explicit = body_at_level(resource, level, "Logout");
                explicit["location"] = json!(location);
                let direct = format!("{BASE}/{resource}");
                for (path, body) in [
                    (&create_path, body_at_level(resource, level, "SignIn")),
                    (&create_path, explicit),
                    (&direct, body_at_location(resource, &location)),
                ] {
                    let problem = world.admin.post(path, body).await.problem(409, "conflict");
                    assert_eq!(pointers(&problem), ["/location"], "{path} {location}");
                }
            }
            assert_eq!(world.all(resource).await.as_array().unwrap().len(), levels.len());
        }
    }

    async fn the_owner_is_required(world: World) {
        let levels = levels(&world).await;
        for (resource, create_path, _) in KINDS {
            let create_path = format!("{BASE}/{create_path}");
            for level in &levels[1..] {
                let member = level.owner.as_object().unwrap().keys().next().unwrap();
                let mut body = body_at_level(resource, level, "SignIn");
                body[member] = json!(null);
                let problem = world.admin.post(&create_path, body.clone()).await.problem(400, "invalid-request");
                assert_eq!(pointers(&problem), [format!("/{member}")]);
                body[member] = json!(UNKNOWN_ID);
                world.admin.post(&create_path, body).await.problem(400, "invalid-request");
            }
            let mut unknown_level = body_at_level(resource, &levels[0], "SignIn");
            unknown_level["applyToType"] = json!("Everyone");
            let problem = world.admin.post(&create_path, unknown_level).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/applyToType"]);
            assert_eq!(world.all(resource).await, json!([]));
        }
    }

    /// A TenantAdmin manages those of the tenant, a SubscriptionAdmin those of the subscription and its client
    /// apps, a SystemAdmin global ones.
    async fn the_level_determines_who_may_access(world: World) {
        let levels = levels(&world).await;
        let tenant = world.all("Tenant").await[0].clone();
        let sibling = json!({ "name": "Sales", "subscriptionId": tenant["subscriptionId"] });
        let sibling = world.make("Tenant", sibling).await;
        let far = world.other_subscription("Far").await;
        let wide = world.client("wide", &[("CustomerAdmin", None, None)]).await;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let sales = world.client("sales", &[("TenantAdmin", Some(id(&sibling).parse().unwrap()), None)]).await;
        let other = world.client_in(&far, "other", &[("SubscriptionAdmin", None, None)]).await;
        // the client, its levels, and a view name that no other one has as a prefix
        let callers = [
            (&world.admin, "Global Subscription ClientApp Tenant", "SignIn"),
            (&wide, "Subscription ClientApp Tenant", "Consent"),
            (&near, "Subscription ClientApp Tenant", "Logout"),
            (&low, "Tenant", "Error"),
            (&sales, "", "Layout"),
            (&other, "", "SecondFactor"),
        ];
        for (resource, create_path, prefix) in KINDS {
            let create_path = format!("{BASE}/{create_path}");
            for level in &levels {
                for (client, own_levels, name) in callers {
                    let location = format!("/{prefix}/{}/{name}", level.segment);
                    let path = format!("{BASE}/{resource}{location}");
                    let answer = client.post(&create_path, body_at_level(resource, level, name)).await;
                    if own_levels.contains(level.name) {
                        assert_eq!(answer.is(201).json()["location"], location);
                        let body = patch(&world, resource, &path).await;
                        client.patch(&path, body).await.expect(202);
                        client.delete(&path).await.expect(204);
                    } else {
                        assert!(
                            [400, 403].contains(&answer.status.as_u16()),
                            "{location}: {}",
                            answer.status
                        );
                    }
                    world.admin.get(&path).await.problem(404, "not-found");
                }
            }
            // rows of other creators are accessible or not found
            for level in &levels {
                let location = format!("/{prefix}/{}/DeviceCode", level.segment);
                let path = format!("{BASE}/{resource}{location}");
                world.admin.post(&create_path, body_at_level(resource, level, "DeviceCode")).await.expect(201);
                for (client, own_levels, name) in callers {
                    let may_access = own_levels.contains(level.name);
                    let at = format!("{location}, {name}");
                    let read = client.get(&path).await;
                    assert_eq!(read.status, if may_access { 200 } else { 404 }, "{at}");
                    let listed = client.get(&format!("{BASE}/{resource}")).await.is(200).json();
                    assert_eq!(each(&listed, "location").contains(&location.as_str()), may_access, "{at}");
                    let written = client.patch(&path, patch(&world, resource, &path).await).await;
                    assert_eq!(written.status, if may_access { 202 } else { 404 }, "{at}");
                    if !may_access {
                        client.delete(&path).await.problem(404, "not-found");
                    }
                }
            }
        }
    }

    /// Without an administrator role for the configuration, views are forbidden; shipped views are readable by
    /// every administrator.
    async fn shipped_views_are_readable_by_every_administrator(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let store = world.all("IdpInstance").await[0].clone();
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let keeper =
            world.client("keeper", &[("UserStoreAdmin", None, Some(id(&store).parse().unwrap()))]).await;
        let reader = world.client("reader", &[("AuditTrailReader", None, None)]).await;
        let shipped = [
            format!("{BASE}/CustomView/viewtemplate/names"),
            format!("{BASE}/CustomView/viewtemplate/content/SignIn"),
        ];
        for path in &shipped {
            for client in [&world.admin, &near, &low, &keeper] {
                client.get(path).await.expect(200);
            }
            reader.get(path).await.problem(403, "forbidden");
        }
        let levels = levels(&world).await;
        for (resource, create_path, _) in KINDS {
            for client in [&keeper, &reader] {
                client.get(&format!("{BASE}/{resource}")).await.problem(403, "forbidden");
                for level in &levels {
                    let body = body_at_level(resource, level, "SignIn");
                    client.post(&format!("{BASE}/{create_path}"), body).await.problem(403, "forbidden");
                }
            }
        }
    }
}
