//! What a tenant's administrator says of the client apps that the tenant has, and which claim rules are in
//! force for whom.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, one, related, type_id};
use crate::{each, id, pointers};

/// What a tenant's administrator writes of a client app: the end of the path, and the member that shows it.
const RELATIONS: [(&str, &str); 3] = [
    ("authorizedusers", "authorizedPlatformUsers"),
    ("authorizedgroups", "authorizedPlatformGroups"),
    ("tenants", "tenants"),
];

/// Two tenants of a subscription, each with its own user store.
struct Ground {
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

async fn ground(world: &World) -> Ground {
    let (tenant, store) = (world.all("Tenant").await[0].clone(), world.all("IdpInstance").await[0].clone());
    let home = &tenant["subscriptionId"];
    let sales = world.make("Tenant", json!({ "name": "Sales", "subscriptionId": home })).await;
    let kind = type_id(world, "UserStore").await;
    let branch = json!({ "name": "branch", "idpTypeId": kind, "subscriptionId": home });
    let branch = world.make("IdpInstance", branch).await;
    for (instance, tenant) in [(&store, &tenant), (&branch, &sales)] {
        let relation = format!("{}/tenants", one("IdpInstance", instance));
        world.admin.put(&relation, related(&[tenant])).await.expect(202);
    }
    let [ada, readers] = people(world, "default", "ada").await;
    let [bob, sellers] = people(world, "branch", "bob").await;
    let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
    Ground { low, store, own: [ada, readers, tenant], branch, theirs: [bob, sellers, sales] }
}

/// A platform user and a platform group of a store.
async fn people(world: &World, store: &str, name: &str) -> [Value; 2] {
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

/// A client app that these tenants have.
async fn app_of(world: &World, name: &str, tenants: &[&Value]) -> Value {
    let home = world.all("Tenant?filter=name%20eq%20%22Default%22").await[0]["subscriptionId"].clone();
    let app = world.make("ClientApp", json!({ "name": name, "subscriptionId": home })).await;
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

/// A set of a client app as somebody sees it.
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

/// The names of the rules that are in force, in order of the alphabet.
async fn fired(caller: &Client, whom: &Value) -> String {
    let mut body = whom.clone();
    body["claims"] = json!([{ "type": "x", "value": "y" }]);
    let told = caller.post(&format!("{BASE}/ClaimRule/evaluate"), body).await.is(200).json();
    let claims = told["claims"].as_array().unwrap();
    assert!(claims.iter().any(|claim| claim["type"] == "x"), "rules that add take nothing away: {told}");
    let added = claims.iter().filter(|claim| claim["type"] == "fired");
    let mut names: Vec<&str> = added.map(|claim| claim["value"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.join(" ")
}

on_both_engines! {
    async fn a_tenant_s_admin_says_who_uses_what_the_tenant_has(world: World) {
        let Ground { low, own, .. } = ground(&world).await;
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

    async fn a_client_app_that_is_not_the_tenant_s_is_not_there(world: World) {
        let Ground { low, own, theirs, .. } = ground(&world).await;
        let (nobody_s, foreign) = (app_of(&world, "nobody's", &[]).await, app_of(&world, "foreign", &[&theirs[2]]).await);
        // what is stronger is seen, and not to be changed
        let root = world.all("ClientApp?filter=name%20eq%20%22root%22").await[0].clone();
        world.admin.put(&format!("{}/tenants", one("ClientApp", &root)), related(&[&own[2]])).await.expect(202);
        for (app, status) in [(&nobody_s, 404), (&foreign, 404), (&root, 200)] {
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

    async fn what_is_another_tenant_s_is_refused(world: World) {
        let Ground { low, own, theirs, .. } = ground(&world).await;
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

    async fn links_that_are_not_seen_stay(world: World) {
        let Ground { low, own, theirs, .. } = ground(&world).await;
        let app = app_of(&world, "shared", &[&own[2], &theirs[2]]).await;
        for ((path, member), (item, foreign)) in RELATIONS.into_iter().zip(own.iter().zip(&theirs)) {
            let relation = format!("{}/{path}", one("ClientApp", &app));
            world.admin.put(&relation, related(&[item, foreign])).await.expect(202);
            assert_eq!(ids_of(&set_of(&low, &app, member).await), [id(item)], "{path}");
            assert_eq!(ids_of(&low.put(&relation, related(&[item])).await.is(202).json()[member]), [id(item)], "{path}");
            assert_eq!(ids_of(&set_of(&world.admin, &app, member).await), sorted(&[item, foreign]), "{path}");
            // nor are they told by being taken out
            let refused = low.delete_with(&relation, related(&[foreign])).await.problem(400, "invalid-request");
            assert_eq!(pointers(&refused), ["/relatedIds/0"], "{path}");
            if member != "tenants" {
                assert_eq!(low.put(&relation, related(&[])).await.is(202).json()[member], json!([]), "{path}");
                assert_eq!(ids_of(&set_of(&world.admin, &app, member).await), [id(foreign)], "{path}");
            }
        }
    }

    async fn rules_are_in_force_for_whom_their_level_names(world: World) {
        let Ground { low, store, own, branch, theirs } = ground(&world).await;
        let (tenant, sales) = (&own[2], &theirs[2]);
        let home = &tenant["subscriptionId"];
        let (shop, other) = (app_of(&world, "shop", &[tenant]).await, app_of(&world, "other", &[]).await);
        let far = world.other_subscription("Far").await;
        let beyond = world.make("Tenant", json!({ "name": "Beyond", "subscriptionId": far })).await;
        let apps = |app: &Value| json!([{ "id": app["id"] }]);
        let mut rules = Vec::new();
        for (name, level, more) in [
            ("subscription", "Subscription", json!({ "subscriptionId": home })),
            ("tenant", "Tenant", json!({ "applyToTenantId": tenant["id"] })),
            ("sales", "Tenant", json!({ "applyToTenantId": sales["id"] })),
            ("app", "ClientApp", json!({ "subscriptionId": home, "clientApps": apps(&shop) })),
            ("other", "ClientApp", json!({ "subscriptionId": home, "clientApps": apps(&other) })),
            ("nobody-s", "ClientApp", json!({ "subscriptionId": home })),
            ("app-store", "ClientAppIdpInstance", json!({ "subscriptionId": home, "applyToIdpInstanceId": store["id"], "clientApps": apps(&shop) })),
            ("app-branch", "ClientAppIdpInstance", json!({ "subscriptionId": home, "applyToIdpInstanceId": branch["id"], "clientApps": apps(&shop) })),
            ("no-app-store", "ClientAppIdpInstance", json!({ "subscriptionId": home, "applyToIdpInstanceId": store["id"] })),
            ("far", "Subscription", json!({ "subscriptionId": far })),
            ("beyond", "Tenant", json!({ "applyToTenantId": beyond["id"] })),
        ] {
            rules.push(world.make("ClaimRule", rule(name, level, &more)).await);
            let mut off = rule(&format!("{name}-off"), level, &more);
            off["isActive"] = json!(false);
            world.make("ClaimRule", off).await;
        }
        let everybody = json!({ "tenantId": tenant["id"], "clientAppId": shop["id"], "idpInstanceId": store["id"] });
        for (whom, expected) in [
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
            assert_eq!(fired(&world.admin, &whom).await, expected, "{whom}");
        }
        // each claim tells the rule that added it
        let mut body = everybody.clone();
        body["claims"] = json!([]);
        let told = world.admin.post(&format!("{BASE}/ClaimRule/evaluate"), body).await.is(200).json();
        for claim in told["claims"].as_array().unwrap() {
            let rule = rules.iter().find(|rule| rule["name"] == claim["value"]).unwrap();
            assert_eq!(claim["rules"], json!([rule["id"]]), "{claim}");
        }
        // a rule that is switched off is so at once
        let mut switched = rules[1].clone();
        for (is_active, expected) in [(false, "app app-store subscription"), (true, "app app-store subscription tenant")] {
            let patch = json!({ "isActive": is_active, "concurrencyToken": switched["concurrencyToken"] });
            switched = world.admin.patch(&one("ClaimRule", &switched), patch).await.is(202).json();
            assert_eq!(fired(&world.admin, &everybody).await, expected);
        }
        // a tenant's administrator asks for what the tenant has, and is told all that is in force there
        assert_eq!(fired(&low, &everybody).await, "app app-store subscription tenant");
        for (member, foreign) in [("tenantId", sales), ("clientAppId", &other), ("idpInstanceId", &branch), ("tenantId", &beyond)] {
            let body = json!({ "claims": [], member: foreign["id"] });
            let problem = low.post(&format!("{BASE}/ClaimRule/evaluate"), body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [format!("/{member}")]);
        }
    }
}
