//! The audit trail: one signed entry a change, in the same transaction, with its event.

use aws_lc_rs::{
    digest::{SHA256, digest},
    signature::{ED25519, UnparsedPublicKey},
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use crate::{id, signing::texts};

fn decoded(value: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(value.as_str().unwrap()).unwrap()
}

/// Verifies an entry as its reader would: digests over salts and contents, the signature over
/// the canonical form. serde_json keeps members sorted, and all numbers here are whole.
fn assert_sound(entry: &Value) {
    for side in ["original", "current"] {
        let (content, salt, expected) = (
            &entry[format!("{side}Content")],
            &entry[format!("{side}Salt")],
            &entry[format!("{side}Digest")],
        );
        if content.is_null() {
            assert!(salt.is_null() && expected.is_null());
            continue;
        }
        let salt = decoded(salt);
        assert_eq!(salt.len(), 32);
        let content = content.as_str().unwrap();
        let canonical: Value = serde_json::from_str(content).unwrap();
        assert_eq!(content, canonical.to_string(), "contents are canonical");
        let computed = digest(&SHA256, &[salt, content.as_bytes().to_vec()].concat());
        let computed: String = computed.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(expected, &computed);
    }
    let mut signed = json!({});
    for member in [
        "id",
        "timestamp",
        "user",
        "area",
        "primaryKey",
        "category",
        "action",
        "dataSource",
        "originalDigest",
        "currentDigest",
    ] {
        signed[member] = entry[member].clone();
    }
    let info = decoded(&entry["signaturePublicKeyInfo"]);
    let key = UnparsedPublicKey::new(&ED25519, &info[12..]);
    key.verify(signed.to_string().as_bytes(), &decoded(&entry["signature"])).unwrap();
}

async fn envelopes(world: &World) -> Vec<String> {
    texts(world, "SELECT envelope FROM outbox_event ORDER BY id").await
}

async fn events(world: &World) -> Vec<Value> {
    envelopes(world).await.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// An event as it is written, member for member.
fn envelope_of(event: &Value, data: &str) -> String {
    let member = |name: &str| &event[name];
    format!(
        "{{\"specversion\":\"1.0\",\"id\":{},\"type\":{},\"subject\":{},\"time\":{},\
         \"datacontenttype\":\"application/json\",\"data\":{{\"id\":{},\"actor\":{}{data}}}}}",
        member("id"),
        member("type"),
        member("subject"),
        member("time"),
        event["data"]["id"],
        event["data"]["actor"],
    )
}

on_both_engines! {
    async fn every_change_leaves_a_signed_entry_and_an_event(world: World) {
        let user = world.user("ada").await;
        let one = world.path(&format!("/User/{}", id(&user)));
        let patch = json!({ "firstName": "Ada", "concurrencyToken": user["concurrencyToken"] });
        world.admin.patch(&one, patch).await.expect(202);
        let group = world.group("g").await;
        world.admin.post(&format!("{one}/groups"), json!({ "relatedIds": [group["id"]] })).await.expect(202);
        // nothing changes, so there is no entry
        world.admin.post(&format!("{one}/groups"), json!({ "relatedIds": [group["id"]] })).await.expect(202);
        world.admin.delete(&one).await.expect(204);
        world.admin.delete(&world.path(&format!("/Group/{}", id(&group)))).await.expect(204);
        let entries = world.audit(10).await;
        let rows: Vec<_> = entries.iter().rev().map(|entry| (entry["area"].as_str().unwrap(), entry["action"].as_str().unwrap())).collect();
        assert_eq!(rows, [("User", "Added"), ("User", "Modified"), ("Group", "Added"), ("User", "Modified"), ("User", "Deleted"), ("Group", "Deleted")]);
        for entry in &entries {
            assert_sound(entry);
            assert_eq!(entry["category"], "DatabaseRecordChange");
            assert_eq!(entry["dataSource"], "default");
            assert!(entry["user"].is_string());
        }
        let change: Value = serde_json::from_str(entries[2]["currentContent"].as_str().unwrap()).unwrap();
        assert_eq!(change, json!({ "memberOfGroups": { "added": [group["id"]], "removed": [] } }));
        let modified: Value = serde_json::from_str(entries[4]["currentContent"].as_str().unwrap()).unwrap();
        assert_eq!((&modified["firstName"], &modified["loginName"]), (&json!("Ada"), &json!("ada")));

        let events: Vec<Value> = events(&world).await.into_iter().filter(|event| event["type"].as_str().unwrap().starts_with("platform.userstore.")).collect();
        let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
        assert_eq!(kinds, ["platform.userstore.user.created", "platform.userstore.user.updated", "platform.userstore.group.created",
            "platform.userstore.user.related", "platform.userstore.user.deleted", "platform.userstore.group.deleted"]);
        assert_eq!(events[1]["data"]["changed"], json!(["firstName"]));
        assert_eq!((&events[0]["specversion"], &events[0]["subject"]), (&json!("1.0"), &user["id"]));
        assert!(!events.iter().any(|event| event.to_string().contains("Ada")), "never a value");
        let related = &group["id"];
        let envelopes = envelopes(&world).await;
        for (event, data) in [
            (&events[1], r#","changed":["firstName"]"#),
            (&events[3], &format!(r#","relation":"memberOfGroups","added":[{related}],"removed":[]"#)),
            (&events[4], ""),
        ] {
            let expected = envelope_of(event, data);
            assert!(envelopes.contains(&expected), "{expected}");
        }
    }

    /// A change's number is also above its row's last, which a process whose clock is
    /// ahead may have made.
    async fn a_change_has_a_number_above_its_rows_last(world: World) {
        let user = world.user("ada").await;
        let one = world.path(&format!("/User/{}", id(&user)));
        let ahead = 4_000_000_000_000_000_i64;
        world.sql(vec![("UPDATE user_account SET last_entry = ?1", vec![ahead.into()])]).await;
        let patch = json!({ "firstName": "Ada", "concurrencyToken": user["concurrencyToken"] });
        world.admin.patch(&one, patch).await.expect(202);
        // as if it had been another process: this one does not know that number
        world.sql(vec![("UPDATE user_account SET last_entry = last_entry + ?1", vec![ahead.into()])]).await;
        world.admin.delete(&one).await.expect(204);
        let entries = world.audit(2).await;
        let numbers: Vec<i64> = entries.iter().map(|entry| entry["id"].as_i64().unwrap()).collect();
        assert!(numbers[1] > ahead && numbers[0] > numbers[1] + ahead - 1, "{numbers:?}");
    }

    async fn entries_are_listed_filtered_and_read(world: World) {
        for name in ["a", "b", "c"] {
            world.user(name).await;
        }
        world.group("g").await;
        let trail = world.path("/CustomAuditTrail");
        let all = world.admin.get(&trail).await.is(200).json();
        let numbers: Vec<i64> = all.as_array().unwrap().iter().map(|entry| entry["id"].as_i64().unwrap()).collect();
        assert!(numbers.len() == 4 && numbers.is_sorted());
        let filtered = world.admin.get(&format!("{trail}?filter=area%20eq%20%22Group%22")).await.is(200).json();
        assert_eq!(filtered.as_array().unwrap().len(), 1);
        let one = world.admin.get(&format!("{trail}/{}", numbers[1])).await.is(200).json();
        assert_eq!(one, all[1]);
        let page = world.admin.get(&format!("{trail}?count=3&sortBy=timestamp")).await.is(200);
        assert_eq!(world.admin.get(&page.next().unwrap()).await.is(200).json().as_array().unwrap().len(), 1);
        world.admin.get(&format!("{trail}/1")).await.problem(404, "not-found");
        world.admin.get(&format!("{trail}/x")).await.problem(400, "invalid-request");
        world.admin.delete(&format!("{trail}/1")).await.problem(405, "method-not-allowed");
        // a store's trail is its own
        world.other_store("other").await;
        assert_eq!(world.admin.get("/api/userstore/v2/other/administration/CustomAuditTrail").await.is(200).json(), json!([]));
        let range = format!("{trail}?filter=id%20ge%20{}%20and%20id%20lt%20{}", numbers[1], numbers[3]);
        assert_eq!(world.admin.get(&range).await.is(200).json().as_array().unwrap().len(), 2);
    }

    async fn refused_changes_leave_nothing(world: World) {
        world.user("ada").await;
        let before = (world.audit(10).await, events(&world).await);
        world.admin.post(&world.path("/User"), json!({ "loginName": "ada" })).await.expect(409);
        world.admin.post(&world.path("/User/batch"), json!([{ "loginName": "x" }, { "loginName": "ada" }])).await.expect(409);
        assert_eq!((world.audit(10).await, events(&world).await), before);
    }

    async fn the_keys_are_published(world: World) {
        world.user("ada").await;
        let keys = world.anonymous.get("/.well-known/audit-keys.json").await.is(200).json();
        let published = BASE64_URL_SAFE_NO_PAD.decode(keys["keys"][0]["x"].as_str().unwrap()).unwrap();
        assert_eq!(decoded(&world.audit(1).await[0]["signaturePublicKeyInfo"])[12..], published);
    }
}
