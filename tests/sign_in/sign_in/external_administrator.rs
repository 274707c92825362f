//! Roles of external people give no rights at the platform yet: an error says so, and no token is issued.

use chancery_resource::CONSOLE;
use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, administrator, browser::Browser, external, link, parameter, relate};
use crate::{
    id,
    provider_trial::{
        allow_loopback,
        stub_provider::{Behaviour, StubProvider},
    },
};

on_both_engines! {
    [allow_loopback]
    async fn external_people_get_no_administrator_rights(world: World) {
        let (home, provider) = (administrator::console(&world).await, StubProvider::start().await);
        let instance = external::connect(&world, &home, "Partner", &provider).await;
        // without the platform they sign in to the same app
        external::tokens(&world, &home, &provider, &[]).await;
        let person = external::people(&world, &instance).await.remove(0);
        let role = json!({ "principalType": "PlatformUser", "principalId": person["id"], "roleType": "SystemAdmin" });
        world.make("RoleAssignment", role).await;
        let platform = [("resource", "PlatformManagementService")];
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&platform)).await;
        let page = external::sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
        // nor with a session
        let (mut browser, _) = external::sign_in(&world, &home, &provider, &[]).await;
        let silent = browser.open(&home.request(&[platform[0], ("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("access_denied"), "{silent}");
        let console = world.admin.get(&format!("{BASE}/ClientApp/{CONSOLE}")).await.is(200).json();
        let tenant = console["tenants"][0]["id"].as_str().unwrap().to_owned();
        for (relation, related) in [("tenants", vec![tenant.as_str(), home.tenant.as_str()]), ("clientapps", vec![id(&console), id(&home.app)])] {
            relate(&world, &format!("/IdpInstance/{}/{relation}", id(&instance)), &related).await;
        }
        // the console forces a new sign-in
        let now = chancery_web::now().0 / 1000;
        provider.behave(Behaviour { claims: json!({ "auth_time": now }), ..Behaviour::default() });
        let mut browser = Browser::new(&world);
        let page = browser.open("/console").await;
        assert!(!link(&page, "Continue with Partner").is_empty());
        let page = external::sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
    }
}
