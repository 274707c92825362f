//! A database for one test.

use std::{
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use tempfile::TempDir;

/// An engine to test on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Embedded.
    Sqlite,
    /// A server.
    Postgres,
}

/// A database of one test's own, and a folder for its server's files.
pub struct Database {
    folder: TempDir,
    url: String,
}

/// The environment variable that names the PostgreSQL cluster for tests; `scripts/test` makes
/// one.
const CLUSTER: &str = "CHANCERY_TEST_POSTGRES";

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Database {
    /// Makes an empty database.
    ///
    /// # Panics
    /// Without the cluster that `scripts/test` makes.
    #[expect(clippy::panic, clippy::expect_used, reason = "a test cannot go on without its database")]
    pub fn create(engine: Engine) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let url = match engine {
            Engine::Sqlite => format!("sqlite:{}", folder.path().join("chancery.sqlite").display()),
            Engine::Postgres => {
                let Ok(cluster) = std::env::var(CLUSTER) else {
                    panic!("{CLUSTER} is not set: run scripts/test, which makes a PostgreSQL for the tests")
                };
                let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                let chance = uuid::Uuid::now_v7().simple().to_string();
                let name = format!("test_{number}_{chance}");
                let made = execute(&cluster, &format!("CREATE DATABASE {name} TEMPLATE template0"));
                assert!(made, "CREATE DATABASE failed");
                format!("{cluster}/{name}")
            }
        };
        Self { folder, url }
    }

    /// Removes it from its server, whoever is connected.
    ///
    /// # Panics
    /// When it is not on a server, or the server does not do it.
    #[expect(clippy::panic, reason = "a test cannot go on")]
    pub fn destroy(&self) {
        let Some((cluster, name)) = self.on_server() else {
            panic!("only a database on a server can be removed")
        };
        assert!(execute(cluster, &format!("DROP DATABASE {name} WITH (FORCE)")), "DROP DATABASE failed");
    }

    /// The cluster it is in and its name there.
    fn on_server(&self) -> Option<(&str, &str)> {
        self.url.rsplit_once('/').filter(|_| self.url.starts_with("postgres"))
    }

    /// Its URL, as `CHANCERY_DATABASE` takes it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder for files.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}

/// A test run makes hundreds of databases: those of tests that went well go with them. One of a test
/// that failed stays to be looked at.
impl Drop for Database {
    fn drop(&mut self) {
        if let Some((cluster, name)) = self.on_server()
            && !std::thread::panicking()
        {
            execute(cluster, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}

/// Whether a cluster did what it was told.
fn execute(cluster: &str, statement: &str) -> bool {
    Command::new("psql")
        .args(["-q", "-d", &format!("{cluster}/postgres"), "-c", "SET client_min_messages = error"])
        .args(["-c", statement])
        .status()
        .is_ok_and(|status| status.success())
}
