//! The embedded engine alone: the same rows, written by prepared statements in a loop.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, types::ValueRef};

use super::{
    changes::{Change, Ids, NUMBERED_TABLES},
    rows::{Cell, NewUser, NewUsers, TABLES, Template, reserved_number},
};
use crate::{
    fault::{Result, fault},
    people::Random,
};

/// The peer's own database.
pub struct Peer {
    database: Connection,
    templates: Vec<Template>,
}

/// The bytes of a database: tables and indexes, without the log.
pub fn size(file: &Path) -> Result<u64> {
    let text = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let size: i64 = Connection::open(file)?.query_row(text, [], |row| row.get(0))?;
    Ok(size.unsigned_abs())
}

/// The row that the server wrote last into each table.
pub fn templates(file: &Path) -> Result<Vec<Template>> {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let read = |table: &'static str| {
        let order = if table == "outbox_event" { "id" } else { "rid" };
        let text = format!("SELECT * FROM {table} ORDER BY {order} DESC LIMIT 1");
        let rows = rows(&database, &text, [])?;
        let row = rows.into_iter().next().ok_or_else(|| fault(format!("{table} is empty")))?;
        Ok(Template::new(table, row))
    };
    TABLES.into_iter().map(read).collect()
}

/// Runs statements in one transaction while the server runs.
pub fn run_all(file: &Path, statements: &[String]) -> Result<()> {
    let mut database = Connection::open(file)?;
    database.busy_timeout(Duration::from_mins(1))?;
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for statement in statements {
        transaction.execute(statement, [])?;
    }
    Ok(transaction.commit()?)
}

/// The last row number of each numbered table.
pub fn last_numbers(file: &Path) -> Result<Vec<i64>> {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let last_number = |(table, number): (&str, &str)| {
        let text = format!("SELECT coalesce(max({number}), 0) FROM {table}");
        Ok(database.query_row(&text, [], |row| row.get(0))?)
    };
    NUMBERED_TABLES.into_iter().map(last_number).collect()
}

/// The rows that were written after these numbers.
pub fn change_since(file: &Path, last_numbers: &[i64]) -> Result<Change> {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut written_rows = Vec::new();
    for ((table, number), end) in NUMBERED_TABLES.into_iter().zip(last_numbers) {
        let text = format!("SELECT * FROM {table} WHERE {number} > ?1 ORDER BY {number}");
        written_rows.extend(rows(&database, &text, [*end])?.into_iter().map(|row| Template::new(table, row)));
    }
    Ok(Change::new(written_rows))
}

fn rows(
    database: &Connection,
    text: &str,
    parameters: impl rusqlite::Params,
) -> Result<Vec<Vec<(String, Cell)>>> {
    let mut statement = database.prepare(text)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let read = |row: &rusqlite::Row<'_>| {
        let cells = columns.iter().enumerate();
        cells.map(|(index, name)| Ok((name.clone(), cell(row.get_ref(index)?)))).collect()
    };
    let cells = statement.query_map(parameters, read)?.collect::<rusqlite::Result<_>>()?;
    Ok(cells)
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        // no column holds fractions
        ValueRef::Null | ValueRef::Real(_) => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}

impl Peer {
    /// Opens a copy of a seeded database, with durable commits.
    pub fn open(file: &Path, templates: Vec<Template>) -> Result<Self> {
        let database = Connection::open(file)?;
        database.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
             PRAGMA cache_size = -65536",
        )?;
        Ok(Self { database, templates })
    }

    fn write(transaction: &Transaction<'_>, templates: &[Template], user: &NewUser) -> Result<()> {
        for template in templates {
            let mut statement = transaction.prepare_cached(&template.statement('?'))?;
            statement.execute(rusqlite::params_from_iter(template.cells(user)))?;
        }
        Ok(())
    }

    /// Commits each user by itself, one after another, for a time: users a second.
    pub fn create(&mut self, time: Duration) -> Result<f64> {
        let (begin, mut count) = (Instant::now(), 0_u32);
        for user in NewUsers::default() {
            let transaction = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
            Self::write(&transaction, &self.templates, &user)?;
            transaction.commit()?;
            count += 1;
            if begin.elapsed() >= time {
                break;
            }
        }
        Ok(f64::from(count) / begin.elapsed().as_secs_f64())
    }

    /// Writes changes of random kinds, one commit for each, for a time: changes a second.
    pub fn change(&mut self, changes: &[Change], time: Duration) -> Result<f64> {
        let (mut next, mut random, mut first_ids) = (reserved_number(0), Random::new(0), Ids::new());
        let (begin, mut count) = (Instant::now(), 0_u32);
        while begin.elapsed() < time {
            // some of the other changes refer to the first
            let index = if first_ids.is_empty() { 0 } else { random.below(changes.len() as u64) };
            let change = changes.get(usize::try_from(index)?).ok_or_else(|| fault("there is no change"))?;
            let mut ids = first_ids.clone();
            let transaction = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for (row, cells) in change.rows.iter().zip(change.renewed_rows(&mut next, &mut ids)) {
                let mut statement = transaction.prepare_cached(&row.statement('?'))?;
                statement.execute(rusqlite::params_from_iter(cells))?;
            }
            transaction.commit()?;
            count += 1;
            if first_ids.is_empty() {
                first_ids = ids;
            }
        }
        Ok(f64::from(count) / begin.elapsed().as_secs_f64())
    }

    /// Writes many users in one transaction: how long it took.
    pub fn batch(&mut self, users: usize) -> Result<Duration> {
        let begin = Instant::now();
        let transaction = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for user in NewUsers::default().take(users) {
            Self::write(&transaction, &self.templates, &user)?;
        }
        transaction.commit()?;
        Ok(begin.elapsed())
    }

    /// Reads every column of every user, with the groups of each: the number of users, the bytes of text
    /// and blobs, how long it took.
    pub fn list(&self) -> Result<(u64, u64, Duration)> {
        let begin = Instant::now();
        let mut users = self.database.prepare("SELECT * FROM user_account WHERE store = ?1 ORDER BY id")?;
        let store: i64 =
            self.database.query_row("SELECT min(store) FROM user_account", [], |row| row.get(0))?;
        let mut groups = self.database.prepare(
            "SELECT m.user_rid, g.id, g.name FROM group_member m JOIN user_group g ON g.rid = m.group_rid \
             ORDER BY m.user_rid, m.group_rid",
        )?;
        let columns = users.column_count();
        let (mut users, mut groups) = (users.query([store])?, groups.query([])?);
        let (mut count, mut bytes) = (0, 0);
        let mut add = |value: ValueRef<'_>| {
            bytes += match value {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
                _ => 8,
            };
        };
        let mut group = groups.next()?;
        while let Some(user) = users.next()? {
            for index in 0..columns {
                add(user.get_ref(index)?);
            }
            count += 1;
            let rid: i64 = user.get(0)?;
            while let Some(member) = group {
                if member.get::<_, i64>(0)? > rid {
                    break;
                }
                add(member.get_ref(1)?);
                add(member.get_ref(2)?);
                group = groups.next()?;
            }
        }
        Ok((count, bytes, begin.elapsed()))
    }
}
