//! The lock of an embedded database: one process has the file, by any of its names.

use std::{
    fs::{File, OpenOptions, Permissions, TryLockError},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use crate::StartError;

/// The locks of an embedded database, which are held until the value is dropped. It outlives the store: closing a descriptor
/// of the database's file would release the locks that SQLite has on it.
pub struct DatabaseLock {
    _database: File,
    /// The lock file beside it, which releases before 0.2.0 lock alone.
    _lock_file: File,
}

impl DatabaseLock {
    /// Locks a database for this process. If it does not exist, an empty file is created.
    pub fn take(path: &Path) -> Result<Self, StartError> {
        // the lock file first: it reveals another server of this process without opening the database
        let lock_file = lock(format!("{}.lock", path.display()).as_ref(), path)?;
        let database = lock(path, path)?;
        let names = database.metadata().map_or(1, |facts| facts.nlink());
        if names > 1 {
            tracing::warn!(
                names,
                "the database's file has several names (hard links). Open it by one alone: what is not yet in the file is in \
                 the log beside that name"
            );
        }
        Ok(Self { _database: database, _lock_file: lock_file })
    }
}

/// Opens a file, readable by its owner alone, and locks its inode, not its name. The lock (flock) differs from
/// those by which SQLite's own connections exclude each other.
fn lock(file: &Path, database: &Path) -> Result<File, StartError> {
    let failed = |error: io::Error| StartError::new(format!("cannot lock {}", file.display()), error);
    let mut options = OpenOptions::new();
    let opened =
        options.create(true).truncate(false).read(true).write(true).mode(0o600).open(file).map_err(failed)?;
    match opened.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            // it stays open: were the other server in this process, closing would release SQLite's locks
            std::mem::forget(opened);
            return Err(StartError::new(
                format!("{} is in use", database.display()),
                "another server holds its lock. An embedded database is for one process, whatever the links to its file; use \
                 PostgreSQL for more",
            ));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    opened.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(opened)
}
