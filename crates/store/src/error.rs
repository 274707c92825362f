//! Failures of the store. A driver's own message stays in the log; callers see these few types.

use std::fmt;

/// The reason of a store operation's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A unique violation. Names the index, the same on both engines: `table__column__column`.
    Unique(String),
    /// A foreign key violation: the referenced row does not exist, or rows still refer to it.
    Reference,
    /// The security epoch has advanced: load rights again and repeat.
    Stale,
    /// A serialization conflict, after the last attempt. Nothing changed.
    Retry,
    /// The queue is full, or the operation waited too long. Nothing changed.
    Busy,
    /// A statement took too long. Nothing changed.
    TooLong,
    /// The operation needs work outside of the transaction before it can decide. Nothing changed.
    Suspended,
    /// The database cannot be reached. Nothing changed.
    Unavailable(String),
    /// The connection broke during the commit, and the outcome of the commit could not be determined.
    Unknown(String),
    /// A bug in this program. Nothing changed.
    Internal(String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unique(index) => write!(formatter, "unique index {index} refused the row"),
            Self::Reference => formatter.write_str("a foreign key refused the row"),
            Self::Stale => formatter.write_str("the security epoch is another by now"),
            Self::Retry => formatter.write_str("concurrent operations got in each other's way"),
            Self::Busy => formatter.write_str("there is too much to do"),
            Self::TooLong => formatter.write_str("a statement took too long"),
            Self::Suspended => formatter.write_str("work is needed outside of the transaction"),
            Self::Unavailable(why) => write!(formatter, "the database cannot be reached: {why}"),
            Self::Unknown(why) => write!(formatter, "the outcome of a commit is unknown: {why}"),
            Self::Internal(why) => write!(formatter, "internal store error: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::{ErrorCode, ffi};
        let rusqlite::Error::SqliteFailure(code, message) = &error else {
            return Self::Internal(error.to_string());
        };
        match (code.code, code.extended_code) {
            (_, ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY) => {
                Self::Unique(index_name(message.as_deref().unwrap_or_default()))
            }
            (_, ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => Self::Reference,
            (ErrorCode::OperationInterrupted, _) => {
                tracing::warn!("a statement was given up");
                Self::TooLong
            }
            (
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::CannotOpen
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly,
                _,
            ) => Self::Unavailable(error.to_string()),
            (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => torn(&error.to_string()),
            _ => Self::Internal(error.to_string()),
        }
    }
}

/// A SQLite file that is incomplete or damaged.
pub fn torn(why: &str) -> Error {
    Error::Unavailable(format!(
        "its file is torn or damaged ({why}). A plain copy of a running server's file is not whole: restore a backup that \
         `chancery backup` made"
    ))
}

/// SQLite names the columns (`table.a, table.b`), PostgreSQL the index. Index names follow from the columns.
fn index_name(message: &str) -> String {
    let columns = message.rsplit(": ").next().unwrap_or_default();
    let mut name = String::new();
    for column in columns.split(", ") {
        let (table, column) = column.split_once('.').unwrap_or(("", column));
        if name.is_empty() {
            name.push_str(table);
        }
        name.push_str("__");
        name.push_str(column);
    }
    name
}

/// Primary keys that processes derive from the time, independently. Two processes may derive the same one; the
/// operation then runs again with the next.
const NUMBERED: [&str; 3] = ["audit_entry_pkey", "outbox_event_pkey", "erasure_pkey"];

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        use tokio_postgres::error::SqlState;
        let Some(refusal) = error.as_db_error() else {
            return if is_loss(&error) {
                Self::Unavailable(describe(&error))
            } else {
                Self::Internal(describe(&error))
            };
        };
        let state = refusal.code();
        let constraint = refusal.constraint().unwrap_or_default();
        if *state == SqlState::UNIQUE_VIOLATION && NUMBERED.contains(&constraint) {
            Self::Retry
        } else if *state == SqlState::UNIQUE_VIOLATION {
            Self::Unique(constraint.to_owned())
        } else if *state == SqlState::FOREIGN_KEY_VIOLATION {
            Self::Reference
        } else if *state == SqlState::T_R_SERIALIZATION_FAILURE || *state == SqlState::T_R_DEADLOCK_DETECTED {
            Self::Retry
        } else if *state == SqlState::QUERY_CANCELED {
            // a timeout is no sign of the server's health
            tracing::warn!(why = describe(&error), "a statement was given up");
            Self::TooLong
        } else if *state == SqlState::LOCK_NOT_AVAILABLE {
            tracing::warn!(why = describe(&error), "a statement was given up");
            Self::Busy
        } else if is_loss(&error) || state.code().starts_with("08") || state.code().starts_with("53") {
            Self::Unavailable(describe(&error))
        } else {
            Self::Internal(describe(&error))
        }
    }
}

/// Whether a connection is lost, or its server no longer accepts writes.
pub fn is_loss(error: &tokio_postgres::Error) -> bool {
    use tokio_postgres::error::{Severity, SqlState};
    let Some(refusal) = error.as_db_error() else {
        return error.is_closed()
            || std::error::Error::source(error)
                .is_some_and(<dyn std::error::Error + 'static>::is::<std::io::Error>);
    };
    matches!(refusal.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
        || *refusal.code() == SqlState::READ_ONLY_SQL_TRANSACTION
        || refusal.code().code().starts_with("57P")
}

/// A driver's message, without values of rows.
pub fn describe(error: &tokio_postgres::Error) -> String {
    // the server's DETAIL can contain a row's values
    if let Some(refusal) = error.as_db_error() {
        let constraint = refusal.constraint().map(|name| format!(" ({name})")).unwrap_or_default();
        return format!(
            "{} {}: {}{constraint}",
            refusal.severity(),
            refusal.code().code(),
            refusal.message()
        );
    }
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::index_name;

    #[test]
    fn both_engines_name_an_index_alike() {
        let message = "UNIQUE constraint failed: user_account.store, user_account.login_name_key";
        assert_eq!(index_name(message), "user_account__store__login_name_key");
    }
}
