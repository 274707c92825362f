//! The rules of the wire: tokens, conditions, idempotency, dry runs, problems.

use chancery_testkit::on_both_engines;
use http::Method;
use serde_json::json;

use crate::{each, id};

const JSON: (&str, &str) = ("content-type", "application/json");

on_both_engines! {
    async fn stale_tokens_are_answered_with_the_current_one(world: World) {
        let user = world.user("ada").await;
        let one = world.path(&format!("/User/{}", id(&user)));
        let patch = json!({ "firstName": "A", "concurrencyToken": user["concurrencyToken"] });
        let now = world.admin.patch(&one, patch.clone()).await.is(202).json();
        let problem = world.admin.patch(&one, patch).await.problem(409, "concurrency-conflict");
        assert_eq!(problem["currentConcurrencyToken"], now["concurrencyToken"]);
        world.admin.patch(&one, json!({ "firstName": "B" })).await.problem(400, "invalid-request");
        world.admin.put(&one, json!({ "loginName": "ada", "concurrencyToken": null })).await.problem(400, "invalid-request");
        let other = json!({ "id": "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f", "concurrencyToken": now["concurrencyToken"] });
        world.admin.put(&one, other).await.problem(400, "invalid-request");
    }

    async fn of_parallel_changes_one_wins(world: World) {
        let user = world.user("ada").await;
        let one = world.path(&format!("/User/{}", id(&user)));
        let changes = (0..16).map(|number| {
            let (admin, one) = (world.admin.clone(), one.clone());
            let patch = json!({ "firstName": format!("A{number}"), "concurrencyToken": user["concurrencyToken"] });
            chancery_testkit::spawn(async move { admin.patch(&one, patch).await.status.as_u16() })
        });
        let mut statuses = Vec::new();
        for change in changes.collect::<Vec<_>>() {
            statuses.push(change.await.unwrap());
        }
        statuses.sort_unstable();
        assert_eq!(statuses[0], 202);
        assert!(statuses[1..].iter().all(|status| *status == 409), "{statuses:?}");
    }

    async fn of_parallel_creates_with_one_name_one_wins(world: World) {
        let creates = (0..16).map(|_| {
            let (admin, path) = (world.admin.clone(), world.path("/User"));
            chancery_testkit::spawn(async move { admin.post(&path, json!({ "loginName": "ada" })).await.status.as_u16() })
        });
        let mut statuses = Vec::new();
        for create in creates.collect::<Vec<_>>() {
            statuses.push(create.await.unwrap());
        }
        statuses.sort_unstable();
        assert_eq!(statuses[..2], [201, 409], "{statuses:?}");
        assert_eq!(statuses[15], 409);
    }

    async fn conditions(world: World) {
        let created = world.admin.post(&world.path("/User"), json!({ "loginName": "ada" })).await.is(201);
        let (user, tag) = (created.json(), created.header("etag").unwrap().to_owned());
        let one = world.path(&format!("/User/{}", id(&user)));
        let not_modified = world.admin.send(Method::GET, &one, &[("if-none-match", &format!("\"x\", {tag}"))], vec![]).await.is(304);
        assert!(not_modified.bytes.is_empty());
        world.admin.send(Method::GET, &one, &[("if-none-match", "\"x\"")], vec![]).await.expect(200);
        let patch = |name: &str, token: &serde_json::Value| json!({ "firstName": name, "concurrencyToken": token }).to_string().into_bytes();
        let stale = world.admin.send(Method::PATCH, &one, &[JSON, ("if-match", "\"x\"")], patch("A", &user["concurrencyToken"])).await;
        stale.problem(412, "precondition-failed");
        let changed = world.admin.send(Method::PATCH, &one, &[JSON, ("if-match", &tag)], patch("A", &user["concurrencyToken"])).await.is(202);
        let token = changed.json()["concurrencyToken"].clone();
        let quoted = format!("\"{}\"", token.as_str().unwrap());
        world.admin.send(Method::PATCH, &one, &[JSON, ("if-match", &quoted)], patch("B", &token)).await.expect(202);
        world.admin.send(Method::DELETE, &one, &[("if-match", &tag)], vec![]).await.problem(412, "precondition-failed");
        world.admin.send(Method::DELETE, &one, &[("if-match", "*")], vec![]).await.expect(204);
        // an ETag is of the representation: a membership changes it, though not the token
        let group = world.group("g").await;
        let read = world.admin.get(&world.path(&format!("/Group/{}", id(&group)))).await.is(200);
        let before = read.header("etag").unwrap().to_owned();
        let eve = world.user("eve").await;
        let users = world.path(&format!("/Group/{}/users", id(&group)));
        let after = world.admin.put(&users, json!({ "relatedIds": [eve["id"]] })).await.is(202);
        assert_ne!(after.header("etag"), Some(before.as_str()));
        assert_eq!(after.json()["concurrencyToken"], group["concurrencyToken"]);
    }

    async fn idempotency_keys_give_the_first_answer_again(world: World) {
        let users = world.path("/User");
        let body = |name: &str| json!({ "loginName": name }).to_string().into_bytes();
        let key = |key: &'static str| [JSON, ("idempotency-key", key)];
        let first = world.admin.send(Method::POST, &users, &key("k1"), body("ada")).await.is(201);
        let again = world.admin.send(Method::POST, &users, &key("k1"), body("ada")).await.is(201);
        assert_eq!(again.bytes, first.bytes);
        assert_eq!(again.header("etag"), first.header("etag"));
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        world.admin.send(Method::POST, &users, &key("k1"), body("bob")).await.problem(422, "idempotency-key-reused");
        // a refusal is an answer too
        let refused = world.admin.send(Method::POST, &users, &key("k2"), body("ada")).await;
        let refused_bytes = refused.bytes.clone();
        refused.problem(409, "conflict");
        world.admin.delete(&world.path(&format!("/User/{}", id(&first.json())))).await.expect(204);
        assert_eq!(world.admin.send(Method::POST, &users, &key("k2"), body("ada")).await.bytes, refused_bytes);
        // the key is the caller's own
        let other = world.client("other", &[("SystemAdmin", None, None)]).await;
        other.send(Method::POST, &users, &key("k1"), body("eve")).await.expect(201);
        world.admin.send(Method::POST, &users, &[JSON, ("idempotency-key", &"k".repeat(256))], body("x")).await.problem(400, "invalid-request");
        let group = world.group("g").await;
        let path = world.path(&format!("/Group/{}/users", id(&group)));
        let related = json!({ "relatedIds": [] }).to_string().into_bytes();
        let first = world.admin.send(Method::POST, &path, &key("k3"), related.clone()).await.is(202);
        assert_eq!(world.admin.send(Method::POST, &path, &key("k3"), related).await.is(202).bytes, first.bytes);
    }

    async fn an_idempotency_key_is_claimed_with_the_rights_of_now(world: World) {
        world.user("ada").await;
        // every process has to look up rights again
        world.set_option("ClaimIssuer", "elsewhere").await;
        let headers = [("content-type", "application/json"), ("idempotency-key", "once")];
        let body = json!({ "loginName": "bob" }).to_string().into_bytes();
        world.admin.send(http::Method::POST, &world.path("/User"), &headers, body).await.expect(201);
    }

    async fn parallel_requests_with_one_key_do_it_once(world: World) {
        let sends = (0..12).map(|_| {
            let (admin, users) = (world.admin.clone(), world.path("/User"));
            chancery_testkit::spawn(async move {
                let body = json!({ "loginName": "ada" }).to_string().into_bytes();
                admin.send(Method::POST, &users, &[JSON, ("idempotency-key", "one")], body).await
            })
        });
        let mut created = Vec::new();
        for send in sends.collect::<Vec<_>>() {
            let answer = send.await.unwrap();
            match answer.status.as_u16() {
                201 => created.push(answer.bytes),
                // the first was still in progress
                409 => assert!(answer.json()["detail"].as_str().unwrap().contains("still")),
                other => panic!("{other}"),
            }
        }
        assert!(!created.is_empty());
        assert!(created.iter().all(|bytes| *bytes == created[0]));
        assert_eq!(world.admin.get(&world.path("/User")).await.is(200).json().as_array().unwrap().len(), 1);
    }

    async fn a_dry_run_answers_and_changes_nothing(world: World) {
        let user = world.user("ada").await;
        let group = world.group("g").await;
        let before = world.audit(1).await;
        let users = world.path("/User?dryRun=true");
        let tried = world.admin.post(&users, json!({ "loginName": "bob" })).await.is(201).json();
        assert_eq!(tried["loginName"], "bob");
        world.admin.post(&users, json!({ "loginName": "ada" })).await.problem(409, "conflict");
        let one = world.path(&format!("/User/{}", id(&user)));
        let patch = json!({ "firstName": "A", "concurrencyToken": user["concurrencyToken"] });
        assert_eq!(world.admin.patch(&format!("{one}?dryRun=true"), patch).await.is(202).json()["firstName"], "A");
        world.admin.delete(&format!("{one}?dryRun=true")).await.expect(204);
        let members = world.path(&format!("/Group/{}/users?dryRun=true", id(&group)));
        let answer = world.admin.put(&members, json!({ "relatedIds": [user["id"]] })).await.is(202).json();
        assert_eq!(each(&answer["memberUsers"], "loginName"), ["ada"]);
        world.admin.post(&world.path("/User/batch?dryRun=true"), json!([{ "loginName": "x" }])).await.expect(200);
        assert_eq!(world.admin.get(&world.path("/User")).await.is(200).json(), json!([user]));
        assert_eq!(world.admin.get(&world.path("/Group")).await.is(200).json(), json!([group]));
        assert_eq!(world.audit(1).await, before);
        world.admin.post(&world.path("/User?dryRun=perhaps"), json!({ "loginName": "b" })).await.problem(400, "invalid-request");
        world.admin.get(&format!("{one}?dryRun=true")).await.problem(400, "invalid-request");
    }

    async fn problems_for_paths_methods_and_media_types(world: World) {
        for path in ["/nothing", "/api/userstore/v2/default/administration/Nothing", "/api/userstore/v2/default/administration/user"] {
            world.admin.get(path).await.problem(404, "no-such-route");
        }
        let users = world.path("/User");
        let answer = world.admin.put(&users, json!({})).await;
        assert_eq!(answer.header("allow"), Some("GET, POST, HEAD"));
        answer.problem(405, "method-not-allowed");
        for method in [Method::OPTIONS, Method::TRACE] {
            world.admin.send(method, &users, &[], vec![]).await.expect(405);
        }
        let head = world.admin.send(Method::HEAD, &users, &[], vec![]).await.is(200);
        assert!(head.bytes.is_empty() && head.header("content-length") == Some("2"));
        world.admin.send(Method::POST, &users, &[("content-type", "text/plain")], b"{}".to_vec()).await.problem(415, "unsupported-media-type");
        world.admin.send(Method::POST, &users, &[], b"{}".to_vec()).await.problem(415, "unsupported-media-type");
        world.admin.send(Method::GET, &users, &[("accept", "text/html")], vec![]).await.problem(406, "not-acceptable");
        let trace = ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let problem = world.admin.send(Method::GET, "/nothing", &[trace], vec![]).await.problem(404, "no-such-route");
        assert_eq!(problem["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(problem["instance"], "/nothing");
    }

    async fn problems_look_as_they_did(world: World) {
        let user = world.user("ada").await;
        let users = world.path("/User");
        let body = json!({ "loginName": "", "emailAddress": "x", "locale": 7, "nmae": "a" });
        let invalid = world.admin.post(&users, body).await.json();
        let taken = world.admin.post(&users, json!({ "loginName": "ada" })).await.json();
        let batch = json!([{ "loginName": "b" }, { "loginName": "ADA" }, {}]);
        let batch = world.admin.post(&format!("{users}/batch"), batch).await.json();
        let patch = json!({ "concurrencyToken": "old" });
        let mut stale = world.admin.patch(&format!("{users}/{}", id(&user)), patch).await.json();
        stale["instance"] = json!("one");
        stale["currentConcurrencyToken"] = json!("new");
        let nowhere = world.admin.get("/nowhere").await.json();
        let anonymous = world.anonymous.get(&users).await.json();
        let problems = json!([invalid, taken, batch, stale, nowhere, anonymous]);
        insta::assert_json_snapshot!("problems", problems, { "[].traceId" => "a trace id" });
    }

    async fn a_write_is_read_at_once(world: World) {
        for number in 0..20 {
            let name = format!("u{number}");
            let user = world.user(&name).await;
            let rows = world.admin.get(&world.path(&format!("/User?filter=loginName%20eq%20%22{name}%22"))).await.is(200).json();
            assert_eq!(each(&rows, "id"), [id(&user)]);
        }
    }
}
