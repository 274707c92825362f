//! The audit trail of the configuration; creation and deletion of options.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, one};
use crate::{each, id, pointers};

on_both_engines! {
    async fn configuration_changes_are_audited(world: World) {
        let reader = world.client("reader", &[("AuditTrailReader", None, None)]).await;
        let created = world.make("Customer", json!({ "name": "Acme" })).await;
        let app = world.make("ClientApp", json!({ "name": "shop" })).await;
        let rule = world.make("ClaimRule", json!({ "name": "r", "ruleType": "Filter", "ruleLevel": "ClientApp", "clientApps": [{ "id": app["id"] }] })).await;
        let trail = format!("{BASE}/CustomAuditTrail");
        let newest = reader.get(&format!("{trail}?sortOrder=descending&count=4")).await.is(200).json();
        assert_eq!(each(&newest, "area"), ["ClaimRule", "ClaimRule", "ClientApp", "Customer"]);
        assert_eq!(each(&newest, "action"), ["Modified", "Added", "Added", "Added"]);
        assert_eq!((&newest[0]["primaryKey"], &newest[3]["primaryKey"]), (&rule["id"], &created["id"]));
        assert!(newest[0]["currentContent"].as_str().unwrap().contains(id(&app)), "{}", newest[0]);
        assert_eq!(newest[3]["dataSource"], "management");
        let entry = newest[3]["id"].clone();
        assert_eq!(reader.get(&format!("{trail}/{entry}")).await.is(200).json(), newest[3]);
        world.admin.get(&trail).await.expect(200);
        let near = world.client("near", &[("CustomerAdmin", None, None)]).await;
        near.get(&trail).await.problem(403, "forbidden");
        reader.get(&format!("{BASE}/Customer")).await.problem(403, "forbidden");
        // entries of a user store are in its own trail
        world.user("ada").await;
        let newest = reader.get(&format!("{trail}?sortOrder=descending&count=1")).await.is(200).json();
        assert_ne!(newest[0]["area"], "User");
    }

    async fn options_are_created_and_deleted(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let path = format!("{BASE}/Option");
        let lifetime = low.get(&format!("{path}?filter=name%20eq%20%22AccessTokenLifetime%22")).await.is(200).json()[0].clone();
        let body = json!({ "name": "AccessTokenLifetime", "value": "00:30:00", "applyToTenantId": tenant["id"] });
        assert_eq!(pointers(&low.post(&path, body.clone()).await.problem(409, "conflict")), ["/name"]);
        low.delete(&one("Option", &lifetime)).await.expect(204);
        let created = low.post(&path, body).await.is(201).json();
        assert_eq!((&created["dataType"], &created["editorType"]), (&json!("TimeSpan"), &json!("Duration")));
        let own = json!({ "name": "OurOwn", "applyToTenantId": tenant["id"] });
        assert_eq!(pointers(&low.post(&path, own).await.problem(400, "invalid-request")), ["/name"]);
        assert_eq!(pointers(&low.post(&path, json!({ "name": "x" })).await.problem(400, "invalid-request")), ["/applyToIdpInstanceId"]);
        // options of an assigned instance can be read, not set
        let store = world.all("IdpInstance").await[0].clone();
        let option_of_instance = json!({ "name": "ClaimIssuer", "applyToIdpInstanceId": store["id"] });
        assert_eq!(pointers(&low.post(&path, option_of_instance).await.problem(400, "invalid-request")), ["/applyToIdpInstanceId"]);
        let length = low.get(&format!("{path}?filter=name%20eq%20%22PasswordMinLength%22")).await.is(200).json()[0].clone();
        let patch = json!({ "value": "1", "concurrencyToken": length["concurrencyToken"] });
        low.patch(&one("Option", &length), patch).await.problem(404, "not-found");
        let terms = low.get(&format!("{path}?filter=name%20eq%20%22TermsVersion%22")).await.is(200).json()[0].clone();
        low.delete(&one("Option", &terms)).await.expect(204);
        let issuer = world.admin.get(&format!("{path}?filter=name%20eq%20%22ClaimIssuer%22")).await.is(200).json()[0].clone();
        world.admin.delete(&one("Option", &issuer)).await.expect(204);
        let batch = json!([{ "name": "TermsVersion", "applyToTenantId": tenant["id"] }, { "name": "ClaimIssuer", "applyToIdpInstanceId": store["id"] }]);
        let batch = world.admin.post(&format!("{path}/batch"), batch).await.is(200).json();
        world.admin.delete_with(&format!("{path}/batch"), json!(each(&batch, "id"))).await.expect(204);
    }
}
