//! Verifying passwords, and its effect on everybody else.

use std::{sync::Arc, time::Duration};

use chancery_credential::hash::{Parameters, verify_unknown_user};
use chancery_record::Secret;

use super::{Bench, load_figures, processors, rate_alone};
use crate::{
    fault::{Result, fault},
    load::{self, Maker},
    people,
    results::figures,
    target::{Target, USERS},
};

/// The workload of verifications.
pub const NAME: &str = "verify passwords, 64 clients";
/// The workload of reads at the same time as verifications.
pub const READS_WITH_VERIFICATIONS: &str = "read by id, 4 clients, beside 64 that verify";
/// The workload of reads alone.
pub const READS_ALONE: &str = "read by id, 4 clients, with nothing beside";

const READERS: usize = 4;
const CLIENTS: usize = 64;

fn read_maker(target: Target, users: u64) -> Maker {
    Arc::new(move |random, out| {
        let path = format!("{USERS}/{}", people::user_id(random.below(users)));
        target.write("GET", &path, b"", out);
    })
}

/// A request with a wrong password of any user: it costs a full hash, like a right one.
fn verification_maker(target: Target, users: u64) -> Maker {
    let body = br#"{"oldPassword":"not the password","newPassword":"four lively grey herons"}"#;
    Arc::new(move |random, out| {
        let path = format!("{USERS}/{}/password/change", people::user_id(random.below(users)));
        target.write("POST", &path, body, out);
    })
}

/// Verifies hashes on all processors, which do nothing else; returns the verifications a second.
async fn hash_rate(time: Duration) -> Result<f64> {
    let (password, parameters) = (Secret::new("not the password"), Parameters::default());
    rate_alone(processors(), time, move || verify_unknown_user(&password, &parameters)).await
}

/// Sets an option of the default store.
async fn set_option(target: &Target, name: &str, value: &str) -> Result<()> {
    let path = format!("/api/management/v2/Option?filter=name%20eq%20%22{name}%22");
    let options: serde_json::Value = serde_json::from_slice(&target.call("GET", &path, b"", 200).await?)?;
    let option = options.get(0).ok_or_else(|| fault(format!("there is no option {name}")))?;
    let text = |member: &str| option.get(member).and_then(|text| text.as_str()).unwrap_or_default();
    let body = serde_json::json!({ "value": value, "concurrencyToken": text("concurrencyToken") });
    let path = format!("/api/management/v2/Option/{}", text("id"));
    target.call("PATCH", &path, body.to_string().as_bytes(), 202).await.map(drop)
}

/// Runs on each engine in turn: reads alone, then reads together with verifications. The bare hash runs before each, so
/// that both meet the machine in the same state.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let users = bench.users;
    for target in bench.engines() {
        for option in ["LoginThrottlingEnabled", "TemporaryLockEnabled"] {
            set_option(&target, option, "false").await?;
        }
    }
    for round in 0..bench.rounds {
        let rate = hash_rate(bench.time).await?;
        bench.record(NAME, "hash alone", round, figures([("rate", rate)]));
        for target in bench.engines() {
            let engine = target.engine.name();
            let alone =
                load::run(&target, bench.plan(READERS, 200), &read_maker(target.clone(), users)).await?;
            bench.record(READS_ALONE, engine, round, load_figures(&target, &alone));
            let (read, verify) =
                (read_maker(target.clone(), users), verification_maker(target.clone(), users));
            let (with_verifications, verifications_outcome) = tokio::join!(
                load::run(&target, bench.plan(READERS, 200), &read),
                load::run(&target, bench.plan(CLIENTS, 400), &verify),
            );
            let (with_verifications, verifications_outcome) = (with_verifications?, verifications_outcome?);
            let mut values = load_figures(&target, &with_verifications);
            values.insert("p50_to_quiet".into(), ratio(&with_verifications, &alone, 500));
            values.insert("p99_to_quiet".into(), ratio(&with_verifications, &alone, 990));
            bench.record(READS_WITH_VERIFICATIONS, engine, round, values);
            let mut values = load_figures(&target, &verifications_outcome);
            let left = hash_rate_left(rate, with_verifications.rate(), &alone);
            values.insert("rate_to_left".into(), verifications_outcome.rate() / left);
            bench.record(NAME, engine, round, values);
        }
    }
    Ok(())
}

/// The verifications a second that the processors could do beside readers: those of all processors that only hash, times the share that
/// the reads leave, by what each read costs the server, its database and the generator of the load while nothing is hashed.
fn hash_rate_left(hash_rate: f64, read_rate: f64, alone: &load::Outcome) -> f64 {
    let used = alone.used.server + alone.used.database + alone.used.generator;
    let each = used.as_secs_f64() / alone.latencies.total() as f64;
    hash_rate * (1.0 - read_rate * each / processors() as f64)
}

fn ratio(one: &load::Outcome, other: &load::Outcome, per_mille: u64) -> f64 {
    one.latencies.per_mille(per_mille).as_secs_f64() / other.latencies.per_mille(per_mille).as_secs_f64()
}
