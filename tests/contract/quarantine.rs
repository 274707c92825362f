//! The deletion quarantine: hidden, restored, purged, erased.

use chancery_record::{Timestamp, Value as Bound};
use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use crate::{
    each, encode, id, pointers,
    signing::{FIRST, Person, SECOND, now, set, texts},
};

const DAY: i64 = 24 * 3600 * 1000;
const UNKNOWN_USER: &str = "/User/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";

async fn logins(world: &World, query: &str) -> Vec<String> {
    let users = world.admin.get(&world.path(&format!("/User?{query}"))).await.is(200).json();
    each(&users, "loginName").into_iter().map(str::to_owned).collect()
}

/// Purges as if it were this many days later.
async fn purge_in(world: &World, days: i64) -> usize {
    let later = Timestamp(now() + days * DAY);
    chancery::purge_due(&world.app.store, &world.app.context, later).await.unwrap()
}

on_both_engines! {
    /// DELETE hides the user from every read, list, group and look-up, and keeps login name and id.
    async fn hides_a_deleted_user_everywhere(world: World) {
        let ada = Person::named(&world, "ada").await;
        Person::named(&world, "bob").await;
        let group = world.group("g").await;
        let group = world.path(&format!("/Group/{}", id(&group)));
        ada.post("groups", json!({ "relatedIds": [id(&world.admin.get(&group).await.is(200).json())] })).await.expect(202);
        let profiles = world.path(&format!("/user/{}/UserProfile", ada.id));
        world.admin.post(&profiles, json!({ "key": "k", "value": "v" })).await.expect(202);
        world.admin.delete(&ada.path).await.expect(204);

        assert_eq!(logins(&world, "").await, ["bob"]);
        assert_eq!(logins(&world, &format!("filter={}", encode("loginName sw \"a\" or loginName pr"))).await, ["bob"]);
        let total = world.admin.get(&world.path("/User?count=1&includeTotal=true")).await.is(200);
        assert_eq!((total.header("x-total-count"), total.next()), (Some("1"), None));
        assert_eq!(world.admin.get(&group).await.is(200).json()["memberUsers"], json!([]));
        let filter = encode(&format!("memberUsers.id eq \"{}\"", ada.id));
        assert_eq!(world.admin.get(&world.path(&format!("/Group?filter={filter}"))).await.is(200).json(), json!([]));
        for path in [
            ada.path.clone(), world.path("/User/loginname/ada"), profiles.clone(), format!("{profiles}/k"),
            world.path(&format!("/Group/user/{}/membership", ada.id)),
        ] {
            world.admin.get(&path).await.problem(404, "not-found");
        }
        let body = json!({ "firstName": "A", "concurrencyToken": "t" });
        world.admin.put(&ada.path, body.clone()).await.problem(404, "not-found");
        world.admin.patch(&ada.path, body).await.problem(404, "not-found");
        world.admin.delete(&ada.path).await.problem(404, "not-found");
        world.admin.delete_with(&world.path("/User/batch"), json!([ada.id])).await.problem(404, "not-found");
        world.admin.put(&format!("{}/emailaddress", ada.path), json!({ "concurrencyToken": "t" })).await.problem(404, "not-found");
        ada.post("groups", json!({ "relatedIds": [] })).await.problem(404, "not-found");
        ada.post("state", json!({ "isUserLocked": true })).await.problem(404, "not-found");
        ada.reset(SECOND).await.problem(404, "not-found");
        ada.initial(SECOND).await.problem(404, "not-found");
        ada.change(FIRST, SECOND).await.problem(404, "not-found");
        for rest in ["lockout/reset", "password/reset/request", "password/reset/sendresetemail", "password/initial/reset"] {
            ada.call(rest).await.problem(404, "not-found");
        }
        assert_eq!(pointers(&world.admin.post(&format!("{group}/users"), json!({ "relatedIds": [ada.id] })).await.problem(400, "invalid-request")), ["/relatedIds/0"]);

        let again = world.admin.post(&world.path("/User"), json!({ "loginName": "ADA" })).await;
        assert_eq!(pointers(&again.problem(409, "conflict")), ["/loginName"]);
        let again = world.admin.post(&world.path("/User"), json!({ "loginName": "x", "id": ada.id })).await;
        assert_eq!(pointers(&again.problem(409, "conflict")), ["/id"]);
        let batch = json!([{ "loginName": "y" }, { "loginName": "Ada" }, { "loginName": "z", "id": ada.id }]);
        let again = world.admin.post(&world.path("/User/batch"), batch).await;
        assert_eq!(pointers(&again.problem(409, "conflict")), ["/1/loginName", "/2/id"]);
        let rename = json!({ "loginName": "ada", "concurrencyToken": world.admin.get(&world.path("/User/loginname/bob")).await.json()["concurrencyToken"] });
        let bob = world.admin.get(&world.path("/User/loginname/bob")).await.json();
        assert_eq!(pointers(&world.admin.patch(&world.path(&format!("/User/{}", id(&bob))), rename).await.problem(409, "conflict")), ["/loginName"]);
    }

    /// Restore brings the user back whole; an active one is 409, an unknown one 404.
    async fn a_restore_brings_everything_back(world: World) {
        let ada = Person::named(&world, "ada").await;
        let group = world.group("g").await;
        ada.post("groups", json!({ "relatedIds": [group["id"]] })).await.expect(202);
        let profiles = world.path(&format!("/user/{}/UserProfile", ada.id));
        world.admin.post(&profiles, json!({ "key": "k", "value": "v" })).await.expect(202);
        ada.change("not it", SECOND).await.expect(400);
        let before = ada.read().await;
        ada.call("restore-deletion").await.problem(409, "conflict");
        world.admin.delete(&ada.path).await.expect(204);
        ada.call("restore-deletion?dryRun=true").await.expect(200);
        ada.call("erase?dryRun=true").await.expect(204);
        let user = ada.call("restore-deletion").await.is(200).json();
        assert_ne!(user["concurrencyToken"], before["concurrencyToken"]);
        let mut expected = before.clone();
        expected["concurrencyToken"] = user["concurrencyToken"].clone();
        assert_eq!(user, expected);
        assert_eq!(ada.read().await, user);
        let group = world.admin.get(&world.path(&format!("/Group/{}", id(&group)))).await.is(200).json();
        assert_eq!(each(&group["memberUsers"], "loginName"), ["ada"]);
        assert_eq!(each(&world.admin.get(&profiles).await.is(200).json(), "value"), ["v"]);
        ada.call("lockout/reset").await.expect(200);
        assert!(ada.has(FIRST).await);
        ada.call("restore-deletion").await.problem(409, "conflict");
        let unknown_user = world.path(&format!("{UNKNOWN_USER}/restore-deletion"));
        world.admin.send(http::Method::POST, &unknown_user, &[], Vec::new()).await.problem(404, "not-found");
        let kinds = ada.events().await;
        assert_eq!(kinds[..5], ["created", "password-reset", "related", "deleted", "restored"]);
    }

    /// `?quarantined=true` lists the quarantined, and only them, with all list parameters.
    async fn the_quarantined_are_listed(world: World) {
        for name in ["a", "b", "c", "d"] {
            let person = Person::new(&world, json!({ "loginName": name })).await;
            if name != "c" {
                world.admin.delete(&person.path).await.expect(204);
            }
        }
        assert_eq!(logins(&world, "quarantined=true").await, ["a", "b", "d"]);
        assert_eq!(logins(&world, "quarantined=false").await, ["c"]);
        let filter = encode("loginName gt \"a\"");
        assert_eq!(logins(&world, &format!("quarantined=true&filter={filter}&sortBy=loginName&sortOrder=descending")).await, ["d", "b"]);
        let page = world.admin.get(&world.path("/User?quarantined=true&count=2&includeTotal=true")).await.is(200);
        assert_eq!(page.header("x-total-count"), Some("3"));
        let next = page.next().unwrap();
        assert_eq!(each(&world.admin.get(&next).await.is(200).json(), "loginName"), ["d"]);
        // a cursor belongs to its list
        let stray = next.replace("quarantined=true", "quarantined=false");
        world.admin.get(&stray).await.problem(400, "invalid-request");
        world.admin.get(&world.path("/User?quarantined=yes")).await.problem(400, "invalid-request");
        world.admin.get(&world.path("/Group?quarantined=true")).await.problem(400, "invalid-request");
        world.other_store("other").await;
        assert_eq!(world.admin.get("/api/userstore/v2/other/administration/User?quarantined=true").await.is(200).json(), json!([]));
    }

    /// With quarantine off the user is gone at once: the login name is free, the id never again.
    ///
    /// - Effect of `UserStore options.UserDeletionQuarantineEnabled`: A deleted user can be restored until the quarantine ends.
    async fn without_quarantine_a_user_is_gone(world: World) {
        set(&world.admin, "UserDeletionQuarantineEnabled", "false").await;
        let ada = Person::named(&world, "ada").await;
        let bob = Person::new(&world, json!({ "loginName": "bob" })).await;
        world.admin.delete(&ada.path).await.expect(204);
        world.admin.delete_with(&world.path("/User/batch"), json!([bob.id])).await.expect(204);
        assert_eq!(logins(&world, "quarantined=true").await, [""; 0]);
        ada.call("restore-deletion").await.problem(404, "not-found");
        assert_eq!(texts(&world, "SELECT hash FROM user_password").await, [""; 0]);
        let again = json!({ "loginName": "ada", "id": ada.id });
        assert_eq!(pointers(&world.admin.post(&world.path("/User"), again).await.problem(409, "conflict")), ["/id"]);
        world.admin.post(&world.path("/User"), json!({ "loginName": "ada" })).await.expect(201);
    }

    /// The job purges due users, by each store's duration.
    async fn the_job_purges_due_users(world: World) {
        let other = world.other_store("other").await;
        world.sql(vec![(
            "UPDATE option_value SET value = '2.00:00:00' WHERE apply_to_idp_instance_id = ?1 AND name = 'UserDeletionQuarantineDuration'",
            vec![Bound::Id(other)],
        )]).await;
        for store in ["default", "other"] {
            let users = format!("/api/userstore/v2/{store}/administration/User");
            for name in ["gone", "restored", "living"] {
                let user = world.admin.post(&users, json!({ "loginName": name })).await.is(201).json();
                if name != "living" {
                    world.admin.delete(&format!("{users}/{}", id(&user))).await.expect(204);
                }
                if name == "restored" {
                    let path = format!("{users}/{}/restore-deletion", id(&user));
                    world.admin.send(http::Method::POST, &path, &[], Vec::new()).await.expect(200);
                }
            }
        }
        let gone = world.admin.get(&world.path("/User?quarantined=true")).await.is(200).json()[0].clone();
        assert_eq!(purge_in(&world, 1).await, 0);
        assert_eq!(purge_in(&world, 3).await, 1, "the other store's");
        assert_eq!(logins(&world, "quarantined=true").await, ["gone"]);
        assert_eq!(world.admin.get("/api/userstore/v2/other/administration/User?quarantined=true").await.is(200).json(), json!([]));
        assert_eq!(purge_in(&world, 29).await, 0);
        // a store in read-only mode stays as it is
        set(&world.admin, "IsDatabaseReadOnlyMode", "true").await;
        assert_eq!(purge_in(&world, 31).await, 0);
        set(&world.admin, "IsDatabaseReadOnlyMode", "false").await;
        assert_eq!(purge_in(&world, 31).await, 1);
        assert_eq!(purge_in(&world, 31).await, 0);
        assert_eq!(logins(&world, "").await, ["restored", "living"]);
        let path = world.path(&format!("/User/{}/restore-deletion", id(&gone)));
        world.admin.send(http::Method::POST, &path, &[], Vec::new()).await.problem(404, "not-found");
        let again = json!({ "loginName": "gone", "id": gone["id"] });
        assert_eq!(pointers(&world.admin.post(&world.path("/User"), again).await.problem(409, "conflict")), ["/id"]);
        world.admin.post(&world.path("/User"), json!({ "loginName": "gone" })).await.expect(201);
        // an act of the server: an entry without a user, and nothing of the person
        let entries = world.audit(20).await;
        let purged = entries.iter().find(|entry| entry["primaryKey"] == gone["id"] && entry["user"].is_null()).unwrap();
        assert_eq!((&purged["action"], &purged["originalContent"], &purged["currentContent"]), (&json!("Deleted"), &json!(null), &json!(null)));
    }

    /// More than one batch is due at once.
    async fn the_job_purges_in_batches(world: World) {
        let people: Vec<_> = (0..250).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        let people = world.admin.post(&world.path("/User/batch"), json!(people)).await.is(200).json();
        world.admin.delete_with(&world.path("/User/batch"), json!(each(&people, "id"))).await.expect(204);
        assert_eq!(purge_in(&world, 31).await, 250);
        assert_eq!(logins(&world, "quarantined=true").await, [""; 0]);
    }

    /// Erasing is immediate and final, for active and quarantined users; their personal data in the trail
    /// is erased with them.
    async fn an_erased_user_is_gone_for_good(world: World) {
        for quarantined in [false, true] {
            let ada = Person::new(&world, json!({ "loginName": "ada", "firstName": "Ada" })).await;
            if quarantined {
                world.admin.delete(&ada.path).await.expect(204);
            }
            let before = ada.entries().await;
            assert!(before.iter().all(|entry| entry["originalContent"].is_string() || entry["currentContent"].is_string()));
            ada.call("erase").await.expect(204);
            ada.call("erase").await.problem(404, "not-found");
            ada.call("restore-deletion").await.problem(404, "not-found");
            world.admin.get(&ada.path).await.problem(404, "not-found");
            assert_eq!(logins(&world, "quarantined=true").await, [""; 0]);
            let after = ada.entries().await;
            assert_eq!(after.len(), before.len() + 1);
            for (entry, before) in after.iter().zip(&before) {
                assert_eq!((&entry["originalContent"], &entry["currentContent"], &entry["currentSalt"]), (&json!(null), &json!(null), &json!(null)));
                assert_eq!((&entry["currentDigest"], &entry["signature"]), (&before["currentDigest"], &before["signature"]));
            }
            assert_eq!(ada.events().await.last().unwrap(), "purged");
            let again = json!({ "loginName": "ada", "id": ada.id });
            assert_eq!(pointers(&world.admin.post(&world.path("/User"), again).await.problem(409, "conflict")), ["/id"]);
        }
    }
}
