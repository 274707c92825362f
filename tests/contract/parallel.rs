//! Administrators at work at the same time: all writes are served, and nothing is lost.

use std::sync::Arc;

use chancery_testkit::{Answer, Client, Database, Engine, Process};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::each;

const MANAGEMENT: &str = "/api/management/v2";
const STORE: &str = "/api/userstore/v2/default/administration";
const WRITERS: usize = 64;
/// One in so many writers increments the shared counters.
const COUNTED: usize = 8;

/// The shared targets of all writers.
struct Shared {
    group: Value,
    counter: Value,
    option: Value,
    user_store_type: Value,
    tenant: Value,
}

/// All rows of a resource of the management service.
async fn all(client: &Client, resource: &str) -> Vec<Value> {
    let rows = client.get(&format!("{MANAGEMENT}/{resource}")).await.is(200).json();
    rows.as_array().unwrap().clone()
}

async fn make(client: &Client, path: String, body: Value) -> Value {
    client.post(&path, body).await.is(201).json()
}

async fn prepare(client: &Client) -> Shared {
    let named = |items: Vec<Value>, name: &str| items.into_iter().find(|item| item["name"] == name).unwrap();
    let tenant = named(all(client, "Tenant").await, "Default");
    let counter =
        json!({ "name": "counter", "description": "0", "subscriptionId": tenant["subscriptionId"] });
    Shared {
        group: make(client, format!("{STORE}/Group"), json!({ "name": "all" })).await,
        counter: make(client, format!("{MANAGEMENT}/Tenant"), counter).await,
        option: named(all(client, "Option").await, "PasswordMinLength"),
        user_store_type: named(all(client, "IdpType").await, "UserStore"),
        tenant,
    }
}

/// Reads, changes and writes until there is no conflict, like an administrator's program.
async fn change(client: &Client, path: &str, member: &str, next: impl Fn(&str) -> String) {
    for _ in 0..10_000 {
        let read = client.get(path).await.is(200).json();
        let value = next(read[member].as_str().unwrap_or_default());
        let body = json!({ member: value, "concurrencyToken": read["concurrencyToken"] });
        let answer = client.patch(path, body).await;
        if answer.status != 409 {
            return answer.expect(202);
        }
    }
    panic!("{path} was never free");
}

/// What one writer does: every kind of resource that administrators create, and the shared ones.
async fn write(client: &Client, shared: &Shared, writer: usize) {
    let name = format!("w{writer}");
    let key = |answer: Answer| answer.is(201).json()["id"].clone();
    let app = make(client, format!("{MANAGEMENT}/ClientApp"), json!({ "name": name })).await;
    make(client, format!("{MANAGEMENT}/ClientAppSecret"), json!({ "clientAppId": app["id"] })).await;
    let tenant = json!({ "name": name, "subscriptionId": shared.tenant["subscriptionId"] });
    make(client, format!("{MANAGEMENT}/Tenant"), tenant).await;
    let instance = json!({ "name": name, "idpTypeId": shared.user_store_type["id"] });
    make(client, format!("{MANAGEMENT}/IdpInstance"), instance).await;
    let role = json!({ "clientAppId": app["id"], "roleType": "TenantAdmin", "applyToTenantId": shared.tenant["id"] });
    make(client, format!("{MANAGEMENT}/ClientAppRole"), role).await;
    let user = key(client.post(&format!("{STORE}/User"), json!({ "loginName": name })).await);
    let members = format!("{STORE}/Group/{}/users", shared.group["id"].as_str().unwrap());
    client.post(&members, json!({ "relatedIds": [user] })).await.expect(202);
    let option = format!("{MANAGEMENT}/Option/{}", shared.option["id"].as_str().unwrap());
    change(client, &option, "value", |_| (8 + writer % 8).to_string()).await;
    if writer.is_multiple_of(COUNTED) {
        let counter = format!("{MANAGEMENT}/Tenant/{}", shared.counter["id"].as_str().unwrap());
        change(client, &counter, "description", |count| (count.parse::<usize>().unwrap() + 1).to_string())
            .await;
    }
}

async fn write_in_parallel(engine: Engine, processes: usize) {
    let database = Database::create(engine);
    let mut servers = Vec::new();
    for _ in 0..processes {
        servers.push(Process::start(&database, &[]).await);
    }
    let shared = Arc::new(prepare(&servers[0].admin).await);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (client, shared) = (servers[writer % processes].admin.clone(), Arc::clone(&shared));
        writers.spawn(async move { write(&client, &shared, writer).await });
    }
    writers.join_all().await;
    let client = &servers[processes - 1].admin;
    let counter =
        client.get(&format!("{MANAGEMENT}/Tenant/{}", shared.counter["id"].as_str().unwrap())).await;
    assert_eq!(counter.is(200).json()["description"], (WRITERS / COUNTED).to_string());
    let group = client.get(&format!("{STORE}/Group/{}", shared.group["id"].as_str().unwrap())).await;
    assert_eq!(group.is(200).json()["memberUsers"].as_array().unwrap().len(), WRITERS);
    let apps = Value::Array(all(client, "ClientApp").await);
    let count = each(&apps, "name").iter().filter(|name| name.starts_with('w')).count();
    assert_eq!(count, WRITERS);
}

fn run(engine: Engine, processes: usize) {
    tokio::runtime::Runtime::new().unwrap().block_on(write_in_parallel(engine, processes));
}

/// B1, B2: 64 writers of anything are all served, and no change of one overwrites another's.
#[test]
fn every_writer_is_served_sqlite() {
    run(Engine::Sqlite, 1);
}

/// B1, B2: the same on a server.
#[test]
fn every_writer_is_served_postgres() {
    run(Engine::Postgres, 1);
}

/// B1, B2, B4: the same on two processes.
#[test]
fn every_writer_is_served_by_two_processes() {
    run(Engine::Postgres, 2);
}

/// How many operations of a server were repeated.
async fn retries(server: &Process) -> usize {
    let answer = server.admin.get("/metrics").await.is(200);
    let metrics = String::from_utf8_lossy(&answer.bytes);
    let line = metrics.lines().find_map(|line| line.strip_prefix("chancery_store_retries "));
    line.unwrap().parse().unwrap()
}

/// Every new client app advances the security epoch, which is one row: on PostgreSQL two transactions that update it at once
/// conflict, and one of them has to be repeated. They wait for each other instead, in a process and between processes.
#[test]
fn changes_of_rights_wait_for_each_other_instead_of_being_repeated() {
    const CHANGES: usize = 48;
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let database = Database::create(Engine::Postgres);
        let servers = [Process::start(&database, &[]).await, Process::start(&database, &[]).await];
        let all = async || join_all(servers.iter().map(retries)).await.into_iter().sum::<usize>();
        let before = all().await;
        join_all((0..CHANGES).map(|number| {
            let app = json!({ "name": format!("app {number}") });
            make(&servers[number % 2].admin, format!("{MANAGEMENT}/ClientApp"), app)
        }))
        .await;
        let repeated = all().await - before;
        // jobs write meanwhile, too
        assert!(repeated < CHANGES / 8, "{repeated} of {CHANGES} were repeated");
    });
}
