//! A restore invalidates tokens and sessions, and repeats erasures.

use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};

use chancery_record::Value;
use chancery_store::{Error, Mode, Settings, StateTable, Store, Target, raw};
use chancery_testkit::{Client, Database, Engine, Process, on_both_engines};
use serde_json::json;

use super::{USERS, done, login_names, refused, run, user, warnings, word};
use crate::{id, until};

/// A backup, changes after it, and a restore of the backup.
async fn restored_after(engine: Engine) {
    let database = Database::create(engine);
    let list = database.folder().join("erased.jsonl");
    let environment = [("CHANCERY_ERASURE_LIST", word(&list))];
    let mut server = Process::start(&database, &environment).await;
    user(&server, "ada").await;
    let erased = user(&server, "erased since").await;
    let before = server.admin.clone();
    assert!(server.stop());
    let file = database.folder().join("copy");
    let copy = match engine {
        Engine::Sqlite => {
            done(&run(&database, &["backup", "--output", word(&file)]));
            None
        }
        Engine::Postgres => Some(database.copy().unwrap()),
    };

    let mut server = Process::start(&database, &environment).await;
    user(&server, "made since").await;
    let person = id(&erased).to_owned();
    server.admin.post(&format!("{USERS}/{person}/erase"), json!({})).await.expect(204);
    let erased_at = Instant::now();
    until("the erasure is listed", || async {
        fs::read_to_string(&list).is_ok_and(|text| text.contains(&person))
    })
    .await;
    assert!(erased_at.elapsed() < Duration::from_secs(10), "{:?}", erased_at.elapsed());
    assert!(server.stop());

    let restored_database = copy.as_ref().unwrap_or(&database);
    let arguments = match engine {
        Engine::Sqlite => vec!["restore", word(&file), "--replace", "--erasures", word(&list)],
        Engine::Postgres => vec!["restore", "--in-place", "--erasures", word(&list)],
    };
    let output = done(&run(restored_database, &arguments));
    assert!(
        output.contains("1 people were there again") && output.contains("is the installation"),
        "{output}"
    );
    let server = Process::start(restored_database, &environment).await;
    assert_eq!(login_names(&server.admin).await, ["ada".to_owned()].into());
    server.admin.get(&format!("{USERS}/{person}")).await.expect(404);
    let former = Client::anonymous(&server.base).with_token(before.token());
    former.get(USERS).await.expect(401);
    assert_eq!(warnings(&server).await, "null", "it is the installation, and tells others what it has to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_invalidates_tokens_and_repeats_erasures_sqlite() {
    restored_after(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_invalidates_tokens_and_repeats_erasures_postgres() {
    restored_after(Engine::Postgres).await;
}

/// A server that runs during a restore does not notice the invalidation, so it stops by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_runs_during_a_restore_stops() {
    let database = Database::create(Engine::Postgres);
    let mut server = Process::start(&database, &[]).await;
    done(&run(&database, &["restore", "--in-place", "--no-erasures"]));
    let (ended, server) = chancery_testkit::spawn_blocking(move || (server.wait(), server)).await.unwrap();
    let log = fs::read_to_string(&server.log).unwrap();
    assert!(!ended && log.contains("was restored meanwhile"), "{log}");
}

/// No server starts after an interrupted restore until it has been completed.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_restore_must_be_repeated() {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start(&database, &[]).await;
    user(&server, "ada").await;
    assert!(server.stop());
    let target = Target::Sqlite(database.folder().join("chancery.sqlite"));
    let opened = chancery_testkit::spawn_blocking(move || Store::open(&target, Settings::default()));
    let store = opened.await.unwrap().unwrap();
    let broken = store.run("Test", Mode::Write, None, |tx| {
        raw::execute(tx, "UPDATE installation SET is_restoring = ?1", &[Value::Bool(true)])
    });
    broken.await.map_err(|error: Error| error.to_string()).unwrap();
    chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
    let error = refused(&run(&database, &["serve"]));
    assert!(error.contains("being restored"), "{error}");
    done(&run(&database, &["restore", "--in-place", "--no-erasures"]));
    let server = Process::start(&database, &[]).await;
    assert!(login_names(&server.admin).await.contains("ada"));
}

/// A list of another installation, or a modified one, erases nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_modified_list_of_erasures_is_rejected() {
    let database = Database::create(Engine::Sqlite);
    let list = database.folder().join("erased.jsonl");
    let mut server = Process::start(&database, &[("CHANCERY_ERASURE_LIST", word(&list))]).await;
    let erased = user(&server, "erased").await;
    let unaffected = user(&server, "kept").await;
    server.admin.post(&format!("{USERS}/{}/erase", id(&erased)), json!({})).await.expect(204);
    until("the erasure is listed", || async {
        fs::read_to_string(&list).is_ok_and(|text| text.contains(id(&erased)))
    })
    .await;
    assert!(server.stop());
    let text = fs::read_to_string(&list).unwrap().replace(id(&erased), id(&unaffected));
    fs::write(&list, text).unwrap();
    let error = refused(&run(&database, &["restore", "--in-place", "--erasures", word(&list)]));
    assert!(error.contains("line 1") && error.contains("signature"), "{error}");
    let server = Process::start(&database, &[]).await;
    assert!(login_names(&server.admin).await.contains("kept"));
}

on_both_engines! {
    /// Access passes and SCIM tokens of user stores are ended, with audit entries.
    async fn access_passes_and_scim_tokens_are_ended(world: World) {
        let token = world.admin.post(&world.path("/ScimToken"), json!({ "name": "directory" })).await.is(201).json();
        let ada = world.user("ada").await;
        let passes = world.path("/passkey-security/temporary-access-passes");
        world.admin.post(&passes, json!({ "userId": id(&ada) })).await.expect(201);
        let report = chancery::end_audited(&world.app.store, &world.app.context).await.unwrap();
        assert!(report.contains("1 SCIM tokens") && report.contains("1 access passes"), "{report}");
        let passes = world.admin.get(&passes).await.is(200).json();
        assert_eq!(passes["items"][0]["status"], "Revoked", "{passes}");
        let row = world.admin.get(&world.path(&format!("/ScimToken/{}", id(&token)))).await.is(200).json();
        assert_eq!(row["isActive"], false);
        let again = chancery::end_audited(&world.app.store, &world.app.context).await.unwrap();
        assert!(again.contains("0 SCIM tokens") && again.contains("0 access passes"), "{again}");
    }
}

/// The state tables without tokens, codes and sessions: a restore leaves them as they are.
const UNAFFECTED: &[StateTable] = &[
    StateTable::AttemptGuard,
    StateTable::AttemptAtUnknownUser,
    StateTable::AuditCompaction,
    StateTable::AuditKey,
    StateTable::AuditPending,
    StateTable::AuditTree,
    StateTable::AuditNode,
    StateTable::AuditLeaf,
    StateTable::EventAttempt,
    StateTable::EventDelivery,
    StateTable::EventReader,
    StateTable::EventSubscriber,
    StateTable::EventPosition,
    StateTable::EventPending,
    StateTable::EventTrail,
    StateTable::ClientAppController,
    StateTable::ClientAppRefusal,
    StateTable::ClientCredentialUse,
    StateTable::ConsolePreference,
    StateTable::DirectoryRefusal,
    StateTable::Erasure,
    StateTable::IdempotentAnswer,
    StateTable::IdempotentClaim,
    StateTable::IdempotentErasure,
    StateTable::IdentityReplacementApproval,
    StateTable::IdentityRevocation,
    StateTable::KeyRoot,
    StateTable::Installation,
    StateTable::JobLease,
    StateTable::LogoutDelivery,
    StateTable::OfferRest,
    StateTable::OptionEntry,
    StateTable::OutboxEvent,
    StateTable::PasskeyTrustRefresh,
    StateTable::PasskeyTrustSnapshot,
    StateTable::PasswordResetMail,
    StateTable::Process,
    StateTable::QuestionnaireMark,
    StateTable::RecoveryCode,
    StateTable::RemovedPassword,
    StateTable::ResourceOwner,
    StateTable::RetiredId,
    StateTable::RevokedToken,
    StateTable::SecondFactor,
    StateTable::ScimRemoval,
    StateTable::ScimTokenUse,
    StateTable::SignInAttempt,
    StateTable::SignInCutoff,
    StateTable::SignInRecord,
    StateTable::SchemaFloor,
    StateTable::SigningKey,
    StateTable::TermsAcceptance,
    StateTable::UsedProof,
    StateTable::UserImageContent,
    StateTable::UserPassword,
    StateTable::UserPasswordHistory,
];

/// A restore ends every session, grant, token and code, also of tables that are added later.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_ends_the_rows_of_every_table_with_tokens() {
    let database = Database::create(Engine::Sqlite);
    let file = database.folder().join("chancery.sqlite");
    let target = Target::Sqlite(file.clone());
    let opened = chancery_testkit::spawn_blocking(move || Store::open(&target, Settings::default()));
    let store = opened.await.unwrap().unwrap();
    let raw = rusqlite::Connection::open(file).unwrap();
    raw.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").unwrap();
    let affected: Vec<_> = StateTable::ALL.iter().filter(|table| !UNAFFECTED.contains(table)).collect();
    for table in &affected {
        insert_any_row(&raw, table.name());
    }
    chancery::end_rows(&store, chancery_web::now()).await.unwrap();
    let left: BTreeSet<_> =
        affected.iter().map(|table| table.name()).filter(|table| has_rows(&raw, table)).collect();
    assert_eq!(left, ["mail_message", "sign_in_grant", "sign_in_session"].into());
    let active = "SELECT count(*) FROM (SELECT ended_on FROM sign_in_session UNION ALL SELECT ended_on FROM sign_in_grant) \
        WHERE ended_on IS NULL";
    assert_eq!(raw.query_row(active, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
}

/// Inserts a row whose mandatory columns have a value of their type.
fn insert_any_row(raw: &rusqlite::Connection, table: &str) {
    let mut columns =
        raw.prepare("SELECT name, type FROM pragma_table_info(?1) WHERE \"notnull\" OR pk").unwrap();
    let columns = columns.query_map([table], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let (names, values): (Vec<String>, Vec<&str>) = columns
        .map(|column| {
            let (name, kind): (String, String) = column.unwrap();
            (name, if kind == "BLOB" { "zeroblob(16)" } else { "7" })
        })
        .unzip();
    let text = format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), values.join(", "));
    raw.execute(&text, []).unwrap();
}

fn has_rows(raw: &rusqlite::Connection, table: &str) -> bool {
    raw.prepare(&format!("SELECT 1 FROM {table}")).unwrap().exists([]).unwrap()
}
