//! `PostgreSQL` alone: the same statements, each awaited before the next is sent.

use std::{
    collections::HashMap,
    pin::pin,
    time::{Duration, Instant},
};

use futures_util::StreamExt as _;
use tokio_postgres::{
    Client, Column, NoTls, Row, Statement,
    error::SqlState,
    types::{FromSql, ToSql, Type},
};
use uuid::Uuid;

use super::{
    changes::{Change, Ids, NUMBERED_TABLES},
    rows::{Cell, NewUser, NewUsers, TABLES, Template, reserved_number},
};
use crate::{
    fault::{AnyError, Result, fault},
    people::Random,
};

/// A connection with its prepared statements.
pub struct Peer {
    client: Client,
    inserts: Vec<(Statement, Template)>,
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Runs statements in one transaction while the server runs.
pub async fn run_all(url: &str, statements: &[String]) -> Result<()> {
    let mut client = connect(url).await?;
    let transaction = client.transaction().await?;
    for statement in statements {
        transaction.execute(statement, &[]).await?;
    }
    Ok(transaction.commit().await?)
}

/// The bytes of a database: tables and indexes, without the log.
pub async fn size(url: &str) -> Result<u64> {
    let row = connect(url).await?.query_one("SELECT pg_database_size(current_database())", &[]).await?;
    Ok(row.try_get::<_, i64>(0)?.unsigned_abs())
}

/// The row that the server wrote last into each table.
pub async fn templates(url: &str) -> Result<Vec<Template>> {
    let client = connect(url).await?;
    let mut templates = Vec::new();
    for table in TABLES {
        let order = if table == "outbox_event" { "id" } else { "rid" };
        let row =
            client.query_one(&format!("SELECT * FROM {table} ORDER BY {order} DESC LIMIT 1"), &[]).await?;
        templates.push(Template::new(table, cells(&row)?));
    }
    Ok(templates)
}

fn cells(row: &Row) -> Result<Vec<(String, Cell)>> {
    let cell = |(index, column): (usize, &Column)| {
        let value = match *column.type_() {
            Type::BOOL => row.try_get::<_, Option<bool>>(index)?.map(Cell::Bool),
            Type::INT8 => row.try_get::<_, Option<i64>>(index)?.map(Cell::Int),
            Type::TEXT => row.try_get::<_, Option<String>>(index)?.map(Cell::Text),
            Type::UUID => row.try_get::<_, Option<Uuid>>(index)?.map(Cell::Id),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(index)?.map(Cell::Bytes),
            ref other => return Err(fault(format!("a column of type {other}"))),
        };
        Ok((column.name().to_owned(), value.unwrap_or(Cell::Null)))
    };
    row.columns().iter().enumerate().map(cell).collect()
}

/// The last row number of each numbered table.
pub async fn last_numbers(url: &str) -> Result<Vec<i64>> {
    let client = connect(url).await?;
    let mut last_numbers = Vec::new();
    for (table, number) in NUMBERED_TABLES {
        let text = format!("SELECT coalesce(max({number}), 0) FROM {table}");
        last_numbers.push(client.query_one(&text, &[]).await?.try_get(0)?);
    }
    Ok(last_numbers)
}

/// The rows that were written after these numbers.
pub async fn change_since(url: &str, last_numbers: &[i64]) -> Result<Change> {
    let client = connect(url).await?;
    let mut rows = Vec::new();
    for ((table, number), end) in NUMBERED_TABLES.into_iter().zip(last_numbers) {
        let text = format!("SELECT * FROM {table} WHERE {number} > $1 ORDER BY {number}");
        for row in client.query(&text, &[end]).await? {
            rows.push(Template::new(table, cells(&row)?));
        }
    }
    Ok(Change::new(rows))
}

/// The length of any value, without a copy of it.
struct Length(u64);

impl<'a> FromSql<'a> for Length {
    fn from_sql(_: &Type, raw: &'a [u8]) -> std::result::Result<Self, AnyError> {
        Ok(Self(raw.len() as u64))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl Peer {
    /// Connects and prepares.
    pub async fn open(url: &str, templates: &[Template]) -> Result<Self> {
        let client = connect(url).await?;
        let mut inserts = Vec::new();
        for template in templates {
            inserts.push((client.prepare(&template.statement('$')).await?, template.clone()));
        }
        Ok(Self { client, inserts })
    }

    async fn write(&self, user: &NewUser) -> Result<()> {
        for (statement, template) in &self.inserts {
            let cells = template.cells(user);
            self.client.execute_raw(statement, cells.iter().map(|cell| cell as &dyn ToSql)).await?;
        }
        Ok(())
    }

    /// Commits each user by itself, for a time: how many.
    pub async fn create(&self, time: Duration, lane: u64) -> Result<u32> {
        let (begin, mut count) = (Instant::now(), 0);
        for user in NewUsers::reserved(lane) {
            self.client.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
            let written = self.write(&user).await;
            if written.is_ok() && self.client.batch_execute("COMMIT").await.is_ok() {
                count += 1;
            } else {
                self.client.batch_execute("ROLLBACK").await?;
            }
            if begin.elapsed() >= time {
                break;
            }
        }
        Ok(count)
    }

    /// Writes many users in one transaction, row by row: how long it took.
    pub async fn batch(&self, users: usize) -> Result<Duration> {
        let begin = Instant::now();
        self.client.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
        for user in NewUsers::reserved(1000).take(users) {
            self.write(&user).await?;
        }
        self.client.batch_execute("COMMIT").await?;
        Ok(begin.elapsed())
    }

    /// Reads every column of every user, then all memberships: users, bytes, how long it took.
    pub async fn list(&self) -> Result<(u64, u64, Duration)> {
        let begin = Instant::now();
        let none = || std::iter::empty::<&dyn ToSql>();
        let (mut count, mut bytes) = (0, 0);
        let statements = [
            "SELECT * FROM user_account ORDER BY store, id",
            "SELECT m.user_rid, g.id, g.name FROM group_member m JOIN user_group g ON g.rid = m.group_rid \
             ORDER BY m.user_rid, m.group_rid",
        ];
        for (index, text) in statements.into_iter().enumerate() {
            let mut rows = pin!(self.client.query_raw(text, none()).await?);
            while let Some(row) = rows.next().await {
                let row = row?;
                for column in 0..row.len() {
                    bytes += row.try_get::<_, Option<Length>>(column)?.map_or(0, |length| length.0);
                }
                count += u64::from(index == 0);
            }
        }
        Ok((count, bytes, begin.elapsed()))
    }
}

/// Writes changes of random kinds, one commit for each, for a time: how many.
pub async fn change(url: &str, changes: &[Change], time: Duration, lane: u64) -> Result<u32> {
    let client = connect(url).await?;
    let mut statements: HashMap<String, Statement> = HashMap::new();
    let (mut next, mut random, mut first_ids) = (reserved_number(lane), Random::new(lane), Ids::new());
    let (begin, mut count) = (Instant::now(), 0);
    while begin.elapsed() < time {
        // some of the other changes refer to the first
        let index = if first_ids.is_empty() { 0 } else { random.below(changes.len() as u64) };
        let change = changes.get(usize::try_from(index)?).ok_or_else(|| fault("there is no change"))?;
        let mut ids = first_ids.clone();
        client.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
        let mut written = true;
        for (row, cells) in change.rows.iter().zip(change.renewed_rows(&mut next, &mut ids)) {
            let text = row.statement('$');
            if !statements.contains_key(&text) {
                statements.insert(text.clone(), client.prepare(&text).await?);
            }
            let Some(statement) = statements.get(&text) else { continue };
            let cells = cells.iter().map(|cell| cell as &dyn ToSql);
            if let Err(error) = client.execute_raw(statement, cells).await {
                // a serialization failure
                if error.code() != Some(&SqlState::T_R_SERIALIZATION_FAILURE) {
                    return Err(error.into());
                }
                written = false;
                break;
            }
        }
        if written && client.batch_execute("COMMIT").await.is_ok() {
            count += 1;
            if first_ids.is_empty() {
                first_ids = ids;
            }
        } else {
            client.batch_execute("ROLLBACK").await?;
        }
    }
    Ok(count)
}
