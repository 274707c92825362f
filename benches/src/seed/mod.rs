//! Databases seeded with made-up users: created once, stored, copied for each run.

mod postgres;
mod sign_in;
mod sqlite;

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    time::Instant,
};

use rusqlite::Connection;
pub use sqlite::fill;

use crate::{
    cluster::{self, Cluster},
    fault::{Context as _, Result},
    server::{ServerConfig, sqlite_file},
    target::Engine,
};

/// The version of the seeds, raised when they change.
const EDITION: u32 = 2;
/// In the names of seeded databases where people can sign in.
const SIGN_IN: &str = "-sign-in";
/// The columns of a seeded user that are not empty, in the order that both engines write them.
const USER_COLUMNS: &str = "rid, store, id, login_name, login_name_key, first_name, first_name_key, \
    last_name, last_name_key, email_address, email_address_key, email_address_confirmed, phone_number, \
    phone_number_confirmed, locale, is_user_active, is_user_lock_enabled, is_user_locked, \
    failed_user_login_attempts, failed_temporary_lock_attempts, password_never_expires, \
    can_change_password_on_expiration, is_initial_password, is_password_change_required, concurrency_token";
const GROUP_COLUMNS: &str = "rid, store, id, name, name_key, concurrency_token";
/// The tables that are seeded.
const TABLES: [&str; 3] = ["user_account", "user_group", "group_member"];

/// The store of seeded databases.
pub struct Seeds {
    /// The folder that outlasts runs.
    pub storage: PathBuf,
    /// The folder of this run.
    pub work: PathBuf,
    /// The server's program.
    pub program: PathBuf,
    /// A digest that changes when the schema or the seeds do.
    edition: String,
}

impl Seeds {
    /// Opens the store, by the schema that the server creates.
    pub async fn new(storage: &Path, work: &Path, program: &Path) -> Result<Self> {
        let folder = work.join("schema");
        ServerConfig::sqlite(program, &folder).start().await?.stop()?;
        let database = Connection::open(sqlite_file(&folder))?;
        let mut texts = database.prepare("SELECT coalesce(sql, '') FROM sqlite_master ORDER BY name")?;
        let mut hasher = DefaultHasher::new();
        for text in texts.query_map([], |row| row.get::<_, String>(0))? {
            text?.hash(&mut hasher);
        }
        let edition = format!("{EDITION}-{:016x}", hasher.finish());
        fs::create_dir_all(storage)?;
        Ok(Self { storage: storage.to_owned(), work: work.to_owned(), program: program.to_owned(), edition })
    }

    /// The path of a stored seeded database; `with` says what it has besides users and groups.
    fn stored_path(&self, engine: Engine, with: &str, users: u64) -> PathBuf {
        self.storage.join(format!("{}{with}-{users}-{}", engine.name(), self.edition))
    }

    /// A folder of this run with a seeded embedded database; `name` is the folder's.
    pub async fn sqlite(&self, users: u64, name: &str) -> Result<PathBuf> {
        let stored = self.stored_path(Engine::Sqlite, "", users);
        if !stored.exists() {
            let begin = Instant::now();
            let unfinished = self.work.join(format!("making-sqlite-{users}"));
            ServerConfig::sqlite(&self.program, &unfinished).start().await?.stop()?;
            sqlite::fill(&sqlite_file(&unfinished), users)?;
            move_to_storage(&unfinished, &stored)?;
            eprintln!("seeded {users} users on SQLite in {:.1} s", begin.elapsed().as_secs_f64());
        }
        let folder = self.work.join(name);
        cluster::copy(&stored, &folder)?;
        Ok(folder)
    }

    /// A cluster of this run with seeded users, and the folder for the server's own files.
    pub async fn postgres(&self, users: u64, name: &str) -> Result<(Cluster, PathBuf)> {
        let stored = self.stored_path(Engine::Postgres, "", users);
        if !stored.exists() {
            let begin = Instant::now();
            let unfinished = self.work.join(format!("making-postgres-{users}"));
            fs::create_dir_all(&unfinished)?;
            let files = unfinished.join("cluster");
            Cluster::create(&files)?;
            let cluster = Cluster::start(&files)?;
            let config = self.config_on(&cluster, &unfinished.join("files"))?;
            config.start().await?.stop()?;
            postgres::fill(&cluster, users).await?;
            cluster.stop()?;
            move_to_storage(&unfinished, &stored)?;
            eprintln!("seeded {users} users on PostgreSQL in {:.1} s", begin.elapsed().as_secs_f64());
        }
        let folder = self.work.join(name);
        cluster::copy(&stored, &folder)?;
        Ok((Cluster::start(&folder.join("cluster"))?, folder.join("files")))
    }

    /// The same as [`Seeds::sqlite`], where every user can sign in and has a session.
    pub async fn sqlite_for_sign_in(&self, users: u64, name: &str) -> Result<PathBuf> {
        let stored = self.stored_path(Engine::Sqlite, SIGN_IN, users);
        if !stored.exists() {
            let unfinished = self.sqlite(users, &format!("making-sqlite{SIGN_IN}-{users}")).await?;
            let begin = Instant::now();
            sqlite::fill_sign_in(&unfinished, users)?;
            move_to_storage(&unfinished, &stored)?;
            eprintln!("seeded {users} sessions on SQLite in {:.1} s", begin.elapsed().as_secs_f64());
        }
        let folder = self.work.join(name);
        cluster::copy(&stored, &folder)?;
        Ok(folder)
    }

    /// The same as [`Seeds::postgres`], where every user can sign in and has a session.
    pub async fn postgres_for_sign_in(&self, users: u64, name: &str) -> Result<(Cluster, PathBuf)> {
        let stored = self.stored_path(Engine::Postgres, SIGN_IN, users);
        if !stored.exists() {
            let unfinished = format!("making-postgres{SIGN_IN}-{users}");
            let (cluster, files) = self.postgres(users, &unfinished).await?;
            let begin = Instant::now();
            postgres::fill_sign_in(&cluster, &files, users).await?;
            cluster.stop()?;
            move_to_storage(&self.work.join(unfinished), &stored)?;
            eprintln!("seeded {users} sessions on PostgreSQL in {:.1} s", begin.elapsed().as_secs_f64());
        }
        let folder = self.work.join(name);
        cluster::copy(&stored, &folder)?;
        Ok((Cluster::start(&folder.join("cluster"))?, folder.join("files")))
    }

    /// The configuration of a server on a cluster.
    pub fn config_on(&self, cluster: &Cluster, files: &Path) -> Result<ServerConfig> {
        Ok(ServerConfig {
            program: self.program.clone(),
            engine: Engine::Postgres,
            folder: files.to_owned(),
            database: cluster.url(),
            postmaster: Some(cluster.postmaster()?),
        })
    }
}

/// Moves a finished seed into the store, all or nothing.
fn move_to_storage(source: &Path, stored: &Path) -> Result<()> {
    let partial = stored.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    cluster::copy(source, &partial)?;
    fs::rename(&partial, stored).context("cannot keep a seeded database")?;
    Ok(fs::remove_dir_all(source)?)
}

/// The case-folded text. The seeds are ASCII.
fn folded(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// The name of a group.
fn group_name(number: u64) -> String {
    format!("Department {number}")
}

/// The id of the user store that is seeded.
const STORE: &str = "SELECT rid FROM idp_instance WHERE name_key = 'default'";
