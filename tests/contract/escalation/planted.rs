//! What somebody planted before a promotion does not work after it.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{assign, default_store, helper, person};
use crate::{
    id,
    management::instance::make,
    signing::{mails, set_mail_server},
};

const BASE: &str = "/api/management/v2";
const NEW: &str = "six noisy red foxes";

async fn promote(world: &World, user: &Value) -> Value {
    world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
    let filter = format!("ApplicationUser?filter=identities.subject%20eq%20%22{}%22", id(user));
    let platform = world.all(&filter).await[0].clone();
    assign(world, "PlatformUser", &platform, ("SystemAdmin", json!({}))).await;
    platform
}

/// The token of the last link that was mailed, which this caller asks for.
async fn link(world: &World, client: &Client, user: &Value) -> String {
    let path = world.path(&format!("/User/{}/password/reset/request", id(user)));
    client.send(http::Method::POST, &path, &[], Vec::new()).await.expect(200);
    mails(world).await.pop().unwrap()["token"].as_str().unwrap().to_owned()
}

/// Sets a password by a token, as its user.
async fn use_link(world: &World, name: &str, token: &str) -> u16 {
    let path = world
        .path("")
        .replace("/administration", &format!("/PublicAdmin/user/loginname/{name}/password/reset/response"));
    world.anonymous.post(&path, json!({ "token": token, "newPassword": NEW })).await.status.as_u16()
}

async fn pass(world: &World, client: &Client, user: &Value) -> Value {
    let passes = world.path("/passkey-security/temporary-access-passes");
    client.post(&passes, json!({ "userId": user["id"] })).await.is(201).json()["value"].clone()
}

async fn use_pass(world: &World, name: &str, value: &Value) -> u16 {
    let redemption = world.path("/passkey-security/temporary-access-passes/redemption");
    world.admin.post(&redemption, json!({ "loginName": name, "value": value })).await.status.as_u16()
}

on_both_engines! {
    /// A link that another asked for serves an ordinary user, and not one who carries more than the other holds.
    async fn a_reset_link_is_judged_again_when_it_is_used(world: World) {
        set_mail_server(&world.admin).await;
        let helper = helper(&world).await;
        let (ada, bob) = (person(&world, "ada", None).await, person(&world, "bob", None).await);
        let (planted, ordinary) = (link(&world, &helper, &ada).await, link(&world, &helper, &bob).await);
        promote(&world, &ada).await;
        assert_eq!(use_link(&world, "ada", &planted).await, 400);
        assert_eq!(use_link(&world, "bob", &ordinary).await, 200);
        let own = link(&world, &world.admin, &ada).await;
        assert_eq!(use_link(&world, "ada", &own).await, 200);
    }

    async fn an_access_pass_is_judged_again_when_it_is_used(world: World) {
        world.set_option("TemporaryAccessPassEnabled", "true").await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let helper = helper(&world).await;
        let (ada, bob) = (person(&world, "ada", None).await, person(&world, "bob", None).await);
        let (planted, ordinary) = (pass(&world, &helper, &ada).await, pass(&world, &helper, &bob).await);
        promote(&world, &ada).await;
        assert_eq!(use_pass(&world, "ada", &planted).await, 400);
        assert_eq!(use_pass(&world, "bob", &ordinary).await, 200);
        let good = pass(&world, &world.admin, &ada).await;
        assert_eq!(use_pass(&world, "ada", &good).await, 200);
    }

    /// A recovery that two lower administrators agreed on is not completed for who carries more by now.
    async fn a_recovery_is_judged_again_when_it_is_completed(world: World) {
        let first = helper(&world).await;
        let store = default_store(&world).await;
        let second = world.client("second", &[("UserStoreAdmin", None, Some(id(&store).parse().unwrap()))]).await;
        let recoveries = world.path("/passkey-security/recovery-transactions");
        let mut asked = Vec::new();
        for name in ["ada", "bob"] {
            let user = person(&world, name, None).await;
            let body = json!({ "userId": user["id"], "method": "IdentityDocument", "reason": "lost" });
            let made = first.post(&recoveries, body).await.is(201).json();
            let one = format!("{recoveries}/{}", id(&made));
            second.post(&format!("{one}/approvals"), json!({})).await.expect(200);
            asked.push((user, format!("{one}/completion")));
        }
        promote(&world, &asked[0].0).await;
        world.admin.post(&asked[0].1, json!({})).await.expect(403);
        world.admin.post(&asked[1].1, json!({})).await.expect(200);
    }

    /// So is an identity replacement, whoever executes it.
    async fn an_identity_replacement_is_judged_again_when_it_is_executed(world: World) {
        let instance = make(&world, "partner", "OpenIdConnect").await;
        let asks = world.client("asks", &[("SubscriptionAdmin", None, None)]).await;
        let approves = world.client("approves", &[("SubscriptionAdmin", None, None)]).await;
        let ada = person(&world, "ada", None).await;
        let filter = format!("ApplicationUser?filter=identities.subject%20eq%20%22{}%22", id(&ada));
        let platform = world.all(&filter).await[0].clone();
        let body = json!({
            "platformUserId": platform["id"], "replacementIdpInstanceId": instance["id"],
            "replacementUniqueUserId": "eve", "reason": "moved", "requiredApprovals": 1,
        });
        let made = asks.post(&format!("{BASE}/identity-replacements"), body).await.is(201).json();
        let one = format!("{BASE}/identity-replacements/{}", id(&made));
        approves.post(&format!("{one}/approvals"), json!(null)).await.expect(200);
        promote(&world, &ada).await;
        let problem = world.admin.post(&format!("{one}/execute"), json!(null)).await.problem(403, "forbidden");
        assert_eq!((&problem["role"], &problem["id"]), (&json!("SystemAdmin"), &platform["id"]));
        world.admin.post(&format!("{one}/cancel"), json!(null)).await.expect(200);
    }
}
