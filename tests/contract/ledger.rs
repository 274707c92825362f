//! The audit trail proves itself: trees, checkpoints, proofs, export, verification.

mod certificate;
mod compaction;
mod healing;
mod person;
mod program;
mod proof;
mod tamper;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery::{ExportSummary, append_pending};
use chancery_ledger::{
    AuditKeys, Checkpoint, Finding, Hash, Stamp, Summary, leaf_data, leaf_hash, verify, verify_consistency,
    verify_inclusion,
};
use chancery_record::{Encoding, Kind, Timestamp, Value, parse_timestamp};
use chancery_store::{Error, Mode, raw};
use chancery_testkit::{Engine, World, on_both_engines};
use serde_json::{Value as Json, json};

use crate::{
    event::{HOLD, RELEASE, notice_events, overlook_events},
    id,
};

const NOW: Timestamp = Timestamp(1_795_253_400_000);

/// Runs the background job once. The server may run it at the same time.
async fn append_leaves(world: &World) {
    append_pending(&world.app, NOW).await.unwrap();
}

async fn keys(world: &World) -> AuditKeys {
    let published = world.anonymous.get("/.well-known/audit-keys.json").await.is(200);
    AuditKeys::from_jwks(std::str::from_utf8(&published.bytes).unwrap()).unwrap()
}

async fn note(world: &World) -> String {
    let answer = world.admin.get(&world.path("/CustomAuditTrail/checkpoint")).await.is(200);
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    String::from_utf8(answer.bytes.to_vec()).unwrap()
}

async fn checkpoint(world: &World) -> Checkpoint {
    Checkpoint::open(&note(world).await, &keys(world).await).unwrap()
}

fn hash(value: &Json) -> Hash {
    BASE64_STANDARD.decode(value.as_str().unwrap()).unwrap().try_into().unwrap()
}

fn hashes(value: &Json) -> Vec<Hash> {
    value.as_array().unwrap().iter().map(hash).collect()
}

async fn export(world: &World, name: &str) -> (String, ExportSummary) {
    let (store, master) = (&world.app.store, &world.app.context.master);
    let (out, exported) = chancery::export(store, master, name, NOW, Vec::new(), |_, _| ()).await.unwrap();
    (String::from_utf8(out).unwrap(), exported)
}

fn findings(text: &str, keys: &AuditKeys, note: Option<&str>) -> (Summary, Vec<Finding>) {
    let mut findings = Vec::new();
    let summary = verify(text.as_bytes(), keys, note, &mut |finding| findings.push(finding)).unwrap();
    (summary, findings)
}

/// Exports a trail and expects it to be sound.
async fn sound(world: &World, name: &str) -> (String, Summary) {
    let (text, exported) = export(world, name).await;
    let (summary, findings) = findings(&text, &keys(world).await, None);
    assert_eq!(findings, []);
    assert_eq!((summary.entries, &summary.origin), (exported.entries, &exported.origin));
    (text, summary)
}

async fn sql(world: &World, statements: Vec<(String, Vec<Value>)>) {
    let run = world.app.store.run("Test", Mode::Write, None, move |tx| {
        statements.iter().try_for_each(|(text, parameters)| raw::queue(tx, text, parameters.clone()))
    });
    run.await.map_err(|error: Error| error.to_string()).unwrap();
}

async fn rows(world: &World, text: &str, kinds: &[Kind]) -> Vec<Vec<Value>> {
    let (text, kinds) = (text.to_owned(), kinds.to_vec());
    let run = world.app.store.run("Test", Mode::Long, None, move |tx| {
        let mut rows = Vec::new();
        tx.query(&text, &[], |row| {
            let values = kinds.iter().enumerate().map(|(column, kind)| row.value(column, kind));
            rows.push(values.collect::<Result<Vec<_>, _>>()?);
            Ok(())
        })?;
        Ok::<_, Error>(rows)
    });
    run.await.unwrap()
}

const NUMBER: Kind = Kind::Int { min: 0, max: i64::MAX };

async fn numbers(world: &World, text: &str) -> Vec<i64> {
    let rows = rows(world, text, &[NUMBER]).await;
    rows.iter().map(|row| if let Value::Int(number) = row[0] { number } else { panic!("{row:?}") }).collect()
}

/// The hash of an entry's leaf, computed from the answer of the interface.
fn leaf(entry: &Json) -> Hash {
    let text = |member: &str| entry[member].as_str();
    let digest = |member: &str| -> Option<Vec<u8>> {
        let byte = |at| u8::from_str_radix(&text(member).unwrap()[at..at + 2], 16).unwrap();
        text(member).map(|text| (0..text.len()).step_by(2).map(byte).collect())
    };
    let bytes = |member: &str| BASE64_STANDARD.decode(text(member).unwrap()).unwrap();
    let stamp = Stamp {
        id: entry["id"].as_i64().unwrap(),
        timestamp: parse_timestamp(text("timestamp").unwrap()).unwrap(),
        user: text("user"),
        area: text("area").unwrap(),
        primary_key: text("primaryKey").unwrap(),
        category: text("category").unwrap(),
        action: text("action").unwrap(),
        data_source: text("dataSource").unwrap(),
        person: text("person").map(|id| id.parse().unwrap()),
    };
    let (original, current) = (digest("originalDigest"), digest("currentDigest"));
    let (signature, info) = (bytes("signature"), bytes("signaturePublicKeyInfo"));
    leaf_hash(&leaf_data(&stamp, original.as_deref(), current.as_deref(), &signature, &info))
}

/// A trail of every kind of change, an erased person among them, in a tree that grew twice.
async fn history(world: &World) {
    let erased = world.user("eve").await;
    let user = world.user("ada").await;
    let one = world.path(&format!("/User/{}", id(&user)));
    let patch = json!({ "firstName": "Ada", "concurrencyToken": user["concurrencyToken"] });
    world.admin.patch(&one, patch).await.expect(202);
    append_leaves(world).await;
    let group = world.group("g").await;
    world.admin.post(&format!("{one}/groups"), json!({ "relatedIds": [group["id"]] })).await.expect(202);
    let profile = world.path(&format!("/user/{}/UserProfile", id(&user)));
    world.admin.post(&profile, json!({ "key": "k", "value": "v" })).await.expect(202);
    world.admin.delete(&world.path(&format!("/Group/{}", id(&group)))).await.expect(204);
    let erase = world.path(&format!("/User/{}/erase", id(&erased)));
    world.admin.post(&erase, json!({})).await.expect(204);
    append_leaves(world).await;
}

on_both_engines! {
    async fn every_entry_is_proven_by_a_signed_checkpoint(world: World) {
        let trail = world.path("/CustomAuditTrail");
        let none = world.admin.get(&format!("{trail}/checkpoint")).await.problem(404, "not-found");
        assert!(none["detail"].as_str().unwrap().contains("tree yet"));
        for name in ["a", "b", "c", "d", "e"] {
            world.user(name).await;
        }
        append_leaves(&world).await;
        let (user, note) = (world.user("f").await, {
            append_leaves(&world).await;
            note(&world).await
        });
        let checkpoint = checkpoint(&world).await;
        assert_eq!(checkpoint.origin, format!("chancery/userstore/{}", user["instanceId"].as_str().unwrap()));
        assert_eq!(checkpoint.size, 6);
        for (position, entry) in world.audit(6).await.iter().rev().enumerate() {
            let proof = world.admin.get(&format!("{trail}/{}/inclusion-proof", entry["id"])).await.is(200).json();
            assert_eq!((&proof["id"], &proof["position"], &proof["treeSize"]), (&entry["id"], &json!(position), &json!(6)));
            assert_eq!(proof["checkpoint"], json!(note));
            let leaf = leaf(entry);
            assert_eq!(leaf, hash(&proof["leafHash"]));
            let (position, proof) = (proof["position"].as_u64().unwrap(), hashes(&proof["hashes"]));
            assert!(verify_inclusion(&leaf, position, 6, &proof, &checkpoint.root));
        }
        world.admin.get(&format!("{trail}/1/inclusion-proof")).await.problem(404, "not-found");
        world.admin.get(&format!("{trail}/x/inclusion-proof")).await.problem(400, "invalid-request");
        world.admin.post(&format!("{trail}/checkpoint"), json!({})).await.problem(405, "method-not-allowed");
        // a store's proofs are its own
        world.other_store("other").await;
        let other = "/api/userstore/v2/other/administration/CustomAuditTrail";
        world.admin.get(&format!("{other}/checkpoint")).await.problem(404, "not-found");
        let entry = &world.audit(1).await[0]["id"];
        world.admin.get(&format!("{other}/{entry}/inclusion-proof")).await.problem(404, "not-found");
        let auditor = world.client("auditor", &[("AuditTrailReader", None, None)]).await;
        auditor.get(&format!("{trail}/{entry}/inclusion-proof")).await.expect(200);
    }

    async fn a_later_tree_goes_on_from_an_earlier_one(world: World) {
        let proof = world.path("/CustomAuditTrail/consistency-proof");
        let nothing = world.admin.get(&format!("{proof}?from=0&to=0")).await.is(200).json();
        assert_eq!((hashes(&nothing["hashes"]), &nothing["fromRootHash"]), (vec![], &nothing["toRootHash"]));
        let mut checkpoints = Vec::new();
        for name in ["a", "b", "c", "d", "e", "f", "g"] {
            world.user(name).await;
            append_leaves(&world).await;
            checkpoints.push(checkpoint(&world).await);
        }
        for later in &checkpoints {
            for earlier in checkpoints.iter().filter(|earlier| earlier.size <= later.size) {
                let (from, to) = (earlier.size, later.size);
                let answer = world.admin.get(&format!("{proof}?from={from}&to={to}")).await.is(200).json();
                assert_eq!((hash(&answer["fromRootHash"]), hash(&answer["toRootHash"])), (earlier.root, later.root));
                assert!(verify_consistency(from, &earlier.root, to, &later.root, &hashes(&answer["hashes"])));
            }
        }
        let newest = world.admin.get(&format!("{proof}?from=3")).await.is(200).json();
        assert_eq!(newest, world.admin.get(&format!("{proof}?from=3&to=7")).await.is(200).json());
        for wrong in ["?from=", "?from=8", "?from=3&to=2", "?from=1&to=8", "?from=-1&to=2", "?from=x&to=2", "?from=1&to=2&size=3"] {
            world.admin.get(&format!("{proof}{wrong}")).await.problem(400, "invalid-request");
        }
    }

    /// More entries than one transaction takes, and more than one tile.
    async fn many_entries_make_one_tree(world: World) {
        let users: Vec<Json> = (0..1300).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        for (first, second) in [(0, 700), (700, 1300)] {
            let batch = Json::from(users[first..second].to_vec());
            world.admin.post(&world.path("/User/batch"), batch).await.expect(200);
            append_leaves(&world).await;
        }
        assert_eq!(sound(&world, "default").await.1.entries, 1300);
        let leaves = numbers(&world, "SELECT position FROM audit_leaf WHERE store > 0 ORDER BY position").await;
        assert!(leaves.into_iter().eq(0..1300));
        let auditor = checkpoint(&world).await;
        let proof = world.admin.get(&world.path("/CustomAuditTrail/consistency-proof?from=700&to=1300")).await.is(200).json();
        let (from, to) = (hash(&proof["fromRootHash"]), hash(&proof["toRootHash"]));
        assert_eq!((auditor.size, auditor.root), (1300, to));
        assert!(verify_consistency(700, &from, 1300, &to, &hashes(&proof["hashes"])));
    }

    async fn jobs_at_once_make_one_tree(world: World) {
        for round in 0..3 {
            let users: Vec<Json> = (0..60).map(|number| json!({ "loginName": format!("{round}u{number}") })).collect();
            world.admin.post(&world.path("/User/batch"), users.into()).await.expect(200);
            tokio::join!(append_leaves(&world), append_leaves(&world), append_leaves(&world));
            assert_eq!(numbers(&world, "SELECT count(*) FROM event_pending").await, [0]);
            assert_eq!(sound(&world, "default").await.1.entries, 60 * (round + 1));
        }
    }

    async fn the_configuration_has_a_trail_too(world: World) {
        world.admin.post("/api/management/v2/Customer", json!({ "name": "c" })).await.expect(201);
        append_leaves(&world).await;
        let (text, summary) = sound(&world, "management").await;
        assert_eq!(summary.origin, "chancery/management");
        assert!(summary.entries > 0 && text.contains("\"area\":\"Customer\""));
        assert_eq!(sound(&world, "configuration").await.0, text);
        // a trail without entries is sound
        world.other_store("other").await;
        assert_eq!(sound(&world, "other").await.1.entries, 0);
    }
}

const DAMAGE: &str = "UPDATE audit_tree SET checkpoint = checkpoint || 'x' WHERE store > 0";
const REPAIR: &str =
    "UPDATE audit_tree SET checkpoint = substr(checkpoint, 1, length(checkpoint) - 1) WHERE store > 0";

on_both_engines! {
    /// A tampered tree gets no new checkpoint that would vouch for it.
    async fn a_tree_that_was_tampered_with_does_not_grow(world: World) {
        world.user("a").await;
        world.user("b").await;
        append_leaves(&world).await;
        let original = note(&world).await;
        let node = "UPDATE audit_node SET hash = ?1 WHERE store > 0 AND level = 1";
        let [old] = &rows(&world, "SELECT hash FROM audit_node WHERE store > 0 AND level = 1", &[Kind::Bytes(Encoding::Hex)]).await[..] else { panic!() };
        for (name, damage, repair) in [
            ("c", (DAMAGE, vec![]), (REPAIR, vec![])),
            ("d", (node, vec![Value::Bytes(vec![7; 32])]), (node, old.clone())),
            ("e", ("UPDATE audit_tree SET size = 1 WHERE store > 0", vec![]), ("UPDATE audit_tree SET size = 2 WHERE store > 0", vec![])),
            ("f", ("UPDATE audit_tree SET size = 4, checkpoint = NULL WHERE store > 0", vec![]), ("UPDATE audit_tree SET size = 2, checkpoint = ?1 WHERE store > 0", vec![original.as_str().into()])),
        ] {
            sql(&world, vec![(damage.0.to_owned(), damage.1)]).await;
            world.user(name).await;
            let entry = &world.audit(1).await[0]["id"];
            append_pending(&world.app, NOW).await.unwrap_err();
            let proof = world.path(&format!("/CustomAuditTrail/{entry}/inclusion-proof"));
            let waits = world.admin.get(&proof).await.problem(404, "not-found");
            assert!(waits["detail"].as_str().unwrap().contains("not in the trail's tree yet"));
            // other trees continue
            world.admin.post("/api/management/v2/Customer", json!({ "name": "c" })).await.expect(201);
            append_pending(&world.app, NOW).await.unwrap_err();
            let unlogged = "SELECT t.leaves - a.size FROM event_trail t JOIN audit_tree a ON a.store = t.trail WHERE t.trail = 0";
            assert_eq!(numbers(&world, unlogged).await, [0]);
            // a tree delays no event
            assert_eq!(numbers(&world, "SELECT count(*) FROM event_pending").await, [0]);
            sql(&world, vec![(repair.0.to_owned(), repair.1)]).await;
        }
        append_leaves(&world).await;
        assert_eq!(sound(&world, "default").await.1.entries, 6);
    }

    /// Statistics that PostgreSQL took while an import was not committed say that tables are empty: plans based on that must
    /// not read all of the trail for each leaf.
    async fn a_tree_grows_where_tables_look_empty(world: World) {
        world.user("first").await;
        append_leaves(&world).await;
        world.sql(vec![(HOLD, vec![])]).await;
        let users: Vec<Json> = (0..3000).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        world.admin.post(&world.path("/User/batch"), json!(users)).await.expect(200);
        if world.engine == Engine::Postgres {
            world.sql(vec![
                ("ANALYZE", vec![]),
                ("UPDATE pg_class SET reltuples = 0 WHERE relname LIKE 'audit_%'", vec![]),
                ("DELETE FROM pg_statistic WHERE starelid IN ('audit_entry'::regclass, 'audit_leaf'::regclass)", vec![]),
            ]).await;
        }
        world.sql(vec![(RELEASE, vec![])]).await;
        append_leaves(&world).await;
        assert_eq!(sound(&world, "default").await.1.entries, 3001);
        assert_eq!(checkpoint(&world).await.size, 3001);
    }

    /// Numbers are taken before the commit: an entry may come after one with a higher number.
    async fn a_late_entry_comes_later_in_the_tree(world: World) {
        world.user("first").await;
        append_leaves(&world).await;
        overlook_events(&world).await;
        world.user("late").await;
        notice_events(&world).await;
        world.user("early").await;
        let entries = world.audit(2).await;
        let late = entries[1]["id"].as_i64().unwrap();
        append_leaves(&world).await;
        assert_eq!(checkpoint(&world).await.size, 2);
        let store = numbers(&world, "SELECT max(store) FROM audit_tree").await[0];
        sql(&world, vec![("INSERT INTO event_pending (event, trail, tree) VALUES (?1, ?2, ?2)".to_owned(), vec![late.into(), store.into()])]).await;
        append_leaves(&world).await;
        let (text, _) = sound(&world, "default").await;
        let lines: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&lines[3]["id"], &lines[4]["id"]), (&entries[0]["id"], &entries[1]["id"]));
        assert_eq!(lines[4]["position"], 2);
    }
}
