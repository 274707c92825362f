//! Events: what webhooks cost the writers, how far readers lag behind a change, how fast a feed is read and a backlog
//! delivered, and what hanging receivers take from the others.
//!
//! A lag is measured from the beginning of the request that made the change: the number of its event is that time.

pub mod positions;
pub mod stored;
mod streams;

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

use super::{Bench, administrators::second_config, create, load_figures};
use crate::{
    client::Client,
    clock,
    fault::{Result, fault},
    histogram::Histogram,
    load::{self, Plan},
    results::{Figures, figures},
    target::{Engine, Target, USERS},
};

/// Creates while there are webhooks; the rate without webhooks is that of [`create::NAME`].
pub const WITH_WEBHOOKS: &str = "create, 64 clients, 10 webhooks";
/// How far readers lag behind a change.
pub const LAG: &str = "events behind a change, 1,000 changes a second";
/// The same with half of the writers at a second process; the first may deliver their events, too.
pub const LAG_TWO_PROCESSES: &str = "events behind a change, 1,000 changes a second, two processes";
/// A feed that is read from its beginning.
pub const FEED: &str = "feed, pieces of 1,000";
/// A backlog that is delivered to one receiver.
pub const BACKLOG_ONE: &str = "webhooks, backlog to 1 receiver";
/// A backlog that is delivered to many receivers.
pub const BACKLOG_MANY: &str = "webhooks, backlog to 50 receivers";
/// Streams, while something changes all the time.
pub const STREAMS: &str = "500 event streams, 100 changes a second";
/// The same backlog while some of these receivers hang.
pub const BACKLOG_HANGING: &str = "webhooks, backlog to 50 receivers of whom 10 hang";

const STORE: &str = "/api/userstore/v2/default/administration";
/// How long a receiver works on an event.
const WORK: Duration = Duration::from_millis(5);
/// Users of one batch.
const BATCH: usize = 1000;
/// The number of writers whose changes are followed, each at the pace of [`streams`].
const WRITERS: usize = 10;
/// How long a backlog may take.
const TIMEOUT: Duration = Duration::from_mins(2);

/// What a receiver received.
#[derive(Default)]
struct Received {
    count: u64,
    lags: Histogram,
}

/// A receiver of webhooks.
struct Receiver {
    url: String,
    received: Arc<Mutex<Received>>,
    counts: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Receiver {
    /// Starts a receiver; a hanging one answers tests only.
    async fn start(hangs: bool) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let received = Arc::new(Mutex::new(Received::default()));
        let (count_sender, counts) = watch::channel(0);
        let task_received = Arc::clone(&received);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (received, count_sender) = (Arc::clone(&task_received), count_sender.clone());
                tokio::spawn(async move { serve(stream, &received, &count_sender, hangs).await });
            }
        });
        Ok(Self { url, received, counts, task })
    }

    /// Waits until it received this many events.
    async fn wait_for(&mut self, count: u64) -> Result<()> {
        let wait = self.counts.wait_for(|received| *received >= count);
        let has_arrived = matches!(tokio::time::timeout(TIMEOUT, wait).await, Ok(Ok(_)));
        let received = *self.counts.borrow();
        if has_arrived { Ok(()) } else { Err(fault(format!("a receiver got {received} of {count} events"))) }
    }

    fn take_received(&self) -> Received {
        std::mem::take(&mut self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The number of an event: the microsecond in which its request began.
fn number(body: &str) -> Option<u64> {
    let (_, rest) = body.split_once("\"id\":\"")?;
    rest.split('"').next()?.parse().ok()
}

fn lag(number: u64) -> Duration {
    Duration::from_micros(clock::now_micros().saturating_sub(number))
}

async fn serve(
    mut stream: TcpStream,
    received: &Mutex<Received>,
    count_sender: &watch::Sender<u64>,
    hangs: bool,
) -> Option<()> {
    let mut read: Vec<u8> = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut read).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8_lossy(read.get(..end)?).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let message_end = end + length.and_then(|length| length.trim().parse::<usize>().ok())?;
        while read.len() < message_end {
            if stream.read_buf(&mut read).await.ok()? == 0 {
                return None;
            }
        }
        let body = String::from_utf8_lossy(read.get(end..message_end)?).into_owned();
        read.drain(..message_end);
        let is_test = body.contains("platform.event.test");
        if hangs && !is_test {
            std::future::pending::<()>().await;
        }
        if !is_test {
            let delay = number(&body).map(lag);
            let count = {
                let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
                received.count += 1;
                received.lags.add(delay.unwrap_or_default());
                received.count
            };
            count_sender.send_replace(count);
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

/// The cursor after the newest event of the feed.
async fn now(target: &Target) -> Result<String> {
    Ok(text(&call(target, "GET", "/Event?after=now", &Value::Null, 200).await?, "next").to_owned())
}

/// Creates a subscription to each receiver, tests it, and activates it from a cursor on; returns their paths.
async fn subscribe(target: &Target, receivers: &[Receiver], after: Option<&str>) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for (index, receiver) in receivers.iter().enumerate() {
        let name = format!("r{index} {}", clock::now_micros());
        let types = ["platform.userstore.user.*"];
        let body = json!({ "name": name, "url": receiver.url, "types": types, "startAfter": after });
        let subscription = call(target, "POST", "/EventSubscription", &body, 201).await?;
        let path = format!("/EventSubscription/{}", text(&subscription, "id"));
        let test_result = call(target, "POST", &format!("{path}/test"), &json!({}), 200).await?;
        if test_result.get("delivered") != Some(&json!(true)) {
            return Err(fault(format!("a test was not delivered: {test_result}")));
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

async fn receivers(count: usize, hanging: usize) -> Result<Vec<Receiver>> {
    let mut receivers_made = Vec::new();
    for index in 0..count {
        receivers_made.push(Receiver::start(index < hanging).await?);
    }
    Ok(receivers_made)
}

/// Creates users in this many batches while no webhook exists; returns the cursor before them.
async fn create_backlog(target: &Target, batches: usize) -> Result<String> {
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
            let baseline_rate = load::run(&target, plan, &create::maker(target.clone())).await?.rate();
            let values = with_webhooks(&target, plan, baseline_rate).await?;
            bench.record(WITH_WEBHOOKS, name, round, values);
            let values = measure_lag(&[&target], bench.time).await?;
            bench.record(LAG, name, round, values);
            if target.engine == Engine::Postgres {
                let values = positions::without_positions(bench, &target, plan, baseline_rate).await?;
                bench.record(positions::WITHOUT_POSITIONS, name, round, values);
                let second = second_config(bench.config(Engine::Postgres)?)?.start().await?;
                let values = measure_lag(&[&target, &second.target], bench.time).await?;
                bench.record(LAG_TWO_PROCESSES, name, round, values);
                second.stop()?;
            }
            let values = read_feed(&target).await?;
            bench.record(FEED, name, round, values);
            for (workload, total, hanging, batches) in
                [(BACKLOG_ONE, 1, 0, 4), (BACKLOG_MANY, 50, 0, 1), (BACKLOG_HANGING, 50, 10, 1)]
            {
                let values = deliver_backlog(&target, (total, hanging), batches).await?;
                bench.record(workload, name, round, values);
            }
            let values = streams::measure(&target, bench.time).await?;
            bench.record(STREAMS, name, round, values);
            let values = positions::catch_up(bench, &target).await?;
            bench.record(positions::CATCH_UP, name, round, values);
        }
    }
    Ok(())
}

/// Creates with ten webhooks; the rate also as a part of the rate without webhooks.
async fn with_webhooks(target: &Target, plan: Plan, baseline_rate: f64) -> Result<Figures> {
    let receivers = receivers(10, 0).await?;
    let paths = subscribe(target, &receivers, None).await?;
    let outcome = load::run(target, plan, &create::maker(target.clone())).await?;
    unsubscribe(target, &paths).await?;
    let mut values = load_figures(target, &outcome);
    values.insert("rate_to_quiet".into(), outcome.rate() / baseline_rate);
    values.insert(
        "delivered".into(),
        receivers.iter().map(|receiver| receiver.take_received().count as f64).sum(),
    );
    Ok(values)
}

/// How far a feed and a receiver lag behind changes that are made at these processes and read at the first.
async fn measure_lag(targets: &[&Target], time: Duration) -> Result<Figures> {
    let target = targets.first().ok_or_else(|| fault("there is no process"))?;
    let mut receivers = receivers(1, 0).await?;
    let paths = subscribe(target, &receivers, None).await?;
    // the time until a new subscription is noticed is no part of how far its receiver lags
    target.call("POST", USERS, create::body().as_bytes(), 201).await?;
    for receiver in &mut receivers {
        receiver.wait_for(1).await?;
    }
    let cursor = now(target).await?;
    let read = Arc::new(Mutex::new(Histogram::default()));
    let reader = tokio::spawn(follow_feed((*target).clone(), cursor, Arc::clone(&read)));
    let begin = Instant::now();
    let mut writers = JoinSet::new();
    for target in targets.iter().cycle().take(WRITERS) {
        let target = (*target).clone();
        writers.spawn(async move { streams::change(&target, time).await });
    }
    let mut changes = 0;
    while let Some(of_writer) = writers.join_next().await {
        changes += of_writer??;
    }
    let seconds = begin.elapsed().as_secs_f64();
    for receiver in &mut receivers {
        receiver.wait_for(1 + changes).await?;
    }
    reader.abort();
    unsubscribe(target, &paths).await?;
    let read = std::mem::take(&mut *read.lock().unwrap_or_else(PoisonError::into_inner));
    let milliseconds = |lags: &Histogram, part: u64| lags.per_mille(part).as_secs_f64() * 1e3;
    let received = receivers.iter().map(Receiver::take_received).next().unwrap_or_default();
    Ok(figures([
        ("rate", changes as f64 / seconds),
        ("feed_p50_ms", milliseconds(&read, 500)),
        ("feed_p99_ms", milliseconds(&read, 990)),
        ("webhook_p50_ms", milliseconds(&received.lags, 500)),
        ("webhook_p99_ms", milliseconds(&received.lags, 990)),
    ]))
}

/// Reads the feed after a cursor as it grows, and records how far it lags behind each event.
async fn follow_feed(target: Target, mut after: String, lags: Arc<Mutex<Histogram>>) -> Result<()> {
    let mut client = Client::connect(target.address).await?;
    loop {
        let path =
            format!("{STORE}/Event?count=1000&wait=5&type=platform.userstore.user.created&after={after}");
        let page: Value =
            serde_json::from_slice(&target.call_on(&mut client, "GET", &path, b"", 200).await?)?;
        text(&page, "next").clone_into(&mut after);
        let mut lags = lags.lock().unwrap_or_else(PoisonError::into_inner);
        for event in page.get("items").and_then(Value::as_array).into_iter().flatten() {
            lags.add(lag(text(event, "id").parse()?));
        }
    }
}

/// Reads the whole feed.
async fn read_feed(target: &Target) -> Result<Figures> {
    let (begin, before) = (Instant::now(), target.usage());
    let count = read_feed_after(target, "").await? as f64;
    let used = target.usage().server.saturating_sub(before.server).as_secs_f64();
    Ok(figures([
        ("events", count),
        ("rate", count / begin.elapsed().as_secs_f64()),
        ("cpu_us", used * 1e6 / count),
    ]))
}

/// Reads the feed from a cursor to its end; returns how many events there were.
async fn read_feed_after(target: &Target, after: &str) -> Result<u64> {
    let mut client = Client::connect(target.address).await?;
    let (mut count, mut after) = (0, after.to_owned());
    loop {
        let path = format!("{STORE}/Event?count=1000{after}");
        let page: Value =
            serde_json::from_slice(&target.call_on(&mut client, "GET", &path, b"", 200).await?)?;
        count += page.get("items").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        after = format!("&after={}", text(&page, "next"));
        if page.get("hasMore") == Some(&json!(false)) {
            return Ok(count);
        }
    }
}

/// Measures how fast a backlog is delivered to `total` receivers, while the first `hanging` of them never respond: deliveries a
/// second to the others.
async fn deliver_backlog(
    target: &Target,
    (total, hanging): (usize, usize),
    batches: usize,
) -> Result<Figures> {
    let mut receivers = receivers(total, hanging).await?;
    let before = create_backlog(target, batches).await?;
    let used = target.usage().server;
    let paths = subscribe(target, &receivers, Some(&before)).await?;
    // the time until a new subscription is noticed is no part of how fast receivers are served
    for receiver in receivers.iter_mut().skip(hanging).take(1) {
        receiver.wait_for(1).await?;
    }
    let begin = Instant::now();
    let each = (batches * BATCH) as u64;
    for receiver in receivers.iter_mut().skip(hanging) {
        receiver.wait_for(each).await?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let used = target.usage().server.saturating_sub(used).as_secs_f64();
    unsubscribe(target, &paths).await?;
    let count = (each * (total - hanging) as u64) as f64;
    Ok(figures([("rate", count / seconds), ("seconds", seconds), ("cpu_us", used * 1e6 / count)]))
}
