//! Groups and their members.

use chancery_testkit::on_both_engines;
use serde_json::{Value as Json, json};

use super::{at, directory, error, group, of_provider, one, operations, own, user};
use crate::id;

/// The ids of a group's members.
fn members(group: &Json) -> Vec<String> {
    let members = group["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    members.iter().map(|member| member["value"].as_str().unwrap().to_owned()).collect()
}

on_both_engines! {
    async fn members_are_added_replaced_and_removed(world: World) {
        let client = own(&world).await;
        let (ada, bob, carl) = (user(&client, "ada").await, user(&client, "bob").await, user(&client, "carl").await);
        let inner = group(&client, "inner", &[]).await;
        let outer = group(&client, "outer", &[&ada, &inner]).await;
        let path = one("Groups", &outer);
        assert_eq!(members(&outer), [id(&ada), id(&inner)]);
        assert_eq!(outer["members"][1], json!({ "value": inner["id"], "type": "Group", "$ref": inner["meta"]["location"] }));
        let rendered = client.get(&format!("{path}?attributes=members,members.display")).await.is(200).json();
        assert_eq!(rendered["members"][0]["display"], "ada");
        let member = |who: &Json| json!([{ "value": who["id"] }]);
        for (operation, expected) in [
            (json!({ "op": "Add", "path": "members", "value": [{ "value": bob["id"] }, { "value": bob["id"] }] }), vec![&ada, &bob, &inner]),
            (json!({ "op": "remove", "path": format!("members[value eq \"{}\"]", id(&ada)) }), vec![&bob, &inner]),
            (json!({ "op": "remove", "path": "members", "value": member(&inner) }), vec![&bob]),
            (json!({ "op": "remove", "path": "members", "value": member(&ada) }), vec![&bob]),
            (json!({ "op": "remove", "path": "members", "value": [] }), vec![&bob]),
            (json!({ "op": "replace", "path": "members", "value": member(&carl) }), vec![&carl]),
            (json!({ "op": "remove", "path": "members" }), vec![]),
        ] {
            let updated = client.patch(&path, operations(&json!([operation]))).await.is(200).json();
            assert_eq!(members(&updated), expected.iter().map(|who| id(who).to_owned()).collect::<Vec<_>>(), "{operation}");
        }
        let updated = client.put(&path, json!({ "displayName": "outer", "members": member(&ada) })).await.is(200).json();
        assert_eq!(members(&updated), [id(&ada)]);
        let of = client.get(&one("Users", &ada)).await.is(200).json();
        assert_eq!(of["groups"], json!([{ "value": outer["id"], "display": "outer", "type": "direct", "$ref": outer["meta"]["location"] }]));
        let list = client.get(&at(&format!("/Groups?excludedAttributes=members&filter=members.value%20eq%20%22{}%22", id(&ada)))).await.is(200).json();
        assert_eq!((&list["totalResults"], list["Resources"][0].get("members")), (&json!(1), None));
    }

    async fn invalid_members_are_rejected(world: World) {
        let client = own(&world).await;
        let ada = user(&client, "ada").await;
        let inner = group(&client, "inner", &[]).await;
        let outer = group(&client, "outer", &[&inner]).await;
        let add = |path: String, member: Json| {
            let client = client.clone();
            async move { client.patch(&path, operations(&json!([{ "op": "add", "path": "members", "value": [member] }]))).await }
        };
        let cycle = add(one("Groups", &inner), json!({ "value": outer["id"] })).await;
        error(&cycle, 409);
        assert_eq!(error(&add(one("Groups", &outer), json!({ "value": ada["id"], "type": "Group" })).await, 400).0, "invalidValue");
        for unknown_id in ["0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f", "x"] {
            assert_eq!(error(&add(one("Groups", &outer), json!({ "value": unknown_id })).await, 400).0, "invalidValue");
        }
        let null = operations(&json!([{ "op": "replace", "path": "members", "value": null }]));
        assert_eq!(error(&client.patch(&one("Groups", &outer), null).await, 400).0, "invalidValue");
        assert_eq!(error(&client.post(&at("/Groups"), json!({ "displayName": "OUTER" })).await, 409).0, "uniqueness");
    }

    /// A value array that got lost must not remove all members of a company's group.
    async fn removing_many_members_needs_if_match(world: World) {
        let client = own(&world).await;
        let users: Vec<Json> = (0..1001).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        world.admin.post(&world.path("/User/batch"), json!(users)).await.expect(200);
        let created = group(&client, "all", &[]).await;
        // an administrator adds the members: the directory does not see them, but counts them
        let list = world.admin.get(&world.path("/User")).await.is(200).json();
        let ids: Vec<&str> = list.as_array().unwrap().iter().map(id).collect();
        world.admin.post(&world.path(&format!("/Group/{}/users", id(&created))), json!({ "relatedIds": ids })).await.expect(202);
        let path = one("Groups", &created);
        let empty = operations(&json!([{ "op": "remove", "path": "members" }])).to_string().into_bytes();
        let send = |tag: Option<&'static str>| {
            let (client, path, body) = (client.clone(), path.clone(), empty.clone());
            async move {
                let mut headers = vec![("content-type", "application/scim+json")];
                headers.extend(tag.map(|tag| ("if-match", tag)));
                client.send(http::Method::PATCH, &path, &headers, body).await
            }
        };
        let (word, detail) = error(&send(None).await, 400);
        assert!(word == "invalidValue" && detail.contains("1001"), "{detail}");
        let answer = send(Some("*")).await.is(204);
        assert!(answer.header("etag").is_some(), "a large group is not answered");
        let remaining = world.admin.get(&world.path(&format!("/Group/{}", id(&created)))).await.is(200).json();
        assert_eq!(remaining["memberUsers"].as_array().unwrap().len(), 1001, "whom it does not see stays");
        let (all, _) = directory(&world, json!({ "reach": "All" })).await;
        let answer = all.send(http::Method::PATCH, &path, &[("content-type", "application/json"), ("if-match", "*")], empty.clone()).await;
        assert_eq!(members(&answer.is(200).json()), [""; 0]);
    }

    async fn groups_of_a_provider_have_its_persons(world: World) {
        let (client, base) = of_provider(&world, "partner").await;
        let ada = client.post(&format!("{base}/Users"), json!({ "userName": "ada" })).await.is(201).json();
        let body = json!({ "displayName": "All", "externalId": "g-1", "members": [{ "value": ada["id"] }] });
        let created = client.post(&format!("{base}/Groups"), body).await.is(201).json();
        assert_eq!((members(&created), &created["externalId"]), (vec![id(&ada).to_owned()], &json!("g-1")));
        error(&client.post(&format!("{base}/Groups"), json!({ "displayName": "all" })).await, 409);
        let of = client.get(&format!("{base}/Users/{}", id(&ada))).await.is(200).json();
        assert_eq!(of["groups"][0]["display"], "All");
        let row = world.admin.get(&format!("/api/management/v2/ApplicationGroup/{}", id(&created))).await.is(200).json();
        assert_eq!(row["name"], "All");
        let wrong = operations(&json!([{ "op": "add", "path": "members", "value": [{ "value": ada["id"], "type": "Group" }] }]));
        assert_eq!(error(&client.patch(&format!("{base}/Groups/{}", id(&created)), wrong).await, 400).0, "invalidValue");
        client.delete(&format!("{base}/Groups/{}", id(&created))).await.expect(204);
        assert_eq!(client.get(&format!("{base}/Users/{}", id(&ada))).await.is(200).json().get("groups"), None);
    }
}
