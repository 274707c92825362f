//! The cache of client apps, and its invalidation.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{app, configure, request_token, secret, token};
use crate::id;

on_both_engines! {
    /// A cached client app is invalidated when any part of it changes.
    async fn a_changed_client_app_is_read_again(world: World) {
        let own = app(&world, "own", json!({})).await;
        let (first, second) = (secret(&world, &own).await, secret(&world, &own).await);
        for value in [&first, &second, &first] {
            request_token(&world, &own, value, &[]).await.expect(200);
        }
        let secrets = world.all(&format!("ClientAppSecret/clientapp/{}", id(&own))).await;
        world.admin.delete(&format!("/api/management/v2/ClientAppSecret/{}", id(&secrets[0]))).await.expect(204);
        let statuses = [request_token(&world, &own, &first, &[]).await.status, request_token(&world, &own, &second, &[]).await.status];
        assert!(statuses == [200, 401] || statuses == [401, 200], "{statuses:?}");
        let value = if statuses[0] == 200 { &first } else { &second };
        configure(&world, &own, "client_secret_basic", json!({})).await;
        request_token(&world, &own, value, &[]).await.expect(401);
    }

    /// A client app that is removed from its last active tenant is rejected at once, with its token and without.
    async fn a_client_app_without_an_active_tenant_is_rejected_at_once(world: World) {
        let own = app(&world, "own", json!({})).await;
        let value = secret(&world, &own).await;
        let subscription = &own["subscriptionId"];
        world.make("ClientAppRole", json!({ "clientAppId": own["id"], "roleType": "AuditTrailReader" })).await;
        let tenant = |name: &'static str, active: bool| {
            json!({ "name": name, "subscriptionId": subscription, "isActive": active })
        };
        let (open, closed) = (world.make("Tenant", tenant("open", true)).await, world.make("Tenant", tenant("closed", false)).await);
        let apps = |tenant: &serde_json::Value| format!("/api/management/v2/Tenant/{}/clientapps", id(tenant));
        for one in [&open, &closed] {
            world.admin.put(&apps(one), json!({ "relatedIds": [own["id"]] })).await.expect(202);
        }
        let granted = request_token(&world, &own, &value, &[]).await.is(200);
        let caller = world.anonymous.with_token(&token(&granted));
        caller.get("/api/management/v2/CustomAuditTrail?count=1").await.expect(200);
        world.admin.put(&apps(&open), json!({ "relatedIds": [] })).await.expect(202);
        caller.get("/api/management/v2/CustomAuditTrail?count=1").await.expect(401);
        request_token(&world, &own, &value, &[]).await.expect(401);
    }
}
