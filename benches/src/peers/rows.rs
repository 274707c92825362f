//! The rows that one create writes, read back from what the server wrote, for the engine alone to
//! write again.

use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use uuid::Uuid;

use crate::{clock, fault::AnyError, people};

/// One value, for either engine.
#[derive(Clone, Debug)]
pub enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Id(Uuid),
    Bytes(Vec<u8>),
}

impl Cell {
    /// The value as `COPY` reads it in its text format. The texts of seeds have nothing to escape.
    pub fn to_copy(&self) -> String {
        match self {
            Self::Null => "\\N".to_owned(),
            Self::Bool(value) => if *value { "t" } else { "f" }.to_owned(),
            Self::Int(value) => value.to_string(),
            Self::Text(text) => text.clone(),
            Self::Id(id) => id.to_string(),
            Self::Bytes(bytes) => {
                bytes.iter().fold("\\\\x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
            }
        }
    }
}

impl rusqlite::ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Bool(value) => ValueRef::Integer((*value).into()),
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Id(id) => ValueRef::Blob(id.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl ToSql for Cell {
    fn to_sql(&self, column_type: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, AnyError> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Bool(value) => value.to_sql(column_type, out),
            Self::Int(value) => value.to_sql(column_type, out),
            Self::Text(text) => text.to_sql(column_type, out),
            Self::Id(id) => id.to_sql(column_type, out),
            Self::Bytes(bytes) => bytes.to_sql(column_type, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The tables that a create writes to, in that order.
pub const TABLES: [&str; 3] = ["user_account", "audit_entry", "outbox_event"];

/// A row that the server wrote.
#[derive(Clone, Debug)]
pub struct Template {
    /// The row's table.
    pub table: &'static str,
    /// The row's columns with their values.
    pub cells: Vec<(String, Cell)>,
    /// Whether the row is deleted instead of inserted.
    pub removes: bool,
}

impl Template {
    /// The row without the number that the database assigns.
    pub fn new(table: &'static str, mut cells: Vec<(String, Cell)>) -> Self {
        if table != "audit_entry" {
            cells.retain(|(column, _)| column != "rid");
        }
        Self { table, cells, removes: false }
    }

    /// The value of a column.
    pub fn get(&self, column: &str) -> Option<&Cell> {
        self.cells.iter().find(|(name, _)| name == column).map(|(_, cell)| cell)
    }

    /// The statement that writes such a row.
    pub fn statement(&self, parameter: char) -> String {
        let columns: Vec<&str> = self.cells.iter().map(|(column, _)| column.as_str()).collect();
        if self.removes {
            let conditions =
                columns.iter().zip(1..).map(|(column, number)| format!("{column} = {parameter}{number}"));
            return format!(
                "DELETE FROM {} WHERE {}",
                self.table,
                conditions.collect::<Vec<_>>().join(" AND ")
            );
        }
        let values: Vec<String> = (1..=columns.len()).map(|number| format!("{parameter}{number}")).collect();
        let conflict = if self.table == "group_member" { " ON CONFLICT DO NOTHING" } else { "" };
        format!(
            "INSERT INTO {} ({}) VALUES ({}){conflict}",
            self.table,
            columns.join(", "),
            values.join(", ")
        )
    }

    /// The values of the row for one more user.
    pub fn cells(&self, user: &NewUser) -> Vec<Cell> {
        let person = &user.person;
        let text = |text: &str| Cell::Text(text.to_owned());
        let key = |text: &str| Cell::Text(text.to_ascii_lowercase());
        let cell = |(column, cell): &(String, Cell)| match (self.table, column.as_str()) {
            ("user_account", "id") => Cell::Id(person.id),
            ("user_account", "login_name") => text(&person.login_name),
            ("user_account", "login_name_key") => key(&person.login_name),
            ("user_account", "last_name") => text(&person.last_name),
            ("user_account", "last_name_key") => key(&person.last_name),
            ("user_account", "email_address") => text(&person.email_address),
            ("user_account", "email_address_key") => key(&person.email_address),
            ("audit_entry", "rid") | ("outbox_event", "id") => Cell::Int(user.entry),
            ("audit_entry", "primary_key") => Cell::Text(person.id.to_string()),
            _ => cell.clone(),
        };
        self.cells.iter().map(cell).collect()
    }
}

/// The values that are new for one more user.
pub struct NewUser {
    person: people::Person,
    entry: i64,
}

/// An audit number that neither other lanes nor a running server use: ten years in the past.
pub fn reserved_number(lane: u64) -> u64 {
    clock::now_micros() - 315_360_000_000_000 + lane * 1_000_000_000
}

/// A source of new users.
pub struct NewUsers {
    next: u64,
}

impl Default for NewUsers {
    fn default() -> Self {
        Self { next: clock::now_micros() }
    }
}

impl NewUsers {
    /// A source that shares no number with others, nor with a running server.
    pub fn reserved(lane: u64) -> Self {
        Self { next: reserved_number(lane) }
    }
}

impl Iterator for NewUsers {
    type Item = NewUser;

    fn next(&mut self) -> Option<NewUser> {
        self.next += 1;
        Some(NewUser { person: people::new_person(self.next), entry: i64::try_from(self.next).ok()? })
    }
}
