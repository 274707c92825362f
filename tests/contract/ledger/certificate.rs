//! Certificates of the cert store sign the audit trail.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::{Database, Engine, Process, World, on_both_engines};
use rcgen::{
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256, PublicKeyData as _,
};
use serde_json::{Value as Json, json};

use super::{export, findings, keys, seal, sound};
use crate::{
    id,
    token::certificate::{Made, body, upload},
};

async fn for_audit(world: &World, kind: &'static rcgen::SignatureAlgorithm, until: i32) -> Made {
    upload(world, kind, until, json!({ "certType": "AuditTrailSigning" })).await
}

fn info(made: &Made) -> Json {
    json!(BASE64_STANDARD.encode(made.key.subject_public_key_info()))
}

/// The key that signs what is done now.
async fn signer(world: &World) -> Json {
    seal(world).await;
    let last = world.audit(1).await.first().map(|entry| entry["id"].to_string());
    world.group(&format!("g{}", last.unwrap_or_default())).await;
    world.audit(1).await[0]["signaturePublicKeyInfo"].clone()
}

async fn published(world: &World) -> Vec<Json> {
    let set = world.anonymous.get("/.well-known/audit-keys.json").await.is(200).json();
    set["keys"].as_array().unwrap().clone()
}

on_both_engines! {
    async fn the_certificate_for_it_that_lasts_signs_and_what_it_signed_stays(world: World) {
        let own = signer(&world).await;
        assert_eq!(published(&world).await.len(), 1);
        // neither can: the one knows no signatures of the trail, the other's owner could sign checkpoints
        for kind in [&PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
            for_audit(&world, kind, 2090).await;
        }
        for_audit(&world, &PKCS_ECDSA_P256_SHA256, 2021).await;
        assert_eq!(signer(&world).await, own);
        let mut made = vec![upload(&world, &PKCS_ECDSA_P256_SHA256, 2080, json!({ "certType": "Default" })).await];
        assert_eq!(signer(&world).await, info(&made[0]));
        made.push(for_audit(&world, &PKCS_ECDSA_P256_SHA256, 2030).await);
        assert_eq!(signer(&world).await, info(&made[1]), "the one for it goes before everyone's");
        made.push(for_audit(&world, &PKCS_RSA_SHA256, 2040).await);
        for_audit(&world, &PKCS_ECDSA_P256_SHA256, 2039).await;
        assert_eq!(signer(&world).await, info(&made[2]), "the longest validity wins");
        let tokens = world.anonymous.get("/.well-known/jwks.json").await.is(200).json();
        assert_eq!(tokens["keys"].as_array().unwrap().len(), 2, "the server's own and everyone's");
        for (at, rest) in [(2, 4), (1, 3), (0, 0)] {
            let all = world.all("CertStore").await;
            for store in all.as_array().unwrap().iter().filter(|store| rest == 0 || store["id"] == made[at].store["id"]) {
                world.admin.delete(&format!("/api/management/v2/CertStore/{}", id(store))).await.expect(204);
            }
            assert_ne!(signer(&world).await, info(&made[at]));
        }
        assert_eq!(signer(&world).await, own);
        // what was signed is not forgotten, and is told whole
        let known = published(&world).await;
        let ways: Vec<_> = known.iter().map(|key| key["alg"].as_str().unwrap()).collect();
        assert_eq!(ways.iter().filter(|way| **way == "RS256").count(), 1, "{ways:?}");
        assert_eq!((ways[0], ways.len()), ("EdDSA", 6));
        assert!(known.iter().all(|key| key.get("d").is_none() && key["use"] == "sig"));
        seal(&world).await;
        sound(&world, "default").await;
        sound(&world, "management").await;
    }

    /// The keys that are published vouch for what they signed, and for nothing else.
    async fn an_entry_signed_by_another_key_is_found(world: World) {
        let before = keys(&world).await;
        for_audit(&world, &PKCS_ECDSA_P256_SHA256, 2080).await;
        signer(&world).await;
        seal(&world).await;
        let (text, _) = export(&world, "default").await;
        assert!(findings(&text, &keys(&world).await, None).1.is_empty());
        assert!(!findings(&text, &before, None).1.is_empty(), "by the keys of before");
    }

    async fn what_is_only_tried_signs_nothing(world: World) {
        let own = signer(&world).await;
        let (body, _) = body(&PKCS_ECDSA_P256_SHA256, 2080, &json!({ "certType": "AuditTrailSigning" }));
        world.admin.post("/api/management/v2/CertStore?dryRun=true", body).await.expect(201);
        assert_eq!(signer(&world).await, own);
        assert_eq!(published(&world).await.len(), 1);
    }
}

/// A server that starts signs with the certificate from its first entry on.
async fn signs_from_the_start(engine: Engine) {
    let database = Arc::new(Database::create(engine));
    let (body, key) = body(&PKCS_ECDSA_P256_SHA256, 2080, &json!({ "certType": "AuditTrailSigning" }));
    let mut server = Process::start(&database, &[]).await;
    server.admin.post("/api/management/v2/CertStore", body).await.expect(201);
    assert!(server.stop());
    let server = Process::start(&database, &[]).await;
    let store = "/api/userstore/v2/default/administration";
    server.admin.post(&format!("{store}/User"), json!({ "loginName": "ada" })).await.expect(201);
    let entries = server.admin.get(&format!("{store}/CustomAuditTrail")).await.is(200).json();
    assert_eq!(entries[0]["signaturePublicKeyInfo"], BASE64_STANDARD.encode(key.subject_public_key_info()));
}

#[tokio::test]
async fn signs_from_the_start_sqlite() {
    signs_from_the_start(Engine::Sqlite).await;
}

#[tokio::test]
async fn signs_from_the_start_postgres() {
    signs_from_the_start(Engine::Postgres).await;
}
