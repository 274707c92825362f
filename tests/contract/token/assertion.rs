//! Client authentication, by the one configured method.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::{Answer, World, on_both_engines};
use serde_json::{Value, json};

use super::{app, assert_oauth_error, configure, post, request_token, secret};
use crate::{
    id,
    signer::{Signer, assert_with_secret, claims, encode, fresh, now},
};

const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

async fn basic(world: &World, app: &Value, secret: &str) -> Answer {
    let header = format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{secret}", id(app))));
    post(world, "/connect/token", &[("authorization", &header)], &[("grant_type", "client_credentials")])
        .await
}

pub async fn present(world: &World, assertion: &str) -> Answer {
    let form = [
        ("grant_type", "client_credentials"),
        ("client_assertion_type", TYPE),
        ("client_assertion", assertion),
    ];
    post(world, "/connect/token", &[], &form).await
}

pub async fn key_set(world: &World, app: &Value, name: &str, more: Value) -> Value {
    let mut body = json!({ "clientAppId": app["id"], "name": name, "use": "Signing", "status": "Active" });
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    world.make("ClientAppKeySet", body).await
}

on_both_engines! {
    /// - Effect of `ClientAppAuthenticationConfiguration.tokenEndpointAuthMethod`: The app authenticates by this method, and by no other.
    async fn secrets_are_accepted_only_by_the_configured_method(world: World) {
        let free = app(&world, "free", json!({})).await;
        let value = secret(&world, &free).await;
        basic(&world, &free, &value).await.expect(200);
        request_token(&world, &free, &value, &[]).await.expect(200);
        let strict = app(&world, "strict", json!({})).await;
        let value = secret(&world, &strict).await;
        configure(&world, &strict, "client_secret_basic", json!({})).await;
        basic(&world, &strict, &value).await.expect(200);
        assert_oauth_error(request_token(&world, &strict, &value, &[]).await, 401, "invalid_client");
        let posting = app(&world, "posting", json!({})).await;
        let value = secret(&world, &posting).await;
        configure(&world, &posting, "client_secret_post", json!({})).await;
        request_token(&world, &posting, &value, &[]).await.expect(200);
        assert_oauth_error(basic(&world, &posting, &value).await, 401, "invalid_client");
        let header = format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{value}", id(&posting))));
        let both = [("grant_type", "client_credentials"), ("client_secret", value.as_str())];
        assert_oauth_error(post(&world, "/connect/token", &[("authorization", &header)], &both).await, 400, "invalid_request");
    }

    /// ClientAppFederatedIdentity: a token of its issuer does not authenticate the app, whatever key signed it.
    ///
    /// - Refusal of `ClientAppFederatedIdentity.audience`: Tokens of other issuers do not authenticate the app yet: they are refused.
    /// - Refusal of `ClientAppFederatedIdentity.issuer`: Tokens of other issuers do not authenticate the app yet: they are refused.
    /// - Refusal of `ClientAppFederatedIdentity.subject`: Tokens of other issuers do not authenticate the app yet: they are refused.
    async fn a_federated_identity_does_not_authenticate_the_app(world: World) {
        let federated = app(&world, "federated", json!({})).await;
        let (issuer, subject) = ("https://issuer.example", "repo:harbour/ledger");
        let identity = json!({
            "clientAppId": federated["id"], "name": "pipeline", "issuer": issuer, "subject": subject,
            "audience": format!("{}/connect/token", world.base),
        });
        world.make("ClientAppFederatedIdentity", identity).await;
        let foreign = Signer::new("foreign");
        let token = foreign.assert(&claims(&world, &federated, json!({ "iss": issuer, "sub": subject })));
        let response = present(&world, &token).await.is(401).json();
        assert_eq!(response["error"], "invalid_client");
        assert!(response["error_description"].as_str().unwrap().contains("tokens of other issuers"), "{response}");
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", id(&federated)),
            ("client_assertion_type", TYPE),
            ("client_assertion", token.as_str()),
        ];
        assert_oauth_error(post(&world, "/connect/token", &[], &form).await, 401, "invalid_client");
    }

    async fn public_client_apps_get_no_tokens_of_their_own(world: World) {
        let public = app(&world, "public", json!({ "isPublic": true, "allowClientCredentialLogin": false })).await;
        let form = [("grant_type", "client_credentials"), ("client_id", id(&public))];
        assert_oauth_error(post(&world, "/connect/token", &[], &form).await, 400, "unauthorized_client");
        let confidential = app(&world, "confidential", json!({})).await;
        let form = [("grant_type", "client_credentials"), ("client_id", id(&confidential))];
        assert_oauth_error(post(&world, "/connect/token", &[], &form).await, 401, "invalid_client");
        post(&world, "/connect/introspect", &[], &[("client_id", id(&public)), ("token", "x")]).await.expect(401);
    }

    async fn an_assertion_may_be_signed_with_the_secret(world: World) {
        let signing = app(&world, "signing", json!({})).await;
        configure(&world, &signing, "client_secret_jwt", json!({})).await;
        let value = secret(&world, &signing).await;
        let good = assert_with_secret(value.as_bytes(), &claims(&world, &signing, json!({})));
        present(&world, &good).await.expect(200);
        assert_oauth_error(present(&world, &good).await, 401, "invalid_client");
        // the secret itself is no longer accepted, nor another's
        assert_oauth_error(request_token(&world, &signing, &value, &[]).await, 401, "invalid_client");
        for (key, more) in [
            (&b"another secret that is as long as it has to be"[..], json!({})),
            (value.as_bytes(), json!({ "exp": now() - 120, "iat": now() - 300 })),
            (value.as_bytes(), json!({ "aud": "https://elsewhere.example.com" })),
            (value.as_bytes(), json!({ "sub": "root" })),
            (value.as_bytes(), json!({ "jti": null })),
        ] {
            let assertion = assert_with_secret(key, &claims(&world, &signing, more));
            assert_oauth_error(present(&world, &assertion).await, 401, "invalid_client");
        }
        let expiry = json!({ "expiry": "2020-01-01T00:00:00Z" });
        let secrets_of_app = world.all(&format!("ClientAppSecret/clientapp/{}", id(&signing))).await;
        let mut patch = expiry;
        patch["concurrencyToken"] = secrets_of_app[0]["concurrencyToken"].clone();
        world.admin.patch(&format!("/api/management/v2/ClientAppSecret/{}", id(&secrets_of_app[0])), patch).await.expect(202);
        let expired = assert_with_secret(value.as_bytes(), &claims(&world, &signing, json!({})));
        assert_oauth_error(present(&world, &expired).await, 401, "invalid_client");
    }

    /// `aud` is the issuer, its token endpoint, or the endpoint that the assertion is sent to (RFC 7523, section 3; RFC 9126,
    /// section 2).
    async fn an_assertion_is_accepted_only_for_its_audience(world: World) {
        let signing = app(&world, "signing", json!({ "allowDeviceAuthorizationGrant": true, "allowUserLogin": true })).await;
        configure(&world, &signing, "private_key_jwt", json!({})).await;
        let own = Signer::new("own");
        key_set(&world, &signing, "own", json!({ "jwks": own.jwks() })).await;
        let paths = ["/connect/token", "/connect/deviceauthorization", "/connect/introspect", "/connect/revoke"];
        for path in paths {
            let is_accepted = async |audience: Value| {
                let assertion = own.assert(&claims(&world, &signing, json!({ "aud": audience })));
                let form = [
                    ("grant_type", "client_credentials"),
                    ("token", "x"),
                    ("client_assertion_type", TYPE),
                    ("client_assertion", assertion.as_str()),
                ];
                let answer = post(&world, path, &[], &form).await;
                // the app is not assigned to a tenant, so that device authorization fails after the authentication
                answer.status != 401
            };
            let at = |path: &str| format!("{}{path}", world.base);
            for good in [json!(world.base), json!(at("/connect/token")), json!(at(path)), json!([at(path)])] {
                assert!(is_accepted(good.clone()).await, "{good} at {path}");
            }
            for other in paths.into_iter().filter(|other| *other != path && *other != "/connect/token") {
                assert!(!is_accepted(json!(at(other))).await, "{other} at {path}");
            }
            assert!(!is_accepted(json!(at("/connect"))).await && !is_accepted(json!(at(&format!("{path}/")))).await, "{path}");
        }
    }

    /// - Effect of `ClientAppKeySet.clientAppId`: The key set belongs to this app.
    /// - Effect of `ClientAppKeySet.jwks`: These public keys verify what the app signs.
    async fn an_assertion_may_be_signed_with_a_key(world: World) {
        let signing = app(&world, "signing", json!({})).await;
        configure(&world, &signing, "private_key_jwt", json!({})).await;
        let (own, other) = (Signer::new("own"), Signer::new("own"));
        let set = key_set(&world, &signing, "own", json!({ "jwks": own.jwks() })).await;
        let good = own.assert(&claims(&world, &signing, json!({})));
        present(&world, &good).await.expect(200);
        assert_oauth_error(present(&world, &good).await, 401, "invalid_client");
        // the issuer is an audience, but names are no client ids
        let to_the_issuer = json!({ "aud": [world.base] });
        present(&world, &own.assert(&claims(&world, &signing, to_the_issuer))).await.expect(200);
        let by_name = json!({ "iss": "signing", "sub": "signing" });
        assert_oauth_error(present(&world, &own.assert(&claims(&world, &signing, by_name))).await, 401, "invalid_client");
        assert_oauth_error(present(&world, &other.assert(&claims(&world, &signing, json!({})))).await, 401, "invalid_client");
        // the public key is no HMAC secret, and an unsigned assertion is rejected
        let public = own.jwks();
        let confused = assert_with_secret(public.as_bytes(), &claims(&world, &signing, json!({})));
        assert_oauth_error(present(&world, &confused).await, 401, "invalid_client");
        let body = encode(claims(&world, &signing, json!({})).to_string().as_bytes());
        let none = format!("{}.{body}.", encode(br#"{"alg":"none"}"#));
        assert_oauth_error(present(&world, &none).await, 401, "invalid_client");
        let unknown = own.assert(&claims(&world, &json!({ "id": fresh() }), json!({})));
        assert_oauth_error(present(&world, &unknown).await, 401, "invalid_client");
        let foreign = own.sign(&json!({ "alg": "ES256", "typ": "at+jwt" }), &claims(&world, &signing, json!({})));
        assert_oauth_error(present(&world, &foreign).await, 401, "invalid_client");
        // Active, Retiring, no more
        let path = format!("/api/management/v2/ClientAppKeySet/{}", id(&set));
        let mut current = set;
        for (status, answer) in [("Retiring", 200), ("Retired", 401)] {
            let patch = json!({ "status": status, "concurrencyToken": current["concurrencyToken"] });
            current = world.admin.patch(&path, patch).await.is(202).json();
            present(&world, &own.assert(&claims(&world, &signing, json!({})))).await.expect(answer);
        }
        world.sql(vec![("UPDATE client_app SET enabled = FALSE WHERE name = 'signing'", vec![])]).await;
        key_set(&world, &signing, "next", json!({ "jwks": own.jwks() })).await;
        assert_oauth_error(present(&world, &own.assert(&claims(&world, &signing, json!({})))).await, 401, "invalid_client");
        world.sql(vec![("UPDATE client_app SET enabled = TRUE WHERE name = 'signing'", vec![])]).await;
        present(&world, &own.assert(&claims(&world, &signing, json!({})))).await.expect(200);
    }

    /// - Effect of `ClientAppKeySet.algorithm`: The keys are used with this algorithm only.
    /// - Effect of `ClientAppKeySet.kid`: Only the key with this id is used.
    /// - Effect of `ClientAppKeySet.status`: Only keys that are active or retiring are used.
    /// - Effect of `ClientAppKeySet.use`: Keys for signing verify what the app signs; keys for encryption do not.
    /// - Effect of `ClientAppKeySet.validFrom`: The keys are not used before this time.
    /// - Effect of `ClientAppKeySet.validTo`: The keys are not used from this time on.
    async fn key_sets_are_used_by_their_status_and_validity(world: World) {
        let own = Signer::new("own");
        for (name, members, answer) in [
            ("pending", json!({ "status": "Pending" }), 401),
            ("retiring", json!({ "status": "Retiring" }), 200),
            ("retired", json!({ "status": "Retired" }), 401),
            ("revoked", json!({ "status": "Revoked" }), 401),
            ("early", json!({ "validFrom": "2099-01-01T00:00:00Z" }), 401),
            ("late", json!({ "validTo": "2020-01-01T00:00:00Z" }), 401),
            ("encryption", json!({ "use": "Encryption" }), 401),
            ("algorithm", json!({ "algorithm": "ES384" }), 401),
            ("id", json!({ "kid": "next", "jwks": Signer::new("next").jwks() }), 401),
            ("window", json!({ "validFrom": "2020-01-01T00:00:00Z", "validTo": "2099-01-01T00:00:00Z" }), 200),
            ("all", json!({ "kid": "own", "algorithm": "ES256" }), 200),
        ] {
            let signing = app(&world, name, json!({})).await;
            configure(&world, &signing, "private_key_jwt", json!({})).await;
            let mut body = members;
            if body.get("jwks").is_none() {
                body["jwks"] = json!(own.jwks());
            }
            key_set(&world, &signing, name, body).await;
            let response = present(&world, &own.assert(&claims(&world, &signing, json!({})))).await;
            assert_eq!(response.status.as_u16(), answer, "{name}");
        }
        // addresses in the server's own network are not requested
        let far = app(&world, "far", json!({})).await;
        configure(&world, &far, "private_key_jwt", json!({})).await;
        key_set(&world, &far, "far", json!({ "jwksUri": "https://127.0.0.1:9/jwks" })).await;
        assert_oauth_error(present(&world, &own.assert(&claims(&world, &far, json!({})))).await, 401, "invalid_client");
    }

    /// - Effect of `ClientAppKeySet.certificate`: The key of this certificate verifies what the app signs.
    async fn an_assertion_may_be_signed_with_the_key_of_a_certificate(world: World) {
        let signing = app(&world, "signing", json!({})).await;
        configure(&world, &signing, "private_key_jwt", json!({})).await;
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap();
        let data = BASE64_STANDARD.encode(certificate.der());
        key_set(&world, &signing, "certificate", json!({ "certificate": data })).await;
        let own = Signer::from_pkcs8(&key.serialize_der());
        present(&world, &own.assert(&claims(&world, &signing, json!({})))).await.expect(200);
        let other = Signer::new("other");
        assert_oauth_error(present(&world, &other.assert(&claims(&world, &signing, json!({})))).await, 401, "invalid_client");
    }
}

on_both_engines! {
    /// Section 15, outbound calls: keys at an address in the server's own network are not fetched, whatever its form, and
    /// the token endpoint says no more than for a wrong key.
    async fn keys_at_a_private_address_are_not_fetched(world: World) {
        let own = Signer::new("own");
        let wrong = app(&world, "wrong", json!({})).await;
        configure(&world, &wrong, "private_key_jwt", json!({})).await;
        key_set(&world, &wrong, "wrong", json!({ "jwks": Signer::new("another").jwks() })).await;
        let expected = present(&world, &own.assert(&claims(&world, &wrong, json!({})))).await.is(401).json();
        assert_eq!(expected["error"], "invalid_client");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for (name, host) in [("v4", "127.0.0.1"), ("name", "localhost"), ("mapped", "[::ffff:127.0.0.1]"), ("any", "0.0.0.0")] {
            let far = app(&world, name, json!({})).await;
            configure(&world, &far, "private_key_jwt", json!({})).await;
            key_set(&world, &far, name, json!({ "jwksUri": format!("https://{host}:{port}/jwks") })).await;
            let answer = present(&world, &own.assert(&claims(&world, &far, json!({})))).await.is(401).json();
            assert_eq!(answer, expected, "{host}");
        }
        let no_wait = std::time::Duration::ZERO;
        assert!(tokio::time::timeout(no_wait, listener.accept()).await.is_err(), "nobody was connected to");
    }
}

on_both_engines! {
    [crate::signing::calling_this_machine]
    /// FAPI 2.0 Security Profile, section 5.3.2.1: the issuer, as a text. Another server that takes assertions by their token
    /// endpoint cannot use them here.
    async fn an_assertion_of_a_fapi_2_app_must_name_only_the_issuer(world: World) {
        let signing = app(&world, "signing", json!({})).await;
        configure(&world, &signing, "private_key_jwt", json!({})).await;
        let own = Signer::new("own");
        key_set(&world, &signing, "own", json!({ "jwks": own.jwks() })).await;
        let present_for = async |audience: Value| {
            present(&world, &own.assert(&claims(&world, &signing, json!({ "aud": audience })))).await
        };
        let token_endpoint = json!(format!("{}/connect/token", world.base));
        present_for(token_endpoint.clone()).await.expect(200);
        let profile = "UPDATE client_app SET security_profile = 'Fapi2SecurityProfile' WHERE name = 'signing'";
        world.sql(vec![(profile, vec![])]).await;
        for audience in [token_endpoint, json!([world.base])] {
            assert_oauth_error(present_for(audience).await, 401, "invalid_client");
        }
        present_for(json!(world.base)).await.expect(200);
    }

    /// "Also": `jwksUri` is fetched only for an assertion with a valid `aud`, `iss` and `exp`.
    ///
    /// - Effect of `ClientAppKeySet.jwksUri`: The server fetches the public keys of the app from this address.
    async fn keys_are_fetched_only_for_assertions_for_this_server(world: World) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let far = app(&world, "far", json!({})).await;
        configure(&world, &far, "private_key_jwt", json!({})).await;
        key_set(&world, &far, "far", json!({ "jwksUri": format!("https://{address}/jwks") })).await;
        let own = Signer::new("own");
        for wrong in [
            json!({ "aud": "https://elsewhere.example.com" }),
            json!({ "exp": now() - 120, "iat": now() - 300 }),
            json!({ "iss": "somebody" }),
            json!({ "iat": now() + 120, "exp": now() + 180 }),
        ] {
            assert_oauth_error(present(&world, &own.assert(&claims(&world, &far, wrong))).await, 401, "invalid_client");
        }
        let no_wait = std::time::Duration::ZERO;
        assert!(tokio::time::timeout(no_wait, listener.accept()).await.is_err(), "nobody asked for keys");
        let accepted = chancery_testkit::spawn(async move { listener.accept().await.map(drop) });
        assert_oauth_error(present(&world, &own.assert(&claims(&world, &far, json!({})))).await, 401, "invalid_client");
        tokio::time::timeout(chancery_testkit::PATIENCE, accepted).await.unwrap().unwrap().unwrap();
    }
}
