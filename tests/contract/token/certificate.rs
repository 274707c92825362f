//! Tokens are signed by certificates of the cert store, selected by their issuer.

use chancery_testkit::{Client, World, on_both_engines};
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};
use serde_json::{Map, Value, json};

use super::{USERS, app, make_system_admin, post, read, request_token, secret, token};
use crate::{
    certificate::{UploadedCertificate, body, upload},
    id,
    signer::Signer,
};

async fn drop_store(world: &World, uploaded: &UploadedCertificate) {
    world.admin.delete(&format!("/api/management/v2/CertStore/{}", id(&uploaded.store))).await.expect(204);
}

/// The key set of an issuer, by the path that its URL ends with.
async fn keys(world: &World, issuer: &str) -> Vec<Value> {
    let keys = world.anonymous.get(&format!("{issuer}/.well-known/jwks.json")).await.is(200).json();
    keys["keys"].as_array().unwrap().clone()
}

fn header(token: &str) -> Map<String, Value> {
    read(token).0
}

/// The token's key as the issuer publishes it.
async fn published(world: &World, issuer: &str, token: &str) -> Option<Value> {
    keys(world, issuer).await.into_iter().find(|key| key["kid"] == header(token)["kid"])
}

fn caller(world: &World, token: &str) -> Client {
    world.anonymous.with_token(token)
}

on_both_engines! {
    /// - Effect of `CertStore.applyToSubscriptionId`: The certificate signs for the tenants of this subscription.
    /// - Effect of `CertStore.certificate`: Its key signs, and its facts are shown.
    async fn the_most_specific_and_longest_valid_certificate_signs(world: World) {
        let own = app(&world, "own", json!({})).await;
        let key = secret(&world, &own).await;
        make_system_admin(&world, &own).await;
        let tenants = world.all("Tenant").await;
        let path = format!("/t/{}", id(&tenants[0]));
        let request_token = async || {
            let form = [("grant_type", "client_credentials"), ("client_id", id(&own)), ("client_secret", &key)];
            token(&post(&world, &format!("{path}/connect/token"), &[], &form).await.is(200))
        };
        let relation = format!("/api/management/v2/ClientApp/{}/tenants", id(&own));
        world.admin.post(&relation, json!({ "relatedIds": [tenants[0]["id"]] })).await.expect(202);
        let first = request_token().await;
        assert!(header(&first).get("x5t#S256").is_none());
        let default = json!({ "certType": "Default" });
        let of = |member: &str, id: &Value| json!({ "certType": "OidcTokenSigning", member: id });
        let subscription = of("applyToSubscriptionId", &own["subscriptionId"]);
        let tenant = of("applyToTenantId", &tenants[0]["id"]);
        upload(&world, &PKCS_ECDSA_P256_SHA256, 2021, default.clone()).await;
        assert_eq!(header(&request_token().await)["kid"], header(&first)["kid"], "one that is over signs nothing");
        let mut before = Vec::new();
        for (kind, algorithm, until, target) in [
            (&PKCS_ECDSA_P256_SHA256, "ES256", 2080, &default),
            (&PKCS_ECDSA_P384_SHA384, "ES384", 2081, &default),
            (&PKCS_ED25519, "EdDSA", 2040, &subscription),
            (&PKCS_ECDSA_P384_SHA384, "ES384", 2041, &subscription),
            (&PKCS_ECDSA_P256_SHA256, "ES256", 2030, &tenant),
            (&PKCS_ED25519, "EdDSA", 2031, &tenant),
        ] {
            let uploaded = upload(&world, kind, until, target.clone()).await;
            let signed = request_token().await;
            let public = published(&world, &path, &signed).await.unwrap();
            assert_eq!((&public["alg"], &header(&signed)["alg"]), (&json!(algorithm), &json!(algorithm)));
            assert_eq!(public["x5t#S256"], header(&signed)["x5t#S256"]);
            assert!(public["x5t#S256"].is_string() && public.get("d").is_none());
            before.push((uploaded, signed));
        }
        let last = header(&before[5].1)["kid"].clone();
        upload(&world, &PKCS_ECDSA_P256_SHA256, 2030, tenant).await;
        assert_eq!(header(&request_token().await)["kid"], last, "the longest validity wins");
        // tokens that were signed before remain valid
        caller(&world, &first).get(USERS).await.expect(200);
        for (_, token) in &before {
            caller(&world, token).get(USERS).await.expect(200);
        }
        // another client app, of other tenants and subscriptions, gets the default certificate
        let other_subscription = world.other_subscription("elsewhere").await;
        let far = app(&world, "far", json!({ "subscriptionId": other_subscription })).await;
        let far_key = secret(&world, &far).await;
        let far_token = token(&super::request_token(&world, &far, &far_key, &[]).await.is(200));
        assert_eq!(header(&far_token)["kid"], header(&before[1].1)["kid"]);
        // deleting a certificate invalidates its tokens at once
        drop_store(&world, &before[5].0).await;
        caller(&world, &before[5].1).get(USERS).await.expect(401);
        assert!(published(&world, &path, &before[5].1).await.is_none());
        assert_ne!(header(&request_token().await)["kid"], last);
        let metrics = world.admin.get("/metrics").await.is(200);
        let text = String::from_utf8_lossy(&metrics.bytes).into_owned();
        let end = text.lines().find(|line| line.starts_with("chancery_signing_certificate_end_time_seconds")).unwrap();
        let end: i64 = end.rsplit(' ').next().unwrap().parse().unwrap();
        assert!((1_924_900_000..1_925_000_000).contains(&end), "the tenant's, at the end of 2030: {end}");
    }

    /// B5, section 15: a certificate that ends in 9999 ends in 9999, and signs until then.
    async fn a_certificate_that_never_expires_signs(world: World) {
        let own = app(&world, "own", json!({})).await;
        let key = secret(&world, &own).await;
        make_system_admin(&world, &own).await;
        let uploaded = upload(&world, &PKCS_ECDSA_P256_SHA256, 9999, json!({ "certType": "Default" })).await;
        assert_eq!(uploaded.store["validTo"], "9999-12-31T23:59:59.000Z");
        let path = format!("/api/management/v2/CertStore/{}", id(&uploaded.store));
        assert_eq!(world.admin.get(&path).await.is(200).json(), uploaded.store);
        let filter = crate::encode("validTo eq \"9999-12-31T23:59:59Z\"");
        assert_eq!(world.all(&format!("CertStore?filter={filter}")).await[0]["id"], uploaded.store["id"]);
        let signed = token(&request_token(&world, &own, &key, &[]).await.is(200));
        assert!(header(&signed)["x5t#S256"].is_string());
        assert!(published(&world, "", &signed).await.is_some());
        caller(&world, &signed).get(USERS).await.expect(200);
    }

    /// However many certificates one tenant has, those of others sign.
    async fn many_certificates_of_one_tenant_do_not_displace_others(world: World) {
        let own = app(&world, "own", json!({})).await;
        make_system_admin(&world, &own).await;
        let key = secret(&world, &own).await;
        upload(&world, &PKCS_ECDSA_P256_SHA256, 2030, json!({ "certType": "Default" })).await;
        let signed = token(&request_token(&world, &own, &key, &[]).await.is(200));
        let tenant = world.all("Tenant").await[0]["id"].clone();
        let target = json!({ "certType": "OidcTokenSigning", "applyToTenantId": tenant });
        let many: Vec<Value> = (0..1001).map(|_| body(&PKCS_ECDSA_P256_SHA256, 2090, &target).0).collect();
        world.admin.post("/api/management/v2/CertStore/batch", json!(many)).await.expect(200);
        let again = token(&request_token(&world, &own, &key, &[]).await.is(200));
        assert_eq!(header(&again)["kid"], header(&signed)["kid"]);
        caller(&world, &signed).get(USERS).await.expect(200);
        assert!(keys(&world, "").await.len() <= 3);
        assert!(keys(&world, &format!("/t/{}", tenant.as_str().unwrap())).await.len() <= 23);
    }

    /// The owner of an uploaded certificate knows its private key.
    async fn the_owner_of_a_certificate_cannot_forge_tokens(world: World) {
        let uploaded = upload(&world, &PKCS_ECDSA_P256_SHA256, 2080, json!({ "certType": "Default" })).await;
        let own = app(&world, "own", json!({})).await;
        let key = secret(&world, &own).await;
        let real = token(&request_token(&world, &own, &key, &[]).await.is(200));
        let (header, mut claims) = read(&real);
        let forger = Signer::from_pkcs8(&uploaded.key.serialize_der());
        let forge = |claims: &Map<String, Value>| forger.sign(&header.clone().into(), &claims.clone().into());
        caller(&world, &forge(&claims)).get(USERS).await.expect(403);
        let root = world.all(&format!("ClientApp?filter={}", crate::encode("name eq \"root\""))).await;
        for member in ["sub", "client_id"] {
            claims[member] = root[0]["id"].clone();
            caller(&world, &forge(&claims)).get(USERS).await.problem(401, "unauthorized");
        }
        claims.insert("jti".into(), json!("made up"));
        caller(&world, &forge(&claims)).get(USERS).await.problem(401, "unauthorized");
        let (_, mut claims) = read(&real);
        claims.insert("exp".into(), json!(crate::signer::now() + 1_000_000));
        caller(&world, &forge(&claims)).get(USERS).await.problem(401, "unauthorized");
    }
}
