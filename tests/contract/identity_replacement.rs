//! Identity replacements: who may do what in which state, and what becomes of the identities.

mod race;
mod refusal;
mod revocation;
mod time;

use chancery_resource::Problem;
use chancery_store::Mode;
use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use crate::{each, id};

const ALL: &str = "/api/management/v2/identity-replacements";
const USERS: &str = "/api/management/v2/ApplicationUser";

async fn synchronize(world: &World, store: &str) -> Value {
    let path = format!("/api/userstore/v2/{store}/administration/User/synchronize");
    world.admin.post(&path, json!(null)).await.is(200).json()
}

/// A platform user, as it is now.
async fn person(world: &World, user: &Value) -> Value {
    world.admin.get(&format!("{USERS}/{}", id(user))).await.is(200).json()
}

/// The platform user of a new user of the default store.
async fn new_person(world: &World, login_name: &str) -> Value {
    let user = world.user(login_name).await;
    synchronize(world, "default").await;
    let path = format!("{USERS}?filter=identities.subject%20eq%20%22{}%22", id(&user));
    world.admin.get(&path).await.is(200).json()[0].clone()
}

/// A new instance in the subscription `Default` where people from elsewhere sign in.
async fn new_instance(world: &World, name: &str) -> Value {
    let kinds = world.all("IdpType").await;
    let kind =
        kinds.as_array().unwrap().iter().find(|kind| kind["name"] == "OpenIdConnect").unwrap()["id"].clone();
    let all = world.all("Subscription").await;
    let home = all.as_array().unwrap().iter().find(|one| one["name"] == "Default").unwrap()["id"].clone();
    world.make("IdpInstance", json!({ "name": name, "idpTypeId": kind, "subscriptionId": home })).await
}

fn body(user: &Value, instance: &Value, subject: &str) -> Value {
    json!({
        "platformUserId": user["id"], "replacementIdpInstanceId": instance["id"],
        "replacementUniqueUserId": subject, "reason": "Lost her telephone",
    })
}

/// The same with other members.
fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn request(client: &Client, body: Value) -> Value {
    client.post(ALL, body).await.is(201).json()
}

/// An open request, with the user of the default store whose identity is to be replaced.
pub async fn open_replacement(world: &World) -> (Value, Value) {
    let (person, instance) = (new_person(world, "ada").await, new_instance(world, "work").await);
    let user = json!({ "id": person["identities"][0]["subject"] });
    (user, request(&world.admin, body(&person, &instance, "ada-at-work")).await)
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

/// An administrator of everything, whom somebody made who takes no part in replacements.
async fn admin(world: &World, name: &str) -> Client {
    let client = world.client(name, &[("SystemAdmin", None, None)]).await;
    forget_makers(world).await;
    client
}

/// As if client apps had been made by somebody else than `root`.
async fn forget_makers(world: &World) {
    world.sql(vec![("DELETE FROM client_app_controller", vec![])]).await;
}

async fn client_id(world: &World, name: &str) -> Value {
    let all = world.all("ClientApp").await;
    all.as_array().unwrap().iter().find(|app| app["name"] == name).unwrap()["id"].clone()
}

/// What one statement finds, in text.
async fn found(world: &World, text: &'static str) -> Vec<String> {
    let read = world.app.store.run("Test", Mode::Long, None, move |tx| {
        let mut found = Vec::new();
        tx.query(text, &[], |row| {
            found.push(row.text(0)?.to_owned());
            Ok(())
        })?;
        Ok::<_, Problem>(found)
    });
    read.await.unwrap()
}

/// The kinds of events about a resource, in their order.
async fn events(world: &World, about: &Value) -> Vec<String> {
    let all = found(world, "SELECT envelope FROM outbox_event ORDER BY id").await;
    let all = all.iter().map(|event| serde_json::from_str::<Value>(event).unwrap());
    let ours = all.filter(|event| event["subject"] == about["id"]);
    ours.map(|event| event["type"].as_str().unwrap().rsplit('.').next().unwrap().to_owned()).collect()
}

/// Waits for what the background job makes of a replacement.
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
    async fn goes_from_request_to_completion(world: World) {
        let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
        let (first, second) = (admin(&world, "first").await, admin(&world, "second").await);
        let old = user["identities"][0].clone();
        let asked = with(body(&user, &instance, "ada-at-work"), &json!({
            "replacementIssuer": "https://work.example", "requiredApprovals": 2, "lifetimeMinutes": 60,
        }));
        let made = request(&world.admin, asked).await;
        let times = (made["requestedOn"].as_str().unwrap(), made["expiresOn"].as_str().unwrap());
        assert!(times.0 < times.1);
        let expected = json!({
            "id": made["id"], "platformUserId": user["id"], "currentIdentityId": old["id"],
            "replacementIdentityId": made["replacementIdentityId"], "status": "PendingApproval",
            "requestedByActorId": client_id(&world, "root").await, "reason": "Lost her telephone",
            "requiredApprovals": 2, "approvedByActorIds": [], "requestedOn": times.0, "expiresOn": times.1,
            "currentIdentityProvenOn": null, "replacementIdentityProvenOn": null, "approvalSatisfiedOn": null,
            "executedOn": null, "revocationCompletedOn": null, "revocationAttempts": 0,
            "revocationDueOn": null, "revocationError": null,
            "policyFingerprint": "cdcf9ac1a0ca7a4a3de3aa6ae64fc0e2b3f4ef75a6d6ec70f2a4bcdb8b4c1a63",
            "currentIdentity": old,
            "replacementIdentity": {
                "id": made["replacementIdentityId"], "idpInstanceId": instance["id"], "issuer": "https://work.example",
                "subject": "ada-at-work", "isUserStoreIdentity": false, "lifecycleStatus": "Pending",
            },
        });
        let fingerprint = json!({ "policyFingerprint": made["policyFingerprint"] });
        assert_eq!(made["policyFingerprint"].as_str().unwrap().len(), 64);
        assert_eq!(made, with(expected, &fingerprint));
        assert_eq!(read(&world, &made).await, made);
        assert_eq!(world.admin.get(ALL).await.is(200).json(), json!([made]));
        let names: Vec<&str> = made.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names.len(), 20 + 2, "those of the documents, and what is known of the next try");
        assert_eq!(statuses(&person(&world, &user).await), ["Active", "Pending"]);

        let once = step(&first, &made, "/approvals").await.is(200).json();
        assert_eq!((&once["status"], &once["approvalSatisfiedOn"]), (&json!("PendingApproval"), &json!(null)));
        let twice = step(&second, &made, "/approvals").await.is(200).json();
        assert_eq!(twice["status"], "Approved");
        assert!(twice["approvalSatisfiedOn"].is_string());
        let actors = json!([client_id(&world, "first").await, client_id(&world, "second").await]);
        assert_eq!(twice["approvedByActorIds"], actors);

        let done = step(&world.admin, &made, "/execute").await.is(200).json();
        assert_eq!((&done["status"], &done["revocationCompletedOn"]), (&json!("Executed"), &json!(null)));
        assert!(done["executedOn"].is_string());
        assert_eq!(done["currentIdentity"]["lifecycleStatus"], "Replaced");
        assert_eq!(done["replacementIdentity"]["lifecycleStatus"], "Active");
        let now = person(&world, &user).await;
        assert_eq!(statuses(&now), ["Replaced", "Active"]);
        assert_ne!(now["concurrencyToken"], user["concurrencyToken"]);
        let end = completed(&world, &made).await;
        assert!(end["revocationCompletedOn"].is_string());
        assert_eq!(end["revocationAttempts"], 1);
        let again = step(&first, &made, "/execute").await.is(200).json();
        assert_eq!(again, end, "executing again changes nothing");

        let kinds = ["created", "approved", "approved", "executed", "completed"];
        assert_eq!(events(&world, &made).await, kinds);
        assert_eq!(events(&world, &json!({ "id": made["replacementIdentityId"] })).await, ["created", "updated"]);
        assert_eq!(events(&world, &json!({ "id": old["id"] })).await, ["created", "updated"]);
        assert_eq!(events(&world, &user).await, ["created", "updated", "moved"]);
        let of_person = world.all("CustomAuditTrail?filter=area%20eq%20%22IdentityReplacement%22").await;
        assert_eq!(each(&of_person, "action"), ["Added", "Modified", "Modified", "Modified", "Modified"]);
        let own = |entry: &Value| (entry["primaryKey"].clone(), entry["person"].clone());
        assert!(of_person.as_array().unwrap().iter().all(|entry| own(entry) == (made["id"].clone(), user["id"].clone())));
        let users: Vec<&Value> = of_person.as_array().unwrap().iter().map(|entry| &entry["user"]).collect();
        assert_eq!(users, [&made["requestedByActorId"], &actors[0], &actors[1], &made["requestedByActorId"], &json!(null)]);
        let said: Value = serde_json::from_str(of_person[3]["currentContent"].as_str().unwrap()).unwrap();
        assert_eq!((&said["status"], &said["approvedByActorIds"]), (&json!("Executed"), &actors));
        let kept = found(&world, "SELECT current_content FROM audit_entry WHERE area LIKE '%Identity%'").await;
        assert!(!kept.is_empty() && !kept.iter().any(|text| text.contains("telephone") || text.contains("ada-at-work")));
    }

    async fn the_queue_holds_the_open_ones_oldest_first(world: World) {
        let instance = new_instance(&world, "work").await;
        let first = admin(&world, "first").await;
        let mut made = Vec::new();
        for name in ["ada", "bob", "eve", "dan"] {
            let user = new_person(&world, name).await;
            made.push(request(&world.admin, body(&user, &instance, name)).await);
        }
        step(&first, &made[1], "/approvals").await.expect(200);
        step(&first, &made[2], "/cancel").await.expect(200);
        let queue = format!("{ALL}/queue");
        let found = first.get(&queue).await.is(200).json();
        assert_eq!(each(&found["items"], "id"), [id(&made[0]), id(&made[1]), id(&made[3])]);
        assert_eq!(found["totalCount"], 3);
        let page = first.get(&format!("{queue}?count=2&filter=status%20eq%20%22PendingApproval%22")).await.is(200).json();
        assert_eq!((each(&page["items"], "id").len(), &page["totalCount"]), (2, &json!(2)));
        assert_eq!(first.get(ALL).await.is(200).json().as_array().unwrap().len(), 4);
        let path = format!("{ALL}?filter=replacementIdentity.subject%20eq%20%22dan%22");
        assert_eq!(each(&first.get(&path).await.is(200).json(), "id"), [id(&made[3])]);
        let path = format!("{ALL}?sortBy=approvedByActorIds");
        first.get(&path).await.problem(400, "invalid-request");
    }

    /// Within one user store: who a person is there changes, and nothing else of the person.
    async fn another_account_of_the_same_store_takes_over(world: World) {
        let user = new_person(&world, "ada").await;
        let store = user["identities"][0]["idpInstanceId"].clone();
        let account = world.user("ada2").await;
        let first = admin(&world, "first").await;
        let asked = with(body(&user, &json!({ "id": store }), &id(&account).to_uppercase()), &json!({
            "isUserStoreIdentity": true, "replacementIssuer": "UserStore", "replacementSubject": account["id"],
        }));
        let made = request(&world.admin, asked).await;
        assert_eq!(made["replacementIdentity"]["subject"], account["id"]);
        assert_eq!(synchronize(&world, "default").await["created"], 0, "nobody else becomes the new account");
        step(&first, &made, "/approvals").await.expect(200);
        step(&world.admin, &made, "/execute").await.expect(200);
        let change = json!({ "lastName": "King", "concurrencyToken": account["concurrencyToken"] });
        world.admin.patch(&world.path(&format!("/User/{}", id(&account))), change).await.expect(202);
        assert_eq!(synchronize(&world, "default").await["updated"], 1);
        assert_eq!(person(&world, &user).await["lastName"], "King", "it follows the new account");
        // the old account goes without the person
        let old = user["identities"][0]["subject"].as_str().unwrap();
        world.admin.post(&world.path(&format!("/User/{old}/erase")), json!(null)).await.expect(204);
        assert_eq!(statuses(&person(&world, &user).await), ["Replaced", "Active"]);
        // the new one takes the person along, and what was asked for about it
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&account))), json!(null)).await.expect(204);
        world.admin.get(&format!("{USERS}/{}", id(&user))).await.problem(404, "not-found");
        world.admin.get(&path(&made, "")).await.problem(404, "not-found");
    }

    /// From a store to another one, in another subscription, and back.
    async fn another_store_takes_over_and_gives_back(world: World) {
        let user = new_person(&world, "ada").await;
        let home = json!({ "id": user["identities"][0]["idpInstanceId"] });
        let other = world.other_store("other").await;
        let account = json!({ "loginName": "ada", "lastName": "There" });
        let account = world.admin.post("/api/userstore/v2/other/administration/User", account).await.is(201).json();
        let first = admin(&world, "first").await;
        let there = request(&world.admin, body(&user, &json!({ "id": other }), id(&account))).await;
        step(&first, &there, "/approvals").await.expect(200);
        step(&first, &there, "/execute").await.expect(200);
        assert_eq!(synchronize(&world, "other").await["created"], 0);
        let change = json!({ "lastName": "Moved", "concurrencyToken": account["concurrencyToken"] });
        let account_path = format!("/api/userstore/v2/other/administration/User/{}", id(&account));
        world.admin.patch(&account_path, change).await.expect(202);
        assert_eq!(synchronize(&world, "other").await["updated"], 1);
        assert_eq!(person(&world, &user).await["lastName"], "Moved");
        assert_eq!(synchronize(&world, "default").await["updated"], 0, "the old store leads no more");
        let back = body(&user, &home, user["identities"][0]["subject"].as_str().unwrap());
        let back = request(&world.admin, back).await;
        assert_eq!(back["replacementIdentityId"], there["currentIdentityId"], "it is the old one again");
        assert_eq!(back["replacementIdentity"]["lifecycleStatus"], "Pending");
        // what was one of the person's stays one when nothing comes of it
        let over = step(&first, &back, "/cancel").await.is(200).json();
        assert_eq!(over["replacementIdentity"]["lifecycleStatus"], "Replaced");
        assert_eq!(statuses(&person(&world, &user).await), ["Replaced", "Active"]);
        let body = body(&user, &home, user["identities"][0]["subject"].as_str().unwrap());
        let back = request(&world.admin, body).await;
        step(&first, &back, "/approvals").await.expect(200);
        step(&first, &back, "/execute").await.expect(200);
        assert_eq!(statuses(&person(&world, &user).await), ["Active", "Replaced"]);
        assert_eq!(completed(&world, &there).await["currentIdentity"]["lifecycleStatus"], "Active");
    }

    async fn a_dry_run_changes_nothing(world: World) {
        let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
        let first = admin(&world, "first").await;
        let path = format!("{ALL}?dryRun=true");
        world.admin.post(&path, body(&user, &instance, "a")).await.expect(201);
        assert_eq!(world.admin.get(ALL).await.is(200).json(), json!([]));
        assert_eq!(statuses(&person(&world, &user).await), ["Active"]);
        let made = request(&world.admin, body(&user, &instance, "a")).await;
        for rest in ["/approvals?dryRun=true", "/cancel?dryRun=true"] {
            step(&first, &made, rest).await.expect(200);
        }
        assert_eq!(read(&world, &made).await, made);
    }
}
