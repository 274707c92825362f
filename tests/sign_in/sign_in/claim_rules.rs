//! Claim rules in tokens: which apply, to which claims, and which tokens contain the result.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, CALLBACK, PASSWORD, SignInApp, browser::Browser, change, claims, encode, first, form, parameter,
    relate,
};
use crate::id;

/// Creates a claim rule that adds a claim, with further members.
pub async fn create_rule(world: &World, claim: (&str, &str), members: Value) -> Value {
    let (claim_type, value) = claim;
    let mut body = json!({
        "name": format!("adds {claim_type}"), "ruleType": "Add", "ruleLevel": "Subscription",
        "typeTransformationReplacement": claim_type, "valueTransformationReplacement": value,
    });
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    world.make("ClaimRule", body).await
}

/// Signs in with these parameters; returns the response of the token endpoint.
pub async fn tokens(world: &World, home: &SignInApp, more: &[(&str, &str)]) -> Value {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(more)).await;
    let answer = browser.sign_in(&page, "ann", PASSWORD).await;
    home.redeem(world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json()
}

/// The UserInfo response for an access token.
pub async fn userinfo(world: &World, tokens: &Value) -> Value {
    let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
    bearer.get("/connect/userinfo").await.is(200).json()
}

/// Claims of ID token, userinfo and access token after a sign-in with these parameters.
pub async fn issued_claims(world: &World, home: &SignInApp, more: &[(&str, &str)]) -> [Value; 3] {
    let tokens = tokens(world, home, more).await;
    let info = userinfo(world, &tokens).await;
    [claims(&tokens["id_token"]), info, claims(&tokens["access_token"])]
}

/// Values of a claim in each of them, as text.
pub fn values(issued: &[Value; 3], claim: &str) -> [String; 3] {
    issued.each_ref().map(|one| one.get(claim).map_or_else(String::new, ToString::to_string))
}

fn sorted(value: &Value) -> Vec<&str> {
    let mut all: Vec<&str> = value.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    all.sort_unstable();
    all
}

async fn introspect(world: &World, home: &SignInApp, token: &Value) -> Value {
    let shown = [
        ("token", token.as_str().unwrap()),
        ("client_id", id(&home.app)),
        ("client_secret", home.secret.as_str()),
    ];
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let body = form(shown.into_iter()).into_bytes();
    world.anonymous.send(http::Method::POST, "/connect/introspect", &headers, body).await.is(200).json()
}

/// Rules of each level; the last one belongs to another app.
async fn rules_of_each_level(world: &World, home: &SignInApp, other: &Value) {
    let instance = first(world, "/IdpInstance").await["id"].clone();
    let apps = json!([{ "id": home.app["id"] }]);
    for (level, members) in [
        ("Subscription", json!({})),
        ("Tenant", json!({ "applyToTenantId": home.tenant })),
        ("ClientApp", json!({ "clientApps": apps })),
        ("ClientAppIdpInstance", json!({ "clientApps": apps, "applyToIdpInstanceId": instance })),
    ] {
        let mut members = members;
        members["ruleLevel"] = json!(level);
        create_rule(world, ("level", level), members).await;
    }
    let members = json!({ "ruleLevel": "ClientApp", "clientApps": [{ "id": other["id"] }] });
    create_rule(world, ("level", "OfAnother"), members).await;
    create_rule(world, ("level", "Inactive"), json!({ "isActive": false })).await;
}

const ALL: [&str; 4] = ["ClientApp", "ClientAppIdpInstance", "Subscription", "Tenant"];

/// Another public client app of the same tenant and store.
async fn second_app(world: &World, home: &SignInApp) -> SignInApp {
    let app = world.make("ClientApp", json!({ "name": "Second", "isPublic": true })).await;
    let store = first(world, "/IdpInstance").await;
    relate(world, &format!("/ClientApp/{}/tenants", id(&app)), &[&home.tenant]).await;
    relate(world, &format!("/ClientApp/{}/idpinstances", id(&app)), &[id(&store)]).await;
    let uri = json!({ "clientAppId": app["id"], "uri": CALLBACK, "redirectUriType": "Login" });
    world.make("ClientAppRedirectUri", uri).await;
    SignInApp { app, tenant: home.tenant.clone(), secret: String::new(), user: home.user.clone() }
}

on_both_engines! {
    /// Redemption, refresh, userinfo, introspection and exchange.
    ///
    /// - Effect of `ClaimRule.applyToIdpInstanceId`: The rule applies to people of this instance.
    /// - Effect of `ClaimRule.applyToSubscriptionId`: The rule applies to the apps of this subscription.
    /// - Effect of `ClaimRule.applyToTenantId`: The rule applies to this tenant.
    /// - Effect of `ClaimRule.clientApps`: The rule applies to these apps.
    /// - Effect of `ClaimRule.ruleLevel`: The rule applies to a subscription, a tenant, an app, or an app with one instance.
    async fn rules_of_each_level_apply_whenever_tokens_are_issued(world: World) {
        let home = SignInApp::new(&world).await;
        let other = world.make("ClientApp", json!({ "name": "Reports" })).await;
        rules_of_each_level(&world, &home, &other).await;
        let first = tokens(&world, &home, &[("scope", "openid offline_access")]).await;
        let again = home.refresh_at(&world.anonymous, first["refresh_token"].as_str().unwrap()).await.is(200).json();
        for tokens in [&first, &again] {
            for token in ["id_token", "access_token"] {
                assert_eq!(sorted(&claims(&tokens[token])["level"]), ALL, "{token}");
            }
            assert_eq!(sorted(&userinfo(&world, tokens).await["level"]), ALL);
            assert_eq!(sorted(&introspect(&world, &home, &tokens["access_token"]).await["level"]), ALL);
        }
        let secret = world.make("ClientAppSecret", json!({ "clientAppId": other["id"], "name": "s" })).await;
        relate(&world, &format!("/ClientApp/{}/allowedtokenexchangeclientapps", id(&home.app)), &[id(&other)]).await;
        let form = form([
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("subject_token", first["access_token"].as_str().unwrap()),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("client_id", id(&other)),
            ("client_secret", secret["secret"].as_str().unwrap()),
        ].into_iter());
        let exchanged = world.anonymous.ask_for_token(&form).await.is(200).json();
        assert_eq!(sorted(&claims(&exchanged["access_token"])["level"]), ["OfAnother", "Subscription", "Tenant"]);
        // a token of the client app itself is about no person
        let own = format!("grant_type=client_credentials&client_id={}&client_secret={}&resource=PlatformUserStoreService",
            id(&other), secret["secret"].as_str().unwrap());
        change(&world, &format!("/ClientApp/{}", id(&other)), json!({ "allowClientCredentialLogin": true })).await;
        let own = world.anonymous.ask_for_token(&own).await.is(200).json();
        assert_eq!(claims(&own["access_token"]).get("level"), None);
    }

    /// Changes by administrators, also of the links of rules, apply to the next token.
    ///
    /// - Effect of `ClaimRule.isActive`: A rule that is not active does not run.
    /// - Effect of `ClientApp.claimRules`: These claim rules of level ClientApp shape the claims that the app gets.
    async fn a_changed_rule_applies_immediately(world: World) {
        let home = SignInApp::new(&world).await;
        let first = tokens(&world, &home, &[("scope", "openid offline_access")]).await;
        let token = first["refresh_token"].as_str().unwrap();
        let role = async || {
            let tokens = home.refresh_at(&world.anonymous, token).await.is(200).json();
            assert_eq!(claims(&tokens["id_token"]).get("role"), userinfo(&world, &tokens).await.get("role"));
            claims(&tokens["access_token"]).get("role").cloned()
        };
        assert_eq!(role().await, None);
        let created = create_rule(&world, ("role", "reader"), json!({ "ruleLevel": "ClientApp" })).await;
        assert_eq!(role().await, None, "the rule has no client app");
        relate(&world, &format!("/ClaimRule/{}/clientapps", id(&created)), &[id(&home.app)]).await;
        assert_eq!(role().await, Some(json!("reader")));
        let one = format!("/ClaimRule/{}", id(&created));
        change(&world, &one, json!({ "valueTransformationReplacement": "editor" })).await;
        assert_eq!(role().await, Some(json!("editor")));
        change(&world, &one, json!({ "isActive": false })).await;
        assert_eq!(role().await, None);
        change(&world, &one, json!({ "isActive": true })).await;
        assert_eq!(role().await, Some(json!("editor")));
        relate(&world, &format!("/ClientApp/{}/claimrules", id(&home.app)), &[]).await;
        assert_eq!(role().await, None);
        relate(&world, &format!("/ClientApp/{}/claimrules", id(&home.app)), &[id(&created)]).await;
        assert_eq!(role().await, Some(json!("editor")));
        world.admin.delete(&format!("{BASE}{one}")).await.expect(204);
        assert_eq!(role().await, None);
    }

    /// - Effect of `ClaimRule.destination`: The claims of the rule go into ID tokens, access tokens, both or none.
    async fn destinations_select_the_tokens_of_a_claim(world: World) {
        let home = SignInApp::new(&world).await;
        for destination in ["None", "IdToken", "AccessToken", "IdTokenAndAccessToken"] {
            create_rule(&world, (destination, "x"), json!({ "destination": destination })).await;
        }
        let issued = issued_claims(&world, &home, &[]).await;
        let (yes, no) = ("\"x\"", "");
        assert_eq!(values(&issued, "None"), [no, no, no]);
        assert_eq!(values(&issued, "IdToken"), [yes, yes, no]);
        assert_eq!(values(&issued, "AccessToken"), [no, no, yes]);
        assert_eq!(values(&issued, "IdTokenAndAccessToken"), [yes, yes, yes]);
    }

    /// A built-in claim requires its scope, and is in an access token only if a rule adds it there.
    async fn rules_rewrite_built_in_claims(world: World) {
        let home = SignInApp::new(&world).await;
        let before = issued_claims(&world, &home, &[]).await;
        assert_eq!(values(&before, "email"), ["\"ann@example.com\"", "\"ann@example.com\"", ""]);
        let rule = |more: Value| {
            let mut body = json!({ "name": "rule", "ruleLevel": "Subscription" });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        // one group of rules forwards all claims, and rewrites the domain of the address
        let all = rule(json!({ "ruleType": "Remove", "typeEvaluationRule": "^(email|nickname)$", "destination": "IdToken" }));
        let domain = rule(json!({
            "ruleType": "Transform", "typeEvaluationRule": "^email$", "transformTarget": "ClaimValue",
            "valueTransformationRule": "@.*$", "valueTransformationReplacement": "@example.org",
        }));
        for body in [all, domain] {
            world.make("ClaimRule", body).await;
        }
        let after = issued_claims(&world, &home, &[]).await;
        assert_eq!(values(&after, "email"), ["\"ann@example.org\""; 3]);
        assert_eq!(values(&after, "email_verified"), ["true", "true", ""], "it stays a Boolean");
        assert_eq!(values(&after, "name"), ["\"Ann Archer\"", "\"Ann Archer\"", ""]);
        assert!(after[0]["updated_at"].is_i64(), "{}", after[0]);
        let without = issued_claims(&world, &home, &[("scope", "openid profile")]).await;
        assert_eq!(values(&without, "email"), ["", "", ""]);
        // another value in addition to the address
        create_rule(&world, ("email", "second@example.com"), json!({ "priority": 1, "destination": "IdToken" })).await;
        let both = issued_claims(&world, &home, &[]).await;
        assert_eq!(both[1]["email"], json!(["ann@example.org", "second@example.com"]));
    }

    /// The most frequent use of rules. The app needs no access to the groups.
    async fn rules_map_groups_to_roles(world: World) {
        let home = SignInApp::new(&world).await;
        for name in ["app-editor", "app-reader", "staff"] {
            let group = world.group(name).await;
            let groups = world.path(&format!("/User/{}/groups", id(&home.user)));
            world.admin.post(&groups, json!({ "relatedIds": [group["id"]] })).await.expect(202);
        }
        world.make("ClaimRule", json!({
            "name": "roles", "ruleType": "Transform", "ruleLevel": "Subscription", "filterTarget": "ClaimTypeAndValue",
            "typeEvaluationRule": "^groups$", "valueEvaluationRule": "^app-", "transformTarget": "ClaimTypeAndValue",
            "typeTransformationReplacement": "roles", "valueTransformationRule": "^app-(.*)$", "valueTransformationReplacement": "$1",
        })).await;
        let after = issued_claims(&world, &home, &[]).await;
        assert_eq!(values(&after, "roles"), ["[\"editor\",\"reader\"]"; 3]);
        assert_eq!(values(&after, "groups"), ["", "", ""]);
        assert_eq!(values(&after, "name"), ["", "", ""], "a rule that rewrites forwards nothing else");
    }

    /// Each member of a rule changes the claims of tokens.
    ///
    /// - Effect of `ClaimRule.filterTarget`: The rule matches types, values or both.
    /// - Effect of `ClaimRule.inputSource`: The rule looks at claims of the platform, of the identity provider, or all.
    /// - Effect of `ClaimRule.priority`: Rules with a lower priority run first.
    /// - Effect of `ClaimRule.ruleType`: The rule keeps, rewrites, adds or removes claims.
    /// - Effect of `ClaimRule.transformTarget`: The rule rewrites types, values or both.
    /// - Effect of `ClaimRule.typeEvaluationRule`: The rule looks only at claims whose type matches this pattern.
    /// - Effect of `ClaimRule.typeTransformationReplacement`: The type is rewritten to it; a rule that adds takes it as the type.
    /// - Effect of `ClaimRule.typeTransformationRule`: The part of a type that matches this pattern is rewritten.
    /// - Effect of `ClaimRule.valueEvaluationRule`: The rule looks only at claims whose value matches this pattern.
    /// - Effect of `ClaimRule.valueTransformationReplacement`: The value is rewritten to it; a rule that adds takes it as the value.
    /// - Effect of `ClaimRule.valueTransformationRule`: The part of a value that matches this pattern is rewritten.
    async fn each_member_of_a_rule_affects_claims(world: World) {
        let home = SignInApp::with(&world, json!({ "includeGroupsClaims": true })).await;
        for name in ["app-editor", "app-reader", "staff"] {
            let group = world.group(name).await;
            let groups = world.path(&format!("/User/{}/groups", id(&home.user)));
            world.admin.post(&groups, json!({ "relatedIds": [group["id"]] })).await.expect(202);
        }
        let first = tokens(&world, &home, &[("scope", "openid offline_access")]).await;
        let refreshed = async || {
            let token = first["refresh_token"].as_str().unwrap();
            claims(&home.refresh_at(&world.anonymous, token).await.is(200).json()["id_token"])
        };
        let rule = |members: &Value| {
            let mut body = json!({
                "name": "roles", "ruleType": "Transform", "ruleLevel": "Subscription", "filterTarget": "ClaimTypeAndValue",
                "typeEvaluationRule": "^groups$", "valueEvaluationRule": "^app-", "transformTarget": "ClaimTypeAndValue",
                "typeTransformationReplacement": "roles", "valueTransformationRule": "^app-(.*)$",
                "valueTransformationReplacement": "$1",
            });
            body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            body
        };
        let (both, all) = (json!(["editor", "reader"]), json!(["app-editor", "app-reader", "staff"]));
        for (members, claim, expected, groups) in [
            (json!({}), "roles", both.clone(), json!([])),
            (json!({ "typeEvaluationRule": "^nothing$" }), "roles", json!(null), json!([])),
            (json!({ "valueEvaluationRule": "^app-e" }), "roles", json!("editor"), json!([])),
            (json!({ "filterTarget": "ClaimType" }), "roles", json!(["editor", "reader", "staff"]), json!([])),
            (json!({ "transformTarget": "ClaimType" }), "roles", json!(["app-editor", "app-reader"]), json!([])),
            (json!({ "transformTarget": "ClaimValue" }), "roles", json!(null), both.clone()),
            (json!({ "typeTransformationReplacement": "duties" }), "duties", both.clone(), json!([])),
            (json!({ "typeTransformationRule": "oup" }), "grroless", both.clone(), json!([])),
            (json!({ "valueTransformationRule": "^(app)-.*$" }), "roles", json!("app"), json!([])),
            (json!({ "valueTransformationReplacement": "x-$1" }), "roles", json!(["x-editor", "x-reader"]), json!([])),
            (json!({ "ruleType": "Filter" }), "roles", json!(null), json!(["app-editor", "app-reader"])),
            (json!({ "ruleType": "Remove" }), "roles", json!(null), json!(["staff"])),
            (json!({ "ruleType": "Add" }), "roles", json!("$1"), all.clone()),
            (json!({ "inputSource": "IdentityProvider" }), "roles", json!(null), all.clone()),
        ] {
            let created = world.make("ClaimRule", rule(&members)).await;
            let issued = refreshed().await;
            assert_eq!((&issued[claim], &issued["groups"]), (&expected, &groups), "{members}");
            world.admin.delete(&format!("{BASE}/ClaimRule/{}", id(&created))).await.expect(204);
        }
        // roles are removed that an earlier rule added
        let remove = json!({ "name": "none", "ruleType": "Remove", "ruleLevel": "Subscription", "priority": 1, "typeEvaluationRule": "^roles$" });
        world.make("ClaimRule", remove).await;
        for (priority, expected) in [(0, json!(null)), (2, both)] {
            let created = world.make("ClaimRule", rule(&json!({ "priority": priority }))).await;
            assert_eq!(refreshed().await["roles"], expected, "{priority}");
            world.admin.delete(&format!("{BASE}/ClaimRule/{}", id(&created))).await.expect(204);
        }
    }

    /// The protocol defines the meaning of these claims.
    async fn rules_cannot_set_protocol_claims(world: World) {
        let home = SignInApp::new(&world).await;
        let protected = [
            "sub", "iss", "aud", "exp", "iat", "nbf", "jti", "nonce", "auth_time", "acr", "amr", "azp", "sid", "cnf", "client_id",
            "at_hash", "c_hash", "s_hash", "act", "may_act", "scope", "tid", "gid", "from_jti", "groups_truncated",
        ];
        for claim in protected {
            create_rule(&world, (claim, "forged"), json!({})).await;
        }
        for issued in issued_claims(&world, &home, &[]).await {
            assert!(!issued.to_string().contains("forged"), "{issued}");
        }
    }

    /// Apps link to the values of these claims. A rule adds claims beside those of the platform.
    async fn rules_release_no_link_that_would_run_a_script(world: World) {
        let home = SignInApp::new(&world).await;
        for (claim, value) in [("website", "javascript:alert(1)"), ("picture", "https://example.com/ada.png")] {
            create_rule(&world, (claim, value), json!({})).await;
        }
        let issued = issued_claims(&world, &home, &[("scope", "openid profile")]).await;
        assert_eq!(values(&issued, "website"), ["", "", ""]);
        assert!(values(&issued, "picture").iter().any(|picture| picture.contains("ada.png")), "{issued:?}");
    }

    /// A claim with disclosure on request is included if its name, or a scope of that name, is requested.
    ///
    /// - Effect of `ClaimRule.disclosureMode`: The claims of the rule are always included, or only on request.
    async fn a_claim_on_request_requires_its_name_or_scope(world: World) {
        let home = SignInApp::new(&world).await;
        create_rule(&world, ("badge", "4711"), json!({ "disclosureMode": "OnRequest" })).await;
        world.make("ClientAppScope", json!({ "clientAppId": home.app["id"], "key": "badge", "name": "Badge" })).await;
        let (yes, no) = ("\"4711\"", "");
        for (parameters, expected) in [
            (vec![], [no, no, no]),
            (vec![("scope", "openid badge")], [yes, yes, yes]),
            (vec![("claims", r#"{"id_token":{"badge":null}}"#)], [yes, no, yes]),
            (vec![("claims", r#"{"userinfo":{"badge":{"essential":true}}}"#)], [no, yes, yes]),
            (vec![("claims", r#"{"userinfo":{"badge":{"value":"0815"}}}"#)], [no, no, no]),
            (vec![("claims", r#"{"userinfo":{"badge":{"values":["0815","4711"]}}}"#)], [no, yes, yes]),
        ] {
            assert_eq!(values(&issued_claims(&world, &home, &parameters).await, "badge"), expected, "{parameters:?}");
        }
    }

    /// If the rules fail no tokens are issued. The code remains valid, and there is one record for each client app.
    async fn failing_rules_are_a_server_error(world: World) {
        let home = SignInApp::with(&world, json!({ "isPublic": true })).await;
        let good = tokens(&world, &home, &[("scope", "openid offline_access")]).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        let other = second_app(&world, &home).await;
        let (_, answer) = other.sign_in(&world).await;
        let code_of_other = parameter(&answer, "code").unwrap();
        let mut rules = Vec::new();
        for number in 0..3 {
            let value = format!("{number}{}", "x".repeat(1999));
            rules.push(create_rule(&world, ("long", &value), json!({})).await);
        }
        for _ in 0..2 {
            for refused in [
                home.redeem(&world, &code, &[]).await,
                other.redeem(&world, &code_of_other, &[]).await,
                home.refresh_at(&world.anonymous, good["refresh_token"].as_str().unwrap()).await,
            ] {
                assert_eq!(refused.is(500).json()["error"], "server_error");
            }
            let bearer = world.anonymous.with_token(good["access_token"].as_str().unwrap());
            bearer.get("/connect/userinfo").await.expect(200);
        }
        let filter = encode("reason eq \"ClaimRules\"");
        let records = world.admin.get(&format!("{BASE}/SignInRecord?filter={filter}")).await.is(200).json();
        let records = records.as_array().unwrap();
        assert_eq!(records.len(), 2, "{records:?}");
        for record in records {
            assert_eq!((&record["outcome"], &record["attempts"]), (&json!("Refused"), &json!(1)), "{record}");
        }
        assert!(records.iter().any(|record| record["clientAppId"] == home.app["id"]), "{records:?}");
        for rule in &rules[1..] {
            change(&world, &format!("/ClaimRule/{}", id(rule)), json!({ "isActive": false })).await;
        }
        home.redeem(&world, &code, &[]).await.expect(200);
        home.refresh_at(&world.anonymous, good["refresh_token"].as_str().unwrap()).await.expect(200);
    }

    /// More claims than one evaluation permits are an error at userinfo, too.
    async fn userinfo_fails_with_too_many_rules(world: World) {
        let home = SignInApp::new(&world).await;
        let good = tokens(&world, &home, &[]).await;
        let rules: Vec<Value> = (0..1001).map(|number| json!({
            "name": format!("rule {number}"), "ruleType": "Add", "ruleLevel": "Subscription",
            "typeTransformationReplacement": "a", "valueTransformationReplacement": "b",
        })).collect();
        for batch in rules.chunks(500) {
            world.admin.post(&format!("{BASE}/ClaimRule/batch"), json!(batch)).await.expect(200);
        }
        let bearer = world.anonymous.with_token(good["access_token"].as_str().unwrap());
        bearer.get("/connect/userinfo").await.expect(500);
    }
}
