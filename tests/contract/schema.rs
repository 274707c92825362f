//! The schemas that a program accepts: older ones, which it migrates, and its own.

use chancery_store::{Error, Mode, Settings, Store, Target, migration_checksums, raw};
use chancery_testkit::{Database, Engine, Process};

/// A released migration is never edited: databases that have it would be refused.
#[test]
fn migrations_are_as_they_were() {
    let lines = migration_checksums().map(|(version, checksum)| format!("{version:04} {checksum}\n"));
    insta::assert_snapshot!(lines.collect::<String>());
}

/// The text of `spec/schema.sql`: the tables and indexes of the newest schema, as SQLite has them.
async fn schema_text() -> String {
    let database = Database::create(Engine::Sqlite);
    let store = open(Store::open, &Target::Sqlite(database.folder().join("chancery.sqlite"))).await.unwrap();
    let text = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name";
    let read = store.run("Test", Mode::Long, None, move |tx| {
        let mut lines = String::new();
        tx.query(text, &[], |row| {
            lines.push_str(&row.text(0)?.replace("\n, ", ",\n    "));
            lines.push_str(";\n");
            Ok(())
        })?;
        Ok::<_, Error>(lines)
    });
    let statements = read.await.unwrap();
    close(store).await;
    format!(
        "-- The tables and indexes of the newest schema, as SQLite has them; migrations/README.md has the types on PostgreSQL.\n\
         -- A test makes this file from the migrations.\n\n{statements}"
    )
}

/// A reader finds each table in one place, however many migrations made it.
#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_as_the_page_shows_it() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../spec/schema.sql");
    let text = schema_text().await;
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text, "INSTA_UPDATE=always writes it anew");
}

/// The effect of a statement on a schema: the number of migrations without a checksum after the next start, or the error
/// of the start; and the error of a reader, if there is one.
struct Start {
    server: Result<i64, String>,
    reader: Result<(), String>,
}

async fn find_after(engine: Engine, text: &'static str) -> Start {
    let database = Database::create(engine);
    let target = match engine {
        Engine::Sqlite => Target::Sqlite(database.folder().join("chancery.sqlite")),
        Engine::Postgres => Target::Postgres(database.url().to_owned()),
    };
    let store = open(Store::open, &target).await.unwrap();
    let write = store.run("Test", Mode::Write, None, |tx| raw::execute(tx, text, &[]));
    write.await.map_err(|error: Error| error.to_string()).unwrap();
    close(store).await;
    let reader = match open(Store::open_to_read, &target).await {
        Ok(store) => {
            close(store).await;
            Ok(())
        }
        Err(why) => Err(why),
    };
    let server = match open(Store::open, &target).await {
        Ok(store) => {
            let count = "SELECT count(*) FROM schema_migration WHERE checksum IS NULL";
            let read = store.run("Test", Mode::Long, None, |tx| tx.one(count, &[], |row| row.int(0)));
            let lacking = read.await.map_err(|error: Error| error.to_string()).unwrap();
            close(store).await;
            Ok(lacking.unwrap())
        }
        Err(why) => Err(why),
    };
    Start { server, reader }
}

async fn open(open: fn(&Target, Settings) -> Result<Store, Error>, target: &Target) -> Result<Store, String> {
    let target = target.clone();
    let opened = chancery_testkit::spawn_blocking(move || open(&target, Settings::default())).await.unwrap();
    opened.map_err(|error| error.to_string())
}

async fn close(store: Store) {
    chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
}

/// A newer schema is served as long as its floor allows it.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_served_unless_its_floor_is_above_this_program() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let newer = "INSERT INTO schema_migration (version, checksum) VALUES (9999, 'feed')";
        let start = find_after(engine, newer).await;
        assert_eq!((start.server, start.reader), (Ok(0), Ok(())));
        let start = find_after(engine, "UPDATE schema_floor SET floor = 9999").await;
        for refused in [start.server.unwrap_err(), start.reader.unwrap_err()] {
            assert!(refused.contains("serves programs that know version 9999"), "{refused}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_other_texts_is_refused() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let other = "UPDATE schema_migration SET checksum = 'feed' WHERE version = 7";
        let start = find_after(engine, other).await;
        for refused in [start.server.unwrap_err(), start.reader.unwrap_err()] {
            assert!(refused.contains("migration 7 ") && refused.contains("use the program"), "{refused}");
        }
    }
}

/// A migration of an earlier release has no checksum. It is accepted unchanged, and gets one.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_without_checksums_gets_them() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let start = find_after(engine, "UPDATE schema_migration SET checksum = NULL").await;
        assert_eq!((start.server, start.reader), (Ok(0), Ok(())));
    }
}

/// A program that runs when the floor is raised above it ends, and logs the reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_the_floor_passes_ends_with_a_sentence() {
    let database = Database::create(Engine::Postgres);
    let mut server = Process::start(&database, &[]).await;
    database.execute("UPDATE schema_floor SET floor = 9999");
    assert!(!tokio::task::block_in_place(|| server.wait()));
    let log = std::fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("serves programs that know version 9999"), "{log}");
}
