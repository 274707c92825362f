//! `chancery restore`: restores a backup, ends tokens and sessions issued before it, and repeats the erasures since the backup.

pub mod endings;
mod erasures;

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_fetch::Outbound;
use chancery_resource::{AppContext, MasterKey, random};
use chancery_store::{Error, Mode, Store, Target};
use chancery_web::now;
use clap::Args;

use crate::{
    Config, StartError,
    backup::{Manifest, copy, discard, remove_logs},
    database::{open, open_existing, prepare_files},
    installation::{begin_restoring, end_restoring, record},
    key_file::read_master_key,
    start::{Assembled, assemble, url_of_config},
    start_error::BoxError,
    trail_check::check_trails,
    whole_file::{sync_folder, with_suffix},
};

pub const RESTORE_HELP: &str = "\
FILE is a backup that chancery backup made, with its manifest beside it. The manifest, the digest, every
page, the audit trails and the master key are checked before the file is moved to the place of the configured
database, which must not exist unless --replace is given. Restore a PostgreSQL database with its own tools and
then run this command with --in-place. The same applies to a database file that was restored in another way.
Stop all servers first.

A backup does not contain later revocations. So everything that was issued before the restore ends: access
tokens, refresh tokens, sessions, sign-ins in progress, codes, password reset links, access passes, remembered
browsers and SCIM tokens. Passwords, client secrets, keys, passkeys and second factors are those of the backup:
what was changed or deleted since must be changed or deleted again. People who were erased since are erased
again, from the list that servers write with CHANCERY_ERASURE_LIST; --erasures names the list if it is not
configured. Without a list the command refuses to run, unless --no-erasures is given.

The restored database is the installation from then on, and its servers send mails and events again. With
--drill it remains a copy, and outbound traffic of its servers is disabled.

Examples:
  chancery restore /backup/monday --replace --erasures /lists/erased
  chancery --config chancery.toml restore --in-place --erasures /lists/erased
  CHANCERY_DATA_DIR=/drill/data chancery restore /backup/monday --erasures /lists/erased --drill";

/// What to restore, and how.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct RestoreOptions {
    /// The backup; omitted with --in-place
    #[arg(value_name = "FILE", conflicts_with = "in_place")]
    file: Option<PathBuf>,
    /// Finishes the restore of the configured database after other tools restored its data
    #[arg(long)]
    in_place: bool,
    /// Deletes an existing database and replaces it
    #[arg(long, conflicts_with = "in_place")]
    replace: bool,
    /// The list of erased people, a file or a folder [default: CHANCERY_ERASURE_LIST]
    #[arg(long, value_name = "FILE", conflicts_with = "no_erasures")]
    erasures: Option<PathBuf>,
    /// Restores without a list of erased people: people who were erased since the backup exist again
    #[arg(long)]
    no_erasures: bool,
    /// Leaves the database a copy: outbound traffic of its servers is disabled
    #[arg(long)]
    drill: bool,
}

fn failed(why: impl Into<BoxError>) -> StartError {
    StartError::new("cannot restore", why)
}

/// Restores, and returns a report as text.
///
/// # Errors
/// A check or a step failed; then no backup is in place.
pub async fn restore(config: &Config, options: &RestoreOptions) -> Result<String, StartError> {
    let list = options.erasures.clone().or_else(|| config.erasure_list.clone());
    let list = list.filter(|_| !options.no_erasures);
    if list.is_none() && !options.no_erasures {
        return Err(failed(
            "people who were erased since the backup would live again: name the list that the servers wrote by --erasures, or \
             say --no-erasures where nobody was",
        ));
    }
    let master = read_master_key(&config.master_key_file).map_err(|error| {
        failed(format!("the master key is in no backup, put it in place first ({error})"))
    })?;
    let restoring = Restoring { config, master, list, is_drill: options.drill };
    restoring.check_list().await?;
    match (&options.file, options.in_place) {
        (Some(file), _) => restoring.put_in_place(file, options.replace).await,
        (None, true) => restoring.finish_in_place().await,
        (None, false) => Err(failed(
            "name the backup, or say --in-place where the database was restored by its own tools already",
        )),
    }
}

struct Restoring<'a> {
    config: &'a Config,
    master: MasterKey,
    list: Option<PathBuf>,
    is_drill: bool,
}

impl Restoring<'_> {
    /// Reads the list of erasures before anything is changed.
    async fn check_list(&self) -> Result<(), StartError> {
        let Some(list) = self.list.clone() else { return Ok(()) };
        let master = self.master.clone();
        let read = tokio::task::spawn_blocking(move || crate::erasure_list::read(&list, &master, |_| Ok(())));
        read.await.map_err(failed)?.map_err(failed)
    }

    /// Restores a backup to the path of the configured database.
    async fn put_in_place(&self, file: &Path, replace: bool) -> Result<String, StartError> {
        let Target::Sqlite(path) = &self.config.database else {
            return Err(failed(
                "the database is on PostgreSQL: restore it by pg_restore, pgBackRest or Barman, and then say --in-place",
            ));
        };
        let manifest = Manifest::read(file, &self.master)?;
        let _lock = prepare_files(self.config)?;
        if !replace && fs::metadata(path).map_or(0, |facts| facts.len()) > 0 {
            return Err(failed(format!(
                "there is a database at {}: name another folder, or say --replace",
                path.display()
            )));
        }
        let partial = with_suffix(path, "restoring");
        // removes the file of an interrupted restore
        discard(&partial);
        let done = self.prepare(file, &manifest, &partial).await;
        let report = done.inspect_err(|_| discard(&partial))?;
        let unwritten =
            |error: io::Error| StartError::new(format!("cannot put {} in place", path.display()), error);
        // the write-ahead log of the former database must not be applied to the new one
        remove_logs(path).and_then(|()| remove_logs(&partial)).map_err(unwritten)?;
        fs::rename(&partial, path).and_then(|()| sync_folder(path)).map_err(unwritten)?;
        Ok(format!("{} of {} is at {}. {report}", file.display(), manifest.made_on, path.display()))
    }

    /// Copies a backup to a temporary file, checks the copy, and finishes the restore in it: an interrupted restore leaves the former
    /// database unchanged.
    async fn prepare(&self, file: &Path, manifest: &Manifest, partial: &Path) -> Result<String, StartError> {
        let unread = |error: io::Error| {
            failed(format!("cannot copy {} to {}: {error}", file.display(), partial.display()))
        };
        let mut from = File::open(file).map_err(unread)?;
        let created = OpenOptions::new().create_new(true).write(true).mode(0o600).open(partial);
        let mut to = created.map_err(unread)?;
        let (bytes, sha256) = copy(&mut from, &mut to).map_err(unread)?;
        to.sync_all().map_err(unread)?;
        drop(to);
        if (bytes, &sha256) != (manifest.bytes, &manifest.sha256) {
            return Err(failed(format!(
                "{} is not what its manifest says: it has {bytes} bytes of digest {sha256}, not {} of {}",
                file.display(),
                manifest.bytes,
                manifest.sha256
            )));
        }
        let copied = partial.to_owned();
        let checked = tokio::task::spawn_blocking(move || Store::check_file(&copied));
        checked.await.map_err(failed)?.map_err(failed)?;
        let config = Config { database: Target::Sqlite(partial.to_owned()), ..self.config.clone() };
        let store = open(&config).await?;
        let report = self.finish(&store).await;
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
        let report = report?;
        File::open(partial).and_then(|file| file.sync_all()).map_err(unread)?;
        Ok(report)
    }

    /// Finishes the restore of a database whose data other tools restored.
    async fn finish_in_place(&self) -> Result<String, StartError> {
        let (_lock, store) = open_existing(self.config).await?;
        let report = self.finish(&store).await;
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
        report
    }

    /// Checks a restored database, ends earlier tokens and sessions, applies the erasures, and records the identity of the installation.
    /// If it is interrupted, no server starts, and it can be repeated.
    async fn finish(&self, store: &Store) -> Result<String, StartError> {
        let checkpoints = check_trails(store, &self.master).await?.len();
        let era = BASE64_URL_SAFE_NO_PAD.encode(random::<16>());
        let next = era.clone();
        let begin = store.run("BeginRestoring", Mode::Write, None, move |tx| begin_restoring(tx, &next));
        begin.await.map_err(|error: Error| failed(error))?;
        endings::end_rows(store, now()).await.map_err(failed)?;
        let master = self.master.in_era(&era);
        let assembled = Assembled {
            config: self.config,
            master,
            public_url: &url_of_config(self.config),
            outbound: Outbound::Off,
        };
        let (app, _) = assemble(assembled, store.clone()).await?;
        let context: &Arc<AppContext> = &app.context;
        let ended = endings::end_audited(store, context).await?;
        let erased = match &self.list {
            Some(list) => erasures::apply(store, context, &self.master, list).await?,
            None => {
                "No list of erasures was applied: who was erased since the backup is there again.".to_owned()
            }
        };
        let place = store.location().await.map_err(failed)?;
        let (url, is_drill) = (self.config.public_url.clone(), self.is_drill);
        let end = store.run("EndRestoring", Mode::Write, None, move |tx| {
            if !is_drill {
                record(tx, url.as_deref(), &place, now())?;
            }
            end_restoring(tx, &place)
        });
        end.await.map_err(|error: Error| failed(error))?;
        let status = if is_drill {
            "It is a copy: servers on it tell others nothing."
        } else {
            "It is the installation from now on."
        };
        Ok(format!(
            "It is what {checkpoints} checkpoints of its audit trails say. All tokens and sessions issued before have ended, \
             with {ended}. {erased} {status}"
        ))
    }
}
