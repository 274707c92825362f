//! Settings that are stored as documented and not supported: their use is refused, without loss of data.

use chancery_record::Value as Bound;
use chancery_testkit::{Answer, World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, PASSWORD, SignInApp, browser::Browser, change, claims, first, form, parameter, relate};
use crate::{id, instance::set_option, pointers, program::refused};

fn id_path(home: &SignInApp) -> String {
    format!("/ClientApp/{}", id(&home.app))
}

/// Empties a member of the client app, with the matching algorithm of content encryption.
async fn clear(world: &World, home: &SignInApp, member: &str) {
    let path = format!("{BASE}{}", id_path(home));
    let now = world.admin.get(&path).await.is(200).json();
    let mut body = json!({ member: null, "concurrencyToken": now["concurrencyToken"] });
    if let Some(of) = member.strip_suffix("Alg") {
        body[format!("{of}Enc")] = json!(null);
    }
    let headers = [("content-type", "application/merge-patch+json")];
    world.admin.send(http::Method::PATCH, &path, &headers, body.to_string().into_bytes()).await.expect(202);
}

/// The tokens of a person who signed in with `offline_access`.
async fn tokens(world: &World, home: &SignInApp) -> Value {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[("scope", "openid profile offline_access")])).await;
    let answer = browser.sign_in(&page, "ann", PASSWORD).await;
    home.redeem(world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json()
}

async fn userinfo(world: &World, tokens: &Value) -> Answer {
    let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
    bearer.get("/connect/userinfo").await
}

async fn introspect(world: &World, home: &SignInApp, token: &Value) -> Answer {
    let fields = [
        ("token", token.as_str().unwrap()),
        ("client_id", id(&home.app)),
        ("client_secret", home.secret.as_str()),
    ];
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let sent = form(fields.into_iter()).into_bytes();
    world.anonymous.send(http::Method::POST, "/connect/introspect", &headers, sent).await
}

/// Asserts that the client app is refused, with a description that contains the setting.
#[track_caller]
fn assert_refused(answer: Answer, member: &str) {
    let body = answer.is(400).json();
    assert_eq!(body["error"], "unauthorized_client", "{member}: {body}");
    assert!(body["error_description"].as_str().unwrap().contains(member), "{member}: {body}");
}

/// The error of an authorization request, and its description; `None` if it succeeded.
async fn refusal(browser: &mut Browser, home: &SignInApp) -> Option<(String, String)> {
    let left = browser.open(&home.request(&[])).await.left.unwrap();
    Some((parameter(&left, "error")?, parameter(&left, "error_description").unwrap()))
}

on_both_engines! {
    /// Encryption, pairwise subjects and pushed requests: a response with less privacy than configured would not be noticed.
    ///
    /// - Refusal of `ClientApp.idTokenEncryptedResponseAlg`: Sign-ins to the app are refused while it is set, since encrypted ID tokens are
    ///   not served yet.
    /// - Refusal of `ClientApp.requirePushedAuthorizationRequests`: Authorization requests of the app are refused while it is set, since
    ///   pushed requests are not served yet.
    /// - Refusal of `ClientApp.subjectType`: With `Pairwise` sign-ins are refused, since pairwise subjects are not served yet.
    async fn unsupported_settings_refuse_tokens_for_people(world: World) {
        let home = SignInApp::with(&world, json!({ "allowDeviceAuthorizationGrant": true })).await;
        let before = tokens(&world, &home).await;
        let (mut browser, _) = home.sign_in(&world).await;
        for (member, set, unset, used_for_refresh) in [
            ("subjectType", json!("Pairwise"), json!("Public"), true),
            ("idTokenEncryptedResponseAlg", json!("RSA-OAEP-256"), json!(null), true),
            ("accessTokenEncryptionEnabledOverride", json!(true), json!(null), true),
            ("requirePushedAuthorizationRequests", json!(true), json!(false), false),
        ] {
            let waiting = browser.open(&home.request(&[])).await.left.unwrap();
            change(&world, &id_path(&home), json!({ member: set })).await;
            let Some((error, description)) = refusal(&mut browser, &home).await else { panic!("{member} is ignored") };
            assert_eq!(error, "unauthorized_client", "{member}");
            assert!(description.contains(member), "{member}: {description}");
            let device = [("client_id", id(&home.app)), ("client_secret", home.secret.as_str())];
            let headers = [("content-type", "application/x-www-form-urlencoded")];
            let sent = form(device.into_iter()).into_bytes();
            let device = world.anonymous.send(http::Method::POST, "/connect/deviceauthorization", &headers, sent).await;
            assert_refused(device, member);
            if used_for_refresh {
                let code = parameter(&waiting, "code").unwrap();
                assert_refused(home.redeem(&world, &code, &[]).await, member);
                let token = before["refresh_token"].as_str().unwrap();
                assert_refused(home.refresh_at(&world.anonymous, token).await, member);
            }
            let listed = refused(&world.database);
            assert!(listed.iter().any(|line| line.contains(member)), "{member}: {listed:?}");
            if unset.is_null() {
                clear(&world, &home, member).await;
            } else {
                change(&world, &id_path(&home), json!({ member: unset })).await;
            }
            assert_eq!(refusal(&mut browser, &home).await, None, "{member}");
            assert_eq!(refused(&world.database), [""; 0]);
        }
        // the refresh token was refused before it was used
        home.refresh_at(&world.anonymous, before["refresh_token"].as_str().unwrap()).await.expect(200);
    }

    /// - Refusal of `ClientApp.introspectionEncryptedResponseAlg`: The introspection endpoint refuses the app while it is set, since
    ///   encrypted answers are not served yet.
    /// - Refusal of `ClientApp.userinfoEncryptedResponseAlg`: The UserInfo endpoint refuses the app while it is set, since encrypted
    ///   answers are not served yet.
    async fn encrypted_responses_are_refused_at_userinfo_and_introspection(world: World) {
        let home = SignInApp::new(&world).await;
        let tokens = tokens(&world, &home).await;
        change(&world, &id_path(&home), json!({ "userinfoEncryptedResponseAlg": "ECDH-ES" })).await;
        let response = userinfo(&world, &tokens).await.problem(409, "conflict");
        assert!(response["detail"].as_str().unwrap().contains("userinfoEncryptedResponseAlg"), "{response}");
        introspect(&world, &home, &tokens["access_token"]).await.expect(200);
        clear(&world, &home, "userinfoEncryptedResponseAlg").await;
        change(&world, &id_path(&home), json!({ "introspectionEncryptedResponseAlg": "ECDH-ES" })).await;
        userinfo(&world, &tokens).await.expect(200);
        assert_refused(introspect(&world, &home, &tokens["access_token"]).await, "introspectionEncryptedResponseAlg");
        let lines = refused(&world.database);
        assert_eq!(lines.len(), 1, "{lines:?}");
    }

    /// Encrypted responses are refused for each algorithm. Content encryption also requires an algorithm for its key.
    ///
    /// - Refusal of `ClientApp.idTokenEncryptedResponseEnc`: Sign-ins to the app are refused while it is set, since encrypted ID tokens are
    ///   not served yet.
    /// - Refusal of `ClientApp.introspectionEncryptedResponseEnc`: The introspection endpoint refuses the app while it is set, since
    ///   encrypted answers are not served yet.
    /// - Refusal of `ClientApp.userinfoEncryptedResponseEnc`: The UserInfo endpoint refuses the app while it is set, since encrypted
    ///   answers are not served yet.
    async fn every_encryption_algorithm_is_refused_when_used(world: World) {
        let home = SignInApp::new(&world).await;
        let before = tokens(&world, &home).await;
        let path = format!("{BASE}{}", id_path(&home));
        let keys = ["RSA-OAEP-256", "RSA-OAEP", "ECDH-ES", "ECDH-ES+A128KW", "ECDH-ES+A256KW"];
        let contents = ["A128CBC-HS256", "A256CBC-HS512", "A128GCM", "A256GCM"];
        for of in ["idTokenEncryptedResponse", "userinfoEncryptedResponse", "introspectionEncryptedResponse"] {
            let (alg, enc) = (format!("{of}Alg"), format!("{of}Enc"));
            let now = world.admin.get(&path).await.is(200).json();
            let alone = json!({ &enc: "A256GCM", "concurrencyToken": now["concurrencyToken"] });
            let problem = world.admin.patch(&path, alone).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [format!("/{enc}")]);
            for (key, content) in keys.into_iter().zip(contents.into_iter().cycle()) {
                change(&world, &id_path(&home), json!({ &alg: key, &enc: content })).await;
                match of {
                    "idTokenEncryptedResponse" => {
                        let token = before["refresh_token"].as_str().unwrap();
                        assert_refused(home.refresh_at(&world.anonymous, token).await, &alg);
                    }
                    "userinfoEncryptedResponse" => drop(userinfo(&world, &before).await.problem(409, "conflict")),
                    _ => assert_refused(introspect(&world, &home, &before["access_token"]).await, &alg),
                }
            }
            clear(&world, &home, &alg).await;
        }
    }

    /// Requests of FAPI are not supported. Such an app gets tokens of its own.
    ///
    /// - Refusal of `ClientApp.securityProfile`: The app must follow the rules of the profile; its people cannot sign in, since FAPI
    ///   requests are not served yet.
    async fn sign_ins_to_an_app_with_a_fapi_profile_are_refused(world: World) {
        let home = SignInApp::with(&world, json!({ "allowClientCredentialLogin": true })).await;
        let (mut browser, _) = home.sign_in(&world).await;
        for profile in ["Fapi1Advanced", "Fapi2SecurityProfile", "Fapi2MessageSigning"] {
            let set = "UPDATE client_app SET security_profile = ?1 WHERE allow_client_credential_login AND name = 'Harbour Ledger'";
            world.sql(vec![(set, vec![Bound::from(profile)])]).await;
            let (error, description) = refusal(&mut browser, &home).await.unwrap_or_else(|| panic!("{profile} is ignored"));
            assert_eq!(error, "unauthorized_client", "{profile}");
            assert!(description.contains("FAPI profile"), "{profile}: {description}");
            let listed = refused(&world.database);
            assert!(listed.iter().any(|line| line.contains("securityProfile")), "{profile}: {listed:?}");
        }
    }

    /// A sector identifier defines the scope of pairwise subjects: with public subjects it has no effect; pairwise ones are
    /// not supported, so nobody signs in.
    ///
    /// - Refusal of `ClientApp.sectorIdentifierUri`: It is used only with pairwise subjects, which are not supported yet: sign-ins are
    ///   refused.
    async fn a_sector_identifier_applies_to_pairwise_subjects_only(world: World) {
        let home = SignInApp::with(&world, json!({ "sectorIdentifierUri": "https://app.example/sector.json" })).await;
        let (mut browser, _) = home.sign_in(&world).await;
        assert_eq!(refusal(&mut browser, &home).await, None);
        let other = json!({ "clientAppId": home.app["id"], "uri": "https://ledger.example/back", "redirectUriType": "Login" });
        world.make("ClientAppRedirectUri", other).await;
        change(&world, &id_path(&home), json!({ "subjectType": "Pairwise" })).await;
        let (error, _) = refusal(&mut browser, &home).await.unwrap();
        assert_eq!(error, "unauthorized_client");
        // one sector of several hosts is its purpose
        let path = format!("{BASE}{}", id_path(&home));
        let now = world.admin.get(&path).await.is(200).json();
        let without = json!({ "sectorIdentifierUri": null, "concurrencyToken": now["concurrencyToken"] });
        let headers = [("content-type", "application/merge-patch+json")];
        let problem = world.admin.send(http::Method::PATCH, &path, &headers, without.to_string().into_bytes()).await;
        assert_eq!(pointers(&problem.problem(400, "invalid-request")), ["/sectorIdentifierUri"]);
    }

    /// Request objects, by value and by reference, are refused whatever the app's settings.
    ///
    /// - Refusal of `ClientApp.requestObjectEncryptionAlg`: Request objects are refused, since they are not served yet.
    /// - Refusal of `ClientApp.requestObjectEncryptionEnc`: Request objects are refused, since they are not served yet.
    /// - Refusal of `ClientApp.requestObjectSigningAlg`: Request objects are refused, since they are not served yet.
    /// - Refusal of `ClientAppRequestUri.uri`: Requests that name a request URI are refused, since request objects are not served yet.
    async fn request_objects_are_always_refused(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let uri = "https://app.example/request.jwt";
        world.make("ClientAppRequestUri", json!({ "clientAppId": home.app["id"], "uri": uri })).await;
        let signs = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
        let keys = ["RSA-OAEP-256", "RSA-OAEP", "ECDH-ES", "ECDH-ES+A128KW", "ECDH-ES+A256KW"].into_iter().cycle();
        let contents = ["A128CBC-HS256", "A256CBC-HS512", "A128GCM", "A256GCM"].into_iter().cycle();
        for ((sign, key), content) in signs.into_iter().zip(keys).zip(contents) {
            change(&world, &id_path(&home), json!({
                "requestObjectSigningAlg": sign, "requestObjectEncryptionAlg": key, "requestObjectEncryptionEnc": content,
            })).await;
            for (name, value, error) in [
                ("request", "x.y.z", "request_not_supported"),
                ("request_uri", uri, "request_uri_not_supported"),
            ] {
                let left = browser.open(&home.request(&[(name, value)])).await.left.unwrap();
                assert_eq!(parameter(&left, "error").as_deref(), Some(error), "{sign} {key} {content}");
                assert!(parameter(&left, "error_description").is_some_and(|text| !text.is_empty()), "{name}: {left}");
            }
        }
        // the app works without request objects, so its members are not reported
        let lines = refused(&world.database);
        assert!(lines.len() == 1 && lines[0].contains("ClientAppRequestUri"), "{lines:?}");
        clear(&world, &home, "requestObjectEncryptionAlg").await;
        let path = format!("{BASE}{}", id_path(&home));
        let now = world.admin.get(&path).await.is(200).json();
        let alone = json!({ "requestObjectEncryptionEnc": "A256GCM", "concurrencyToken": now["concurrencyToken"] });
        let problem = world.admin.patch(&path, alone).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/requestObjectEncryptionEnc"]);
        assert_eq!(refusal(&mut browser, &home).await, None, "a request without one is answered");
    }

    /// - Refusal of `ClientApp.accessTokenEncryptionEnabledOverride`: With `true` the app gets no access tokens, since encrypted ones are
    ///   not served yet.
    async fn encrypted_access_tokens_are_refused_for_the_app_itself(world: World) {
        let home = SignInApp::with(&world, json!({ "allowClientCredentialLogin": true })).await;
        let fields = [
            ("grant_type", "client_credentials"),
            ("client_id", id(&home.app)),
            ("client_secret", home.secret.as_str()),
        ];
        world.anonymous.ask_for_token(&form(fields.into_iter())).await.expect(200);
        change(&world, &id_path(&home), json!({ "accessTokenEncryptionEnabledOverride": true })).await;
        let answer = world.anonymous.ask_for_token(&form(fields.into_iter())).await;
        assert_refused(answer, "accessTokenEncryptionEnabledOverride");
        change(&world, &id_path(&home), json!({ "accessTokenEncryptionEnabledOverride": false })).await;
        world.anonymous.ask_for_token(&form(fields.into_iter())).await.expect(200);
    }

    /// An external instance without a mandatory option is not available.
    async fn sign_ins_by_incomplete_external_instances_are_refused(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let subscription = first(&world, "/Subscription").await;
        for kind in ["OpenIdConnect", "AdfsOAuth", "Microsoft", "Google", "Facebook", "Twitter"] {
            let of_kind = first(&world, &format!("/IdpType?filter=name%20eq%20%22{kind}%22")).await;
            let instance = json!({
                "name": format!("at {kind}"), "subscriptionId": subscription["id"], "idpTypeId": of_kind["id"],
                "treatMfaFactorClaimsAsConfirmed": true,
            });
            let instance = world.make("IdpInstance", instance).await;
            set_option(&world, &instance, "ClientId", "something").await;
            if kind == "AdfsOAuth" {
                set_option(&world, &instance, "Authority", "https://adfs.example/adfs").await;
            }
            relate(&world, &format!("/IdpInstance/{}/tenants", id(&instance)), &[&home.tenant]).await;
            relate(&world, &format!("/ClientApp/{}/idpinstances", id(&home.app)), &[id(&instance)]).await;
            for browser in [&mut browser, &mut Browser::new(&world)] {
                let page = browser.open(&home.request(&[])).await;
                assert_eq!(page.answer.status, 400, "{kind}");
                assert!(page.html.contains("You cannot sign in to this application here"), "{}", page.html);
                let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
                assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"), "{kind}");
            }
        }
    }

    /// An address range selects one of the client app's tenants, and admits nobody.
    ///
    /// - Effect of `IpAddressRange.lower`: The range begins at this address; requests from the range are sent to its tenant if an app has
    ///   several tenants.
    /// - Effect of `IpAddressRange.tenantId`: Requests from the range are sent to this tenant if an app has several tenants.
    /// - Effect of `IpAddressRange.upper`: The range ends at this address; requests from the range are sent to its tenant if an app has
    ///   several tenants.
    async fn the_address_range_chooses_the_tenant(world: World) {
        let home = SignInApp::new(&world).await;
        let subscription = first(&world, "/Subscription").await;
        let other = world.make("Tenant", json!({ "name": "Lighthouse", "subscriptionId": subscription["id"] })).await;
        relate(&world, &format!("/ClientApp/{}/tenants", id(&home.app)), &[&home.tenant, id(&other)]).await;
        let request_url = home.request(&[]);
        let choice = Browser::new(&world).open(&request_url).await;
        assert!(!choice.html.contains("name=\"password\""), "somebody must choose a tenant: {}", choice.html);
        let range = |lower: &str, upper: &str| json!({ "tenantId": home.tenant, "lower": lower, "upper": upper });
        world.make("IpAddressRange", range("::1", "::1")).await;
        world.make("IpAddressRange", range("192.0.2.0", "192.0.2.255")).await;
        // it begins below the address, and ends there, too
        world.make("IpAddressRange", range("10.0.0.0", "10.0.0.255")).await;
        let choice = Browser::new(&world).open(&request_url).await;
        assert!(!choice.html.contains("name=\"password\""), "no range holds the address: {}", choice.html);
        world.make("IpAddressRange", range("127.0.0.1", "127.0.0.1")).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&request_url).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        let code = parameter(&answer, "code").unwrap();
        let response = home.redeem(&world, &code, &[]).await.is(200).json();
        assert_eq!(claims(&response["id_token"])["tid"], json!(home.tenant));
        // of two ranges that contain it none is selected
        let both = json!({ "tenantId": other["id"], "lower": "127.0.0.0", "upper": "127.255.255.255" });
        world.make("IpAddressRange", both).await;
        let choice = Browser::new(&world).open(&request_url).await;
        assert!(!choice.html.contains("name=\"password\""), "two ranges hold the address: {}", choice.html);
    }
}
