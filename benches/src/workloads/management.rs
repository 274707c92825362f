//! The management service: tokens, effective permissions with many roles, a list of many client apps.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use serde_json::{Value, json};

use super::{Bench, always, load_figures};
use crate::{
    fault::{Result, fault},
    load,
    results::figures,
    target::Target,
};

/// The workload of tokens.
pub const TOKENS: &str = "tokens by client_credentials, 64 clients";
/// The workload of effective permissions with many roles.
pub const PERMISSIONS: &str = "effective permissions with 10,000 roles, 4 clients";
/// The workload of a list of many client apps.
pub const LIST: &str = "list of 10,000 client apps, 1 client";

/// The number of client apps and of roles.
const COUNT: usize = 10_000;
/// The largest number of users: synchronizing more would take longer than the measurement.
const MAX_USERS: u64 = 100_000;
const CLIENTS: usize = 64;
const BASE: &str = "/api/management/v2";

/// What the workload created on one engine, for its requests.
struct Fixture {
    target: Target,
    token: Vec<u8>,
    permissions: String,
}

async fn post(target: &Target, path: &str, body: &Value, expect: u16) -> Result<Value> {
    let path = if path.starts_with('/') { path.to_owned() } else { format!("{BASE}/{path}") };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Ok(serde_json::from_slice(&target.call("POST", &path, &body, expect).await?)?)
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

async fn make_fixture(target: Target) -> Result<Fixture> {
    let app =
        post(&target, "ClientApp", &json!({ "name": "bench", "allowClientCredentialLogin": true }), 201)
            .await?;
    let secret = post(&target, "ClientAppSecret", &json!({ "clientAppId": app.get("id") }), 201).await?;
    let apps: Vec<Value> = (1..COUNT).map(|number| json!({ "name": format!("app {number}") })).collect();
    post(&target, "ClientApp/batch", &json!(apps), 200).await?;
    let customers: Vec<Value> =
        (0..COUNT).map(|number| json!({ "name": format!("customer {number}") })).collect();
    let customers = post(&target, "Customer/batch", &json!(customers), 200).await?;
    let synchronize = "/api/userstore/v2/default/administration/User/synchronize";
    post(&target, synchronize, &Value::Null, 200).await?;
    let users = target.call("GET", &format!("{BASE}/ApplicationUser?count=1"), b"", 200).await?;
    let users: Value = serde_json::from_slice(&users)?;
    let user = users.get(0).ok_or_else(|| fault("no user was synchronized"))?;
    let role = |customer: &Value| {
        json!({
            "principalType": "PlatformUser", "principalId": user.get("id"), "roleType": "CustomerAdmin",
            "applyToCustomerId": customer.get("id"),
        })
    };
    let roles: Vec<Value> = customers.as_array().into_iter().flatten().map(role).collect();
    post(&target, "RoleAssignment/batch", &json!(roles), 200).await?;
    let form = format!(
        "grant_type=client_credentials&client_id={}&client_secret={}",
        text(&app, "id"),
        text(&secret, "secret")
    );
    let token = format!(
        "POST /connect/token HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\n\
         content-length: {}\r\n\r\n{form}",
        form.len()
    );
    let permissions = format!("{BASE}/EffectivePermissions/platformuser/{}", text(user, "id"));
    Ok(Fixture { target, token: token.into_bytes(), permissions })
}

/// Signs as a token is signed, on one thread that does nothing else; returns the signatures a second.
fn signature_rate(time: Duration) -> Result<f64> {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
    let pkcs8 = pkcs8.map_err(|_| fault("no key can be made"))?;
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref());
    let key = key.map_err(|_| fault("the key cannot be read"))?;
    let message = [b'x'; 420];
    let begin = Instant::now();
    let mut count = 0_u32;
    while begin.elapsed() < time {
        key.sign(&random, &message).map_err(|_| fault("the key cannot sign"))?;
        count += 1;
    }
    Ok(f64::from(count) / begin.elapsed().as_secs_f64())
}

/// Runs on each engine in turn; the bare signature runs before each round.
pub async fn run(bench: &mut Bench) -> Result<()> {
    if bench.users > MAX_USERS {
        return Ok(());
    }
    let mut fixtures = Vec::new();
    for target in bench.engines() {
        fixtures.push(make_fixture(target).await?);
    }
    for round in 0..bench.rounds {
        let time = bench.time;
        let rate = tokio::task::spawn_blocking(move || signature_rate(time)).await??;
        bench.record(TOKENS, "signature alone", round, figures([("rate", rate)]));
        for fixture in &fixtures {
            let engine = fixture.target.engine.name();
            let get = |path: &str| always(fixture.target.request("GET", path, b""));
            let list = format!("{BASE}/ClientApp");
            let loads = [
                (TOKENS, CLIENTS, always(fixture.token.clone())),
                (PERMISSIONS, 4, get(&fixture.permissions)),
                (LIST, 1, get(&list)),
            ];
            for (name, connections, maker) in loads {
                let outcome =
                    load::run(&fixture.target, bench.plan(connections, 200), &Arc::clone(&maker)).await?;
                bench.record(name, engine, round, load_figures(&fixture.target, &outcome));
            }
        }
    }
    Ok(())
}
