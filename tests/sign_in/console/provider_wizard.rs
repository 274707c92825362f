//! Connecting an identity provider in the console, without script: from the gallery to the first sign-in, and the page of
//! the provider afterwards.

use std::path::Path;

use chancery_record::Value as Stored;
use chancery_resource::CONSOLE;
use chancery_testkit::{World, on_both_engines};
use rcgen::PKCS_ECDSA_P256_SHA256;
use serde_json::{Value, json};

use super::{
    BASE, Browser, Page, administrator, assign, hidden, person, post, provider_trial::external_link, sign_in,
    unescaped,
};
use crate::{
    certificate, id,
    instance::{create_instance, set_option},
    provider_trial::{
        allow_loopback,
        stub_provider::{Behaviour, StubProvider},
    },
    sign_in::link,
};

const CONNECT: &str = "/console/IdpInstance/connect";
const BACK: &str = "https://app.example/back";

fn words(folder: &Path) -> Vec<String> {
    allow_loopback(folder)
}

/// A client app of the default tenant with the users of the default store; and that tenant.
async fn app(world: &World) -> (Value, Value) {
    let tenant = world.all("Tenant").await[0].clone();
    let created = world.make("ClientApp", json!({ "name": "Portal" })).await;
    let uri = json!({ "clientAppId": created["id"], "uri": BACK, "redirectUriType": "Login" });
    world.make("ClientAppRedirectUri", uri).await;
    let store = world.all("IdpInstance?filter=name%20eq%20%22default%22").await[0].clone();
    let tenants = json!({ "relatedIds": [tenant["id"]] });
    world.admin.post(&format!("{BASE}/ClientApp/{}/tenants", id(&created)), tenants).await.expect(202);
    let apps = json!({ "relatedIds": [created["id"]] });
    world.admin.post(&format!("{BASE}/IdpInstance/{}/clientapps", id(&store)), apps).await.expect(202);
    (created, tenant)
}

/// The path where a person starts to sign in to the app.
fn request(app: &Value, more: &str) -> String {
    format!(
        "/connect/authorize?client_id={}&redirect_uri=https%3A%2F%2Fapp.example%2Fback&response_type=code&scope=openid&\
         code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256{more}",
        id(app)
    )
}

/// Whether the sign-in to the app offers a provider of this name, or redirects to it if it is requested.
async fn is_offered(world: &World, app: &Value, name: &str) -> bool {
    for more in [String::new(), format!("&acr_values=idp%3A{name}")] {
        let page = Browser::new(world).open(&request(app, &more)).await;
        if page.left.is_some_and(|left| !left.starts_with(BACK))
            || page.html.contains(&format!("Continue with {name}"))
        {
            return true;
        }
    }
    false
}

/// A browser in which an administrator of the subscription uses the console.
async fn subscription_admin(world: &World) -> Browser {
    let ada = person(world, "ada").await;
    let subscription = world.all("Subscription").await[0]["id"].clone();
    assign(world, &ada, "SubscriptionAdmin", json!({ "applyToSubscriptionId": subscription })).await;
    let mut browser = Browser::new(world);
    let page = sign_in(&mut browser, "/console", "ada").await;
    assert_eq!(page.status, 200, "{}", page.html);
    browser
}

/// Starts to connect a provider of a kind; returns the page of the first step, and the path of the instance.
async fn begin(world: &World, browser: &mut Browser, kind: &str, name: &str) -> (Page, String) {
    let page = browser.open(&format!("{CONNECT}?kind={kind}")).await;
    let new_id = hidden(&page, "id");
    let fields = [("kind", kind), ("id", new_id.as_str()), ("name", name)];
    let first = post(world, browser, &page, CONNECT, &fields).await;
    assert_eq!(first.status, 200, "{}", first.html);
    (first, format!("/console/IdpInstance/{new_id}"))
}

/// Sends the form of a step with these fields and its hidden ones.
async fn step(
    world: &World,
    browser: &mut Browser,
    page: &Page,
    path: &str,
    fields: &[(&str, &str)],
) -> Page {
    let (base, tokens) = (plain(&page.field("base")), plain(&page.field("tokens")));
    let hidden_fields = [("step", "access"), ("base", base.as_str()), ("tokens", tokens.as_str())];
    let all: Vec<_> = hidden_fields.into_iter().chain(fields.iter().copied()).collect();
    post(world, browser, page, path, &all).await
}

/// Tests the provider, and returns to the results.
async fn run_trial(world: &World, browser: &mut Browser, item: &str, provider: &StubProvider) -> Page {
    let trial = format!("{item}/trial");
    let page = browser.open(&trial).await;
    let begun = post(world, browser, &page, &trial, &[]).await;
    let query = provider.sign_in(&external_link(&begun.html, &provider.issuer));
    let key = item.rsplit('/').next().unwrap();
    let back = browser.open(&format!("/external/{key}/callback?{query}")).await;
    let query = hidden(&back, "query").replace("&#x2f;", "/");
    post(world, browser, &back, &trial, &[("query", &query)]).await
}

/// The HTML with unescaped slashes.
fn plain(html: &str) -> String {
    unescaped(html).replace("&#x2f;", "/")
}

on_both_engines! {
    [words]
    /// A SystemAdmin may offer the provider in the console, too, which is not preselected.
    async fn a_system_admin_may_offer_a_provider_in_the_console(world: World) {
        let provider = StubProvider::in_place_of_the_public_ones(&world);
        let (app, _) = app(&world).await;
        let mut browser = administrator(&world).await;
        let (_, item) = begin(&world, &mut browser, "Google", "Google").await;
        let connect = format!("{item}/connect");
        let page = browser.open(&format!("{connect}?step=access")).await;
        step(&world, &mut browser, &page, &connect, &[("ClientId", "us"), ("ClientSecret", "quiet")]).await;
        run_trial(&world, &mut browser, &item, &provider).await;
        let page = browser.open(&format!("{connect}?step=serve")).await;
        let is_on = |app: &str| {
            let at = page.html.find(&format!("id=\"f-app-{app}\"")).unwrap_or_else(|| panic!("{app}: {}", page.html));
            page.html[at..].split('>').next().unwrap().contains("checked")
        };
        assert_eq!((is_on(id(&app)), is_on(&CONSOLE.to_string())), (true, false), "{}", page.html);
    }

    /// The test follows the pages only. Nobody can sign in through the provider before the last step.
    async fn a_subscription_admin_connects_a_provider_up_to_the_first_sign_in(world: World) {
        let provider = StubProvider::in_place_of_the_public_ones(&world);
        let (app, tenant) = app(&world).await;
        let mut browser = subscription_admin(&world).await;
        let list = browser.open("/console/IdpInstance").await;
        assert!(list.html.contains(&format!("href=\"{CONNECT}\"")), "{}", list.html);
        let gallery = browser.open(CONNECT).await;
        for kind in ["OpenIdConnect", "Microsoft", "Google", "AdfsOAuth", "Facebook", "Twitter"] {
            assert!(gallery.html.contains(&format!("{CONNECT}?kind={kind}")), "{kind}: {}", gallery.html);
        }
        assert!(gallery.html.contains("href=\"/console/IdpInstance/new\""), "{}", gallery.html);

        let (first, item) = begin(&world, &mut browser, "Google", "Google").await;
        let key = item.rsplit('/').next().unwrap();
        let redirect = format!("{}/external/{key}/callback", world.base);
        assert!(plain(&first.html).contains(&format!("<code>{redirect}</code>")), "{}", first.html);
        assert!(first.html.contains("Authorized redirect URIs"), "{}", first.html);
        assert!(!is_offered(&world, &app, "Google").await);

        let connect = format!("{item}/connect");
        let page = browser.open(&format!("{connect}?step=access")).await;
        assert!(page.html.contains(".apps.googleusercontent.com") && !page.html.contains("f-Authority"), "{}", page.html);
        assert!(!page.html.contains("f-ClientId-wrong"), "what was not asked for yet is not wrong: {}", page.html);
        let trial = step(&world, &mut browser, &page, &connect, &[("ClientId", "us"), ("ClientSecret", "quiet")]).await;
        assert!(trial.address.ends_with("/trial") && trial.status == 200, "{}: {}", trial.address, trial.html);
        assert!(!is_offered(&world, &app, "Google").await);
        let response = run_trial(&world, &mut browser, &item, &provider).await;
        assert_eq!(provider.request_parameter("redirect_uri"), redirect);
        let on = format!("{connect}?step=serve");
        assert!(response.html.contains("All checks passed") && response.html.contains(&format!("href=\"{on}\"")), "{}", response.html);
        assert!(!is_offered(&world, &app, "Google").await);

        let page = browser.open(&on).await;
        let (of_tenant, of_app) = (format!("tenant:{}", id(&tenant)), format!("app:{}", id(&app)));
        assert!(page.html.contains(&of_tenant) && page.html.contains(&of_app), "{}", page.html);
        assert!(!page.html.contains("app:636f6e73-6f6c-8000-8000-000000000001"), "the console: {}", page.html);
        let root = world.all("ClientApp?filter=name%20eq%20%22root%22").await[0].clone();
        assert!(!page.html.contains(&format!("app:{}", id(&root))), "the installation's own app: {}", page.html);
        let token = hidden(&page, "concurrencyToken");
        let fields = [
            ("step", "serve"), ("concurrencyToken", token.as_str()), (of_tenant.as_str(), "false"), (of_tenant.as_str(), "true"),
            (of_app.as_str(), "false"), (of_app.as_str(), "true"), ("autoCreatePlatformUser", "false"), ("autoCreatePlatformUser", "true"),
        ];
        let done = post(&world, &mut browser, &page, &connect, &fields).await;
        assert!(done.status == 200 && done.html.contains("The provider is active"), "{}: {}", done.address, done.html);
        // a repeated submission changes nothing
        let again = post(&world, &mut browser, &page, &connect, &fields).await;
        assert!(again.status == 200 && again.address == item, "{}: {}", again.address, again.html);

        assert!(is_offered(&world, &app, "Google").await);
        let mut theirs = Browser::new(&world);
        let page = theirs.open(&request(&app, "")).await;
        let external = theirs.open(&link(&page, "Continue with Google")).await.left.unwrap();
        let page = theirs.open(&format!("/external/{key}/callback?{}", provider.sign_in(&external))).await;
        let answer = theirs.continue_to_app(&page).await;
        assert!(answer.starts_with(BACK) && answer.contains("code="), "{answer}");

        // the console shows the user on the page of the provider
        let shown = browser.open(&item).await;
        assert!(plain(&shown.html).contains(&redirect) && !shown.html.contains("Continue to connect"), "{}", shown.html);
        let people = browser.open(&format!("{item}/people")).await;
        assert!(people.html.contains("ada@example.com") && people.html.contains("/console/ApplicationUser/"), "{}", people.html);
        let list = browser.open(&format!("/console/ApplicationUser?of=identities.idpInstanceId:{key}")).await;
        assert!(list.html.contains("Identity provider: Google") && list.html.contains("ada@example.com"), "{}", list.html);
        assert_eq!(list.html.split("<tbody>").nth(1).unwrap().matches("<tr").count(), 1, "nobody else: {}", list.html);
        let records = browser.open(&format!("{item}/sign-ins")).await;
        assert!(records.html.contains("Last sign-in") && records.html.contains("/console/SignInRecord/"), "{}", records.html);
        assert!(!records.html.contains("Last refusal"), "{}", records.html);
        let current = world.admin.get(&format!("{BASE}/ClientApp/{}", id(&app))).await.is(200).json();
        let closed = json!({ "isRestricted": true, "concurrencyToken": current["concurrencyToken"] });
        world.admin.patch(&format!("{BASE}/ClientApp/{}", id(&app)), closed).await.expect(202);
        let mut refused = Browser::new(&world);
        let page = refused.open(&request(&app, "")).await;
        let external = refused.open(&link(&page, "Continue with Google")).await.left.unwrap();
        refused.open(&format!("/external/{key}/callback?{}", provider.sign_in(&external))).await;
        let records = browser.open(&format!("{item}/sign-ins")).await;
        assert!(records.html.contains("Last sign-in") && records.html.contains("Last refusal"), "{}", records.html);
    }

    /// Each step can be left and resumed; missing and invalid values are reported at their fields.
    async fn a_wizard_step_can_be_left_and_resumed(world: World) {
        let provider = StubProvider::start().await;
        app(&world).await;
        let mut browser = administrator(&world).await;
        let (first, item) = begin(&world, &mut browser, "OpenIdConnect", "Partner").await;
        let key = item.rsplit('/').next().unwrap().to_owned();
        assert!(first.html.contains("issuer"), "{}", first.html);
        // a repeated submission creates one row
        let page = browser.open(&format!("{CONNECT}?kind=OpenIdConnect")).await;
        let fields = [("kind", "OpenIdConnect"), ("id", key.as_str()), ("name", "Partner")];
        let again = post(&world, &mut browser, &page, CONNECT, &fields).await;
        assert!(again.status == 200 && again.address.contains(&item), "{}: {}", again.address, again.html);
        let twice = post(&world, &mut browser, &page, CONNECT, &[("kind", "OpenIdConnect"), ("id", &hidden(&page, "id")), ("name", "partner")]).await;
        assert!(twice.status == 409 && twice.html.contains("f-name-wrong"), "{}: {}", twice.status, twice.html);

        let connect = format!("{item}/connect");
        let shown = browser.open(&item).await;
        assert!(shown.html.contains("Continue to connect") && shown.html.contains(&format!("href=\"{connect}\"")), "{}", shown.html);
        let resumed = browser.open(&connect).await;
        assert!(plain(&resumed.html).contains(&format!("/external/{key}/callback")), "{}", resumed.html);
        // without the settings the last step is not reachable
        let early = browser.open(&format!("{connect}?step=serve")).await;
        assert!(!early.html.contains("autoCreatePlatformUser"), "{}", early.html);
        let access = format!("{connect}?step=access");
        let page = browser.open(&access).await;
        let wrong = step(&world, &mut browser, &page, &connect, &[("Authority", "nowhere"), ("ClientId", "us"), ("ClientSecret", "")]).await;
        assert!(wrong.status == 400 && wrong.html.contains("f-Authority-wrong") && wrong.html.contains("nowhere"), "{}", wrong.html);
        let missing = step(&world, &mut browser, &wrong, &connect, &[("Authority", &provider.issuer), ("ClientId", "us"), ("ClientSecret", "")]).await;
        assert!(missing.status == 400 && missing.html.contains("href=\"#f-ClientSecret\""), "{}: {}", missing.status, missing.html);
        assert!(!missing.html.contains("f-ClientId-wrong"), "{}", missing.html);
        let page = browser.open(&access).await;
        assert!(plain(&page.html).contains(&format!("value=\"{}\"", provider.issuer)), "what was typed is there: {}", page.html);
        let trial = step(&world, &mut browser, &page, &connect, &[("Authority", &provider.issuer), ("ClientId", "us"), ("ClientSecret", "quiet")]).await;
        assert!(trial.address.ends_with("/trial"), "{}: {}", trial.address, trial.html);
        let page = browser.open(&access).await;
        assert!(!page.html.contains("value=\"quiet\"") && page.html.contains("A secret is set. It is not shown"), "{}", page.html);
        assert!(browser.open(&connect).await.address.ends_with("/trial"), "the first that is open");

        let page = browser.open(&format!("{connect}?step=serve")).await;
        let token = hidden(&page, "concurrencyToken");
        let without_users = post(&world, &mut browser, &page, &connect, &[("step", "serve"), ("concurrencyToken", &token)]).await;
        assert!(without_users.status == 400 && without_users.html.contains("at least one tenant and one client app"), "{}", without_users.html);
        let read = world.admin.get(&format!("{BASE}/IdpInstance/{key}")).await.is(200).json();
        assert_eq!((&read["isActive"], &read["tenants"]), (&json!(false), &json!([])), "{read}");
        let unknown = post(&world, &mut browser, &page, &connect, &[]).await;
        assert_eq!(unknown.status, 200, "{}", unknown.html);
        // a user store cannot be connected
        let store = create_instance(&world, "Staff", "UserStore").await;
        assert_eq!(browser.open(&format!("/console/IdpInstance/{}/connect", id(&store))).await.status, 404);
    }

    /// A linked certificate replaces the client secret.
    async fn a_certificate_is_linked_on_the_way(world: World) {
        let provider = StubProvider::start().await;
        let mut browser = administrator(&world).await;
        let (_, item) = begin(&world, &mut browser, "OpenIdConnect", "Partner").await;
        let (connect, access) = (format!("{item}/connect"), format!("{item}/connect?step=access"));
        let upload = async |kind: &str, until: i32| {
            let (body, key) = certificate::body(&PKCS_ECDSA_P256_SHA256, until, &json!({ "certType": kind, "name": format!("{kind} {until}") }));
            (world.make("CertStore", body).await, key.public_key_raw().to_vec())
        };
        let page = browser.open(&access).await;
        assert!(!page.html.contains("certificate:") && page.html.contains("\"/console/CertStore\""), "{}", page.html);
        assert!(page.html.contains(&format!("{item}/relation/certStores")), "{}", page.html);
        let (signing, key) = upload("OidcTokenSigning", 2080).await;
        for (kind, until) in [("OidcTokenSigning", 2024), ("AdfsOAuthTokenSigning", 2080), ("Default", 2080)] {
            upload(kind, until).await;
        }
        let page = browser.open(&access).await;
        let switch = format!("certificate:{}", id(&signing));
        assert_eq!(page.html.matches(&format!("name=\"{switch}\"")).count(), page.html.matches("name=\"certificate:").count(), "{}", page.html);
        assert!(page.html.contains(&switch) && !page.html.contains("AdfsOAuthTokenSigning 2080"), "{}", page.html);
        let typed = [("Authority", provider.issuer.as_str()), ("ClientId", "us"), ("ClientSecret", "")];
        // without a certificate the secret is missing
        let missing = step(&world, &mut browser, &page, &connect, &[typed[0], typed[1], typed[2], (&switch, "false")]).await;
        assert!(missing.status == 400 && missing.html.contains("href=\"#f-ClientSecret\""), "{}: {}", missing.status, missing.html);
        let page = browser.open(&access).await;
        let chosen = [typed[0], typed[1], typed[2], (&switch, "false"), (&switch, "true")];
        let trial = step(&world, &mut browser, &page, &connect, &chosen).await;
        assert!(trial.address.ends_with("/trial"), "{}: {}", trial.address, trial.html);
        provider.behave(Behaviour { asserted_by: Some(key), ..Behaviour::default() });
        let trial = run_trial(&world, &mut browser, &item, &provider).await;
        assert!(trial.html.contains("All checks passed"), "{}", trial.html);
        // if another value is missing, the secret is not
        let key = json!({ "id": item.rsplit('/').next().unwrap() });
        set_option(&world, &key, "ClientId", "").await;
        let missing = browser.open(&item).await;
        assert!(missing.html.contains("#f-ClientId\"") && !missing.html.contains("#f-ClientSecret\""), "{}", missing.html);
        let page = browser.open(&access).await;
        let missing = step(&world, &mut browser, &page, &connect, &[typed[0], ("ClientId", ""), typed[2], chosen[3], chosen[4]]).await;
        assert!(missing.status == 400 && missing.html.contains("href=\"#f-ClientId\""), "{}: {}", missing.status, missing.html);
        assert!(!missing.html.contains("f-ClientSecret-wrong") && !missing.html.contains("#f-ClientSecret\""), "{}", missing.html);
        let settings = browser.open(&format!("{item}/settings")).await;
        assert!(settings.html.contains("f-ClientId-wrong") && !settings.html.contains("f-ClientSecret-wrong"), "{}", settings.html);
        set_option(&world, &key, "ClientId", "us").await;
        // the same form unlinks it
        let page = browser.open(&access).await;
        let missing = step(&world, &mut browser, &page, &connect, &[typed[0], typed[1], typed[2], (&switch, "false")]).await;
        assert_eq!(missing.status, 400, "{}", missing.html);
        let read = world.admin.get(&format!("{BASE}/IdpInstance/{}", item.rsplit('/').next().unwrap())).await.is(200).json();
        assert_eq!(read["certStores"], json!([]), "{read}");
        // AD FS offers its token-signing certificate, Facebook none
        let (_, adfs) = begin(&world, &mut browser, "AdfsOAuth", "Windows").await;
        let page = browser.open(&format!("{adfs}/connect?step=access")).await;
        assert!(page.html.contains("AdfsOAuthTokenSigning 2080") && page.html.contains(&switch), "{}", page.html);
        let (_, facebook) = begin(&world, &mut browser, "Facebook", "Facebook").await;
        let page = browser.open(&format!("{facebook}/connect?step=access")).await;
        assert!(!page.html.contains("certificate:") && !page.html.contains("relation/certStores"), "{}", page.html);
    }

    /// An administrator of a tenant cannot connect providers, and is not offered to.
    async fn lower_roles_cannot_connect_a_provider(world: World) {
        let (_, tenant) = app(&world).await;
        let created = create_instance(&world, "Partner", "Google").await;
        let read = world.admin.get(&format!("{BASE}/IdpInstance/{}", id(&created))).await.is(200).json();
        let off = json!({ "isActive": false, "concurrencyToken": read["concurrencyToken"] });
        world.admin.patch(&format!("{BASE}/IdpInstance/{}", id(&created)), off).await.expect(202);
        let tenants = json!({ "relatedIds": [tenant["id"]] });
        world.admin.post(&format!("{BASE}/IdpInstance/{}/tenants", id(&created)), tenants).await.expect(202);
        let low = person(&world, "low").await;
        assign(&world, &low, "TenantAdmin", json!({ "applyToTenantId": tenant["id"] })).await;
        let mut browser = Browser::new(&world);
        let home = sign_in(&mut browser, "/console", "low").await;
        let item = format!("/console/IdpInstance/{}", id(&created));
        let list = browser.open("/console/IdpInstance").await;
        assert!(list.html.contains("Partner") && !list.html.contains(CONNECT), "{}", list.html);
        let shown = browser.open(&item).await;
        assert!(shown.status == 200 && !shown.html.contains("Continue to connect"), "{}", shown.html);
        let connect = format!("{item}/connect");
        for path in [CONNECT, &format!("{CONNECT}?kind=Google"), &connect, &format!("{connect}?step=serve")] {
            assert_eq!(browser.open(path).await.status, 403, "{path}");
        }
        let begin = [("kind", "Google"), ("id", "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"), ("name", "Mine")];
        for (path, fields) in [(CONNECT, &begin[..]), (&connect, &[("step", "access"), ("ClientId", "me")][..])] {
            let refused = post(&world, &mut browser, &home, path, fields).await;
            assert_eq!(refused.status, 403, "{path}: {}", refused.html);
        }
        assert_eq!(world.all("IdpInstance?filter=name%20eq%20%22Mine%22").await, json!([]));
    }

    /// The addresses to register follow from the settings, and expiring certificates are shown.
    async fn the_page_of_a_provider_shows_its_addresses_and_expiring_certificates(world: World) {
        let mut browser = administrator(&world).await;
        let tenant = world.all("Tenant").await[0].clone();
        let created = create_instance(&world, "Partner", "OpenIdConnect").await;
        let item = format!("/console/IdpInstance/{}", id(&created));
        let shown = plain(&browser.open(&item).await.html);
        assert!(shown.contains(&format!("{}/external/{}/callback", world.base, id(&created))), "{shown}");
        assert!(!shown.contains("/signin/signedout"), "{shown}");
        for (name, value) in [("CallbackPath", "/signin-partner"), ("SignOutUpstream", "true")] {
            set_option(&world, &created, name, value).await;
        }
        let tenants = json!({ "relatedIds": [tenant["id"]] });
        world.admin.post(&format!("{BASE}/IdpInstance/{}/tenants", id(&created)), tenants).await.expect(202);
        let (body, _) = certificate::body(&PKCS_ECDSA_P256_SHA256, 2080, &json!({ "certType": "OidcTokenSigning" }));
        let certificate = world.make("CertStore", body).await;
        let certificates = json!({ "relatedIds": [certificate["id"]] });
        world.admin.post(&format!("{BASE}/IdpInstance/{}/certstores", id(&created)), certificates).await.expect(202);
        let shown = plain(&browser.open(&item).await.html);
        let public = &world.base;
        for address in [
            format!("{public}/signin-partner"),
            format!("{public}/signin/signedout"),
            format!("{public}/t/{}/signin/signedout", id(&tenant)),
        ] {
            assert!(shown.contains(&format!("<code>{address}</code>")), "{address}: {shown}");
        }
        assert!(!shown.contains("certificate ends soon") && !shown.contains("certificate has ended"), "{shown}");
        let day = 24 * 3_600_000;
        for (until, expected) in [(day, "A certificate expires soon"), (-day, "A certificate has expired")] {
            let until = Stored::from(chancery_web::now().0 + until);
            world.sql(vec![("UPDATE cert_store SET valid_to = ?1", vec![until])]).await;
            let shown = browser.open(&item).await;
            assert!(shown.html.contains(expected), "{expected}: {}", shown.html);
        }
        let none = browser.open(&format!("{item}/sign-ins")).await;
        assert!(none.html.contains("No user has signed in with it yet."), "{}", none.html);
        let none = browser.open(&format!("{item}/people")).await;
        assert!(none.html.contains("No user has signed in with it yet."), "{}", none.html);
    }
}
