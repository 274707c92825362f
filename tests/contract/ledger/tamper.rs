//! Any change of a stored trail is detected, and its position is named.

use chancery_ledger::{Finding, FindingKind};
use chancery_record::{Encoding, Kind, Value};
use chancery_testkit::{World, on_both_engines};

use super::{DAMAGE, NUMBER, append_leaves, export, findings, history, keys, note, rows, sound, sql};

/// The tables that make up a trail.
const TABLES: [&str; 4] = ["audit_entry", "audit_leaf", "audit_node", "audit_tree"];

async fn back_up(world: &World) {
    let copy = |table| (format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}"), vec![]);
    sql(world, TABLES.map(copy).to_vec()).await;
}

async fn restore(world: &World) {
    let restore = |table| {
        [format!("DELETE FROM {table}"), format!("INSERT INTO {table} SELECT * FROM kept_{table}")]
            .map(|text| (text, vec![]))
    };
    sql(world, TABLES.map(restore).concat()).await;
}

const TEXT: Kind = Kind::Choice(&[]);
const BYTES: Kind = Kind::Bytes(Encoding::Hex);

/// The columns of an entry: name, kind, whether it can be null.
const COLUMNS: [(&str, Kind, bool); 18] = [
    ("rid", NUMBER, false),
    ("store", NUMBER, false),
    ("timestamp", NUMBER, false),
    ("actor", TEXT, true),
    ("area", TEXT, false),
    ("primary_key", TEXT, false),
    ("category", TEXT, false),
    ("action", TEXT, false),
    ("data_source", TEXT, false),
    ("original_content", TEXT, true),
    ("current_content", TEXT, true),
    ("original_salt", BYTES, true),
    ("current_salt", BYTES, true),
    ("original_digest", BYTES, true),
    ("current_digest", BYTES, true),
    ("signature", BYTES, false),
    ("signature_public_key_info", BYTES, false),
    ("person", Kind::Id, true),
];

/// Other values for a column.
fn others(kind: &Kind, nullable: bool, value: &Value) -> Vec<Value> {
    let mut others = match (value, kind) {
        (Value::Int(number), _) => vec![Value::Int(number - 1_000_000_000), Value::Int(number + 77)],
        (Value::Text(text), _) => {
            let end = text.char_indices().last().map_or(0, |(at, _)| at);
            vec![Value::Text(format!("{text}x")), Value::Text(text[..end].to_owned())]
        }
        (Value::Bytes(bytes), _) => {
            let mut flipped = bytes.clone();
            flipped[bytes.len() / 2] ^= 1;
            vec![Value::Bytes(flipped), Value::Bytes(bytes[1..].to_vec())]
        }
        (Value::Null, Kind::Bytes(_)) => vec![Value::Bytes(vec![7; 32])],
        (_, Kind::Id) => vec![Value::Id(uuid::Uuid::from_u128(7))],
        _ => vec![Value::from("x")],
    };
    if nullable && !value.is_null() {
        others.push(Value::Null);
    }
    others
}

on_both_engines! {
    async fn a_changed_column_of_any_entry_is_detected(world: World) {
        history(&world).await;
        back_up(&world).await;
        let keys = keys(&world).await;
        let (whole, _) = sound(&world, "default").await;
        let text = format!("SELECT {} FROM audit_leaf l JOIN audit_entry e ON e.rid = l.entry WHERE l.store > 0 ORDER BY l.position",
            COLUMNS.map(|(column, ..)| format!("e.{column}")).join(", "));
        let entries = rows(&world, &text, &COLUMNS.map(|(_, kind, _)| kind)).await;
        assert_eq!(entries.len(), 8);
        let mut write_only = 0;
        for (position, entry) in entries.iter().enumerate() {
            let Value::Int(number) = entry[0] else { panic!() };
            for ((column, kind, nullable), value) in COLUMNS.iter().zip(entry) {
                for other in others(kind, *nullable, value) {
                    let what = format!("{column} of {position}: {value:?} to {other:?}");
                    let update = format!("UPDATE audit_entry SET {column} = ?1 WHERE rid = ?2");
                    sql(&world, vec![(update, vec![other, number.into()])]).await;
                    let (text, _) = export(&world, "default").await;
                    restore(&world).await;
                    if text == whole {
                        // contents that the person's key does not open are ignored, before and after
                        assert!(["original_content", "current_content", "original_salt", "current_salt", "person"].contains(column), "{what}");
                        assert!([0, 7].contains(&position) || value.is_null(), "{what}");
                        write_only += 1;
                        continue;
                    }
                    let (_, detected) = findings(&text, &keys, None);
                    let names = |finding: &Finding| finding.id == Some(number) || finding.position == Some(position as u64);
                    assert!(detected.iter().any(names), "{what}: {detected:?}");
                }
            }
        }
        assert!(write_only > 0, "contents of the erased");
        assert_eq!(sound(&world, "default").await.0, whole);
    }

    async fn removed_inserted_and_moved_rows_are_detected(world: World) {
        history(&world).await;
        back_up(&world).await;
        let keys = keys(&world).await;
        let columns = COLUMNS.map(|(column, ..)| column)[1..].join(", ");
        let (own, new) = ("store > 0".to_owned(), 1_700_000_000_000_000_i64);
        let entry = |at: u64| format!("(SELECT entry FROM kept_audit_leaf WHERE {own} AND position = {at})");
        let copy = |at: u64| format!("INSERT INTO audit_entry (rid, {columns}) SELECT {new}, {columns} FROM audit_entry WHERE rid = {}", entry(at));
        let drop_entry = |at: u64| format!("DELETE FROM audit_entry WHERE rid = {}", entry(at));
        let mut tamperings: Vec<(Vec<String>, FindingKind, Option<u64>)> = Vec::new();
        for at in 0..8 {
            tamperings.extend([
                (vec![drop_entry(at)], FindingKind::Removed, Some(at)),
                (vec![format!("DELETE FROM audit_leaf WHERE {own} AND position = {at}")], FindingKind::Reordered, Some(at)),
                (vec![copy(at)], FindingKind::Inserted, None),
                // inserted into the tree, instead of the entry that it is a copy of
                (vec![copy(at), format!("UPDATE audit_leaf SET entry = {new} WHERE {own} AND position = {at}")], FindingKind::Signature, Some(at)),
                // after the end of the tree
                (vec![copy(at), format!("INSERT INTO audit_leaf (store, position, entry) SELECT store, 8, {new} FROM audit_tree WHERE {own}")], FindingKind::Inserted, None),
                (vec![format!("UPDATE audit_node SET hash = (SELECT hash FROM audit_node WHERE {own} AND level = 1 AND position = 0) WHERE {own} AND level = 0 AND position = {at}")], FindingKind::Altered, Some(at)),
                (vec![format!("DELETE FROM audit_node WHERE {own} AND level = 0 AND position = {at}")], FindingKind::Altered, Some(at)),
                // with all its tree nodes; later entries move up
                (vec![
                    drop_entry(at),
                    format!("DELETE FROM audit_leaf WHERE {own} AND position = {at}"),
                    format!("DELETE FROM audit_node WHERE {own} AND level = 0 AND position = {at}"),
                    format!("UPDATE audit_tree SET size = {at} WHERE {own}"),
                ], FindingKind::Head, None),
            ]);
            for other in (0..8).filter(|other| *other != at) {
                let set = |at: u64, value: String| format!("UPDATE audit_leaf SET entry = {value} WHERE {own} AND position = {at}");
                tamperings.push((vec![set(at, "-1".to_owned()), set(other, entry(at)), set(at, entry(other))], FindingKind::Reordered, Some(at)));
            }
        }
        for left in 0..8 {
            let behind = format!("{own} AND position >= {left}");
            tamperings.push((vec![
                format!("DELETE FROM audit_entry WHERE rid IN (SELECT entry FROM audit_leaf WHERE {behind})"),
                format!("DELETE FROM audit_leaf WHERE {behind}"),
                format!("DELETE FROM audit_node WHERE {behind} AND level = 0"),
            ], if left == 0 { FindingKind::Cut } else { FindingKind::Removed }, Some(left)));
        }
        tamperings.extend([
            (vec![DAMAGE.to_owned()], FindingKind::Checkpoint, None),
            (vec![format!("UPDATE audit_tree SET checkpoint = replace(checkpoint, 'chancery/', 'chancerx/') WHERE {own}")], FindingKind::Checkpoint, None),
            (vec![format!("UPDATE audit_tree SET checkpoint = NULL WHERE {own}")], FindingKind::Checkpoint, None),
            (vec![format!("UPDATE audit_tree SET size = 9 WHERE {own}")], FindingKind::Head, None),
            (vec![format!("UPDATE audit_tree SET size = 1000000000000 WHERE {own}")], FindingKind::Head, None),
            (vec![format!("DELETE FROM audit_tree WHERE {own}")], FindingKind::Inserted, None),
        ]);
        for (statements, expected, position) in tamperings {
            sql(&world, statements.iter().map(|text| (text.clone(), vec![])).collect()).await;
            let (text, _) = export(&world, "default").await;
            restore(&world).await;
            let (_, detected) = findings(&text, &keys, None);
            let is_expected = |finding: &Finding| finding.kind == expected && (position.is_none() || finding.position == position);
            assert!(detected.iter().any(is_expected), "{statements:?}: {detected:?}");
            if statements.len() < 3 && statements[0] == copy(0) {
                assert!(detected.iter().any(|finding| finding.id == Some(new)), "{detected:?}");
            }
        }
    }

    /// An older backup can be restored unnoticed. A newer checkpoint that was kept detects it.
    async fn a_restored_older_trail_is_detected_by_a_newer_checkpoint(world: World) {
        world.user("ada").await;
        append_leaves(&world).await;
        back_up(&world).await;
        world.user("eve").await;
        append_leaves(&world).await;
        let (keys, newer_checkpoint) = (keys(&world).await, note(&world).await);
        restore(&world).await;
        sql(&world, vec![("UPDATE event_trail SET leaves = 1 WHERE trail > 0".to_owned(), vec![])]).await;
        let (text, _) = sound(&world, "default").await;
        let (_, detected) = findings(&text, &keys, Some(&newer_checkpoint));
        assert_eq!((detected[0].kind, detected[0].position), (FindingKind::Cut, Some(1)));
        // and entries added afterwards are another history
        world.user("bob").await;
        append_leaves(&world).await;
        let (text, _) = sound(&world, "default").await;
        assert_eq!(findings(&text, &keys, Some(&newer_checkpoint)).1[0].kind, FindingKind::Root);
    }
}
