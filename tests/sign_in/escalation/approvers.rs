//! An approver must be independent of the requester and of earlier approvers.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{PASSWORD, assign_role, group, person, platform_user, reviewed_now, settings::identify};
use crate::{
    id,
    instance::{create_instance, option},
    sign_in::{
        SignInApp,
        administrator::{console, token, token_of},
    },
};

const BASE: &str = "/api/management/v2";
const MANAGEMENT: &str = "PlatformManagementService";

async fn subscription(world: &World) -> Value {
    let all = world.all("Subscription").await;
    all.as_array().unwrap().iter().find(|one| one["name"] == "Default").unwrap()["id"].clone()
}

/// The body of an assignment that makes a user SubscriptionAdmin.
async fn subscription_admin_role(world: &World, person: &Value) -> Value {
    json!({
        "principalType": "PlatformUser", "principalId": person["id"], "roleType": "SubscriptionAdmin",
        "applyToSubscriptionId": subscription(world).await,
    })
}

async fn request_replacement(world: &World, client: &Client) -> String {
    let victim = platform_user(world, &person(world, "victim", None).await).await;
    let instance = create_instance(world, "partner", "OpenIdConnect").await;
    let body = json!({
        "platformUserId": victim["id"], "replacementIdpInstanceId": instance["id"],
        "replacementUniqueUserId": "eve", "reason": "moved", "requiredApprovals": 2,
    });
    let created = client.post(&format!("{BASE}/identity-replacements"), body).await.is(201).json();
    format!("{BASE}/identity-replacements/{}/approvals", id(&created))
}

/// Ann, an administrator with a role that this client granted, and her client.
async fn admin_with_role_from(world: &World, granter: &Client) -> (SignInApp, Client) {
    let home = console(world).await;
    let ann = platform_user(world, &home.user).await;
    granter
        .post(&format!("{BASE}/RoleAssignment"), subscription_admin_role(world, &ann).await)
        .await
        .expect(201);
    let (_, client, _) = token(world, &home, MANAGEMENT).await;
    (home, client)
}

on_both_engines! {
    /// A user whose role the requester granted cannot approve.
    async fn a_user_with_a_role_from_the_requester_cannot_approve(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let (_, ann) = admin_with_role_from(&world, &eve).await;
        let approvals = request_replacement(&world, &eve).await;
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
    }

    /// A user whose password the requester set is not independent, whoever granted the role.
    async fn a_user_whose_password_the_requester_set_cannot_approve(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let home = console(&world).await;
        let reset = world.path(&format!("/User/{}/password/reset", id(&home.user)));
        eve.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
        let person = platform_user(&world, &home.user).await;
        world.make("RoleAssignment", subscription_admin_role(&world, &person).await).await;
        let (_, ann, _) = token(&world, &home, MANAGEMENT).await;
        let approvals = request_replacement(&world, &eve).await;
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
    }

    /// Who set up a provider can sign in as its people, until a SystemAdmin confirms its settings.
    async fn a_person_of_a_provider_that_the_requester_set_up_cannot_approve(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let (home, ann) = admin_with_role_from(&world, &world.admin).await;
        let approvals = request_replacement(&world, &eve).await;
        let instance = create_instance(&world, "planted", "OpenIdConnect").await;
        let row = option(&world, &instance, "Authority").await;
        let body = json!({ "value": "https://login.eve.example", "concurrencyToken": row["concurrencyToken"] });
        eve.patch(&format!("{BASE}/Option/{}", id(&row)), body).await.expect(202);
        identify(&world, &platform_user(&world, &home.user).await, &instance, 1).await;
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
        let confirm = format!("{BASE}/IdpInstance/{}/settings/confirm", id(&instance));
        eve.post(&confirm, reviewed_now()).await.expect(204);
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
        world.admin.post(&confirm, reviewed_now()).await.expect(204);
        ann.post(&approvals, json!(null)).await.expect(200);
    }

    /// Adding a user to a group with a role grants the role.
    async fn a_user_with_a_group_role_from_the_requester_cannot_approve(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let group = group(&world, "admins", None).await;
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22admins%22").await[0].clone();
        let of = json!({ "applyToSubscriptionId": subscription(&world).await });
        assign_role(&world, "PlatformGroup", &platform, "SubscriptionAdmin", of).await;
        let home = console(&world).await;
        let members = world.path(&format!("/Group/{}/users", id(&group)));
        eve.post(&members, json!({ "relatedIds": [home.user["id"]] })).await.expect(202);
        platform_user(&world, &home.user).await;
        let (_, ann, _) = token(&world, &home, MANAGEMENT).await;
        let approvals = request_replacement(&world, &eve).await;
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
    }

    /// A membership without a role grants none.
    async fn a_membership_without_a_role_leaves_the_approver_independent(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let (admins, readers) = (group(&world, "admins", None).await, group(&world, "readers", None).await);
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22admins%22").await[0].clone();
        let of = json!({ "applyToSubscriptionId": subscription(&world).await });
        assign_role(&world, "PlatformGroup", &platform, "SubscriptionAdmin", of).await;
        let home = console(&world).await;
        for (client, group) in [(&world.admin, &admins), (&eve, &readers)] {
            let members = world.path(&format!("/Group/{}/users", id(group)));
            client.post(&members, json!({ "relatedIds": [home.user["id"]] })).await.expect(202);
        }
        platform_user(&world, &home.user).await;
        let (_, ann, _) = token(&world, &home, MANAGEMENT).await;
        let approvals = request_replacement(&world, &eve).await;
        ann.post(&approvals, json!(null)).await.expect(200);
    }

    /// Two approvers with the same controller count as one, unless it is a SystemAdmin; indirect control counts too.
    async fn approvers_with_the_same_controller_are_not_independent(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let (_, ann) = admin_with_role_from(&world, &eve).await;
        let subscription_id = subscription(&world).await;
        let tool = world.client_by(&eve, &subscription_id, "tool", &[("SubscriptionAdmin", None, None)]).await;
        let approvals = request_replacement(&world, &tool).await;
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
        eve.post(&approvals, json!(null)).await.problem(403, "forbidden");
        // a client made by a SystemAdmin only is independent of both
        let other = world.client("other", &[("SubscriptionAdmin", None, None)]).await;
        other.post(&approvals, json!(null)).await.expect(200);
    }

    /// Actions of a SystemAdmin count for seven days: it creates most objects, and could act as anybody.
    async fn actions_of_a_system_admin_count_for_seven_days(world: World) {
        let (_, ann) = admin_with_role_from(&world, &world.admin).await;
        let approvals = request_replacement(&world, &world.admin).await;
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
        world.sql(vec![("UPDATE audit_entry SET timestamp = 1", vec![])]).await;
        ann.post(&approvals, json!(null)).await.expect(200);
    }

    /// A directory that created both is no common controller when a SystemAdmin created its token.
    async fn users_of_one_directory_are_independent(world: World) {
        let home = console(&world).await;
        let created = world.admin.post(&world.path("/ScimToken"), json!({ "name": "hr", "reach": "All" })).await.is(201).json();
        let directory = world.admin.with_token(created["token"].as_str().unwrap());
        let users = "/api/scim/v2/default/Users";
        let bob = directory.post(users, json!({ "userName": "bob", "password": PASSWORD })).await.is(201).json();
        let change = json!({
            "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
            "Operations": [{ "op": "replace", "path": "userName", "value": "ann.archer" }],
        });
        directory.patch(&format!("{users}/{}", id(&home.user)), change).await.expect(200);
        let mut clients = Vec::new();
        for (user, name) in [(&home.user, "ann.archer"), (&bob, "bob")] {
            let person = platform_user(&world, user).await;
            world.make("RoleAssignment", subscription_admin_role(&world, &person).await).await;
            clients.push(token_of(&world, &home, name, MANAGEMENT).await.1);
        }
        let approvals = request_replacement(&world, &clients[1]).await;
        clients[0].post(&approvals, json!(null)).await.expect(200);
    }

    /// The same rule applies to the recovery of a user without any authenticator.
    async fn a_client_app_of_the_requester_cannot_approve_a_recovery(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let subscription_id = subscription(&world).await;
        let tool = world.client_by(&eve, &subscription_id, "tool", &[("SubscriptionAdmin", None, None)]).await;
        let other = world.client("other", &[("SubscriptionAdmin", None, None)]).await;
        let lost = person(&world, "lost", None).await;
        let recoveries = world.path("/passkey-security/recovery-transactions");
        let body = json!({ "userId": lost["id"], "method": "IdentityDocument", "reason": "lost" });
        let recovery = eve.post(&recoveries, body).await.is(201).json();
        let approvals = format!("{recoveries}/{}/approvals", id(&recovery));
        tool.post(&approvals, json!({})).await.problem(403, "forbidden");
        other.post(&approvals, json!({})).await.expect(200);
    }
}
