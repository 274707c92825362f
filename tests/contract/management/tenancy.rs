//! Customers, subscriptions and tenants, and the roles that follow them.

use chancery_record::Value as Bound;
use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, one, related, type_id};
use crate::{each, id, pointers};

/// Links a tenant with an instance of another subscription, which the API refuses by now.
const LINKED: &str = "INSERT INTO tenant_idp_instance (tenant_rid, idp_instance_rid) \
    SELECT t.rid, i.rid FROM tenant t CROSS JOIN idp_instance i WHERE t.id = ?1 AND i.id = ?2";

/// A second customer with a subscription, a tenant, a user store and a client app in it.
struct OtherCustomer {
    tenant: Value,
    store: Value,
    app: Value,
}

async fn create_other_customer(world: &World) -> OtherCustomer {
    let subscription = world.other_subscription("Far").await;
    let kind = type_id(world, "UserStore").await;
    OtherCustomer {
        tenant: world.make("Tenant", json!({ "name": "Far", "subscriptionId": subscription })).await,
        store: world
            .make("IdpInstance", json!({ "name": "far", "idpTypeId": kind, "subscriptionId": subscription }))
            .await,
        app: world.make("ClientApp", json!({ "name": "Far", "subscriptionId": subscription })).await,
    }
}

async fn default_of(client: &Client, resource: &str) -> Value {
    let all = client.get(&format!("{BASE}/{resource}")).await.is(200).json();
    all.as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"].as_str().unwrap().eq_ignore_ascii_case("default"))
        .unwrap()
        .clone()
}

on_both_engines! {
    async fn a_tenant_has_its_options(world: World) {
        let subscription = default_of(&world.admin, "Subscription").await;
        let created = world.make("Tenant", json!({ "name": "Sales", "subscriptionId": subscription["id"] })).await;
        assert_eq!((&created["isActive"], &created["idpInstances"]), (&json!(true), &json!([])));
        let options = world.all(&format!("Option?filter=applyToTenantId%20eq%20%22{}%22", id(&created))).await;
        assert_eq!(options.as_array().unwrap().len(), 26);
        let taken = world.admin.post(&format!("{BASE}/Tenant"), json!({ "name": "sales", "subscriptionId": subscription["id"] })).await;
        assert_eq!(pointers(&taken.problem(409, "conflict")), ["/name"]);
        world.admin.delete(&one("Tenant", &created)).await.expect(204);
        world.admin.get(&one("Tenant", &created)).await.expect(404);
        let left = world.all(&format!("Option?filter=applyToTenantId%20eq%20%22{}%22", id(&created))).await;
        assert_eq!(left, json!([]), "what is the tenant's own goes with it");
    }

    /// A parent with children cannot be deleted; the error names the child.
    async fn a_parent_with_children_cannot_be_deleted(world: World) {
        let subscription = world.other_subscription("Far").await;
        let tenant = world.make("Tenant", json!({ "name": "Far", "subscriptionId": subscription })).await;
        let app = world.make("ClientApp", json!({ "name": "far", "subscriptionId": subscription })).await;
        let assets = |level: &str, id: &str| json!({
            "location": format!("/views/{level}/{id}/SignIn"), "content": "<p>here</p>",
        });
        world.user("ada").await;
        world.admin.send(http::Method::POST, &world.path("/User/synchronize"), &[], Vec::new()).await.expect(200);
        let user = world.all("ApplicationUser").await[0]["id"].clone();
        let role = |role: &str, member: &str, target: &Value| json!({
            "principalType": "PlatformUser", "principalId": user, "roleType": role, member: target,
        });
        let range = json!({ "lower": "10.0.0.1", "upper": "10.0.0.9", "tenantId": tenant["id"] });
        let item = json!({ "tenantId": tenant["id"], "key": "shoe", "label": "Shoe size", "position": 1 });
        let customer = world.admin.get(&format!("{BASE}/Subscription/{}", subscription.as_str().unwrap())).await.is(200).json()["customerId"].clone();
        for (parent, resource, body, what) in [
            (one("Tenant", &tenant), "IpAddressRange", range, "address range"),
            (one("Tenant", &tenant), "UserQuestionnaireItem", item, "questionnaire item"),
            (one("Tenant", &tenant), "RoleAssignment", role("TenantAdmin", "applyToTenantId", &tenant["id"]), "role assignment"),
            (one("Tenant", &tenant), "CustomView", assets("tenant", id(&tenant)), "view"),
            (one("ClientApp", &app), "CustomView", assets("clientapp", id(&app)), "view"),
            (format!("{BASE}/Customer/{}", customer.as_str().unwrap()), "RoleAssignment", role("CustomerAdmin", "applyToCustomerId", &customer), "role assignment"),
        ] {
            let created = world.make(resource, body).await;
            let problem = world.admin.delete(&parent).await.problem(409, "conflict");
            assert!(problem["detail"].as_str().unwrap().contains(what), "{problem}");
            let path = match created["location"].as_str() {
                Some(location) => format!("{BASE}/{resource}/{}", crate::encode(location)),
                None => one(resource, &created),
            };
            world.admin.delete(&path).await.expect(204);
        }
        world.admin.delete(&one("ClientApp", &app)).await.expect(204);
        world.admin.delete(&one("Tenant", &tenant)).await.expect(204);
    }

    /// Names are unique within their subscription, also in a batch.
    async fn names_are_unique_within_their_subscription(world: World) {
        let near = default_of(&world.admin, "Subscription").await["id"].clone();
        let far = world.other_subscription("Far").await;
        let batch = json!([{ "name": "T", "subscriptionId": near }, { "name": "T", "subscriptionId": far }]);
        world.admin.post(&format!("{BASE}/Tenant/batch"), batch.clone()).await.expect(200);
        let again = json!([{ "name": "U", "subscriptionId": near }, { "name": "t", "subscriptionId": far }]);
        let problem = world.admin.post(&format!("{BASE}/Tenant/batch"), again).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/1/name"]);
        let twice = json!([{ "name": "V", "subscriptionId": near }, { "name": "v", "subscriptionId": near }]);
        let problem = world.admin.post(&format!("{BASE}/Tenant/batch"), twice).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/1/name"]);
    }

    /// A TenantAdmin sees only objects that the tenant owns or is assigned, at every depth.
    async fn tenant_admin_sees_only_the_tenant_s_objects(world: World) {
        let far = create_other_customer(&world).await;
        let tenant = default_of(&world.admin, "Tenant").await;
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        assert_eq!(each(&low.get(&format!("{BASE}/Tenant")).await.is(200).json(), "name"), ["Default"]);
        assert_eq!(each(&low.get(&format!("{BASE}/IdpInstance")).await.is(200).json(), "name"), ["default"]);
        assert_eq!(each(&low.get(&format!("{BASE}/ClientApp")).await.is(200).json(), "name"), ["console"]);
        for (resource, item) in [("Tenant", &far.tenant), ("IdpInstance", &far.store), ("ClientApp", &far.app)] {
            low.get(&one(resource, item)).await.problem(404, "not-found");
        }
        // objects that are only assigned cannot be changed
        let store = default_of(&low, "IdpInstance").await;
        low.delete(&one("IdpInstance", &store)).await.problem(403, "forbidden");
        // an instance assigned to both tenants, as older releases allowed, is visible, the other tenant is not
        world.sql(vec![(LINKED, [&far.tenant, &store].map(|one| Bound::Id(id(one).parse().unwrap())).to_vec())]).await;
        let seen = low.get(&one("IdpInstance", &store)).await.is(200).json();
        assert_eq!(each(&seen["tenants"], "name"), ["Default"]);
        let all = world.admin.get(&one("IdpInstance", &store)).await.is(200).json();
        assert_eq!(each(&all["tenants"], "name"), ["Default", "Far"]);
        // secrets are shown to callers with write access
        world.set_option("MailServerConfig", "{\"Host\":\"mail.example.com\"}").await;
        let filter = "Option?filter=name%20eq%20%22MailServerConfig%22";
        let options = low.get(&format!("{BASE}/{filter}")).await.is(200).json();
        assert_eq!(options[0]["value"], json!(null));
        let shown = world.admin.get(&one("IdpInstance", &store)).await.is(200).json();
        let nested = shown["options"].as_array().unwrap().iter().find(|one| one["name"] == "MailServerConfig").unwrap();
        assert_eq!(nested["value"], json!(null), "never nested");
    }

    /// One foreign id refuses the whole call, and a foreign link is neither shown nor removed.
    async fn relations_stay_within_the_scope(world: World) {
        let far = create_other_customer(&world).await;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let store = default_of(&near, "IdpInstance").await;
        let tenant = default_of(&near, "Tenant").await;
        let path = format!("{}/tenants", one("IdpInstance", &store));
        for method in [http::Method::PUT, http::Method::POST, http::Method::DELETE] {
            let body = related(&[&tenant, &far.tenant]).to_string().into_bytes();
            let answer = near.send(method, &path, &[("content-type", "application/json")], body).await;
            assert_eq!(pointers(&answer.problem(400, "invalid-request")), ["/relatedIds/1"]);
        }
        world.sql(vec![(LINKED, [&far.tenant, &store].map(|one| Bound::Id(id(one).parse().unwrap())).to_vec())]).await;
        let set = near.put(&path, json!({ "relatedIds": [] })).await.is(202).json();
        assert_eq!(set["tenants"], json!([]));
        let all = world.admin.get(&one("IdpInstance", &store)).await.is(200).json();
        assert_eq!(each(&all["tenants"], "name"), ["Far"], "what it did not see it did not remove");
        near.put(&one("IdpInstance", &far.store), json!({ "name": "mine", "concurrencyToken": "t" })).await.problem(404, "not-found");
        let body = json!({ "name": "x", "subscriptionId": far.app["subscriptionId"] });
        assert_eq!(pointers(&near.post(&format!("{BASE}/ClientApp"), body).await.problem(400, "invalid-request")), ["/subscriptionId"]);
    }

    /// A body without subscriptionId uses Default while that is the only one in the scope.
    async fn the_only_subscription_is_the_default(world: World) {
        let created = world.make("ClientApp", json!({ "name": "one" })).await;
        assert_eq!(created["subscriptionId"], default_of(&world.admin, "Subscription").await["id"]);
        world.other_subscription("Far").await;
        let problem = world.admin.post(&format!("{BASE}/ClientApp"), json!({ "name": "two" })).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/subscriptionId"]);
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        near.post(&format!("{BASE}/ClientApp"), json!({ "name": "two" })).await.expect(201);
    }

    async fn an_address_range_is_validated(world: World) {
        let tenant = default_of(&world.admin, "Tenant").await;
        let range = |lower: &str, upper: &str| json!({ "lower": lower, "upper": upper, "tenantId": tenant["id"] });
        let created = world.make("IpAddressRange", range("2001:0db8::0001", "2001:db8::ff")).await;
        assert_eq!((&created["lower"], &created["upper"]), (&json!("2001:db8::1"), &json!("2001:db8::ff")));
        for (lower, upper, at) in [("10.0.0.2", "10.0.0.1", "/upper"), ("10.0.0.1", "::1", "/upper"), ("here", "10.0.0.1", "/lower")] {
            let problem = world.admin.post(&format!("{BASE}/IpAddressRange"), range(lower, upper)).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [at]);
        }
    }

    async fn questionnaire_items_are_validated(world: World) {
        let tenant = default_of(&world.admin, "Tenant").await;
        let store = world.all("IdpInstance?filter=name%20eq%20%22default%22").await[0].clone();
        let roles = [
            ("TenantAdmin", Some(id(&tenant).parse().unwrap()), None),
            ("UserStoreAdmin", None, Some(id(&store).parse().unwrap())),
        ];
        let low = world.client("low", &roles).await;
        let path = format!("{BASE}/UserQuestionnaireItem");
        let item = |key: &str, more: Value| {
            let mut body = json!({ "tenantId": tenant["id"], "key": key, "label": "What?" });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let created = low.post(&path, item("phone", json!({ "validationFormat": "phonee164", "minLength": 3, "maxLength": 3 }))).await.is(201).json();
        assert_eq!((&created["isRequired"], &created["validationFormat"]), (&json!(true), &json!("PhoneE164")));
        for (more, at) in [
            (json!({ "minLength": 4, "maxLength": 3 }), "/minLength"),
            (json!({ "validationFormat": "Regex" }), "/validationPattern"),
            (json!({ "validationFormat": "Regex", "validationPattern": "(" }), "/validationPattern"),
        ] {
            assert_eq!(pointers(&low.post(&path, item("x", more)).await.problem(400, "invalid-request")), [at]);
        }
        // a pattern is ignored for other formats
        low.post(&path, item("y", json!({ "validationPattern": "(" }))).await.expect(201);
        assert_eq!(pointers(&low.post(&path, item("phone", json!({}))).await.problem(409, "conflict")), ["/key"]);
    }
}
