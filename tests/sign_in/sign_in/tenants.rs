//! No page of one tenant shows or signs in people of another: separation of two issuers, with one app at both
//! (sections 2, 11 and 22).

use chancery_testkit::{Answer, World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use super::{
    BASE, CALLBACK, PASSWORD, SignInApp, VERIFIER,
    browser::{Browser, Page},
    first, form, parameter, relate,
};
use crate::{id, instance::set_option};

/// Two tenants with a store each, with the users ann and bob; an app at both, and one at the first only.
struct TwoTenants {
    /// The app at both tenants; its user is ann.
    both: SignInApp,
    /// The app at the first tenant only.
    own: Value,
    /// The path prefix of each tenant's issuer.
    here: String,
    there: String,
}

impl TwoTenants {
    async fn new(world: &World) -> Self {
        let both = SignInApp::new(world).await;
        let (subscription, near) = (first(world, "/Subscription").await, first(world, "/IdpInstance").await);
        let tenant = json!({ "name": "Lighthouse", "subscriptionId": subscription["id"] });
        let tenant = world.make("Tenant", tenant).await;
        let kind = first(world, "/IdpType?filter=name%20eq%20%22UserStore%22").await;
        let store =
            json!({ "name": "elsewhere", "subscriptionId": subscription["id"], "idpTypeId": kind["id"] });
        let store = world.make("IdpInstance", store).await;
        // the tests do not cover the enrolment of a passkey
        set_option(world, &store, "PasskeyEnrolment", "Off").await;
        relate(world, &format!("/IdpInstance/{}/tenants", id(&store)), &[id(&tenant)]).await;
        relate(world, &format!("/ClientApp/{}/tenants", id(&both.app)), &[&both.tenant, id(&tenant)]).await;
        relate(world, &format!("/IdpInstance/{}/clientapps", id(&store)), &[id(&both.app)]).await;
        let people = "/api/userstore/v2/elsewhere/administration/User";
        let bob = json!({ "loginName": "bob", "firstName": "Bob", "lastName": "Baker" });
        let bob = world.admin.post(people, bob).await.is(201).json();
        let reset = format!("{people}/{}/password/reset", id(&bob));
        world.admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
        let own = world.make("ClientApp", json!({ "name": "Pilot Log" })).await;
        relate(world, &format!("/ClientApp/{}/tenants", id(&own)), &[&both.tenant]).await;
        relate(world, &format!("/ClientApp/{}/idpinstances", id(&own)), &[id(&near)]).await;
        for (uri, kind) in [(CALLBACK, "Login"), ("https://pilot.example/bye", "Logout")] {
            let body = json!({ "clientAppId": own["id"], "uri": uri, "redirectUriType": kind });
            world.make("ClientAppRedirectUri", body).await;
        }
        let (here, there) = (format!("/t/{}", both.tenant), format!("/t/{}", id(&tenant)));
        Self { both, own, here, there }
    }

    /// An authorization request at an issuer.
    fn request(&self, issuer: &str, more: &[(&str, &str)]) -> String {
        format!("{issuer}{}", self.both.request(more))
    }

    /// Signs in at an issuer, in this browser; returns the response to the app.
    async fn sign_in(&self, browser: &mut Browser, issuer: &str, more: &[(&str, &str)]) -> String {
        let page = browser.open(&self.request(issuer, more)).await;
        browser.sign_in(&page, if issuer == self.here { "ann" } else { "bob" }, PASSWORD).await
    }

    /// Posts a form of the app to an endpoint of an issuer.
    async fn post(&self, world: &World, path: &str, fields: &[(&str, &str)]) -> Answer {
        let own = [("client_id", id(&self.both.app)), ("client_secret", self.both.secret.as_str())];
        let sent = form(fields.iter().copied().chain(own)).into_bytes();
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        world.anonymous.send(Method::POST, path, &headers, sent).await
    }

    async fn redeem(&self, world: &World, issuer: &str, code: &str) -> Answer {
        let shown = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ];
        self.post(world, &format!("{issuer}/connect/token"), &shown).await
    }

    /// The tokens of a sign-in at the first tenant's issuer, with `offline_access`.
    async fn tokens(&self, world: &World, browser: &mut Browser) -> Value {
        let answer = self.sign_in(browser, &self.here, &[("scope", "openid profile offline_access")]).await;
        self.redeem(world, &self.here, &parameter(&answer, "code").unwrap()).await.is(200).json()
    }
}

/// Asserts that a page contains nothing of the first tenant: its people, its app, its URLs, its name.
#[track_caller]
fn assert_names_nothing(two: &TwoTenants, page: &Page) {
    let hidden =
        ["Ann Archer", "ann@example.com", "Pilot Log", "pilot.example", "Default", two.both.tenant.as_str()];
    for name in hidden {
        assert!(!page.html.contains(name), "{name} in {}", page.html);
        assert!(page.left.as_deref().is_none_or(|left| !left.contains(name)), "{name} in {:?}", page.left);
    }
}

on_both_engines! {
    /// A session: the other issuer asks for a password, and does not show the account of the first.
    async fn a_session_is_valid_at_its_tenant_only(world: World) {
        let two = TwoTenants::new(&world).await;
        let mut browser = Browser::new(&world);
        two.sign_in(&mut browser, &two.here, &[]).await;
        let silent = browser.open(&two.request(&two.there, &[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
        let hinted = [("prompt", "none"), ("login_hint", "ann")];
        let silent = browser.open(&two.request(&two.there, &hinted)).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
        for more in [&[][..], &[("prompt", "select_account")]] {
            let page = browser.open(&two.request(&two.there, more)).await;
            assert!(page.html.contains("current-password"), "{}", page.html);
            assert_names_nothing(&two, &page);
        }
        // with a session at each, each issuer uses its own
        two.sign_in(&mut browser, &two.there, &[]).await;
        let chosen = browser.open(&two.request(&two.there, &[("prompt", "select_account")])).await;
        assert!(chosen.html.contains("Bob Baker"), "{}", chosen.html);
        assert_names_nothing(&two, &chosen);
        for (issuer, name) in [(&two.here, "ann"), (&two.there, "bob")] {
            let silent = browser.open(&two.request(issuer, &[("prompt", "none")])).await.left.unwrap();
            let tokens = two.redeem(&world, issuer, &parameter(&silent, "code").unwrap()).await.is(200).json();
            let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
            let response = bearer.get(&format!("{issuer}/connect/userinfo")).await.is(200).json();
            assert_eq!(response["preferred_username"], json!(name));
        }
    }

    /// People of one tenant's store are unknown at the other's issuer.
    ///
    /// - Effect of `IdpInstance.tenants`: People of the instance can sign in at these tenants.
    /// - Effect of `Tenant.idpInstances`: People of these instances can sign in at the tenant.
    async fn people_are_known_at_their_tenant_only(world: World) {
        let two = TwoTenants::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&two.request(&two.there, &[])).await;
        let refused = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(refused.html.contains("is not right"), "{}", refused.html);
        assert!(browser.cookies.keys().all(|name| !name.ends_with("session")));
    }

    /// A flow cookie: its pages are below its own issuer, and neither shown nor accepted below the other's.
    async fn a_flow_is_valid_at_its_issuer_only(world: World) {
        let two = TwoTenants::new(&world).await;
        for (issuer, other) in [(&two.here, two.there.as_str()), (&two.here, ""), (&String::new(), two.there.as_str())] {
            let mut browser = Browser::new(&world);
            let request = two.both.request(&[("client_id", id(&two.own))]);
            let page = browser.open(&format!("{issuer}{request}")).await;
            assert!(page.html.contains("Pilot Log"), "{}", page.html);
            let moved = |address: &str| format!("{other}{}", address.strip_prefix(issuer.as_str()).unwrap());
            let shown = browser.open(&moved(&page.address)).await;
            assert_eq!(shown.status, 400, "{}", shown.html);
            assert_names_nothing(&two, &shown);
            let typed = [("csrf", page.field("csrf")), ("username", "ann".into()), ("password", PASSWORD.into())];
            let typed: Vec<(&str, &str)> = typed.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let posted = browser.post(&moved(&page.action()), &typed, &[]).await;
            assert_eq!(posted.status, 400, "{}", posted.html);
            assert_names_nothing(&two, &posted);
            assert!(browser.cookies.keys().all(|name| !name.ends_with("session")));
        }
    }

    /// A code is refused at the other issuer.
    async fn a_code_is_valid_at_its_tenant_only(world: World) {
        let two = TwoTenants::new(&world).await;
        let mut browser = Browser::new(&world);
        let answer = two.sign_in(&mut browser, &two.here, &[]).await;
        let code = parameter(&answer, "code").unwrap();
        let refused = two.redeem(&world, &two.there, &code).await.is(400).json();
        assert_eq!(refused["error"], json!("invalid_grant"));
        two.redeem(&world, &two.here, &code).await.expect(200);
    }

    /// An access token: neither the person's claims nor the introspection of the token.
    async fn an_access_token_is_valid_at_its_tenant_only(world: World) {
        let two = TwoTenants::new(&world).await;
        let tokens = two.tokens(&world, &mut Browser::new(&world)).await;
        let token = tokens["access_token"].as_str().unwrap();
        let bearer = world.anonymous.with_token(token);
        bearer.get(&format!("{}/connect/userinfo", two.there)).await.expect(401);
        let response = two.post(&world, &format!("{}/connect/introspect", two.there), &[("token", token)]).await;
        assert_eq!(response.is(200).json(), json!({ "active": false }));
        bearer.get(&format!("{}/connect/userinfo", two.here)).await.expect(200);
    }

    /// A refresh token is refused at the other issuer.
    async fn a_refresh_token_is_valid_at_its_tenant_only(world: World) {
        let two = TwoTenants::new(&world).await;
        let tokens = two.tokens(&world, &mut Browser::new(&world)).await;
        let shown = [("grant_type", "refresh_token"), ("refresh_token", tokens["refresh_token"].as_str().unwrap())];
        let refused = two.post(&world, &format!("{}/connect/token", two.there), &shown).await.is(400).json();
        assert_eq!(refused["error"], json!("invalid_grant"));
        two.post(&world, &format!("{}/connect/token", two.here), &shown).await.expect(200);
    }

    /// `id_token_hint`: ignored by the other issuer, both at a sign-in and at a sign-out.
    async fn an_id_token_hint_is_valid_at_its_tenant_only(world: World) {
        let two = TwoTenants::new(&world).await;
        let mut browser = Browser::new(&world);
        let tokens = two.tokens(&world, &mut browser).await;
        let hint = tokens["id_token"].as_str().unwrap();
        let refused = browser.open(&two.request(&two.there, &[("id_token_hint", hint)])).await.left.unwrap();
        assert_eq!(parameter(&refused, "error").as_deref(), Some("invalid_request"));
        let confirmation = browser.open(&format!("{}/connect/endsession?id_token_hint={hint}", two.there)).await;
        assert!(confirmation.html.contains("Sign out?"), "{}", confirmation.html);
        assert_names_nothing(&two, &confirmation);
        let silent = browser.open(&two.request(&two.here, &[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&silent, "code").is_some(), "{silent}");
    }

    /// The anti-forgery proof of a form: that of a sign-in belongs to its flow, that of a sign-out to its issuer.
    async fn a_form_is_valid_at_its_tenant_only(world: World) {
        let two = TwoTenants::new(&world).await;
        let mut browser = Browser::new(&world);
        let (one, other) = (two.request(&two.here, &[]), two.request(&two.there, &[]));
        let (one, other) = (browser.open(&one).await, browser.open(&other).await);
        let typed = [("csrf", one.field("csrf")), ("username", "bob".into()), ("password", PASSWORD.into())];
        let typed: Vec<(&str, &str)> = typed.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(browser.post(&other.action(), &typed, &[]).await.status, 403);
        two.sign_in(&mut browser, &two.there, &[]).await;
        let csrf = browser.open(&format!("{}/connect/endsession", two.here)).await.field("csrf");
        let fields = [("csrf", csrf.as_str()), ("decision", "allow")];
        let confirmation = browser.post(&format!("{}/connect/endsession", two.there), &fields, &[]).await;
        assert!(confirmation.html.contains("Sign out?"), "{}", confirmation.html);
        let silent = browser.open(&two.request(&two.there, &[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&silent, "code").is_some(), "{silent}");
    }

    /// A sign-out at one issuer ends no session of the other, and notifies none of its apps.
    async fn a_sign_out_affects_its_tenant_only(world: World) {
        let two = TwoTenants::new(&world).await;
        let path = format!("{BASE}/ClientApp/{}", id(&two.both.app));
        let now = world.admin.get(&path).await.is(200).json();
        let changes = json!({ "frontchannelLogoutUri": "https://app.example/out", "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&path, changes).await.expect(202);
        let mut browser = Browser::new(&world);
        let tokens = two.tokens(&world, &mut browser).await;
        two.sign_in(&mut browser, &two.there, &[]).await;
        let page = browser.open(&format!("{}/connect/endsession", two.there)).await;
        let csrf = page.field("csrf");
        let done = browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
        assert!(done.html.contains("You are signed out") && !done.html.contains("<iframe"), "{}", done.html);
        let silent = [("prompt", "none")];
        let left = browser.open(&two.request(&two.there, &silent)).await.left.unwrap();
        assert_eq!(parameter(&left, "error").as_deref(), Some("login_required"));
        let left = browser.open(&two.request(&two.here, &silent)).await.left.unwrap();
        assert!(parameter(&left, "code").is_some(), "{left}");
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        bearer.get(&format!("{}/connect/userinfo", two.here)).await.expect(200);
        // at the installation's issuer all sessions of the browser
        let page = browser.open("/connect/endsession").await;
        let csrf = page.field("csrf");
        browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
        let left = browser.open(&two.request(&two.here, &silent)).await.left.unwrap();
        assert_eq!(parameter(&left, "error").as_deref(), Some("login_required"));
    }

    /// An app of one tenant is unknown at the other's issuer, whose pages neither show it nor link to it.
    ///
    /// - Effect of `ClientApp.tenants`: People sign in to the app at these tenants.
    /// - Effect of `Tenant.clientApps`: These apps can send people to the tenant.
    async fn an_app_is_known_at_its_tenants_only(world: World) {
        let two = TwoTenants::new(&world).await;
        let mut browser = Browser::new(&world);
        let own = id(&two.own);
        assert_eq!(browser.open(&two.request(&two.here, &[("client_id", own)])).await.status, 200);
        for more in [&[][..], &[("prompt", "none")]] {
            let request: Vec<(&str, &str)> = [("client_id", own)].into_iter().chain(more.iter().copied()).collect();
            let page = browser.open(&two.request(&two.there, &request)).await;
            assert_eq!((page.status, page.left.is_none()), (400, true), "{more:?}");
            assert_names_nothing(&two, &page);
        }
        let back = "&post_logout_redirect_uri=https%3A%2F%2Fpilot.example%2Fbye";
        for back in ["", back] {
            let address = format!("{}/connect/endsession?client_id={own}{back}", two.there);
            assert_names_nothing(&two, &Browser::new(&world).open(&address).await);
            two.sign_in(&mut browser, &two.there, &[]).await;
            let page = browser.open(&address).await;
            assert!(!page.html.contains("Pilot Log"), "{}", page.html);
            let csrf = page.field("csrf");
            let done = browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
            assert_names_nothing(&two, &done);
            assert!(done.answer.header("refresh").is_none(), "{:?}", done.answer.headers);
        }
        two.sign_in(&mut browser, &two.here, &[]).await;
        let page = browser.open(&format!("{}/connect/endsession?client_id={own}{back}", two.here)).await;
        assert!(page.html.contains("Pilot Log"), "{}", page.html);
        let csrf = page.field("csrf");
        let done = browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
        assert!(done.html.contains("Pilot Log"), "{}", done.html);
        let moved = done.address.replace(&two.here, &two.there);
        let shown = browser.open(&moved).await;
        assert_eq!(shown.status, 400, "{}", shown.html);
        assert_names_nothing(&two, &shown);
    }

    /// `acr_values` selects a tenant at the installation's issuer; at a tenant's issuer no other can be selected.
    async fn acr_values_cannot_name_another_tenant(world: World) {
        let two = TwoTenants::new(&world).await;
        let mut browser = Browser::new(&world);
        let acr_value = format!("tenant:{}", two.both.tenant);
        let page = browser.open(&two.request(&two.there, &[("acr_values", &acr_value)])).await;
        if page.left.is_none() && page.html.contains("current-password") {
            let refused = browser.type_password(&page, "ann", PASSWORD).await;
            assert!(refused.html.contains("is not right"), "{}", refused.html);
        }
        assert_names_nothing(&two, &page);
        assert!(browser.cookies.keys().all(|name| !name.ends_with("session")));
    }

    /// The page to select a tenant, at the installation's issuer, lists only tenants of the app.
    ///
    /// - Effect of `Tenant.name`: Sign-in pages show the tenant under this name.
    async fn the_tenant_choice_lists_the_tenants_of_the_app(world: World) {
        let two = TwoTenants::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&two.both.request(&[])).await;
        assert!(page.html.contains("Lighthouse") && page.html.contains("Default"), "{}", page.html);
        relate(&world, &format!("/ClientApp/{}/tenants", id(&two.own)), &[two.there.strip_prefix("/t/").unwrap()]).await;
        let page = browser.open(&two.both.request(&[("client_id", id(&two.own))])).await;
        assert!(!page.html.contains("Default"), "{}", page.html);
        // of two sessions of the browser only that of the app's tenant is offered
        two.sign_in(&mut browser, &two.here, &[]).await;
        let page = browser.open(&two.both.request(&[("client_id", id(&two.own)), ("prompt", "select_account")])).await;
        assert!(!page.html.contains("Ann Archer"), "{}", page.html);
    }
}
