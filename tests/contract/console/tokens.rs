//! What tokens would tell a client app is previewed on its page.

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
        let told = post(&world, &mut browser, &page, &path, &fields).await;
        assert_eq!(told.status, 200, "{}", told.html);
        let id_token = table(&told, "ID token");
        assert!(id_token.contains("email bob@example.com Scope email"), "{id_token}");
        assert!(id_token.contains("org Harbour Claim rule: company"), "{id_token}");
        assert!(id_token.contains("auth_time known after the sign-in Protocol"), "{id_token}");
        assert!(told.html.contains(&format!("href=\"/console/ClaimRule/{}\"", id(&rule))), "{}", told.html);
        assert!(table(&told, "Access token").contains("org Harbour"), "{}", told.html);
        assert!(table(&told, "UserInfo endpoint").contains(&format!("sub {} Protocol", id(&bob))), "{}", told.html);
        assert!(told.html.contains("The scope profile is not granted."), "{}", told.html);
        // what the app may not is told in the place of tokens, in the language of who asks
        let fields = [("platformUserId", id(&bob)), ("scope", "nothing")];
        let refused = post(&world, &mut browser, &page, &path, &fields).await;
        assert!(refused.html.contains("The app gets no tokens") && refused.html.contains("does not have this scope"), "{}", refused.html);
        let nobody = post(&world, &mut browser, &page, &path, &[("platformUserId", id(&app)), ("scope", "openid")]).await;
        assert!(nobody.status == 400 && nobody.html.contains("href=\"#f-platformUserId\""), "{}", nobody.html);
        let german = browser.open_with(&path, &[("accept-language", "de")]).await;
        assert!(String::from_utf8_lossy(&german.bytes).contains("Token-Vorschau"));
    }

    /// Who administers a tenant, and no user store, reads nothing of its people by an app.
    async fn a_preview_is_refused_to_who_may_not_read_the_person(world: World) {
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
        let told = post(&world, &mut browser, &page, &path, &[("platformUserId", id(&bob)), ("scope", "openid email")]).await;
        assert!(told.status == 403 && told.html.contains("read the users of the person"), "{}: {}", told.status, told.html);
        assert!(!told.html.contains("bob@example.com"), "{}", told.html);
    }
}
