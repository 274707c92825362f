//! Who approves is independent of who asked, and of who approved before: nobody approves by people of their own.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{PASSWORD, assign, group, person, platform_user};
use crate::{
    id,
    management::instance::make,
    sign_in::{
        Home,
        administrator::{console, token, token_of},
    },
};

const BASE: &str = "/api/management/v2";
const MANAGEMENT: &str = "PlatformManagementService";

async fn subscription(world: &World) -> Value {
    let all = world.all("Subscription").await;
    all.as_array().unwrap().iter().find(|one| one["name"] == "Default").unwrap()["id"].clone()
}

/// What makes a person SubscriptionAdmin.
async fn role_of(world: &World, person: &Value) -> Value {
    json!({
        "principalType": "PlatformUser", "principalId": person["id"], "roleType": "SubscriptionAdmin",
        "applyToSubscriptionId": subscription(world).await,
    })
}

async fn ask(world: &World, client: &Client) -> String {
    let victim = platform_user(world, &person(world, "victim", None).await).await;
    let instance = make(world, "partner", "OpenIdConnect").await;
    let body = json!({
        "platformUserId": victim["id"], "replacementIdpInstanceId": instance["id"],
        "replacementUniqueUserId": "eve", "reason": "moved", "requiredApprovals": 2,
    });
    let made = client.post(&format!("{BASE}/identity-replacements"), body).await.is(201).json();
    format!("{BASE}/identity-replacements/{}/approvals", id(&made))
}

/// Ann, who administers by an app, with a role that this client gave.
async fn ann(world: &World, giver: &Client) -> (Home, Client) {
    let home = console(world).await;
    let ann = platform_user(world, &home.user).await;
    giver.post(&format!("{BASE}/RoleAssignment"), role_of(world, &ann).await).await.expect(201);
    let (_, client, _) = token(world, &home, MANAGEMENT).await;
    (home, client)
}

on_both_engines! {
    /// Whom somebody made, or gave a role, does not approve for that one.
    async fn nobody_approves_by_people_of_their_own(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let (_, ann) = ann(&world, &eve).await;
        let approvals = ask(&world, &eve).await;
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
    }

    /// Whose password somebody set is not independent of that one, whoever gave the role.
    async fn nobody_approves_by_people_whose_password_they_set(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let home = console(&world).await;
        let reset = world.path(&format!("/User/{}/password/reset", id(&home.user)));
        eve.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
        let person = platform_user(&world, &home.user).await;
        world.make("RoleAssignment", role_of(&world, &person).await).await;
        let (_, ann, _) = token(&world, &home, MANAGEMENT).await;
        let approvals = ask(&world, &eve).await;
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
    }

    /// Who gave a membership that carries a role gave the role.
    async fn nobody_approves_by_people_whom_they_put_into_a_group_with_a_role(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let group = group(&world, "admins", None).await;
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22admins%22").await[0].clone();
        let of = json!({ "applyToSubscriptionId": subscription(&world).await });
        assign(&world, "PlatformGroup", &platform, ("SubscriptionAdmin", of)).await;
        let home = console(&world).await;
        let members = world.path(&format!("/Group/{}/users", id(&group)));
        eve.post(&members, json!({ "relatedIds": [home.user["id"]] })).await.expect(202);
        platform_user(&world, &home.user).await;
        let (_, ann, _) = token(&world, &home, MANAGEMENT).await;
        let approvals = ask(&world, &eve).await;
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
    }

    /// A membership that carries no role gives none.
    async fn who_gave_a_membership_without_a_role_is_independent(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let (admins, readers) = (group(&world, "admins", None).await, group(&world, "readers", None).await);
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22admins%22").await[0].clone();
        let of = json!({ "applyToSubscriptionId": subscription(&world).await });
        assign(&world, "PlatformGroup", &platform, ("SubscriptionAdmin", of)).await;
        let home = console(&world).await;
        for (client, group) in [(&world.admin, &admins), (&eve, &readers)] {
            let members = world.path(&format!("/Group/{}/users", id(group)));
            client.post(&members, json!({ "relatedIds": [home.user["id"]] })).await.expect(202);
        }
        platform_user(&world, &home.user).await;
        let (_, ann, _) = token(&world, &home, MANAGEMENT).await;
        let approvals = ask(&world, &eve).await;
        ann.post(&approvals, json!(null)).await.expect(200);
    }

    /// Two whom the same third made are no two, unless that one administers everything; and through others is no other way.
    async fn two_of_one_maker_do_not_approve_for_each_other(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let (_, ann) = ann(&world, &eve).await;
        let home = subscription(&world).await;
        let tool = world.client_by(&eve, &home, "tool", &[("SubscriptionAdmin", None, None)]).await;
        let approvals = ask(&world, &tool).await;
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
        eve.post(&approvals, json!(null)).await.problem(403, "forbidden");
        // who was made by a SystemAdmin alone is independent of both
        let other = world.client("other", &[("SubscriptionAdmin", None, None)]).await;
        other.post(&approvals, json!(null)).await.expect(200);
    }

    /// What a SystemAdmin did counts for seven days: it made most, and could act as anybody.
    async fn what_a_system_admin_did_long_ago_does_not_count(world: World) {
        let (_, ann) = ann(&world, &world.admin).await;
        let approvals = ask(&world, &world.admin).await;
        ann.post(&approvals, json!(null)).await.problem(403, "forbidden");
        world.sql(vec![("UPDATE audit_entry SET timestamp = 1", vec![])]).await;
        ann.post(&approvals, json!(null)).await.expect(200);
    }

    /// A directory that made both is no third, while a SystemAdmin made its token.
    async fn people_of_one_directory_approve_for_each_other(world: World) {
        let home = console(&world).await;
        let made = world.admin.post(&world.path("/ScimToken"), json!({ "name": "hr", "reach": "All" })).await.is(201).json();
        let directory = world.admin.with_token(made["token"].as_str().unwrap());
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
            world.make("RoleAssignment", role_of(&world, &person).await).await;
            clients.push(token_of(&world, &home, name, MANAGEMENT).await.1);
        }
        let approvals = ask(&world, &clients[1]).await;
        clients[0].post(&approvals, json!(null)).await.expect(200);
    }

    /// The same holds for the recovery of a user who lost every authenticator.
    async fn nobody_approves_a_recovery_by_apps_of_their_own(world: World) {
        let eve = world.client("eve", &[("SubscriptionAdmin", None, None)]).await;
        let home = subscription(&world).await;
        let tool = world.client_by(&eve, &home, "tool", &[("SubscriptionAdmin", None, None)]).await;
        let other = world.client("other", &[("SubscriptionAdmin", None, None)]).await;
        let lost = person(&world, "lost", None).await;
        let recoveries = world.path("/passkey-security/recovery-transactions");
        let body = json!({ "userId": lost["id"], "method": "IdentityDocument", "reason": "lost" });
        let asked = eve.post(&recoveries, body).await.is(201).json();
        let approvals = format!("{recoveries}/{}/approvals", id(&asked));
        tool.post(&approvals, json!({})).await.problem(403, "forbidden");
        other.post(&approvals, json!({})).await.expect(200);
    }
}
