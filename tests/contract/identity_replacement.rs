//! Identity replacements: allowed steps by state and caller, and their effect on the identities.

mod race;
mod refusal;
mod revocation;
mod time;

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use crate::{each, id, signing::texts};

const ALL: &str = "/api/management/v2/identity-replacements";
const USERS: &str = "/api/management/v2/ApplicationUser";

async fn synchronize(world: &World, store: &str) -> Value {
    let path = format!("/api/userstore/v2/{store}/administration/User/synchronize");
    world.admin.post(&path, json!(null)).await.is(200).json()
}

/// The current version of a platform user.
async fn current_user(world: &World, user: &Value) -> Value {
    world.admin.get(&format!("{USERS}/{}", id(user))).await.is(200).json()
}

/// The platform user of a new user of the default store.
async fn new_platform_user(world: &World, login_name: &str) -> Value {
    let user = world.user(login_name).await;
    synchronize(world, "default").await;
    let path = format!("{USERS}?filter=identities.subject%20eq%20%22{}%22", id(&user));
    world.admin.get(&path).await.is(200).json()[0].clone()
}

/// A new external identity provider instance in the subscription `Default`.
async fn new_instance(world: &World, name: &str) -> Value {
    let kinds = world.all("IdpType").await;
    let kind =
        kinds.as_array().unwrap().iter().find(|kind| kind["name"] == "OpenIdConnect").unwrap()["id"].clone();
    let all = world.all("Subscription").await;
    let subscription_id =
        all.as_array().unwrap().iter().find(|one| one["name"] == "Default").unwrap()["id"].clone();
    world
        .make("IdpInstance", json!({ "name": name, "idpTypeId": kind, "subscriptionId": subscription_id }))
        .await
}

fn body(user: &Value, instance: &Value, subject: &str) -> Value {
    json!({
        "platformUserId": user["id"], "replacementIdpInstanceId": instance["id"],
        "replacementUniqueUserId": subject, "reason": "Lost her telephone",
    })
}

/// The body with these members added or replaced.
fn merged(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn request(client: &Client, body: Value) -> Value {
    client.post(ALL, body).await.is(201).json()
}

/// An open request, with the user of the default store whose identity is to be replaced.
pub async fn open_replacement(world: &World) -> (Value, Value) {
    let (platform_user, instance) =
        (new_platform_user(world, "ada").await, new_instance(world, "work").await);
    let user = json!({ "id": platform_user["identities"][0]["subject"] });
    (user, request(&world.admin, body(&platform_user, &instance, "ada-at-work")).await)
}

fn path(replacement: &Value, rest: &str) -> String {
    format!("{ALL}/{}{rest}", id(replacement))
}

async fn step(client: &Client, replacement: &Value, step: &str) -> chancery_testkit::Answer {
    client.post(&path(replacement, step), json!(null)).await
}

async fn read(world: &World, replacement: &Value) -> Value {
    world.admin.get(&path(replacement, "")).await.is(200).json()
}

/// A SystemAdmin without a recorded creator, so that it is independent of all others.
async fn admin(world: &World, name: &str) -> Client {
    let client = world.client(name, &[("SystemAdmin", None, None)]).await;
    delete_controllers(world).await;
    client
}

/// Deletes the recorded creators of client apps, so that they are independent of `root`.
async fn delete_controllers(world: &World) {
    world.sql(vec![("DELETE FROM client_app_controller", vec![])]).await;
}

async fn client_id(world: &World, name: &str) -> Value {
    let all = world.all("ClientApp").await;
    all.as_array().unwrap().iter().find(|app| app["name"] == name).unwrap()["id"].clone()
}

/// The types of events about a resource, in order.
async fn events(world: &World, about: &Value) -> Vec<String> {
    let all = texts(world, "SELECT envelope FROM outbox_event ORDER BY id").await;
    let all = all.iter().map(|event| serde_json::from_str::<Value>(event).unwrap());
    let ours = all.filter(|event| event["subject"] == about["id"]);
    ours.map(|event| event["type"].as_str().unwrap().rsplit('.').next().unwrap().to_owned()).collect()
}

/// Waits until the background job has completed a replacement.
async fn completed(world: &World, replacement: &Value) -> Value {
    for _ in 0..200 {
        let now = read(world, replacement).await;
        if now["status"] == "Completed" {
            return now;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{} is not completed", read(world, replacement).await);
}

fn statuses(user: &Value) -> Vec<&str> {
    each(&user["identities"], "lifecycleStatus")
}

on_both_engines! {
    async fn a_replacement_goes_from_request_to_completion(world: World) {
        let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
        let (first, second) = (admin(&world, "first").await, admin(&world, "second").await);
        let old = user["identities"][0].clone();
        let request_body = merged(body(&user, &instance, "ada-at-work"), &json!({
            "replacementIssuer": "https://work.example", "requiredApprovals": 2, "lifetimeMinutes": 60,
        }));
        let created = request(&world.admin, request_body).await;
        let times = (created["requestedOn"].as_str().unwrap(), created["expiresOn"].as_str().unwrap());
        assert!(times.0 < times.1);
        let expected = json!({
            "id": created["id"], "platformUserId": user["id"], "currentIdentityId": old["id"],
            "replacementIdentityId": created["replacementIdentityId"], "status": "PendingApproval",
            "requestedByActorId": client_id(&world, "root").await, "reason": "Lost her telephone",
            "requiredApprovals": 2, "approvedByActorIds": [], "requestedOn": times.0, "expiresOn": times.1,
            "currentIdentityProvenOn": null, "replacementIdentityProvenOn": null, "approvalSatisfiedOn": null,
            "executedOn": null, "revocationCompletedOn": null, "revocationAttempts": 0,
            "revocationDueOn": null, "revocationError": null,
            "policyFingerprint": "cdcf9ac1a0ca7a4a3de3aa6ae64fc0e2b3f4ef75a6d6ec70f2a4bcdb8b4c1a63",
            "currentIdentity": old,
            "replacementIdentity": {
                "id": created["replacementIdentityId"], "idpInstanceId": instance["id"], "issuer": "https://work.example",
                "subject": "ada-at-work", "isUserStoreIdentity": false, "lifecycleStatus": "Pending",
            },
        });
        let fingerprint = json!({ "policyFingerprint": created["policyFingerprint"] });
        assert_eq!(created["policyFingerprint"].as_str().unwrap().len(), 64);
        assert_eq!(created, merged(expected, &fingerprint));
        assert_eq!(read(&world, &created).await, created);
        assert_eq!(world.admin.get(ALL).await.is(200).json(), json!([created]));
        let names: Vec<&str> = created.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names.len(), 20 + 2, "those of the documents, and what is known of the next try");
        assert_eq!(statuses(&current_user(&world, &user).await), ["Active", "Pending"]);

        let once = step(&first, &created, "/approvals").await.is(200).json();
        assert_eq!((&once["status"], &once["approvalSatisfiedOn"]), (&json!("PendingApproval"), &json!(null)));
        let twice = step(&second, &created, "/approvals").await.is(200).json();
        assert_eq!(twice["status"], "Approved");
        assert!(twice["approvalSatisfiedOn"].is_string());
        let actors = json!([client_id(&world, "first").await, client_id(&world, "second").await]);
        assert_eq!(twice["approvedByActorIds"], actors);

        let done = step(&world.admin, &created, "/execute").await.is(200).json();
        assert_eq!((&done["status"], &done["revocationCompletedOn"]), (&json!("Executed"), &json!(null)));
        assert!(done["executedOn"].is_string());
        assert_eq!(done["currentIdentity"]["lifecycleStatus"], "Replaced");
        assert_eq!(done["replacementIdentity"]["lifecycleStatus"], "Active");
        let now = current_user(&world, &user).await;
        assert_eq!(statuses(&now), ["Replaced", "Active"]);
        assert_ne!(now["concurrencyToken"], user["concurrencyToken"]);
        let completed_replacement = completed(&world, &created).await;
        assert!(completed_replacement["revocationCompletedOn"].is_string());
        assert_eq!(completed_replacement["revocationAttempts"], 1);
        let again = step(&first, &created, "/execute").await.is(200).json();
        assert_eq!(again, completed_replacement, "executing again changes nothing");

        let kinds = ["created", "approved", "approved", "executed", "completed"];
        assert_eq!(events(&world, &created).await, kinds);
        assert_eq!(events(&world, &json!({ "id": created["replacementIdentityId"] })).await, ["created", "updated"]);
        assert_eq!(events(&world, &json!({ "id": old["id"] })).await, ["created", "updated"]);
        assert_eq!(events(&world, &user).await, ["created", "updated", "moved"]);
        let of_person = world.all("CustomAuditTrail?filter=area%20eq%20%22IdentityReplacement%22").await;
        assert_eq!(each(&of_person, "action"), ["Added", "Modified", "Modified", "Modified", "Modified"]);
        let key_and_person = |entry: &Value| (entry["primaryKey"].clone(), entry["person"].clone());
        assert!(of_person.as_array().unwrap().iter().all(|entry| key_and_person(entry) == (created["id"].clone(), user["id"].clone())));
        let users: Vec<&Value> = of_person.as_array().unwrap().iter().map(|entry| &entry["user"]).collect();
        assert_eq!(users, [&created["requestedByActorId"], &actors[0], &actors[1], &created["requestedByActorId"], &json!(null)]);
        let content: Value = serde_json::from_str(of_person[3]["currentContent"].as_str().unwrap()).unwrap();
        assert_eq!((&content["status"], &content["approvedByActorIds"]), (&json!("Executed"), &actors));
        let audited = texts(&world, "SELECT current_content FROM audit_entry WHERE area LIKE '%Identity%'").await;
        assert!(!audited.is_empty() && !audited.iter().any(|text| text.contains("telephone") || text.contains("ada-at-work")));
    }

    async fn the_queue_lists_open_requests_oldest_first(world: World) {
        let instance = new_instance(&world, "work").await;
        let first = admin(&world, "first").await;
        let mut created = Vec::new();
        for name in ["ada", "bob", "eve", "dan"] {
            let user = new_platform_user(&world, name).await;
            created.push(request(&world.admin, body(&user, &instance, name)).await);
        }
        step(&first, &created[1], "/approvals").await.expect(200);
        step(&first, &created[2], "/cancel").await.expect(200);
        let queue = format!("{ALL}/queue");
        let listed = first.get(&queue).await.is(200).json();
        assert_eq!(each(&listed["items"], "id"), [id(&created[0]), id(&created[1]), id(&created[3])]);
        assert_eq!(listed["totalCount"], 3);
        let page = first.get(&format!("{queue}?count=2&filter=status%20eq%20%22PendingApproval%22")).await.is(200).json();
        assert_eq!((each(&page["items"], "id").len(), &page["totalCount"]), (2, &json!(2)));
        assert_eq!(first.get(ALL).await.is(200).json().as_array().unwrap().len(), 4);
        let path = format!("{ALL}?filter=replacementIdentity.subject%20eq%20%22dan%22");
        assert_eq!(each(&first.get(&path).await.is(200).json(), "id"), [id(&created[3])]);
        let path = format!("{ALL}?sortBy=approvedByActorIds");
        first.get(&path).await.problem(400, "invalid-request");
    }

    /// Within one user store: the account of the user changes, and nothing else of the user.
    async fn an_identity_is_replaced_within_the_same_store(world: World) {
        let user = new_platform_user(&world, "ada").await;
        let store = user["identities"][0]["idpInstanceId"].clone();
        let account = world.user("ada2").await;
        let first = admin(&world, "first").await;
        let request_body = merged(body(&user, &json!({ "id": store }), &id(&account).to_uppercase()), &json!({
            "isUserStoreIdentity": true, "replacementIssuer": "UserStore", "replacementSubject": account["id"],
        }));
        let created = request(&world.admin, request_body).await;
        assert_eq!(created["replacementIdentity"]["subject"], account["id"]);
        assert_eq!(synchronize(&world, "default").await["created"], 0, "nobody else becomes the new account");
        step(&first, &created, "/approvals").await.expect(200);
        step(&world.admin, &created, "/execute").await.expect(200);
        let change = json!({ "lastName": "King", "concurrencyToken": account["concurrencyToken"] });
        world.admin.patch(&world.path(&format!("/User/{}", id(&account))), change).await.expect(202);
        assert_eq!(synchronize(&world, "default").await["updated"], 1);
        assert_eq!(current_user(&world, &user).await["lastName"], "King", "it follows the new account");
        // deleting the old account does not delete the user
        let old = user["identities"][0]["subject"].as_str().unwrap();
        world.admin.post(&world.path(&format!("/User/{old}/erase")), json!(null)).await.expect(204);
        assert_eq!(statuses(&current_user(&world, &user).await), ["Replaced", "Active"]);
        // deleting the new account deletes the user and its replacement requests
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&account))), json!(null)).await.expect(204);
        world.admin.get(&format!("{USERS}/{}", id(&user))).await.problem(404, "not-found");
        world.admin.get(&path(&created, "")).await.problem(404, "not-found");
    }

    /// From a store to one in another subscription, and back.
    async fn an_identity_moves_to_another_store_and_back(world: World) {
        let user = new_platform_user(&world, "ada").await;
        let original_store = json!({ "id": user["identities"][0]["idpInstanceId"] });
        let other = world.other_store("other").await;
        let account = json!({ "loginName": "ada", "lastName": "There" });
        let account = world.admin.post("/api/userstore/v2/other/administration/User", account).await.is(201).json();
        let first = admin(&world, "first").await;
        let to_other = request(&world.admin, body(&user, &json!({ "id": other }), id(&account))).await;
        step(&first, &to_other, "/approvals").await.expect(200);
        step(&first, &to_other, "/execute").await.expect(200);
        assert_eq!(synchronize(&world, "other").await["created"], 0);
        let change = json!({ "lastName": "Moved", "concurrencyToken": account["concurrencyToken"] });
        let account_path = format!("/api/userstore/v2/other/administration/User/{}", id(&account));
        world.admin.patch(&account_path, change).await.expect(202);
        assert_eq!(synchronize(&world, "other").await["updated"], 1);
        assert_eq!(current_user(&world, &user).await["lastName"], "Moved");
        assert_eq!(synchronize(&world, "default").await["updated"], 0, "the old store leads no more");
        let moved_back = body(&user, &original_store, user["identities"][0]["subject"].as_str().unwrap());
        let moved_back = request(&world.admin, moved_back).await;
        assert_eq!(moved_back["replacementIdentityId"], to_other["currentIdentityId"], "it is the old one again");
        assert_eq!(moved_back["replacementIdentity"]["lifecycleStatus"], "Pending");
        // an earlier identity of the user is retained when the request is cancelled
        let cancelled = step(&first, &moved_back, "/cancel").await.is(200).json();
        assert_eq!(cancelled["replacementIdentity"]["lifecycleStatus"], "Replaced");
        assert_eq!(statuses(&current_user(&world, &user).await), ["Replaced", "Active"]);
        let body = body(&user, &original_store, user["identities"][0]["subject"].as_str().unwrap());
        let moved_back = request(&world.admin, body).await;
        step(&first, &moved_back, "/approvals").await.expect(200);
        step(&first, &moved_back, "/execute").await.expect(200);
        assert_eq!(statuses(&current_user(&world, &user).await), ["Active", "Replaced"]);
        assert_eq!(completed(&world, &to_other).await["currentIdentity"]["lifecycleStatus"], "Active");
    }

    async fn a_dry_run_changes_nothing(world: World) {
        let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
        let first = admin(&world, "first").await;
        let path = format!("{ALL}?dryRun=true");
        world.admin.post(&path, body(&user, &instance, "a")).await.expect(201);
        assert_eq!(world.admin.get(ALL).await.is(200).json(), json!([]));
        assert_eq!(statuses(&current_user(&world, &user).await), ["Active"]);
        let created = request(&world.admin, body(&user, &instance, "a")).await;
        for rest in ["/approvals?dryRun=true", "/cancel?dryRun=true"] {
            step(&first, &created, rest).await.expect(200);
        }
        assert_eq!(read(&world, &created).await, created);
    }
}
