//! Answers in fewer bytes.

use std::io::Read as _;

use chancery_testkit::{Answer, on_both_engines};
use http::Method;
use serde_json::{Value, json};

const CODINGS: [&str; 3] = ["zstd", "br", "gzip"];

/// The decompressed body.
fn decoded(answer: &Answer) -> Vec<u8> {
    let (mut plain, bytes) = (Vec::new(), answer.bytes.as_ref());
    let read = match answer.header("content-encoding") {
        Some("zstd") => zstd::stream::read::Decoder::new(bytes).unwrap().read_to_end(&mut plain),
        Some("br") => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut plain),
        Some("gzip") => flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain),
        _ => panic!("{answer:?} is not compressed"),
    };
    read.unwrap();
    plain
}

on_both_engines! {
    /// Section 15: `Accept-Encoding` zstd, br, gzip for lists, documents and assets.
    async fn lists_documents_and_assets_are_compressed(world: World) {
        let users: Vec<Value> = (0..3000).map(|number| json!({ "loginName": format!("u{number:05}") })).collect();
        world.admin.post(&world.path("/User/batch"), json!(users)).await.expect(200);
        let css = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, "a { color: red }\n".repeat(1000));
        let asset = json!({ "location": "/assets/global/a.css", "mimetype": "text/css", "data": css });
        world.admin.post("/api/management/v2/CustomAsset", asset).await.expect(201);
        for path in [
            world.path("/User"),
            world.path("/User?count=500&sortBy=loginName"),
            "/openapi/userstore-v2.json".to_owned(),
            "/openapi/management-v2.json".to_owned(),
            "/api/management/v2/CustomAsset/assets/global/a.css".to_owned(),
            "/api/management/v2/CustomAsset".to_owned(),
        ] {
            let plain = world.admin.get(&path).await.is(200);
            assert_eq!(plain.header("vary"), Some("Accept-Encoding"), "{path}");
            assert!(plain.header("content-encoding").is_none());
            // a complete body is encoded at once: no encoder waits for a slow reader
            let is_whole = plain.header("content-length").is_some();
            for coding in CODINGS {
                let answer = world.admin.send(Method::GET, &path, &[("accept-encoding", coding)], vec![]).await.is(200);
                assert_eq!(answer.header("content-encoding"), Some(coding), "{path}");
                assert_eq!(answer.header("content-length").is_some(), is_whole, "{path} {coding}");
                assert!(answer.bytes.len() * 3 < plain.bytes.len(), "{path} {coding}: {}", answer.bytes.len());
                assert!(decoded(&answer) == plain.bytes, "{path} {coding}");
                // another coding has another tag, by which it is identified
                if let Some(tag) = plain.header("etag") {
                    let coded = answer.header("etag").unwrap();
                    assert_ne!(coded, tag);
                    world.admin.send(Method::GET, &path, &[("if-none-match", coded)], vec![]).await.expect(304);
                    world.admin.send(Method::GET, &path, &[("if-match", coded)], vec![]).await.expect(200);
                }
            }
        }
        let best = [("accept-encoding", "gzip, deflate, br;q=0.9, zstd")];
        let answer = world.admin.send(Method::GET, &world.path("/User"), &best, vec![]).await.is(200);
        assert_eq!(answer.header("content-encoding"), Some("zstd"));
        world.admin.send(Method::HEAD, &world.path("/User"), &best, vec![]).await.expect(200);
    }

    /// Section 15: an answer with a secret is never compressed, nor one that reports its change.
    async fn answers_with_secrets_are_not_compressed(world: World) {
        let all = [("accept-encoding", "zstd, br, gzip")];
        for path in [
            "/api/management/v2/Option".to_owned(),
            "/api/management/v2/ClientAppSecret".to_owned(),
            "/api/management/v2/ClientApp".to_owned(),
            "/api/management/v2/IdpInstance".to_owned(),
            "/api/management/v2/CertStore".to_owned(),
            "/api/management/v2/CustomAuditTrail".to_owned(),
            world.path("/CustomAuditTrail"),
        ] {
            let answer = world.admin.send(Method::GET, &path, &all, vec![]).await.is(200);
            assert!(answer.header("content-encoding").is_none(), "{path}");
        }
        let headers = [("accept-encoding", "gzip"), ("content-type", "application/x-www-form-urlencoded")];
        let token = world.anonymous.send(Method::POST, "/connect/token", &headers, b"grant_type=x".to_vec()).await;
        assert!(token.header("content-encoding").is_none());
    }
}
