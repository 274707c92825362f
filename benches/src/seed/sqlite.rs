//! Seeding an embedded database, without the server and without durability.

use std::path::Path;

use rusqlite::{Connection, params};

use super::{GROUP_COLUMNS, STORE, TABLES, USER_COLUMNS, folded, group_name};
use crate::{
    fault::{Doing as _, Result},
    people,
};

/// Seeds the database of a stopped server.
pub fn fill(file: &Path, users: u64) -> Result<()> {
    let database = Connection::open(file)?;
    database.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; \
         PRAGMA cache_size = -400000; PRAGMA wal_autocheckpoint = 100000; BEGIN",
    )?;
    let store: i64 = database.query_row(STORE, [], |row| row.get(0)).doing("the store named default")?;
    let indexes = indexes(&database)?;
    for (name, _) in &indexes {
        database.execute_batch(&format!("DROP INDEX {name}"))?;
    }
    insert_users(&database, store, users)?;
    let mut statement =
        database.prepare(&format!("INSERT INTO user_group ({GROUP_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"))?;
    for number in 0..people::groups(users) {
        let (id, name) = (people::group_id(number), group_name(number));
        let rid = i64::try_from(number + 1)?;
        statement.execute(params![rid, store, id.as_bytes(), name, folded(&name), format!("g{number}")])?;
    }
    let mut statement = database.prepare("INSERT INTO group_member (group_rid, user_rid) VALUES (?, ?)")?;
    for (group, user) in people::memberships(users) {
        statement.execute([i64::try_from(group + 1)?, i64::try_from(user + 1)?])?;
    }
    for (_, text) in &indexes {
        database.execute_batch(text)?;
    }
    database.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE")?;
    Ok(())
}

fn indexes(database: &Connection) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for table in TABLES {
        let mut statement = database.prepare(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
        )?;
        for row in statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))? {
            found.push(row?);
        }
    }
    Ok(found)
}

fn insert_users(database: &Connection, store: i64, users: u64) -> Result<()> {
    let mut statement = database.prepare(&format!(
        "INSERT INTO user_account ({USER_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, 0, ?, 1, 1, 0, 0, \
         0, 0, 1, 0, 0, ?)"
    ))?;
    for number in 0..users {
        let person = people::person(number);
        let (first, last) = (folded(person.first_name), folded(&person.last_name));
        statement.execute(params![
            i64::try_from(number + 1)?,
            store,
            person.id.as_bytes(),
            person.login_name,
            folded(&person.login_name),
            person.first_name,
            first,
            person.last_name,
            last,
            person.email_address,
            folded(&person.email_address),
            person.phone_number,
            "en-GB",
            person.concurrency_token,
        ])?;
    }
    Ok(())
}
