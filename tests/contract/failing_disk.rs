//! An embedded database whose disk fails, and its files.

use std::os::unix::fs::PermissionsExt as _;

use chancery_store::{Error, Mode, raw};
use chancery_testkit::{Database, Engine, Process, World, no_arguments, run_with};
use serde_json::json;

use crate::until;

const USERS: &str = "/api/userstore/v2/default/administration/User";

/// Bounds the size of the database, as a disk does.
async fn bound(world: &World, pages: i64) {
    let run = world.app.store.run("Bound", Mode::Write, None, move |tx| {
        raw::query(tx, &format!("PRAGMA max_page_count = {pages}"), &[], |_| Ok(()))
    });
    run.await.map_err(|error: Error| error.to_string()).unwrap();
}

/// Section 1: disk full: reads continue, writes are 503, tokens are issued, not ready; everything recovers when
/// there is space again. Read in the code (C): after a disk error the store checks whether the
/// transaction still exists.
#[test]
fn a_full_disk_stops_writes_alone() {
    run_with(Engine::Sqlite, no_arguments, |world| {
        Box::pin(async move {
            world.user("before").await;
            bound(&world, 1).await;
            let mut names = Vec::new();
            let refused = loop {
                let name = format!("n{}", names.len());
                let answer =
                    world.admin.post(USERS, json!({ "loginName": name, "lastName": "x".repeat(100) })).await;
                if answer.status != 201 {
                    break answer;
                }
                names.push(name);
                assert!(names.len() < 5000, "the bound counts");
            };
            refused.problem(503, "unavailable");
            // many at once: those of a group that fails are all refused
            let writes = (0..50).map(|number| {
                let client = world.admin.clone();
                let body = json!({ "loginName": format!("m{number}"), "lastName": "x".repeat(100) });
                chancery_testkit::spawn(async move { client.post(USERS, body).await.status.as_u16() })
            });
            let mut done = 0;
            for (number, write) in writes.collect::<Vec<_>>().into_iter().enumerate() {
                match write.await.unwrap() {
                    201 => {
                        names.push(format!("m{number}"));
                        done += 1;
                    }
                    status => assert_eq!(status, 503),
                }
            }
            assert!(done < 50);
            let there = world.admin.get(USERS).await.is(200).json();
            assert_eq!(
                there.as_array().unwrap().len(),
                names.len() + 1,
                "what was answered is there, and no more"
            );
            // a write that needs no new page still succeeds here, unlike on a full disk
            until("it is not ready", || async {
                world
                    .admin
                    .post(USERS, json!({ "loginName": "late", "lastName": "x".repeat(100) }))
                    .await
                    .expect(503);
                world.anonymous.get("/health/ready").await.status == 503
            })
            .await;
            bound(&world, 1 << 30).await;
            world.user("afterwards").await;
            until("it is ready", || async { world.anonymous.get("/health/ready").await.status == 200 }).await;
        })
    });
}

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A12: the files of the database are readable by their owner alone, and so is the folder.
#[tokio::test]
async fn files_are_the_owners_alone() {
    let database = Database::create(Engine::Sqlite);
    let folder = database.folder().join("new").join("data");
    let (data, file) = (folder.display().to_string(), folder.join("chancery.sqlite"));
    let url = format!("sqlite:{}", file.display());
    let words = [("CHANCERY_DATA_DIR", data.as_str()), ("CHANCERY_DATABASE", url.as_str())];
    let mut server = Process::start(&database, &words).await;
    server.admin.post(USERS, json!({ "loginName": "ada" })).await.expect(201);
    let look = || {
        assert_eq!(mode(&folder), 0o700);
        let mut files = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            files += 1;
        }
        assert!(files >= 4, "database, log, index, lock, key");
    };
    look();
    server.kill();
    // files that an earlier version left open are closed
    for ending in ["", "-wal", "-shm"] {
        let path = format!("{}{ending}", file.display());
        let open = std::fs::Permissions::from_mode(0o644);
        if std::fs::exists(&path).unwrap() {
            std::fs::set_permissions(&path, open).unwrap();
        }
    }
    let _again = Process::start(&database, &words).await;
    look();
}

/// Section 5: with little space left the server is not ready, and continues as long as it can.
#[tokio::test]
async fn low_disk_space_is_reported() {
    let database = Database::create(Engine::Sqlite);
    let more_than_any_disk = (1_u64 << 40).to_string();
    let server = Process::start(&database, &[("CHANCERY_DISK_RESERVE", &more_than_any_disk)]).await;
    until("it is not ready", || async { server.admin.get("/health/ready").await.status == 503 }).await;
    assert_eq!(server.admin.get("/health/ready").await.json()["reason"], "read-only");
    server.admin.post(USERS, json!({ "loginName": "ada" })).await.expect(201);
}
