//! Group metadata and user profiles: entries under an owner, by key.

use chancery_testkit::on_both_engines;
use serde_json::json;

use crate::{each, id, pointers};

on_both_engines! {
    /// - Effect of `GroupMetadata.key`: The entry is read and changed under this key.
    /// - Effect of `GroupMetadata.value`: The entry has this value.
    async fn group_metadata(world: World) {
        let group = world.group("g").await;
        let all = world.path(&format!("/Group/{}/GroupMetadata", id(&group)));
        let entry = world.admin.post(&all, json!({ "key": "cost center", "value": "" })).await.is(200).json();
        assert_eq!((&entry["groupId"], &entry["value"]), (&group["id"], &json!("")));
        assert_eq!(entry["instanceId"], group["instanceId"]);
        let one = format!("{all}/cost%20center");
        assert_eq!(world.admin.get(&one).await.is(200).json(), entry);
        assert_eq!(pointers(&world.admin.post(&all, json!({ "key": "cost center", "value": "2" })).await.problem(409, "conflict")), ["/key"]);
        world.admin.post(&all, json!({ "key": "a/b", "value": "x", "groupId": group["id"] })).await.expect(200);
        world.admin.get(&format!("{all}/a%2Fb")).await.expect(200);
        world.admin.get(&format!("{all}/a/b")).await.problem(404, "no-such-route");
        for list in [all.clone(), format!("{all}/groupId")] {
            assert_eq!(each(&world.admin.get(&list).await.is(200).json(), "key"), ["a/b", "cost center"]);
        }
        let entry = world.admin.put(&one, json!({ "value": "v", "concurrencyToken": entry["concurrencyToken"] })).await.is(202).json();
        let entry = world.admin.patch(&one, json!({ "value": "w", "concurrencyToken": entry["concurrencyToken"] })).await.is(202).json();
        assert_eq!(entry["value"], "w");
        world.admin.patch(&one, json!({ "value": "w" })).await.problem(400, "invalid-request");
        world.admin.patch(&one, json!({ "value": "w", "concurrencyToken": "old" })).await.problem(409, "concurrency-conflict");
        world.admin.delete(&one).await.expect(204);
        world.admin.get(&one).await.problem(404, "not-found");
    }

    async fn entries_need_their_owner_and_a_good_key(world: World) {
        let (group, other) = (world.group("g").await, world.group("h").await);
        let all = world.path(&format!("/Group/{}/GroupMetadata", id(&group)));
        for key in ["batch", "createorupdate", "groupId", "", " x", &"k".repeat(129)] {
            let problem = world.admin.post(&all, json!({ "key": key, "value": "v" })).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/key"], "{key}");
        }
        let wrong = json!({ "key": "k", "value": "v", "groupId": other["id"] });
        assert_eq!(pointers(&world.admin.post(&all, wrong).await.problem(400, "invalid-request")), ["/groupId"]);
        let long = json!({ "key": "k", "value": "v".repeat(4001) });
        assert_eq!(pointers(&world.admin.post(&all, long).await.problem(400, "invalid-request")), ["/value"]);
        assert_eq!(pointers(&world.admin.post(&all, json!({ "value": "v" })).await.problem(400, "invalid-request")), ["/key"]);
        let nowhere = world.path("/Group/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f/GroupMetadata");
        world.admin.get(&nowhere).await.problem(404, "not-found");
        world.admin.post(&nowhere, json!({ "key": "k", "value": "v" })).await.problem(404, "not-found");
    }

    async fn user_profiles_answer_with_the_user(world: World) {
        let user = world.user("ada").await;
        let all = world.path(&format!("/user/{}/UserProfile", id(&user)));
        let answer = world.admin.post(&all, json!({ "key": "size", "value": "m" })).await.is(202).json();
        assert_eq!(answer, user);
        let entry = world.admin.get(&format!("{all}/size")).await.is(200).json();
        assert_eq!((&entry["userId"], &entry["value"]), (&user["id"], &json!("m")));
        let put = json!({ "value": "l", "concurrencyToken": entry["concurrencyToken"] });
        assert_eq!(world.admin.put(&format!("{all}/size"), put).await.is(202).json()["id"], user["id"]);
        assert_eq!(each(&world.admin.get(&all).await.is(200).json(), "value"), ["l"]);
        assert_eq!(world.admin.delete(&format!("{all}/size")).await.is(202).json()["id"], user["id"]);
        assert_eq!(world.admin.get(&all).await.is(200).json(), json!([]));
        // paths are case-sensitive: User and user differ
        world.admin.get(&world.path(&format!("/User/{}/UserProfile", id(&user)))).await.problem(404, "no-such-route");
        let entry = &world.audit(1).await[0];
        assert_eq!(entry["primaryKey"], format!("{}|size", id(&user)));
    }
}
