//! The SQL statements of a release work on the schema of this one, so both may run side by side, and an upgrade can be rolled back.
//! `tests/contract/releases` has the statements, which the tests of the release executed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    path::PathBuf,
};

use chancery_store::{Error, Mode, Settings, Store, Target, raw};
use chancery_testkit::{Database, Engine};

use super::{ask, kept, migrate, psql, said, start_psql, unpacked};

/// The statements of each release whose programs may run beside this one, by the release.
fn releases(engine: Engine) -> BTreeMap<String, Vec<String>> {
    let file = match engine {
        Engine::Sqlite => "statements.sqlite.gz",
        Engine::Postgres => "statements.postgres.gz",
    };
    let folders = fs::read_dir(kept("..")).unwrap().map(|entry| entry.unwrap().path());
    let with_statements = folders.filter(|folder| folder.join(file).exists());
    let read = |folder: PathBuf| {
        let version = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let text = String::from_utf8(unpacked(&format!("../{version}/{file}"))).unwrap();
        let statements: Vec<String> = text.lines().map(str::to_owned).collect();
        assert!(statements.len() > 500, "{version}");
        (version, statements)
    };
    let releases: BTreeMap<_, _> = with_statements.map(read).collect();
    assert!(!releases.is_empty());
    releases
}

/// An empty database with the schema of this program.
fn migrated(engine: Engine) -> Database {
    let database = Database::create(engine);
    let output = migrate(&database).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    database
}

/// Why PostgreSQL refuses statements.
fn refused(database: &Database, statements: &[String]) -> Vec<String> {
    let prepare =
        |(number, text): (usize, &String)| format!("PREPARE s{number} AS {};\n", text.replace('?', "$"));
    let all: String = statements.iter().enumerate().map(prepare).collect();
    let mut psql = start_psql(database);
    psql.stdin.take().unwrap().write_all(format!("\\set ON_ERROR_STOP off\n{all}").as_bytes()).unwrap();
    let output = psql.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    // psql:<stdin>:7: ERROR: ...
    let why = |line: &str| {
        let (line, why) = line.strip_prefix("psql:<stdin>:")?.split_once(": ")?;
        let statement = statements.get(line.parse::<usize>().ok()?.checked_sub(2)?)?;
        Some(format!("{statement}: {why}"))
    };
    let found: Vec<String> = told.lines().filter_map(why).collect();
    assert_eq!(told.matches("ERROR: ").count(), found.len(), "{told}");
    found
}

/// The columns that every new row needs, by the table.
fn needed(database: &Database) -> BTreeMap<String, BTreeSet<String>> {
    let columns = "SELECT table_name || ' ' || column_name FROM information_schema.columns \
        WHERE table_schema = 'public' AND is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'";
    let mut needed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in ask(database, columns).lines() {
        let (table, column) = line.split_once(' ').unwrap();
        needed.entry(table.to_owned()).or_default().insert(column.to_owned());
    }
    needed
}

/// The columns that an insert leaves out although every row needs them.
fn left_out(needed: &BTreeMap<String, BTreeSet<String>>, statement: &str) -> Vec<String> {
    let Some((_, insert)) = statement.split_once("INSERT INTO ") else { return Vec::new() };
    let Some((table, rest)) = insert.split_once(" (") else { return Vec::new() };
    let (columns, _) = rest.split_once(')').unwrap();
    let given: BTreeSet<&str> = columns.split(", ").collect();
    let lacks = needed.get(table).into_iter().flatten().filter(|column| !given.contains(column.as_str()));
    lacks.map(|column| format!("{table}.{column} is left out by {statement}")).collect()
}

#[test]
fn statements_of_a_release_are_taken_by_postgres() {
    let database = migrated(Engine::Postgres);
    let needed = needed(&database);
    assert!(needed["user_account"].contains("login_name"));
    for (version, statements) in releases(Engine::Postgres) {
        assert_eq!(refused(&database, &statements), [""; 0], "{version}");
        let left_out: Vec<String> = statements.iter().flat_map(|text| left_out(&needed, text)).collect();
        assert_eq!(left_out, [""; 0], "{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_a_release_are_taken_by_sqlite() {
    let database = migrated(Engine::Sqlite);
    let target = Target::Sqlite(database.folder().join("chancery.sqlite"));
    let opened = tokio::task::spawn_blocking(move || Store::open(&target, Settings::default()));
    let store = opened.await.unwrap().unwrap();
    for (version, statements) in releases(Engine::Sqlite) {
        let explained = store.run("Explain", Mode::Write, None, move |tx| {
            let explain = |text: &String| {
                let explained = raw::query(tx, &format!("EXPLAIN {text}"), &[], |_| Ok(()));
                explained.err().map(|why| format!("{text}: {why}"))
            };
            Ok::<_, Error>(statements.iter().filter_map(explain).collect::<Vec<_>>())
        });
        assert_eq!(explained.await.unwrap(), [""; 0], "{version}");
    }
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

/// The check itself finds what no longer fits.
#[test]
fn statements_that_no_longer_fit_are_found() {
    let database = migrated(Engine::Postgres);
    psql(
        &database,
        b"ALTER TABLE user_image ADD COLUMN later BIGINT NOT NULL; ALTER TABLE customer DROP COLUMN name",
    )
    .unwrap();
    let (_, statements) = releases(Engine::Postgres).pop_last().unwrap();
    assert!(refused(&database, &statements).iter().any(|why| why.contains("customer")));
    let needed = needed(&database);
    assert!(
        statements
            .iter()
            .flat_map(|text| left_out(&needed, text))
            .any(|why| why.starts_with("user_image.later"))
    );
}
