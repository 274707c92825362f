//! A database of one test's own.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio_postgres::NoTls;

/// A database engine to test on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The embedded engine.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
}

/// A database of one test's own, and a folder for its server's files.
pub struct Database {
    folder: TempDir,
    url: String,
    /// Whether the database stays on its server when the value is dropped.
    stays: bool,
}

/// The name of the file with the master key.
const MASTER_KEY: &str = "master.key";

/// The environment variable with the URL of the PostgreSQL cluster for tests, which `scripts/test`
/// starts.
const CLUSTER: &str = "CHANCERY_TEST_POSTGRES";

static NUMBER: AtomicU32 = AtomicU32::new(0);

#[expect(clippy::panic, reason = "a test cannot go on without its database")]
fn cluster() -> String {
    std::env::var(CLUSTER).unwrap_or_else(|_| {
        panic!("{CLUSTER} is not set: run scripts/test, which makes a PostgreSQL for the tests")
    })
}

/// The database from which others are created.
fn maintenance() -> String {
    format!("{}/postgres", cluster())
}

fn fresh_name() -> String {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("test_{number}_{}", uuid::Uuid::now_v7().simple())
}

impl Engine {
    /// The key of the engine's cluster, in characters that a file name may have.
    pub(crate) fn key(self) -> String {
        match self {
            Self::Sqlite => "sqlite".to_owned(),
            Self::Postgres => cluster().replace(|letter: char| !letter.is_ascii_alphanumeric(), "_"),
        }
    }
}

impl Database {
    /// The name of an embedded database's file.
    pub(crate) const FILE: &str = "chancery.sqlite";

    /// Creates an empty database.
    ///
    /// # Panics
    /// Without the cluster that `scripts/test` starts.
    pub fn create(engine: Engine) -> Self {
        Self::named(engine, &fresh_name())
    }

    /// Creates an empty database with this name on its server.
    #[expect(clippy::expect_used, reason = "a test cannot go on without its database")]
    pub(crate) fn named(engine: Engine, name: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        if engine == Engine::Postgres {
            execute(&maintenance(), &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            let is_created = execute(&maintenance(), &format!("CREATE DATABASE {name} TEMPLATE template0"));
            assert!(is_created, "CREATE DATABASE failed");
        }
        let url = url_of(engine, &folder, name);
        Self { folder, url, stays: false }
    }

    /// Copies the database of a Chancery server that has ended and whose files are in a folder. `None`
    /// when PostgreSQL does not have that database.
    #[expect(clippy::expect_used, reason = "a test cannot go on without its database")]
    pub(crate) fn copied(engine: Engine, template: &str, files: &Path) -> Option<Self> {
        let (folder, name) = (TempDir::new().expect("a temporary folder"), fresh_name());
        copy_files(files, folder.path()).expect("files to copy");
        if engine == Engine::Postgres
            && !execute(
                &maintenance(),
                &format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"),
            )
        {
            return None;
        }
        let url = url_of(engine, &folder, &name);
        Some(Self { folder, url, stays: false })
    }

    /// Retains the database on its server, and its files in a folder.
    #[expect(clippy::expect_used, reason = "a test cannot go on without its database")]
    pub(crate) fn retain(mut self, files: &Path) {
        copy_files(self.folder.path(), files).expect("files to copy");
        self.stays = true;
    }

    /// Drops the database, even with connections open.
    ///
    /// # Panics
    /// When the engine is embedded, or PostgreSQL refuses.
    #[expect(clippy::panic, reason = "a test cannot go on")]
    pub fn destroy(&self) {
        let Some(name) = self.on_server() else { panic!("only a database on a server can be removed") };
        assert!(
            execute(&maintenance(), &format!("DROP DATABASE {name} WITH (FORCE)")),
            "DROP DATABASE failed"
        );
    }

    /// A copy of the database and its files, as a restored backup is. Its servers have ended. `None` when the
    /// engine refuses.
    pub fn copy(&self) -> Option<Self> {
        let engine = if self.on_server().is_some() { Engine::Postgres } else { Engine::Sqlite };
        Self::copied(engine, self.on_server().unwrap_or_default(), &self.folder())
    }

    /// Runs a statement on the database of a server, behind its back.
    ///
    /// # Panics
    /// When the engine is embedded, or PostgreSQL refuses.
    pub fn execute(&self, statement: &str) {
        assert!(self.on_server().is_some() && execute(&self.url, statement), "{statement} failed");
    }

    /// Ends all connections to the database, where it is on a server.
    pub fn break_connections(&self) {
        if let Some(name) = self.on_server() {
            let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname";
            execute(&maintenance(), &format!("{end} = '{name}'"));
        }
    }

    /// The database's name on its server.
    fn on_server(&self) -> Option<&str> {
        let (_, name) = self.url.rsplit_once('/')?;
        self.url.starts_with("postgres").then_some(name)
    }

    /// The database's URL, as in `CHANCERY_DATABASE`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Writes a file beside the server's own that its user alone can read, such as a key.
    ///
    /// # Panics
    /// When it cannot be written.
    #[expect(clippy::expect_used, reason = "a test cannot go on")]
    pub fn write_private(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.folder.path().join(name);
        fs::write(&file, content).expect("a file to be written");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("a file to be private");
        file
    }

    /// The folder for the server's files.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}

/// A test run creates hundreds of databases, so each is dropped with its test. That of a failed test
/// stays for inspection.
impl Drop for Database {
    fn drop(&mut self) {
        if let Some(name) = self.on_server()
            && !self.stays
            && !std::thread::panicking()
        {
            execute(&maintenance(), &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}

fn url_of(engine: Engine, folder: &TempDir, name: &str) -> String {
    match engine {
        Engine::Sqlite => format!("sqlite:{}", folder.path().join(Database::FILE).display()),
        Engine::Postgres => format!("{}/{name}", cluster()),
    }
}

/// Runs a statement on a database; returns whether it succeeded. In a thread of its own, as tests are in a runtime already.
fn execute(url: &str, statement: &str) -> bool {
    let (url, statement) = (url.to_owned(), statement.to_owned());
    let executing = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.ok()?;
            tokio::spawn(connection);
            client.batch_execute(&statement).await.ok()
        })
    });
    executing.join().ok().flatten().is_some()
}

/// Copies the files of a server that has stopped.
fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    for file in fs::read_dir(from)? {
        let file = file?;
        let name = file.file_name();
        if name == MASTER_KEY || name == Database::FILE {
            fs::copy(file.path(), to.join(name))?;
        }
    }
    Ok(())
}
