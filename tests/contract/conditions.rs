//! Conditions on items, preferences about answers, and repetitions.

use chancery_record::Value as Bound;
use chancery_testkit::{Answer, Client, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use crate::{each, id, run_job, signing::texts};

const JSON: (&str, &str) = ("content-type", "application/json");
const MINIMAL: (&str, &str) = ("prefer", "return=minimal");

async fn send(client: &Client, method: Method, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let headers: Vec<(&str, &str)> = headers.iter().copied().chain([JSON]).collect();
    client.send(method, path, &headers, body.to_string().into_bytes()).await
}

async fn get(client: &Client, path: &str, headers: &[(&str, &str)]) -> Answer {
    client.send(Method::GET, path, headers, Vec::new()).await
}

/// The answer to a write with `return=minimal`.
#[track_caller]
fn minimal(answer: Answer, status: u16) -> Answer {
    let answer = answer.is(status);
    assert!(answer.bytes.is_empty() && answer.header("content-type").is_none(), "{answer:?}");
    assert_eq!(answer.header("preference-applied"), Some("return=minimal"));
    answer
}

on_both_engines! {
    /// Section 15: `If-Match` counts on every method with an item behind it, reading included (412), and is
    /// 400 on a create or batch. The answer of every single resource has a strong `ETag`.
    async fn if_match_counts_wherever_there_is_an_item(world: World) {
        let user = world.user("ada").await;
        let option = world.all("Option").await[0].clone();
        let entry = world.audit(1).await[0].clone();
        let customer = world.all("Customer").await[0].clone();
        for path in [
            world.path(&format!("/User/{}", id(&user))),
            world.path("/User/loginname/ada"),
            world.path(&format!("/CustomAuditTrail/{}", entry["id"])),
            format!("/api/management/v2/Option/{}", id(&option)),
            format!("/api/management/v2/Customer/{}", id(&customer)),
            format!("/api/userstore/v1/default/administration/User/{}", id(&user)),
        ] {
            let read = get(&world.admin, &path, &[]).await.is(200);
            let tag = read.header("etag").unwrap_or_else(|| panic!("{path} has no tag")).to_owned();
            assert!(tag.starts_with('"'), "{tag} is strong");
            let stale = get(&world.admin, &path, &[("if-match", "\"x\"")]).await;
            assert_eq!(stale.header("etag"), Some(tag.as_str()));
            stale.problem(412, "precondition-failed");
            get(&world.admin, &path, &[("if-match", "\"x\""), ("if-match", &tag)]).await.expect(200);
            get(&world.admin, &path, &[("if-match", "*")]).await.expect(200);
            get(&world.admin, &path, &[("if-match", &tag), ("if-none-match", &tag)]).await.expect(304);
            world.admin.send(Method::HEAD, &path, &[("if-match", "\"x\"")], vec![]).await.expect(412);
            if let Some(token) = read.json()["concurrencyToken"].as_str() {
                get(&world.admin, &path, &[("if-match", &format!("\"{token}\""))]).await.expect(200);
            }
        }
        let any = [("if-match", "*")];
        let users = world.path("/User");
        send(&world.admin, Method::POST, &users, &any, &json!({ "loginName": "b" })).await.problem(400, "invalid-request");
        let batch = world.path("/User/batch");
        for (method, body) in [(Method::POST, json!([])), (Method::PUT, json!([])), (Method::DELETE, json!([]))] {
            send(&world.admin, method, &batch, &any, &body).await.problem(400, "invalid-request");
        }
        // a step of a workflow has an item behind it, too
        let recoveries = world.path("/passkey-security/recovery-transactions");
        let new = json!({ "userId": id(&user), "method": "Call", "reason": "lost" });
        let recovery = world.admin.post(&recoveries, new).await.is(201).json();
        let cancel = format!("{recoveries}/{}/cancellation", id(&recovery));
        world.admin.send(Method::POST, &cancel, &[("if-match", "\"x\"")], vec![]).await.problem(412, "precondition-failed");
        world.admin.send(Method::POST, &cancel, &any, vec![]).await.expect(200);
    }

    /// Section 15: a streamed body has a strong `ETag`, too, computed from the versions of its content.
    async fn a_streamed_answer_has_an_etag(world: World) {
        let users: Vec<Value> = (0..9000).map(|number| json!({ "loginName": format!("u{number:05}") })).collect();
        let users = world.admin.post(&world.path("/User/batch"), json!(users)).await.is(200).json();
        let group = world.group("large").await;
        let members = world.path(&format!("/Group/{}/users", id(&group)));
        let put = world.admin.put(&members, json!({ "relatedIds": each(&users, "id") })).await.is(202);
        let one = world.path(&format!("/Group/{}", id(&group)));
        let read = get(&world.admin, &one, &[]).await.is(200);
        let tag = read.header("etag").unwrap().to_owned();
        assert_eq!(put.header("etag"), Some(tag.as_str()), "of the write and of the read");
        assert_eq!(read.json()["memberUsers"].as_array().unwrap().len(), 9000);
        assert!(get(&world.admin, &one, &[("if-none-match", &tag)]).await.is(304).bytes.is_empty());
        get(&world.admin, &one, &[("if-match", "\"x\"")]).await.problem(412, "precondition-failed");
        get(&world.admin, &one, &[("if-match", &tag)]).await.expect(200);
        let first = world.path(&format!("/User/{}", id(&users[0])));
        let rename = json!({ "firstName": "Ada", "concurrencyToken": users[0]["concurrencyToken"] });
        world.admin.patch(&first, rename).await.expect(202);
        let other = get(&world.admin, &one, &[("if-none-match", &tag)]).await.is(200).header("etag").unwrap().to_owned();
        assert_ne!(other, tag, "a member was renamed");
        let patch = json!({ "name": "larger", "concurrencyToken": group["concurrencyToken"] });
        send(&world.admin, Method::PATCH, &one, &[("if-match", &tag)], &patch).await.problem(412, "precondition-failed");
        send(&world.admin, Method::PATCH, &one, &[("if-match", &other)], &patch).await.expect(202);
    }

    /// Section 15: `Prefer: return=minimal` on any write: the same status, no body, `Preference-Applied`, `ETag`
    /// and, for creations, `Location`.
    async fn an_answer_can_be_minimal(world: World) {
        let users = world.path("/User");
        let created = minimal(send(&world.admin, Method::POST, &users, &[MINIMAL], &json!({ "loginName": "ada" })).await, 201);
        let one = created.header("location").unwrap().to_owned();
        let tag = created.header("etag").unwrap().to_owned();
        let user = world.admin.get(&one).await.is(200).json();
        assert_eq!(user["loginName"], "ada");
        assert_eq!(tag, format!("\"{}\"", user["concurrencyToken"].as_str().unwrap()));
        let patch = json!({ "firstName": "Ada", "concurrencyToken": user["concurrencyToken"] });
        let headers = [("prefer", "respond-async, return=minimal"), ("if-match", tag.as_str())];
        let changed = minimal(send(&world.admin, Method::PATCH, &one, &headers, &patch).await, 202);
        assert_ne!(changed.header("etag"), Some(tag.as_str()));
        assert!(changed.header("location").is_none());
        let mut user = world.admin.get(&one).await.is(200).json();
        user["firstName"] = json!("Eve");
        minimal(send(&world.admin, Method::PUT, &world.path("/User/batch"), &[MINIMAL], &json!([user])).await, 200);
        let more = json!([{ "loginName": "b" }, { "loginName": "c" }]);
        minimal(send(&world.admin, Method::POST, &world.path("/User/batch"), &[MINIMAL], &more).await, 200);
        minimal(world.admin.send(Method::POST, &format!("{one}/lockout/reset"), &[MINIMAL], vec![]).await, 200);
        // a refused request has a problem body
        send(&world.admin, Method::POST, &users, &[MINIMAL], &json!({ "loginName": "ada" })).await.problem(409, "conflict");
        // links alone are written, and read again at their item
        let group = minimal(send(&world.admin, Method::POST, &world.path("/Group"), &[MINIMAL], &json!({ "name": "g" })).await, 201);
        let group = group.header("location").unwrap().to_owned();
        for (method, count) in [(Method::POST, 1), (Method::DELETE, 0), (Method::PUT, 1)] {
            let links = json!({ "relatedIds": [user["id"]] });
            minimal(send(&world.admin, method, &format!("{group}/users"), &[MINIMAL], &links).await, 202);
            let read = world.admin.get(&group).await.is(200).json();
            assert_eq!(read["memberUsers"].as_array().unwrap().len(), count);
        }
        // entries of a key, and answers that show the owner
        let entries = format!("{group}/GroupMetadata");
        let created = minimal(send(&world.admin, Method::POST, &entries, &[MINIMAL], &json!({ "key": "a b/\u{fc}" })).await, 200);
        let read = world.admin.get(created.header("location").unwrap()).await.is(200).json();
        assert_eq!(read["key"], "a b/\u{fc}");
        let customers = "/api/management/v2/Customer";
        let created = minimal(send(&world.admin, Method::POST, customers, &[MINIMAL], &json!({ "name": "c" })).await, 201);
        world.admin.get(created.header("location").unwrap()).await.expect(200);
        let old = format!("/api/userstore/v1/default/administration/User/{}", id(&user));
        minimal(send(&world.admin, Method::PUT, &old, &[MINIMAL], &json!({ "loginName": "ada" })).await, 202);
        // an explicitly requested body is answered as usual
        let whole = send(&world.admin, Method::POST, customers, &[("prefer", "return=representation")], &json!({ "name": "d" })).await.is(201);
        assert_eq!(whole.json()["name"], "d");
        assert!(whole.header("preference-applied").is_none());
    }

    /// Section 15: a repetition has the first answer's headers, `Cache-Control` included.
    async fn a_repetition_has_the_first_headers(world: World) {
        let user = world.user("ada").await;
        let passes = world.path("/passkey-security/temporary-access-passes");
        let body = json!({ "userId": id(&user) });
        let key = [("idempotency-key", "pass")];
        let first = send(&world.admin, Method::POST, &passes, &key, &body).await.is(201);
        let again = send(&world.admin, Method::POST, &passes, &key, &body).await.is(201);
        assert_eq!((again.header("cache-control"), first.header("cache-control")), (Some("no-store"), Some("no-store")));
        assert_eq!(again.bytes, first.bytes);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        let key = [("idempotency-key", "user"), MINIMAL];
        let first = minimal(send(&world.admin, Method::POST, &world.path("/User"), &key, &json!({ "loginName": "b" })).await, 201);
        let again = minimal(send(&world.admin, Method::POST, &world.path("/User"), &key, &json!({ "loginName": "b" })).await, 201);
        for name in ["etag", "location", "preference-applied"] {
            assert_eq!(again.header(name), first.header(name), "{name}");
        }
    }

    /// Section 15: a stored answer about a person is sealed under the person's key: after an erasure the
    /// repetition is 410, and does nothing again.
    async fn a_repetition_after_an_erasure_is_gone(world: World) {
        let users = world.path("/User");
        let key = |key: &'static str| [("idempotency-key", key)];
        let (one, batch) = (json!({ "loginName": "ada" }), json!([{ "loginName": "bob" }, { "loginName": "eve" }]));
        let ada = send(&world.admin, Method::POST, &users, &key("one"), &one).await.is(201).json();
        let many = world.path("/User/batch");
        let both = send(&world.admin, Method::POST, &many, &key("many"), &batch).await.is(200).json();
        let entries = world.path(&format!("/user/{}/UserProfile", id(&ada)));
        let entry = json!({ "key": "k", "value": "v" });
        send(&world.admin, Method::POST, &entries, &key("entry"), &entry).await.expect(202);
        assert_eq!(send(&world.admin, Method::POST, &many, &key("many"), &batch).await.is(200).json(), both);
        send(&world.admin, Method::POST, &entries, &key("entry"), &entry).await.expect(202);
        // an answer about many persons is erased with any of them
        let group = world.path(&format!("/Group/{}/users", id(&world.group("g").await)));
        let links = json!({ "relatedIds": [both[1]["id"]] });
        let linked = send(&world.admin, Method::POST, &group, &key("links"), &links).await.is(202).bytes;
        assert_eq!(send(&world.admin, Method::POST, &group, &key("links"), &links).await.is(202).bytes, linked);
        // nor is an answer stored in the clear where nothing changed
        let (ada_s, in_g) = (world.path(&format!("/User/{}", id(&ada))), json!({ "relatedIds": [id(&world.group("h").await)] }));
        let unchanged = [
            ("again", format!("{ada_s}/groups"), in_g.clone(), 202),
            ("reset", format!("{ada_s}/lockout/reset"), json!({}), 200),
            ("state", format!("{ada_s}/state"), json!({ "isUserActive": true }), 200),
        ];
        world.admin.post(&unchanged[0].1, in_g).await.expect(202);
        let before = texts(&world, "SELECT CAST(count(*) AS TEXT) FROM audit_entry").await;
        for (name, path, body, status) in &unchanged {
            let first = send(&world.admin, Method::POST, path, &key(name), body).await.is(*status);
            assert_eq!(send(&world.admin, Method::POST, path, &key(name), body).await.is(*status).bytes, first.bytes);
        }
        assert_eq!(texts(&world, "SELECT CAST(count(*) AS TEXT) FROM audit_entry").await, before, "nothing changed");
        // one in quarantine is not erased
        world.admin.delete(&world.path(&format!("/User/{}", id(&ada)))).await.expect(204);
        assert_eq!(send(&world.admin, Method::POST, &users, &key("one"), &one).await.is(201).json(), ada);
        for user in [&ada, &both[1]] {
            world.admin.post(&world.path(&format!("/User/{}/erase", id(user))), json!({})).await.expect(204);
        }
        send(&world.admin, Method::POST, &users, &key("one"), &one).await.problem(410, "erased");
        send(&world.admin, Method::POST, &many, &key("many"), &batch).await.problem(410, "erased");
        send(&world.admin, Method::POST, &group, &key("links"), &links).await.problem(410, "erased");
        send(&world.admin, Method::POST, &entries, &key("entry"), &entry).await.problem(410, "erased");
        for (name, path, body, _) in &unchanged {
            send(&world.admin, Method::POST, path, &key(name), body).await.problem(410, "erased");
        }
        // an answer of later is repeated
        let later = json!({ "relatedIds": [both[0]["id"]] });
        send(&world.admin, Method::POST, &group, &key("later"), &later).await.expect(202);
        run_job(&world, "prune").await;
        assert_eq!(texts(&world, "SELECT CAST(count(*) AS TEXT) FROM idempotent_erasure").await, ["0"]);
        let again = send(&world.admin, Method::POST, &group, &key("later"), &later).await.is(202);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        send(&world.admin, Method::POST, &group, &key("links"), &links).await.problem(410, "erased");
        assert_eq!(world.admin.get(&users).await.is(200).json().as_array().unwrap().len(), 1, "bob");
    }

    /// Any number of answers may be stored: an erasure writes none of them, and a job blanks them in pieces.
    async fn an_erasure_leaves_stored_answers_to_a_job(world: World) {
        let group = world.path(&format!("/Group/{}/users", id(&world.group("g").await)));
        let ada = world.user("ada").await;
        let links = json!({ "relatedIds": [id(&ada)] });
        let key = [("idempotency-key", "links")];
        send(&world.admin, Method::POST, &group, &key, &links).await.expect(202);
        let copy = "INSERT INTO idempotent_answer (caller, key_digest, request_digest, attempt, started_on, answer, persons, shows_of) \
            SELECT caller, ?1, request_digest, attempt, started_on, answer, persons, shows_of FROM idempotent_answer \
            WHERE length(key_digest) > 4 ORDER BY caller DESC, key_digest DESC LIMIT 1";
        let one = |number: u32| (copy, vec![Bound::Bytes(number.to_be_bytes().to_vec())]);
        world.sql((0..1_500).map(one).collect()).await;
        let stored = async || {
            let text = "SELECT CAST(count(*) AS TEXT) FROM idempotent_answer WHERE shows_of IS NOT NULL AND length(answer) > 0";
            texts(&world, text).await
        };
        // the clock of the process that stored them was ahead
        world.sql(vec![("UPDATE idempotent_answer SET started_on = started_on + ?1", vec![Bound::Int(30_000)])]).await;
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&ada))), json!({})).await.expect(204);
        assert_eq!(stored().await, ["1501"]);
        send(&world.admin, Method::POST, &group, &key, &links).await.problem(410, "erased");
        run_job(&world, "prune").await;
        assert_eq!(stored().await, ["0"]);
        send(&world.admin, Method::POST, &group, &key, &links).await.problem(410, "erased");
    }

    /// Section 15: an answer does not count as erased where the key of its person cannot be opened.
    async fn a_key_that_cannot_be_opened_is_no_erasure(world: World) {
        let (users, body) = (world.path("/User"), json!({ "loginName": "ada" }));
        let repeat = async || send(&world.admin, Method::POST, &users, &[("idempotency-key", "k")], &body).await;
        repeat().await.expect(201);
        world.sql(vec![("UPDATE user_account SET audit_key = ?1", vec![Bound::Bytes(vec![1; 64])])]).await;
        repeat().await.problem(500, "internal");
    }

    /// B6: a key whose first request died is free again after 10 seconds, until then 409 with `Retry-After`;
    /// the key of a running request is held.
    async fn the_key_of_a_dead_request_is_released_soon(world: World) {
        let path = world.path(&format!("/Group/{}/users", id(&world.group("g").await)));
        let body = json!({ "relatedIds": [] });
        let repeat = async || send(&world.admin, Method::POST, &path, &[("idempotency-key", "k")], &body).await;
        repeat().await.expect(202);
        // as if the process had died before the answer
        let age = async |milliseconds: i64| {
            let started = crate::signing::now() - milliseconds;
            world.sql(vec![("UPDATE idempotent_answer SET answer = NULL, started_on = ?1", vec![Bound::Int(started)])]).await;
        };
        age(4000).await;
        let running = repeat().await;
        let seconds: u32 = running.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=7).contains(&seconds), "{seconds}");
        running.problem(409, "conflict");
        age(10_001).await;
        assert!(repeat().await.is(202).header("idempotency-replayed").is_none());
        age(600_000).await;
        let now = crate::signing::now();
        let hold = "INSERT INTO idempotent_claim (attempt, held_on) SELECT attempt, ?1 FROM idempotent_answer";
        world.sql(vec![(hold, vec![Bound::Int(now)])]).await;
        repeat().await.problem(409, "conflict");
        world.sql(vec![("UPDATE idempotent_claim SET held_on = ?1", vec![Bound::Int(now - 20_000)])]).await;
        repeat().await.expect(202);
        // the key of an operation that continues in chunks is renewed, at any time of its last renewal
        age(0).await;
        world.sql(vec![(hold, vec![Bound::Int(now - 600_000)])]).await;
        repeat().await.problem(409, "conflict");
        assert_eq!(texts(&world, "SELECT CAST(count(*) AS TEXT) FROM idempotent_answer").await, ["1"]);
    }

    /// A refusal changes nothing and is unlimited: of a long one only the beginning is stored, and of each caller only so many.
    async fn stored_refusals_are_bounded(world: World) {
        let users = world.path("/User");
        let wrong: Value = (0..150).map(|number| (format!("k{number}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
        let repeat = async |key: &str| send(&world.admin, Method::POST, &users, &[("idempotency-key", key)], &wrong).await;
        let first = repeat("wrong").await.problem(400, "invalid-request");
        let again = repeat("wrong").await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        let again = again.problem(400, "invalid-request");
        let all = |problem: &Value| problem["errors"].as_array().unwrap().len() as u64 + problem["moreErrors"].as_u64().unwrap();
        assert!(all(&first) > 150 && all(&first) == all(&again), "{again}");
        assert_eq!(again["errors"][0], first["errors"][0]);
        let size = "SELECT CAST(length(answer) AS TEXT) FROM idempotent_answer";
        let size: usize = texts(&world, size).await[0].parse().unwrap();
        assert!(size < 1_200, "{size}");
        // as if the caller had been refused that often
        let fill = "INSERT INTO idempotent_answer (caller, key_digest, request_digest, attempt, started_on, answer, persons, refused_on) \
            SELECT caller, ?1, request_digest, attempt, started_on, answer, persons, refused_on FROM idempotent_answer \
            WHERE length(key_digest) > 4 ORDER BY caller DESC, key_digest DESC LIMIT 1";
        let one = |number: u32| (fill, vec![Bound::Bytes(number.to_be_bytes().to_vec())]);
        world.sql((0..9_998).map(one).collect()).await;
        repeat("one more").await.expect(400);
        let full = repeat("too many").await;
        let seconds: u32 = full.header("retry-after").unwrap().parse().unwrap();
        assert!((86_000..=86_400).contains(&seconds), "{seconds}");
        full.problem(429, "too-many-requests");
        // stored answers are repeated, other callers are unaffected, and requests without a key work as before
        assert_eq!(repeat("wrong").await.is(400).header("idempotency-replayed"), Some("true"));
        world.admin.post(&users, wrong.clone()).await.expect(400);
        let other = world.client("other", &[("SystemAdmin", None, None)]).await;
        send(&other, Method::POST, &users, &[("idempotency-key", "k")], &json!({ "loginName": "ada" })).await.expect(201);
    }

    /// Section 15: a request body with `Content-Encoding` is 415 with `Accept-Encoding`.
    async fn an_encoded_body_is_refused(world: World) {
        let body = json!({ "loginName": "ada" });
        let users = world.path("/User");
        let answer = send(&world.admin, Method::POST, &users, &[("content-encoding", "gzip")], &body).await;
        assert_eq!(answer.header("accept-encoding"), Some("identity"));
        answer.problem(415, "unsupported-media-type");
        send(&world.admin, Method::POST, &users, &[("content-encoding", "identity")], &body).await.expect(201);
    }
}
