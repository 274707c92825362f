//! A checked history of events: many clients change users through processes that are killed, while
//! readers by feed, by stream and by webhook are killed, too. Each answered change is delivered once, in the order of its subject,
//! and nothing else is; and a reader that continues from a state that a restore undid gets an error.

mod readers;
mod restored;
mod writers;

use std::{collections::BTreeMap, sync::Arc};

use chancery_testkit::{Client, Database, Engine, Process, Received, Receiver, SECRET};
use serde_json::{Value as Json, json};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use self::{
    readers::{Reader, Transport},
    writers::{WriterReport, write},
};
use crate::{free_address, id, sign_in::fleet::RandomNumbers};

const STORE: &str = "/api/userstore/v2/default/administration";
const CLIENTS: usize = 64;
const ROUNDS: usize = 5;
const TYPES: &str = "platform.userstore.user.";

/// Starts a process at an address, under the common public URL.
async fn start(database: &Database, listen: &str) -> Process {
    let environment = [
        ("CHANCERY_LISTEN", listen),
        ("CHANCERY_PUBLIC_URL", "http://localhost"),
        ("CHANCERY_EVENT_NETWORKS", "127.0.0.0/8"),
    ];
    let mut process = Process::start_unready(database, &environment);
    let anonymous = Client::anonymous(&format!("http://{listen}"));
    let form = format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}");
    let token = anonymous.ask_for_token(&form).await.is(200).json();
    process.admin = anonymous.with_token(token["access_token"].as_str().unwrap());
    process
}

/// A subscription of the default store to a receiver, tested and active.
async fn subscribe(server: &Process, receiver: &Receiver) -> String {
    let body = json!({ "name": "r", "url": receiver.url, "types": [format!("{TYPES}*")] });
    let created = server.admin.post(&format!("{STORE}/EventSubscription"), body).await.is(201).json();
    let one = format!("{STORE}/EventSubscription/{}", id(&created));
    let tested = server.admin.post(&format!("{one}/test"), json!({})).await.is(200).json();
    assert_eq!(tested["delivered"], true, "{tested}");
    let row = server.admin.get(&one).await.is(200).json();
    let body = json!({ "isActive": true, "concurrencyToken": row["concurrencyToken"] });
    server.admin.patch(&one, body).await.expect(202);
    one
}

/// The cursor after all answered changes. Where too many wait for a position, the server asks for a retry.
async fn now(server: &Process) -> String {
    for _ in 0..20 {
        let answer = server.admin.get(&format!("{STORE}/Event?after=now")).await;
        if answer.status != 503 {
            return answer.is(200).json()["next"].as_str().unwrap().to_owned();
        }
    }
    panic!("what was answered got no place");
}

/// The whole feed, once every answered change has its position.
async fn feed(server: &Process) -> Vec<Json> {
    now(server).await;
    let (mut events, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.admin.get(&format!("{STORE}/Event?count=1000{after}")).await.is(200).json();
        events.extend(page["items"].as_array().unwrap().iter().cloned());
        after = format!("&after={}", page["next"].as_str().unwrap());
        if page["hasMore"] == false {
            return events;
        }
    }
}

fn is_of_a_user(event: &Json) -> bool {
    event["type"].as_str().unwrap().starts_with(TYPES)
}

/// Subjects with the numbers of their events, in order.
fn by_subject<'a>(events: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut subjects: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (subject, number) in events {
        let numbers = subjects.entry(subject).or_default();
        // a repeated delivery is not a new one
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    subjects
}

fn of_feed(events: &[Json]) -> BTreeMap<&str, Vec<&str>> {
    let users = events.iter().filter(|event| is_of_a_user(event));
    by_subject(users.map(|event| (event["subject"].as_str().unwrap(), id(event))))
}

fn of_receiver(got: &[Received]) -> BTreeMap<&str, Vec<&str>> {
    let events = got.iter().filter(|received| received.kind().starts_with(TYPES));
    by_subject(events.map(|received| (received.subject(), received.header("webhook-id"))))
}

/// Answered changes are in the feed, in the order of their subjects; a change whose answer was lost may be; nothing else.
fn is_what_was_answered(events: &[Json], reports: &[WriterReport]) {
    let positions = events.iter().map(|event| event["sequence"].as_str().unwrap().parse::<usize>().unwrap());
    assert!(positions.eq(1..=events.len()), "positions without a hole");
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for event in events.iter().filter(|event| is_of_a_user(event)) {
        let kind = event["type"].as_str().unwrap().strip_prefix(TYPES).unwrap();
        kinds.entry(event["subject"].as_str().unwrap()).or_default().push(kind);
    }
    for report in reports {
        for subject in &report.subjects {
            let delivered = kinds.remove(subject.id.as_str()).unwrap_or_default();
            let perhaps: Vec<&str> = subject.answered.iter().copied().chain(subject.lost).collect();
            assert!(
                delivered == subject.answered || delivered == perhaps,
                "{delivered:?}, answered {subject:?}"
            );
        }
        for refused in &report.refused {
            assert_eq!(kinds.get(refused.as_str()), None, "an event of what was refused");
        }
    }
    assert!(kinds.is_empty(), "events of nobody: {kinds:?}");
}

/// Events and audit entries have the same numbers.
async fn is_audited(server: &Process, events: &[Json]) {
    let trail = server.admin.get(&format!("{STORE}/CustomAuditTrail")).await.is(200).json();
    let mut entries: Vec<String> =
        trail.as_array().unwrap().iter().map(|entry| entry["id"].to_string()).collect();
    let event_ids =
        events.iter().filter(|event| !event["type"].as_str().unwrap().starts_with("platform.event."));
    let mut event_ids: Vec<String> = event_ids.map(|event| id(event).to_owned()).collect();
    entries.sort_unstable();
    event_ids.sort_unstable();
    assert_eq!(entries, event_ids);
}

/// A receiver that refuses some events when they come first.
async fn unsteady() -> Receiver {
    let receiver = Receiver::start().await;
    let (dice, refused) = (std::sync::Mutex::new(RandomNumbers(3)), std::sync::Mutex::new(Vec::new()));
    receiver.respond_with(move |received| {
        let number = received.header("webhook-id").to_owned();
        let mut refused = refused.lock().unwrap();
        let is_first = received.kind().starts_with(TYPES) && !refused.contains(&number);
        if is_first && dice.lock().unwrap().below(40) == 0 {
            refused.push(number);
            return Some("500 Not now".to_owned());
        }
        None
    });
    receiver
}

async fn check(engine: Engine, processes: usize) {
    let database = Database::create(engine);
    let mut servers = Vec::new();
    for _ in 0..processes {
        servers.push(start(&database, &free_address()).await);
    }
    let mut receiver = unsteady().await;
    subscribe(&servers[0], &receiver).await;
    let callers: Vec<_> = servers.iter().map(|server| watch::channel(server.admin.clone()).0).collect();
    let callers = Arc::new(callers);
    let mut readers =
        [Transport::Feed, Transport::Stream].map(|transport| Reader::begin(transport, Arc::clone(&callers)));

    let (tell, mut heard) = mpsc::channel(10_000);
    let (stop, stopped) = watch::channel(false);
    let mut work = JoinSet::new();
    for number in 0..CLIENTS {
        work.spawn(write(number, Arc::clone(&callers), tell.clone(), stopped.clone()));
    }
    let mut dice = RandomNumbers(11);
    for round in 0..ROUNDS {
        for _ in 0..100 + dice.below(100) {
            heard.recv().await.unwrap();
        }
        readers[dice.below(2)].kill();
        if dice.below(2) == 0 {
            database.break_connections();
        }
        let one = round % processes;
        servers[one].kill();
        readers[dice.below(2)].kill();
        servers[one] = start(&database, &free_address()).await;
        callers[one].send_replace(servers[one].admin.clone());
    }
    for _ in 0..100 {
        heard.recv().await.unwrap();
    }
    stop.send_replace(true);
    let reports = work.join_all().await;
    assert!(
        reports.iter().any(|report| report.subjects.iter().any(|subject| subject.lost.is_some())),
        "a kill hit nobody"
    );

    let events = feed(&servers[0]).await;
    is_what_was_answered(&events, &reports);
    is_audited(&servers[0], &events).await;
    let numbers: Vec<&str> = events.iter().map(id).collect();
    for reading in readers {
        assert_eq!(reading.to(numbers.len()).await, numbers);
    }
    let expected = of_feed(&events);
    let (subjects, all) = (expected.len(), expected.values().map(Vec::len).sum::<usize>());
    let mut last = 0;
    let got = loop {
        // as long as more deliveries come, the test waits
        let got = receiver.until(|got| of_receiver(got).values().map(Vec::len).sum::<usize>() > last).await;
        last = of_receiver(&got).values().map(Vec::len).sum();
        if last == all {
            break got;
        }
    };
    assert_eq!(of_receiver(&got).len(), subjects);
    assert_eq!(of_receiver(&got), expected);
}

fn run(engine: Engine, processes: usize) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(chancery_testkit::PATIENCE, check(engine, processes)).await.unwrap();
    });
}

#[test]
fn each_answered_change_is_delivered_once_by_feed_stream_and_webhook_sqlite() {
    run(Engine::Sqlite, 1);
}

#[test]
fn each_answered_change_is_delivered_once_by_two_processes_on_postgres() {
    run(Engine::Postgres, 2);
}
