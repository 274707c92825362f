//! Nothing is sent to other systems while outbound traffic is disabled.

use std::path::Path;

use chancery_record::Value;
use chancery_store::{Error, Mode};
use chancery_testkit::{Client, Database, Engine, Process, on_both_engines};
use serde_json::json;
use uuid::Uuid;

use crate::{
    console::{assign, person, sign_in},
    id, jobs_by,
    program::warnings,
    sign_in::browser::Browser,
};

/// `CHANCERY_OUTBOUND=off` disables outbound traffic also where the database is no copy; unknown values are refused.
#[tokio::test(flavor = "multi_thread")]
async fn outbound_traffic_is_switched_off() {
    let database = Database::create(Engine::Sqlite);
    let mut server = Process::start(&database, &[("CHANCERY_OUTBOUND", "off")]).await;
    assert!(warnings(&server).await.contains("CHANCERY_OUTBOUND"));
    assert!(server.stop());
    let server = Process::start(&database, &[("CHANCERY_OUTBOUND", "auto")]).await;
    assert_eq!(warnings(&server).await, "null");
    let wrong = Process::command(&["--outbound", "on", "check-config"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&wrong.stderr);
    assert!(!wrong.status.success() && stderr.contains("outbound is auto or off"), "{stderr}");
}

fn switched_off(_: &Path) -> Vec<String> {
    ["--outbound", "off"].map(str::to_owned).to_vec()
}

on_both_engines! {
    [switched_off]

    /// Every page of the console says that outbound traffic is disabled. Queued messages still expire.
    async fn the_console_says_that_outbound_traffic_is_disabled(world: World) {
        let ada = person(&world, "ada").await;
        assign(&world, &ada, "SystemAdmin", json!({})).await;
        let mut browser = Browser::new(&world);
        let page = sign_in(&mut browser, "/console", "ada").await;
        assert!(page.html.contains("Outbound traffic is disabled"), "{}", page.html);
        let page = browser.open("/console/health").await;
        assert!(page.html.contains("Outbound traffic is disabled."), "{}", page.html);
        let ready = Client::anonymous(&world.base).get("/health/ready").await.is(200).json();
        assert!(ready["warnings"][0].as_str().unwrap().contains("CHANCERY_OUTBOUND"), "{ready}");
        assert_eq!(page.status, 200);
    }

    /// Mails, events and back-channel sign-outs are sent by jobs, which do not run.
    async fn no_job_sends_while_outbound_traffic_is_off(world: World) {
        let names: Vec<_> = jobs_by(&world, chancery_web::now).iter().map(|job| job.name).collect();
        assert!(names.contains(&"prune"), "{names:?}");
        assert!(!["delivering", "mail", "sign-out"].iter().any(|sender| names.contains(sender)), "{names:?}");
    }

    /// Queued messages expire: a mail at its expiry, a back-channel logout after an hour.
    async fn queued_messages_expire(world: World) {
        const HOUR: i64 = 3_600_000;
        let app = world.make("ClientApp", json!({ "name": "told" })).await;
        let app: Uuid = id(&app).parse().unwrap();
        let now = chancery_web::now();
        let mail = "INSERT INTO mail_message (id, store, kind, state, sender, recipient, sealed_data, created_on, expires_on, \
            attempts, due_on, leased_until) VALUES (?1, 1, 'UserLocked', 'Waiting', 'a@b.c', 'd@e.f', ?2, 0, ?3, 0, 0, 0)";
        let sign_out = "INSERT INTO logout_delivery (id, client_app_id, person_id, queued_on, due_on, leased_until, tries) \
            VALUES (?1, ?2, ?1, 0, ?3, 0, 0)";
        let mut rows = Vec::new();
        for (number, age) in [(1, 2 * HOUR), (2, 0)] {
            let (row, since) = (Uuid::from_u128(number), now.0 - age);
            rows.push((mail, vec![row.into(), Value::Bytes(vec![7]), Value::Int(since + HOUR)]));
            rows.push((sign_out, vec![row.into(), app.into(), Value::Int(since)]));
        }
        world.sql(rows).await;
        let prune = world.app.store.run("Prune", Mode::Write, None, move |tx| chancery::prune_batch(tx, now));
        prune.await.map_err(|error: Error| error.to_string()).unwrap();
        for text in ["SELECT id FROM mail_message WHERE state = 'Dead'", "SELECT id FROM logout_delivery WHERE dead_on IS NOT NULL"] {
            let read = world.app.store.run("Test", Mode::Long, None, move |tx| {
                let mut given_up = Vec::new();
                tx.query(text, &[], |row| {
                    given_up.push(row.id(0)?);
                    Ok(())
                })?;
                Ok::<_, Error>(given_up)
            });
            assert_eq!(read.await.unwrap(), [Uuid::from_u128(1)], "{text}");
        }
    }
}
