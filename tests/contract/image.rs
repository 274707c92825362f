//! Images of users: what goes in is checked, what comes out is stripped.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::on_both_engines;
use serde_json::json;

use crate::{id, picture::png, pointers};

on_both_engines! {
    async fn are_set_read_and_deleted(world: World) {
        let user = world.user("ada").await;
        let one = world.path(&format!("/User/{}/image", id(&user)));
        world.admin.get(&one).await.problem(404, "not-found");
        let put = |kind: &'static str, body: Vec<u8>| {
            let (admin, one) = (world.admin.clone(), one.clone());
            async move { admin.send(http::Method::PUT, &one, &[("content-type", kind)], body).await }
        };
        let image = put("image/png", png()).await.is(200).json();
        assert_eq!((&image["userId"], &image["contentType"]), (&user["id"], &json!("image/png")));
        assert_eq!(image["sha256"].as_str().unwrap().len(), 64);
        let read = world.admin.get(&one).await.is(200);
        assert_eq!(read.json(), image);
        assert!(read.header("etag").is_some());

        let content = world.admin.get(&format!("{one}/content")).await.is(200);
        assert_eq!(content.header("content-type"), Some("image/png"));
        assert_eq!(content.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(json!(content.bytes.len()), image["sizeBytes"]);
        assert!(content.bytes.starts_with(b"\x89PNG") && !content.bytes.windows(3).any(|part| part == b"Ada"));
        let tag = content.header("etag").unwrap().to_owned();
        let again = world.admin.send(http::Method::GET, &format!("{one}/content"), &[("if-none-match", &tag)], vec![]).await;
        again.expect(304);
        let accept = world.admin.send(http::Method::GET, &format!("{one}/content"), &[("accept", "image/*")], vec![]).await;
        accept.expect(200);

        // the other ways to send it make the same of it
        let data = json!({ "contentType": "image/png", "data": BASE64_STANDARD.encode(png()) }).to_string();
        let by_json = put("application/json", data.into_bytes()).await.is(200).json();
        // missing and wrong members are named by their pointers
        let problem = put("application/json", b"{}".to_vec()).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/contentType", "/data"], "{problem}");
        let problem = put("application/json", b"{\"contentType\":7,\"data\":\"-\",\"url\":\"\"}".to_vec()).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/contentType", "/url"], "{problem}");
        let problem = put("application/json", b"{\"contentType\":\"image/png\",\"data\":\"-\"}".to_vec()).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/data"], "{problem}");
        let part = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n";
        let form = [part.as_bytes(), &png(), b"\r\n--x--\r\n"].concat();
        let by_form = put("multipart/form-data; boundary=x", form).await.is(200).json();
        let by_bytes = put("application/octet-stream", png()).await.is(200).json();
        for other in [&by_json, &by_form, &by_bytes] {
            assert_eq!((&other["sha256"], &other["id"]), (&image["sha256"], &image["id"]));
            assert_ne!(other["concurrencyToken"], image["concurrencyToken"]);
        }
        let entries = world.audit(4).await;
        assert!(entries.iter().all(|entry| entry["area"] == "UserImage"));
        world.admin.delete(&one).await.expect(204);
        world.admin.delete(&one).await.problem(404, "not-found");
        world.admin.get(&format!("{one}/content")).await.problem(404, "not-found");
    }

    async fn must_be_what_they_say(world: World) {
        let user = world.user("ada").await;
        let one = world.path(&format!("/User/{}/image", id(&user)));
        let put = |kind: &'static str, body: Vec<u8>| {
            let (admin, one) = (world.admin.clone(), one.clone());
            async move { admin.send(http::Method::PUT, &one, &[("content-type", kind)], body).await }
        };
        put("image/jpeg", png()).await.problem(400, "invalid-request");
        put("image/png", b"<svg/>".to_vec()).await.problem(400, "invalid-request");
        put("image/png", png()[..40].to_vec()).await.problem(400, "invalid-request");
        put("image/svg+xml", b"<svg/>".to_vec()).await.problem(415, "unsupported-media-type");
        put("image/png", vec![0; 2 << 20]).await.problem(413, "payload-too-large");
        put("application/json", b"{}".to_vec()).await.problem(400, "invalid-request");
        world.admin.get(&one).await.problem(404, "not-found");
        let nobody = world.path("/User/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f/image");
        let answer = world.admin.send(http::Method::PUT, &nobody, &[("content-type", "image/png")], png()).await;
        answer.problem(404, "not-found");
    }

    async fn go_with_their_user_and_honour_if_match(world: World) {
        let user = world.user("ada").await;
        let one = world.path(&format!("/User/{}/image", id(&user)));
        let headers = [("content-type", "image/png")];
        world.admin.send(http::Method::PUT, &one, &headers, png()).await.expect(200);
        let stale = [("content-type", "image/png"), ("if-match", "\"stale\"")];
        world.admin.send(http::Method::PUT, &one, &stale, png()).await.problem(412, "precondition-failed");
        world.admin.delete(&world.path(&format!("/User/{}", id(&user)))).await.expect(204);
        world.admin.get(&one).await.problem(404, "not-found");
        world.admin.post(&world.path(&format!("/User/{}/restore-deletion", id(&user))), json!({})).await.expect(200);
        world.admin.get(&one).await.expect(200);
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&user))), json!({})).await.expect(204);
        world.admin.get(&one).await.problem(404, "not-found");
    }
}
