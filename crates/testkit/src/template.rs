//! The template database, on which a server has started once: tests copy it instead of an empty one.
//!
//! A template belongs to one build of the tests, so a change to a migration or to the first start means
//! a new one. The first test that needs it creates it; the others wait.

use std::{
    fs::{self, File},
    path::PathBuf,
    time::UNIX_EPOCH,
};

use chancery::{Config, Server};
use chancery_store::{Error, Mode, Store, raw};

use crate::{Database, Engine, server_config};

/// An engine's template: the folder of its files, and the name of its database on a server.
struct Template {
    folder: PathBuf,
    name: String,
}

/// A copy of the template for one test: migrated, with the rows of the first start.
///
/// # Panics
/// When the copy or the template cannot be created.
#[expect(clippy::expect_used, reason = "a test cannot go on without its database")]
pub async fn copy(engine: Engine) -> Database {
    let template = Template::of(engine);
    let whole = template.folder.join("whole");
    if whole.exists()
        && let Some(database) = template.copy(engine)
    {
        return database;
    }
    let lock = File::create(template.folder.with_extension("lock")).expect("a lock for the template");
    lock.lock().expect("the lock of the template");
    if whole.exists()
        && let Some(database) = template.copy(engine)
    {
        return database;
    }
    template.make(engine).await;
    File::create(whole).expect("a mark that the template is whole");
    template.copy(engine).expect("a copy of the template")
}

impl Template {
    #[expect(clippy::expect_used, reason = "a test cannot go on without its database")]
    fn of(engine: Engine) -> Self {
        let own = std::env::current_exe().expect("the test's own path");
        let built = fs::metadata(&own).and_then(|file| file.modified()).expect("when the test was built");
        let built = built.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("template_{built}");
        let folders = own.with_file_name("templates");
        fs::create_dir_all(&folders).expect("a folder for templates");
        Self { folder: folders.join(format!("{name}_{}", engine.key())), name }
    }

    /// Starts a server on an empty database, and stops it.
    #[expect(clippy::expect_used, reason = "a test cannot go on without its database")]
    async fn make(&self, engine: Engine) {
        let _ = fs::remove_dir_all(&self.folder);
        fs::create_dir_all(&self.folder).expect("a folder for the template");
        let database = Database::named(engine, &self.name);
        let config = server_config::config(&database, Vec::new());
        let server = Server::start(&config).await.expect("the server starts");
        server
            .run(std::future::ready(std::time::Duration::ZERO))
            .await
            .expect("the server serves its database");
        forget_installation(&config).await;
        database.retain(&self.folder);
    }

    /// A copy of the template; `None` when PostgreSQL no longer has its database.
    fn copy(&self, engine: Engine) -> Option<Database> {
        Database::copied(engine, &self.name, &self.folder)
    }
}

/// Lets the copies of a template be no copies of an installation: each records itself.
#[expect(clippy::expect_used, reason = "a test cannot go on without its database")]
async fn forget_installation(config: &Config) {
    let (target, settings) = (config.database.clone(), config.store);
    let opened = tokio::task::spawn_blocking(move || Store::open(&target, settings)).await;
    let store = opened.expect("a thread").expect("the template's database");
    let text = "DELETE FROM installation";
    let forget = store.run("Test", Mode::Write, None, |tx| raw::execute(tx, text, &[]));
    forget.await.map_err(|error: Error| error.to_string()).expect("a template without an installation");
    tokio::task::spawn_blocking(move || store.close()).await.expect("a thread");
}
