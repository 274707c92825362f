//! `chancery key`: rotates the master key.

use std::{
    io::{Write as _, stderr},
    path::Path,
};

use chancery_auth::{ensure_root, wrap_keys};
use chancery_resource::MasterKey;
use chancery_store::{Error, KEY_ROOT, Mode, Settings, StateTable, Store};
use chancery_web::now;
use clap::Subcommand;
use tokio::runtime::Runtime;

use crate::{
    Config, ConfigArguments, database::lock_existing, key_file::read_master_key, running,
    start_error::BoxError, whole_file::replace,
};

const ROTATE_HELP: &str = "\
Inserts a new key at the beginning of the master key file. It encrypts what is stored from then on; the former
keys still decrypt what they encrypted, so keep the whole file. Running servers encrypt that again under the
new key, and their log says when the former keys can be removed. Keys that are derived from the first master
key, such as those for digests of client secrets, codes and tokens, do not change, so these stay valid. Stop
all servers first; the command is refused while one runs. Afterwards distribute the file to every server of
the database, and back it up separately from the database. Releases before 0.2.0 are refused from then on.

If a key was disclosed, rotate it and replace what it protected: secrets of mail servers and identity
providers, private keys of certificates, the installation's signing keys. A rotation does not protect what was
already read.

Exit status: 0 done; 1 nothing was changed, or the file has an additional key that encrypts nothing yet.

Example:
  chancery --config chancery.toml key rotate";

/// What to do with the master key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub enum KeyCommand {
    /// Adds a new key to the file: it encrypts from now on, and all keys decrypt.
    #[command(after_help = ROTATE_HELP)]
    Rotate,
}

impl KeyCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// The message is written for people.
    pub fn run(self, arguments: &ConfigArguments) -> Result<(), BoxError> {
        let Self::Rotate = self;
        let count = rotate(arguments)?;
        let report = format!(
            "the master key file has {count} keys: the first encrypts, all open. Give it to every server"
        );
        let _ = writeln!(stderr(), "{report}");
        Ok(())
    }
}

/// Creates a new key, and encrypts the signing keys and the root key under it. Returns the number of keys.
fn rotate(arguments: &ConfigArguments) -> Result<usize, BoxError> {
    let config = Config::read(arguments)?;
    let path = &config.master_key_file;
    let master = read_master_key(path)?;
    let settings = Settings { connections: 2, ..config.store };
    let _lock = lock_existing(&config.database)?;
    if !Store::has_sealed_keys(&config.database, settings).map_err(|error| message(&error))? {
        return Err("no server has started on this database: name the server's own".into());
    }
    let store = Store::open(&config.database, settings).map_err(|error| message(&error))?;
    let runtime = Runtime::new()?;
    let rotated = runtime.block_on(rotate_in(&store, &master, path));
    store.close();
    rotated
}

fn message(error: &Error) -> String {
    format!("cannot open the database: {error}")
}

async fn rotate_in(store: &Store, master: &MasterKey, path: &Path) -> Result<usize, BoxError> {
    let failed = |error: Error| error.to_string();
    running::refuse(store).await?;
    let key = master.clone();
    // checks the master key before any change
    let rooted = store.run("EnsureRoot", Mode::Write, None, move |tx| ensure_root(tx, &key, now())).await;
    let rotated = rooted.map_err(failed)?.rotated();
    let rotated =
        rotated.ok_or_else(|| format!("the file has {} keys, which are the most", MasterKey::MAX_KEYS))?;
    // the file first: at any later point, it opens all stored values
    replace(path, rotated.expose()).map_err(|error| format!("{}: {error}", path.display()))?;
    let count = rotated.count();
    let wrap = move |tx: &mut chancery_store::Tx<'_>| {
        // an older program would derive from the new key
        let floor = StateTable::SchemaFloor.update("SET floor = ?1 WHERE floor < ?1");
        tx.queue(&floor, vec![KEY_ROOT.into()])?;
        wrap_keys(tx, &rotated)
    };
    store.run("WrapKeys", Mode::Write, None, wrap).await.map_err(failed)?;
    Ok(count)
}
