//! Rate limits on wrong secrets at the token endpoints.

use chancery_testkit::{Answer, Client, ROOT_SECRET, with_stopped_clock};

async fn authenticate(anyone: &Client, path: &str, client: &str, secret: &str) -> Answer {
    let secret = secret.replace(' ', "+");
    let form = format!("grant_type=client_credentials&token=x&client_id={client}&client_secret={secret}");
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    anyone.send(http::Method::POST, path, &headers, form.into_bytes()).await
}

with_stopped_clock! {
    /// A, also: wrong secrets are limited per client app and per address, at all three endpoints together; correct secrets
    /// are not.
    ["--public-rate-limit", "9"]
    async fn wrong_secrets_are_limited(server: World) {
        let anyone = Client::anonymous(&server.base);
        let assert_limited = |answer: Answer| {
            let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
            assert_eq!(answer.is(429).json()["error"], "temporarily_unavailable");
        };
        for _ in 0..30 {
            authenticate(&anyone, "/connect/token", "root", ROOT_SECRET).await.expect(200);
        }
        for path in ["/connect/token", "/connect/introspect", "/connect/revoke"] {
            authenticate(&anyone, path, "nobody", "wrong").await.expect(401);
        }
        assert_limited(authenticate(&anyone, "/connect/token", "nobody", "wrong").await);
        assert_limited(authenticate(&anyone, "/connect/revoke", "NOBODY", "other").await);
        for number in 0..6 {
            authenticate(&anyone, "/connect/token", &format!("n{number}"), "wrong").await.expect(401);
        }
        assert_limited(authenticate(&anyone, "/connect/token", "n9", "wrong").await);
        // a client app that authenticated from here is not locked out by others' wrong secrets
        for _ in 0..5 {
            authenticate(&anyone, "/connect/token", "root", ROOT_SECRET).await.expect(200);
        }
        for _ in 0..3 {
            authenticate(&anyone, "/connect/token", "root", "wrong").await.expect(401);
        }
        assert_limited(authenticate(&anyone, "/connect/token", "root", "wrong").await);
        server.admin.get("/api/userstore/v2/default/administration/User").await.expect(200);
    }

    /// Concurrent guesses are limited as successive ones.
    ["--public-rate-limit", "9"]
    async fn concurrent_wrong_secrets_are_limited(server: World) {
        let anyone = Client::anonymous(&server.base);
        let attempts = (0..40).map(|_| authenticate(&anyone, "/connect/token", "nobody", "wrong"));
        let answers = futures_util::future::join_all(attempts).await;
        let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
        assert_eq!((count(401), count(429)), (3, 37));
        authenticate(&anyone, "/connect/token", "root", ROOT_SECRET).await.expect(200);
    }
}
