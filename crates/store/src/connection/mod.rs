//! A connection to a database of each engine.

pub mod postgres;
pub mod sqlite;

use chancery_record::Value;

/// A statement: its text with `?1`, `?2`, and its parameters.
pub type Statement<'a> = (&'a str, &'a [Value]);

/// Reads the epoch; its row is created by the first migration.
pub const EPOCH: &str = "SELECT value FROM security_epoch";
