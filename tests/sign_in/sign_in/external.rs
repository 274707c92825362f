//! Sign-in at an external identity provider.

use std::sync::Arc;

use chancery_record::Value as Stored;
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    BASE, CALLBACK, PASSWORD, SignInApp,
    browser::{Browser, Page},
    change, claim_rules, claims, first, link, parameter, relate,
};
use crate::{
    id,
    instance::{create_instance, set_option},
    provider_trial::{
        allow_loopback,
        stub_provider::{Behaviour, StubProvider},
    },
};

/// Creates an instance of type OpenIdConnect for a provider, linked to the app and its tenant.
pub async fn connect(world: &World, home: &SignInApp, name: &str, provider: &StubProvider) -> Value {
    let instance = create_instance(world, name, "OpenIdConnect").await;
    for (option, value) in
        [("Authority", provider.issuer.as_str()), ("ClientId", "us"), ("ClientSecret", "quiet")]
    {
        set_option(world, &instance, option, value).await;
    }
    for (relation, related) in [("tenants", home.tenant.as_str()), ("clientapps", id(&home.app))] {
        relate(world, &format!("/IdpInstance/{}/{relation}", id(&instance)), &[related]).await;
    }
    instance
}

/// An app with people of the default store and of a provider.
pub async fn set_up(world: &World) -> (SignInApp, Arc<StubProvider>, Value) {
    let provider = StubProvider::start().await;
    let home = SignInApp::new(world).await;
    let instance = connect(world, &home, "Partner", &provider).await;
    (home, provider, instance)
}

/// Follows the button of this name to the provider, signs in there and returns.
pub async fn sign_in_with(browser: &mut Browser, page: &Page, name: &str, provider: &StubProvider) -> Page {
    let provider_url = browser.open(&link(page, &format!("Continue with {name}"))).await.left.unwrap();
    let path = parameter(&provider_url, "redirect_uri").unwrap();
    let query = provider.sign_in(&provider_url);
    browser.open(&format!("{path}?{query}")).await
}

/// Signs in at the provider in a new browser; returns the browser and the response to the app.
pub async fn sign_in(
    world: &World,
    home: &SignInApp,
    provider: &StubProvider,
    more: &[(&str, &str)],
) -> (Browser, String) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(more)).await;
    let page = sign_in_with(&mut browser, &page, "Partner", provider).await;
    let answer = browser.continue_to_app(&page).await;
    (browser, answer)
}

/// The tokens after a sign-in at the provider.
pub async fn tokens(
    world: &World,
    home: &SignInApp,
    provider: &StubProvider,
    more: &[(&str, &str)],
) -> Value {
    let (_, answer) = sign_in(world, home, provider, more).await;
    let code = parameter(&answer, "code").unwrap_or_else(|| panic!("{answer}"));
    home.redeem(world, &code, &[]).await.is(200).json()
}

/// The platform users of an instance.
pub async fn people(world: &World, instance: &Value) -> Vec<Value> {
    let all = world.all("ApplicationUser").await;
    let is_theirs = |person: &&Value| {
        person["identities"].as_array().unwrap().iter().any(|one| one["idpInstanceId"] == instance["id"])
    };
    all.as_array().unwrap().iter().filter(is_theirs).cloned().collect()
}

/// Whether the page reports that the sign-in at the provider failed.
pub fn has_failed(page: &Page) -> bool {
    page.html.contains("The sign-in there did not work")
}

on_both_engines! {
    [allow_loopback]
    /// - Effect of `IdpInstance.idpTypeId`: The type determines how the instance works.
    async fn an_external_person_signs_in_and_becomes_a_platform_user(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        provider.behave(Behaviour {
            claims: json!({ "given_name": "Ada", "family_name": "Lovelace", "name": "Countess" }),
            ..Behaviour::default()
        });
        let issued = tokens(&world, &home, &provider, &[]).await;
        let users = people(&world, &instance).await;
        assert_eq!(users.len(), 1, "{users:?}");
        let person = &users[0];
        assert_eq!((&person["firstName"], &person["emailAddress"]), (&json!("Ada"), &json!("ada@example.com")));
        let identity = &person["identities"][0];
        assert_eq!((&identity["subject"], &identity["issuer"]), (&json!("ada"), &json!(provider.issuer)));
        assert_eq!((&identity["isUserStoreIdentity"], &identity["lifecycleStatus"]), (&json!(false), &json!("Active")));
        let id_token = claims(&issued["id_token"]);
        assert_eq!((&id_token["sub"], &id_token["amr"], &id_token["acr"]), (&person["id"], &json!(["fed"]), &json!("sfa")));
        assert_eq!((&id_token["name"], &id_token["given_name"]), (&json!("Ada Lovelace"), &json!("Ada")));
        // the provider is not trusted: its addresses are not confirmed
        assert_eq!((&id_token["email"], &id_token["email_verified"]), (&json!("ada@example.com"), &json!(false)));
        assert_eq!(claim_rules::userinfo(&world, &issued).await["sub"], person["id"]);
        // the next sign-in is of the same person, with the changed claims
        provider.behave(Behaviour { claims: json!({ "given_name": "Augusta" }), ..Behaviour::default() });
        let (mut browser, answer) = sign_in(&world, &home, &provider, &[]).await;
        assert!(parameter(&answer, "code").is_some(), "{answer}");
        let users = people(&world, &instance).await;
        assert_eq!((users.len(), &users[0]["firstName"], &users[0]["lastName"]), (1, &json!("Augusta"), &json!("Lovelace")));
        // with the session there is no prompt
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&silent, "code").is_some(), "{silent}");
        let records = world.all("SignInRecord").await;
        let theirs: Vec<&Value> = records.as_array().unwrap().iter().filter(|one| one["idpInstanceId"] == instance["id"]).collect();
        assert_eq!((theirs.len(), &theirs[0]["outcome"], &theirs[0]["methods"]), (2, &json!("SignedIn"), &json!("fed")));
    }

    async fn tokens_end_with_the_instance_of_the_sign_in(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let issued = tokens(&world, &home, &provider, &[("scope", "openid offline_access")]).await;
        let refreshed = home.refresh_at(&world.anonymous, issued["refresh_token"].as_str().unwrap()).await.is(200).json();
        change(&world, &format!("/IdpInstance/{}", id(&instance)), json!({ "isActive": false })).await;
        // a confidential app reuses its refresh token
        home.refresh_at(&world.anonymous, issued["refresh_token"].as_str().unwrap()).await.expect(400);
        let bearer = world.anonymous.with_token(refreshed["access_token"].as_str().unwrap());
        bearer.get("/connect/userinfo").await.expect(401);
    }

    async fn people_who_may_not_become_platform_users_are_refused(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        change(&world, &format!("/IdpInstance/{}", id(&instance)), json!({ "autoCreatePlatformUser": false })).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
        assert_eq!(people(&world, &instance).await.len(), 0);
        // a password still works, on the same page
        browser.sign_in(&page, "ann", PASSWORD).await;
    }

    /// An e-mail address never identifies a person.
    async fn an_email_address_does_not_link_accounts(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let own = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let ann = claims(&own["id_token"])["sub"].clone();
        provider.behave(Behaviour {
            claims: json!({ "sub": "other", "email": "ann@example.com", "email_verified": true, "preferred_username": "ann" }),
            user_info: json!({ "sub": "other", "email": "ann@example.com", "email_verified": true }),
            ..Behaviour::default()
        });
        let issued = claims(&tokens(&world, &home, &provider, &[]).await["id_token"]);
        assert_ne!(issued["sub"], ann);
        assert_eq!(issued["email_verified"], json!(false));
        // nor does the same subject of another provider
        let second = StubProvider::start().await;
        let other = connect(&world, &home, "Other", &second).await;
        second.behave(Behaviour { claims: json!({ "sub": "other" }), user_info: json!({ "sub": "other" }), ..Behaviour::default() });
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = sign_in_with(&mut browser, &page, "Other", &second).await;
        let answer = browser.continue_to_app(&page).await;
        let theirs = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_ne!(claims(&theirs["id_token"])["sub"], issued["sub"]);
        assert_eq!((people(&world, &instance).await.len(), people(&world, &other).await.len()), (1, 1));
    }

    /// - Effect of `OpenIdConnect options.Authority`: Sign-ins and trials ask the provider at this address.
    async fn errors_of_a_provider_return_to_the_sign_in_page(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        for behaviour in [
            Behaviour { claims: json!({ "nonce": "another" }), ..Behaviour::default() },
            Behaviour { claims: json!({ "aud": "another" }), ..Behaviour::default() },
            Behaviour { claims: json!({ "iss": "https://another.example" }), ..Behaviour::default() },
            Behaviour { claims: json!({ "exp": 1 }), ..Behaviour::default() },
            Behaviour { header: json!({ "alg": "none" }), ..Behaviour::default() },
            Behaviour { header: json!({ "alg": "HS256" }), ..Behaviour::default() },
            Behaviour { signs_by_another: true, ..Behaviour::default() },
            Behaviour { user_info: json!({ "sub": "somebody-else" }), ..Behaviour::default() },
            Behaviour { claims: json!({ "sub": " ada" }), user_info: json!({ "sub": " ada" }), ..Behaviour::default() },
            Behaviour { tokens: Some((500, json!("down"))), ..Behaviour::default() },
        ] {
            provider.behave(behaviour);
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
            assert!(has_failed(&page) && page.html.contains("Continue with Partner"), "{}", page.html);
            // the error description of the provider is only logged
            let log_parts = ["another.example", "is not that of the request", "The ID token", "token endpoint"];
            assert!(!log_parts.iter().any(|part| page.html.contains(part)), "{}", page.html);
        }
        assert_eq!(people(&world, &instance).await.len(), 0);
        // the person cancels at the provider
        provider.behave(Behaviour::default());
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let provider_url = browser.open(&link(&page, "Continue with Partner")).await.left.unwrap();
        let (state, back) = (parameter(&provider_url, "state").unwrap(), parameter(&provider_url, "redirect_uri").unwrap());
        let no = format!("{back}?error=access_denied&error_description=%3Cb%3Eno&state={state}&iss={}", provider.issuer);
        let page = browser.open(&no).await;
        assert!(page.html.contains("was cancelled") && !page.html.contains("no&state") && !page.html.contains("<b>no"), "{}", page.html);
        // a provider that is down does not affect others
        set_option(&world, &instance, "Authority", "http://127.0.0.1:1").await;
        let page = browser.open(&link(&page, "Continue with Partner")).await;
        assert!(has_failed(&page), "{}", page.html);
        browser.sign_in(&page, "ann", PASSWORD).await;
    }

    /// A callback is valid once, for the browser, the flow and the instance of the request.
    async fn a_callback_is_valid_once_for_its_flow_and_browser(world: World) {
        let (home, provider, _) = set_up(&world).await;
        let second = StubProvider::start().await;
        connect(&world, &home, "Other", &second).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let provider_url = browser.open(&link(&page, "Continue with Partner")).await.left.unwrap();
        let back = parameter(&provider_url, "redirect_uri").unwrap();
        let query = provider.sign_in(&provider_url);
        // login CSRF: another browser has no such flow
        let mut victim = Browser::new(&world);
        let seen = victim.open(&format!("{back}?{query}")).await;
        assert!(seen.status == 400 && seen.left.is_none(), "{}: {}", seen.status, seen.html);
        let victim_page = victim.open(&home.request(&[])).await;
        victim.open(&link(&victim_page, "Continue with Partner")).await;
        assert_eq!(victim.open(&format!("{back}?{query}")).await.status, 400);
        // mix-up: the response returns at the other instance
        let mut mixed = browser.clone();
        let other_url = mixed.open(&link(&page, "Continue with Other")).await.left.unwrap();
        let other = parameter(&other_url, "redirect_uri").unwrap();
        assert_eq!(mixed.open(&format!("{other}?{query}")).await.status, 400);
        assert_eq!(mixed.open(&format!("{back}?{query}")).await.status, 400, "the browser went elsewhere since");
        let wrong_issuer = query.replace(&provider.issuer, &second.issuer);
        let mut misled = browser.clone();
        assert!(has_failed(&misled.open(&format!("{back}?{wrong_issuer}")).await));
        // a changed state
        let changed = query.replace("state=", "state=x");
        assert_eq!(browser.clone().open(&format!("{back}?{changed}")).await.status, 400);
        // valid once, also with the cookies from before
        let mut before = browser.clone();
        let page = browser.open(&format!("{back}?{query}")).await;
        assert!(parameter(&browser.continue_to_app(&page).await, "code").is_some());
        let again = before.open(&format!("{back}?{query}")).await;
        assert!(again.status == 400 && again.left.is_none(), "{}", again.html);
    }

    /// A provider that claims to be another one, or leads the browser to it, signs in none of its people and gets none of its codes.
    async fn a_dishonest_provider_signs_in_nobody_of_another(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        tokens(&world, &home, &provider, &[]).await;
        let (liar, guide) = (StubProvider::start().await, StubProvider::start().await);
        connect(&world, &home, "Liar", &liar).await;
        connect(&world, &home, "Guide", &guide).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let partner = parameter(&browser.clone().open(&link(&page, "Continue with Partner")).await.left.unwrap(), "redirect_uri").unwrap();
        // its document and its ID token have the issuer of the other
        let issuer = json!({ "iss": provider.issuer });
        liar.behave(Behaviour { document: json!({ "issuer": provider.issuer }), claims: issuer, ..Behaviour::default() });
        assert!(has_failed(&sign_in_with(&mut browser.clone(), &page, "Liar", &liar).await));
        // its ID token alone does
        guide.behave(Behaviour { claims: json!({ "iss": provider.issuer }), ..Behaviour::default() });
        assert!(has_failed(&sign_in_with(&mut browser.clone(), &page, "Guide", &guide).await));
        // the browser returns from the other, to the callback of either
        guide.behave(Behaviour::default());
        let url = browser.open(&link(&page, "Continue with Guide")).await.left.unwrap();
        let connections = guide.connections();
        let query = provider.sign_in(&url.replace(&guide.issuer, &provider.issuer));
        assert_eq!(browser.clone().open(&format!("{partner}?{query}")).await.status, 400);
        let back = parameter(&url, "redirect_uri").unwrap();
        assert!(has_failed(&browser.clone().open(&format!("{back}?{query}")).await));
        assert_eq!(guide.connections(), connections, "it gets no code");
        assert_eq!(people(&world, &instance).await.len(), 1);
    }

    /// A single provider is redirected to immediately; hidden ones only if they are named.
    async fn a_single_provider_is_redirected_to_immediately(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let store = first(&world, "/IdpInstance?filter=idpFactoryType%20eq%20%22UserStore%22").await;
        let added = format!("{BASE}/IdpInstance/{}/clientapps", id(&store));
        world.admin.delete_with(&added, json!({ "relatedIds": [home.app["id"]] })).await.expect(202);
        let mut browser = Browser::new(&world);
        let provider_url = browser.open(&home.request(&[])).await.left.unwrap();
        assert!(provider_url.starts_with(&format!("{}/authorize?", provider.issuer)), "{provider_url}");
        let back = parameter(&provider_url, "redirect_uri").unwrap();
        let page = browser.open(&format!("{back}?{}", provider.sign_in(&provider_url))).await;
        assert!(browser.continue_to_app(&page).await.starts_with(CALLBACK));
        // a failure there does not redirect there again
        provider.behave(Behaviour { claims: json!({ "nonce": "x" }), ..Behaviour::default() });
        let mut other = Browser::new(&world);
        let provider_url = other.open(&home.request(&[])).await.left.unwrap();
        let page = other.open(&format!("{back}?{}", provider.sign_in(&provider_url))).await;
        assert!(has_failed(&page) && !page.html.contains("name=\"password\""), "{}", page.html);
        // a hidden one is offered to a request that names it
        provider.behave(Behaviour::default());
        change(&world, &format!("/IdpInstance/{}", id(&instance)), json!({ "isHidden": true })).await;
        let mut hidden = Browser::new(&world);
        assert!(hidden.open(&home.request(&[])).await.left.is_none());
        let provider_url = hidden.open(&home.request(&[("acr_values", "idp:Partner")])).await.left.unwrap();
        assert!(provider_url.starts_with(&provider.issuer), "{provider_url}");
    }

    /// Claims of the provider are in tokens as claim rules define.
    async fn claim_rules_forward_claims_of_the_provider(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        provider.behave(Behaviour { claims: json!({ "department": "Analysis", "groups": ["staff"] }), ..Behaviour::default() });
        let issued = tokens(&world, &home, &provider, &[("scope", "openid profile groups offline_access")]).await;
        let id_token = claims(&issued["id_token"]);
        assert!(id_token.get("department").is_none() && id_token.get("groups").is_none(), "{id_token}");
        let rule = json!({
            "name": "department", "ruleType": "Filter", "ruleLevel": "ClientAppIdpInstance", "inputSource": "IdentityProvider",
            "typeEvaluationRule": "^department$", "applyToIdpInstanceId": instance["id"], "clientApps": [{ "id": home.app["id"] }],
        });
        world.make("ClaimRule", rule).await;
        let issued = tokens(&world, &home, &provider, &[("scope", "openid profile offline_access")]).await;
        assert_eq!(claims(&issued["id_token"])["department"], json!("Analysis"));
        // they are part of the grant
        let refreshed = home.refresh_at(&world.anonymous, issued["refresh_token"].as_str().unwrap()).await.is(200).json();
        assert_eq!(claims(&refreshed["access_token"])["department"], json!("Analysis"));
        assert_eq!(claim_rules::userinfo(&world, &refreshed).await["department"], json!("Analysis"));
    }

    async fn a_restricted_app_admits_named_external_people(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        tokens(&world, &home, &provider, &[]).await;
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "isRestricted": true })).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.answer.header("refresh").is_none(), "{}", page.html);
        // no new platform users are created there
        let other = json!({ "sub": "somebody-new" });
        provider.behave(Behaviour { claims: other.clone(), user_info: other, ..Behaviour::default() });
        let mut other_browser = Browser::new(&world);
        let page = other_browser.open(&home.request(&[])).await;
        let page = sign_in_with(&mut other_browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
        assert_eq!(people(&world, &instance).await.len(), 1);
        provider.behave(Behaviour::default());
        let person = people(&world, &instance).await[0].clone();
        relate(&world, &format!("/ClientApp/{}/authorizedusers", id(&home.app)), &[id(&person)]).await;
        tokens(&world, &home, &provider, &[]).await;
    }

    /// OpenID Connect Core 1.0, section 2: `sub` is case-sensitive.
    async fn subjects_that_differ_in_case_are_different_people(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let mut subjects = Vec::new();
        for subject in ["ada", "Ada", "ADA", "ada"] {
            let sub = json!({ "sub": subject });
            provider.behave(Behaviour { claims: sub.clone(), user_info: sub, ..Behaviour::default() });
            subjects.push(claims(&tokens(&world, &home, &provider, &[]).await["id_token"])["sub"].clone());
        }
        assert_eq!((people(&world, &instance).await.len(), &subjects[0]), (3, &subjects[3]));
    }

    /// New people are of the subscription of their instance. By one of another subscription, which an earlier release could link, they are
    /// admitted only to an app with `allowCrossSubscription`.
    async fn new_people_of_another_subscription_require_permission_of_the_app(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let far = world.other_subscription("Far").await;
        let row = Stored::from(far.as_str().unwrap().parse::<Uuid>().unwrap());
        world.sql(vec![("UPDATE idp_instance SET subscription_id = ?1 WHERE name = 'Partner'", vec![row])]).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
        assert_eq!(people(&world, &instance).await, Vec::<Value>::new());
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "allowCrossSubscription": true })).await;
        tokens(&world, &home, &provider, &[]).await;
        assert_eq!(people(&world, &instance).await.len(), 1);
    }

    async fn a_new_signing_key_of_a_provider_is_fetched(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        tokens(&world, &home, &provider, &[]).await;
        provider.behave(Behaviour {
            signs_by_another: true,
            publishes_another: true,
            header: json!({ "kid": "k2" }),
            ..Behaviour::default()
        });
        tokens(&world, &home, &provider, &[]).await;
        assert_eq!(people(&world, &instance).await.len(), 1);
    }

    /// - Effect of `OpenIdConnect options.CallbackPath`: The provider sends people back to this path of the server.
    async fn a_custom_callback_path_works(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        set_option(&world, &instance, "CallbackPath", "/signin-oidc").await;
        let issued = tokens(&world, &home, &provider, &[]).await;
        assert!(issued["id_token"].is_string());
        assert!(provider.request_parameter("redirect_uri").ends_with("/signin-oidc"));
        world.anonymous.get("/signin-oidc?state=x.y&code=c").await.expect(404);
    }

    async fn external_people_sign_in_at_a_tenant_s_issuer(world: World) {
        let (home, provider, _) = set_up(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&format!("/t/{}{}", home.tenant, home.request(&[]))).await;
        let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
        let answer = browser.continue_to_app(&page).await;
        assert_eq!(parameter(&answer, "iss").unwrap(), format!("{}/t/{}", world.base, home.tenant));
    }

    /// The duration of requests to a provider is a metric of its instance.
    async fn metrics_report_the_duration_of_provider_requests(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        tokens(&world, &home, &provider, &[]).await;
        set_option(&world, &instance, "Authority", "http://127.0.0.1:1").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        assert!(has_failed(&browser.open(&link(&page, "Continue with Partner")).await));
        let metrics = world.admin.get("/metrics").await.is(200);
        let text = String::from_utf8_lossy(&metrics.bytes).into_owned();
        for outcome in ["ok", "failed"] {
            let line = format!("chancery_provider_seconds_count{{instance=\"{}\",outcome=\"{outcome}\"}} 1", id(&instance));
            assert!(text.contains(&line), "{line}");
        }
    }
}
