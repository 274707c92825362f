//! One trace id from a request to every line of the log that is written for it, on whichever thread.

use std::collections::BTreeSet;

use chancery_record::Value as V;
use chancery_store::{Error, Mode, raw};
use chancery_testkit::{Answer, Client, Database, Engine, Process};
use http::Method;
use serde_json::{Value, json};

use crate::{id, secrets::store};

const USERS: &str = "/api/userstore/v2/default/administration/User";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Calls with a `traceparent`.
async fn traced(client: &Client, method: Method, path: &str, body: &Value) -> Answer {
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let headers = [("content-type", "application/json"), ("traceparent", parent.as_str())];
    client.send(method, path, &headers, body.to_string().into_bytes()).await
}

/// Ends a server and reads its log.
fn lines(mut server: Process) -> Vec<Value> {
    assert!(server.stop());
    let log = std::fs::read_to_string(&server.log).unwrap();
    for line in log.lines() {
        for member in ["trace_id", "operation", "store", "client", "job", "message"] {
            assert!(line.matches(&format!("\"{member}\":")).count() <= 1, "{member} once: {line}");
        }
    }
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// The lines of the request, and their messages.
fn of_request(lines: &[Value]) -> (Vec<&Value>, BTreeSet<&str>) {
    let of_the_request: Vec<&Value> = lines.iter().filter(|line| line["trace_id"] == TRACE).collect();
    let said = of_the_request.iter().filter_map(|line| line["message"].as_str()).collect();
    (of_the_request, said)
}

/// Log lines of lanes and of the pool have the request's trace id, its operation and its caller; those of
/// jobs, an id of their run.
async fn on_every_thread(engine: Engine) {
    let database = Database::create(engine);
    let server = Process::start(&database, &[("CHANCERY_LOG", "debug")]).await;
    let user = server.admin.post(USERS, json!({ "loginName": "ada" })).await.is(201).json();
    let path = format!("{USERS}/{}/password/initial", id(&user));
    traced(&server.admin, Method::POST, &path, &json!({ "password": "correct Horse 7 battery" }))
        .await
        .expect(200);
    let lines = lines(server);
    let (of_the_request, said) = of_request(&lines);
    for message in ["ran in the store", "worked between transactions", "answered"] {
        assert!(said.contains(message), "{message}: {of_the_request:#?}");
    }
    let operation = &of_the_request.iter().find(|line| line["message"] == "answered").unwrap()["operation"];
    assert!(operation.as_str().is_some_and(|name| name.contains("Password")), "{of_the_request:#?}");
    for line in &of_the_request {
        // rights are looked up before their owner is known
        let is_early = line["client"].is_null() && line["message"] == "ran in the store";
        assert!(is_early || (line["store"] == "default" && line["client"].is_string()), "{line}");
        assert_eq!(&line["operation"], operation, "{line}");
    }
    assert!(
        !of_the_request
            .iter()
            .any(|line| line.to_string().contains(id(&user)) && line["message"] != "answered")
    );
    let jobs: Vec<&Value> = lines.iter().filter(|line| line["job"].is_string()).collect();
    assert!(
        jobs.iter().all(|line| line["trace_id"].as_str().is_some_and(|id| id.len() == 32 && id != TRACE))
    );
}

/// A warning within a transaction has the id, though the log level is warn.
async fn of_warnings(engine: Engine) {
    let database = Database::create(engine);
    let mut server = Process::start(&database, &[]).await;
    let user = server.admin.post(USERS, json!({ "loginName": "ada" })).await.is(201).json();
    assert!(server.stop());
    let user = V::Id(id(&user).parse().unwrap());
    let store = store(&database).await;
    let spoiled = store.run("Test", Mode::Write, None, move |tx| {
        let text = "UPDATE user_account SET first_name = ?1 WHERE id = ?2";
        raw::execute(tx, text, &[V::Text("x".repeat(5000)), user.clone()])
    });
    spoiled.await.map_err(|error: Error| error).unwrap();
    chancery_testkit::spawn_blocking(move || store.close()).await.unwrap();
    let server = Process::start(&database, &[("CHANCERY_LOG", "warn")]).await;
    traced(&server.admin, Method::POST, &format!("{USERS}/synchronize"), &Value::Null).await.expect(200);
    let lines = lines(server);
    let (of_the_request, said) = of_request(&lines);
    assert!(said.contains("holds what cannot be mirrored"), "{lines:#?}");
    assert!(
        of_the_request.iter().all(|line| line["operation"].is_string() && line["store"] == "default"),
        "{of_the_request:#?}"
    );
}

/// A problem has the trace of its lines, also where the request has no valid one.
async fn of_problems(engine: Engine) {
    let database = Database::create(engine);
    let server = Process::start(&database, &[("CHANCERY_LOG", "debug")]).await;
    let mut ids = Vec::new();
    for parent in [
        "",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ] {
        let headers: &[(&str, &str)] = if parent.is_empty() { &[] } else { &[("traceparent", parent)] };
        let problem =
            server.admin.send(Method::GET, "/nothing", headers, vec![]).await.problem(404, "no-such-route");
        ids.push(problem["traceId"].as_str().unwrap().to_owned());
    }
    let lines = lines(server);
    for id in &ids {
        assert!(id.len() == 32 && id.bytes().any(|byte| byte != b'0') && id != TRACE, "{id}");
        assert!(lines.iter().any(|line| line["trace_id"] == **id && line["message"] == "refused"), "{id}");
    }
}

/// Section 13: an access log is off by default, has caller, operation, status and duration, and names no person.
async fn of_answers(which: &str, statuses: &[u16]) {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[("CHANCERY_ACCESS_LOG", which)]).await;
    let user = server.admin.post(USERS, json!({ "loginName": "wilma" })).await.is(201).json();
    server.admin.get(&format!("{USERS}/{}", id(&user))).await.expect(200);
    server.admin.post(USERS, json!({ "loginName": "wilma" })).await.problem(409, "conflict");
    let lines = lines(server);
    let of_user = |line: &&Value| line["operation"].as_str().is_some_and(|name| name.ends_with("User"));
    let answers: Vec<&Value> =
        lines.iter().filter(|line| line["message"] == "answered").filter(of_user).collect();
    assert_eq!(
        answers.iter().map(|line| line["status"].as_u64().unwrap()).collect::<Vec<_>>(),
        statuses.iter().copied().map(u64::from).collect::<Vec<_>>()
    );
    for line in answers {
        assert!(
            line["trace_id"].is_string() && line["client"].is_string() && line["seconds"].is_f64(),
            "{line}"
        );
        assert!(!line.to_string().contains("wilma") && !line.to_string().contains(id(&user)), "{line}");
    }
}

#[tokio::test]
async fn answers_are_logged_with_it() {
    of_answers("off", &[]).await;
    of_answers("errors", &[409]).await;
    of_answers("all", &[201, 200, 409]).await;
}

#[tokio::test]
async fn lines_of_every_thread_have_it() {
    on_every_thread(Engine::Sqlite).await;
    on_every_thread(Engine::Postgres).await;
}

#[tokio::test]
async fn warnings_of_a_transaction_have_it() {
    of_warnings(Engine::Sqlite).await;
    of_warnings(Engine::Postgres).await;
}

#[tokio::test]
async fn problems_have_it() {
    of_problems(Engine::Sqlite).await;
}
