//! Bad input: each gets a clear problem, none a 5xx, nothing is half-done.

use std::sync::{Arc, Mutex, mpsc};

use chancery_store::{Error, Mode};
use chancery_testkit::{World, on_both_engines};
use http::Method;
use serde_json::json;
use tokio::sync::Notify;

use crate::id;

const JSON: (&str, &str) = ("content-type", "application/json");

async fn refused(world: &World, method: Method, path: &str, body: &[u8], expected: &str) {
    let answer = world.admin.send(method, &world.path(path), &[JSON], body.to_vec()).await;
    let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
    let problem = answer.problem(400, "invalid-request");
    assert!(problem["detail"].as_str().unwrap().contains(expected), "{shown}: {}", problem["detail"]);
}

on_both_engines! {
    async fn malformed_json_and_unknown_members_are_refused(world: World) {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let numbers = format!(r#"{{"loginName": {}}}"#, "9".repeat(400));
        for (body, word) in [
            (&b""[..], "JSON body"),
            (b"{", "EOF"),
            (b"{} x", "trailing"),
            (b"null", "object"),
            (b"[]", "object"),
            (b"\"text\"", "object"),
            (br#"{"loginName": "a", "loginName": "b"}"#, "twice"),
            (br#"{"loginName": "a", "login\u004eame": "b"}"#, "twice"),
            (br#"{"loginName": "a\u0000b"}"#, "control"),
            (br#"{"loginName": "\ud800"}"#, "JSON"),
            (b"{\"loginName\": \"\xff\"}", "JSON"),
            (br#"{"loginName": {"a": 1}}"#, "string"),
            (br#"{"loginName": ["a"]}"#, "string"),
            (br#"{"loginName": true}"#, "string"),
            (br#"{"loginName": NaN}"#, "JSON"),
            (deep.as_bytes(), "nested"),
            (numbers.as_bytes(), ""),
            (br#"{"loginName": "a", "lgoinName": "b"}"#, "/lgoinName"),
            (br#"{"loginName": "a", "a/b~c": 1}"#, "/a~1b~0c"),
            (br#"{"loginName": "a", "id": "no-uuid"}"#, "UUID"),
            (br#"{"loginName": "a", "quarantinedOn": null}"#, "quarantinedOn"),
        ] {
            refused(&world, Method::POST, "/User", body, word).await;
        }
        assert_eq!(world.admin.get(&world.path("/User")).await.is(200).json(), json!([]));
    }

    async fn paths_and_ids(world: World) {
        for path in ["/User/no-uuid", "/Group/1", "/Group/user/x/membership"] {
            refused(&world, Method::GET, path, b"", "UUID").await;
        }
        refused(&world, Method::GET, "/User/loginname/%ff", b"", "UTF-8").await;
        refused(&world, Method::GET, "/User/loginname/%00", b"", "NUL").await;
        world.admin.get(&format!("/api/userstore/v2/{}/administration/User", "x".repeat(5000))).await.problem(404, "not-found");
        world.admin.get(&world.path(&format!("/User/loginname/{}", "x".repeat(5000)))).await.problem(404, "not-found");
        world.admin.get("/api/userstore/v2/%00/administration/User").await.problem(400, "invalid-request");
        world.admin.get("/api/userstore/v2//administration/User").await.problem(404, "no-such-route");
    }

    async fn bodies_over_a_bound(world: World) {
        let large = vec![b' '; (10 << 20) + 1];
        let problem = world.admin.send(Method::POST, &world.path("/User"), &[JSON], large.clone()).await.problem(413, "payload-too-large");
        assert!(problem["detail"].as_str().unwrap().contains("10485760"));
        // a batch may be larger
        let mut batch = large;
        batch.extend_from_slice(b"[]");
        world.admin.send(Method::POST, &world.path("/User/batch"), &[JSON], batch).await.expect(200);
        let ids: Vec<String> = (0..100_001).map(|number: u128| format!("{number:032x}")).collect();
        let group = world.group("g").await;
        let path = world.path(&format!("/Group/{}/users", id(&group)));
        world.admin.put(&path, json!({ "relatedIds": ids })).await.problem(413, "payload-too-large");
    }

    async fn hostile_filters_and_cursors(world: World) {
        world.user("ada").await;
        for filter in [
            "loginName%20eq%20%22'%20OR%201=1%20--%22", "loginName%20eq%20%22%3f1%22", "loginName%20eq%20%22%22%22",
            "loginName;DROP%20TABLE%20x%20eq%201", "((((((((((((((((((((((((((((((loginName%20pr", "not%20not%20loginName%20pr",
            "loginName%20eq%20%22\\ud800%22", "t.rid%20eq%201", "loginName%20eq%20%00", "1%20eq%201",
        ] {
            let answer = world.admin.get(&world.path(&format!("/User?filter={filter}"))).await;
            assert!(matches!(answer.status.as_u16(), 200 | 400), "{filter}");
            if answer.status == 200 {
                assert_eq!(answer.json(), json!([]), "{filter}");
            }
        }
        let long = format!("/User?filter={}", "a%20pr%20or%20".repeat(2000));
        refused(&world, Method::GET, &long, b"", "at most").await;
        let nul = world.admin.get(&world.path("/User?filter=loginName%20eq%20%22a%5Cu0000%22")).await;
        assert!(nul.status == 200 || nul.status == 400);
        for cursor in ["", "x", &"A".repeat(10_000)] {
            refused(&world, Method::GET, &format!("/User?count=1&cursor={cursor}"), b"", "cursor").await;
        }
    }

    async fn headers(world: World) {
        let users = world.path("/User");
        let wrong = |value: &'static str| [JSON, ("authorization", value)];
        for value in ["", "Bearer", "Bearer ", "Basic eDp5", "bearer \u{7f}"] {
            let answer = world.anonymous.try_send(Method::GET, &users, &wrong(value), vec![]).await;
            assert!(answer.is_none_or(|answer| answer.status == 401));
        }
        for value in ["\"", "W/\"x\"", ",,,", "\"a\" \"b\""] {
            let user = world.user(&format!("u{}", value.len())).await;
            let one = world.path(&format!("/User/{}", id(&user)));
            world.admin.send(Method::DELETE, &one, &[("if-match", value)], vec![]).await.problem(412, "precondition-failed");
        }
    }
}

on_both_engines! {
    /// A1: a large body full of errors is refused before there is a transaction, so that no write waits for
    /// it: here all the others wait for one.
    async fn a_body_full_of_errors_takes_no_transaction(world: World) {
        let begun = Arc::new(Notify::new());
        let (release, released) = mpsc::channel::<()>();
        let (notify, released) = (Arc::clone(&begun), Mutex::new(released));
        let holding = world.app.store.run("Hold", Mode::Write, None, move |_| {
            notify.notify_one();
            released.lock().unwrap().recv().map_err(|_| Error::Busy)
        });
        let refusing = async {
            begun.notified().await;
            let elements = json!(vec!["no object".repeat(10); 2000]);
            let members: serde_json::Map<_, _> = (0..9000).map(|number| (format!("member{number}"), json!(1))).collect();
            for (method, path, body) in [
                (Method::POST, world.path("/User/batch"), elements.clone()),
                (Method::POST, "/api/userstore/v1/default/administration/User/createorupdate/batch".to_owned(), elements),
                (Method::POST, world.path("/passkey-security/recovery-transactions"), json!(members)),
            ] {
                let problem = world.admin.send(method, &path, &[JSON], body.to_string().into_bytes()).await;
                let problem = problem.problem(400, "invalid-request");
                assert_eq!(problem["errors"].as_array().unwrap().len(), 100, "{path}");
            }
            release.send(()).unwrap();
        };
        let (held, ()) = tokio::join!(holding, refusing);
        held.map_err(|error: Error| error.to_string()).unwrap();
    }
}
