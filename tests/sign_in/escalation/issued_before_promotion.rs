//! Credentials that a lower administrator issued before a promotion are invalid after it.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{assign_role, default_store, person, store_admin};
use crate::{
    id,
    instance::create_instance,
    signing::{mails, set_mail_server},
};

const BASE: &str = "/api/management/v2";
const NEW: &str = "six noisy red foxes";

async fn promote(world: &World, user: &Value) -> Value {
    world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
    let filter = format!("ApplicationUser?filter=identities.subject%20eq%20%22{}%22", id(user));
    let platform = world.all(&filter).await[0].clone();
    assign_role(world, "PlatformUser", &platform, "SystemAdmin", json!({})).await;
    platform
}

/// Requests a reset link as this caller; the token of the mailed link.
async fn request_link(world: &World, client: &Client, user: &Value) -> String {
    let path = world.path(&format!("/User/{}/password/reset/request", id(user)));
    client.send(http::Method::POST, &path, &[], Vec::new()).await.expect(200);
    mails(world).await.pop().unwrap()["token"].as_str().unwrap().to_owned()
}

/// Sets a password by a token, as the user; the status.
async fn redeem_link(world: &World, name: &str, token: &str) -> u16 {
    let path = world
        .path("")
        .replace("/administration", &format!("/PublicAdmin/user/loginname/{name}/password/reset/response"));
    world.anonymous.post(&path, json!({ "token": token, "newPassword": NEW })).await.status.as_u16()
}

async fn create_pass(world: &World, client: &Client, user: &Value) -> Value {
    let passes = world.path("/passkey-security/temporary-access-passes");
    client.post(&passes, json!({ "userId": user["id"] })).await.is(201).json()["value"].clone()
}

async fn redeem_pass(world: &World, name: &str, value: &Value) -> u16 {
    let redemption = world.path("/passkey-security/temporary-access-passes/redemption");
    world.admin.post(&redemption, json!({ "loginName": name, "value": value })).await.status.as_u16()
}

on_both_engines! {
    /// A link requested by an administrator is valid for an ordinary user, not for one with roles beyond the administrator's.
    async fn a_reset_link_is_rechecked_at_redemption(world: World) {
        set_mail_server(&world.admin).await;
        let store_admin = store_admin(&world).await;
        let (ada, bob) = (person(&world, "ada", None).await, person(&world, "bob", None).await);
        let (issued_before, for_bob) = (request_link(&world, &store_admin, &ada).await, request_link(&world, &store_admin, &bob).await);
        promote(&world, &ada).await;
        assert_eq!(redeem_link(&world, "ada", &issued_before).await, 400);
        assert_eq!(redeem_link(&world, "bob", &for_bob).await, 200);
        let own = request_link(&world, &world.admin, &ada).await;
        assert_eq!(redeem_link(&world, "ada", &own).await, 200);
    }

    async fn an_access_pass_is_rechecked_at_redemption(world: World) {
        world.set_option("TemporaryAccessPassEnabled", "true").await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let store_admin = store_admin(&world).await;
        let (ada, bob) = (person(&world, "ada", None).await, person(&world, "bob", None).await);
        let (issued_before, for_bob) = (create_pass(&world, &store_admin, &ada).await, create_pass(&world, &store_admin, &bob).await);
        promote(&world, &ada).await;
        assert_eq!(redeem_pass(&world, "ada", &issued_before).await, 400);
        assert_eq!(redeem_pass(&world, "bob", &for_bob).await, 200);
        let good = create_pass(&world, &world.admin, &ada).await;
        assert_eq!(redeem_pass(&world, "ada", &good).await, 200);
    }

    /// A recovery that two lower administrators approved is not completed for a user with higher roles by now.
    async fn a_recovery_is_rechecked_at_completion(world: World) {
        let first = store_admin(&world).await;
        let store = default_store(&world).await;
        let second = world.client("second", &[("UserStoreAdmin", None, Some(id(&store).parse().unwrap()))]).await;
        let recoveries = world.path("/passkey-security/recovery-transactions");
        let mut recoveries_by_user = Vec::new();
        for name in ["ada", "bob"] {
            let user = person(&world, name, None).await;
            let body = json!({ "userId": user["id"], "method": "IdentityDocument", "reason": "lost" });
            let created = first.post(&recoveries, body).await.is(201).json();
            let one = format!("{recoveries}/{}", id(&created));
            second.post(&format!("{one}/approvals"), json!({})).await.expect(200);
            recoveries_by_user.push((user, format!("{one}/completion")));
        }
        promote(&world, &recoveries_by_user[0].0).await;
        world.admin.post(&recoveries_by_user[0].1, json!({})).await.expect(403);
        world.admin.post(&recoveries_by_user[1].1, json!({})).await.expect(200);
    }

    /// The same applies to an identity replacement, whoever executes it.
    async fn an_identity_replacement_is_rechecked_at_execution(world: World) {
        let instance = create_instance(&world, "partner", "OpenIdConnect").await;
        let requester = world.client("asks", &[("SubscriptionAdmin", None, None)]).await;
        let approver = world.client("approves", &[("SubscriptionAdmin", None, None)]).await;
        let ada = person(&world, "ada", None).await;
        let filter = format!("ApplicationUser?filter=identities.subject%20eq%20%22{}%22", id(&ada));
        let platform = world.all(&filter).await[0].clone();
        let body = json!({
            "platformUserId": platform["id"], "replacementIdpInstanceId": instance["id"],
            "replacementUniqueUserId": "eve", "reason": "moved", "requiredApprovals": 1,
        });
        let created = requester.post(&format!("{BASE}/identity-replacements"), body).await.is(201).json();
        let one = format!("{BASE}/identity-replacements/{}", id(&created));
        approver.post(&format!("{one}/approvals"), json!(null)).await.expect(200);
        promote(&world, &ada).await;
        let problem = world.admin.post(&format!("{one}/execute"), json!(null)).await.problem(403, "forbidden");
        assert_eq!((&problem["role"], &problem["id"]), (&json!("SystemAdmin"), &platform["id"]));
        world.admin.post(&format!("{one}/cancel"), json!(null)).await.expect(200);
    }
}
