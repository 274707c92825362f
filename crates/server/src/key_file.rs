//! The file of the master key.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use chancery_resource::MasterKey;

use crate::{StartError, private_file::read_private, whole_file::sync_folder};

/// Reads the master key, or creates it, readable by its owner only. It is not created if the database has keys that it sealed: a new
/// key decrypts nothing there, and would replace the former one in backups.
///
/// # Errors
/// It is missing although the database has data, or cannot be read or created.
pub async fn ensure_master_key(
    path: &Path,
    has_sealed_keys: impl AsyncFnOnce() -> Result<bool, StartError>,
) -> Result<MasterKey, StartError> {
    // another process may create the key and the database meanwhile, in this order
    if !path.exists() && has_sealed_keys().await? && !path.exists() {
        return Err(StartError::new(
            format!("master key {} is not there", path.display()),
            "the database has keys that it sealed. Put the file back from a backup, or name where it is by \
             CHANCERY_MASTER_KEY_FILE; nothing was written",
        ));
    }
    let failed = |error: io::Error| StartError::new(format!("master key {}", path.display()), error);
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let key = MasterKey::generate();
            // the key must survive a power loss before anything is encrypted under it
            file.write_all(key.expose())
                .and_then(|()| file.sync_all())
                .and_then(|()| sync_folder(path))
                .map_err(failed)?;
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_master_key(path),
        Err(error) => Err(failed(error)),
    }
}

/// Reads the master key from a file that only its owner can read.
///
/// # Errors
/// The file cannot be read, is not private, or holds no keys.
pub fn read_master_key(path: &Path) -> Result<MasterKey, StartError> {
    let bytes = read_private(path).map_err(|error| StartError::new("master key", error))?;
    MasterKey::new(&bytes).ok_or_else(|| {
        StartError::new(format!("master key {}", path.display()), "must be keys of 32 bytes each, one to 16")
    })
}
