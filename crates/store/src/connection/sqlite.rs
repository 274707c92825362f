//! A connection to a SQLite database, used by one thread at a time.

mod deadline;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use chancery_record::Value;
use rusqlite::{CachedStatement, OpenFlags, config::DbConfig, types::ValueRef};

use deadline::Deadline;

use crate::{Error, Row};

/// How long a statement waits for other connections.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Limits of a connection's memory.
#[derive(Clone, Copy)]
pub struct ConnectionLimits {
    /// Page cache, in KiB.
    pub cache_kib: i64,
    /// Prepared statements.
    pub statements: usize,
}

/// One connection, and the security epoch as known by this process. The database belongs to this process alone,
/// so the lane that commits an epoch also publishes it.
pub struct Connection {
    pub raw: rusqlite::Connection,
    /// The deadline of a reader. A write has none: interrupting it would interrupt the other writes of its
    /// group.
    deadline: Option<Deadline>,
    pub epoch: Arc<AtomicI64>,
    pub read_only: bool,
}

impl Connection {
    /// Opens a connection for reading or for writing, within these limits.
    pub fn open(
        path: &Path,
        read_only: bool,
        limits: ConnectionLimits,
        epoch: &Arc<AtomicI64>,
    ) -> Result<Self, Error> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, !read_only);
        let mut raw = rusqlite::Connection::open_with_flags(path, flags)?;
        // without it a statement may be planned again for each value, were there statistics. There are none:
        // those of a small table would make it be scanned in full once it has grown
        raw.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        raw.set_prepared_statement_cache_capacity(limits.statements);
        raw.busy_timeout(BUSY_TIMEOUT)?;
        raw.pragma_update(None, "journal_mode", "WAL")?;
        raw.pragma_update(None, "synchronous", "FULL")?;
        raw.pragma_update(None, "foreign_keys", true)?;
        // deleted data is overwritten: above all the keys of erased persons
        raw.pragma_update(None, "secure_delete", true)?;
        raw.pragma_update(None, "wal_autocheckpoint", 0)?;
        raw.pragma_update(None, "temp_store", "MEMORY")?;
        raw.pragma_update(None, "cache_size", -limits.cache_kib)?;
        raw.pragma_update(None, "query_only", read_only)?;
        let deadline = read_only.then(|| Deadline::watch(&mut raw, deadline::LIMIT)).transpose()?;
        Ok(Self { raw, deadline, epoch: Arc::clone(epoch), read_only })
    }

    /// Fails with [`Error::Stale`] when the epoch is not this one. A reader compares with the epoch that the
    /// lane published last; a caller may know a later one already, which is no failure. A write reads the
    /// database, because an earlier write of the same commit may have advanced it.
    pub fn expect_epoch(&self, epoch: i64) -> Result<(), Error> {
        let mut holds = self.committed_epoch() <= epoch;
        if !self.read_only {
            self.query(crate::EPOCH, &[], &mut |row| {
                holds = row.int(0)? == epoch;
                Ok(())
            })?;
        }
        if holds { Ok(()) } else { Err(Error::Stale) }
    }

    /// The epoch of the last commit, as the lane published it.
    pub fn committed_epoch(&self) -> i64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Reads the epoch from the database and publishes it, after a commit that may have advanced it.
    pub fn reload_epoch(&self) -> Result<(), Error> {
        self.query(crate::EPOCH, &[], &mut |row| {
            self.epoch.store(row.int(0)?, Ordering::Release);
            Ok(())
        })
    }

    pub fn query(
        &self,
        sql: &str,
        parameters: &[Value],
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut statement = self.raw.prepare_cached(sql)?;
        if !statement.readonly() {
            return Err(Error::Internal(format!("what is to be read would write: {sql}")));
        }
        self.run(&mut statement, parameters, each)
    }

    /// Like `query`, for a statement that may write.
    pub fn returning(
        &self,
        sql: &str,
        parameters: &[Value],
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.run(&mut self.raw.prepare_cached(sql)?, parameters, each)
    }

    /// Whether a query returns a row.
    pub fn exists(&self, sql: &str) -> Result<bool, Error> {
        let mut has_row = false;
        self.query(sql, &[], &mut |_| {
            has_row = true;
            Ok(())
        })?;
        Ok(has_row)
    }

    /// Whether the database has a table of this name.
    pub fn has_table(&self, name: &str) -> Result<bool, Error> {
        let mut has_row = false;
        self.query("SELECT 1 FROM sqlite_master WHERE name = ?1", &[name.into()], &mut |_| {
            has_row = true;
            Ok(())
        })?;
        Ok(has_row)
    }

    fn run(
        &self,
        statement: &mut CachedStatement<'_>,
        parameters: &[Value],
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        bind(statement, parameters)?;
        let mut rows = statement.raw_query();
        for count in 0.. {
            if let Some(deadline) = &self.deadline {
                deadline.note_rows(count);
            }
            let Some(row) = rows.next()? else { break };
            each(&Row::Sqlite(row))?;
        }
        Ok(())
    }

    pub fn execute(&self, sql: &str, parameters: &[Value]) -> Result<u64, Error> {
        let mut statement = self.raw.prepare_cached(sql)?;
        bind(&mut statement, parameters)?;
        Ok(statement.raw_execute()? as u64)
    }
}

fn bind(statement: &mut rusqlite::Statement<'_>, parameters: &[Value]) -> Result<(), Error> {
    for (index, parameter) in parameters.iter().enumerate() {
        let value = match parameter {
            Value::Null => ValueRef::Null,
            Value::Bool(value) => ValueRef::Integer((*value).into()),
            Value::Int(value) => ValueRef::Integer(*value),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Id(id) => ValueRef::Blob(id.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        };
        statement.raw_bind_parameter(index + 1, rusqlite::types::ToSqlOutput::Borrowed(value))?;
    }
    Ok(())
}
