//! Permissions of a database's files: readable and writable only by their owner.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use crate::Error;

/// The suffixes of the database's files.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Creates the database's file before SQLite does, which creates its companion files with the same permissions,
/// and removes the access of others that an earlier version granted.
pub fn restrict_permissions(path: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Unavailable(format!("{}: {error}", path.display()));
    // an existing file is not opened: closing it would release this process's locks on it
    if !path.exists() {
        let mut options = fs::OpenOptions::new();
        options.create_new(true).write(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path).map_err(failed)?;
    }
    for suffix in SUFFIXES {
        let file = format!("{}{suffix}", path.display());
        if let Ok(metadata) = fs::metadata(&file)
            && metadata.permissions().mode() & 0o077 != 0
        {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        }
    }
    Ok(())
}
