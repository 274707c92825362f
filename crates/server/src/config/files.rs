//! Checks the files that a configuration names: absent files, unusable files, and secrets that others can read.

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path};

use chancery_trust::Anchors;
use chancery_web::Tls;

use super::Config;
use crate::{ConfigError, key_file::read_master_key, private_file::check_private, start_error::BoxError};

impl Config {
    /// Checks all files that the configuration names, as a start reads them.
    ///
    /// # Errors
    /// Each file that is absent, cannot be used, or holds a secret that others can read, by the option that names it.
    pub fn check_files(&self) -> Result<(), ConfigError> {
        let faults: Vec<String> = [
            self.check_tls(),
            self.check_metadata_root(),
            self.check_reset_program(),
            self.check_database(),
            self.check_master_key(),
        ]
        .into_iter()
        .filter_map(|checked| Some(checked.err()?.to_string()))
        .collect();
        if faults.is_empty() { Ok(()) } else { Err(ConfigError(faults.join("\nchancery: "))) }
    }

    fn check_tls(&self) -> Result<(), BoxError> {
        let Some(files) = &self.tls else { return Ok(()) };
        Tls::read(files).map_err(|error| format!("TLS cannot be served: {error}"))?;
        self.check_tls_key()
    }

    /// Checks that no other user can read the private key of TLS.
    pub(crate) fn check_tls_key(&self) -> Result<(), BoxError> {
        let Some(files) = &self.tls else { return Ok(()) };
        Ok(check_private(&files.key).map_err(|error| format!("tls_key: {error}"))?)
    }

    fn check_metadata_root(&self) -> Result<(), BoxError> {
        self.metadata_root().map(drop)
    }

    /// The root certificate of the metadata's signer, and the signer's name, where they are not FIDO's.
    pub(crate) fn metadata_root(&self) -> Result<Option<(Vec<u8>, String)>, BoxError> {
        let Some((path, name)) = &self.mds_root else { return Ok(None) };
        let root = fs::read(path).map_err(|error| named("mds_root", path, &error))?;
        Anchors::of(&root, name).map_err(|refusal| named("mds_root", path, &refusal))?;
        Ok(Some((root, name.clone())))
    }

    fn check_reset_program(&self) -> Result<(), BoxError> {
        let Some(path) = &self.reset_program else { return Ok(()) };
        // a name without a slash is searched in $PATH
        if path.components().count() == 1 && !path.is_absolute() {
            return Ok(());
        }
        let facts = path.metadata().map_err(|error| named("reset_program", path, &error))?;
        let is_program = facts.is_file() && facts.permissions().mode() & 0o111 != 0;
        if is_program { Ok(()) } else { Err(named("reset_program", path, &"it is no program").into()) }
    }

    fn check_database(&self) -> Result<(), BoxError> {
        let keys = self.database.check_files(self.store.insecure);
        let keys = keys.map_err(|error| format!("database: {error}"))?;
        let checked = keys.iter().try_for_each(|key| check_private(key));
        Ok(checked.map_err(|error: io::Error| format!("database: sslkey: {error}"))?)
    }

    /// The first start creates the master key; an existing one must be valid.
    fn check_master_key(&self) -> Result<(), BoxError> {
        let path = &self.master_key_file;
        if path.exists() {
            return read_master_key(path).map(drop).map_err(Into::into);
        }
        // the start creates the data folder, and no other folder
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder {
            Some(folder) if *folder != self.data_dir && !folder.is_dir() => {
                Err(named("master_key_file", folder, &"there is no such folder").into())
            }
            _ => Ok(()),
        }
    }
}

fn named(option: &str, path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{option} {}: {error}", path.display())
}
