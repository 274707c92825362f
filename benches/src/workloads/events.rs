//! Events: what webhooks cost those who write, how far behind a change its readers are, how fast a feed is read and a backlog
//! delivered, and what receivers that hang take from the others (`8-events.md`, section 8).
//!
//! A lag counts from when the request that made the change began, which is in the number of its event.

pub mod placing;
mod streams;
pub mod waiting;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use super::{Bench, administrators::beside, create, measured};
use crate::{
    client::Client,
    clock,
    fault::{Result, fault},
    histogram::Histogram,
    load::{self, Plan},
    results::{Figures, figures},
    target::{Engine, Target, USERS},
};

/// Creates with webhooks beside them; the rate without is [`create::NAME`]'s own.
pub const LISTENED: &str = "create, 64 clients, 10 webhooks";
/// How far readers are behind a change.
pub const LAG: &str = "events behind a change, 1,000 changes a second";
/// The same with half of the writers at a second process, whose receiver the first may serve.
pub const LAG_OF_TWO: &str = "events behind a change, 1,000 changes a second, two processes";
/// A feed that is read from its beginning.
pub const FEED: &str = "feed, pieces of 1,000";
/// A backlog that is delivered to one receiver.
pub const ONE: &str = "webhooks, backlog to 1 receiver";
/// A backlog that is delivered to many.
pub const MANY: &str = "webhooks, backlog to 50 receivers";
/// Streams, while something changes all the time.
pub const STREAMS: &str = "500 event streams, 100 changes a second";
/// The same while some of them hang.
pub const HANG: &str = "webhooks, backlog to 50 receivers of whom 10 hang";

const STORE: &str = "/api/userstore/v2/default/administration";
/// How long a receiver works on an event.
const WORK: Duration = Duration::from_millis(5);
/// Users of one batch.
const BATCH: usize = 1000;
/// Writers whose changes are followed, each at the pace of [`streams`].
const WRITERS: usize = 10;
/// How long a backlog may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// What a receiver got.
#[derive(Default)]
struct Got {
    count: u64,
    lags: Histogram,
}

/// A receiver of webhooks.
struct Receiver {
    url: String,
    got: Arc<Mutex<Got>>,
    told: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Receiver {
    /// Starts a receiver; one that hangs answers tests alone.
    async fn start(hangs: bool) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let got = Arc::new(Mutex::new(Got::default()));
        let (tell, told) = watch::channel(0);
        let mine = Arc::clone(&got);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (got, tell) = (Arc::clone(&mine), tell.clone());
                tokio::spawn(async move { serve(stream, &got, &tell, hangs).await });
            }
        });
        Ok(Self { url, got, told, task })
    }

    /// Waits until it got so many events.
    async fn until(&mut self, count: u64) -> Result<()> {
        let wait = self.told.wait_for(|got| *got >= count);
        let is_there = matches!(tokio::time::timeout(PATIENCE, wait).await, Ok(Ok(_)));
        let got = *self.told.borrow();
        if is_there { Ok(()) } else { Err(fault(format!("a receiver got {got} of {count} events"))) }
    }

    fn taken(&self) -> Got {
        std::mem::take(&mut self.got.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The number of an event, which is the microsecond in which its request began.
fn number(body: &str) -> Option<u64> {
    let (_, rest) = body.split_once("\"id\":\"")?;
    rest.split('"').next()?.parse().ok()
}

fn lag(number: u64) -> Duration {
    Duration::from_micros(clock::now_micros().saturating_sub(number))
}

async fn serve(
    mut stream: TcpStream,
    got: &Mutex<Got>,
    tell: &watch::Sender<u64>,
    hangs: bool,
) -> Option<()> {
    let mut read: Vec<u8> = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut read).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8_lossy(read.get(..end)?).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let whole = end + length.and_then(|length| length.trim().parse::<usize>().ok())?;
        while read.len() < whole {
            if stream.read_buf(&mut read).await.ok()? == 0 {
                return None;
            }
        }
        let body = String::from_utf8_lossy(read.get(end..whole)?).into_owned();
        read.drain(..whole);
        let is_test = body.contains("platform.event.test");
        if hangs && !is_test {
            std::future::pending::<()>().await;
        }
        if !is_test {
            let behind = number(&body).map(lag);
            let count = {
                let mut got = got.lock().unwrap_or_else(PoisonError::into_inner);
                got.count += 1;
                got.lags.add(behind.unwrap_or_default());
                got.count
            };
            tell.send_replace(count);
            tokio::time::sleep(WORK).await;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.ok()?;
    }
}

async fn call(target: &Target, method: &str, path: &str, body: &Value, expect: u16) -> Result<Value> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let answer = target.call(method, &format!("{STORE}{path}"), &body, expect).await?;
    Ok(if answer.is_empty() { Value::Null } else { serde_json::from_slice(&answer)? })
}

fn text<'a>(item: &'a Value, member: &str) -> &'a str {
    item.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// The cursor behind all that was answered.
async fn now(target: &Target) -> Result<String> {
    Ok(text(&call(target, "GET", "/Event?after=now", &Value::Null, 200).await?, "next").to_owned())
}

/// A subscription to each receiver, tested, active from a cursor on: their paths.
async fn subscribe(target: &Target, receivers: &[Receiver], after: Option<&str>) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for (place, receiver) in receivers.iter().enumerate() {
        let name = format!("r{place} {}", clock::now_micros());
        let types = ["platform.userstore.user.*"];
        let body = json!({ "name": name, "url": receiver.url, "types": types, "startAfter": after });
        let made = call(target, "POST", "/EventSubscription", &body, 201).await?;
        let path = format!("/EventSubscription/{}", text(&made, "id"));
        let tested = call(target, "POST", &format!("{path}/test"), &json!({}), 200).await?;
        if tested.get("delivered") != Some(&json!(true)) {
            return Err(fault(format!("a test was not delivered: {tested}")));
        }
        paths.push(path);
    }
    for path in &paths {
        let row = call(target, "GET", path, &Value::Null, 200).await?;
        let body = json!({ "isActive": true, "concurrencyToken": row.get("concurrencyToken") });
        call(target, "PATCH", path, &body, 202).await?;
    }
    Ok(paths)
}

async fn unsubscribe(target: &Target, paths: &[String]) -> Result<()> {
    for path in paths {
        call(target, "DELETE", path, &Value::Null, 204).await?;
    }
    Ok(())
}

async fn receivers(count: usize, hang: usize) -> Result<Vec<Receiver>> {
    let mut all = Vec::new();
    for place in 0..count {
        all.push(Receiver::start(place < hang).await?);
    }
    Ok(all)
}

/// Makes this many users, which nobody was told of: the cursor before them.
async fn backlog(target: &Target, batches: usize) -> Result<String> {
    let before = now(target).await?;
    for _ in 0..batches {
        let users: Vec<String> = (0..BATCH).map(|_| create::body()).collect();
        let body = format!("[{}]", users.join(","));
        target.call("POST", &format!("{USERS}/batch"), body.as_bytes(), 200).await?;
    }
    now(target).await?;
    Ok(before)
}

/// Runs on each engine in turn.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let plan = bench.plan(64, 201);
    for round in 0..bench.rounds {
        for target in bench.engines() {
            let name = target.engine.name();
            let quiet = load::run(&target, plan, &create::maker(target.clone())).await?.rate();
            let told = listened(&target, plan, quiet).await?;
            bench.note(LISTENED, name, round, told);
            let told = behind(&[&target], bench.time).await?;
            bench.note(LAG, name, round, told);
            if target.engine == Engine::Postgres {
                let told = placing::unplaced(bench, &target, plan, quiet).await?;
                bench.note(placing::UNPLACED, name, round, told);
                let second = beside(bench.recipe(Engine::Postgres)?)?.start().await?;
                let told = behind(&[&target, &second.target], bench.time).await?;
                bench.note(LAG_OF_TWO, name, round, told);
                second.stop()?;
            }
            let told = feed(&target).await?;
            bench.note(FEED, name, round, told);
            for (workload, all, hang, batches) in [(ONE, 1, 0, 4), (MANY, 50, 0, 1), (HANG, 50, 10, 1)] {
                let told = delivered(&target, (all, hang), batches).await?;
                bench.note(workload, name, round, told);
            }
            let told = streams::measure(&target, bench.time).await?;
            bench.note(STREAMS, name, round, told);
            let told = placing::absent(bench, &target).await?;
            bench.note(placing::ABSENT, name, round, told);
        }
    }
    Ok(())
}

/// Creates with ten webhooks, and as a part of the rate without.
async fn listened(target: &Target, plan: Plan, quiet: f64) -> Result<Figures> {
    let receivers = receivers(10, 0).await?;
    let paths = subscribe(target, &receivers, None).await?;
    let outcome = load::run(target, plan, &create::maker(target.clone())).await?;
    unsubscribe(target, &paths).await?;
    let mut told = measured(target, &outcome);
    told.insert("rate_to_quiet".into(), outcome.rate() / quiet);
    told.insert("delivered".into(), receivers.iter().map(|receiver| receiver.taken().count as f64).sum());
    Ok(told)
}

/// How far a feed and a receiver are behind changes that are made at these processes, and read at the first.
async fn behind(targets: &[&Target], time: Duration) -> Result<Figures> {
    let target = targets.first().ok_or_else(|| fault("there is no process"))?;
    let mut receivers = receivers(1, 0).await?;
    let paths = subscribe(target, &receivers, None).await?;
    // that subscriptions are looked for once a second is no matter of how far behind their receivers are
    target.call("POST", USERS, create::body().as_bytes(), 201).await?;
    for receiver in &mut receivers {
        receiver.until(1).await?;
    }
    let after = now(target).await?;
    let read = Arc::new(Mutex::new(Histogram::default()));
    let reader = tokio::spawn(follow((*target).clone(), after, Arc::clone(&read)));
    let begin = Instant::now();
    let mut writers = JoinSet::new();
    for target in targets.iter().cycle().take(WRITERS) {
        let target = (*target).clone();
        writers.spawn(async move { streams::change(&target, time).await });
    }
    let mut changes = 0;
    while let Some(made) = writers.join_next().await {
        changes += made??;
    }
    let seconds = begin.elapsed().as_secs_f64();
    for receiver in &mut receivers {
        receiver.until(1 + changes).await?;
    }
    reader.abort();
    unsubscribe(target, &paths).await?;
    let read = std::mem::take(&mut *read.lock().unwrap_or_else(PoisonError::into_inner));
    let milli = |lags: &Histogram, part: u64| lags.per_mille(part).as_secs_f64() * 1e3;
    let received = receivers.iter().map(Receiver::taken).next().unwrap_or_default();
    Ok(figures([
        ("rate", changes as f64 / seconds),
        ("feed_p50_ms", milli(&read, 500)),
        ("feed_p99_ms", milli(&read, 990)),
        ("webhook_p50_ms", milli(&received.lags, 500)),
        ("webhook_p99_ms", milli(&received.lags, 990)),
    ]))
}

/// Reads the feed behind a cursor as it grows, and notes how far behind each event it is.
async fn follow(target: Target, mut after: String, lags: Arc<Mutex<Histogram>>) -> Result<()> {
    let mut client = Client::connect(target.address).await?;
    loop {
        let path =
            format!("{STORE}/Event?count=1000&wait=5&type=platform.userstore.user.created&after={after}");
        let piece: Value =
            serde_json::from_slice(&target.call_on(&mut client, "GET", &path, b"", 200).await?)?;
        text(&piece, "next").clone_into(&mut after);
        let mut lags = lags.lock().unwrap_or_else(PoisonError::into_inner);
        for event in piece.get("items").and_then(Value::as_array).into_iter().flatten() {
            lags.add(lag(text(event, "id").parse()?));
        }
    }
}

/// Reads the whole feed.
async fn feed(target: &Target) -> Result<Figures> {
    let (begin, before) = (Instant::now(), target.usage());
    let count = feed_behind(target, "").await? as f64;
    let used = target.usage().server.saturating_sub(before.server).as_secs_f64();
    Ok(figures([
        ("events", count),
        ("rate", count / begin.elapsed().as_secs_f64()),
        ("cpu_us", used * 1e6 / count),
    ]))
}

/// Reads the feed behind a cursor to its end: how many events that were.
async fn feed_behind(target: &Target, after: &str) -> Result<u64> {
    let mut client = Client::connect(target.address).await?;
    let (mut count, mut after) = (0, after.to_owned());
    loop {
        let path = format!("{STORE}/Event?count=1000{after}");
        let piece: Value =
            serde_json::from_slice(&target.call_on(&mut client, "GET", &path, b"", 200).await?)?;
        count += piece.get("items").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        after = format!("&after={}", text(&piece, "next"));
        if piece.get("hasMore") == Some(&json!(false)) {
            return Ok(count);
        }
    }
}

/// Delivers a backlog to receivers, of whom the first ones hang: events a second to those who do not.
async fn delivered(target: &Target, (all, hang): (usize, usize), batches: usize) -> Result<Figures> {
    let mut receivers = receivers(all, hang).await?;
    let before = backlog(target, batches).await?;
    let used = target.usage().server;
    let paths = subscribe(target, &receivers, Some(&before)).await?;
    // that subscriptions are looked for once a second is no matter of how fast they are served
    for receiver in receivers.iter_mut().skip(hang).take(1) {
        receiver.until(1).await?;
    }
    let begin = Instant::now();
    let each = (batches * BATCH) as u64;
    for receiver in receivers.iter_mut().skip(hang) {
        receiver.until(each).await?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let used = target.usage().server.saturating_sub(used).as_secs_f64();
    unsubscribe(target, &paths).await?;
    let count = (each * (all - hang) as u64) as f64;
    Ok(figures([("rate", count / seconds), ("seconds", seconds), ("cpu_us", used * 1e6 / count)]))
}
