//! A TenantAdmin links the client apps of the tenant; claim rules apply by tenant, client app and
//! instance.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, one, related, type_id};
use crate::{each, id, pointers};

/// Relations of a client app that a TenantAdmin writes: the last path segment and the member.
const RELATIONS: [(&str, &str); 3] = [
    ("authorizedusers", "authorizedPlatformUsers"),
    ("authorizedgroups", "authorizedPlatformGroups"),
    ("tenants", "tenants"),
];

/// Two tenants of a subscription, each with its own user store.
struct Fixture {
    /// The administrator of the first.
    low: Client,
    /// Its instance.
    store: Value,
    /// A platform user, a platform group and the tenant itself.
    own: [Value; 3],
    /// The instance of the second.
    branch: Value,
    /// The same of the second.
    theirs: [Value; 3],
}

async fn fixture(world: &World) -> Fixture {
    let (tenant, store) = (world.all("Tenant").await[0].clone(), world.all("IdpInstance").await[0].clone());
    let subscription = &tenant["subscriptionId"];
    let sales = world.make("Tenant", json!({ "name": "Sales", "subscriptionId": subscription })).await;
    let kind = type_id(world, "UserStore").await;
    let branch = json!({ "name": "branch", "idpTypeId": kind, "subscriptionId": subscription });
    let branch = world.make("IdpInstance", branch).await;
    for (instance, tenant) in [(&store, &tenant), (&branch, &sales)] {
        let relation = format!("{}/tenants", one("IdpInstance", instance));
        world.admin.put(&relation, related(&[tenant])).await.expect(202);
    }
    let [ada, readers] = create_principals(world, "default", "ada").await;
    let [bob, sellers] = create_principals(world, "branch", "bob").await;
    let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
    Fixture { low, store, own: [ada, readers, tenant], branch, theirs: [bob, sellers, sales] }
}

/// A platform user and a platform group of a store.
async fn create_principals(world: &World, store: &str, name: &str) -> [Value; 2] {
    let path = |rest: &str| format!("/api/userstore/v2/{store}/administration{rest}");
    let user = world.admin.post(&path("/User"), json!({ "loginName": name })).await.is(201).json();
    world.admin.post(&path("/Group"), json!({ "name": name })).await.expect(201);
    for kind in ["User", "Group"] {
        world.admin.post(&path(&format!("/{kind}/synchronize")), json!(null)).await.expect(200);
    }
    let of_user = format!("ApplicationUser?filter=identities.subject%20eq%20%22{}%22", id(&user));
    let of_group = format!("ApplicationGroup?filter=name%20eq%20%22{name}%22");
    [world.all(&of_user).await[0].clone(), world.all(&of_group).await[0].clone()]
}

/// Creates a client app that is assigned to these tenants.
async fn app_of(world: &World, name: &str, tenants: &[&Value]) -> Value {
    let subscription =
        world.all("Tenant?filter=name%20eq%20%22Default%22").await[0]["subscriptionId"].clone();
    let app = world.make("ClientApp", json!({ "name": name, "subscriptionId": subscription })).await;
    let relation = format!("{}/tenants", one("ClientApp", &app));
    world.admin.put(&relation, related(tenants)).await.expect(202);
    app
}

fn ids_of(items: &Value) -> Vec<&str> {
    let mut ids = each(items, "id");
    ids.sort_unstable();
    ids
}

fn sorted<'a>(items: &[&'a Value]) -> Vec<&'a str> {
    let mut ids: Vec<&str> = items.iter().map(|item| id(item)).collect();
    ids.sort_unstable();
    ids
}

/// An array member of a client app, as this reader sees it.
async fn set_of(reader: &Client, app: &Value, member: &str) -> Value {
    reader.get(&one("ClientApp", app)).await.is(200).json()[member].clone()
}

/// A rule that adds its name where it is in force.
fn rule(name: &str, level: &str, more: &Value) -> Value {
    let mut body = json!({
        "name": name, "ruleType": "Add", "ruleLevel": level,
        "typeTransformationReplacement": "fired", "valueTransformationReplacement": name,
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// The names of the rules in force, sorted.
async fn added_by_rules(caller: &Client, query: &Value) -> String {
    let mut body = query.clone();
    body["claims"] = json!([{ "type": "x", "value": "y" }]);
    let response = caller.post(&format!("{BASE}/ClaimRule/evaluate"), body).await.is(200).json();
    let claims = response["claims"].as_array().unwrap();
    assert!(claims.iter().any(|claim| claim["type"] == "x"), "rules that add take nothing away: {response}");
    let added = claims.iter().filter(|claim| claim["type"] == "fired");
    let mut names: Vec<&str> = added.map(|claim| claim["value"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.join(" ")
}

on_both_engines! {
    async fn tenant_admin_sets_the_links_of_the_tenant_s_client_apps(world: World) {
        let Fixture { low, own, .. } = fixture(&world).await;
        for ((path, member), item) in RELATIONS.into_iter().zip(&own) {
            let app = app_of(&world, path, &[&own[2]]).await;
            let relation = format!("{}/{path}", one("ClientApp", &app));
            for _ in ["new", "again"] {
                let added = low.post(&relation, related(&[item])).await.is(202).json();
                assert_eq!(ids_of(&added[member]), [id(item)], "{path}");
            }
            assert_eq!(ids_of(&low.put(&relation, related(&[item])).await.is(202).json()[member]), [id(item)], "{path}");
            if member != "tenants" {
                assert_eq!(low.delete_with(&relation, related(&[item])).await.is(202).json()[member], json!([]), "{path}");
                low.put(&relation, related(&[item])).await.expect(202);
                assert_eq!(ids_of(&set_of(&world.admin, &app, member).await), [id(item)], "{path}");
                assert_eq!(low.put(&relation, related(&[])).await.is(202).json()[member], json!([]), "{path}");
            }
        }
    }

    async fn a_client_app_of_another_tenant_is_not_found(world: World) {
        let Fixture { low, own, theirs, .. } = fixture(&world).await;
        let (unassigned, foreign) = (app_of(&world, "nobody's", &[]).await, app_of(&world, "foreign", &[&theirs[2]]).await);
        // an app with broader roles can be read, not changed
        let root = world.all("ClientApp?filter=name%20eq%20%22root%22").await[0].clone();
        world.admin.put(&format!("{}/tenants", one("ClientApp", &root)), related(&[&own[2]])).await.expect(202);
        for (app, status) in [(&unassigned, 404), (&foreign, 404), (&root, 200)] {
            low.get(&one("ClientApp", app)).await.expect(status);
            let before = world.admin.get(&one("ClientApp", app)).await.is(200).json();
            for ((path, _), item) in RELATIONS.into_iter().zip(&own) {
                let relation = format!("{}/{path}", one("ClientApp", app));
                low.post(&relation, related(&[item])).await.problem(404, "not-found");
                low.put(&relation, related(&[item])).await.problem(404, "not-found");
                low.put(&relation, related(&[])).await.problem(404, "not-found");
                low.delete_with(&relation, related(&[item])).await.problem(404, "not-found");
            }
            assert_eq!(world.admin.get(&one("ClientApp", app)).await.is(200).json(), before, "nothing was done");
        }
    }

    async fn links_to_another_tenant_s_objects_are_refused(world: World) {
        let Fixture { low, own, theirs, .. } = fixture(&world).await;
        let app = app_of(&world, "shop", &[&own[2]]).await;
        let before = world.admin.get(&one("ClientApp", &app)).await.is(200).json();
        for ((path, _), (item, foreign)) in RELATIONS.into_iter().zip(own.iter().zip(&theirs)) {
            let relation = format!("{}/{path}", one("ClientApp", &app));
            for (items, at) in [(&[foreign][..], "/relatedIds/0"), (&[item, foreign], "/relatedIds/1"), (&[foreign, item], "/relatedIds/0")] {
                for answer in [
                    low.post(&relation, related(items)).await, low.put(&relation, related(items)).await,
                    low.delete_with(&relation, related(items)).await,
                ] {
                    assert_eq!(pointers(&answer.problem(400, "invalid-request")), [at], "{path}");
                }
            }
        }
        assert_eq!(world.admin.get(&one("ClientApp", &app)).await.is(200).json(), before, "nothing was done");
    }

    async fn links_outside_the_caller_s_scope_are_retained(world: World) {
        let Fixture { low, own, theirs, .. } = fixture(&world).await;
        let app = app_of(&world, "shared", &[&own[2], &theirs[2]]).await;
        for ((path, member), (item, foreign)) in RELATIONS.into_iter().zip(own.iter().zip(&theirs)) {
            let relation = format!("{}/{path}", one("ClientApp", &app));
            world.admin.put(&relation, related(&[item, foreign])).await.expect(202);
            assert_eq!(ids_of(&set_of(&low, &app, member).await), [id(item)], "{path}");
            assert_eq!(ids_of(&low.put(&relation, related(&[item])).await.is(202).json()[member]), [id(item)], "{path}");
            assert_eq!(ids_of(&set_of(&world.admin, &app, member).await), sorted(&[item, foreign]), "{path}");
            // nor does a removal reveal them
            let refused = low.delete_with(&relation, related(&[foreign])).await.problem(400, "invalid-request");
            assert_eq!(pointers(&refused), ["/relatedIds/0"], "{path}");
            if member != "tenants" {
                assert_eq!(low.put(&relation, related(&[])).await.is(202).json()[member], json!([]), "{path}");
                assert_eq!(ids_of(&set_of(&world.admin, &app, member).await), [id(foreign)], "{path}");
            }
        }
    }

    async fn rules_apply_at_the_level_that_they_name(world: World) {
        let Fixture { low, store, own, branch, theirs } = fixture(&world).await;
        let (tenant, sales) = (&own[2], &theirs[2]);
        let subscription = &tenant["subscriptionId"];
        let (shop, other) = (app_of(&world, "shop", &[tenant]).await, app_of(&world, "other", &[]).await);
        let far = world.other_subscription("Far").await;
        let beyond = world.make("Tenant", json!({ "name": "Beyond", "subscriptionId": far })).await;
        let apps = |app: &Value| json!([{ "id": app["id"] }]);
        let mut rules = Vec::new();
        for (name, level, more) in [
            ("subscription", "Subscription", json!({ "subscriptionId": subscription })),
            ("tenant", "Tenant", json!({ "applyToTenantId": tenant["id"] })),
            ("sales", "Tenant", json!({ "applyToTenantId": sales["id"] })),
            ("app", "ClientApp", json!({ "subscriptionId": subscription, "clientApps": apps(&shop) })),
            ("other", "ClientApp", json!({ "subscriptionId": subscription, "clientApps": apps(&other) })),
            ("nobody-s", "ClientApp", json!({ "subscriptionId": subscription })),
            ("app-store", "ClientAppIdpInstance", json!({ "subscriptionId": subscription, "applyToIdpInstanceId": store["id"], "clientApps": apps(&shop) })),
            ("app-branch", "ClientAppIdpInstance", json!({ "subscriptionId": subscription, "applyToIdpInstanceId": branch["id"], "clientApps": apps(&shop) })),
            ("no-app-store", "ClientAppIdpInstance", json!({ "subscriptionId": subscription, "applyToIdpInstanceId": store["id"] })),
            ("far", "Subscription", json!({ "subscriptionId": far })),
            ("beyond", "Tenant", json!({ "applyToTenantId": beyond["id"] })),
        ] {
            rules.push(world.make("ClaimRule", rule(name, level, &more)).await);
            let mut off = rule(&format!("{name}-off"), level, &more);
            off["isActive"] = json!(false);
            world.make("ClaimRule", off).await;
        }
        let everybody = json!({ "tenantId": tenant["id"], "clientAppId": shop["id"], "idpInstanceId": store["id"] });
        for (query, expected) in [
            (json!({}), ""),
            (json!({ "tenantId": tenant["id"] }), "subscription tenant"),
            (json!({ "tenantId": sales["id"] }), "sales subscription"),
            (json!({ "tenantId": tenant["id"], "clientAppId": null, "idpInstanceId": null }), "subscription tenant"),
            (json!({ "clientAppId": shop["id"] }), "app subscription"),
            (json!({ "clientAppId": other["id"] }), "other subscription"),
            (json!({ "idpInstanceId": store["id"] }), "subscription"),
            (json!({ "tenantId": tenant["id"], "idpInstanceId": store["id"] }), "subscription tenant"),
            (json!({ "tenantId": tenant["id"], "clientAppId": shop["id"] }), "app subscription tenant"),
            (json!({ "clientAppId": shop["id"], "idpInstanceId": store["id"] }), "app app-store subscription"),
            (json!({ "clientAppId": shop["id"], "idpInstanceId": branch["id"] }), "app app-branch subscription"),
            (json!({ "clientAppId": other["id"], "idpInstanceId": store["id"] }), "other subscription"),
            (everybody.clone(), "app app-store subscription tenant"),
            (json!({ "tenantId": beyond["id"] }), "beyond far"),
        ] {
            assert_eq!(added_by_rules(&world.admin, &query).await, expected, "{query}");
        }
        // each claim names the rule that added it
        let mut body = everybody.clone();
        body["claims"] = json!([]);
        let response = world.admin.post(&format!("{BASE}/ClaimRule/evaluate"), body).await.is(200).json();
        for claim in response["claims"].as_array().unwrap() {
            let rule = rules.iter().find(|rule| rule["name"] == claim["value"]).unwrap();
            assert_eq!(claim["rules"], json!([rule["id"]]), "{claim}");
        }
        // switching a rule off has an immediate effect
        let mut switched = rules[1].clone();
        for (is_active, expected) in [(false, "app app-store subscription"), (true, "app app-store subscription tenant")] {
            let patch = json!({ "isActive": is_active, "concurrencyToken": switched["concurrencyToken"] });
            switched = world.admin.patch(&one("ClaimRule", &switched), patch).await.is(202).json();
            assert_eq!(added_by_rules(&world.admin, &everybody).await, expected);
        }
        // a TenantAdmin can query the tenant's objects, and sees every rule in force there
        assert_eq!(added_by_rules(&low, &everybody).await, "app app-store subscription tenant");
        for (member, foreign) in [("tenantId", sales), ("clientAppId", &other), ("idpInstanceId", &branch), ("tenantId", &beyond)] {
            let body = json!({ "claims": [], member: foreign["id"] });
            let problem = low.post(&format!("{BASE}/ClaimRule/evaluate"), body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [format!("/{member}")]);
        }
    }
}
