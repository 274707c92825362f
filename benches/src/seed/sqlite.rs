//! Seeding an embedded database, without the server and without durability.

use std::path::Path;

use rusqlite::{Connection, params, params_from_iter};
use uuid::Uuid;

use super::{GROUP_COLUMNS, STORE, TABLES, USER_COLUMNS, folded, group_name, sign_in};
use crate::{
    fault::{Context as _, Result},
    people,
    server::sqlite_file,
};

/// Seeds the database of a stopped server.
pub fn fill(file: &Path, users: u64) -> Result<()> {
    write(file, &TABLES, |database| fill_users(database, users))
}

/// Adds to a seeded database, in this folder, what people need to sign in.
pub fn fill_sign_in(folder: &Path, users: u64) -> Result<()> {
    let tables = sign_in::TABLES.map(|table| table.name);
    write(&sqlite_file(folder), &tables, |database| {
        let ids = database.query_row(sign_in::STORE_IDS, [], |row| {
            let id = |column| row.get(column).map(Uuid::from_bytes);
            Ok([id(0)?, id(1)?, id(2)?])
        });
        let seed = sign_in::SignInSeed::new(ids.context("the store named default")?, folder)?;
        for table in &sign_in::TABLES {
            let marks = vec!["?"; table.columns.split(',').count()].join(", ");
            let text = format!("INSERT INTO {} ({}) VALUES ({marks})", table.name, table.columns);
            let mut statement = database.prepare(&text)?;
            for number in 0..users {
                statement.execute(params_from_iter((table.row)(&seed, number)?))?;
            }
        }
        Ok(())
    })
}

/// Writes to tables of the database of a stopped server; their indexes are made afterwards.
fn write(file: &Path, tables: &[&str], rows: impl FnOnce(&Connection) -> Result<()>) -> Result<()> {
    let database = Connection::open(file)?;
    database.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; \
         PRAGMA cache_size = -400000; PRAGMA wal_autocheckpoint = 100000; BEGIN",
    )?;
    let indexes = indexes(&database, tables)?;
    for (name, _) in &indexes {
        database.execute_batch(&format!("DROP INDEX {name}"))?;
    }
    rows(&database)?;
    for (_, text) in &indexes {
        database.execute_batch(text)?;
    }
    database.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE")?;
    Ok(())
}

fn fill_users(database: &Connection, users: u64) -> Result<()> {
    let store: i64 = database.query_row(STORE, [], |row| row.get(0)).context("the store named default")?;
    insert_users(database, store, users)?;
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
    Ok(())
}

fn indexes(database: &Connection, tables: &[&str]) -> Result<Vec<(String, String)>> {
    let mut indexes_found = Vec::new();
    for table in tables {
        let mut statement = database.prepare(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
        )?;
        for row in statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))? {
            indexes_found.push(row?);
        }
    }
    Ok(indexes_found)
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
