//! Groups: their own operations, their relations, and the graph they form.

use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::{each, id, pointers};

fn related(ids: &[&Value]) -> Value {
    json!({ "relatedIds": ids.iter().map(|resource| resource["id"].clone()).collect::<Vec<_>>() })
}

on_both_engines! {
    async fn is_created_changed_and_deleted(world: World) {
        let group = world.group("Sales").await;
        assert_eq!(group["memberUsers"], json!([]));
        let one = world.path(&format!("/Group/{}", id(&group)));
        assert_eq!(world.admin.get(&one).await.is(200).json(), group);
        let taken = world.admin.post(&world.path("/Group"), json!({ "name": "SALES" })).await.problem(409, "conflict");
        assert_eq!(pointers(&taken), ["/name"]);
        let put = json!({ "id": group["id"], "name": "Selling", "concurrencyToken": group["concurrencyToken"] });
        let group = world.admin.put(&one, put).await.is(202).json();
        let patch = json!({ "name": "Vending", "concurrencyToken": group["concurrencyToken"] });
        let group = world.admin.patch(&one, patch).await.is(202).json();
        assert_eq!(group["name"], "Vending");
        assert_eq!(each(&world.admin.get(&world.path("/Group")).await.is(200).json(), "name"), ["Vending"]);
        world.admin.delete(&one).await.expect(204);
        world.admin.get(&one).await.problem(404, "not-found");
        // the name is free again, the id is not
        let again = world.admin.post(&world.path("/Group"), json!({ "name": "Vending", "id": group["id"] })).await;
        assert_eq!(pointers(&again.problem(409, "conflict")), ["/id"]);
        world.group("Vending").await;
    }

    /// - Effect of `Group.memberUsers`: These users are members of the group.
    async fn members_are_set_added_and_removed_from_both_sides(world: World) {
        let (ada, bob, eve) = (world.user("ada").await, world.user("bob").await, world.user("eve").await);
        let group = world.group("g").await;
        let users = world.path(&format!("/Group/{}/users", id(&group)));
        let logins = |group: Value| each(&group["memberUsers"], "loginName").into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(logins(world.admin.put(&users, related(&[&ada, &bob, &ada])).await.is(202).json()), ["ada", "bob"]);
        assert_eq!(logins(world.admin.post(&users, related(&[&eve, &ada])).await.is(202).json()), ["ada", "bob", "eve"]);
        assert_eq!(logins(world.admin.delete_with(&users, related(&[&bob])).await.is(202).json()), ["ada", "eve"]);
        assert_eq!(logins(world.admin.delete_with(&users, related(&[&bob])).await.is(202).json()), ["ada", "eve"]);
        let member = &world.admin.get(&world.path(&format!("/Group/{}", id(&group)))).await.is(200).json()["memberUsers"][0];
        let names: Vec<_> = member.as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, ["emailAddress", "firstName", "id", "lastName", "loginName"]);

        let other = world.group("h").await;
        let groups = world.path(&format!("/User/{}/groups", id(&ada)));
        let user = world.admin.post(&groups, related(&[&other])).await.is(202).json();
        assert_eq!(each(&user["memberOfGroups"], "name"), ["g", "h"]);
        assert_eq!(user["concurrencyToken"], ada["concurrencyToken"], "a relation does not change the token");
        let user = world.admin.delete_with(&groups, related(&[&group])).await.is(202).json();
        assert_eq!(each(&user["memberOfGroups"], "name"), ["h"]);
        let user = world.admin.put(&groups, related(&[&group])).await.is(202).json();
        assert_eq!(each(&user["memberOfGroups"], "name"), ["g"]);
        // a member in quarantine is in no group's list, and still a member
        world.admin.delete(&world.path(&format!("/User/{}", id(&ada)))).await.expect(204);
        assert_eq!(logins(world.admin.put(&users, related(&[&eve])).await.is(202).json()), ["eve"]);
    }

    async fn unknown_and_foreign_members_refuse_the_whole_call(world: World) {
        let (ada, group) = (world.user("ada").await, world.group("g").await);
        world.other_store("other").await;
        let foreign = world.admin.post("/api/userstore/v2/other/administration/User", json!({ "loginName": "x" })).await.is(201).json();
        let users = world.path(&format!("/Group/{}/users", id(&group)));
        for method in [http::Method::PUT, http::Method::POST, http::Method::DELETE] {
            let body = json!({ "relatedIds": [id(&ada), id(&ada), id(&foreign), "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"] });
            let json_type = [("content-type", "application/json")];
            let answer = world.admin.send(method, &users, &json_type, body.to_string().into_bytes()).await;
            assert_eq!(pointers(&answer.problem(400, "invalid-request")), ["/relatedIds/2", "/relatedIds/3"]);
        }
        for (body, at) in [
            (json!({}), "/relatedIds"), (json!({ "relatedIds": null }), "/relatedIds"), (json!([]), ""),
            (json!({ "relatedIds": ["x", 1] }), "/relatedIds/0"), (json!({ "relatedIds": [], "more": 1 }), "/more"),
        ] {
            let problem = world.admin.put(&users, body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem)[0], at);
        }
        let one = world.path(&format!("/Group/{}", id(&group)));
        assert_eq!(world.admin.get(&one).await.is(200).json()["memberUsers"], json!([]));
    }

    async fn groups_form_no_circle(world: World) {
        let (a, b, c) = (world.group("a").await, world.group("b").await, world.group("c").await);
        let members = |group: &Value| world.path(&format!("/Group/{}/membergroups", id(group)));
        let parents = |group: &Value| world.path(&format!("/Group/{}/parentgroups", id(group)));
        let group = world.admin.put(&members(&a), related(&[&b])).await.is(202).json();
        assert_eq!(each(&group["memberGroups"], "name"), ["b"]);
        let group = world.admin.post(&parents(&c), related(&[&b])).await.is(202).json();
        assert_eq!(each(&group["parentGroups"], "name"), ["b"]);
        world.admin.post(&members(&c), related(&[&a])).await.problem(409, "conflict");
        world.admin.post(&parents(&a), related(&[&c])).await.problem(409, "conflict");
        world.admin.post(&members(&a), related(&[&a])).await.problem(409, "conflict");
        world.admin.delete_with(&members(&b), related(&[&c])).await.expect(202);
        world.admin.post(&members(&c), related(&[&a])).await.expect(202);
        // deleting a group deletes its edges
        world.admin.delete(&world.path(&format!("/Group/{}", id(&a)))).await.expect(204);
        let left = world.admin.get(&world.path(&format!("/Group/{}", id(&b)))).await.is(200).json();
        assert_eq!(left["parentGroups"], json!([]));
    }

    /// - Effect of `User.memberOfGroups`: The user is a member of these groups, with the roles and the claims that they bring.
    async fn memberships_follow_the_graph(world: World) {
        let (top, left, right, bottom) =
            (world.group("top").await, world.group("left").await, world.group("right").await, world.group("bottom").await);
        let members = |group: &Value| world.path(&format!("/Group/{}/membergroups", id(group)));
        world.admin.put(&members(&top), related(&[&left, &right])).await.expect(202);
        world.admin.put(&members(&left), related(&[&bottom])).await.expect(202);
        world.admin.put(&members(&right), related(&[&bottom])).await.expect(202);
        let ada = world.user("ada").await;
        world.admin.post(&world.path(&format!("/User/{}/groups", id(&ada))), related(&[&bottom])).await.expect(202);
        let names = |groups: Value| {
            let mut names: Vec<String> = each(&groups, "name").into_iter().map(str::to_owned).collect();
            names.sort_unstable();
            names
        };
        let of_user = world.path(&format!("/Group/user/{}/membership", id(&ada)));
        assert_eq!(names(world.admin.get(&of_user).await.is(200).json()), ["bottom", "left", "right", "top"]);
        let filtered = format!("{of_user}?filter=name%20sw%20%22LE%22");
        assert_eq!(names(world.admin.get(&filtered).await.is(200).json()), ["left"]);
        let below = world.path(&format!("/Group/parentGroup/{}/membership", id(&top)));
        let groups = world.admin.get(&below).await.is(200).json();
        assert_eq!(each(&groups[0]["parentGroups"], "name").len(), 1, "items are whole groups");
        assert_eq!(names(groups), ["bottom", "left", "right"]);
        let unknown = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
        world.admin.get(&world.path(&format!("/Group/user/{unknown}/membership"))).await.problem(404, "not-found");
        world.admin.get(&world.path(&format!("/Group/parentGroup/{unknown}/membership"))).await.problem(404, "not-found");
    }

    /// Section 15: the 101st level of nesting groups is 400 with the limit.
    async fn nest_at_most_a_hundred_deep(world: World) {
        let names: Vec<Value> = (0..102).map(|number| json!({ "name": format!("g{number:03}") })).collect();
        let groups = world.admin.post(&world.path("/Group/batch"), json!(names)).await.is(200).json();
        let groups = groups.as_array().unwrap();
        for pair in groups.windows(2).take(100) {
            let members = world.path(&format!("/Group/{}/membergroups", id(&pair[0])));
            world.admin.put(&members, related(&[&pair[1]])).await.expect(202);
        }
        let members = world.path(&format!("/Group/{}/membergroups", id(&groups[100])));
        let problem = world.admin.put(&members, related(&[&groups[101]])).await.problem(400, "invalid-request");
        assert!(problem["detail"].as_str().unwrap().contains("100"));
    }

    async fn a_large_group_streams_whole(world: World) {
        let users: Vec<Value> = (0..9000).map(|number| json!({ "loginName": format!("u{number:05}") })).collect();
        let users = world.admin.post(&world.path("/User/batch"), json!(users)).await.is(200).json();
        let ids: Vec<&str> = each(&users, "id");
        let (group, small) = (world.group("large").await, world.group("small").await);
        let path = world.path(&format!("/Group/{}/users", id(&group)));
        let answer = world.admin.put(&path, json!({ "relatedIds": ids })).await.is(202).json();
        assert_eq!(each(&answer["memberUsers"], "id").len(), 9000);
        world.admin.put(&world.path(&format!("/Group/{}/users", id(&small))), json!({ "relatedIds": [ids[7]] })).await.expect(202);
        let read = world.admin.get(&world.path(&format!("/Group/{}", id(&group)))).await.is(200).json();
        let mut read: Vec<&str> = each(&read["memberUsers"], "id");
        read.sort_unstable();
        let mut expected = ids.clone();
        expected.sort_unstable();
        assert_eq!(read, expected);
        let list = world.admin.get(&world.path("/Group")).await.is(200).json();
        assert_eq!(list[0]["memberUsers"].as_array().unwrap().len(), 9000);
        assert_eq!(each(&list[1]["memberUsers"], "id"), [ids[7]]);
        // only the difference is written
        let retained = json!({ "relatedIds": ids[90..] });
        world.admin.put(&path, retained).await.expect(202);
        let entry = &world.audit(1).await[0];
        let change: Value = serde_json::from_str(entry["currentContent"].as_str().unwrap()).unwrap();
        assert_eq!(change["memberUsers"]["removed"].as_array().unwrap().len(), 90);
        assert_eq!(change["memberUsers"]["added"], json!([]));
    }
}
