//! The database of an installation: its folders, its lock, and its opening.

use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt as _, path::Path};

use chancery_store::{Error, Store, Target};

use crate::{Config, StartError, database_lock::DatabaseLock, start_error::BoxError};

/// Opens the database of an installation for a command, with the lock of an embedded one.
///
/// # Errors
/// The database does not exist, is locked by a server, or cannot be opened.
pub async fn open_existing(config: &Config) -> Result<(Option<DatabaseLock>, Store), StartError> {
    let lock = lock_existing(&config.database)?;
    Ok((lock, open(config).await?))
}

/// Locks an existing embedded database for this process.
///
/// # Errors
/// The database does not exist, or is locked by a server.
pub fn lock_existing(database: &Target) -> Result<Option<DatabaseLock>, StartError> {
    check_there(database)?;
    lock(database)
}

/// Refuses an embedded database that does not exist, since opening it would create one.
pub fn check_there(database: &Target) -> Result<(), StartError> {
    match database {
        Target::Sqlite(path) if !path.exists() => {
            let what = format!("{} is not there", path.display());
            Err(StartError::new(what, "name the server's own database"))
        }
        _ => Ok(()),
    }
}

/// Locks an embedded database for this process. If it does not exist, an empty file is created.
///
/// # Errors
/// It is another program's, it is locked by a server, or its folder cannot be written to.
pub fn lock(database: &Target) -> Result<Option<DatabaseLock>, StartError> {
    match database {
        Target::Sqlite(path) => {
            Store::refuse_foreign(path)
                .map_err(|error| StartError::new(format!("cannot use {}", path.display()), error))?;
            DatabaseLock::take(path).map(Some)
        }
        Target::Postgres(_) => Ok(None),
    }
}

/// Creates the folders, and locks an embedded database for this process.
///
/// # Errors
/// As [`lock`]; a folder cannot be created.
pub fn prepare_files(config: &Config) -> Result<Option<DatabaseLock>, StartError> {
    let make = |folder: &Path| {
        // an existing folder keeps its permissions
        let created = DirBuilder::new().mode(0o700).recursive(true).create(folder);
        created.map_err(|error| StartError::new(format!("cannot make {}", folder.display()), error))
    };
    make(&config.data_dir)?;
    if let Target::Sqlite(path) = &config.database
        && let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty())
    {
        make(folder)?;
    }
    lock(&config.database)
}

/// Opens the database with the configured settings.
///
/// As [`Store::open`].
pub async fn open(config: &Config) -> Result<Store, StartError> {
    let (database, settings) = (config.database.clone(), config.store);
    on_database(move || Store::open(&database, settings)).await
}

/// Whether the database has keys that a master key sealed.
pub async fn has_sealed_keys(config: &Config) -> Result<bool, StartError> {
    let (database, settings) = (config.database.clone(), config.store);
    on_database(move || Store::has_sealed_keys(&database, settings)).await
}

/// Runs blocking work on the database in another thread.
pub async fn on_database<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, StartError> {
    let failed = |error: BoxError| StartError::new("cannot open the database", error);
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| failed(error.into()))?
        .map_err(|error| failed(error.into()))
}
