//! Deprecation headers of version 1; its special bodies and its GET with side effects.

use std::path::Path;

use chancery_testkit::{Answer, on_both_engines};
use http::Method;
use serde_json::json;

use super::{BASE, UNKNOWN_ID, at};
use crate::{
    id,
    signing::{FIRST, Person, SECOND, set_mail_server, wrong},
};

fn with_sunset(_: &Path) -> Vec<String> {
    ["--version-1-sunset", "2027-01-01T00:00:00Z"].map(str::to_owned).to_vec()
}

fn switched_off(_: &Path) -> Vec<String> {
    ["--version-1", "off"].map(str::to_owned).to_vec()
}

/// Asserts the `Deprecation` header and the link to the successor.
#[track_caller]
fn assert_deprecated(answer: &Answer, successor: &str) {
    assert_eq!(answer.header("deprecation"), Some("@1767225600"), "{answer:?}");
    let expected = format!("<{successor}>; rel=\"successor-version\"");
    let links: Vec<&str> = answer.headers.get_all("link").iter().map(|link| link.to_str().unwrap()).collect();
    assert!(links.contains(&expected.as_str()), "{expected} in {links:?}");
}

on_both_engines! {
    async fn every_response_has_a_deprecation_header(world: World) {
        let ada = world.user("ada").await;
        let (old, new) = (at(&format!("/User/{}", id(&ada))), world.path(&format!("/User/{}", id(&ada))));
        let (all, now) = (at("/User"), world.path("/User"));
        let reader = world.client("reader", &[("AuditTrailReader", None, None)]).await;
        let (invalid_id, invalid_id_successor) = (format!("{all}/%FF"), format!("{now}/%FF"));
        let answers = [
            (world.admin.get(&invalid_id).await.is(400), &invalid_id_successor),
            (reader.get(&old).await.is(403), &new),
            (world.admin.send(Method::DELETE, &all, &[], Vec::new()).await.is(405), &now),
            (world.admin.send(Method::PUT, &old, &[("content-type", "text/plain")], b"x".to_vec()).await.is(415), &new),
            (world.admin.post(&all, json!({ "loginName": "ada" })).await.is(409), &now),
            (world.admin.get(&old).await.is(200), &new),
            (world.admin.get(&all).await.is(200), &now),
            (world.admin.get(&format!("{all}?count=1")).await.is(200), &now),
            (world.anonymous.get(&old).await.is(401), &new),
            (world.admin.put(&old, json!({ "loginName": "ada" })).await.is(202), &new),
            (world.admin.put(&old, json!({ "loginName": "" })).await.is(400), &new),
            (world.admin.patch(&old, json!([])).await.is(202), &new),
            (world.admin.post(&format!("{all}/createorupdate"), json!({ "loginName": "b" })).await.is(201), &now),
            (world.admin.get(&format!("{all}?nothing=1")).await.is(400), &now),
            (world.admin.delete(&old).await.is(204), &new),
            (world.admin.get(&old).await.is(404), &new),
        ];
        for (answer, successor) in &answers {
            assert_deprecated(answer, successor);
            assert!(answer.header("sunset").is_none());
        }
        let gone = world.admin.get(&format!("{BASE}/Customer/{UNKNOWN_ID}")).await.is(404);
        assert_deprecated(&gone, &format!("/api/management/v2/Customer/{UNKNOWN_ID}"));
        for answer in [world.admin.get(&now).await, world.admin.get(&new).await, world.anonymous.get(&now).await] {
            assert!(answer.header("deprecation").is_none() && answer.header("link").is_none(), "{answer:?}");
        }
        // a page links to the next one as well
        world.user("eve").await;
        let page = world.admin.get(&format!("{all}?count=1")).await.is(200);
        assert_deprecated(&page, &now);
        assert!(page.headers.get_all("link").iter().any(|link| link.to_str().unwrap().contains("rel=\"next\"")));
    }

    async fn deprecated_calls_are_counted(world: World) {
        world.admin.get(&at("/User")).await.expect(200);
        world.admin.get(&at("/User")).await.expect(200);
        world.admin.get(&world.path("/User")).await.expect(200);
        let metrics = world.admin.get("/metrics").await.is(200);
        let text = String::from_utf8_lossy(&metrics.bytes);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("chancery_deprecated_calls_total{")).collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in ["service=\"userstore\"", "operation=\"GetUsers\"", "client=\"", "} 2"] {
            assert!(lines[0].contains(part), "{part} in {}", lines[0]);
        }
    }

    async fn synchronize_is_a_get_without_a_response_body(world: World) {
        world.user("ada").await;
        world.group("g").await;
        let reader = world.client("reader", &[("AuditTrailReader", None, None)]).await;
        for resource in ["User", "Group"] {
            let path = at(&format!("/{resource}/synchronize"));
            let mirrored = format!("Application{resource}");
            world.anonymous.get(&path).await.expect(401);
            reader.get(&path).await.problem(403, "forbidden");
            let head = world.admin.send(Method::HEAD, &path, &[], Vec::new()).await.is(405);
            assert_eq!(head.header("allow"), Some("GET"));
            assert_eq!(world.all(&mirrored).await, json!([]), "nobody was let in");
            let answer = world.admin.get(&path).await.is(200);
            assert!(answer.bytes.is_empty(), "{answer:?}");
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            assert_deprecated(&answer, &world.path(&format!("/{resource}/synchronize")));
            assert_eq!(world.all(&mirrored).await.as_array().unwrap().len(), 1);
        }
    }

    async fn password_operations_use_the_version_1_names(world: World) {
        let ada = Person::new(&world, json!({ "loginName": "ada", "emailAddress": "ada@example.com" })).await;
        let post = async |rest: &str, body| world.admin.post(&at(&format!("/User/{}/password/{rest}", ada.id)), body).await;
        let user = post("initial", json!({ "expiration": "2099-01-01T00:00:00Z", "password": FIRST, "more": 1 })).await.is(200).json();
        assert_eq!((&user["isInitialPassword"], &user["passwordExpiration"]), (&json!(true), &json!("2099-01-01T00:00:00.000Z")));
        assert!(user.get("concurrencyToken").is_none() && user.get("phoneNumber").is_none());
        assert!(ada.has(FIRST).await);
        assert_eq!(wrong(post("initial", json!({})).await), ["/password"]);
        assert_eq!(wrong(post("initial", json!({ "password": FIRST, "expiration": "soon" })).await), ["/expiration"]);

        let user = post("reset", json!({ "password": SECOND })).await.is(200).json();
        assert!(user.get("concurrencyToken").is_none() && user.get("userProfiles").is_some());
        assert!(ada.has(SECOND).await);
        for body in [json!({}), json!({ "newPassword": FIRST }), json!({ "password": "short" }), json!({ "password": null })] {
            let answer = post("reset", body.clone()).await;
            assert_eq!(wrong(answer), ["/password"], "{body}");
        }
        let user = post("change", json!({ "oldPassword": SECOND, "newPassword": FIRST, "more": 1 })).await.is(200).json();
        assert!(user.get("concurrencyToken").is_none());
        assert_eq!(wrong(post("change", json!({ "oldPassword": FIRST })).await), ["/newPassword"]);

        set_mail_server(&world.admin).await;
        let token = ada.token().await;
        assert_eq!(wrong(post("reset/response", json!({ "password": SECOND })).await), ["/token"]);
        assert_eq!(wrong(post("reset/response", json!({ "token": token })).await), ["/password"]);
        assert_eq!(wrong(post("reset/response", json!({ "token": token, "password": "short" })).await), ["/password"]);
        post("reset/response", json!({ "token": token, "password": SECOND })).await.expect(200);
        assert!(ada.has(SECOND).await);

        let public = "/api/userstore/v1/default/PublicAdmin/user/loginname/ada/password";
        let change = json!({ "oldPassword": SECOND, "newPassword": FIRST });
        assert!(world.anonymous.post(&format!("{public}/change"), change).await.is(200).bytes.is_empty());
        let token = ada.token().await;
        let redeem = json!({ "token": token, "password": SECOND });
        assert!(world.anonymous.post(&format!("{public}/reset/response"), redeem).await.is(200).bytes.is_empty());
        assert!(ada.has(SECOND).await);
    }

    async fn an_empty_state_changes_nothing(world: World) {
        let ada = Person::named(&world, "ada").await;
        let path = at(&format!("/User/{}/state", ada.id));
        let before = (ada.read().await, ada.entries().await.len());
        let seen = world.admin.get(&at(&format!("/User/{}", ada.id))).await.is(200).json();
        assert_eq!(world.admin.send(Method::POST, &path, &[], Vec::new()).await.is(200).json(), seen);
        for body in [json!({}), json!({ "isUserLocked": null }), json!({ "more": 1 })] {
            assert_eq!(world.admin.post(&path, body).await.is(200).json(), seen);
        }
        assert_eq!((ada.read().await, ada.entries().await.len()), before);
        let locked = world.admin.post(&path, json!({ "isUserLocked": true, "more": 1 })).await.is(200).json();
        assert_eq!(locked["isUserLocked"], true);
        assert!(locked.get("concurrencyToken").is_none());
        assert_eq!(wrong(world.admin.post(&path, json!({ "isUserLocked": "yes" })).await), ["/isUserLocked"]);
        for body in [json!([null, null]), json!("x"), json!(false), json!(7)] {
            assert_eq!(wrong(world.admin.post(&path, body).await), [""]);
        }
        let unknown_user = at(&format!("/User/{UNKNOWN_ID}/state"));
        world.admin.send(Method::POST, &unknown_user, &[], Vec::new()).await.problem(404, "not-found");
    }

    async fn openapi_documents_are_served(world: World) {
        for name in ["userstore-v1", "management-v1"] {
            let document = world.anonymous.get(&format!("/openapi/{name}.json")).await.is(200).json();
            let paths = document["paths"].as_object().unwrap();
            let operations = paths.values().flat_map(|path| path.as_object().unwrap().values());
            let documented = operations.filter(|operation| operation.get("responses").is_some());
            assert!(documented.clone().count() > 60 && documented.clone().all(|operation| operation["deprecated"] == true), "{name}");
        }
    }
}

on_both_engines! {
    [with_sunset]
    async fn the_sunset_header_is_sent_when_configured(world: World) {
        let end = Some("Fri, 01 Jan 2027 00:00:00 GMT");
        let answers = [
            world.admin.get(&at("/User")).await.is(200),
            world.anonymous.get(&at("/User")).await.is(401),
            world.admin.get(&at(&format!("/Group/{UNKNOWN_ID}"))).await.is(404),
            world.admin.get(&format!("{BASE}/Customer")).await.is(200),
        ];
        for answer in &answers {
            assert_eq!((answer.header("sunset"), answer.header("deprecation")), (end, Some("@1767225600")));
        }
        assert!(world.admin.get(&world.path("/User")).await.is(200).header("sunset").is_none());
    }
}

on_both_engines! {
    [switched_off]
    async fn version_1_can_be_switched_off(world: World) {
        for path in [at("/User"), at("/Group/synchronize"), format!("{BASE}/Customer"), format!("{BASE}/IdpType/name/Google")] {
            let answer = world.admin.get(&path).await;
            assert!(answer.header("deprecation").is_none());
            answer.problem(404, "no-such-route");
        }
        for name in ["userstore-v1", "management-v1"] {
            world.anonymous.get(&format!("/openapi/{name}.json")).await.problem(404, "not-found");
        }
        world.admin.get(&world.path("/User")).await.expect(200);
    }
}
