//! `chancery copy`: copies an installation to another database, of the same engine or the other one.

mod trails;

use std::{
    collections::BTreeMap,
    io::{Write as _, stderr},
    path::PathBuf,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
};

use chancery_resource::MasterKey;
use chancery_store::{
    Error, Mode, Settings, Store, Target, Tx,
    copy::{Rows, Table, TableDigest, clear, is_empty, read, set_last_number, tables, write},
};
use chancery_web::now;
use clap::Args;
use tokio::runtime::Runtime;

use crate::{
    Config, ConfigArguments,
    config::secrets,
    database::{lock, lock_existing},
    database_lock::DatabaseLock,
    installation::{self, Installation},
    key_file::read_master_key,
    running,
    start_error::BoxError,
};

/// The help of the command.
pub const COPY_HELP: &str = "\
Copies the configured database to another one, from SQLite to PostgreSQL, back, or within one engine: table
by table, from one snapshot, in pieces of bounded size. Stop the servers first; the command is refused while
one runs. The target is an empty PostgreSQL database, or a file that does not exist. At the end each table is
read again in both databases and compared by the number and the digest of its rows, and the audit trails of
the copy are verified. If the command fails, remove the target and try again; the source is never changed.

Then start the servers with the new CHANCERY_DATABASE and the same master key, which is not copied. The target
is the installation from then on, or a copy if the source was a copy. Do not start servers on the old database
again: client apps and receivers could not tell the two installations apart.

Exit status: 0 the copy is complete; 1 it is not.

Examples:
  chancery --config chancery.toml copy --to postgres://chancery@db.example.com/chancery
  CHANCERY_DATABASE=postgres://chancery@db.example.com/chancery chancery copy --to sqlite:/srv/chancery.sqlite";

/// Where to copy to.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[group(required = true, multiple = false)]
pub struct CopyCommand {
    /// The database to fill: sqlite:PATH or postgres://USER@HOST/NAME
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// A file that contains this URL, since a connection string may have a password
    #[arg(long, value_name = "FILE")]
    to_file: Option<PathBuf>,
}

/// Tables that are not copied: applied migrations, running processes and their leases, and the identity of the installation, which is
/// recorded at the end.
const OWN: [&str; 5] = ["schema_migration", "schema_progress", "process", "job_lease", "installation"];
/// Tables in which migrations create rows. These rows are deleted before the copy.
const SEEDED: [&str; 4] = ["security_epoch", "passkey_trust", "passkey_trust_refresh", "schema_floor"];
/// The most batches that are read ahead of the writer.
const WAITING: usize = 2;
/// The rows between two lines of progress.
const PROGRESS: u64 = 100_000;

impl CopyCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// The message is written for people.
    pub fn run(&self, arguments: &ConfigArguments) -> Result<(), BoxError> {
        let config = Config::read(arguments)?;
        let master = read_master_key(&config.master_key_file)?;
        let to = secrets::text("to", self.to.clone(), self.to_file.clone(), None);
        let to = to.map_err(|error| error.0)?.unwrap_or_default();
        let to = crate::config::target(&to).map_err(|error| error.0)?;
        if to == config.database {
            return Err("the target is the database itself".into());
        }
        let settings = Settings { connections: 2, ..config.store };
        let (_source_lock, source) = open_source(&config.database, settings)?;
        let runtime = Runtime::new()?;
        runtime.block_on(running::refuse(&source))?;
        let known = runtime.block_on(installation::read_source(&source))?;
        let (_target_lock, target) = open_target(&to, settings)?;
        let copying = Copying { runtime, source, target };
        let outcome = copying.run(known, &master);
        copying.source.close();
        copying.target.close();
        outcome
    }
}

/// Opens the database to be copied, which no server may be using.
fn open_source(from: &Target, settings: Settings) -> Result<(Option<DatabaseLock>, Store), BoxError> {
    let lock = lock_existing(from)?;
    let store = Store::open_to_read(from, settings);
    Ok((lock, store.map_err(|error| format!("cannot open the database: {error}"))?))
}

/// Opens the database to be filled, with the schema of this program. A server has never started on it.
fn open_target(to: &Target, settings: Settings) -> Result<(Option<DatabaseLock>, Store), BoxError> {
    let failed = |error: &Error| format!("cannot open the target: {error}");
    if let Target::Sqlite(path) = to
        && path.exists()
    {
        return Err(format!("{} is there: name a file that is not", path.display()).into());
    }
    let lock = lock(to)?;
    if Store::has_sealed_keys(to, settings).map_err(|error| failed(&error))? {
        return Err("the target is not empty: a server has started on it".into());
    }
    Ok((lock, Store::open(to, settings).map_err(|error| failed(&error))?))
}

/// A copy in progress.
struct Copying {
    runtime: Runtime,
    source: Store,
    target: Store,
}

/// Rows of a table by its number, in order.
type Batch = (usize, Rows);

impl Copying {
    fn run(&self, known: Option<Installation>, master: &MasterKey) -> Result<(), BoxError> {
        let text = |error: Error| error.to_string();
        let all = self.tables_of(&self.source).map_err(text)?;
        let theirs = self.tables_of(&self.target).map_err(text)?;
        check_schemas(&all, &theirs)?;
        self.empty_target(&all)?;
        let copied = self.transfer(&all)?;
        self.compare(&all, copied)?;
        trails::verify(&self.runtime, &self.target, master, now())?;
        if let Some(known) = known {
            self.runtime
                .block_on(installation::record_target(known, &self.source, &self.target))
                .map_err(text)?;
        }
        say("the copy is whole: start the servers with it, and with the same master key");
        Ok(())
    }

    /// The tables that are copied, in the order in which they are filled.
    fn tables_of(&self, store: &Store) -> Result<Vec<Table>, Error> {
        let read = store.run("ReadTables", Mode::Long, None, |tx| {
            let all = tables(tx)?.into_iter();
            Ok(all.filter(|table| !OWN.contains(&table.name.as_str())).collect())
        });
        self.runtime.block_on(read)
    }

    /// Deletes the rows that migrations created. Any other row means that the target is not empty.
    fn empty_target(&self, all: &[Table]) -> Result<(), BoxError> {
        let all = all.to_vec();
        let emptied = self.target.run("EmptyTarget", Mode::Write, None, move |tx| {
            for table in &all {
                if is_empty(tx, table)? {
                    continue;
                }
                if !SEEDED.contains(&table.name.as_str()) {
                    return Err(Error::Unavailable(format!(
                        "the target is not empty: {} has rows",
                        table.name
                    )));
                }
                clear(tx, table)?;
            }
            Ok(())
        });
        self.runtime.block_on(emptied).map_err(|error: Error| error.into())
    }

    /// Copies all rows. Returns the digest of each table as it was read.
    fn transfer(&self, all: &[Table]) -> Result<BTreeMap<String, TableDigest>, BoxError> {
        let (sender, batches) = sync_channel::<Batch>(WAITING);
        let (mut sender, of_source) = (Some(sender), all.to_vec());
        let source = self.source.clone();
        let reading = self.runtime.spawn(async move {
            let read = move |tx: &mut Tx<'_>| {
                // a transaction may run again, but sent rows cannot be taken back
                let sender = sender.take().ok_or_else(|| interrupted("the source"))?;
                send(tx, &of_source, &sender)
            };
            source.run("ReadCopy", Mode::Long, None, read).await
        });
        let written = self.write_all(all, &batches);
        drop(batches);
        let read = self.runtime.block_on(reading)?;
        let copied = written?;
        read?;
        self.set_numbers(all)?;
        Ok(copied)
    }

    fn write_all(
        &self,
        all: &[Table],
        batches: &Receiver<Batch>,
    ) -> Result<BTreeMap<String, TableDigest>, BoxError> {
        let mut copied: BTreeMap<String, TableDigest> =
            all.iter().map(|table| (table.name.clone(), TableDigest::default())).collect();
        for (index, rows) in batches {
            let Some(table) = all.get(index).cloned() else { continue };
            if let Some(digest) = copied.get_mut(&table.name) {
                let before = digest.rows();
                digest.add(&rows);
                if before / PROGRESS < digest.rows() / PROGRESS {
                    say(&format!("{}: {} rows so far", table.name, digest.rows()));
                }
            }
            let name = table.name.clone();
            let batch = self.target.run("WriteCopy", Mode::Write, None, move |tx| write(tx, &table, &rows));
            self.runtime
                .block_on(batch)
                .map_err(|error: Error| format!("{name} cannot be written: {error}"))?;
        }
        Ok(copied)
    }

    fn set_numbers(&self, all: &[Table]) -> Result<(), BoxError> {
        let all = all.to_vec();
        let set = self.target.run("SetNumbers", Mode::Write, None, move |tx| {
            all.iter().try_for_each(|table| set_last_number(tx, table))
        });
        self.runtime.block_on(set).map_err(|error: Error| error.into())
    }

    /// Reads all tables of the copy, and compares them with the digests of the source.
    fn compare(&self, all: &[Table], copied: BTreeMap<String, TableDigest>) -> Result<(), BoxError> {
        let all = all.to_vec();
        let read = self.target.run("CompareCopy", Mode::Long, None, move |tx| {
            let mut digests = BTreeMap::new();
            for table in &all {
                let mut digest = TableDigest::default();
                read(tx, table, &mut |rows| {
                    digest.add(&rows);
                    Ok(())
                })?;
                digests.insert(table.name.clone(), digest);
            }
            Ok(digests)
        });
        let mut actual_digests = self.runtime.block_on(read).map_err(|error: Error| BoxError::from(error))?;
        let mut rows = 0;
        for (name, digest) in copied {
            let (expected, actual) =
                (digest.finish(), actual_digests.remove(&name).unwrap_or_default().finish());
            if expected != actual {
                return Err(format!(
                    "{name} is not as it was: {} rows were read and {} are there",
                    expected.0, actual.0
                )
                .into());
            }
            if expected.0 > 0 {
                say(&format!("{name}: {} rows, equal", expected.0));
            }
            rows += expected.0;
        }
        say(&format!("{rows} rows in all, each table equal by its digest"));
        Ok(())
    }
}

/// Sends all tables of one snapshot.
fn send(tx: &mut Tx<'_>, all: &[Table], sender: &SyncSender<Batch>) -> Result<(), Error> {
    for (index, table) in all.iter().enumerate() {
        read(tx, table, &mut |rows| sender.send((index, rows)).map_err(|_| interrupted("the target")))?;
    }
    Ok(())
}

fn interrupted(what: &str) -> Error {
    Error::Internal(format!("the connection to {what} broke: remove the target and begin again"))
}

/// Both databases have the same tables with the same columns.
fn check_schemas(ours: &[Table], theirs: &[Table]) -> Result<(), BoxError> {
    let sorted = |table: &Table| {
        let mut columns = table.columns.clone();
        columns.sort_unstable();
        columns
    };
    for table in ours {
        let other = theirs.iter().find(|other| other.name == table.name);
        if other.map(sorted) != Some(sorted(table)) {
            return Err(format!(
                "the table {} of the source is of a newer release: use the program that it was upgraded to",
                table.name
            )
            .into());
        }
    }
    Ok(())
}

fn say(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}
