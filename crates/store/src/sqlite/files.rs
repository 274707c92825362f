//! Permissions of a database's files: readable and writable by their owner alone.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use crate::Error;

/// The suffixes of the database's files.
const BESIDE: [&str; 3] = ["", "-wal", "-shm"];

/// Creates the database's file before SQLite does, which gives the files beside it the same permissions,
/// and removes the access of others that an earlier version granted.
pub fn keep_private(path: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Unavailable(format!("{}: {error}", path.display()));
    // an existing file is not opened: closing it would release this process's locks on it
    if !path.exists() {
        let mut options = fs::OpenOptions::new();
        options.create_new(true).write(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path).map_err(failed)?;
    }
    for ending in BESIDE {
        let file = format!("{}{ending}", path.display());
        if let Ok(facts) = fs::metadata(&file)
            && facts.permissions().mode() & 0o077 != 0
        {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        }
    }
    Ok(())
}
