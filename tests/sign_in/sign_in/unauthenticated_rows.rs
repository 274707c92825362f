//! Rows that unauthenticated callers can create: each table that has some is in the documents, with its limits.

use std::collections::{BTreeMap, BTreeSet};

use chancery_store::{Error, Mode, StateTable};
use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{PASSWORD, SignInApp, browser::Browser, form, refusal_list::record};
use crate::{id, signing::set_mail_server};

/// The documented tables.
fn documented() -> BTreeSet<String> {
    let text = include_str!("../../../docs/operating/limits.md");
    let (_, section) = text.split_once("## Rows that unauthenticated callers can create").unwrap();
    let section = section.split("\n#").next().unwrap();
    let firsts = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    firsts.flat_map(|cell| cell.split("`, `").map(|name| name.trim_end_matches('`').to_owned())).collect()
}

/// Tables that jobs write for any request, or about rows of tables that are compared here.
const BY_JOBS: [&str; 10] = [
    "audit_key",
    "audit_leaf",
    "audit_node",
    "audit_tree",
    "event_pending",
    "event_place",
    "event_reader",
    "event_trail",
    "job_lease",
    "process",
];

/// Number of rows of each table.
async fn row_counts(world: &World) -> BTreeMap<&'static str, i64> {
    let names = StateTable::ALL.iter().map(|table| table.name()).chain([
        "audit_entry",
        "user_account",
        "application_user",
    ]);
    let names: Vec<&'static str> = names.filter(|name| !BY_JOBS.contains(name)).collect();
    let counting = world.app.store.run("Test", Mode::Long, None, move |tx| {
        let mut counts = BTreeMap::new();
        for name in &names {
            let count = tx.one(&format!("SELECT count(*) FROM {name}"), &[], |row| row.int(0))?;
            counts.insert(*name, count.unwrap_or_default());
        }
        Ok::<_, Error>(counts)
    });
    counting.await.unwrap()
}

/// Posts a form without authentication.
async fn post(world: &World, path: &str, fields: &[(&str, &str)], headers: &[(&str, &str)]) {
    let mut all = vec![("content-type", "application/x-www-form-urlencoded")];
    all.extend(headers);
    world.anonymous.send(http::Method::POST, path, &all, form(fields.iter().copied()).into_bytes()).await;
}

/// Requests links for password resets. They are created after the responses.
async fn request_links(world: &World, home: &SignInApp) {
    for name in ["ann", "nobody"] {
        let mut browser = Browser::new(world);
        let page = browser.open(&format!("/t/{}/password/reset", home.tenant)).await;
        browser.submit(&page, &[("username", name)]).await;
    }
    crate::until("a mail waits", || async { row_counts(world).await["mail_message"] > 0 }).await;
}

/// Requests of anonymous people at pages.
async fn at_pages(world: &World, home: &SignInApp) {
    for (name, password) in [("ann", "wrong"), ("nobody", "wrong")] {
        let mut browser = Browser::new(world);
        let page = browser.open(&home.request(&[])).await;
        browser.type_password(&page, name, password).await;
    }
    let large = home.request(&[("state", &"s".repeat(2_048)), ("nonce", &"n".repeat(512))]);
    Browser::new(world).open(&large).await;
    let mut browser = Browser::new(world);
    let page = browser.open("/device").await;
    browser.submit(&page, &[("user_code", "BBBB-BBBB")]).await;
    for path in [
        "/console",
        "/console/users",
        "/signin/external?state=x&code=y",
        "/connect/endsession?id_token_hint=x",
        "/password/reset?user=x&token=x",
    ] {
        world.anonymous.get(path).await;
    }
    post(world, "/console/users/new", &[("csrf", "x"), ("loginName", "x")], &[]).await;
}

/// Requests of anonymous programs at endpoints.
async fn at_endpoints(world: &World, home: &SignInApp) {
    let app = id(&home.app);
    post(world, "/connect/deviceauthorization", &[("client_id", app), ("scope", "openid")], &[]).await;
    let grants = [
        &[("grant_type", "authorization_code"), ("code", "x"), ("redirect_uri", "x"), ("code_verifier", "x")]
            [..],
        &[("grant_type", "refresh_token"), ("refresh_token", "x")],
        &[("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), ("device_code", "x")],
        &[("grant_type", "client_credentials")],
        &[
            ("grant_type", "client_credentials"),
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            ("client_assertion", "e30.e30.e30"),
        ],
        &[
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("subject_token", "x"),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
        ],
    ];
    for (client, secret) in [(app, ""), ("root", "a wrong secret, which is long")] {
        for grant in grants {
            let proof = [("client_id", client), ("client_secret", secret)];
            let proof = proof.into_iter().filter(|(_, value)| !value.is_empty());
            let fields: Vec<(&str, &str)> = grant.iter().copied().chain(proof).collect();
            post(world, "/connect/token", &fields, &[("dpop", "e30.e30.e30"), ("idempotency-key", "k")])
                .await;
        }
        for path in ["/connect/revoke", "/connect/introspect"] {
            post(world, path, &[("token", "x"), ("client_id", client)], &[]).await;
        }
    }
    let key = [("content-type", "application/json"), ("idempotency-key", "k"), ("authorization", "Bearer x")];
    for path in [
        world.path("/User"),
        "/api/management/v2/Tenant".into(),
        "/api/scim/v2/default/Users".into(),
        "/connect/userinfo".into(),
    ] {
        world.anonymous.send(http::Method::POST, &path, &key, b"{}".to_vec()).await;
    }
    for (rest, body) in [
        ("change", json!({ "oldPassword": "wrong", "newPassword": "five quiet brown owls" })),
        ("reset/response", json!({ "token": "x", "newPassword": "five quiet brown owls" })),
    ] {
        for name in ["ann", "nobody"] {
            let path = format!("/api/userstore/v2/default/PublicAdmin/user/loginname/{name}/password/{rest}");
            world.anonymous.post(&path, body.clone()).await;
        }
    }
}

on_both_engines! {
    /// Unauthenticated requests add rows only to the documented tables, and to each of these.
    async fn unauthenticated_requests_add_rows_to_documented_tables_only(world: World) {
        set_mail_server(&world.admin).await;
        let home = SignInApp::with(&world, json!({ "allowDeviceAuthorizationGrant": true, "isPublic": true })).await;
        // the first sign-in of a person creates the platform user
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        browser.sign_in(&page, "ann", PASSWORD).await;
        // a wrong password locks, which is audited
        world.set_option("AttemptsBeforeTemporaryLock", "1").await;
        let before = row_counts(&world).await;
        request_links(&world, &home).await;
        at_pages(&world, &home).await;
        at_endpoints(&world, &home).await;
        crate::until("refused requests are recorded", || async {
            record(&world).await;
            row_counts(&world).await["client_app_refusal"] > 0
        })
        .await;
        let grown = row_counts(&world).await.into_iter().filter(|(name, count)| *count > before[name]);
        let grown: BTreeSet<String> = grown.map(|(name, _)| name.to_owned()).collect();
        assert_eq!(grown, documented());
    }
}
