//! Constraints across a client app, its authentication configuration and its redirect URIs: they never
//! contradict each other, whichever of them is written.

use std::collections::BTreeSet;

use chancery_testkit::{Answer, World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use super::{BASE, one};
use crate::pointers;

const APP: &str = "ClientApp";
const CONFIGURATION: &str = "ClientAppAuthenticationConfiguration";
const URI: &str = "ClientAppRedirectUri";

/// The members of a refusal's errors: of their pointers, or the contradicted one in their details.
fn error_members(answer: Answer) -> BTreeSet<String> {
    let problem = answer.problem(400, "invalid-request");
    let member = |error: &Value| {
        let at = error["pointer"].as_str().unwrap().rsplit('/').next().unwrap();
        let detail = error["detail"].as_str().unwrap();
        let other = detail.strip_prefix("contradicts ").and_then(|rest| rest.split_once(':'));
        other.map_or(at, |(member, _)| member).to_owned()
    };
    problem["errors"].as_array().unwrap().iter().map(member).collect()
}

fn members_of(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

async fn create(world: &World, resource: &str, body: Value) -> Answer {
    world.admin.post(&format!("{BASE}/{resource}"), body).await
}

/// Patches with the current concurrencyToken; null clears.
async fn change(world: &World, path: &str, mut body: Value) -> Answer {
    let now = world.admin.get(path).await.is(200).json();
    body["concurrencyToken"] = now["concurrencyToken"].clone();
    let headers = [("content-type", "application/merge-patch+json")];
    world.admin.send(Method::PATCH, path, &headers, body.to_string().into_bytes()).await
}

/// Asserts that changes of a client app or of its configuration are refused, with these members.
async fn assert_refused(world: &World, app: &Value, changes: &[(&str, Value, &str)]) {
    for (resource, body, members) in changes {
        let refused = change(world, &one(resource, app), body.clone()).await;
        assert_eq!(error_members(refused), members_of(members), "{resource} {body}");
    }
}

/// Asserts that changes are accepted.
async fn assert_accepted(world: &World, app: &Value, changes: &[(&str, Value)]) {
    for (resource, body) in changes {
        change(world, &one(resource, app), body.clone()).await.expect(202);
    }
}

/// Creates a client app that has a security profile.
async fn app_with_profile(world: &World, profile: &str, mut app: Value, mut configuration: Value) -> Value {
    app["name"] = json!(profile);
    let app = world.make(APP, app).await;
    configuration["clientAppId"] = app["id"].clone();
    world.make(CONFIGURATION, configuration).await;
    let updated = change(world, &one(APP, &app), json!({ "securityProfile": profile })).await.is(202).json();
    assert_eq!(updated["securityProfile"], profile);
    app
}

fn redirect(app: &Value, uri: &str) -> Value {
    json!({ "clientAppId": app["id"], "uri": uri })
}

on_both_engines! {
    async fn contradictory_client_app_fields_are_refused(world: World) {
        for (more, members) in [
            (json!({ "isPublic": true, "allowClientCredentialLogin": true }), "allowClientCredentialLogin"),
            (json!({ "idTokenEncryptedResponseEnc": "A128GCM" }), "idTokenEncryptedResponseEnc"),
            (json!({ "userinfoEncryptedResponseEnc": "A256GCM" }), "userinfoEncryptedResponseEnc"),
            (
                json!({ "introspectionEncryptedResponseEnc": "A128CBC-HS256" }),
                "introspectionEncryptedResponseEnc",
            ),
            (json!({ "requestObjectEncryptionEnc": "A256CBC-HS512" }), "requestObjectEncryptionEnc"),
            (
                json!({ "subjectType": "Pairwise", "sectorIdentifierUri": "http://app.example/s" }),
                "sectorIdentifierUri",
            ),
        ] {
            let mut body = more.clone();
            body["name"] = json!("refused");
            assert_eq!(error_members(create(&world, APP, body).await), members_of(members), "{more}");
        }
        assert_eq!(world.all("ClientApp?filter=name%20eq%20%22refused%22").await, json!([]));
        let app = world.make(APP, json!({ "name": "good", "idTokenEncryptedResponseAlg": "ECDH-ES" })).await;
        assert_refused(
            &world,
            &app,
            &[
                (
                    APP,
                    json!({ "isPublic": true, "allowClientCredentialLogin": true }),
                    "allowClientCredentialLogin",
                ),
                (APP, json!({ "idTokenEncryptedResponseAlg": null }), "idTokenEncryptedResponseEnc"),
                (APP, json!({ "userinfoEncryptedResponseEnc": "A256GCM" }), "userinfoEncryptedResponseEnc"),
            ],
        )
        .await;
        // a PUT without the one clears it, while the other is set
        let token = &app["concurrencyToken"];
        let put =
            json!({ "name": "good", "idTokenEncryptedResponseEnc": "A128GCM", "concurrencyToken": token });
        assert_eq!(error_members(world.admin.put(&one(APP, &app), put).await), members_of("idTokenEncryptedResponseEnc"));
        assert_eq!(world.admin.get(&one(APP, &app)).await.is(200).json(), app);
        let both = json!({ "idTokenEncryptedResponseAlg": null, "idTokenEncryptedResponseEnc": null });
        assert_accepted(&world, &app, &[(APP, both)]).await;
    }

    async fn a_public_client_app_has_no_credentials(world: World) {
        let phone = world.make(APP, json!({ "name": "phone", "isPublic": true })).await;
        for method in [json!(null), json!("client_secret_post"), json!("private_key_jwt")] {
            let body = json!({ "clientAppId": phone["id"], "tokenEndpointAuthMethod": method });
            assert_eq!(
                error_members(create(&world, CONFIGURATION, body).await),
                members_of("tokenEndpointAuthMethod"),
                "{method}"
            );
        }
        let none = json!({ "clientAppId": phone["id"], "tokenEndpointAuthMethod": "none" });
        world.make(CONFIGURATION, none).await;
        assert_refused(
            &world,
            &phone,
            &[
                (APP, json!({ "isPublic": false }), "tokenEndpointAuthMethod"),
                (APP, json!({ "allowClientCredentialLogin": true }), "allowClientCredentialLogin"),
                (
                    CONFIGURATION,
                    json!({ "tokenEndpointAuthMethod": "client_secret_basic" }),
                    "tokenEndpointAuthMethod",
                ),
            ],
        )
        .await;
        let shop = world.make(APP, json!({ "name": "shop", "allowClientCredentialLogin": true })).await;
        let none = json!({ "clientAppId": shop["id"], "tokenEndpointAuthMethod": "none" });
        assert_eq!(error_members(create(&world, CONFIGURATION, none).await), members_of("tokenEndpointAuthMethod"));
        assert_refused(&world, &shop, &[(APP, json!({ "isPublic": true }), "allowClientCredentialLogin")]).await;
        let public = json!({ "isPublic": true, "allowClientCredentialLogin": false });
        assert_accepted(&world, &shop, &[(APP, public)]).await;
    }

    async fn contradictory_configuration_fields_are_refused(world: World) {
        let shop = world.make(APP, json!({ "name": "shop" })).await;
        let tls = "tls_client_auth";
        for (more, members) in [
            (json!({ "requireDpopNonce": true }), "requireDpopNonce"),
            (json!({ "tokenEndpointAuthMethod": tls }), "tlsClientAuthSubjectDn"),
            (
                json!({
                    "tokenEndpointAuthMethod": tls,
                    "tlsClientAuthSanDns": "a.example", "tlsClientAuthSanUri": "https://a.example",
                }),
                "tlsClientAuthSanDns tlsClientAuthSanUri",
            ),
            (
                json!({
                    "tokenEndpointAuthMethod": tls, "tlsClientAuthSubjectDn": "CN=a.example",
                    "tlsClientAuthSanIp": "192.0.2.1", "tlsClientAuthSanEmail": "a@a.example",
                }),
                "tlsClientAuthSubjectDn tlsClientAuthSanIp tlsClientAuthSanEmail",
            ),
            (
                json!({
                    "tokenEndpointAuthMethod": "self_signed_tls_client_auth",
                    "tlsClientAuthSanDns": "a.example",
                }),
                "tlsClientAuthSanDns",
            ),
        ] {
            let mut body = more.clone();
            body["clientAppId"] = shop["id"].clone();
            assert_eq!(error_members(create(&world, CONFIGURATION, body).await), members_of(members), "{more}");
        }
        assert_eq!(world.all(CONFIGURATION).await, json!([]));
        // each of them alone is accepted
        for (member, value) in [
            ("tlsClientAuthSubjectDn", "CN=a.example"),
            ("tlsClientAuthSanUri", "https://a.example"),
            ("tlsClientAuthSanIp", "192.0.2.1"),
            ("tlsClientAuthSanEmail", "a@a.example"),
        ] {
            let app = world.make(APP, json!({ "name": member })).await;
            let body = json!({ "clientAppId": app["id"], "tokenEndpointAuthMethod": tls, member: value });
            world.make(CONFIGURATION, body).await;
        }
        let body = json!({
            "clientAppId": shop["id"], "tokenEndpointAuthMethod": tls, "tlsClientAuthSanDns": "a.example",
        });
        world.make(CONFIGURATION, body).await;
        assert_refused(
            &world,
            &shop,
            &[
                (
                    CONFIGURATION,
                    json!({ "tlsClientAuthSanUri": "https://a.example" }),
                    "tlsClientAuthSanDns tlsClientAuthSanUri",
                ),
                (CONFIGURATION, json!({ "tlsClientAuthSanDns": null }), "tlsClientAuthSubjectDn"),
                (
                    CONFIGURATION,
                    json!({ "tokenEndpointAuthMethod": "private_key_jwt" }),
                    "tlsClientAuthSanDns",
                ),
                (CONFIGURATION, json!({ "requireDpopNonce": true }), "requireDpopNonce"),
            ],
        )
        .await;
        assert_accepted(
            &world,
            &shop,
            &[
                (
                    CONFIGURATION,
                    json!({ "tlsClientAuthSanDns": null, "tlsClientAuthSubjectDn": "CN=a.example" }),
                ),
                (CONFIGURATION, json!({ "requireDpopNonce": true, "dpopBoundAccessTokens": true })),
            ],
        )
        .await;
        assert_refused(
            &world,
            &shop,
            &[(CONFIGURATION, json!({ "dpopBoundAccessTokens": false }), "requireDpopNonce")],
        )
        .await;
    }

    async fn a_configuration_without_a_client_app_is_refused(world: World) {
        let path = "ClientAppAuthenticationConfiguration/batch";
        let batch = json!([{ "tokenEndpointAuthMethod": "client_secret_post" }]);
        create(&world, path, batch).await.problem(400, "invalid-request");
    }

    /// A configuration has no id of its own, so it can be created again.
    async fn a_deleted_configuration_can_be_created_again(world: World) {
        let shop = world.make(APP, json!({ "name": "shop" })).await;
        for method in ["client_secret_post", "private_key_jwt", "client_secret_post"] {
            let body = json!({ "clientAppId": shop["id"], "tokenEndpointAuthMethod": method });
            world.make(CONFIGURATION, body).await;
            world.admin.delete(&one(CONFIGURATION, &shop)).await.expect(204);
            world.admin.get(&one(CONFIGURATION, &shop)).await.problem(404, "not-found");
        }
    }

    async fn redirect_uris_on_two_hosts_need_a_sector(world: World) {
        let app = world.make(APP, json!({ "name": "pairwise", "subjectType": "Pairwise" })).await;
        let left = json!({ "clientAppId": app["id"], "uri": "https://left.example/", "redirectUriType": "Logout" });
        world.make("ClientAppRedirectUri", left).await;
        world.make(URI, redirect(&app, "https://a.example/one")).await;
        let second = world.make(URI, redirect(&app, "https://A.example:8443/two")).await;
        let other = "https://b.example/";
        assert_eq!(error_members(create(&world, URI, redirect(&app, other)).await), members_of("sectorIdentifierUri"));
        let moved = change(&world, &one(URI, &second), json!({ "uri": other })).await;
        assert_eq!(error_members(moved), members_of("sectorIdentifierUri"));
        // the URIs of one request are checked together
        let empty = world.make(APP, json!({ "name": "empty", "subjectType": "Pairwise" })).await;
        let batch = json!([redirect(&empty, "https://a.example/"), redirect(&empty, other)]);
        let problem =
            create(&world, "ClientAppRedirectUri/batch", batch).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/1/uri"]);
        assert_eq!(world.all(URI).await.as_array().unwrap().len(), 3, "and where they are sent to at the end");
        // with a sector identifier, any host is accepted
        assert_accepted(&world, &app, &[(APP, json!({ "sectorIdentifierUri": "https://sector.example/uris" }))])
            .await;
        world.make(URI, redirect(&app, other)).await;
        assert_refused(&world, &app, &[(APP, json!({ "sectorIdentifierUri": null }), "sectorIdentifierUri")]).await;
    }

    async fn pairwise_subjects_need_a_sector(world: World) {
        let app = world.make(APP, json!({ "name": "public" })).await;
        for uri in ["https://a.example/", "https://b.example/"] {
            world.make(URI, redirect(&app, uri)).await;
        }
        assert_refused(&world, &app, &[(APP, json!({ "subjectType": "Pairwise" }), "sectorIdentifierUri")]).await;
        let sector = json!({ "subjectType": "Pairwise", "sectorIdentifierUri": "https://a.example/uris" });
        assert_accepted(&world, &app, &[(APP, sector)]).await;
        let now = world.admin.get(&one(APP, &app)).await.is(200).json();
        assert_eq!(now["subjectType"], "Pairwise");
        // a PUT without the sector identifier clears it
        let put = json!({ "name": "public", "concurrencyToken": now["concurrencyToken"] });
        assert_eq!(error_members(world.admin.put(&one(APP, &app), put).await), members_of("sectorIdentifierUri"));
        // a batch is refused as a whole
        let mut batch = now.clone();
        batch["sectorIdentifierUri"] = json!(null);
        let batch = world.admin.put(&format!("{BASE}/ClientApp/batch"), json!([batch])).await;
        assert_eq!(pointers(&batch.problem(400, "invalid-request")), ["/0/sectorIdentifierUri"]);
        assert_eq!(world.admin.get(&one(APP, &app)).await.is(200).json(), now);
    }

    /// A profile can be set only once its requirements are met.
    async fn a_profile_needs_its_configuration(world: World) {
        for (profile, members) in [
            (
                "Fapi1Advanced",
                "tokenEndpointAuthMethod requireCertificateBoundAccessTokens requestObjectSigningAlg",
            ),
            (
                "Fapi2SecurityProfile",
                "tokenEndpointAuthMethod dpopBoundAccessTokens requirePushedAuthorizationRequests",
            ),
            (
                "Fapi2MessageSigning",
                "tokenEndpointAuthMethod dpopBoundAccessTokens requirePushedAuthorizationRequests \
                 requestObjectSigningAlg",
            ),
        ] {
            let created = create(&world, APP, json!({ "name": profile, "securityProfile": profile })).await;
            assert_eq!(error_members(created), members_of(members), "{profile}");
            let app = world.make(APP, json!({ "name": profile })).await;
            assert_refused(&world, &app, &[(APP, json!({ "securityProfile": profile }), members)]).await;
        }
    }

    async fn fapi_1_advanced(world: World) {
        let app = json!({ "requestObjectSigningAlg": "PS256" });
        let configuration = json!({
            "tokenEndpointAuthMethod": "private_key_jwt", "requireCertificateBoundAccessTokens": true,
        });
        let app = app_with_profile(&world, "Fapi1Advanced", app, configuration).await;
        assert_refused(
            &world,
            &app,
            &[
                (APP, json!({ "isPublic": true }), "isPublic tokenEndpointAuthMethod"),
                (APP, json!({ "requestObjectSigningAlg": "RS256" }), "requestObjectSigningAlg"),
                (APP, json!({ "requestObjectSigningAlg": null }), "requestObjectSigningAlg"),
                (APP, json!({ "allowedResponseTypes": "code,code token" }), "allowedResponseTypes"),
                (
                    CONFIGURATION,
                    json!({ "tokenEndpointAuthMethod": "client_secret_basic" }),
                    "tokenEndpointAuthMethod",
                ),
                (
                    CONFIGURATION,
                    json!({ "requireCertificateBoundAccessTokens": false }),
                    "requireCertificateBoundAccessTokens",
                ),
            ],
        )
        .await;
        assert_accepted(
            &world,
            &app,
            &[
                (APP, json!({ "allowedResponseTypes": "code id_token,code" })),
                (APP, json!({ "requestObjectSigningAlg": "ES256" })),
                (CONFIGURATION, json!({ "tokenEndpointAuthMethod": "self_signed_tls_client_auth" })),
                (APP, json!({ "isNativeApplication": true })),
            ],
        )
        .await;
        world.make(URI, redirect(&app, "https://app.example/back")).await;
        for uri in ["http://localhost:5000/back", "http://127.0.0.1:5000/back"] {
            assert_eq!(
                error_members(create(&world, URI, redirect(&app, uri)).await),
                members_of("clientAppRedirectUris"),
                "{uri}"
            );
        }
    }

    async fn fapi_2_security_profile(world: World) {
        let app = json!({ "requirePushedAuthorizationRequests": true });
        let configuration =
            json!({ "tokenEndpointAuthMethod": "private_key_jwt", "dpopBoundAccessTokens": true });
        let app = app_with_profile(&world, "Fapi2SecurityProfile", app, configuration).await;
        assert_refused(
            &world,
            &app,
            &[
                (APP, json!({ "isPublic": true }), "isPublic tokenEndpointAuthMethod"),
                (
                    APP,
                    json!({ "requirePushedAuthorizationRequests": false }),
                    "requirePushedAuthorizationRequests",
                ),
                (APP, json!({ "allowedResponseTypes": "code id_token" }), "allowedResponseTypes"),
                (APP, json!({ "requestObjectSigningAlg": "RS256" }), "requestObjectSigningAlg"),
                (
                    CONFIGURATION,
                    json!({ "tokenEndpointAuthMethod": "client_secret_jwt" }),
                    "tokenEndpointAuthMethod",
                ),
                (CONFIGURATION, json!({ "dpopBoundAccessTokens": false }), "dpopBoundAccessTokens"),
            ],
        )
        .await;
        let app_scheme = ["http://127.0.0.1:5000/back", "com.example.app:/back"];
        for uri in app_scheme {
            assert_eq!(
                error_members(create(&world, URI, redirect(&app, uri)).await),
                members_of("clientAppRedirectUris"),
                "{uri}"
            );
        }
        // either of the two binds tokens; a native application may use other redirect URIs
        assert_accepted(
            &world,
            &app,
            &[
                (
                    CONFIGURATION,
                    json!({ "dpopBoundAccessTokens": false, "requireCertificateBoundAccessTokens": true }),
                ),
                (APP, json!({ "requestObjectSigningAlg": "EdDSA" })),
                (APP, json!({ "isNativeApplication": true })),
            ],
        )
        .await;
        for uri in app_scheme {
            world.make(URI, redirect(&app, uri)).await;
        }
        assert_refused(&world, &app, &[(APP, json!({ "isNativeApplication": false }), "clientAppRedirectUris")])
            .await;
    }

    async fn fapi_2_message_signing(world: World) {
        let app = json!({ "requirePushedAuthorizationRequests": true, "requestObjectSigningAlg": "ES256" });
        let configuration = json!({
            "tokenEndpointAuthMethod": "tls_client_auth", "tlsClientAuthSanDns": "app.example",
            "requireCertificateBoundAccessTokens": true,
        });
        let app = app_with_profile(&world, "Fapi2MessageSigning", app, configuration).await;
        assert_refused(
            &world,
            &app,
            &[
                (APP, json!({ "requestObjectSigningAlg": null }), "requestObjectSigningAlg"),
                (APP, json!({ "requestObjectSigningAlg": "PS512" }), "requestObjectSigningAlg"),
                (APP, json!({ "allowedResponseTypes": "code,none" }), "allowedResponseTypes"),
                (
                    APP,
                    json!({ "requirePushedAuthorizationRequests": false }),
                    "requirePushedAuthorizationRequests",
                ),
                (
                    CONFIGURATION,
                    json!({ "requireCertificateBoundAccessTokens": false }),
                    "dpopBoundAccessTokens",
                ),
                (
                    CONFIGURATION,
                    json!({ "tokenEndpointAuthMethod": "client_secret_post", "tlsClientAuthSanDns": null }),
                    "tokenEndpointAuthMethod",
                ),
            ],
        )
        .await;
        // without signed request objects, the other profile of FAPI 2.0 is accepted
        assert_accepted(
            &world,
            &app,
            &[
                (APP, json!({ "securityProfile": "Fapi2SecurityProfile" })),
                (APP, json!({ "requestObjectSigningAlg": null })),
            ],
        )
        .await;
        assert_refused(
            &world,
            &app,
            &[(APP, json!({ "securityProfile": "Fapi2MessageSigning" }), "requestObjectSigningAlg")],
        )
        .await;
    }
}
