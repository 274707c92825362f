//! Wrong secrets at the token endpoints.

use chancery_testkit::{Answer, Client, Database, Engine, Process, SECRET};

async fn ask(anyone: &Client, path: &str, client: &str, secret: &str) -> Answer {
    let form = format!("grant_type=client_credentials&token=x&client_id={client}&client_secret={secret}");
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    anyone.send(http::Method::POST, path, &headers, form.into_bytes()).await
}

/// A, also: wrong secrets are limited for a client app and for an address, at all three endpoints together; who is
/// right is not.
#[tokio::test]
async fn wrong_secrets_are_limited() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[("CHANCERY_PUBLIC_RATE_LIMIT", "9")]).await;
    let anyone = Client::anonymous(&server.base);
    let refused = |answer: Answer| {
        let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        assert_eq!(answer.is(429).json()["error"], "temporarily_unavailable");
    };
    for _ in 0..30 {
        ask(&anyone, "/connect/token", "root", SECRET).await.expect(200);
    }
    for path in ["/connect/token", "/connect/introspect", "/connect/revoke"] {
        ask(&anyone, path, "nobody", "wrong").await.expect(401);
    }
    refused(ask(&anyone, "/connect/token", "nobody", "wrong").await);
    refused(ask(&anyone, "/connect/revoke", "NOBODY", "other").await);
    for number in 0..6 {
        ask(&anyone, "/connect/token", &format!("n{number}"), "wrong").await.expect(401);
    }
    refused(ask(&anyone, "/connect/token", "n9", "wrong").await);
    // a client app that was proven from here is not shut out by strangers
    for _ in 0..5 {
        ask(&anyone, "/connect/token", "root", SECRET).await.expect(200);
    }
    for _ in 0..3 {
        ask(&anyone, "/connect/token", "root", "wrong").await.expect(401);
    }
    refused(ask(&anyone, "/connect/token", "root", "wrong").await);
    server.admin.get("/api/userstore/v2/default/administration/User").await.expect(200);
}

/// Guesses at once are no more than one after another.
#[tokio::test]
async fn wrong_secrets_at_once_are_limited() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[("CHANCERY_PUBLIC_RATE_LIMIT", "9")]).await;
    let anyone = Client::anonymous(&server.base);
    let guesses = (0..40).map(|_| ask(&anyone, "/connect/token", "nobody", "wrong"));
    let answers = futures_util::future::join_all(guesses).await;
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(401), count(429)), (3, 37));
    ask(&anyone, "/connect/token", "root", SECRET).await.expect(200);
}
