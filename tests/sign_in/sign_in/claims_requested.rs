//! Claims by scope, by name (`claims`), and from the entries of a user.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    PASSWORD, SignInApp,
    browser::Browser,
    change,
    claim_rules::{issued_claims, tokens, userinfo, values},
    claims, encode, first, parameter,
};
use crate::id;

/// Adds entries to the user.
async fn add_entries(world: &World, home: &SignInApp, entries: &[(&str, &str)]) {
    let path = world.path(&format!("/user/{}/UserProfile", id(&home.user)));
    for (key, value) in entries {
        world.admin.post(&path, json!({ "key": key, "value": value })).await.expect(202);
    }
}

/// Redirect of an authorization request of a browser with a session.
async fn redirect(browser: &mut Browser, home: &SignInApp, more: &[(&str, &str)]) -> String {
    browser.open(&home.request(more)).await.left.unwrap()
}

on_both_engines! {
    /// Every member of a user that is a claim is included with its scope, entries with `profile`.
    ///
    /// - Effect of `UserProfile.key`: Apps that request it by scope or by `claims` get the entry as a claim of this name.
    /// - Effect of `UserProfile.value`: The claim of the entry has this value.
    async fn scopes_select_the_claims_of_a_user(world: World) {
        let home = SignInApp::new(&world).await;
        let one = world.path(&format!("/User/{}", id(&home.user)));
        let mut user = world.admin.get(&one).await.is(200).json();
        let members = [
            ("middleName", "middle_name", "May"), ("nickname", "nickname", "Annie"), ("profile", "profile", "https://ann.example"),
            ("picture", "picture", "https://ann.example/me.png"), ("website", "website", "https://ann.example/site"),
            ("gender", "gender", "female"), ("birthdate", "birthdate", "1990-02-03"), ("zoneinfo", "zoneinfo", "Europe/Berlin"),
            ("locale", "locale", "de-DE"), ("phoneNumber", "phone_number", "+4930123456"),
        ];
        user.as_object_mut().unwrap().retain(|_, value| !value.is_array());
        for (member, _, value) in members {
            user[member] = json!(value);
        }
        world.admin.put(&one, user).await.expect(202);
        add_entries(&world, &home, &[("department", "Sales"), ("name", "Somebody Else"), ("sub", "1"), ("role", "")]).await;
        let all = issued_claims(&world, &home, &[("scope", "openid profile email phone")]).await;
        for (_, claim, value) in members {
            assert_eq!(values(&all, claim), [format!("\"{value}\""), format!("\"{value}\""), String::new()], "{claim}");
        }
        assert_eq!(values(&all, "name"), ["\"Ann May Archer\"", "\"Ann May Archer\"", ""], "an entry takes no place of the platform's");
        assert_eq!(values(&all, "department"), ["\"Sales\"", "\"Sales\"", ""]);
        assert_eq!(values(&all, "role"), ["\"\"", "\"\"", ""]);
        assert_eq!(values(&all, "phone_number_verified"), ["false", "false", ""]);
        assert_ne!(all[1]["sub"], "1");
        let few = issued_claims(&world, &home, &[("scope", "openid email")]).await;
        for claim in ["department", "name", "nickname", "phone_number"] {
            assert_eq!(values(&few, claim), ["", "", ""], "{claim}");
        }
    }

    /// ID tokens are stored in cookies: long claims are only at the UserInfo endpoint.
    async fn long_claims_are_only_at_userinfo(world: World) {
        let home = SignInApp::new(&world).await;
        add_entries(&world, &home, &[("about", &"a".repeat(3000)), ("more", &"b".repeat(3000))]).await;
        let all = issued_claims(&world, &home, &[]).await;
        assert_eq!(values(&all, "about")[0], "");
        assert_eq!(all[1]["about"].as_str().unwrap().len(), 3000);
        assert_eq!(values(&all, "preferred_username")[0], "\"ann\"");
    }

    /// OpenID Connect Core 1.0, section 5.5, independent of `idTokenClaims`.
    async fn the_claims_parameter_requests_claims_by_name(world: World) {
        let home = SignInApp::with(&world, json!({ "idTokenClaims": "Minimal" })).await;
        add_entries(&world, &home, &[("department", "Sales")]).await;
        let requested = r#"{"userinfo":{"email":{"essential":true},"department":null},"id_token":{"given_name":null,"email_verified":{"value":true},"nickname":null,"acr":null}}"#;
        let all = issued_claims(&world, &home, &[("scope", "openid"), ("claims", requested)]).await;
        assert_eq!(values(&all, "given_name"), ["\"Ann\"", "", ""]);
        assert_eq!(values(&all, "email_verified"), ["true", "", ""]);
        assert_eq!(values(&all, "email"), ["", "\"ann@example.com\"", ""]);
        assert_eq!(values(&all, "department"), ["", "\"Sales\"", ""]);
        assert_eq!(values(&all, "nickname"), ["", "", ""], "a claim that the person does not have is no error");
        assert_eq!(values(&all, "family_name"), ["", "", ""]);
        // a value that the person does not have requests nothing
        let requested = r#"{"id_token":{"given_name":{"value":"Bob"},"family_name":{"values":["Archer","Baker"]}}}"#;
        let all = issued_claims(&world, &home, &[("scope", "openid"), ("claims", requested)]).await;
        assert_eq!((values(&all, "given_name"), values(&all, "family_name")), (["", "", ""].map(str::to_owned), ["\"Archer\"", "", ""].map(str::to_owned)));
        let document = world.anonymous.get("/.well-known/openid-configuration").await.is(200).json();
        assert_eq!(document["claims_parameter_supported"], true);
        let supported = document["claims_supported"].as_array().unwrap();
        assert!(["email", "name", "updated_at", "groups"].iter().all(|claim| supported.contains(&json!(claim))), "{supported:?}");
    }

    /// Claims requested by name are part of the grant.
    async fn refreshed_tokens_contain_claims_requested_by_name(world: World) {
        let home = SignInApp::new(&world).await;
        let requested = [("scope", "openid offline_access"), ("claims", r#"{"id_token":{"given_name":null}}"#)];
        let first = tokens(&world, &home, &requested).await;
        let again = home.refresh_at(&world.anonymous, first["refresh_token"].as_str().unwrap()).await.is(200).json();
        for answer in [first, again] {
            assert_eq!(claims(&answer["id_token"])["given_name"], "Ann");
        }
    }

    /// A claim that the client app lost the right to is not included by name either.
    async fn claims_by_name_require_the_right_to_their_scope(world: World) {
        let home = SignInApp::new(&world).await;
        let scope = json!({ "clientAppId": home.app["id"], "key": "offline_access", "name": "Stay signed in" });
        world.make("ClientAppScope", scope).await;
        let named = r#"{"userinfo":{"email":null},"id_token":{"email":null}}"#;
        let first = tokens(&world, &home, &[("scope", "openid offline_access"), ("claims", named)]).await;
        assert_eq!(claims(&first["id_token"])["email"], "ann@example.com");
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "scopeFilterEnabled": true })).await;
        let again = home.refresh_at(&world.anonymous, first["refresh_token"].as_str().unwrap()).await.is(200).json();
        assert_eq!(claims(&again["id_token"]).get("email"), None);
        assert_eq!(userinfo(&world, &again).await.get("email"), None);
    }

    async fn a_malformed_claims_parameter_is_refused(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let long = format!(r#"{{"userinfo":{{"{}":null}}}}"#, "x".repeat(5000));
        for wrong in ["no", "[]", r#"{"id_token":[]}"#, r#"{"userinfo":{"email":{"essential":"yes"}}}"#] {
            let answer = redirect(&mut browser, &home, &[("claims", wrong)]).await;
            assert_eq!(parameter(&answer, "error").as_deref(), Some("invalid_request"), "{wrong}");
        }
        assert!(parameter(&redirect(&mut browser, &home, &[("claims", &long)]).await, "code").is_some(), "a long name is nobody's");
    }

    /// An app with filtered scopes gets no claims by name that it cannot get by scope.
    async fn an_app_with_filtered_scopes_gets_no_other_claims_by_name(world: World) {
        let home = SignInApp::with(&world, json!({ "scopeFilterEnabled": true })).await;
        add_entries(&world, &home, &[("department", "Sales")]).await;
        let requested = [("scope", "openid"), ("claims", r#"{"userinfo":{"email":null,"department":null,"name":null}}"#)];
        let all = issued_claims(&world, &home, &requested).await;
        for claim in ["email", "department", "name"] {
            assert_eq!(values(&all, claim), ["", "", ""], "{claim}");
        }
        world.make("ClientAppScope", json!({ "clientAppId": home.app["id"], "key": "email", "name": "Address" })).await;
        let all = issued_claims(&world, &home, &requested).await;
        assert_eq!(values(&all, "email"), ["", "\"ann@example.com\"", ""]);
    }

    /// Claims requested by name need consent to their scope, and can be declined.
    async fn consent_covers_claims_requested_by_name(world: World) {
        let home = SignInApp::with(&world, json!({ "accessGrantConsent": "Explicit" })).await;
        let requested = [("scope", "openid"), ("claims", r#"{"userinfo":{"email":null,"phone_number":null}}"#)];
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&requested)).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(page.asks_for_consent() && page.html.contains("value=\"email\"") && page.html.contains("value=\"phone\""), "{}", page.html);
        let answer = browser.submit(&page, &[("decision", "allow"), ("scope", "email")]).await;
        let answer = browser.continue_to_app(&answer).await;
        let granted = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(granted["scope"], "openid");
        let info = userinfo(&world, &granted).await;
        assert_eq!((info.get("email"), info.get("phone_number")), (Some(&json!("ann@example.com")), None::<&Value>));
        // an administrator consents to the scope: names in addition have no effect, and are no error
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "accessGrantConsent": "External" })).await;
        let person = first(&world, &format!("/ApplicationUser?filter={}", encode("emailAddress eq \"ann@example.com\""))).await;
        let consent = json!({ "clientAppId": home.app["id"], "platformUserId": person["id"], "scope": "openid" });
        world.make("SignInConsent", consent).await;
        let silent = [requested[0], requested[1], ("prompt", "none")];
        let code = parameter(&redirect(&mut browser, &home, &silent).await, "code").unwrap();
        let granted = home.redeem(&world, &code, &[]).await.is(200).json();
        assert_eq!(userinfo(&world, &granted).await.get("email"), None);
    }
}
