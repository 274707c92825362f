//! A kill during a large replacement: it is applied completely or not at all.

use std::{collections::BTreeSet, sync::Arc};

use chancery_testkit::{Client, Database, Engine, Process};
use serde_json::{Value as Json, json};

use super::at;
use crate::each;

const STORE: &str = "/api/userstore/v2/default/administration";
/// How many members are replaced by as many others.
const MEMBERS: usize = 1000;

fn listed(ids: &BTreeSet<String>) -> Json {
    ids.iter().map(|id| json!({ "value": id })).collect()
}

/// Replaces the members by one half of the users and then the other, until the server is gone; reports each successful
/// answer.
async fn replace_until_gone(
    client: Client,
    path: String,
    halves: [BTreeSet<String>; 2],
    committed: tokio::sync::mpsc::Sender<usize>,
) {
    for round in 0.. {
        let half = round % 2;
        let body =
            json!({ "displayName": "team", "members": listed(&halves[half]) }).to_string().into_bytes();
        let headers = [("content-type", "application/scim+json")];
        match client.try_send(http::Method::PUT, &path, &headers, body).await {
            Some(answer) if answer.status.is_success() => {
                let _ = committed.send(half).await;
            }
            Some(answer) => assert_eq!(answer.status, 503, "{:?}", answer.bytes),
            None => break,
        }
    }
}

async fn kill_in_replacements(engine: Engine) {
    let database = Arc::new(Database::create(engine));
    let mut server = Process::start(&database, &[]).await;
    let users: Vec<Json> =
        (0..2 * MEMBERS).map(|number| json!({ "loginName": format!("u{number}") })).collect();
    server.admin.post(&format!("{STORE}/User/batch"), json!(users)).await.expect(200);
    let created = server.admin.get(&format!("{STORE}/User")).await.is(200).json();
    let ids = each(&created, "id").into_iter().map(str::to_owned).collect::<Vec<_>>();
    let halves =
        [0, 1].map(|half| ids.iter().skip(half * MEMBERS).take(MEMBERS).cloned().collect::<BTreeSet<_>>());
    let token = server
        .admin
        .post(&format!("{STORE}/ScimToken"), json!({ "name": "d", "reach": "All" }))
        .await
        .is(201)
        .json();
    let token = token["token"].as_str().unwrap().to_owned();
    let client = server.admin.with_token(&token);
    let body = json!({ "displayName": "team", "members": listed(&halves[1]) });
    let group = client.post(&at("/Groups?excludedAttributes=members"), body).await.is(201).json();
    let path = at(&format!("/Groups/{}", group["id"].as_str().unwrap()));
    for answers in [1, 2, 3, 4] {
        let (committed_sender, mut committed) = tokio::sync::mpsc::channel(100);
        let writing = chancery_testkit::spawn(replace_until_gone(
            server.admin.with_token(&token),
            format!("{path}?attributes=id"),
            halves.clone(),
            committed_sender,
        ));
        let mut last = 1;
        for _ in 0..answers {
            last = committed.recv().await.unwrap();
        }
        server.kill();
        writing.await.unwrap();
        while let Some(more) = committed.recv().await {
            last = more;
        }
        server = Process::start(&database, &[]).await;
        let read = server.admin.with_token(&token).get(&path).await.is(200).json();
        let actual: BTreeSet<String> =
            each(&read["members"], "value").into_iter().map(str::to_owned).collect();
        assert!(
            actual == halves[last] || actual == halves[1 - last],
            "{} members of two halves",
            actual.len()
        );
    }
}

#[tokio::test]
async fn a_replacement_is_atomic_embedded() {
    kill_in_replacements(Engine::Sqlite).await;
}

#[tokio::test]
async fn a_replacement_is_atomic_on_postgres() {
    kill_in_replacements(Engine::Postgres).await;
}
