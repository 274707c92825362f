//! Streams: whether many readers of one trail keep up with its changes, and how much of the server's memory they take.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{STORE, TIMEOUT, text};
use crate::{
    client::Client,
    clock,
    fault::{Result, fault},
    process,
    results::{Figures, figures},
    server,
    target::{Target, USERS},
    workloads::create,
};

/// How many streams are open.
const STREAMS: usize = 500;
/// How many of them one client app may have.
const PER_CLIENT: usize = 8;
/// The time between two changes.
const PAUSE: Duration = Duration::from_millis(10);

/// Opens the streams, makes changes for this long, and waits until each stream delivered each event.
pub async fn measure(target: &Target, time: Duration) -> Result<Figures> {
    let before = process::memory(target.process).resident;
    let (opened, delivered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut streams = JoinSet::new();
    for index in 0..STREAMS {
        if index % PER_CLIENT == 0 {
            let reader_target = Target { token: reader_token(target).await?, ..target.clone() };
            for _ in 0..PER_CLIENT.min(STREAMS - index) {
                streams.spawn(follow_stream(
                    reader_target.clone(),
                    Arc::clone(&opened),
                    Arc::clone(&delivered),
                ));
            }
        }
    }
    wait_for(&opened, STREAMS as u64, "streams opened").await?;
    let (begin, used) = (Instant::now(), target.usage().server);
    let changes = change(target, time).await?;
    let changes_made_in = begin.elapsed();
    wait_for(&delivered, changes * STREAMS as u64, "events delivered").await?;
    let delivered_in = begin.elapsed();
    let used = target.usage().server.saturating_sub(used).as_secs_f64();
    let after = process::memory(target.process).resident;
    let events = (changes * STREAMS as u64) as f64;
    Ok(figures([
        ("each", changes as f64 / delivered_in.as_secs_f64()),
        ("rate", events / delivered_in.as_secs_f64()),
        ("behind_ms", delivered_in.saturating_sub(changes_made_in).as_secs_f64() * 1e3),
        ("cpu_us", used * 1e6 / events),
        ("memory_mib", after.saturating_sub(before) as f64 / 1024.0),
    ]))
}

/// Waits until a count is reached.
async fn wait_for(count: &AtomicU64, expected: u64, what: &str) -> Result<()> {
    let begin = Instant::now();
    while count.load(Ordering::Relaxed) < expected {
        if begin.elapsed() > TIMEOUT {
            return Err(fault(format!("{} of {expected} {what}", count.load(Ordering::Relaxed))));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Makes changes at a steady rate; returns their number.
pub async fn change(target: &Target, time: Duration) -> Result<u64> {
    let mut client = Client::connect(target.address).await?;
    let (begin, mut count) = (Instant::now(), 0);
    let mut pace = tokio::time::interval(PAUSE);
    while begin.elapsed() < time {
        pace.tick().await;
        target.call_on(&mut client, "POST", USERS, create::body().as_bytes(), 201).await?;
        count += 1;
    }
    Ok(count)
}

/// Reads a stream until it is dropped; counts the events that it delivers.
async fn follow_stream(target: Target, opened: Arc<AtomicU64>, delivered: Arc<AtomicU64>) -> Result<()> {
    let mut client = Client::connect(target.address).await?;
    let path = format!("{STORE}/Event/stream?after=now&type=platform.userstore.user.created");
    let mut is_open = false;
    let mut sink = |chunk: &[u8]| {
        if !std::mem::replace(&mut is_open, true) {
            opened.fetch_add(1, Ordering::Relaxed);
        }
        let events = chunk.windows(7).filter(|bytes| *bytes == b"\ndata: ").count();
        delivered.fetch_add(events as u64, Ordering::Relaxed);
    };
    let status = client.send(&target.request("GET", &path, b""), &mut sink).await?;
    Err(fault(format!("a stream ended with {status}")))
}

/// The token of a new client app that may read the store's events.
async fn reader_token(target: &Target) -> Result<String> {
    let create_resource = async |resource: &str, body: Value| -> Result<Value> {
        let path = format!("/api/management/v2/{resource}");
        Ok(serde_json::from_slice(&target.call("POST", &path, body.to_string().as_bytes(), 201).await?)?)
    };
    let name = format!("reader {}", clock::now_micros());
    let app =
        create_resource("ClientApp", json!({ "name": name, "allowClientCredentialLogin": true })).await?;
    let secret = create_resource("ClientAppSecret", json!({ "clientAppId": text(&app, "id") })).await?;
    let instances = target.call("GET", "/api/management/v2/IdpInstance", b"", 200).await?;
    let instances: Value = serde_json::from_slice(&instances)?;
    let store = instances.as_array().into_iter().flatten().find(|one| text(one, "name") == "default");
    let store = store.ok_or_else(|| fault("there is no store `default`"))?;
    let role = json!({
        "clientAppId": text(&app, "id"), "roleType": "UserStoreAdmin", "applyToIdpInstanceId": text(store, "id"),
    });
    create_resource("ClientAppRole", role).await?;
    server::token(target.address, text(&app, "id"), text(&secret, "secret")).await
}
