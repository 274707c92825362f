//! `/Me`: people read and change their own user.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{at, error, operations, own};
use crate::id;
use crate::sign_in::administrator::{USER_STORE, console, token};

on_both_engines! {
    async fn a_person_reads_and_changes_the_own_user(world: World) {
        let home = console(&world).await;
        let (_, ann, _) = token(&world, &home, USER_STORE).await;
        let me = ann.get(&at("/Me")).await.is(200);
        let user_before = me.json();
        assert_eq!((&user_before["id"], &user_before["userName"]), (&home.user["id"], &json!("ann")));
        assert_eq!(me.header("etag"), user_before["meta"]["version"].as_str());
        assert!(user_before["meta"]["location"].as_str().unwrap().ends_with(&format!("/Users/{}", id(&home.user))));
        let patch = operations(&json!([
            { "op": "replace", "path": "name.familyName", "value": "King" },
            { "op": "add", "value": { "nickName": "Annie", "preferredLanguage": "de", "timezone": "Europe/Berlin" } },
        ]));
        let changed = ann.patch(&at("/Me"), patch).await.is(200).json();
        assert_eq!((&changed["name"]["familyName"], &changed["preferredLanguage"]), (&json!("King"), &json!("de")));
        let stale = [("if-match", user_before["meta"]["version"].as_str().unwrap()), ("content-type", "application/json")];
        let body = json!({ "userName": "ann" }).to_string().into_bytes();
        error(&ann.send(http::Method::PUT, &at("/Me"), &stale, body).await, 412);
        // own attributes that the body omits are cleared; all others stay
        let put = json!({ "userName": "eve", "active": false, "title": "Admiral", "nickName": "A", "emails": [] });
        let dry = ann.put(&at("/Me?dryRun=true"), put.clone()).await.is(200).json();
        assert_eq!(dry["nickName"], "A");
        let put = ann.put(&at("/Me"), put).await.is(200).json();
        assert_eq!((&put["userName"], &put["active"], &put["nickName"]), (&json!("ann"), &json!(true), &json!("A")));
        assert_eq!((put.get("title"), put.get("name"), &put["emails"]), (None, None, &user_before["emails"]));
        let entry = world.admin.get(&world.path("/CustomAuditTrail?sortOrder=descending&count=1")).await.is(200).json();
        let person = &world.all("ApplicationUser").await[0];
        assert_eq!((&entry[0]["area"], &entry[0]["user"]), (&json!("UserProfile"), &person["id"]));
    }

    async fn other_attributes_cannot_be_changed(world: World) {
        let home = console(&world).await;
        let (_, ann, _) = token(&world, &home, USER_STORE).await;
        for (operation, name) in [
            (json!({ "op": "replace", "path": "userName", "value": "eve" }), "userName"),
            (json!({ "op": "replace", "path": "active", "value": false }), "active"),
            (json!({ "op": "replace", "path": "emails[type eq \"work\"].value", "value": "e@example.com" }), "emails"),
            (json!({ "op": "add", "path": "password", "value": "four lively grey herons" }), "password"),
            (json!({ "op": "add", "path": "displayName", "value": "Admiral Ann" }), "displayName"),
            (json!({ "op": "add", "path": "roles", "value": [{ "value": "admin" }] }), "roles"),
            (json!({ "op": "add", "path": "externalId", "value": "x" }), "externalId"),
        ] {
            let (word, detail) = error(&ann.patch(&at("/Me"), operations(&json!([operation]))).await, 400);
            assert!(word == "mutability" && detail.contains(name), "{detail}");
        }
        let rejected = ann.delete(&at("/Me")).await;
        error(&rejected, 405);
        assert_eq!(rejected.header("allow"), Some("GET, PUT, PATCH"));
        // a person is no directory
        error(&ann.get(&at("/Users")).await, 403);
        // the error does not reveal which stores exist
        world.other_store("other").await;
        let not_found = error(&ann.get("/api/scim/v2/nobody/Me").await, 404);
        assert_eq!(error(&ann.get("/api/scim/v2/other/Me").await, 404), not_found);
    }

    async fn me_is_only_for_persons_of_the_store(world: World) {
        error(&own(&world).await.get(&at("/Me")).await, 501);
        error(&world.admin.get(&at("/Me")).await, 501);
        error(&world.anonymous.get(&at("/Me")).await, 401);
        let home = console(&world).await;
        let (_, ann, _) = token(&world, &home, USER_STORE).await;
        let (_, other_audience, _) = token(&world, &home, "").await;
        // a token that is not meant for user stores
        error(&other_audience.get(&at("/Me")).await, 401);
        ann.get(&at("/Me")).await.expect(200);
        let state = world.path(&format!("/User/{}/state", id(&home.user)));
        world.admin.post(&state, json!({ "isUserLocked": true })).await.expect(200);
        error(&ann.get(&at("/Me")).await, 401);
    }
}
