//! What is remembered of client apps, and when it counts no more.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{app, ask, configure, secret, token};
use crate::id;

on_both_engines! {
    /// What was remembered of a client app counts no more when anything of it changed.
    async fn a_client_app_that_changed_is_read_again(world: World) {
        let own = app(&world, "own", json!({})).await;
        let (first, second) = (secret(&world, &own).await, secret(&world, &own).await);
        for value in [&first, &second, &first] {
            ask(&world, &own, value, &[]).await.expect(200);
        }
        let secrets = world.all(&format!("ClientAppSecret/clientapp/{}", id(&own))).await;
        world.admin.delete(&format!("/api/management/v2/ClientAppSecret/{}", id(&secrets[0]))).await.expect(204);
        let left = [ask(&world, &own, &first, &[]).await.status, ask(&world, &own, &second, &[]).await.status];
        assert!(left == [200, 401] || left == [401, 200], "{left:?}");
        let value = if left[0] == 200 { &first } else { &second };
        configure(&world, &own, "client_secret_basic", json!({})).await;
        ask(&world, &own, value, &[]).await.expect(401);
    }

    /// A client app whose last active tenant lets it go is refused at once, with its token and without.
    async fn a_client_app_that_a_tenant_lets_go_is_refused_at_once(world: World) {
        let own = app(&world, "own", json!({})).await;
        let value = secret(&world, &own).await;
        let home = &own["subscriptionId"];
        world.make("ClientAppRole", json!({ "clientAppId": own["id"], "roleType": "AuditTrailReader" })).await;
        let tenant = |name: &'static str, active: bool| {
            json!({ "name": name, "subscriptionId": home, "isActive": active })
        };
        let (open, closed) = (world.make("Tenant", tenant("open", true)).await, world.make("Tenant", tenant("closed", false)).await);
        let apps = |tenant: &serde_json::Value| format!("/api/management/v2/Tenant/{}/clientapps", id(tenant));
        for one in [&open, &closed] {
            world.admin.put(&apps(one), json!({ "relatedIds": [own["id"]] })).await.expect(202);
        }
        let granted = ask(&world, &own, &value, &[]).await.is(200);
        let caller = world.anonymous.with_token(&token(&granted));
        caller.get("/api/management/v2/CustomAuditTrail?count=1").await.expect(200);
        world.admin.put(&apps(&open), json!({ "relatedIds": [] })).await.expect(202);
        caller.get("/api/management/v2/CustomAuditTrail?count=1").await.expect(401);
        ask(&world, &own, &value, &[]).await.expect(401);
    }
}
