//! The SQL statements of a release work on the schema of this one, so both may run concurrently, and an upgrade can be
//! rolled back. `tests/contract/releases` has the statements, which the tests of the release executed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    path::PathBuf,
};

use chancery_store::{Error, Mode, Settings, Store, Target, raw};
use chancery_testkit::{Database, Engine};

use super::{migrate, output_text, psql, query_value, release_file, start_psql, unpacked};

/// The statements of each release that may run concurrently with this one, by the release.
fn releases(engine: Engine) -> BTreeMap<String, Vec<String>> {
    let file = match engine {
        Engine::Sqlite => "statements.sqlite.gz",
        Engine::Postgres => "statements.postgres.gz",
    };
    let folders = fs::read_dir(release_file("..")).unwrap().map(|entry| entry.unwrap().path());
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
    assert!(output.status.success(), "{}", output_text(&output));
    database
}

/// The errors of statements that PostgreSQL rejects.
fn rejections(database: &Database, statements: &[String]) -> Vec<String> {
    let prepare =
        |(number, text): (usize, &String)| format!("PREPARE s{number} AS {};\n", text.replace('?', "$"));
    let all: String = statements.iter().enumerate().map(prepare).collect();
    let mut psql = start_psql(database);
    psql.stdin.take().unwrap().write_all(format!("\\set ON_ERROR_STOP off\n{all}").as_bytes()).unwrap();
    let output = psql.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    // psql:<stdin>:7: ERROR: ...
    let error = |line: &str| {
        let (line, error) = line.strip_prefix("psql:<stdin>:")?.split_once(": ")?;
        let statement = statements.get(line.parse::<usize>().ok()?.checked_sub(2)?)?;
        Some(format!("{statement}: {error}"))
    };
    let errors: Vec<String> = stderr.lines().filter_map(error).collect();
    assert_eq!(stderr.matches("ERROR: ").count(), errors.len(), "{stderr}");
    errors
}

/// The required columns without a default, by the table.
fn required_columns(database: &Database) -> BTreeMap<String, BTreeSet<String>> {
    let columns = "SELECT table_name || ' ' || column_name FROM information_schema.columns \
        WHERE table_schema = 'public' AND is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'";
    let mut required: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in query_value(database, columns).lines() {
        let (table, column) = line.split_once(' ').unwrap();
        required.entry(table.to_owned()).or_default().insert(column.to_owned());
    }
    required
}

/// The required columns that an insert omits.
fn omitted_columns(required_columns: &BTreeMap<String, BTreeSet<String>>, statement: &str) -> Vec<String> {
    let Some((_, insert)) = statement.split_once("INSERT INTO ") else { return Vec::new() };
    let Some((table, rest)) = insert.split_once(" (") else { return Vec::new() };
    let (columns, _) = rest.split_once(')').unwrap();
    let given: BTreeSet<&str> = columns.split(", ").collect();
    let omitted =
        required_columns.get(table).into_iter().flatten().filter(|column| !given.contains(column.as_str()));
    omitted.map(|column| format!("{table}.{column} is left out by {statement}")).collect()
}

#[test]
fn statements_of_a_release_are_accepted_by_postgres() {
    let database = migrated(Engine::Postgres);
    let required_columns = required_columns(&database);
    assert!(required_columns["user_account"].contains("login_name"));
    for (version, statements) in releases(Engine::Postgres) {
        assert_eq!(rejections(&database, &statements), [""; 0], "{version}");
        let omitted_columns: Vec<String> =
            statements.iter().flat_map(|text| omitted_columns(&required_columns, text)).collect();
        assert_eq!(omitted_columns, [""; 0], "{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_a_release_are_accepted_by_sqlite() {
    let database = migrated(Engine::Sqlite);
    let target = Target::Sqlite(database.folder().join("chancery.sqlite"));
    let opened = chancery_testkit::spawn_blocking(move || Store::open(&target, Settings::default()));
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
    chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
}

/// The check itself detects statements that no longer fit.
#[test]
fn statements_that_no_longer_fit_are_detected() {
    let database = migrated(Engine::Postgres);
    psql(
        &database,
        b"ALTER TABLE user_image ADD COLUMN later BIGINT NOT NULL; ALTER TABLE customer DROP COLUMN name",
    )
    .unwrap();
    let (_, statements) = releases(Engine::Postgres).pop_last().unwrap();
    assert!(rejections(&database, &statements).iter().any(|why| why.contains("customer")));
    let required_columns = required_columns(&database);
    assert!(
        statements
            .iter()
            .flat_map(|text| omitted_columns(&required_columns, text))
            .any(|why| why.starts_with("user_image.later"))
    );
}
