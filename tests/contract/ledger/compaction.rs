//! Contents of audit entries that 0.1.0 stored as they are become compressed, and nothing that can be read changes.

use std::{collections::HashMap, sync::Mutex};

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use chancery::compact;
use chancery_record::Value;
use chancery_resource::PersonKey;
use chancery_store::{Class, Error, Mode};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::{append_leaves, export, numbers, sound, sql};
use crate::{id, identity_replacement::open_replacement};

/// The keys of all people, by their ids.
async fn keys_of_people(world: &World) -> HashMap<Uuid, PersonKey> {
    let master = world.app.context.master.clone();
    let read = world.app.store.run("Test", Mode::Long, None, move |tx| {
        let mut keys = HashMap::new();
        for table in ["user_account", "application_user"] {
            let text = format!("SELECT id, audit_key FROM {table} WHERE audit_key IS NOT NULL");
            tx.query(&text, &[], |row| {
                let id = row.id(0)?;
                keys.extend(PersonKey::open(&master, id, row.bytes(1)?).map(|key| (id, key)));
                Ok(())
            })?;
        }
        Ok::<_, Error>(keys)
    });
    read.await.unwrap()
}

/// Stores the contents of people in these trails as 0.1.0 did, and notes that they are to be compressed, as the migration does.
/// Returns their number.
async fn store_uncompressed(world: &World, trails: &[&str]) -> u64 {
    let (keys, mut statements) = (keys_of_people(world).await, Vec::new());
    for trail in trails {
        for line in export(world, trail).await.0.lines() {
            let entry: Json = serde_json::from_str(line).unwrap();
            let person = entry["person"].as_str().and_then(|person| keys.get(&person.parse().unwrap()));
            let (Some(person), Some(number)) = (person, entry["id"].as_i64()) else { continue };
            for (member, column) in
                [("originalContent", "original_content"), ("currentContent", "current_content")]
            {
                let Some(content) = entry[member].as_str() else { continue };
                let sealed = person.seal_bytes(&format!("audit_entry/{column}/{number}"), content.as_bytes());
                let stored = format!("\u{1}{}", BASE64_STANDARD_NO_PAD.encode(sealed));
                let update = format!("UPDATE audit_entry SET {column} = ?1 WHERE rid = ?2");
                statements.push((update, vec![Value::Text(stored), Value::Int(number)]));
            }
        }
    }
    let count = statements.len() as u64;
    let note = "INSERT INTO audit_compaction (position, last) SELECT min(rid) - 1, max(rid) FROM audit_entry";
    statements.push((note.to_owned(), Vec::new()));
    sql(world, statements).await;
    count
}

/// The number of contents by how they are stored: encrypted as they are, and compressed before.
async fn stored(world: &World) -> (i64, i64) {
    let count = |mark: &str, column: &str| {
        format!("(SELECT count(*) FROM audit_entry WHERE substr({column}, 1, 1) = '{mark}')")
    };
    let of = |mark: &str| {
        format!("SELECT {} + {}", count(mark, "original_content"), count(mark, "current_content"))
    };
    (numbers(world, &of("\u{1}")).await[0], numbers(world, &of("\u{2}")).await[0])
}

on_both_engines! {
    /// The entries of users, of a platform user and of an erased user are stored as 0.1.0 stored them; there are more of them than the
    /// job processes at a time. After the compression, exports, which contain signatures and digests, are equal byte for byte.
    async fn contents_of_an_older_release_are_compressed_in_pieces(world: World) {
        open_replacement(&world).await;
        let bodies: Vec<_> = (0..250).map(|number| json!({ "loginName": format!("u{number}"), "lastName": "Lovelace" })).collect();
        world.admin.post(&world.path("/User/batch"), json!(bodies)).await.expect(200);
        let erased = world.user("eve").await;
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&erased))), json!({})).await.expect(204);
        append_leaves(&world).await;
        let trails = ["default", "management"];
        let (before, compressed) = (stored(&world).await, store_uncompressed(&world, &trails).await);
        let mut exports = Vec::new();
        for trail in trails {
            exports.push(sound(&world, trail).await.0);
        }
        let older = stored(&world).await;
        assert!(compressed > 250 && older.0 - before.0 == i64::try_from(compressed).unwrap(), "{before:?} {older:?}");

        let seen = Mutex::new(Vec::new());
        let progress = |entries, done| seen.lock().unwrap().push((entries, done));
        let store = world.app.store.with(Class::Background);
        assert_eq!(compact(&store, &world.app.context.master, &progress).await, Ok(compressed));
        let (seen, entries) = (seen.into_inner().unwrap(), numbers(&world, "SELECT count(*) FROM audit_entry").await[0]);
        let entries = u64::try_from(entries).unwrap();
        assert!(seen.starts_with(&[(entries, 0), (entries, 200)]) && seen.ends_with(&[(entries, entries)]), "{seen:?}");
        assert_eq!(stored(&world).await, before);
        for (trail, export) in trails.into_iter().zip(exports) {
            assert_eq!(sound(&world, trail).await.0, export, "{trail}");
        }
        assert_eq!(numbers(&world, "SELECT count(*) FROM audit_compaction").await, [0]);
        assert_eq!(compact(&store, &world.app.context.master, &|_, _| ()).await, Ok(0), "nothing is left");
    }

    /// A process that stops between two pieces leaves the rest to the next one.
    async fn compression_continues_where_it_was_interrupted(world: World) {
        for name in ["ann", "ben", "eve"] {
            world.user(name).await;
        }
        append_leaves(&world).await;
        let compressed = store_uncompressed(&world, &["default"]).await;
        let middle = "UPDATE audit_compaction SET position = (SELECT max(rid) - 1 FROM audit_entry)";
        sql(&world, vec![(middle.to_owned(), Vec::new())]).await;
        let store = world.app.store.with(Class::Background);
        assert_eq!((compressed, compact(&store, &world.app.context.master, &|_, _| ()).await), (3, Ok(1)));
    }
}
