//! The audit trail of a person: found by the keys of the person's data, erased with the person and with nobody else.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{append_leaves, export, findings, keys, sound, sql};
use crate::{each, encode, id, identity_replacement::open_replacement};

/// Runs a statement that wipes contents, checks that this is detected, and restores the entries.
async fn assert_wiping_is_detected(world: &World, text: String) {
    let keys = keys(world).await;
    let copy = "CREATE TABLE kept AS SELECT * FROM audit_entry".to_owned();
    sql(world, vec![(copy, vec![]), (text.clone(), vec![])]).await;
    let (exported, _) = export(world, "default").await;
    assert!(!findings(&exported, &keys, None).1.is_empty(), "{text}");
    let back = ["DELETE FROM audit_entry", "INSERT INTO audit_entry SELECT * FROM kept", "DROP TABLE kept"];
    sql(world, back.map(|text| (text.to_owned(), vec![])).to_vec()).await;
}

/// The entries of one key in a trail.
async fn entries(world: &World, trail: &str, key: &Value) -> Value {
    let filter = encode(&format!("primaryKey eq \"{}\"", key.as_str().unwrap()));
    world.admin.get(&format!("{trail}?filter={filter}")).await.is(200).json()
}

/// A temporary access pass for a user.
async fn new_pass(world: &World, user: &Value) -> Value {
    let passes = world.path("/passkey-security/temporary-access-passes");
    world.admin.post(&passes, json!({ "userId": id(user) })).await.is(201).json()
}

const CONFIGURATION: &str = "/api/management/v2/CustomAuditTrail";

on_both_engines! {
    /// B8: the data of a person is in the trail under its own key, with the person.
    async fn the_data_of_a_person_is_found_by_its_own_key(world: World) {
        let (user, replacement) = open_replacement(&world).await;
        let trail = world.path("/CustomAuditTrail");
        let pass = new_pass(&world, &user).await;
        let one = world.path(&format!("/passkey-security/temporary-access-passes/{}", id(&pass)));
        world.admin.delete(&one).await.expect(204);
        crate::signing::send_mail(&world).await;
        let contact = json!({ "kind": "Email", "value": "other@example.com" });
        let contacts = world.path(&format!("/User/{}/security-contact", id(&user)));
        let contact = world.admin.post(&contacts, contact).await.is(201).json();
        let profile = world.path(&format!("/user/{}/UserProfile", id(&user)));
        world.admin.post(&profile, json!({ "key": "size", "value": "m" })).await.expect(202);
        for (key, area, actions) in [
            (pass["id"].clone(), "TemporaryAccessPass", vec!["Added", "Modified"]),
            (contact["id"].clone(), "SecurityContact", vec!["Added"]),
            (json!(format!("{}|size", id(&user))), "UserProfile", vec!["Added"]),
        ] {
            let entries_found = entries(&world, &trail, &key).await;
            assert_eq!(each(&entries_found, "action"), actions, "{area}");
            assert!(entries_found.as_array().unwrap().iter().all(|entry| entry["area"] == area && entry["person"] == user["id"]));
        }
        let entries_found = entries(&world, CONFIGURATION, &replacement["id"]).await;
        assert_eq!((each(&entries_found, "area"), each(&entries_found, "action")), (vec!["IdentityReplacement"], vec!["Added"]));
        assert_eq!(entries_found[0]["person"], replacement["platformUserId"]);
        let identity = entries(&world, CONFIGURATION, &replacement["replacementIdentityId"]).await;
        assert_eq!(each(&identity, "area"), ["ApplicationIdentity"]);
        let group = world.group("g").await;
        assert_eq!(entries(&world, &trail, &group["id"]).await[0]["person"], json!(null));

        // all of it is erased with the person, and only then
        append_leaves(&world).await;
        assert_eq!(sound(&world, "management").await.1.erased, 0);
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&user))), json!({})).await.expect(204);
        append_leaves(&world).await;
        let gone = entries(&world, &trail, &pass["id"]).await;
        let gone = [&gone[0], &entries(&world, CONFIGURATION, &replacement["id"]).await[0]].map(Value::clone);
        for entry in gone {
            assert!(entry["currentContent"].is_null() && entry["currentDigest"].is_string(), "{entry}");
        }
        // the user and the user's data: the pass twice, the contact, the profile
        assert_eq!(sound(&world, "default").await.1.erased, 5);
        // the platform user, the request, both identities
        assert_eq!(sound(&world, "management").await.1.erased, 4);
    }

    /// B8: the deletion of one person does not explain missing contents of another, whatever the row says.
    async fn missing_contents_are_explained_only_by_their_own_person(world: World) {
        let (erased_user, existing_user) = (world.user("eve").await, world.user("ada").await);
        let pass = new_pass(&world, &existing_user).await;
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&erased_user))), json!({})).await.expect(204);
        append_leaves(&world).await;
        assert_eq!(sound(&world, "default").await.1.erased, 1);
        let number = entries(&world, &world.path("/CustomAuditTrail"), &pass["id"]).await[0]["id"].clone();
        let wipe = "UPDATE audit_entry SET current_content = NULL, current_salt = NULL";
        assert_wiping_is_detected(&world, format!("{wipe} WHERE rid = {number}")).await;
        let other = "(SELECT person FROM kept WHERE person NOT IN (SELECT id FROM user_account))";
        assert_wiping_is_detected(&world, format!("{wipe}, person = {other} WHERE rid = {number}")).await;
        assert_wiping_is_detected(&world, format!("UPDATE audit_entry SET person = {other} WHERE rid = {number}")).await;
        assert_wiping_is_detected(&world, format!("{wipe}, person = NULL WHERE rid = {number}")).await;
        assert_eq!(sound(&world, "default").await.1.erased, 1);
    }

    async fn erasing_a_person_erases_all_its_data(world: World) {
        let user = world.user("ada").await;
        let one = world.path(&format!("/User/{}", id(&user)));
        let security = world.path("/passkey-security");
        crate::signing::send_mail(&world).await;
        world.admin.post(&format!("{one}/security-contact"), json!({ "kind": "Email", "value": "other@example.com" })).await.expect(201);
        world.admin.post(&format!("{security}/temporary-access-passes"), json!({ "userId": id(&user) })).await.expect(201);
        let recovery = json!({ "userId": id(&user), "method": "IdentityDocument", "reason": "lost" });
        world.admin.post(&format!("{security}/recovery-transactions"), recovery).await.expect(201);
        let image = [("content-type", "image/png")];
        world.admin.send(http::Method::PUT, &format!("{one}/image"), &image, crate::picture::png()).await.expect(200);
        let synchronize = world.path("/User/synchronize");
        world.admin.send(http::Method::POST, &synchronize, &[], vec![]).await.expect(200);
        append_leaves(&world).await;
        assert_eq!((sound(&world, "default").await.1.erased, sound(&world, "management").await.1.erased), (0, 0));
        // a hidden user is not erased: wiping is detected
        world.admin.delete(&one).await.expect(204);
        append_leaves(&world).await;
        sound(&world, "default").await;
        for area in ["UserImage", "TemporaryAccessPass", "SecurityContact"] {
            let text = format!("UPDATE audit_entry SET current_content = NULL, current_salt = NULL WHERE area = '{area}'");
            assert_wiping_is_detected(&world, text).await;
        }
        world.admin.post(&format!("{one}/erase"), json!({})).await.expect(204);
        append_leaves(&world).await;
        assert_eq!(sound(&world, "default").await.1.erased, 6);
        assert!(sound(&world, "management").await.1.erased > 0);
    }

    async fn erasing_a_person_keeps_the_proof_valid(world: World) {
        world.set_option("UserDeletionQuarantineEnabled", "false").await;
        let mut gone = Vec::new();
        for name in ["Ada-Maria", "Eve-Marie"] {
            let user = json!({ "loginName": name, "firstName": name });
            let user = world.admin.post(&world.path("/User"), user).await.is(201).json();
            let one = world.path(&format!("/User/{}", id(&user)));
            let patch = json!({ "lastName": format!("{name}son"), "concurrencyToken": user["concurrencyToken"] });
            world.admin.patch(&one, patch).await.expect(202);
            let profile = world.path(&format!("/user/{}/UserProfile", id(&user)));
            world.admin.post(&profile, json!({ "key": "motto", "value": format!("{name} forever") })).await.expect(202);
            append_leaves(&world).await;
            gone.push((user, one));
        }
        assert_eq!(sound(&world, "default").await.1.erased, 0);
        world.admin.post(&format!("{}/erase", gone[0].1), json!({})).await.expect(204);
        world.admin.delete(&gone[1].1).await.expect(204);
        append_leaves(&world).await;
        for entry in world.audit(20).await {
            for member in ["originalContent", "currentContent", "originalSalt", "currentSalt"] {
                assert!(entry[member].is_null(), "{member} of {entry}");
            }
            let purged = entry["action"] == "Deleted";
            assert!(purged || !entry["originalDigest"].is_null() || !entry["currentDigest"].is_null());
        }
        let (text, summary) = sound(&world, "default").await;
        // all but the deletions, which contain nothing of the persons
        assert_eq!((summary.entries, summary.erased), (8, 6));
        assert!(!text.contains("Ada-") && !text.contains("Eve-"));
    }
}
