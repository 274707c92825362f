//! Records of sign-ins of known people, with encrypted personal data.

use chancery::prune_batch;
use chancery_record::Timestamp;
use chancery_store::{Error, Mode};
use chancery_testkit::{World, on_both_engines};
use chancery_web::now;
use serde_json::{Value, json};

use super::{PASSWORD, SignInApp, browser::Browser, tenant_option};

/// Outcome, reason and methods of each record, and whether address and browser are present, encrypted.
async fn records(world: &World) -> Vec<(String, Option<String>, String, bool)> {
    let read = world.app.store.run("Records", Mode::Quick, None, |tx| {
        let mut rows = Vec::new();
        tx.query("SELECT outcome, reason, methods, address FROM sign_in_record ORDER BY rid", &[], |row| {
            let reason = if row.is_null(1)? { None } else { Some(row.text(1)?.to_owned()) };
            let address = row.text(3)?;
            let is_hidden = address.len() > 16 && !address.contains("127.0.0");
            rows.push((row.text(0)?.to_owned(), reason, row.text(2)?.to_owned(), is_hidden));
            Ok(())
        })?;
        Ok::<_, Error>(rows)
    });
    read.await.unwrap()
}

fn record(outcome: &str, reason: Option<&str>, methods: &str) -> (String, Option<String>, String, bool) {
    (outcome.to_owned(), reason.map(str::to_owned), methods.to_owned(), true)
}

/// The records of failed attempts, oldest first.
async fn refused(world: &World) -> Vec<Value> {
    let filter = super::encode("outcome eq \"Refused\"");
    world.all(&format!("SignInRecord?filter={filter}&count=1000")).await.as_array().unwrap().clone()
}

/// The reason of each of them, and its number of attempts.
async fn attempts_by_reason(world: &World) -> Vec<(String, i64)> {
    let reason_and_attempts = |record: &Value| {
        (record["reason"].as_str().unwrap().to_owned(), record["attempts"].as_i64().unwrap())
    };
    refused(world).await.iter().map(reason_and_attempts).collect()
}

on_both_engines! {
    async fn signing_in_and_out_leave_records(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let page = browser.open("/connect/endsession").await;
        let csrf = page.field("csrf");
        browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
        assert_eq!(records(&world).await, [record("SignedIn", None, "pwd"), record("SignedOut", None, "")]);
    }

    /// SignInRecordRetention: how long after the sign-in its record is listed.
    ///
    /// - Effect of `Tenant options.SignInRecordRetention`: Records of sign-ins are kept for this time.
    async fn records_follow_the_retention_of_the_tenant(world: World) {
        const HOUR: i64 = 3_600_000;
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "SignInRecordRetention", "2.00:00:00").await;
        home.sign_in(&world).await;
        let begin = now().0;
        for (hours, count) in [(47, 1), (49, 0)] {
            let later = Timestamp(begin + hours * HOUR);
            let run = world.app.store.run("Test", Mode::Write, None, move |tx| prune_batch(tx, later));
            run.await.map_err(|error: Error| error.to_string()).unwrap();
            assert_eq!(world.all("SignInRecord").await.as_array().unwrap().len(), count, "after {hours} hours");
        }
    }

    /// Unknown names create no rows; known people who are refused, or whose password is wrong, do.
    async fn unknown_users_leave_no_records(world: World) {
        let home = SignInApp::with(&world, json!({ "isRestricted": true })).await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        browser.type_password(&page, "nobody", PASSWORD).await;
        assert!(records(&world).await.is_empty());
        browser.type_password(&page, "ann", PASSWORD).await;
        assert_eq!(records(&world).await, [record("Refused", Some("NotAdmitted"), "pwd")]);
        let page = browser.open(&home.request(&[])).await;
        browser.type_password(&page, "ann", "not hers").await;
        let wrong = || record("Refused", Some("Credentials"), "");
        assert_eq!(records(&world).await[1..], [wrong()]);
        // a code that is not her pass counts as wrong, too
        let pass = browser.open(&page.action().replace("/password", "/accesspass")).await;
        browser.submit(&pass, &[("username", "ann"), ("pass", "no such pass")]).await;
        assert_eq!(records(&world).await[1..], [wrong()]);
        assert_eq!(attempts_by_reason(&world).await, [("NotAdmitted".to_owned(), 1), ("Credentials".to_owned(), 2)]);
    }

    /// Failed attempts share one record for each person, address and hour.
    async fn failed_attempts_from_an_address_share_one_record_an_hour(world: World) {
        let home = SignInApp::new(&world).await;
        home.sign_in(&world).await;
        for option in ["LoginThrottlingEnabled", "TemporaryLockEnabled"] {
            world.set_option(option, "false").await;
        }
        let wrong = async |times: usize| {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            for _ in 0..times {
                browser.type_password(&page, "ann", "not hers").await;
            }
        };
        wrong(6).await;
        assert_eq!(attempts_by_reason(&world).await, [("Credentials".to_owned(), 6)]);
        let record = refused(&world).await[0].clone();
        assert_eq!(record["attempts"], 6);
        assert!(record["lastAttemptOn"].as_str().unwrap() > record["occurredOn"].as_str().unwrap(), "{record}");
        assert!(record["address"].as_str().unwrap().starts_with("127.") && record["userAgent"] != json!(""), "{record}");
        // after an hour it is a new record
        let text = "UPDATE sign_in_attempt SET expires_on = expires_on - 3600000";
        world.sql(vec![(text, vec![])]).await;
        wrong(2).await;
        assert_eq!(attempts_by_reason(&world).await, [("Credentials".to_owned(), 6), ("Credentials".to_owned(), 2)]);
    }

    /// Beyond the limit, attempts from further addresses share one record without an address.
    async fn records_of_failed_attempts_are_limited_per_person(world: World) {
        let home = SignInApp::new(&world).await;
        home.sign_in(&world).await;
        for option in ["LoginThrottlingEnabled", "TemporaryLockEnabled"] {
            world.set_option(option, "false").await;
        }
        let forget = "DELETE FROM sign_in_attempt WHERE record_id IN (SELECT id FROM sign_in_record WHERE address IS NOT NULL)";
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        // as if each was sent from another address
        for _ in 0..104 {
            browser.type_password(&page, "ann", "not hers").await;
            world.sql(vec![(forget, vec![])]).await;
        }
        let all = refused(&world).await;
        let (without, with): (Vec<&Value>, Vec<&Value>) = all.iter().partition(|record| record["address"].is_null());
        assert_eq!((with.len(), without.len()), (99, 1), "with the sign-in they are a hundred");
        assert_eq!(without[0]["attempts"], 5);
    }

    /// Attempts during a lock only increase a count: a locked person cannot fill the table.
    async fn attempts_during_a_lock_leave_no_records(world: World) {
        let home = SignInApp::new(&world).await;
        home.sign_in(&world).await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        world.set_option("AttemptsBeforeTemporaryLock", "2").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        for _ in 0..4 {
            browser.type_password(&page, "ann", "not hers").await;
        }
        let wrong = record("Refused", Some("Credentials"), "");
        assert_eq!(records(&world).await[1..], [wrong]);
        assert_eq!(attempts_by_reason(&world).await, [("Credentials".to_owned(), 2)]);
    }
}
