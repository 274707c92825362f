//! `chancery adopt`: records the current database and public URL as those of the installation.

use chancery_store::{Error, Mode};
use chancery_web::now;

use crate::{
    Config, StartError,
    database::open_existing,
    installation::{describe, record},
    key_file::read_master_key,
    trail_check::check_whole,
};

pub const ADOPT_HELP: &str = "\
An installation records its public URL and the location of its database: on PostgreSQL the system identifier
and the OID of the database, on SQLite the inode and the creation time of the file. If a server finds another
location or public URL, the database is a copy, and outbound traffic is disabled: mails, text messages, events,
the reset program and back-channel logout. After a move to another disk or a change of the public URL, this
command records the current values. Restart the servers afterwards. Stop a server with an embedded database
first. Never adopt a copy while the original installation runs: people and client apps would get everything
twice.

Example:
  chancery --config chancery.toml adopt";

/// Records the current identity, so that a copy becomes the installation. Returns a report as text.
///
/// # Errors
/// The database does not exist, is locked by a server or is damaged, or the master key does not match.
pub async fn adopt(config: &Config) -> Result<String, StartError> {
    let master = read_master_key(&config.master_key_file)?;
    let (_lock, store) = open_existing(config).await?;
    let adopted = async {
        check_whole(&store, &master).await?;
        let failed = |error: Error| StartError::new("cannot adopt the database", error);
        let location = store.location().await.map_err(failed)?;
        let (public_url, here) = (config.public_url.clone(), location.clone());
        let recorded =
            store.run("Adopt", Mode::Write, None, move |tx| record(tx, public_url.as_deref(), &here, now()));
        recorded.await.map(|()| location).map_err(failed)
    };
    let adopted = adopted.await;
    let _ = tokio::task::spawn_blocking(move || store.close()).await;
    let location = adopted?;
    let url = config.public_url.as_deref().unwrap_or("as its address says");
    Ok(format!(
        "The installation is here now: its database at {}, its public URL {url}. Servers that start from now on send mails, \
         texts, events and sign-outs; start again those that run.",
        describe(&location)
    ))
}
