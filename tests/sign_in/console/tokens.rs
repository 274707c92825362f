//! Preview of tokens on the page of a client app.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{Page, administrator, assign, person, post, sign_in};
use crate::{id, sign_in::browser::Browser};

/// The table of a document, as text.
fn table(page: &Page, title: &str) -> String {
    let part = page.html.split(&format!("<table aria-label=\"{title}\">")).nth(1);
    let part =
        part.unwrap_or_else(|| panic!("no {title} in {}", page.html)).split("</table>").next().unwrap();
    let texts = part.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text.trim());
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A client app of the first tenant and the first store.
async fn portal(world: &World, members: Value) -> Value {
    let mut body = json!({ "name": "Portal" });
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let app = world.make("ClientApp", body).await;
    let uri =
        json!({ "clientAppId": app["id"], "uri": "https://app.example/back", "redirectUriType": "Login" });
    world.make("ClientAppRedirectUri", uri).await;
    for (resource, relation) in [("Tenant", "tenants"), ("IdpInstance", "idpinstances")] {
        let path = format!("/api/management/v2/ClientApp/{}/{relation}", id(&app));
        world
            .admin
            .put(&path, json!({ "relatedIds": [world.all(resource).await[0]["id"]] }))
            .await
            .expect(202);
    }
    app
}

on_both_engines! {
    async fn tokens_are_previewed_on_the_page_of_an_app(world: World) {
        let mut browser = administrator(&world).await;
        let app = portal(&world, json!({ "includeGroupsClaims": true })).await;
        let rule = world.make("ClaimRule", json!({
            "name": "company", "ruleType": "Add", "ruleLevel": "Subscription", "typeTransformationReplacement": "org",
            "valueTransformationReplacement": "Harbour",
        })).await;
        let bob = person(&world, "bob").await;
        let path = format!("/console/ClientApp/{}/tokens", id(&app));
        let shown = browser.open(&format!("/console/ClientApp/{}", id(&app))).await;
        assert!(shown.html.contains(&format!("href=\"{path}\"")), "{}", shown.html);
        let page = browser.open(&path).await;
        assert_eq!(page.field("scope"), "openid profile email phone groups offline_access");
        assert!(page.html.contains("data-search=\"/console/find?in=ApplicationUser\""), "{}", page.html);
        assert!(!page.html.contains("<table"), "{}", page.html);
        let fields = [("platformUserId", id(&bob)), ("scope", "openid email"), ("resources", "")];
        let response = post(&world, &mut browser, &page, &path, &fields).await;
        assert_eq!(response.status, 200, "{}", response.html);
        let id_token = table(&response, "ID token");
        assert!(id_token.contains("email bob@example.com Scope email"), "{id_token}");
        assert!(id_token.contains("org Harbour Claim rule: company"), "{id_token}");
        assert!(id_token.contains("auth_time known after the sign-in Protocol"), "{id_token}");
        assert!(response.html.contains(&format!("href=\"/console/ClaimRule/{}\"", id(&rule))), "{}", response.html);
        assert!(table(&response, "Access token").contains("org Harbour"), "{}", response.html);
        assert!(table(&response, "UserInfo endpoint").contains(&format!("sub {} Protocol", id(&bob))), "{}", response.html);
        assert!(response.html.contains("The scope profile is not granted."), "{}", response.html);
        // what the app may not request is reported instead of tokens, in the user's language
        let fields = [("platformUserId", id(&bob)), ("scope", "nothing")];
        let refused = post(&world, &mut browser, &page, &path, &fields).await;
        assert!(refused.html.contains("The app gets no tokens") && refused.html.contains("does not have this scope"), "{}", refused.html);
        let unknown = post(&world, &mut browser, &page, &path, &[("platformUserId", id(&app)), ("scope", "openid")]).await;
        assert!(unknown.status == 400 && unknown.html.contains("href=\"#f-platformUserId\""), "{}", unknown.html);
        let german = browser.open_with(&path, &[("accept-language", "de")]).await;
        assert!(String::from_utf8_lossy(&german.bytes).contains("Token-Vorschau"));
    }

    /// An administrator of a tenant without a role in a user store cannot read its users through a client app.
    async fn a_token_preview_requires_permission_to_read_the_person(world: World) {
        let app = portal(&world, json!({})).await;
        let bob = person(&world, "bob").await;
        let low = person(&world, "low").await;
        let tenant = world.all("Tenant").await[0]["id"].clone();
        let instance = world.all("IdpInstance").await[0]["id"].clone();
        let tenants = format!("/api/management/v2/IdpInstance/{}/tenants", instance.as_str().unwrap());
        world.admin.put(&tenants, json!({ "relatedIds": [tenant] })).await.expect(202);
        assign(&world, &low, "TenantAdmin", json!({ "applyToTenantId": tenant })).await;
        let mut browser = Browser::new(&world);
        sign_in(&mut browser, "/console", "low").await;
        let path = format!("/console/ClientApp/{}/tokens", id(&app));
        let page = browser.open(&path).await;
        let response = post(&world, &mut browser, &page, &path, &[("platformUserId", id(&bob)), ("scope", "openid email")]).await;
        assert!(response.status == 403 && response.html.contains("read the users of the person"), "{}: {}", response.status, response.html);
        assert!(!response.html.contains("bob@example.com"), "{}", response.html);
    }
}
