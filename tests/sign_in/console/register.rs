//! Registration of a client app with everything that belongs to it, in one transaction.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, Browser, PASSWORD, administrator, hidden, post};
use crate::{
    id,
    signer::{Signer, claims},
};

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const PATH: &str = "/console/ClientApp/new";

async fn apps(world: &World, name: &str) -> Vec<Value> {
    let all = world.admin.get(&format!("{BASE}/ClientApp")).await.is(200).json();
    all.as_array().unwrap().iter().filter(|app| app["name"] == json!(name)).cloned().collect()
}

/// The value of a label in the list of facts.
fn fact(html: &str, label: &str) -> String {
    let rest = html.split(&format!("<dt>{label}</dt>")).nth(1).unwrap();
    rest.split("<code>").nth(1).unwrap().split('<').next().unwrap().to_owned()
}

on_both_engines! {
    async fn each_kind_of_client_app_is_registered_with_its_code(world: World) {
        let mut browser = administrator(&world).await;
        let choice = browser.open(PATH).await;
        for (kind, code) in [("web", "mod_auth_openidc"), ("page", "oidc-client-ts"), ("machine", "client_credentials"), ("device", "device_code")] {
            let page = browser.open(&format!("{PATH}?kind={kind}")).await;
            assert!(choice.html.contains(&format!("kind={kind}")) && page.status == 200, "{}", page.html);
            let new_id = hidden(&page, "id");
            let fields = [("kind", kind), ("id", new_id.as_str()), ("name", kind), ("returns", "https://app.example/back\r\n")];
            let created = post(&world, &mut browser, &page, PATH, &fields).await;
            assert!(created.status == 200 && created.html.contains(code), "{}", created.html);
            let app = apps(&world, kind).await[0].clone();
            assert_eq!((fact(&created.html, "Client ID"), id(&app)), (new_id.clone(), new_id.as_str()));
            assert_eq!(created.html.contains("Client secret"), ["web", "machine"].contains(&kind));
            let challenge = created.html.split("code_challenge=").nth(1).map(|rest| rest.split('&').next().unwrap().to_owned());
            assert_eq!(challenge.is_some_and(|challenge| challenge.len() == 43), ["web", "page"].contains(&kind), "{}", created.html);
            assert_eq!(app["clientAppRedirectUris"].as_array().unwrap().len(), usize::from(["web", "page"].contains(&kind)));
            // a repeated submission creates no second app, and does not show the secret again
            let again = post(&world, &mut browser, &page, PATH, &fields).await;
            let secret = created.html.contains("Client secret").then(|| fact(&created.html, "Client secret"));
            assert!(again.status == 200 && secret.is_none_or(|secret| !again.html.contains(&secret)), "{}", again.html);
            assert_eq!(apps(&world, kind).await.len(), 1);
        }
    }

    /// With the shown data only, a person signs in and a machine gets a token.
    async fn a_registered_client_app_works(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open(&format!("{PATH}?kind=machine")).await;
        let new_id = hidden(&page, "id");
        let created = post(&world, &mut browser, &page, PATH, &[("kind", "machine"), ("id", &new_id), ("name", "Robot")]).await;
        let secret = fact(&created.html, "Client secret");
        let form = format!("grant_type=client_credentials&client_id={new_id}&client_secret={secret}");
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let token = world.anonymous.send(http::Method::POST, "/connect/token", &headers, form.into_bytes()).await;
        assert!(token.is(200).json()["access_token"].is_string());

        let page = browser.open(&format!("{PATH}?kind=page")).await;
        let new_id = hidden(&page, "id");
        let switches: Vec<String> = page.html.split("role=\"switch\" id=\"").skip(1)
            .filter(|rest| rest.split('>').next().unwrap().contains(" checked"))
            .map(|rest| rest.split("name=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()).collect();
        assert!(switches.iter().any(|name| name.starts_with("instance:")) && switches.iter().any(|name| name.starts_with("tenant:")), "{switches:?}");
        let mut fields = vec![("kind", "page"), ("id", new_id.as_str()), ("name", "Portal"), ("returns", "https://app.example/back")];
        fields.extend(switches.iter().map(|name| (name.as_str(), "true")));
        post(&world, &mut browser, &page, PATH, &fields).await.answer.expect(200);
        let mut person = Browser::new(&world);
        let way = format!("/connect/authorize?client_id={new_id}&redirect_uri=https%3A%2F%2Fapp.example%2Fback&response_type=code&scope=openid&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256");
        let page = person.open(&way).await;
        let back = person.type_password(&page, "ada", PASSWORD).await;
        let left = person.open(&back.redirect_target()).await.left.unwrap();
        assert!(left.starts_with("https://app.example/back?") && left.contains("code="), "{left}");
    }

    /// Apps that people sign in to have the switch of the groups claim.
    async fn a_client_app_is_registered_with_the_groups_claim(world: World) {
        let mut browser = administrator(&world).await;
        for (kind, has_switch) in [("web", true), ("page", true), ("device", true), ("machine", false)] {
            let page = browser.open(&format!("{PATH}?kind={kind}")).await;
            assert_eq!(page.html.contains("name=\"includeGroupsClaims\""), has_switch, "{kind}: {}", page.html);
            for (name, value) in [("with", "true"), ("without", "")] {
                let name = format!("{kind} {name}");
                let page = browser.open(&format!("{PATH}?kind={kind}")).await;
                let new_id = hidden(&page, "id");
                let fields = [
                    ("kind", kind), ("id", new_id.as_str()), ("name", name.as_str()),
                    ("returns", "https://app.example/back"), ("includeGroupsClaims", value),
                ];
                post(&world, &mut browser, &page, PATH, &fields).await.answer.expect(200);
                let has_groups = has_switch && value == "true";
                assert_eq!(apps(&world, &name).await[0]["includeGroupsClaims"], json!(has_groups), "{name}");
            }
        }
    }

    /// An app with own keys gets no secret: it authenticates with the keys, and may request the named scopes.
    async fn a_client_app_is_registered_with_own_keys_and_scopes(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open(&format!("{PATH}?kind=machine")).await;
        let (new_id, own) = (hidden(&page, "id"), Signer::new("own"));
        let typed = |keys: &'static str, scopes: &'static str| {
            [("kind", "machine"), ("name", "Robot"), ("proves", "keys"), ("keys", keys), ("scopes", scopes)]
        };
        for (keys, scopes, field_id) in [("", "", "f-keys-wrong"), ("{}", "", "f-keys-wrong"), ("https://robot.example/jwks", "a b", "f-scopes-wrong")] {
            let mut fields = typed(keys, scopes).to_vec();
            fields.push(("id", &new_id));
            let refused = post(&world, &mut browser, &page, PATH, &fields).await;
            assert!(refused.status == 400 && refused.html.contains(field_id), "{field_id}: {} {}", refused.status, refused.html);
        }
        assert!(apps(&world, "Robot").await.is_empty());
        let jwks = own.jwks();
        let fields = [("kind", "machine"), ("id", new_id.as_str()), ("name", "Robot"), ("proves", "keys"), ("keys", &jwks), ("scopes", "read\r\nwrite\r\n")];
        let created = post(&world, &mut browser, &page, PATH, &fields).await;
        assert!(created.status == 200 && created.html.contains("PrivateKeyJwt"), "{}", created.html);
        assert!(!created.html.contains("Client secret") && !created.html.contains("client_secret"), "{}", created.html);
        let app = apps(&world, "Robot").await[0].clone();
        assert!(app["clientAppSecrets"].as_array().unwrap().is_empty(), "{app}");
        let assertion = own.assert(&claims(&world, &app, json!({ "aud": world.base })));
        let form = format!("grant_type=client_credentials&client_assertion_type={ASSERTION}&client_assertion={assertion}&scope=read+write");
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let token = world.anonymous.send(http::Method::POST, "/connect/token", &headers, form.into_bytes()).await;
        assert_eq!(token.is(200).json()["scope"], "read write");
    }

    /// Concurrent registrations each receive their own data.
    async fn concurrent_registrations_do_not_mix(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open(&format!("{PATH}?kind=web")).await;
        let registering = (0..8).map(|number| {
            let (world, page, mut browser) = (&world, &page, browser.clone());
            async move {
                let new_id = format!("9b2f0c1a-0000-4000-8000-00000000000{number}");
                let name = format!("App {number}");
                let returns = format!("https://app{number}.example/back");
                let fields = [("kind", "web"), ("id", new_id.as_str()), ("name", name.as_str()), ("returns", returns.as_str())];
                let created = post(world, &mut browser, page, PATH, &fields).await;
                assert_eq!(created.status, 200, "{}", created.html);
                (fact(&created.html, "Client ID"), fact(&created.html, "Client secret"), new_id)
            }
        });
        for (response, secret, new_id) in futures_util::future::join_all(registering).await {
            assert!(response == new_id && secret.len() >= 43, "{response} {secret}");
        }
    }

    /// An error in one field creates nothing, and the entered values stay.
    async fn a_failed_registration_creates_nothing(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open(&format!("{PATH}?kind=web")).await;
        let new_id = hidden(&page, "id");
        let fields = [("kind", "web"), ("id", new_id.as_str()), ("name", "Portal"), ("returns", "https://app.example/back\nnowhere")];
        let refused = post(&world, &mut browser, &page, PATH, &fields).await;
        assert!(refused.status == 400 && refused.html.contains("f-returns-wrong") && refused.html.contains("nowhere"), "{}", refused.html);
        assert!(apps(&world, "Portal").await.is_empty());
        let mended = [("kind", "web"), ("id", new_id.as_str()), ("name", "Portal"), ("returns", "https://app.example/back")];
        post(&world, &mut browser, &refused, PATH, &mended).await.answer.expect(200);
        assert_eq!(apps(&world, "Portal").await.len(), 1);
        let trail = world.admin.get(&format!("{BASE}/CustomAuditTrail?sortOrder=descending&count=3")).await.is(200).json();
        let areas: Vec<_> = trail.as_array().unwrap().iter().map(|entry| entry["area"].as_str().unwrap()).collect();
        assert!(areas.contains(&"ClientAppSecret") && areas.contains(&"ClientApp"), "{areas:?}");
    }

    /// The standard form is available, too.
    async fn the_standard_form_of_a_client_app_is_available(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open(&format!("{PATH}?kind=plain")).await;
        let created = post(&world, &mut browser, &page, PATH, &[("key", &page.field("key")), ("name", "By hand"), ("isPublic", "true")]).await;
        assert!(created.html.contains("<h1>By hand"), "{}", created.html);
    }
}
