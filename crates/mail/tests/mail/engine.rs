//! A database for one test.

use std::{
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use chancery_store::{Settings, Store, Target};
use tempfile::TempDir;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Runs a test on an empty database of its own.
pub fn on<F: Future<Output = ()>>(target: &Target, test: impl FnOnce(Store) -> F) {
    let store = Store::open(target, Settings { connections: 4, ..Settings::default() }).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(test(store.clone()));
    drop(runtime);
    store.close();
}

pub fn sqlite() -> (TempDir, Target) {
    let folder = TempDir::new().unwrap();
    let target = Target::Sqlite(folder.path().join("mail.sqlite"));
    (folder, target)
}

/// A database in the cluster that `scripts/test` starts; `None` without one.
pub fn postgres() -> Option<Target> {
    let cluster = std::env::var("CHANCERY_TEST_POSTGRES").ok()?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("mail_{}_{number}", std::process::id());
    let create = format!("CREATE DATABASE {name} TEMPLATE template0");
    let created =
        Command::new("psql").args(["-q", "-d", &format!("{cluster}/postgres"), "-c", &create]).status();
    assert!(created.unwrap().success());
    Some(Target::Postgres(format!("{cluster}/{name}")))
}
