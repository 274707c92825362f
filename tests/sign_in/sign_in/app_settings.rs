//! Settings of client apps for existing programs: PKCE, and the claims in ID tokens.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_testkit::{Answer, World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, PASSWORD, SignInApp, browser::Browser, change, claims, form, parameter, tenant_option};
use crate::id;

/// Signs in with this scope; returns the claims of the ID token and of the UserInfo endpoint.
async fn issued_claims(world: &World, home: &SignInApp, scope: &str) -> (Value, Value) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[("scope", scope)])).await;
    let answer = browser.sign_in(&page, "ann", PASSWORD).await;
    let tokens = home.redeem(world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
    let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
    (claims(&tokens["id_token"]), bearer.get("/connect/userinfo").await.is(200).json())
}

/// The header of a JWT.
fn header(token: &Value) -> Value {
    let part = token.as_str().unwrap().split('.').next().unwrap();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

async fn post_form(world: &World, path: &str, fields: &[(&str, &str)]) -> Answer {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let body = form(fields.iter().copied()).into_bytes();
    world.anonymous.send(http::Method::POST, path, &headers, body).await
}

/// Adds the user to a new group of each name.
async fn join(world: &World, home: &SignInApp, names: impl Iterator<Item = String>) {
    let names: Vec<Value> = names.map(|name| json!({ "name": name })).collect();
    let created = world.admin.post(&world.path("/Group/batch"), json!(names)).await.is(200).json();
    let ids: Vec<&Value> = created.as_array().unwrap().iter().map(|group| &group["id"]).collect();
    let groups = world.path(&format!("/User/{}/groups", id(&home.user)));
    world.admin.post(&groups, json!({ "relatedIds": ids })).await.expect(202);
}

on_both_engines! {
    /// RFC 9700, section 2.1.1: PKCE is optional for a confidential app that sends a nonce.
    ///
    /// - Effect of `ClientApp.pkce`: Authorization requests need PKCE as the tenant requires, always, or not.
    /// - Effect of `Option.applyToTenantId`: The option is in effect for this tenant.
    /// - Effect of `Tenant options.PkceRequired`: Authorization requests of every app need PKCE, unless a setting of the app says
    ///   otherwise.
    async fn pkce_is_required_as_the_app_and_tenant_configure(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let plain = home.request(&[("code_challenge", ""), ("code_challenge_method", "")]);
        let app = format!("/ClientApp/{}", id(&home.app));
        for (pkce, of_tenant, is_refused) in [
            ("AsTenant", "false", false),
            ("AsTenant", "true", true),
            ("Optional", "true", false),
            ("Required", "false", true),
        ] {
            change(&world, &app, json!({ "pkce": pkce })).await;
            tenant_option(&world, &home, "PkceRequired", of_tenant).await;
            let left = browser.open(&plain).await.left.unwrap();
            let error = parameter(&left, "error");
            assert_eq!(error.as_deref(), is_refused.then_some("invalid_request"), "{pkce} {of_tenant}");
            if !is_refused {
                let code = parameter(&left, "code").unwrap();
                home.redeem(&world, &code, &[("code_verifier", "")]).await.expect(200);
            }
        }
    }

    /// RFC 8252, section 6: PKCE is the only proof of an app that cannot store a secret.
    async fn pkce_is_always_required_for_public_apps(world: World) {
        let home = SignInApp::with(&world, json!({ "isPublic": true, "pkce": "Optional" })).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let plain = home.request(&[("code_challenge", ""), ("code_challenge_method", "")]);
        let left = browser.open(&plain).await.left.unwrap();
        assert_eq!(parameter(&left, "error").as_deref(), Some("invalid_request"));
    }

    async fn id_tokens_have_the_claims_of_the_granted_scopes(world: World) {
        let home = SignInApp::new(&world).await;
        assert_eq!(home.app["idTokenClaims"], "Scopes");
        let (token, info) = issued_claims(&world, &home, "openid profile email").await;
        for (claim, value) in info.as_object().unwrap() {
            assert_eq!(&token[claim], value, "{claim}");
        }
        assert_eq!((&token["name"], &token["email"]), (&json!("Ann Archer"), &json!("ann@example.com")));
        let changed = info["updated_at"].as_i64().unwrap();
        let now = i64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap();
        assert!((now - 600..=now).contains(&changed), "{changed}");
        let (token, _) = issued_claims(&world, &home, "openid").await;
        assert_eq!((token.get("name"), token.get("email"), token.get("updated_at")), (None, None, None));
    }

    /// OpenID Connect Core 1.0, section 5.4: the claims are only at the UserInfo endpoint.
    ///
    /// - Effect of `ClientApp.idTokenClaims`: With `Scopes` ID tokens have the claims of the granted scopes; with `Minimal` only the
    ///   UserInfo endpoint returns them.
    async fn id_tokens_of_a_minimal_app_have_no_claims_of_scopes(world: World) {
        let home = SignInApp::with(&world, json!({ "idTokenClaims": "Minimal" })).await;
        let (token, info) = issued_claims(&world, &home, "openid profile email").await;
        assert_eq!((token.get("name"), token.get("email")), (None, None));
        assert_eq!(info["name"], "Ann Archer");
        // a body without the member leaves it unchanged
        let mut app = world.admin.get(&format!("{BASE}/ClientApp/{}", id(&home.app))).await.is(200).json();
        app.as_object_mut().unwrap().retain(|name, value| name != "idTokenClaims" && !value.is_array());
        let put = world.admin.put(&format!("{BASE}/ClientApp/{}", id(&home.app)), app).await.is(202).json();
        assert_eq!(put["idTokenClaims"], "Minimal");
    }

    /// - Effect of `ClientApp.refreshTokens`: With Session the client app gets a refresh token with every code; it ends with the session.
    async fn a_refresh_token_of_a_session_ends_with_the_session(world: World) {
        let home = SignInApp::with(&world, json!({ "refreshTokens": "Session" })).await;
        let (mut browser, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let token = tokens["refresh_token"].as_str().unwrap();
        assert!(!tokens["scope"].as_str().unwrap().contains("offline_access"));
        home.refresh_at(&world.anonymous, token).await.expect(200);
        let introspect = async || {
            let fields = [("token", token), ("client_id", id(&home.app)), ("client_secret", home.secret.as_str())];
            post_form(&world, "/connect/introspect", &fields).await.is(200).json()
        };
        let introspected = introspect().await;
        assert_eq!(introspected["active"], true, "{introspected}");
        let until = introspected["exp"].as_i64().unwrap();
        world.sql(vec![("UPDATE sign_in_session SET expires_on = expires_on - 1800000", vec![])]).await;
        assert_eq!(introspect().await["exp"].as_i64().unwrap(), until - 1800);
        let page = browser.open("/connect/endsession").await;
        let csrf = page.field("csrf");
        browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
        let refused = home.refresh_at(&world.anonymous, token).await.is(400).json();
        assert_eq!(refused["error"], "invalid_grant");
        assert_eq!(introspect().await, json!({ "active": false }));
    }

    async fn a_refresh_token_of_a_session_ends_when_the_session_expires(world: World) {
        let home = SignInApp::with(&world, json!({ "refreshTokens": "Session" })).await;
        let (_, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let token = tokens["refresh_token"].as_str().unwrap();
        home.refresh_at(&world.anonymous, token).await.expect(200);
        world.sql(vec![("UPDATE sign_in_session SET expires_on = started_on", vec![])]).await;
        home.refresh_at(&world.anonymous, token).await.expect(400);
    }

    /// With `offline_access` the token outlasts the session. Resetting the member ends tokens of sessions.
    async fn offline_access_outlasts_the_session_of_an_app_with_session_tokens(world: World) {
        let home = SignInApp::with(&world, json!({ "refreshTokens": "Session" })).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("scope", "openid offline_access")])).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        let offline = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let answer = browser.open(&home.request(&[("scope", "openid")])).await.left.unwrap();
        let of_session = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let [offline, of_session] = [offline, of_session].map(|tokens| tokens["refresh_token"].as_str().unwrap().to_owned());
        home.refresh_at(&world.anonymous, &of_session).await.expect(200);
        let path = format!("/ClientApp/{}", id(&home.app));
        change(&world, &path, json!({ "refreshTokens": "OfflineAccess" })).await;
        home.refresh_at(&world.anonymous, &of_session).await.expect(400);
        change(&world, &path, json!({ "refreshTokens": "Session" })).await;
        world.sql(vec![("UPDATE sign_in_session SET expires_on = started_on", vec![])]).await;
        home.refresh_at(&world.anonymous, &of_session).await.expect(400);
        home.refresh_at(&world.anonymous, &offline).await.expect(200);
    }

    async fn an_update_without_a_member_leaves_it_unchanged(world: World) {
        let app = world.make("ClientApp", json!({ "name": "app" })).await;
        let path = format!("/ClientApp/{}", id(&app));
        for (member, default, other) in [
            ("refreshTokens", "OfflineAccess", "Session"),
            ("pkce", "AsTenant", "Required"),
            ("idTokenClaims", "Scopes", "Minimal"),
        ] {
            assert_eq!(app[member], default);
            change(&world, &path, json!({ member: other })).await;
            change(&world, &path, json!({ "name": format!("without {member}") })).await;
            let mut body = world.admin.get(&format!("{BASE}{path}")).await.is(200).json();
            body.as_object_mut().unwrap().retain(|name, value| name != member && !value.is_array());
            let put = world.admin.put(&format!("{BASE}{path}"), body).await.is(202).json();
            assert_eq!(put[member], other);
        }
    }

    /// - Effect of `Tenant options.AccessTokenHeaderType`: The header of access tokens for other resource servers has this `typ`.
    async fn tokens_for_other_resource_servers_have_the_type_that_the_tenant_sets(world: World) {
        let home = SignInApp::with(&world, json!({ "allowClientCredentialLogin": true })).await;
        let resource = json!({ "clientAppId": home.app["id"], "key": "urn:ledger" });
        world.make("ClientAppResource", resource).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let at_tenant = format!("/t/{}/connect/token", home.tenant);
        let own = async |path: &str, resource: &str| {
            let fields = [
                ("grant_type", "client_credentials"),
                ("client_id", id(&home.app)),
                ("client_secret", home.secret.as_str()),
                ("resource", resource),
            ];
            post_form(&world, path, &fields).await.is(200).json()["access_token"].clone()
        };
        for (value, expected) in [("AtJwt", "at+jwt"), ("Jwt", "JWT")] {
            tenant_option(&world, &home, "AccessTokenHeaderType", value).await;
            let answer = browser.open(&home.request(&[])).await.left.unwrap();
            let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
            let token = &tokens["access_token"];
            assert_eq!(header(token)["typ"], expected, "{value}");
            assert_eq!(header(&own(&at_tenant, "urn:ledger").await)["typ"], expected, "{value}");
            for (path, resource) in [(at_tenant.as_str(), "PlatformManagementService"), ("/connect/token", "urn:ledger")] {
                assert_eq!(header(&own(path, resource).await)["typ"], "at+jwt", "{value} {path}");
            }
            // the token is valid here, whatever its type
            let bearer = world.anonymous.with_token(token.as_str().unwrap());
            bearer.get("/connect/userinfo").await.expect(200);
            let shown = [
                ("token", token.as_str().unwrap()),
                ("client_id", id(&home.app)),
                ("client_secret", home.secret.as_str()),
            ];
            let introspected = post_form(&world, "/connect/introspect", &shown).await.is(200).json();
            assert_eq!(introspected["active"], true, "{value}");
            post_form(&world, "/connect/revoke", &shown).await.expect(200);
            bearer.get("/connect/userinfo").await.expect(401);
        }
    }

    async fn the_name_claim_falls_back_to_the_login_name(world: World) {
        let home = SignInApp::new(&world).await;
        let one = world.path(&format!("/User/{}", id(&home.user)));
        let mut user = world.admin.get(&one).await.is(200).json();
        user.as_object_mut().unwrap().retain(|name, value| !["firstName", "lastName"].contains(&name.as_str()) && !value.is_array());
        world.admin.put(&one, user).await.expect(202);
        let (token, info) = issued_claims(&world, &home, "openid profile").await;
        assert_eq!((&token["name"], &info["name"]), (&json!("ann"), &json!("ann")));
    }

    /// `groups` is granted only to an app with the setting, and an ID token contains only as many groups as fit into a cookie.
    ///
    /// - Effect of `ClientApp.includeGroupsClaims`: The app can request the scope `groups`, which includes the claim with the person's
    ///   groups.
    /// - Effect of `Group.name`: Apps that get groups get this name, and lists are searched by it.
    async fn the_groups_claim_requires_the_setting_of_the_app(world: World) {
        let home = SignInApp::new(&world).await;
        join(&world, &home, (0..3).map(|number| format!("group {number}"))).await;
        let (token, info) = issued_claims(&world, &home, "openid groups").await;
        assert_eq!((token.get("groups"), info.get("groups")), (None, None));
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "includeGroupsClaims": true })).await;
        let (token, info) = issued_claims(&world, &home, "openid groups").await;
        assert_eq!(token["groups"], json!(["group 0", "group 1", "group 2"]));
        assert_eq!(token["groups"], info["groups"]);
        join(&world, &home, (0..100).map(|number| format!("{number:050}"))).await;
        let (token, info) = issued_claims(&world, &home, "openid groups").await;
        assert_eq!((token.get("groups"), &token["groups_truncated"]), (None, &json!(true)));
        assert_eq!(info["groups"].as_array().unwrap().len(), 103);
    }

    async fn a_token_has_up_to_500_groups(world: World) {
        let home = SignInApp::with(&world, json!({ "includeGroupsClaims": true })).await;
        join(&world, &home, (0..500).map(|number| format!("g{number:03}"))).await;
        let (token, info) = issued_claims(&world, &home, "openid groups").await;
        assert_eq!(token["groups"].as_array().unwrap().len(), 500);
        assert_eq!((token.get("groups_truncated"), &token["groups"]), (None, &info["groups"]));
        join(&world, &home, std::iter::once("last".to_owned())).await;
        let (token, info) = issued_claims(&world, &home, "openid groups").await;
        assert_eq!((token.get("groups"), &token["groups_truncated"]), (None, &json!(true)));
        assert_eq!(info["groups"].as_array().unwrap().len(), 501);
    }

    /// RFC 7662, section 2.2.
    async fn introspection_contains_the_login_name(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let introspection_form = form(
            [
                ("token", tokens["access_token"].as_str().unwrap()),
                ("client_id", id(&home.app)),
                ("client_secret", home.secret.as_str()),
            ]
            .into_iter(),
        );
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let answer = world.anonymous.send(http::Method::POST, "/connect/introspect", &headers, introspection_form.into_bytes()).await;
        assert_eq!(answer.is(200).json()["username"], "ann");
    }

    async fn a_redirect_uri_with_a_wildcard_is_refused(world: World) {
        let app = world.make("ClientApp", json!({ "name": "app" })).await;
        let body = json!({ "clientAppId": app["id"], "uri": "https://*.example.com/back", "redirectUriType": "Login" });
        let problem = world.admin.post(&format!("{BASE}/ClientAppRedirectUri"), body).await.problem(400, "invalid-request");
        assert_eq!(crate::pointers(&problem), ["/uri"]);
        assert!(problem.to_string().contains("addresses match exactly"), "{problem}");
    }

    /// A program would parse a leading dash as an option.
    async fn generated_secrets_begin_with_a_letter(world: World) {
        let app = world.make("ClientApp", json!({ "name": "app" })).await;
        let new: Vec<Value> = (0..50).map(|number| json!({ "clientAppId": app["id"], "name": format!("s{number}") })).collect();
        let created = world.admin.post(&format!("{BASE}/ClientAppSecret/batch"), json!(new)).await.is(200).json();
        for secret in created.as_array().unwrap() {
            let first = secret["secret"].as_str().unwrap().chars().next().unwrap();
            assert!(first.is_ascii_alphabetic(), "{secret}");
        }
    }
}
