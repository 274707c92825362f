//! Assets and views of every level: where they come to be, and whose they are to read and to write.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::BASE;
use crate::{each, id, pointers};

const NOBODY: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";

/// What has levels: the resource, the path that makes one by its level, what its locations begin with.
const KINDS: [(&str, &str, &str); 2] = [
    ("CustomAsset", "CustomAsset/create", "assets"),
    ("CustomView", "CustomView/viewtemplate/view", "views"),
];

/// A level: its applyToType, the part of locations that says it, and the member that names whose it is.
struct Level {
    name: &'static str,
    part: String,
    owner: Value,
}

async fn levels(world: &World) -> [Level; 4] {
    let tenant = world.all("Tenant").await[0].clone();
    let subscription = tenant["subscriptionId"].as_str().unwrap();
    let app = world.make("ClientApp", json!({ "name": "shop" })).await;
    [
        Level { name: "Global", part: "global".to_owned(), owner: json!({}) },
        Level {
            name: "Subscription",
            part: format!("subscription/{subscription}"),
            owner: json!({ "subscriptionId": subscription }),
        },
        Level {
            name: "ClientApp",
            part: format!("clientapp/{}", id(&app)),
            owner: json!({ "clientAppId": app["id"] }),
        },
        Level {
            name: "Tenant",
            part: format!("tenant/{}", id(&tenant)),
            owner: json!({ "tenantId": tenant["id"] }),
        },
    ]
}

/// A body that makes an asset or a view of a level. The name is that of a shipped view.
fn leveled(resource: &str, level: &Level, name: &str) -> Value {
    let mut body = if resource == "CustomAsset" {
        json!({ "assetFileName": name, "mimetype": "text/plain", "data": "YQ==" })
    } else {
        json!({ "viewName": name })
    };
    body["applyToType"] = json!(level.name);
    body.as_object_mut().unwrap().extend(level.owner.as_object().unwrap().clone());
    body
}

/// A body that makes one at a location.
fn located(resource: &str, location: &str) -> Value {
    if resource == "CustomAsset" {
        json!({ "location": location, "mimetype": "text/plain", "data": "YQ==" })
    } else {
        json!({ "location": location, "content": "<p>hello</p>" })
    }
}

/// A change of one as it is now.
async fn patch(world: &World, resource: &str, path: &str) -> Value {
    let now = world.admin.get(path).await.is(200).json();
    let (member, value) =
        if resource == "CustomAsset" { ("data", "Yg==") } else { ("content", "<p>goodbye</p>") };
    json!({ member: value, "concurrencyToken": now["concurrencyToken"] })
}

on_both_engines! {
    async fn a_level_says_where_it_is(world: World) {
        let levels = levels(&world).await;
        for (resource, make, above) in KINDS {
            let make = format!("{BASE}/{make}");
            for level in &levels {
                let location = format!("/{above}/{}/SignIn", level.part);
                let made = world.admin.post(&make, leveled(resource, level, "SignIn")).await.is(201).json();
                assert_eq!(made["location"], location);
                assert_eq!(
                    world.admin.get(&format!("{BASE}/{resource}{location}")).await.is(200).json(),
                    made
                );
                // it is taken, however it is asked for
                let mut explicit = leveled(resource, level, "Logout");
                explicit["location"] = json!(location);
                let direct = format!("{BASE}/{resource}");
                for (path, body) in [
                    (&make, leveled(resource, level, "SignIn")),
                    (&make, explicit),
                    (&direct, located(resource, &location)),
                ] {
                    let problem = world.admin.post(path, body).await.problem(409, "conflict");
                    assert_eq!(pointers(&problem), ["/location"], "{path} {location}");
                }
            }
            assert_eq!(world.all(resource).await.as_array().unwrap().len(), levels.len());
        }
    }

    async fn whose_it_is_must_be_said(world: World) {
        let levels = levels(&world).await;
        for (resource, make, _) in KINDS {
            let make = format!("{BASE}/{make}");
            for level in &levels[1..] {
                let member = level.owner.as_object().unwrap().keys().next().unwrap();
                let mut body = leveled(resource, level, "SignIn");
                body[member] = json!(null);
                let problem = world.admin.post(&make, body.clone()).await.problem(400, "invalid-request");
                assert_eq!(pointers(&problem), [format!("/{member}")]);
                body[member] = json!(NOBODY);
                world.admin.post(&make, body).await.problem(400, "invalid-request");
            }
            let mut odd = leveled(resource, &levels[0], "SignIn");
            odd["applyToType"] = json!("Everyone");
            let problem = world.admin.post(&make, odd).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/applyToType"]);
            assert_eq!(world.all(resource).await, json!([]));
        }
    }

    /// Those of a tenant are its administrators', those of a subscription and of its client apps the
    /// subscription's, global ones are SystemAdmin's.
    async fn a_level_says_whose_it_is(world: World) {
        let levels = levels(&world).await;
        let tenant = world.all("Tenant").await[0].clone();
        let beside = json!({ "name": "Sales", "subscriptionId": tenant["subscriptionId"] });
        let beside = world.make("Tenant", beside).await;
        let far = world.other_subscription("Far").await;
        let wide = world.client("wide", &[("CustomerAdmin", None, None)]).await;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let sales = world.client("sales", &[("TenantAdmin", Some(id(&beside).parse().unwrap()), None)]).await;
        let other = world.client_in(&far, "other", &[("SubscriptionAdmin", None, None)]).await;
        // who it is, the levels that are theirs, and a view that nobody else begins with
        let callers = [
            (&world.admin, "Global Subscription ClientApp Tenant", "SignIn"),
            (&wide, "Subscription ClientApp Tenant", "Consent"),
            (&near, "Subscription ClientApp Tenant", "Logout"),
            (&low, "Tenant", "Error"),
            (&sales, "", "Layout"),
            (&other, "", "SecondFactor"),
        ];
        for (resource, make, above) in KINDS {
            let make = format!("{BASE}/{make}");
            for level in &levels {
                for (client, theirs, name) in callers {
                    let location = format!("/{above}/{}/{name}", level.part);
                    let path = format!("{BASE}/{resource}{location}");
                    let answer = client.post(&make, leveled(resource, level, name)).await;
                    if theirs.contains(level.name) {
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
            // what somebody else made is theirs or is not there
            for level in &levels {
                let location = format!("/{above}/{}/DeviceCode", level.part);
                let path = format!("{BASE}/{resource}{location}");
                world.admin.post(&make, leveled(resource, level, "DeviceCode")).await.expect(201);
                for (client, theirs, name) in callers {
                    let is_theirs = theirs.contains(level.name);
                    let at = format!("{location}, {name}");
                    let read = client.get(&path).await;
                    assert_eq!(read.status, if is_theirs { 200 } else { 404 }, "{at}");
                    let listed = client.get(&format!("{BASE}/{resource}")).await.is(200).json();
                    assert_eq!(each(&listed, "location").contains(&location.as_str()), is_theirs, "{at}");
                    let written = client.patch(&path, patch(&world, resource, &path).await).await;
                    assert_eq!(written.status, if is_theirs { 202 } else { 404 }, "{at}");
                    if !is_theirs {
                        client.delete(&path).await.problem(404, "not-found");
                    }
                }
            }
        }
    }

    /// Whoever administers no part of the configuration has none; shipped views are any
    /// administrator's to read.
    async fn shipped_views_are_every_administrator_s(world: World) {
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
        for (resource, make, _) in KINDS {
            for client in [&keeper, &reader] {
                client.get(&format!("{BASE}/{resource}")).await.problem(403, "forbidden");
                for level in &levels {
                    let body = leveled(resource, level, "SignIn");
                    client.post(&format!("{BASE}/{make}"), body).await.problem(403, "forbidden");
                }
            }
        }
    }
}
