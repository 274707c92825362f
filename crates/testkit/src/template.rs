//! A database that a server has started on once: tests copy it instead of starting from nothing.
//!
//! It belongs to one build of the tests, so a change of a migration or of the first start makes a new
//! one. The first test that needs it makes it; the others wait.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use chancery::Server;

use crate::{Database, Engine, world};

/// The file that the master key is in.
const MASTER_KEY: &str = "master.key";

/// Where the template of an engine is, and what its database is called on a server.
struct Template {
    folder: PathBuf,
    name: String,
}

/// A database of one test's own on which a server has been: migrated, with its first rows.
///
/// # Panics
/// When it cannot be made.
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
        Self { folder: folders.join(format!("{name}_{}", engine.place())), name }
    }

    /// Starts a server on an empty database, and ends it.
    #[expect(clippy::expect_used, reason = "a test cannot go on without its database")]
    async fn make(&self, engine: Engine) {
        let _ = fs::remove_dir_all(&self.folder);
        fs::create_dir_all(&self.folder).expect("a folder for the template");
        let database = Database::named(engine, &self.name);
        let config = world::config(&database, Vec::new());
        let server = Server::start(&config).await.expect("the server starts");
        server.run(std::future::ready(std::time::Duration::ZERO)).await;
        database.keep(&self.folder);
    }

    /// `None`: the server that the template was made on is not there any more.
    fn copy(&self, engine: Engine) -> Option<Database> {
        Database::copied(engine, &self.name, &self.folder)
    }
}

/// Copies the files of a server that has ended.
pub fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    for file in fs::read_dir(from)? {
        let file = file?;
        let name = file.file_name();
        if name == MASTER_KEY || name == Database::FILE {
            fs::copy(file.path(), to.join(name))?;
        }
    }
    Ok(())
}
