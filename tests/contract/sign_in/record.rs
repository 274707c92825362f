//! Records of sign-ins: by people who are known, with what is personal encrypted.

use chancery_store::{Error, Mode};
use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{Home, PASSWORD, browser::Browser};

/// Outcome, reason and methods of each record, and whether address and browser are there, encrypted.
async fn records(world: &World) -> Vec<(String, Option<String>, String, bool)> {
    let read = world.app.store.run("Records", Mode::Quick, None, |tx| {
        let mut found = Vec::new();
        tx.query("SELECT outcome, reason, methods, address FROM sign_in_record ORDER BY rid", &[], |row| {
            let reason = if row.is_null(1)? { None } else { Some(row.text(1)?.to_owned()) };
            let address = row.text(3)?;
            let is_hidden = address.len() > 16 && !address.contains("127.0.0");
            found.push((row.text(0)?.to_owned(), reason, row.text(2)?.to_owned(), is_hidden));
            Ok(())
        })?;
        Ok::<_, Error>(found)
    });
    read.await.unwrap()
}

fn record(outcome: &str, reason: Option<&str>, methods: &str) -> (String, Option<String>, String, bool) {
    (outcome.to_owned(), reason.map(str::to_owned), methods.to_owned(), true)
}

on_both_engines! {
    async fn signing_in_and_out_leave_records(world: World) {
        let home = Home::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let page = browser.open("/connect/endsession").await;
        let csrf = page.field("csrf");
        browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
        assert_eq!(records(&world).await, [record("SignedIn", None, "pwd"), record("SignedOut", None, "")]);
    }

    /// Strangers make no rows; who is known and not admitted does, and whose password is wrong.
    async fn strangers_leave_none(world: World) {
        let home = Home::with(&world, json!({ "isRestricted": true })).await;
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
        // a code that is no pass of hers is as wrong
        let pass = browser.open(&page.action().replace("/password", "/accesspass")).await;
        browser.submit(&pass, &[("username", "ann"), ("pass", "no such pass")]).await;
        assert_eq!(records(&world).await[2..], [wrong()]);
    }

    /// What a lock refuses is no more than a count: whoever is locked out cannot fill the table.
    async fn what_a_lock_refuses_leaves_none(world: World) {
        let home = Home::new(&world).await;
        home.sign_in(&world).await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        world.set_option("AttemptsBeforeTemporaryLock", "2").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        for _ in 0..4 {
            browser.type_password(&page, "ann", "not hers").await;
        }
        let wrong = record("Refused", Some("Credentials"), "");
        assert_eq!(records(&world).await[1..], [wrong.clone(), wrong]);
    }
}
