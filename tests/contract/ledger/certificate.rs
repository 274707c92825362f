//! Certificates of the cert store sign the audit trail.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::Value;
use chancery_store::{Error, Mode, raw};
use chancery_testkit::{Client, Database, Engine, Process, SECRET, World, on_both_engines};
use rcgen::{
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256, PublicKeyData as _,
};
use serde_json::{Value as Json, json};

use super::{append_leaves, export, findings, keys, sound};
use crate::{
    certificate::{UploadedCertificate, body, upload},
    id,
};

async fn for_audit(
    world: &World,
    kind: &'static rcgen::SignatureAlgorithm,
    until: i32,
) -> UploadedCertificate {
    upload(world, kind, until, json!({ "certType": "AuditTrailSigning" })).await
}

fn info(uploaded: &UploadedCertificate) -> Json {
    json!(BASE64_STANDARD.encode(uploaded.key.subject_public_key_info()))
}

/// The public key that signs the current entries.
async fn signer(world: &World) -> Json {
    append_leaves(world).await;
    let last = world.audit(1).await.first().map(|entry| entry["id"].to_string());
    world.group(&format!("g{}", last.unwrap_or_default())).await;
    world.audit(1).await[0]["signaturePublicKeyInfo"].clone()
}

async fn published(world: &World) -> Vec<Json> {
    let set = world.anonymous.get("/.well-known/audit-keys.json").await.is(200).json();
    set["keys"].as_array().unwrap().clone()
}

on_both_engines! {
    /// - Effect of `CertStore.certType`: The type determines what the certificate signs: tokens, or the audit trail.
    async fn the_audit_certificate_with_the_longest_validity_signs_and_its_entries_remain_valid(world: World) {
        let own = signer(&world).await;
        assert_eq!(published(&world).await.len(), 1);
        // neither can sign: the one has no supported signature algorithm, the owner of the other could sign checkpoints
        for kind in [&PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
            for_audit(&world, kind, 2090).await;
        }
        for_audit(&world, &PKCS_ECDSA_P256_SHA256, 2021).await;
        assert_eq!(signer(&world).await, own);
        let mut uploaded = vec![upload(&world, &PKCS_ECDSA_P256_SHA256, 2080, json!({ "certType": "Default" })).await];
        assert_eq!(signer(&world).await, info(&uploaded[0]));
        uploaded.push(for_audit(&world, &PKCS_ECDSA_P256_SHA256, 2030).await);
        assert_eq!(signer(&world).await, info(&uploaded[1]), "the one for it goes before everyone's");
        uploaded.push(for_audit(&world, &PKCS_RSA_SHA256, 2040).await);
        for_audit(&world, &PKCS_ECDSA_P256_SHA256, 2039).await;
        assert_eq!(signer(&world).await, info(&uploaded[2]), "the longest validity wins");
        let tokens = world.anonymous.get("/.well-known/jwks.json").await.is(200).json();
        assert_eq!(tokens["keys"].as_array().unwrap().len(), 3, "the server's own two and everyone's");
        for (at, rest) in [(2, 4), (1, 3), (0, 0)] {
            let all = world.all("CertStore").await;
            for store in all.as_array().unwrap().iter().filter(|store| rest == 0 || store["id"] == uploaded[at].store["id"]) {
                world.admin.delete(&format!("/api/management/v2/CertStore/{}", id(store))).await.expect(204);
            }
            assert_ne!(signer(&world).await, info(&uploaded[at]));
        }
        assert_eq!(signer(&world).await, own);
        // former signing keys remain published, completely
        let published_keys = published(&world).await;
        let algorithms: Vec<_> = published_keys.iter().map(|key| key["alg"].as_str().unwrap()).collect();
        assert_eq!(algorithms.iter().filter(|algorithm| **algorithm == "RS256").count(), 1, "{algorithms:?}");
        assert_eq!((algorithms[0], algorithms.len()), ("EdDSA", 6));
        assert!(published_keys.iter().all(|key| key.get("d").is_none() && key["use"] == "sig"));
        append_leaves(&world).await;
        sound(&world, "default").await;
        sound(&world, "management").await;
    }

    /// The published keys verify their own entries, and no others.
    async fn an_entry_signed_by_another_key_is_detected(world: World) {
        let before = keys(&world).await;
        for_audit(&world, &PKCS_ECDSA_P256_SHA256, 2080).await;
        signer(&world).await;
        append_leaves(&world).await;
        let (text, _) = export(&world, "default").await;
        assert!(findings(&text, &keys(&world).await, None).1.is_empty());
        assert!(!findings(&text, &before, None).1.is_empty(), "by the keys of before");
    }

    async fn a_dry_run_does_not_change_the_signing_key(world: World) {
        let own = signer(&world).await;
        let (body, _) = body(&PKCS_ECDSA_P256_SHA256, 2080, &json!({ "certType": "AuditTrailSigning" }));
        world.admin.post("/api/management/v2/CertStore?dryRun=true", body).await.expect(201);
        assert_eq!(signer(&world).await, own);
        assert_eq!(published(&world).await.len(), 1);
    }
}

/// D: a certificate for the trail whose private key cannot be opened, and a tenant's that cannot be read, are logged
/// once; changes continue, signed by a key that every entry names.
async fn a_broken_certificate_is_reported(engine: Engine) {
    let database = Arc::new(Database::create(engine));
    let mut server = Process::start(&database, &[]).await;
    let stores = "/api/management/v2/CertStore";
    let (trail, key) = body(&PKCS_ECDSA_P256_SHA256, 2080, &json!({ "certType": "AuditTrailSigning" }));
    let trail = server.admin.post(stores, trail).await.is(201).json();
    let tenant = server.admin.get("/api/management/v2/Tenant").await.is(200).json()[0].clone();
    let more = json!({ "certType": "OidcTokenSigning", "applyToTenantId": tenant["id"] });
    let tokens = server.admin.post(stores, body(&PKCS_ECDSA_P256_SHA256, 2080, &more).0).await.is(201).json();
    assert!(server.stop());
    let text = "UPDATE cert_store SET private_key = substr(private_key, 1, length(private_key) - 4) || 'AAAA' \
        WHERE cert_type = 'AuditTrailSigning'";
    let unreadable = "UPDATE cert_store SET certificate = ?1 WHERE cert_type = 'OidcTokenSigning'";
    let store = crate::secrets::store(&database).await;
    let broken = store.run("Test", Mode::Write, None, move |tx| {
        raw::queue(tx, text, vec![])?;
        raw::queue(tx, unreadable, vec![Value::Bytes(vec![7; 60])])
    });
    broken.await.map_err(|error: Error| error.to_string()).unwrap();
    store.close();
    let server = Process::start(&database, &[]).await;
    let log_lines = |id: &Json, what: &str| {
        let log = std::fs::read_to_string(&server.log).unwrap();
        log.lines().filter(|line| line.contains(id.as_str().unwrap()) && line.contains(what)).count()
    };
    let customers = "/api/management/v2/Customer";
    for name in ["a", "b", "c"] {
        server.admin.post(customers, json!({ "name": name })).await.expect(201);
        // a new epoch, at which the certificates are checked again
        let more = json!({ "name": name, "subscriptionId": tenant["subscriptionId"] });
        server.admin.post("/api/management/v2/Tenant", more).await.expect(201);
        let form = format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}");
        Client::anonymous(&server.base).ask_for_token(&form).await.expect(200);
    }
    let metrics =
        async || String::from_utf8(server.admin.get("/metrics").await.is(200).bytes.to_vec()).unwrap();
    let last_check = async || -> i64 {
        let text = metrics().await;
        let line = "chancery_job_last_success_time_seconds{job=\"certify\"} ";
        text.lines().find_map(|text| text.strip_prefix(line)).unwrap_or("0").parse().unwrap()
    };
    // the job runs every second
    let before = last_check().await;
    for _ in 0..200 {
        if last_check().await > before + 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(last_check().await > before + 1);
    let entries = server
        .admin
        .get("/api/management/v2/CustomAuditTrail?sortOrder=descending&count=1")
        .await
        .is(200)
        .json();
    let info = BASE64_STANDARD.encode(key.subject_public_key_info());
    assert_ne!(entries[0]["signaturePublicKeyInfo"], info);
    let metrics = metrics().await;
    assert!(metrics.contains("\nchancery_audit_certificates_broken 1\n"), "{metrics}");
    assert_eq!(log_lines(&trail["id"], "cannot be opened"), 1);
    assert_eq!(log_lines(&tokens["id"], "cannot be read"), 1);
}

#[tokio::test]
async fn a_broken_certificate_is_reported_sqlite() {
    a_broken_certificate_is_reported(Engine::Sqlite).await;
}

#[tokio::test]
async fn a_broken_certificate_is_reported_postgres() {
    a_broken_certificate_is_reported(Engine::Postgres).await;
}

/// A server signs with the certificate from its first entry on.
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
