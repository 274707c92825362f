//! The device flow (RFC 8628).

use chancery_record::Value as Bound;
use chancery_testkit::{Answer, World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, CALLBACK, PASSWORD, SignInApp, VERIFIER,
    browser::{Browser, Page},
    change, claims, encode, first, form, tenant_option,
};
use crate::{id, signer::Signer};

pub async fn home(world: &World, members: Value) -> SignInApp {
    let mut all = json!({ "allowDeviceAuthorizationGrant": true, "isPublic": true });
    all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    SignInApp::with(world, all).await
}

pub async fn send(world: &World, home: &SignInApp, path: &str, more: &[(&str, &str)]) -> Answer {
    let usual = [("client_id", id(&home.app)), ("client_secret", home.secret.as_str())];
    let all = usual.into_iter().chain(more.iter().copied()).filter(|(_, value)| !value.is_empty());
    let form: Vec<String> = all.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    world.anonymous.send(http::Method::POST, path, &headers, form.join("&").into_bytes()).await
}

pub async fn authorize_device(world: &World, home: &SignInApp) -> Value {
    send(world, home, "/connect/deviceauthorization", &[("scope", "openid profile offline_access")])
        .await
        .is(200)
        .json()
}

pub async fn poll(world: &World, home: &SignInApp, device: &Value) -> Answer {
    let grant = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("device_code", device["device_code"].as_str().unwrap()),
    ];
    send(world, home, "/connect/token", &grant).await
}

pub async fn submit(browser: &mut Browser, page: &Page, fields: &[(&str, &str)]) -> Page {
    let csrf = page.field("csrf");
    let all: Vec<(&str, &str)> =
        [("csrf", csrf.as_str())].into_iter().chain(fields.iter().copied()).collect();
    browser.post(&page.action(), &all, &[]).await
}

/// Enters the user code and the password; the page asks to confirm the device.
pub async fn enter_code(world: &World, device: &Value) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open("/device").await;
    let code = device["user_code"].as_str().unwrap().to_lowercase().replace('-', " ");
    let page = submit(&mut browser, &page, &[("user_code", &code)]).await;
    assert!(page.html.contains("current-password"), "{}", page.html);
    let page = browser.type_password(&page, "ann", PASSWORD).await;
    assert!(
        page.html.contains("Is this your device?") && page.html.contains("Harbour Ledger"),
        "{}",
        page.html
    );
    (browser, page)
}

on_both_engines! {
    /// A consent that is to be remembered is stored, as in a browser.
    async fn a_consent_is_remembered(world: World) {
        let home = home(&world, json!({ "accessGrantConsent": "Explicit" })).await;
        let device = authorize_device(&world, &home).await;
        let mut browser = Browser::new(&world);
        let page = browser.open("/device").await;
        let page = submit(&mut browser, &page, &[("user_code", device["user_code"].as_str().unwrap())]).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(page.html.contains("Allow access?"), "{}", page.html);
        let ticked = [("scope", "profile"), ("scope", "offline_access"), ("remember", "true"), ("decision", "allow")];
        let page = submit(&mut browser, &page, &ticked).await;
        submit(&mut browser, &page, &[("decision", "allow")]).await;
        poll(&world, &home, &device).await.expect(200);
        let consent = world.all("SignInConsent").await[0].clone();
        assert_eq!((&consent["scope"], &consent["source"]), (&json!("offline_access openid profile"), &json!("Person")));
    }
}

on_both_engines! {
    async fn a_person_approves_a_device(world: World) {
        let home = home(&world, json!({})).await;
        let device = authorize_device(&world, &home).await;
        assert_eq!((&device["interval"], &device["expires_in"]), (&json!(5), &json!(600)));
        assert_eq!(device["verification_uri"], json!(format!("{}/device", world.base)));
        assert_eq!(poll(&world, &home, &device).await.is(400).json()["error"], json!("authorization_pending"));
        assert_eq!(poll(&world, &home, &device).await.is(400).json()["error"], json!("slow_down"));
        let (mut browser, page) = enter_code(&world, &device).await;
        assert!(page.html.contains("ann@example.com") && page.html.contains("started this yourself"), "{}", page.html);
        let done = submit(&mut browser, &page, &[("decision", "allow")]).await;
        assert!(done.html.contains("Your device is connected"), "{}", done.html);
        let tokens = poll(&world, &home, &device).await.is(200).json();
        assert_eq!(tokens["scope"], json!("openid profile offline_access"));
        assert!(claims(&tokens["id_token"]).get("sid").is_none() && tokens["refresh_token"].is_string());
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        assert_eq!(bearer.get("/connect/userinfo").await.is(200).json()["preferred_username"], json!("ann"));
        // valid once: a second use revokes its tokens
        assert_eq!(poll(&world, &home, &device).await.is(400).json()["error"], json!("invalid_grant"));
        bearer.get("/connect/userinfo").await.expect(401);
    }

    /// DeviceCodeLifetime: the device gets it as `expires_in`, and the code expires after it.
    ///
    /// - Effect of `Tenant options.DeviceCodeLifetime`: A device waits for this time until a person approves it.
    async fn device_codes_follow_the_lifetime_of_the_tenant(world: World) {
        let home = home(&world, json!({})).await;
        tenant_option(&world, &home, "DeviceCodeLifetime", "00:02:00").await;
        let device = authorize_device(&world, &home).await;
        assert_eq!(device["expires_in"], json!(120));
        let error = async |age: i64| {
            let older = "UPDATE device_authorization SET expires_on = expires_on - ?1";
            world.sql(vec![(older, vec![Bound::Int(age)])]).await;
            poll(&world, &home, &device).await.is(400).json()["error"].clone()
        };
        assert_eq!(error(60_000).await, json!("authorization_pending"));
        assert_eq!(error(61_000).await, json!("expired_token"));
    }

    /// A one-time proof is stored only for a valid code, not for every guess.
    async fn a_guessed_code_or_token_stores_no_proof(world: World) {
        let home = home(&world, json!({})).await;
        let endpoint = format!("{}/connect/token", world.base);
        let proof = Signer::new("").prove("POST", &endpoint, json!({}));
        let request_tokens = async |grant: &[(&str, &str)]| {
            let fields = grant.iter().copied().chain([("client_id", id(&home.app))]);
            let headers = [("content-type", "application/x-www-form-urlencoded"), ("dpop", proof.as_str())];
            let sent = form(fields).into_bytes();
            let answer = world.anonymous.send(http::Method::POST, "/connect/token", &headers, sent).await;
            answer.is(400).json()["error_description"].clone()
        };
        let by_device = |code| [("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), ("device_code", code)];
        let by_code = [
            ("grant_type", "authorization_code"),
            ("code", "guessed"),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ];
        let by_token = [("grant_type", "refresh_token"), ("refresh_token", "guessed")];
        for guess in [&by_device("guessed")[..], &by_code, &by_token] {
            assert_eq!(request_tokens(guess).await, request_tokens(guess).await, "{guess:?}");
        }
        let device = authorize_device(&world, &home).await;
        let waiting = by_device(device["device_code"].as_str().unwrap());
        assert_ne!(request_tokens(&waiting).await, request_tokens(&waiting).await, "of one that waits a proof is good once");
    }

    /// At most 1,000 device authorizations of an app are pending, and 20,000 of all apps. Beyond that the answer is `slow_down`.
    async fn waiting_devices_are_limited_per_app_and_in_total(world: World) {
        let home = home(&world, json!({})).await;
        let members = json!({ "name": "Other", "isPublic": true, "allowDeviceAuthorizationGrant": true });
        let other = world.make("ClientApp", members).await;
        let tenants = format!("{BASE}/ClientApp/{}/tenants", id(&other));
        world.admin.put(&tenants, json!({ "relatedIds": [home.tenant] })).await.expect(202);
        let stores = format!("{BASE}/ClientApp/{}/idpinstances", id(&other));
        let store = first(&world, "/IdpInstance").await;
        world.admin.put(&stores, json!({ "relatedIds": [store["id"]] })).await.expect(202);
        let authorize = async |app: &Value| {
            let fields = [("client_id", id(app)), ("scope", "openid")];
            let headers = [("content-type", "application/x-www-form-urlencoded")];
            let sent = form(fields.into_iter()).into_bytes();
            let answer = world.anonymous.send(http::Method::POST, "/connect/deviceauthorization", &headers, sent).await;
            if answer.status == 200 { json!("waits") } else { answer.is(400).json()["error"].clone() }
        };
        assert_eq!(authorize(&home.app).await, json!("waits"));
        // the first row has the digests of the others, four bytes each
        let digests: Vec<u8> = (0..20_000_u32).flat_map(u32::to_be_bytes).collect();
        world.sql(vec![("UPDATE device_authorization SET sealed = ?1", vec![Bound::Bytes(digests)])]).await;
        let fill = "WITH RECURSIVE n (i) AS (SELECT CAST(?1 AS INTEGER) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2) \
            INSERT INTO device_authorization (digest, user_code, client_app_id, scope, resources, status, expires_on) \
            SELECT substr(d.sealed, 4 * n.i + 1, 4), substr(d.sealed, 4 * n.i + 1, 4), d.client_app_id, '', '', 'Pending', d.expires_on \
            FROM n, device_authorization d WHERE d.sealed IS NOT NULL";
        for (from, to, answers) in [(1, 999, ["waits", "waits"]), (1_000, 1_001, ["slow_down", "waits"]), (1_001, 19_998, ["slow_down", "slow_down"])] {
            world.sql(vec![(fill, vec![Bound::Int(from), Bound::Int(to)])]).await;
            assert_eq!([authorize(&home.app).await, authorize(&other).await], answers, "{to}");
        }
    }

    async fn a_person_denies_a_device(world: World) {
        let home = home(&world, json!({})).await;
        let device = authorize_device(&world, &home).await;
        let (mut browser, page) = enter_code(&world, &device).await;
        let gone = submit(&mut browser, &page, &[("decision", "deny")]).await;
        assert!(gone.html.contains("was not connected"), "{}", gone.html);
        assert_eq!(poll(&world, &home, &device).await.is(400).json()["error"], json!("access_denied"));
        let late = submit(&mut browser, &page, &[("decision", "allow")]).await;
        assert!(!late.html.contains("is connected"), "{}", late.html);
        assert_eq!(poll(&world, &home, &device).await.is(400).json()["error"], json!("access_denied"));
    }

    /// `verification_uri_complete` only fills the field; a wrong or expired code, or one of another issuer, is refused.
    async fn the_page_accepts_valid_user_codes_only(world: World) {
        let home = home(&world, json!({})).await;
        let device = authorize_device(&world, &home).await;
        let mut browser = Browser::new(&world);
        let complete = device["verification_uri_complete"].as_str().unwrap().replace(&world.base, "");
        let page = browser.open(&complete).await;
        assert!(page.html.contains(device["user_code"].as_str().unwrap()), "{}", page.html);
        let wrong = submit(&mut browser, &page, &[("user_code", "BBBB-BBBB")]).await;
        assert!(wrong.html.contains("The code is not right."), "{}", wrong.html);
        let tenant_page = browser.open(&format!("/t/{}/device", home.tenant)).await;
        let wrong = submit(&mut browser, &tenant_page, &[("user_code", device["user_code"].as_str().unwrap())]).await;
        assert!(wrong.html.contains("The code is not right."), "{}", wrong.html);
        let foreign = [("sec-fetch-site", "cross-site")];
        let csrf = page.field("csrf");
        let typed = [("csrf", csrf.as_str()), ("user_code", device["user_code"].as_str().unwrap())];
        assert_eq!(browser.post("/device", &typed, &foreign).await.status, 403);
        world.sql(vec![("UPDATE device_authorization SET expires_on = 1", vec![])]).await;
        let over = submit(&mut browser, &page, &[("user_code", device["user_code"].as_str().unwrap())]).await;
        assert!(over.html.contains("The code is not right."), "{}", over.html);
        assert_eq!(poll(&world, &home, &device).await.is(400).json()["error"], json!("expired_token"));
    }

    /// The anti-forgery proof of the installation's page, or of one tenant's, is not valid at another issuer.
    async fn a_form_is_valid_at_its_issuer_only(world: World) {
        let home = home(&world, json!({})).await;
        let mut browser = Browser::new(&world);
        let own = browser.open("/device").await;
        let at_tenant = browser.open(&format!("/t/{}/device", home.tenant)).await;
        assert_ne!(own.field("csrf"), at_tenant.field("csrf"));
        let typed = [("csrf", own.field("csrf")), ("user_code", "BBBB-BBBB".to_owned())];
        let typed: Vec<_> = typed.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(browser.post(&at_tenant.action(), &typed, &[]).await.status, 403);
        assert_eq!(browser.post(&own.action(), &typed, &[]).await.status, 200);
    }

    /// Only allowed apps can start the flow and poll their own codes; a person who is not admitted cannot approve.
    ///
    /// - Effect of `ClientApp.allowDeviceAuthorizationGrant`: Devices without a browser get tokens by a code that a person types elsewhere.
    async fn the_device_flow_requires_an_allowed_app(world: World) {
        let home = home(&world, json!({})).await;
        let device = authorize_device(&world, &home).await;
        let app = format!("/ClientApp/{}", id(&home.app));
        change(&world, &app, json!({ "isRestricted": true })).await;
        let mut browser = Browser::new(&world);
        let page = browser.open("/device").await;
        let page = submit(&mut browser, &page, &[("user_code", device["user_code"].as_str().unwrap())]).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(page.html.contains("Use another account"), "{}", page.html);
        let back = submit(&mut browser, &page, &[("choice", "back")]).await;
        assert!(back.html.contains("was not connected"), "{}", back.html);
        assert_eq!(poll(&world, &home, &device).await.is(400).json()["error"], json!("authorization_pending"));
        change(&world, &app, json!({ "isRestricted": false, "allowDeviceAuthorizationGrant": false })).await;
        let refused = send(&world, &home, "/connect/deviceauthorization", &[]).await.is(400).json();
        assert_eq!(refused["error"], json!("unauthorized_client"));
        change(&world, &app, json!({ "allowDeviceAuthorizationGrant": true })).await;
        authorize_device(&world, &home).await;
        let profile = "UPDATE client_app SET security_profile = 'Fapi2SecurityProfile' WHERE allow_device_authorization_grant";
        world.sql(vec![(profile, vec![])]).await;
        let refused = send(&world, &home, "/connect/deviceauthorization", &[]).await.is(400).json();
        assert_eq!(refused["error"], json!("unauthorized_client"));
        assert!(refused["error_description"].as_str().unwrap().contains("FAPI"), "{refused}");
        let other = world.make("ClientApp", json!({ "name": "Other", "isPublic": true })).await;
        let form = format!(
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&client_id={}&device_code={}",
            id(&other), device["device_code"].as_str().unwrap()
        );
        assert_eq!(world.anonymous.ask_for_token(&form).await.is(400).json()["error"], json!("invalid_grant"));
    }
}
