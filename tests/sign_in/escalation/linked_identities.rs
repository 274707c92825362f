//! Identities that others linked to a person before a promotion are listed for administrators who assign roles.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{
    default_store,
    people::{assign_system_admin, delete_controllers},
    person, platform_user, reviewed_now,
};
use crate::{
    id,
    instance::{create_instance, option, set_option},
    resources::{BASE, one},
};

/// The identities that are listed, each with its subject and who set it.
async fn listed(world: &World) -> Vec<(Value, Value)> {
    let report = world.admin.get(&format!("{BASE}/CredentialSetByOther")).await.is(200).json();
    let mut found = Vec::new();
    for item in report["items"].as_array().unwrap() {
        assert_eq!((&item["kind"], &item["userId"]), (&json!("Identity"), &Value::Null), "{item}");
        assert_eq!((&item["role"], item["setOn"].is_string()), (&json!("SystemAdmin"), true), "{item}");
        let path = format!("{BASE}/ApplicationUser/{}", item["platformUserId"].as_str().unwrap());
        let person = world.admin.get(&path).await.is(200).json();
        let identities = person["identities"].as_array().unwrap();
        let identity = identities.iter().find(|one| one["id"] == item["credentialId"]).unwrap();
        assert_eq!(identity["idpInstanceId"], item["idpInstanceId"]);
        found.push((identity["subject"].clone(), item["setBy"].clone()));
    }
    found
}

/// The directory of an instance, with a new token by this administrator, and the id of the token.
async fn directory(world: &World, client: &Client, instance: &Value) -> (Client, Value) {
    let path = format!("{}/scim/token", one("IdpInstance", instance));
    client.send(http::Method::POST, &path, &[], Vec::new()).await.expect(204);
    let token = option(world, instance, "ScimToken").await["value"].clone();
    let token_id = option(world, instance, "ScimTokenId").await["value"].clone();
    (world.admin.with_token(token.as_str().unwrap()), token_id)
}

async fn confirm(world: &World, instance: &Value) {
    let path = format!("{}/settings/confirm", one("IdpInstance", instance));
    world.admin.post(&path, reviewed_now()).await.expect(204);
}

/// Replaces the identity of a platform user, requested by this administrator.
async fn replace(world: &World, requester: &Client, person: &Value, to: (&Value, &str)) {
    delete_controllers(world).await;
    let body = json!({
        "platformUserId": person["id"], "replacementIdpInstanceId": to.0["id"],
        "replacementUniqueUserId": to.1, "reason": "moved", "requiredApprovals": 1,
    });
    let created = requester.post(&format!("{BASE}/identity-replacements"), body).await.is(201).json();
    let path = format!("{BASE}/identity-replacements/{}", id(&created));
    for step in ["approvals", "execute"] {
        world.admin.post(&format!("{path}/{step}"), json!(null)).await.expect(200);
    }
}

on_both_engines! {
    /// What a directory linked counts as linked by those who created its token, also after the token was replaced. Without a record of
    /// them, nobody holds the role.
    async fn identities_that_a_directory_linked_are_listed(world: World) {
        let low = world.client("low", &[("SubscriptionAdmin", None, None)]).await;
        let instance = create_instance(&world, "partner", "OpenIdConnect").await;
        set_option(&world, &instance, "ScimEnabled", "true").await;
        let users = "/api/scim/v2/partner/Users";
        let (theirs, their_token) = directory(&world, &low, &instance).await;
        let mut people = Vec::new();
        for name in ["ada", "bob"] {
            people.push(theirs.post(users, json!({ "userName": name })).await.is(201).json());
        }
        let (ours, our_token) = directory(&world, &world.admin, &instance).await;
        people.push(ours.post(users, json!({ "userName": "cy" })).await.is(201).json());
        // another subject is another identity
        let body = json!({ "userName": "bob", "externalId": "s-bob" });
        ours.put(&format!("{users}/{}", id(&people[1])), body).await.expect(200);
        confirm(&world, &instance).await;
        assert_eq!(listed(&world).await, []);
        for person in &people {
            assign_system_admin(&world, person).await;
        }
        assert_eq!(listed(&world).await, [(json!("ada"), their_token.clone())]);
        // the names of a directory do not link anybody
        let row = option(&world, &instance, "ScimTokenId").await;
        world.admin.delete(&one("Option", &row)).await.expect(204);
        let mut unknown = listed(&world).await;
        unknown.sort_by_key(|(subject, _)| subject.to_string());
        assert_eq!(unknown, [(json!("ada"), their_token), (json!("cy"), our_token.clone()), (json!("s-bob"), our_token)]);
    }

    /// The audit trail, and who linked an identity, name the token itself, whatever its option says.
    async fn the_id_of_a_directory_token_cannot_be_chosen(world: World) {
        let low = world.client("low", &[("SubscriptionAdmin", None, None)]).await;
        world.client("high", &[("SystemAdmin", None, None)]).await;
        let admin = world.all("ClientApp?filter=name%20eq%20%22high%22").await[0]["id"].clone();
        let instance = create_instance(&world, "partner", "OpenIdConnect").await;
        set_option(&world, &instance, "ScimEnabled", "true").await;
        let (theirs, token) = directory(&world, &low, &instance).await;
        let row = option(&world, &instance, "ScimTokenId").await;
        let body = json!({ "value": admin, "concurrencyToken": row["concurrencyToken"] });
        low.patch(&one("Option", &row), body).await.expect(202);
        let ada = theirs.post("/api/scim/v2/partner/Users", json!({ "userName": "ada" })).await.is(201).json();
        let entry = world.all("CustomAuditTrail?sortOrder=descending&count=1").await[0].clone();
        assert_eq!(entry["user"], token, "{entry}");
        crate::run_job(&world, "uses").await;
        let status = world.admin.get(&format!("{}/scim", one("IdpInstance", &instance))).await.is(200).json();
        assert_eq!((&status["tokenId"], status["lastUsedOn"].is_string()), (&token, true), "{status}");
        confirm(&world, &instance).await;
        assign_system_admin(&world, &ada).await;
        assert_eq!(listed(&world).await, [(json!("ada"), token)]);
    }

    /// The requester of an identity replacement links the identity, a former one, too.
    async fn identities_that_a_replacement_linked_are_listed(world: World) {
        let low = world.client("low", &[("SubscriptionAdmin", None, None)]).await;
        let admin = world.client("high", &[("SystemAdmin", None, None)]).await;
        let instance = create_instance(&world, "partner", "OpenIdConnect").await;
        set_option(&world, &instance, "Authority", "https://login.partner.example").await;
        let by_low = world.all("ClientApp?filter=name%20eq%20%22low%22").await[0]["id"].clone();
        let (ada, bob) = (person(&world, "ada", None).await, person(&world, "bob", None).await);
        let people = [platform_user(&world, &ada).await, platform_user(&world, &bob).await];
        let store = default_store(&world).await;
        replace(&world, &low, &people[0], (&instance, "s-ada")).await;
        replace(&world, &admin, &people[1], (&instance, "s-bob")).await;
        replace(&world, &low, &people[1], (&store, id(&bob))).await;
        let mut roles = Vec::new();
        for person in &people {
            roles.push(assign_system_admin(&world, person).await);
        }
        let mut items = listed(&world).await;
        items.sort_by_key(|(subject, _)| subject == &json!("s-ada"));
        assert_eq!(items, [(bob["id"].clone(), by_low.clone()), (json!("s-ada"), by_low)]);
        replace(&world, &admin, &people[0], (&instance, "s-ada-2")).await;
        replace(&world, &admin, &people[1], (&instance, "s-bob")).await;
        assert_eq!(listed(&world).await, []);
    }
}
