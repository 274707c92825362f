//! Copies of a SQLite file: makes one while a server runs, and detects a damaged one.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    time::Duration,
};

use rusqlite::OpenFlags;

use crate::{Error, connection::sqlite::Connection, error::torn, location::DatabaseLocation, selectable};

/// Checks a file that is not at the recorded location of the installation's, or has none recorded. Returns whether the
/// check is to be recorded. The time grows with the file, so each copy is checked once. A file at its recorded location was
/// written only by SQLite, and needs no check.
pub fn check_copied(connection: &Connection, path: &Path) -> Result<bool, Error> {
    let own = DatabaseLocation::of_file(path)?;
    let Some(recorded) = recorded_locations(connection)? else {
        // a new file, or one of a release that records no location: its next start does
        if connection.has_table("schema_migration")? {
            tracing::info!(
                "the database's file is of an older release: it is checked whole, which can take a while"
            );
            check(&connection.raw)?;
        }
        return Ok(false);
    };
    if recorded.own().is(&own) || recorded.checked().is_some_and(|checked| checked.is(&own)) {
        return Ok(false);
    }
    tracing::warn!("the database's file is a copy: it is checked whole, which can take a while");
    check(&connection.raw)?;
    Ok(true)
}

/// Refuses the database of another program, before any of it is changed.
///
/// # Errors
/// [`Error::Unavailable`]
pub fn refuse_foreign(path: &Path) -> Result<(), Error> {
    const IS_FOREIGN: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name NOT LIKE 'sqlite_%') \
        AND NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'schema_migration')";
    let opened = rusqlite::Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    // a file that cannot be read so is reported when it is opened for writing
    match opened.and_then(|raw| raw.query_row(IS_FOREIGN, [], |row| row.get(0))) {
        Ok(true) => Err(Error::Unavailable(
            "its file is a database of another program. Name the file of an installation, or one that does not exist"
                .into(),
        )),
        _ => Ok(()),
    }
}

selectable! {
    /// The recorded locations of the installation.
    struct RecordedLocations from "FROM installation" {
        location: String = "place",
        created: Option<String> = "born",
        checked: Option<String> = "checked_place",
    }
}

impl RecordedLocations {
    /// The location of the installation's file.
    fn own(&self) -> DatabaseLocation {
        DatabaseLocation { location: self.location.clone(), created: self.created.clone() }
    }

    /// The location of the last full check, if known.
    fn checked(&self) -> Option<DatabaseLocation> {
        self.checked.as_deref().map(DatabaseLocation::of_text)
    }
}

fn recorded_locations(connection: &Connection) -> Result<Option<RecordedLocations>, Error> {
    let mut recorded = None;
    if connection.has_table("installation")? {
        connection.query(RecordedLocations::SELECT, &[], &mut |row| {
            recorded = Some(RecordedLocations::read(row)?);
            Ok(())
        })?;
    }
    Ok(recorded)
}

/// Checks every page, index and reference of a database.
fn check(raw: &rusqlite::Connection) -> Result<(), Error> {
    let result: String = raw.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    let has_orphans = raw.prepare("PRAGMA foreign_key_check")?.exists([])?;
    match result.as_str() {
        "ok" if !has_orphans => Ok(()),
        "ok" => Err(torn("rows refer to rows that are not there")),
        result => Err(torn(result.lines().next().unwrap_or_default())),
    }
}

/// Checks a file that no process writes to.
pub fn check_file(path: &Path) -> Result<(), Error> {
    check(&rusqlite::Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?)
}

/// Copies a snapshot of a database to a new file, which is readable only by its owner. Concurrent writes do not
/// prolong it. The copy is not synced.
pub fn back_up(from: &Path, to: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Unavailable(format!("{}: {error}", to.display()));
    // created here, because SQLite would create a file that others can read
    OpenOptions::new().create_new(true).write(true).mode(0o600).open(to).map_err(failed)?;
    let copy = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let raw = rusqlite::Connection::open_with_flags(from, flags)?;
        raw.busy_timeout(Duration::from_secs(30))?;
        let unwritable = || Error::Unavailable(format!("{}: its name is not UTF-8", to.display()));
        raw.execute("VACUUM INTO ?1", [to.to_str().ok_or_else(unwritable)?])?;
        Ok(())
    };
    copy().inspect_err(|_| {
        let _ = fs::remove_file(to);
    })
}
