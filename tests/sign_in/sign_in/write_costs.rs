//! Costs of each step of a sign-in: commits, and the rows that they leave (section 18).

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use chancery_store::{Error, Mode};
use chancery_testkit::{World, on_both_engines};
use http::Method;
use serde_json::json;

use super::{
    BASE, PASSWORD, SignInApp,
    browser::Browser,
    claims, external, form, link, parameter,
    passkey::{use_passkey, with_passkey},
    second_factor::{between, enrol, require_factor, typed},
};
use crate::{
    id,
    provider_trial::{allow_loopback, stub_provider::Behaviour},
    until,
};

/// Repetitions of a step. The cheapest one counts, since jobs of the server commit, too.
const TIMES: usize = 9;

/// Tables that sign-ins write.
const TABLES: [&str; 9] = [
    "outbox_event",
    "authorization_code",
    "sign_in_session",
    "sign_in_grant",
    "sign_in_record",
    "sign_in_consent",
    "logout_delivery",
    "reference_token",
    "revoked_token",
];

/// Commits so far, and the number of rows of each table.
async fn commits_and_rows(world: &World) -> (u64, BTreeMap<&'static str, i64>) {
    let counting = world.app.store.run("Count", Mode::Quick, None, |tx| {
        let mut rows = BTreeMap::new();
        for table in TABLES {
            let count = tx.one(&format!("SELECT count(*) FROM {table}"), &[], |row| row.int(0))?;
            rows.insert(table, count.unwrap_or_default());
        }
        Ok::<_, Error>(rows)
    });
    let rows = counting.await.unwrap();
    (world.app.store.figures().commits, rows)
}

/// Whether jobs have committed what follows from earlier steps: positions of events, and leaves of the audit tree.
async fn jobs_are_done(world: &World) -> bool {
    let pending = "SELECT (SELECT count(*) FROM event_pending) + (SELECT count(*) FROM audit_pending)";
    let counting =
        world.app.store.run("Test", Mode::Quick, None, |tx| tx.one(pending, &[], |row| row.int(0)));
    counting.await.unwrap() == Some(0)
}

/// Commits and rows of the cheapest of several steps, each after a preparation that is not counted.
async fn cost<T>(
    world: &World,
    prepare: impl AsyncFn() -> T,
    step: impl AsyncFn(T),
) -> (u64, Vec<(&'static str, i64)>) {
    let mut cheapest = (u64::MAX, Vec::new());
    for _ in 0..TIMES {
        let prepared = prepare().await;
        until("the jobs are done", async || jobs_are_done(world).await).await;
        let before = commits_and_rows(world).await;
        step(prepared).await;
        let after = commits_and_rows(world).await;
        let rows = after.1.into_iter().map(|(table, count)| (table, count - before.1[table]));
        let rows = rows.filter(|(_, count)| *count != 0).collect();
        cheapest = cheapest.min((after.0 - before.0, rows));
    }
    cheapest
}

const NOTHING: (u64, Vec<(&str, i64)>) = (0, Vec::new());

on_both_engines! {
    /// Unauthenticated requests write nothing: neither pages nor `prompt=none` without a session.
    async fn showing_a_page_writes_nothing(world: World) {
        let home = SignInApp::new(&world).await;
        let open = async |request: String| {
            let mut browser = Browser::new(&world);
            browser.open(&request).await.answer
        };
        let page = cost(&world, async || home.request(&[]), async |request| drop(open(request).await.is(200))).await;
        assert_eq!(page, NOTHING);
        let silent = async || home.request(&[("prompt", "none")]);
        assert_eq!(cost(&world, silent, async |request| drop(open(request).await.is(303))).await, NOTHING);
        let wrong = async || home.request(&[("redirect_uri", "https://evil.example/")]);
        assert_eq!(cost(&world, wrong, async |request| drop(open(request).await.is(400))).await, NOTHING);
    }

    /// A failure costs the same statements and round trips for people who have signed in before, for those who never have, and for
    /// unknown names, so that timing reveals no name: by password and by access pass, with and without e-mail addresses as names.
    async fn failed_sign_ins_cost_the_same_for_every_name(world: World) {
        let home = SignInApp::new(&world).await;
        home.sign_in(&world).await;
        world.user("bob").await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        world.set_option("AttemptsBeforeTemporaryLock", "1000").await;
        world.set_option("PasskeyEnabled", "true").await;
        for by_address in ["false", "true"] {
            world.set_option("LoginByEmailEnabled", by_address).await;
            for path in ["password", "accesspass"] {
                let mut costs = Vec::new();
                for name in ["ann", "bob", "nobody"] {
                    let mut cheapest = (u64::MAX, u64::MAX, u64::MAX);
                    for _ in 0..TIMES {
                        let mut browser = Browser::new(&world);
                        let page = browser.open(&home.request(&[])).await;
                        let page = match path {
                            "password" => page,
                            _ => browser.open(&link(&page, "access pass")).await,
                        };
                        let fields = [
                            ("csrf", page.field("csrf")),
                            ("username", name.to_owned()),
                            (if path == "password" { "password" } else { "pass" }, "wrong".to_owned()),
                        ];
                        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
                        let before = world.app.store.figures();
                        browser.post(&page.action(), &fields, &[]).await;
                        let after = world.app.store.figures();
                        let cost = (
                            after.statements - before.statements,
                            after.round_trips - before.round_trips,
                            after.commits - before.commits,
                        );
                        cheapest = (cheapest.0.min(cost.0), cheapest.1.min(cost.1), cheapest.2.min(cost.2));
                    }
                    costs.push((name, cheapest));
                }
                assert!(costs.iter().all(|(_, cost)| *cost == costs[0].1), "{path} {by_address}: {costs:?}");
            }
        }
    }

    /// A password sign-in takes two commits: the attempt is counted before the password is verified.
    async fn a_password_sign_in_takes_two_commits(world: World) {
        let home = SignInApp::new(&world).await;
        home.sign_in(&world).await;
        let page = async || {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            (browser, page)
        };
        let typed = cost(&world, page, async |(mut browser, page)| {
            assert!(parameter(&browser.sign_in(&page, "ann", PASSWORD).await, "code").is_some());
        });
        let rows = vec![("authorization_code", 1), ("outbox_event", 1), ("sign_in_record", 1), ("sign_in_session", 1)];
        assert_eq!(typed.await, (2, rows));
        let wrong = cost(&world, page, async |(mut browser, page)| {
            browser.type_password(&page, "nobody", PASSWORD).await;
        });
        assert!(wrong.await.1.is_empty(), "strangers leave no rows");
    }

    /// A passkey takes one commit, and so does a second factor after a password.
    async fn a_passkey_or_second_factor_takes_one_commit(world: World) {
        let rows = vec![("authorization_code", 1), ("outbox_event", 1), ("sign_in_record", 1), ("sign_in_session", 1)];
        let (home, authenticator) = with_passkey(&world).await;
        let page = async || {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            (browser, page)
        };
        let shown = cost(&world, page, async |(mut browser, page)| {
            let next = use_passkey(&mut browser, &page, &authenticator, &home.user).await;
            assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        });
        assert_eq!(shown.await, (1, rows.clone()));
        world.set_option("PasskeyEnabled", "false").await;
        require_factor(&world, &home, "totp").await;
        let (_, codes, _) = enrol(&world, &home).await;
        let code = AtomicUsize::new(0);
        let recovery_page = async || {
            let (mut browser, page) = typed(&world, &home, &[]).await;
            let choice = format!("recovery:{}", between(&page.html, "value=\"recovery:", "\""));
            let page = browser.submit(&page, &[("choice", &choice)]).await;
            (browser, page)
        };
        let proven = cost(&world, recovery_page, async |(mut browser, page)| {
            let next = browser.submit(&page, &[("code", &codes[code.fetch_add(1, Ordering::Relaxed)])]).await;
            assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        });
        assert_eq!(proven.await, (1, rows));
    }

    /// Each of these takes one commit: a code by a session, its redemption, and a refresh that rotates.
    async fn each_later_step_takes_one_commit(world: World) {
        let home = SignInApp::with(&world, json!({ "isPublic": true })).await;
        let (browser, _) = home.sign_in(&world).await;
        let request = home.request(&[("scope", "openid profile offline_access")]);
        let code = async || {
            let mut again = Browser::new(&world);
            again.cookies.clone_from(&browser.cookies);
            parameter(&again.open(&request).await.left.unwrap(), "code").unwrap()
        };
        let code_cost = cost(&world, async || {}, async |()| drop(code().await)).await;
        assert_eq!(code_cost, (1, vec![("authorization_code", 1)]));
        let redeemed = cost(&world, code, async |code| home.redeem(&world, &code, &[]).await.expect(200)).await;
        assert_eq!(redeemed, (1, vec![("outbox_event", 1), ("sign_in_grant", 1)]));
        let token = async || {
            let tokens = home.redeem(&world, &code().await, &[]).await.is(200).json();
            tokens["refresh_token"].as_str().unwrap().to_owned()
        };
        let refreshed =
            cost(&world, token, async |token| home.refresh_at(&world.anonymous, &token).await.expect(200)).await;
        assert_eq!(refreshed, (1, Vec::new()));
        // a refusal writes no more
        let made_up = async || "made up".to_owned();
        let refused =
            cost(&world, made_up, async |code| home.redeem(&world, &code, &[]).await.expect(400)).await;
        assert_eq!(refused.1, []);
    }

    /// Reading requests write nothing: UserInfo and introspection.
    async fn userinfo_and_introspection_write_nothing(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let token = tokens["access_token"].as_str().unwrap();
        let bearer = world.anonymous.with_token(token);
        let measured = cost(&world, async || {}, async |()| bearer.get("/connect/userinfo").await.expect(200)).await;
        assert_eq!(measured, NOTHING);
        let fields = [("client_id", id(&home.app)), ("client_secret", home.secret.as_str()), ("token", token)];
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let measured = cost(&world, async || form(fields.into_iter()).into_bytes(), async |sent| {
            world.anonymous.send(Method::POST, "/connect/introspect", &headers, sent).await.expect(200);
        });
        assert_eq!(measured.await, NOTHING);
    }

    /// A sign-out takes one commit, with a row for each app that is notified.
    async fn a_sign_out_takes_one_commit(world: World) {
        let home = SignInApp::with(&world, json!({ "backchannelLogoutUri": "http://127.0.0.1:9/" })).await;
        let page = async || {
            let (mut browser, answer) = home.sign_in(&world).await;
            home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.expect(200);
            let page = browser.open("/connect/endsession").await;
            (browser, page)
        };
        let left = cost(&world, page, async |(mut browser, page)| {
            let csrf = page.field("csrf");
            browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
        });
        assert_eq!(left.await, (1, vec![("logout_delivery", 1), ("outbox_event", 2), ("sign_in_record", 1)]));
    }

    /// Rules are read once, and the person once more, independent of the number of rules and groups.
    async fn claim_rules_cost_few_statements(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let request = home.request(&[("scope", "openid profile offline_access")]);
        let code = parameter(&browser.open(&request).await.left.unwrap(), "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let token = tokens["refresh_token"].as_str().unwrap();
        let statements = async || {
            let mut cheapest = u64::MAX;
            for _ in 0..TIMES {
                let before = world.app.store.figures().statements;
                home.refresh_at(&world.anonymous, token).await.expect(200);
                cheapest = cheapest.min(world.app.store.figures().statements - before);
            }
            cheapest
        };
        let without = statements().await;
        let rule = |number: usize| json!({
            "name": format!("rule {number}"), "ruleType": "Add", "ruleLevel": "Subscription", "filterTarget": "ClaimTypeAndValue",
            "typeEvaluationRule": "^groups$", "valueEvaluationRule": format!("^group {number}$"), "priority": number % 4,
            "typeTransformationReplacement": "role", "valueTransformationReplacement": format!("role {number}"),
        });
        world.make("ClaimRule", rule(0)).await;
        let with_one = statements().await;
        let rules: Vec<_> = (1..100).map(rule).collect();
        world.admin.post(&format!("{BASE}/ClaimRule/batch"), json!(rules)).await.expect(200);
        let groups: Vec<_> = (0..500).map(|number| json!({ "name": format!("group {number}") })).collect();
        let created = world.admin.post(&world.path("/Group/batch"), json!(groups)).await.is(200).json();
        let ids: Vec<_> = created.as_array().unwrap().iter().map(|group| &group["id"]).collect();
        let path = world.path(&format!("/User/{}/groups", id(&home.user)));
        world.admin.post(&path, json!({ "relatedIds": ids })).await.expect(202);
        let with_many = statements().await;
        assert_eq!(with_many, with_one);
        assert!(with_one <= 2 * without + 2, "{with_one} statements with rules, {without} without");
        let tokens = home.refresh_at(&world.anonymous, token).await.is(200).json();
        assert_eq!(claims(&tokens["access_token"])["role"].as_array().unwrap().len(), 100);
    }
}

on_both_engines! {
    [allow_loopback]
    /// A sign-in at a provider takes one commit, for a known person and for a new platform user.
    async fn an_external_sign_in_takes_one_commit(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        external::tokens(&world, &home, &provider, &[]).await;
        let come = async || {
            let (_, answer) = external::sign_in(&world, &home, &provider, &[]).await;
            assert!(parameter(&answer, "code").is_some(), "{answer}");
        };
        let known = cost(&world, async || {}, async |()| come().await).await;
        let rows = vec![("authorization_code", 1), ("outbox_event", 1), ("sign_in_record", 1), ("sign_in_session", 1)];
        assert_eq!(known, (1, rows));
        let new = AtomicUsize::new(0);
        let prepare = async || {
            let provider_claims = json!({ "sub": format!("new-{}", new.fetch_add(1, Ordering::Relaxed)) });
            provider.behave(Behaviour { claims: provider_claims.clone(), user_info: provider_claims, ..Behaviour::default() });
        };
        let (commits, _) = cost(&world, prepare, async |()| come().await).await;
        assert_eq!((commits, external::people(&world, &instance).await.len()), (1, 1 + TIMES));
        // a failed sign-in at the provider writes nothing
        provider.behave(Behaviour { claims: json!({ "nonce": "another" }), ..Behaviour::default() });
        let refused = cost(&world, async || {}, async |()| {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            assert!(external::has_failed(&external::sign_in_with(&mut browser, &page, "Partner", &provider).await));
        });
        assert_eq!(refused.await, NOTHING);
    }
}
