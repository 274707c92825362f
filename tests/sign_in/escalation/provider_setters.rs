//! External identity providers that a lower administrator set up before people of them got a higher role: they are to be reviewed
//! first, since whoever controls the provider can sign in as these people.

use chancery_testkit::{Answer, Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{
    default_store,
    people::delete_controllers,
    person, platform_user, reviewed_now,
    settings::{identify, link},
};
use crate::{
    cost::cost,
    id,
    instance::option,
    resources::{BASE, one, type_id},
    roles::assignment,
};

/// A provider that this administrator set up.
async fn provider_by(world: &World, client: &Client, name: &str) -> Value {
    let body = json!({ "name": name, "idpTypeId": type_id(world, "OpenIdConnect").await });
    let instance = client.post(&format!("{BASE}/IdpInstance"), body).await.is(201).json();
    set(world, client, &instance, ("Authority", "https://login.partner.example")).await.expect(202);
    instance
}

async fn set(world: &World, client: &Client, instance: &Value, (name, value): (&str, &str)) -> Answer {
    let row = option(world, instance, name).await;
    let body = json!({ "value": value, "concurrencyToken": row["concurrencyToken"] });
    client.patch(&one("Option", &row), body).await
}

/// A user of the store, who also signs in at the provider.
async fn member(world: &World, name: &str, instance: &Value, number: u128) -> (Value, Value) {
    let user = person(world, name, None).await;
    let platform = platform_user(world, &user).await;
    identify(world, &platform, instance, number).await;
    (user, platform)
}

async fn grant(world: &World, principal: (&str, &Value), (role, target): (&str, Value)) -> Answer {
    let body = assignment(principal.0, principal.1, role, &target);
    world.admin.post(&format!("{BASE}/RoleAssignment"), body).await
}

async fn confirm(client: &Client, instance: &Value) -> Answer {
    confirm_with(client, instance, reviewed_now()).await
}

async fn confirm_with(client: &Client, instance: &Value, review: Value) -> Answer {
    client.post(&format!("{}/settings/confirm", one("IdpInstance", instance)), review).await
}

/// What is listed about this person, or group, as if it had the role.
async fn listed(world: &World, query: &str) -> Vec<Value> {
    let report = world.admin.get(&format!("{BASE}/CredentialSetByOther{query}")).await.is(200).json();
    report["items"].as_array().unwrap().clone()
}

fn assert_to_review(answer: Answer, instance: &Value) {
    let problem = answer.problem(409, "conflict");
    let text = problem.to_string();
    assert!(text.contains(&format!("/IdpInstance/{}/settings/confirm", id(instance))), "{text}");
    assert!(text.contains("/principalId"), "{text}");
}

async fn id_of_app(world: &World, name: &str) -> Value {
    world.all(&format!("ClientApp?filter=name%20eq%20%22{name}%22")).await[0]["id"].clone()
}

on_both_engines! {
    async fn a_role_is_refused_until_the_provider_of_the_person_is_confirmed(world: World) {
        let low = world.client("low", &[("SubscriptionAdmin", None, None)]).await;
        let instance = provider_by(&world, &low, "Partner").await;
        let (_, ada) = member(&world, "ada", &instance, 1).await;
        let system = ("SystemAdmin", json!({}));
        // what the administrator could grant is no escalation
        let tenant = world.all("Tenant").await[0]["id"].clone();
        grant(&world, ("PlatformUser", &ada), ("TenantAdmin", json!({ "applyToTenantId": tenant }))).await.expect(201);
        assert_eq!(listed(&world, "").await, Vec::<Value>::new());
        assert_to_review(grant(&world, ("PlatformUser", &ada), system.clone()).await, &instance);
        let query = format!("?platformUserId={}&roleType=SystemAdmin", id(&ada));
        let items = listed(&world, &query).await;
        assert_eq!(items.len(), 1, "{items:?}");
        let (item, by) = (&items[0], id_of_app(&world, "low").await);
        assert_eq!((&item["kind"], &item["setBy"], &item["role"]), (&json!("Provider"), &by, &json!("SystemAdmin")));
        assert_eq!((&item["idpInstanceId"], &item["userStore"], &item["userId"]), (&instance["id"], &json!("Partner"), &Value::Null));
        // nor is it enough that who set it up confirms it
        confirm(&low, &instance).await.expect(204);
        assert_to_review(grant(&world, ("PlatformUser", &ada), system.clone()).await, &instance);
        confirm(&world.admin, &instance).await.expect(204);
        assert_eq!(listed(&world, &query).await, Vec::<Value>::new());
        let role = grant(&world, ("PlatformUser", &ada), system.clone()).await.is(201).json();
        confirm(&low, &instance).await.expect(403);
        set(&world, &low, &instance, ("Authority", "https://login.low.example")).await.expect(403);
        // what does not decide who signs in may be changed, and needs no review
        let now = world.admin.get(&one("IdpInstance", &instance)).await.is(200).json();
        let renamed = json!({ "name": "Partner Ltd", "position": 7, "concurrencyToken": now["concurrencyToken"] });
        low.patch(&one("IdpInstance", &instance), renamed).await.expect(202);
        assert_eq!(listed(&world, "").await, Vec::<Value>::new());
        // a later change needs another review
        world.admin.delete(&one("RoleAssignment", &role)).await.expect(204);
        set(&world, &low, &instance, ("Authority", "https://login.low.example")).await.expect(202);
        assert_to_review(grant(&world, ("PlatformUser", &ada), system.clone()).await, &instance);
        let store = default_store(&world).await;
        confirm(&world.admin, &store).await.problem(409, "conflict");
    }

    /// A confirmation covers the settings as they were when they were reviewed.
    async fn a_change_after_the_review_is_not_confirmed(world: World) {
        let low = world.client("low", &[("SubscriptionAdmin", None, None)]).await;
        let instance = provider_by(&world, &low, "Partner").await;
        let (_, ada) = member(&world, "ada", &instance, 1).await;
        let reviewed = reviewed_now();
        let until = chancery_web::now();
        while chancery_web::now() <= until.plus(1) {
            tokio::task::yield_now().await;
        }
        set(&world, &low, &instance, ("Authority", "https://login.low.example")).await.expect(202);
        confirm_with(&world.admin, &instance, reviewed.clone()).await.expect(204);
        assert_to_review(grant(&world, ("PlatformUser", &ada), ("SystemAdmin", json!({}))).await, &instance);
        confirm(&world.admin, &instance).await.expect(204);
        confirm_with(&world.admin, &instance, reviewed).await.problem(409, "conflict");
        for wrong in [json!(null), json!({}), json!({ "reviewedOn": "2126-01-01T00:00:00Z" }), json!({ "reviewedOn": "today" })] {
            confirm_with(&world.admin, &instance, wrong).await.problem(400, "invalid-request");
        }
        grant(&world, ("PlatformUser", &ada), ("SystemAdmin", json!({}))).await.expect(201);
    }

    /// Of a provider that was changed more often than is read, an earlier change by anybody is possible: it has to be confirmed.
    async fn a_provider_with_many_changes_has_to_be_confirmed(world: World) {
        let own = provider_by(&world, &world.admin, "Own").await;
        let (_, ada) = member(&world, "ada", &own, 1).await;
        let query = format!("?platformUserId={}&roleType=SystemAdmin", id(&ada));
        assert_eq!(listed(&world, &query).await, Vec::<Value>::new());
        let now = world.admin.get(&one("IdpInstance", &own)).await.is(200).json();
        let renamed = json!({ "name": "Ours", "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&one("IdpInstance", &own), renamed).await.expect(202);
        let again = "INSERT INTO audit_entry (rid, store, timestamp, actor, area, primary_key, category, action, data_source, \
            original_content, current_content, signature, signature_public_key_info) SELECT rid + 1, store, timestamp, actor, area, \
            primary_key, category, action, data_source, original_content, current_content, signature, signature_public_key_info \
            FROM audit_entry WHERE area = 'IdpInstance' ORDER BY rid DESC LIMIT 1";
        world.sql(vec![(again, vec![]); 1_000]).await;
        let items = listed(&world, &query).await;
        assert_eq!(items[0]["setBy"], json!("00000000-0000-0000-0000-000000000000"), "{items:?}");
        assert_to_review(grant(&world, ("PlatformUser", &ada), ("SystemAdmin", json!({}))).await, &own);
        confirm(&world.admin, &own).await.expect(204);
        grant(&world, ("PlatformUser", &ada), ("SystemAdmin", json!({}))).await.expect(201);
    }

    /// The providers of all people of a batch are read at once.
    async fn more_assignments_take_no_more_statements_for_providers(world: World) {
        let tenant = world.all("Tenant").await[0]["id"].clone();
        let mut people = Vec::new();
        for number in 0..12 {
            let user = person(&world, &format!("p{number}"), None).await;
            people.push(platform_user(&world, &user).await);
        }
        let statements = async |people: &[Value]| {
            let assignment = |one: &Value| json!({ "principalType": "PlatformUser", "principalId": one["id"], "roleType": "TenantAdmin", "applyToTenantId": tenant });
            let body: Vec<Value> = people.iter().map(assignment).collect();
            let path = format!("{BASE}/RoleAssignment/batch?dryRun=true");
            cost(&world, 5, async |_| (), async |()| drop(world.admin.post(&path, json!(body)).await.is(200))).await.0
        };
        let of_ten_more = async || statements(&people).await - statements(&people[..2]).await;
        let before = of_ten_more().await;
        let own = provider_by(&world, &world.admin, "Own").await;
        for (number, one) in (0..).zip(&people) {
            identify(&world, one, &own, number).await;
        }
        assert_eq!(of_ten_more().await, before);
    }

    /// In a batch each refused element has its pointer; people of other instances get their role.
    async fn each_element_of_a_batch_is_examined(world: World) {
        let low = world.client("low", &[("SubscriptionAdmin", None, None)]).await;
        let planted = provider_by(&world, &low, "Planted").await;
        let own = provider_by(&world, &world.admin, "Own").await;
        let (_, ada) = member(&world, "ada", &own, 1).await;
        let (_, bob) = member(&world, "bob", &planted, 2).await;
        let body = |person: &Value| json!({ "principalType": "PlatformUser", "principalId": person["id"], "roleType": "SystemAdmin" });
        let batch = format!("{BASE}/RoleAssignment/batch");
        let problem = world.admin.post(&batch, json!([body(&ada), body(&bob)])).await.problem(409, "conflict");
        assert_eq!(crate::pointers(&problem), ["/1/principalId"], "{problem}");
        world.admin.post(&batch, json!([body(&ada)])).await.expect(200);
    }

    /// Who uploaded a linked certificate knows its key, and a directory's token decides who somebody is.
    async fn certificates_and_directory_tokens_are_reviewed_with_the_provider(world: World) {
        let low = world.client("low", &[("SubscriptionAdmin", None, None)]).await;
        let instance = provider_by(&world, &world.admin, "Partner").await;
        let (_, ada) = member(&world, "ada", &instance, 1).await;
        let query = format!("?platformUserId={}&roleType=SystemAdmin", id(&ada));
        assert_eq!(listed(&world, &query).await.len(), 0);
        let pem = rcgen::generate_simple_self_signed(vec!["partner.example".to_owned()]).unwrap().cert.pem();
        let body = json!({
            "name": "theirs", "certType": "AdfsOAuthTokenSigning", "certificateInput": { "format": "Pem", "data": pem },
        });
        let certificate = low.post(&format!("{BASE}/CertStore"), body).await.is(201).json();
        link(&world, ("IdpInstance", &instance), "certstores", &certificate).await;
        assert_eq!(listed(&world, &query).await.len(), 1);
        confirm(&world.admin, &instance).await.expect(204);
        assert_eq!(listed(&world, &query).await.len(), 0);
        set(&world, &world.admin, &instance, ("ScimEnabled", "true")).await.expect(202);
        low.send(http::Method::POST, &format!("{}/scim/token", one("IdpInstance", &instance)), &[], Vec::new()).await.expect(204);
        assert_eq!(listed(&world, &query).await.len(), 1);
    }

    /// A role of a group is one of its members: by assignment, and by a membership, which is listed.
    async fn members_of_groups_are_examined(world: World) {
        let low = world.client("low", &[("SubscriptionAdmin", None, None)]).await;
        let instance = provider_by(&world, &low, "Partner").await;
        let (user, _) = member(&world, "ada", &instance, 1).await;
        let group = world.group("admins").await;
        let users = world.path(&format!("/Group/{}/users", id(&group)));
        let related = json!({ "relatedIds": [user["id"]] });
        world.admin.post(&users, related.clone()).await.expect(202);
        world.admin.post(&world.path("/Group/synchronize"), json!(null)).await.expect(200);
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22admins%22").await[0].clone();
        let system = ("SystemAdmin", json!({}));
        assert_to_review(grant(&world, ("PlatformGroup", &platform), system.clone()).await, &instance);
        world.admin.delete_with(&users, related.clone()).await.expect(202);
        grant(&world, ("PlatformGroup", &platform), system.clone()).await.expect(201);
        assert_eq!(listed(&world, "").await, Vec::<Value>::new());
        world.admin.post(&users, related).await.expect(202);
        let items = listed(&world, "").await;
        assert_eq!((items.len(), &items[0]["kind"]), (1, &json!("Provider")), "{items:?}");
        confirm(&world.admin, &instance).await.expect(204);
        assert_eq!(listed(&world, "").await, Vec::<Value>::new());
    }

    /// So are the members of a group that a directory provisions.
    async fn members_of_provisioned_groups_are_examined(world: World) {
        let low = world.client("low", &[("SubscriptionAdmin", None, None)]).await;
        let instance = provider_by(&world, &low, "partner").await;
        let (directory, base) = crate::scim::directory_of(&world, &instance).await;
        let ada = directory.post(&format!("{base}/Users"), json!({ "userName": "ada", "externalId": "s-ada" })).await.is(201).json();
        let body = json!({ "displayName": "Chiefs", "members": [{ "value": ada["id"] }] });
        let group = directory.post(&format!("{base}/Groups"), body).await.is(201).json();
        let system = ("SystemAdmin", json!({}));
        assert_to_review(grant(&world, ("PlatformGroup", &group), system.clone()).await, &instance);
        let query = format!("?platformGroupId={}&roleType=SystemAdmin", id(&group));
        assert_eq!(listed(&world, &query).await[0]["platformUserId"], ada["id"]);
        confirm(&world.admin, &instance).await.expect(204);
        grant(&world, ("PlatformGroup", &group), system).await.expect(201);
        assert_eq!(listed(&world, "").await, Vec::<Value>::new());
    }

    /// An identity of an administrator is not replaced by one at a provider that a lower administrator set up.
    async fn a_replacement_needs_a_confirmed_provider(world: World) {
        let low = world.client("low", &[("SubscriptionAdmin", None, None)]).await;
        let instance = provider_by(&world, &low, "Partner").await;
        let boss = person(&world, "boss", Some(("SystemAdmin", json!({})))).await;
        let boss = platform_user(&world, &boss).await;
        let requester = world.client("requester", &[("SystemAdmin", None, None)]).await;
        let approver = world.client("approver", &[("SystemAdmin", None, None)]).await;
        delete_controllers(&world).await;
        let body = json!({
            "platformUserId": boss["id"], "replacementIdpInstanceId": instance["id"],
            "replacementUniqueUserId": "s-boss", "reason": "moved", "requiredApprovals": 1,
        });
        let created = requester.post(&format!("{BASE}/identity-replacements"), body).await.is(201).json();
        let path = format!("{BASE}/identity-replacements/{}", id(&created));
        approver.post(&format!("{path}/approvals"), json!(null)).await.expect(200);
        approver.post(&format!("{path}/execute"), json!(null)).await.problem(409, "conflict");
        confirm(&world.admin, &instance).await.expect(204);
        approver.post(&format!("{path}/execute"), json!(null)).await.expect(200);
    }
}
