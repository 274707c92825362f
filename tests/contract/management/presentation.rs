//! Custom assets and views.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::on_both_engines;
use serde_json::json;

use super::BASE;
use crate::{each, id, pointers};

fn png() -> String {
    BASE64_STANDARD.encode([
        0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0,
        0, 0, 1, 8, 6, 0, 0, 0,
    ])
}

on_both_engines! {
    async fn assets_are_addressed_by_location(world: World) {
        let body = json!({ "location": "/assets/global/site.css", "mimetype": "text/css", "data": BASE64_STANDARD.encode("p{color:red}") });
        let created = world.make("CustomAsset", body.clone()).await;
        assert_eq!((&created["size"], &created["fileName"], &created["data"]), (&json!(12), &json!("site.css"), &body["data"]));
        for path in ["assets/global/site.css", "%2Fassets%2Fglobal%2Fsite.css", "/assets/global/site.css"] {
            assert_eq!(world.admin.get(&format!("{BASE}/CustomAsset/{path}")).await.is(200).json(), created, "{path}");
        }
        assert_eq!(pointers(&world.admin.post(&format!("{BASE}/CustomAsset"), body).await.problem(409, "conflict")), ["/location"]);
        let patch = json!({ "data": BASE64_STANDARD.encode("a{}"), "concurrencyToken": created["concurrencyToken"] });
        let changed = world.admin.patch(&format!("{BASE}/CustomAsset/assets/global/site.css"), patch).await.is(202).json();
        assert_eq!(changed["size"], 3);
        // type and content must match, also after a change of either
        let patch = json!({ "mimetype": "image/png", "concurrencyToken": changed["concurrencyToken"] });
        let problem = world.admin.patch(&format!("{BASE}/CustomAsset/assets/global/site.css"), patch).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/data"]);
        for (location, mimetype, at) in [
            ("/assets/../x", "text/css", "/location"), ("batch", "text/css", "/location"), ("/a//b", "text/css", "/location"),
            ("/x.js", "text/javascript", "/mimetype"),
        ] {
            let body = json!({ "location": location, "mimetype": mimetype, "data": "YQ==" });
            assert_eq!(pointers(&world.admin.post(&format!("{BASE}/CustomAsset"), body).await.problem(400, "invalid-request")), [at], "{location}");
        }
        let batch = json!([{ "location": "/one.txt", "mimetype": "text/plain", "data": "YQ==" }, { "location": "/two.txt", "mimetype": "text/plain", "data": "Yg==" }]);
        let batch = world.admin.post(&format!("{BASE}/CustomAsset/batch"), batch).await.is(200).json();
        let put = world.admin.put(&format!("{BASE}/CustomAsset/batch"), batch.clone()).await.is(200).json();
        assert_eq!(each(&put, "location"), ["/one.txt", "/two.txt"]);
        let unknown = json!(["/one.txt", "/none.txt"]);
        assert_eq!(pointers(&world.admin.delete_with(&format!("{BASE}/CustomAsset/batch"), unknown).await.problem(404, "not-found")), ["/1"]);
        world.admin.delete_with(&format!("{BASE}/CustomAsset/batch"), json!(["one.txt", "/two.txt"])).await.expect(204);
        world.admin.delete(&format!("{BASE}/CustomAsset/assets/global/site.css")).await.expect(204);
        assert_eq!(world.all("CustomAsset").await, json!([]));
        assert!(each_text(&world.all("CustomAsset/mimetypes").await).contains(&"image/png".to_owned()));
    }

    async fn create_derives_the_location(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let path = format!("{BASE}/CustomAsset/create");
        let body = json!({ "mimetype": "image/png", "assetFileName": "logo.png", "data": png(), "applyToType": "tenant", "tenantId": tenant["id"] });
        let created = world.admin.post(&path, body.clone()).await.is(201).json();
        assert_eq!(created["location"], format!("/assets/tenant/{}/logo.png", id(&tenant)));
        world.admin.post(&path, body.clone()).await.problem(409, "conflict");
        let mut explicit = body.clone();
        explicit["location"] = json!("/own/logo.png");
        assert_eq!(world.admin.post(&path, explicit).await.is(201).json()["location"], "/own/logo.png");
        for (member, value) in [("tenantId", json!(null)), ("assetFileName", json!("a/b.png")), ("assetFileName", json!("a\u{85}b"))] {
            let mut wrong = body.clone();
            wrong[member] = value;
            let problem = world.admin.post(&path, wrong).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [format!("/{member}")]);
        }
    }

    async fn views_must_parse(world: World) {
        let names = each_text(&world.all("CustomView/viewtemplate/names").await);
        assert!(names.contains(&"SignIn".to_owned()) && names.len() >= 9, "{names:?}");
        let content = world.all("CustomView/viewtemplate/content/SignIn").await;
        assert!(content.as_str().unwrap().contains("<form"));
        world.admin.get(&format!("{BASE}/CustomView/viewtemplate/content/Nothing")).await.problem(404, "not-found");
        let created = world.admin.post(&format!("{BASE}/CustomView/viewtemplate/view"), json!({ "viewName": "SignIn" })).await.is(201).json();
        assert_eq!((&created["location"], &created["content"]), (&json!("/views/global/SignIn"), &content));
        let problem = world.admin.post(&format!("{BASE}/CustomView/viewtemplate/view"), json!({ "viewName": "Nothing" })).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/viewName"]);
        let patch = json!({ "content": "<p>\n{% if %}</p>", "concurrencyToken": created["concurrencyToken"] });
        let problem = world.admin.patch(&format!("{BASE}/CustomView/views/global/SignIn"), patch).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/content"]);
        assert!(problem["errors"][0]["detail"].as_str().unwrap().starts_with("line 2, column "), "{problem}");
        world.admin.delete_with(&format!("{BASE}/CustomView/batch"), json!(["/views/global/SignIn"])).await.expect(204);
    }

    /// The location determines the owner.
    async fn write_access_follows_the_level(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let far = world.other_subscription("Far").await;
        let view = |location: String| json!({ "location": location, "content": "<p>hello</p>" });
        let path = format!("{BASE}/CustomView");
        low.post(&path, view(format!("/views/tenant/{}/SignIn", id(&tenant)))).await.expect(201);
        let subscription = tenant["subscriptionId"].as_str().unwrap();
        for location in ["/views/global/SignIn".to_owned(), format!("/views/subscription/{subscription}/SignIn"), "/free".to_owned()] {
            let answer = low.post(&path, view(location.clone())).await;
            assert!([400, 403].contains(&answer.status.as_u16()), "{location}: {}", answer.status);
        }
        near.post(&path, view(format!("/views/subscription/{subscription}/SignIn"))).await.expect(201);
        near.post(&path, view("/views/global/SignIn".into())).await.problem(400, "invalid-request");
        near.post(&path, view(format!("/views/subscription/{}/SignIn", far.as_str().unwrap()))).await.problem(400, "invalid-request");
        world.make("CustomView", view("/views/global/SignIn".into())).await;
        assert_eq!(low.get(&path).await.is(200).json().as_array().unwrap().len(), 1);
        assert_eq!(near.get(&path).await.is(200).json().as_array().unwrap().len(), 2);
        low.get(&format!("{path}/views/global/SignIn")).await.problem(404, "not-found");
        low.delete(&format!("{path}/views/global/SignIn")).await.problem(404, "not-found");
    }
}

fn each_text(array: &serde_json::Value) -> Vec<String> {
    array.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}
