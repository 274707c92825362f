//! The security profile of a client app as a checklist.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, Browser, administrator, assign, hidden, person, post, sign_in};
use crate::id;

/// The line about a member, starting with its tone.
fn line<'a>(html: &'a str, label: &str) -> &'a str {
    let list = html.split("<ul class=\"checks\">").nth(1).unwrap_or_else(|| panic!("no checklist in {html}"));
    let mut lines = list.split("</ul>").next().unwrap().split("<li class=\"").skip(1);
    lines.find(|line| line.contains(label)).unwrap_or_else(|| panic!("no {label} in {list}"))
}

on_both_engines! {
    /// Violations link to their fields; without any, the profile can be assigned here.
    async fn a_profile_is_a_checklist(world: World) {
        let mut browser = administrator(&world).await;
        let app = world.make("ClientApp", json!({ "name": "Portal", "allowUserLogin": true })).await;
        let path = format!("{BASE}/ClientApp/{}", id(&app));
        let here = format!("/console/ClientApp/{}/safety", id(&app));
        world.make("ClientAppRedirectUri", json!({ "clientAppId": app["id"], "uri": "https://portal.example/back", "redirectUriType": "Login" })).await;
        let shown = browser.open(&format!("/console/ClientApp/{}", id(&app))).await;
        assert!(shown.html.contains(&here), "the app's page leads there: {}", shown.html);

        let page = browser.open(&format!("{here}?profile=fapi2")).await;
        let pushed = line(&page.html, "Require pushed authorization requests");
        assert!(pushed.starts_with("warn") && pushed.contains("#f-requirePushedAuthorizationRequests"), "{pushed}");
        let method = line(&page.html, "Authentication method");
        assert!(method.starts_with("warn") && method.contains("private_key_jwt"), "{method}");
        assert!(method.contains(&format!("ClientAppAuthenticationConfiguration/new?clientAppId={}", id(&app))), "{method}");
        assert!(line(&page.html, "Redirect addresses").starts_with("good"), "{}", page.html);
        assert!(!page.html.contains("Assign this profile"), "it cannot be set yet: {}", page.html);

        world.admin.patch(&path, json!({ "requirePushedAuthorizationRequests": true, "concurrencyToken": world.admin.get(&path).await.json()["concurrencyToken"] })).await.expect(202);
        let configuration = json!({ "clientAppId": app["id"], "tokenEndpointAuthMethod": "private_key_jwt", "dpopBoundAccessTokens": true });
        world.make("ClientAppAuthenticationConfiguration", configuration).await;
        let page = browser.open(&format!("{here}?profile=fapi2")).await;
        assert!(!page.html.contains("<li class=\"warn\">"), "{}", page.html);
        let token = hidden(&page, "concurrencyToken");
        let fields = [("profile", "fapi2"), ("concurrencyToken", token.as_str())];
        let next = post(&world, &mut browser, &page, &here, &fields).await;
        assert!(next.status == 200 && next.html.contains("Current profile: FAPI 2.0"), "{}: {}", next.status, next.html);
        let app = world.admin.get(&path).await.is(200).json();
        assert_eq!(app["securityProfile"], json!("Fapi2SecurityProfile"));
        // the profile with message signing requires more
        let page = browser.open(&format!("{here}?profile=fapi2-signed")).await;
        assert!(line(&page.html, "Request: signature").starts_with("warn"), "{}", page.html);
    }

    /// Unsupported settings are shown on the app's page, with their effect.
    async fn unsupported_settings_are_reported(world: World) {
        let mut browser = administrator(&world).await;
        for (member, value, expected) in [
            ("subjectType", json!("Pairwise"), "While this is Pairwise, nobody can sign in to the app."),
            ("idTokenEncryptedResponseAlg", json!("RSA-OAEP"), "ID tokens are not encrypted"),
            ("accessTokenEncryptionEnabledOverride", json!(true), "Access tokens are not encrypted"),
            ("userinfoEncryptedResponseAlg", json!("RSA-OAEP"), "The UserInfo endpoint refuses the app"),
            ("introspectionEncryptedResponseAlg", json!("RSA-OAEP"), "The introspection endpoint refuses the app"),
            ("requirePushedAuthorizationRequests", json!(true), "There is no endpoint for pushed authorization requests"),
            ("allowedResponseTypes", json!("code,id_token"), "Requests for a response type other than code or none are refused."),
            ("requestObjectSigningAlg", json!("ES256"), "Requests with a request object are refused."),
            ("requestObjectEncryptionAlg", json!("RSA-OAEP"), "Requests with a request object are refused."),
        ] {
            let app = world.make("ClientApp", json!({ "name": member, member: value })).await;
            let page = browser.open(&format!("/console/ClientApp/{}", id(&app))).await;
            assert!(page.html.contains(expected) && page.html.contains("not supported"), "{member}: {}", page.html);
        }
        // the rules of a profile need more members than this
        let app = world.make("ClientApp", json!({ "name": "Bank" })).await;
        let set = "UPDATE client_app SET security_profile = 'Fapi2SecurityProfile' WHERE name = 'Bank'";
        world.sql(vec![(set, vec![])]).await;
        let page = browser.open(&format!("/console/ClientApp/{}", id(&app))).await;
        assert!(page.html.contains("Nobody can sign in to an app with a FAPI profile."), "{}", page.html);
        let plain = world.make("ClientApp", json!({ "name": "Plain" })).await;
        let page = browser.open(&format!("/console/ClientApp/{}", id(&plain))).await;
        assert!(!page.html.contains("not supported"), "{}", page.html);
        let identity = json!({ "clientAppId": plain["id"], "name": "ci", "issuer": "https://ci.example", "subject": "s" });
        let identity = world.make("ClientAppFederatedIdentity", identity).await;
        let uri = json!({ "clientAppId": plain["id"], "uri": "https://app.example/request.jwt" });
        let uri = world.make("ClientAppRequestUri", uri).await;
        for (resource, row, expected) in [
            ("ClientAppFederatedIdentity", &identity, "Tokens of other issuers are not accepted as client authentication"),
            ("ClientAppRequestUri", &uri, "Authorization requests with a request URI are refused."),
        ] {
            let page = browser.open(&format!("/console/{resource}/{}", id(row))).await;
            assert!(page.html.contains(expected) && page.html.contains("not supported"), "{resource}: {}", page.html);
        }
        let store = world.all("IdpInstance?filter=name%20eq%20%22default%22").await[0].clone();
        let page = browser.open(&format!("/console/IdpInstance/{}", id(&store))).await;
        assert!(!page.html.contains("not supported"), "{}", page.html);
    }

    /// A profile with violations is refused by the operation, and the page shows the reason.
    async fn a_profile_with_violations_is_refused(world: World) {
        let mut browser = administrator(&world).await;
        let app = world.make("ClientApp", json!({ "name": "Portal" })).await;
        let here = format!("/console/ClientApp/{}/safety", id(&app));
        let page = browser.open(&here).await;
        let token = app["concurrencyToken"].as_str().unwrap().to_owned();
        let fields = [("profile", "fapi1"), ("concurrencyToken", token.as_str())];
        let response = post(&world, &mut browser, &page, &here, &fields).await;
        assert!(response.status == 400 && response.html.contains("class=\"problems\""), "{}: {}", response.status, response.html);
        post(&world, &mut browser, &page, &here, &[("profile", "made up")]).await.answer.expect(400);
    }

    /// Recommendations: no implicit flow, secrets with an expiry, and only own resources.
    async fn the_basic_profile_checks_recommendations(world: World) {
        let mut browser = administrator(&world).await;
        let app = world.make("ClientApp", json!({ "name": "Portal", "allowedResponseTypes": "code,id_token" })).await;
        world.make("ClientAppSecret", json!({ "clientAppId": app["id"] })).await;
        let page = browser.open(&format!("/console/ClientApp/{}/safety", id(&app))).await;
        for (label, target) in [
            ("Response types", "#f-allowedResponseTypes"),
            ("Secrets", "ClientAppSecret?of=clientAppId"),
            ("PKCE", "#f-pkce"),
            ("Only listed resources", "#f-resourceFilterEnabled"),
        ] {
            let line = line(&page.html, label);
            assert!(line.starts_with("warn") && line.contains(target), "{label}: {line}");
        }
        assert!(line(&page.html, "Across subscriptions").starts_with("good"), "{}", page.html);
    }

    /// Readers see the checklist without the button.
    async fn a_reader_sees_the_checklist_without_a_button(world: World) {
        let ada = person(&world, "ada").await;
        let tenant = world.all("Tenant").await[0]["id"].clone();
        assign(&world, &ada, "TenantAdmin", json!({ "applyToTenantId": tenant })).await;
        let app = world.make("ClientApp", json!({ "name": "Portal" })).await;
        let tenants = format!("{BASE}/ClientApp/{}/tenants", id(&app));
        world.admin.put(&tenants, json!({ "relatedIds": [tenant] })).await.expect(202);
        let mut browser = Browser::new(&world);
        sign_in(&mut browser, "/console", "ada").await;
        let here = format!("/console/ClientApp/{}/safety", id(&app));
        let page = browser.open(&here).await;
        let shown = line(&page.html, "Only listed resources");
        assert!(shown.starts_with("warn") && !shown.contains("<a "), "{shown}");
        let page = browser.open(&format!("{here}?profile=fapi1")).await;
        let token = app["concurrencyToken"].as_str().unwrap();
        let fields = [("profile", "basic"), ("concurrencyToken", token)];
        assert!(!page.html.contains("name=\"profile\""), "{}", page.html);
        post(&world, &mut browser, &page, &here, &fields).await.answer.expect(403);
    }
}
