//! Effects of settings of users, instances and apps on people and apps.

use aws_lc_rs::digest::{SHA256, digest};
use chancery_testkit::{World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use super::{
    BASE, PASSWORD, SignInApp,
    browser::{Browser, Page},
    change, encode, first, parameter, relate,
    second_factor::{make_factor, require_factor, typed},
};
use crate::{
    id,
    signer::{Signer, encode as encode_part},
};

/// Parameters of the response to the app after a right password in a new browser; `None` if a page stops the person.
async fn answer(world: &World, home: &SignInApp) -> Option<String> {
    let (mut browser, next) = typed(world, home, &[]).await;
    next.answer.header("refresh")?;
    Some(browser.continue_to_app(&next).await)
}

async fn can_sign_in(world: &World, home: &SignInApp) -> bool {
    let page = Browser::new(world).open(&home.request(&[])).await;
    page.status == 200 && answer(world, home).await.is_some_and(|answer| parameter(&answer, "code").is_some())
}

/// Ann's platform user.
async fn person(world: &World) -> Value {
    world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
    let filter = encode("emailAddress eq \"ann@example.com\"");
    first(world, &format!("/ApplicationUser?filter={filter}")).await
}

async fn consent_page(world: &World, home: &SignInApp) -> Page {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[("scope", "openid ledger.read")])).await;
    browser.type_password(&page, "ann", PASSWORD).await
}

on_both_engines! {
    /// The claims of the scopes `profile` and `phone` (OpenID Connect Core 1.0, section 5.4).
    ///
    /// - Effect of `User.birthdate`: Apps get it as `birthdate`.
    /// - Effect of `User.firstName`: Apps get it as `given_name`, and it begins the `name`.
    /// - Effect of `User.gender`: Apps get it as `gender`.
    /// - Effect of `User.lastName`: Apps get it as `family_name`, and it ends the `name`.
    /// - Effect of `User.middleName`: Apps get it as `middle_name`.
    /// - Effect of `User.nickname`: Apps get it as `nickname`.
    /// - Effect of `User.phoneNumber`: Codes by SMS go to this number, and apps with the scope `phone` get it as `phone_number`.
    /// - Effect of `User.phoneNumberConfirmed`: Codes go by SMS to a confirmed number only, and apps get this as `phone_number_verified`.
    /// - Effect of `User.picture`: Apps get this address as `picture`.
    /// - Effect of `User.profile`: Apps get this address as `profile`.
    /// - Effect of `User.website`: Apps get this address as `website`.
    /// - Effect of `User.zoneinfo`: Apps get it as `zoneinfo`.
    async fn claims_contain_the_fields_of_a_user(world: World) {
        let home = SignInApp::new(&world).await;
        let fields = [
            ("firstName", "given_name", json!("Anna")),
            ("lastName", "family_name", json!("Abel")),
            ("middleName", "middle_name", json!("Maria")),
            ("nickname", "nickname", json!("Annie")),
            ("profile", "profile", json!("https://people.example/ann")),
            ("picture", "picture", json!("https://people.example/ann.png")),
            ("website", "website", json!("https://ann.example/")),
            ("gender", "gender", json!("female")),
            ("birthdate", "birthdate", json!("1980-02-29")),
            ("zoneinfo", "zoneinfo", json!("Europe/Berlin")),
            ("locale", "locale", json!("de-DE")),
            ("phoneNumber", "phone_number", json!("+4940123456")),
            ("phoneNumberConfirmed", "phone_number_verified", json!(true)),
        ];
        let path = world.path(&format!("/User/{}", id(&home.user)));
        let now = world.admin.get(&path).await.is(200).json();
        let mut body = json!({ "concurrencyToken": now["concurrencyToken"] });
        for (field, _, value) in &fields {
            body[*field] = value.clone();
        }
        world.admin.patch(&path, body).await.expect(202);
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("scope", "openid profile phone")])).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        let userinfo = bearer.get("/connect/userinfo").await.is(200).json();
        for (field, claim, value) in &fields {
            assert_eq!(&userinfo[*claim], value, "{field}");
        }
        assert_eq!(userinfo["name"], json!("Anna Maria Abel"));
    }

    /// IdpInstance.isHidden
    ///
    /// - Effect of `IdpInstance.isHidden`: The instance is not offered unless a request names it.
    async fn a_hidden_instance_is_not_offered(world: World) {
        let home = SignInApp::new(&world).await;
        assert!(can_sign_in(&world, &home).await);
        let path = format!("/IdpInstance/{}", id(&first(&world, "/IdpInstance").await));
        for (is_hidden, gets) in [(true, false), (false, true)] {
            change(&world, &path, json!({ "isHidden": is_hidden })).await;
            assert_eq!(can_sign_in(&world, &home).await, gets, "{is_hidden}");
        }
    }

    /// IdpInstance.isActive
    ///
    /// - Effect of `IdpInstance.isActive`: Nobody signs in by an instance that is not active.
    async fn an_inactive_instance_refuses_sign_ins(world: World) {
        let home = SignInApp::new(&world).await;
        let path = format!("/IdpInstance/{}", id(&first(&world, "/IdpInstance").await));
        for (is_active, gets) in [(false, false), (true, true)] {
            change(&world, &path, json!({ "isActive": is_active })).await;
            assert_eq!(can_sign_in(&world, &home).await, gets, "{is_active}");
        }
    }

    /// IdpInstance.position: stores are searched in its order, and the first that knows the name decides.
    ///
    /// - Effect of `IdpInstance.position`: Instances are offered, and user stores are searched, in ascending order of their position.
    async fn stores_are_searched_in_order_of_position(world: World) {
        let home = SignInApp::new(&world).await;
        let kind = first(&world, "/IdpInstance").await["idpTypeId"].clone();
        let store = world.make("IdpInstance", json!({ "name": "annexe", "idpTypeId": kind, "position": 1 })).await;
        let filter = encode(&format!("applyToIdpInstanceId eq \"{}\" and name eq \"PasskeyEnrolment\"", id(&store)));
        let option = first(&world, &format!("/Option?filter={filter}")).await;
        change(&world, &format!("/Option/{}", id(&option)), json!({ "value": "Off" })).await;
        relate(&world, &format!("/IdpInstance/{}/tenants", id(&store)), &[&home.tenant]).await;
        relate(&world, &format!("/IdpInstance/{}/clientapps", id(&store)), &[id(&home.app)]).await;
        let people = "/api/userstore/v2/annexe/administration/User";
        let namesake = json!({ "loginName": "ann", "firstName": "Anna", "lastName": "Annexe" });
        let namesake = world.admin.post(people, namesake).await.is(201).json();
        let reset = format!("{people}/{}/password/reset", id(&namesake));
        world.admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
        let own = first(&world, "/IdpInstance?filter=name%20eq%20%22default%22").await;
        for (position, name) in [(0, "Ann Archer"), (2, "Anna Annexe")] {
            change(&world, &format!("/IdpInstance/{}", id(&own)), json!({ "position": position })).await;
            let (_, answer) = home.sign_in(&world).await;
            let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
            let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
            assert_eq!(bearer.get("/connect/userinfo").await.is(200).json()["name"], name);
        }
    }

    /// User.isUserActive, userValidFrom and userValidTo
    ///
    /// - Effect of `User.userValidFrom`: The user cannot sign in before this time.
    /// - Effect of `User.userValidTo`: The user cannot sign in from this time on.
    async fn a_user_signs_in_while_active_and_valid(world: World) {
        let home = SignInApp::new(&world).await;
        let path = world.path(&format!("/User/{}", id(&home.user)));
        for (members, gets) in [
            (json!({ "isUserActive": false }), false),
            (json!({ "isUserActive": true }), true),
            (json!({ "userValidFrom": "2099-01-01T00:00:00Z" }), false),
            (json!({ "userValidFrom": "2001-01-01T00:00:00Z" }), true),
            (json!({ "userValidTo": "2002-01-01T00:00:00Z" }), false),
            (json!({ "userValidTo": "2099-01-01T00:00:00Z" }), true),
        ] {
            let mut body = members.clone();
            body["concurrencyToken"] = world.admin.get(&path).await.is(200).json()["concurrencyToken"].clone();
            world.admin.patch(&path, body).await.expect(202);
            assert_eq!(answer(&world, &home).await.is_some(), gets, "{members}");
        }
    }

    /// IdpType.isActive
    ///
    /// - Effect of `IdpInstance.name`: Administrators see the instance under this name; that of a user store is part of its addresses.
    /// - Effect of `IdpType.isActive`: Instances of a type that is not active are not offered.
    async fn instances_of_an_inactive_type_are_not_offered(world: World) {
        let home = SignInApp::new(&world).await;
        let kind = world.make("IdpType", json!({
            "name": "Own store", "providerType": "IdentityProvider", "factoryType": "UserStore",
        })).await;
        let store = world.make("IdpInstance", json!({ "name": "annexe", "idpTypeId": kind["id"] })).await;
        let filter = encode(&format!("applyToIdpInstanceId eq \"{}\" and name eq \"PasskeyEnrolment\"", id(&store)));
        let option = first(&world, &format!("/Option?filter={filter}")).await;
        change(&world, &format!("/Option/{}", id(&option)), json!({ "value": "Off" })).await;
        relate(&world, &format!("/IdpInstance/{}/tenants", id(&store)), &[&home.tenant]).await;
        relate(&world, &format!("/ClientApp/{}/idpinstances", id(&home.app)), &[id(&store)]).await;
        let people = "/api/userstore/v2/annexe/administration/User";
        let ann = world.admin.post(people, json!({ "loginName": "ann" })).await.is(201).json();
        let reset = format!("{people}/{}/password/reset", id(&ann));
        world.admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
        assert!(can_sign_in(&world, &home).await);
        change(&world, &format!("/IdpType/{}", id(&kind)), json!({ "isActive": false })).await;
        assert!(!can_sign_in(&world, &home).await);
    }

    /// IdpInstance.autoCreatePlatformUser
    ///
    /// - Effect of `IdpInstance.autoCreatePlatformUser`: A person who signs in for the first time becomes a platform user; otherwise the
    ///   sign-in is refused.
    async fn without_automatic_creation_only_known_people_sign_in(world: World) {
        let home = SignInApp::new(&world).await;
        let path = format!("/IdpInstance/{}", id(&first(&world, "/IdpInstance").await));
        change(&world, &path, json!({ "autoCreatePlatformUser": false })).await;
        assert!(!can_sign_in(&world, &home).await);
        person(&world).await;
        assert!(can_sign_in(&world, &home).await);
    }

    /// The requirement can be changed on either resource, and applies immediately.
    ///
    /// - Effect of `IdpInstance.mfaInstances`: People of the instance need one of these second factors.
    /// - Effect of `MfaInstance.idpInstances`: People of these instances need the second factor.
    async fn an_instance_requires_its_second_factors(world: World) {
        let home = SignInApp::new(&world).await;
        let instance = first(&world, "/IdpInstance").await;
        let factor = make_factor(&world, &home, "totp").await;
        assert!(can_sign_in(&world, &home).await);
        let sides = [
            (format!("/IdpInstance/{}/mfainstances", id(&instance)), id(&factor)),
            (format!("/MfaInstance/{}/idpinstances", id(&factor)), id(&instance)),
        ];
        for (path, related) in sides {
            relate(&world, &path, &[related]).await;
            let (_, page) = typed(&world, &home, &[]).await;
            assert!(page.html.contains("class=\"secret\""), "{path}: {}", page.html);
            relate(&world, &path, &[]).await;
            assert!(can_sign_in(&world, &home).await, "{path}");
        }
    }

    /// A second factor that is linked to an app, disabled or removed affects sign-ins that begin afterwards.
    ///
    /// - Effect of `MfaInstance.clientApps`: These apps require the second factor.
    async fn a_change_of_a_second_factor_applies_immediately(world: World) {
        let home = SignInApp::new(&world).await;
        let factor = make_factor(&world, &home, "totp").await;
        assert!(can_sign_in(&world, &home).await);
        let path = format!("/MfaInstance/{}", id(&factor));
        relate(&world, &format!("{path}/clientapps"), &[id(&home.app)]).await;
        let (_, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("class=\"secret\""), "it is asked for: {}", page.html);
        change(&world, &path, json!({ "isActive": false })).await;
        let (_, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("You cannot sign in here"), "it cannot be used: {}", page.html);
        world.admin.delete(&format!("{BASE}{path}")).await.expect(204);
        assert!(can_sign_in(&world, &home).await, "it is not there");
    }

    /// MfaInstance.tenants and Tenant.mfaInstances
    ///
    /// - Effect of `MfaInstance.tenants`: The second factor can be used at these tenants.
    /// - Effect of `Tenant.mfaInstances`: These second factors can be used at the tenant.
    async fn a_second_factor_is_usable_at_its_tenants_only(world: World) {
        let home = SignInApp::new(&world).await;
        let factor = require_factor(&world, &home, "totp").await;
        let sides = [
            (format!("/Tenant/{}/mfainstances", home.tenant), id(&factor)),
            (format!("/MfaInstance/{}/tenants", id(&factor)), home.tenant.as_str()),
        ];
        for (path, related) in sides {
            relate(&world, &path, &[]).await;
            let (_, page) = typed(&world, &home, &[]).await;
            assert!(page.html.contains("You cannot sign in here"), "{path}: {}", page.html);
            relate(&world, &path, &[related]).await;
            let (_, page) = typed(&world, &home, &[]).await;
            assert!(page.html.contains("class=\"secret\""), "{path}: {}", page.html);
        }
    }

    /// ClientApp.name, clientUri and logoUri; ClientAppScope.name and description.
    ///
    /// - Effect of `ClientApp.clientUri`: The consent page links to this home page of the app, and so does the page after a sign-out that
    ///   returns nowhere.
    /// - Effect of `ClientApp.logoUri`: The consent page shows this picture of the app.
    /// - Effect of `ClientApp.name`: Sign-in and consent pages show the app under this name.
    /// - Effect of `ClientAppScope.description`: The consent page explains the scope by this text.
    /// - Effect of `ClientAppScope.name`: The consent page shows the scope under this name.
    async fn the_consent_page_shows_the_app(world: World) {
        let home = SignInApp::with(&world, json!({ "accessGrantConsent": "Explicit" })).await;
        let scope = json!({
            "clientAppId": home.app["id"], "key": "ledger.read", "name": "Read your bookings",
            "description": "Amounts and dates of the last year",
        });
        world.make("ClientAppScope", scope).await;
        let page = consent_page(&world, &home).await;
        for shown in ["Harbour Ledger", "Read your bookings", "Amounts and dates of the last year"] {
            assert!(page.html.contains(shown), "{shown}: {}", page.html);
        }
        let addresses = ["href=\"https://ledger.example/about\"", "src=\"https://ledger.example/logo.png\""];
        assert!(addresses.iter().all(|address| !page.html.contains(address)), "{}", page.html);
        let members = json!({ "clientUri": "https://ledger.example/about", "logoUri": "https://ledger.example/logo.png" });
        change(&world, &format!("/ClientApp/{}", id(&home.app)), members).await;
        let page = consent_page(&world, &home).await;
        assert!(addresses.iter().all(|address| page.html.contains(address)), "{}", page.html);
    }

    /// RFC 8252, section 7.3: a native app chooses the port of the loopback address.
    ///
    /// - Effect of `ClientApp.isNativeApplication`: Redirect URIs may use a scheme of the app's own, and any port on the loopback address.
    async fn native_apps_may_use_any_loopback_port(world: World) {
        let home = SignInApp::with(&world, json!({ "isPublic": true, "isNativeApplication": true })).await;
        let uri = json!({ "clientAppId": home.app["id"], "uri": "http://127.0.0.1:4000/back", "redirectUriType": "Login" });
        world.make("ClientAppRedirectUri", uri).await;
        let request = home.request(&[("redirect_uri", "http://127.0.0.1:51234/back")]);
        assert_eq!(Browser::new(&world).open(&request).await.status, 200);
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "isNativeApplication": false })).await;
        assert_eq!(Browser::new(&world).open(&request).await.status, 400);
    }

    /// ClientApp.allowedResponseTypes
    ///
    /// - Effect of `ClientApp.allowedResponseTypes`: Authorization requests with other response types are refused.
    async fn response_types_that_are_not_allowed_are_refused(world: World) {
        let home = SignInApp::new(&world).await;
        for (allowed, error) in [("id_token", Some("unauthorized_client")), ("code, id_token", None)] {
            change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "allowedResponseTypes": allowed })).await;
            let left = Browser::new(&world).open(&home.request(&[("prompt", "none")])).await.left.unwrap();
            assert_eq!(parameter(&left, "error").as_deref(), error.or(Some("login_required")), "{allowed}");
        }
    }

    /// Each response type that an app can be allowed: a code, or the result of the sign-in only, else a refusal.
    async fn each_response_type_is_answered_or_refused(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        for (kind, error) in [
            ("code", None),
            ("none", None),
            ("code id_token", Some("unsupported_response_type")),
            ("code id_token token", Some("unsupported_response_type")),
            ("code token", Some("unsupported_response_type")),
            ("id_token", Some("unsupported_response_type")),
            ("id_token token", Some("unsupported_response_type")),
            ("token", Some("unsupported_response_type")),
        ] {
            change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "allowedResponseTypes": kind })).await;
            let left = browser.open(&home.request(&[("response_type", kind)])).await.left.unwrap();
            assert_eq!(parameter(&left, "error").as_deref(), error, "{kind}: {left}");
            assert_eq!(parameter(&left, "code").is_some(), kind == "code", "{kind}");
        }
    }

    /// ClientAppAuthenticationConfiguration.requireDpopNonce (RFC 9449, section 9)
    ///
    /// - Effect of `ClientAppAuthenticationConfiguration.requireDpopNonce`: A DPoP proof must contain a nonce of this server.
    async fn userinfo_can_require_a_dpop_nonce(world: World) {
        let home = SignInApp::new(&world).await;
        let configuration = json!({
            "clientAppId": home.app["id"], "tokenEndpointAuthMethod": "client_secret_post", "dpopBoundAccessTokens": true,
        });
        world.make("ClientAppAuthenticationConfiguration", configuration).await;
        let (_, answer) = home.sign_in(&world).await;
        let own = Signer::new("");
        let proof = own.prove("POST", &format!("{}/connect/token", world.base), json!({}));
        let headers = [("content-type", "application/x-www-form-urlencoded"), ("dpop", proof.as_str())];
        let sent = home.redemption_form(&parameter(&answer, "code").unwrap(), &[]).into_bytes();
        let tokens = world.anonymous.send(Method::POST, "/connect/token", &headers, sent).await.is(200).json();
        let token = tokens["access_token"].as_str().unwrap();
        let url = format!("{}/connect/userinfo", world.base);
        let hash = encode_part(digest(&SHA256, token.as_bytes()).as_ref());
        let request_userinfo = async |nonce: Option<&str>| {
            let mut more = json!({ "ath": hash });
            if let Some(nonce) = nonce {
                more["nonce"] = json!(nonce);
            }
            let (bearer, proof) = (format!("DPoP {token}"), own.prove("GET", &url, more));
            let headers = [("authorization", bearer.as_str()), ("dpop", proof.as_str())];
            world.anonymous.send(Method::GET, "/connect/userinfo", &headers, Vec::new()).await
        };
        request_userinfo(None).await.expect(200);
        let path = format!("/ClientAppAuthenticationConfiguration/{}", id(&home.app));
        change(&world, &path, json!({ "requireDpopNonce": true })).await;
        let refused = request_userinfo(None).await.is(401);
        let challenge = refused.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("DPoP ") && challenge.contains("error=\"use_dpop_nonce\""), "{challenge}");
        let nonce = refused.header("dpop-nonce").unwrap();
        request_userinfo(Some("made up")).await.expect(401);
        request_userinfo(Some(nonce)).await.expect(200);
    }

    /// ClientApp.authorizedPlatformUsers
    ///
    /// - Effect of `ClientApp.authorizedPlatformUsers`: These people may use the app while it is restricted.
    async fn a_restricted_app_admits_authorized_people_only(world: World) {
        let home = SignInApp::with(&world, json!({ "isRestricted": true })).await;
        let path = format!("/ClientApp/{}/authorizedusers", id(&home.app));
        assert!(!can_sign_in(&world, &home).await);
        let ann = person(&world).await;
        relate(&world, &path, &[id(&ann)]).await;
        assert!(can_sign_in(&world, &home).await);
        relate(&world, &path, &[]).await;
        assert!(!can_sign_in(&world, &home).await);
    }
}
